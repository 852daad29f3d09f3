"""Tracked points: labelled material points over time, by motion capture, markers or sensors."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pliant.core.errors import BadInput
from pliant.core.vectors import in_space
from pliant.dynamics.trajectory import Trajectory
from pliant.observe.observations import Frame, Observations

NEAR = 1.0
"""Diagonals of the body beyond which a tracked point cannot be the body's."""


@dataclass(frozen=True)
class TrackedPoints:
    """Positions of labelled points over time.

    times: (frames,) [s], ascending; positions: (frames, points, dim) [m], not a number where a
    point was not seen. at: (points, dim) [m] which material points they are, at rest in the scene;
    a marker beside the body belongs to the body's point nearest to it, and what lies between turns
    with the surface there. offset: (points, dim) [m] more of that, from `at` to what is tracked.
    Without `at` (None), the first positions seen are those at rest.
    sigma [m]: standard deviation of the positions, one or one for each point; None: found in the
    residuals. at_sigma [m]: how well `at` is known, one or one for each point; a fit then finds
    where the points sit, with that as prior.
    """

    times: np.ndarray
    positions: np.ndarray
    at: np.ndarray | None = None
    sigma: float | np.ndarray | None = None
    names: Sequence[str] = ()
    offset: np.ndarray | None = None
    at_sigma: float | np.ndarray | None = None

    def __post_init__(self):
        times, positions = np.array(self.times, float), np.array(self.positions, float)
        if positions.ndim == 2:  # one point
            positions = positions[:, None]
        frames, points, dim = (*positions.shape, 0, 0, 0)[:3]
        if positions.ndim != 3 or dim not in (2, 3) or times.shape != (frames,):
            raise BadInput(
                "Tracked points need times (frames,) and positions (frames, points, 3), not "
                f"{times.shape} and {positions.shape}."
            )
        if not np.isfinite(times).all() or (np.diff(times) <= 0.0).any():
            raise BadInput("The times of tracked points must be finite and ascend.")
        positions[~np.isfinite(positions).all(axis=2)] = np.nan
        names = tuple(self.names) or tuple(f"point{k + 1}" for k in range(points))
        if len(names) != points or len(set(names)) != points:
            raise BadInput(f"{points} tracked points need as many different names, not {names}.")
        lost = [n for n, p in zip(names, positions.swapaxes(0, 1), strict=True)
                if np.isnan(p).all()]  # fmt: skip
        if lost or not points:
            raise BadInput(f"Tracked points without one position: {', '.join(lost) or 'all'}.")
        for key, value in (("times", times), ("positions", positions), ("names", names)):
            object.__setattr__(self, key, value)
        for key in ("at", "offset"):
            given = getattr(self, key)
            if given is None:
                continue
            given = np.array(given, float).reshape(-1, dim)
            if given.shape != (points, dim) or not np.isfinite(given).all():
                raise BadInput(f"`{key}` of tracked points must be {points} finite points.")
            object.__setattr__(self, key, given)
        for key in ("sigma", "at_sigma"):
            given = getattr(self, key)
            if given is None:
                continue
            value = np.broadcast_to(np.asarray(given, float), (points,)).copy()
            if not (np.isfinite(value).all() and (value > 0.0).all()):
                raise BadInput(f"{key} of tracked points must be positive lengths, not {given}.")
            object.__setattr__(self, key, value)

    @classmethod
    def of(
        cls,
        run: Trajectory,
        at,
        *,
        noise: float = 0.0,
        seed: int = 0,
        names: Sequence[str] = (),
        frames: Sequence[int] | None = None,
    ) -> "TrackedPoints":
        """Material points (points, dim) of a run in all its frames but the first, with noise."""
        at = np.atleast_2d(np.asarray(at, float))
        chosen = list(range(1, len(run.times))) if frames is None else list(frames)
        x = run.at(at)[chosen]
        x = x + noise * np.random.default_rng(seed).standard_normal(x.shape)
        return cls(np.asarray(run.times)[chosen], x, at, noise or None, names)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def dim(self) -> int:
        """2 or 3."""
        return self.positions.shape[2]

    @property
    def present(self) -> np.ndarray:
        """(frames, points): where a point was seen."""
        return ~np.isnan(self.positions[..., 0])

    @property
    def point_count(self) -> int:
        """Positions over all frames."""
        return int(self.present.sum())

    @property
    def noise(self) -> float | None:
        """The median of the points' sigma [m]; residuals count in its units."""
        return None if self.sigma is None else float(np.median(self.sigma))

    def first(self) -> np.ndarray:
        """(points, dim) each point's first position."""
        return self.positions[self.present.argmax(axis=0), np.arange(len(self))]

    def only(self, *names: str) -> "TrackedPoints":
        """Some of the points, in this order."""
        unknown = [n for n in names if n not in self.names]
        if unknown or not names:
            raise BadInput(
                f"There is no tracked point '{', '.join(unknown)}'; there are "
                f"{', '.join(self.names)}."
            )
        chosen = [self.names.index(n) for n in names]
        parts: dict[str, Any] = {
            key: getattr(self, key)[chosen]
            for key in ("at", "sigma", "offset", "at_sigma")
            if getattr(self, key) is not None
        }
        return replace(self, positions=self.positions[:, chosen], names=names, **parts)

    def between(self, begin: float, end: float = np.inf) -> "TrackedPoints":
        """The frames from `begin` to `end` [s], with times counted from `begin`."""
        chosen = (self.times >= begin - 1e-9) & (self.times <= end + 1e-9)
        if not chosen.any():
            raise BadInput(f"No tracked positions lie between {begin:g} and {end:g} s.")
        seen = np.flatnonzero(self.present[chosen].any(axis=0))
        names = [self.names[int(k)] for k in seen]
        part = self.only(*names) if len(names) < len(self) else self
        return replace(part, times=self.times[chosen] - begin, positions=part.positions[chosen])

    def moved(self, turn, shift) -> "TrackedPoints":
        """In another frame of reference: x -> turn x + shift, (dim, dim) and (dim,) [m]."""
        turn, shift = np.asarray(turn, float), np.asarray(shift, float)
        if turn.shape != (self.dim, self.dim) or np.abs(turn @ turn.T - np.eye(self.dim)).max() > (
            1e-6
        ):
            raise BadInput(f"`turn` must be a rotation matrix, {self.dim} by {self.dim}.")
        return replace(self, positions=self.positions @ turn.T + shift)

    def as_points(self) -> Observations:
        """Bare points, frame by frame, for pictures."""
        frames = []
        for time, row, seen in zip(self.times, self.positions, self.present, strict=True):
            points = in_space(row[seen])
            none = np.full(len(points), -1)
            frames.append(Frame(float(time), points, none, none, np.full(len(points), np.nan)))
        return Observations(frames, noise=self.noise)


def rigid_fit(there: np.ndarray, here: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """turn (dim, dim) and shift (dim,) that bring points (n, dim) `there` nearest to `here`.

    Least squares over rotations (Kabsch 1976); for `TrackedPoints.moved`.
    """
    there, here = np.atleast_2d(np.asarray(there, float)), np.atleast_2d(np.asarray(here, float))
    if there.shape != here.shape or len(there) < there.shape[1]:
        raise BadInput(f"A rigid fit needs {there.shape[1]} pairs of points or more.")
    a, b = there.mean(axis=0), here.mean(axis=0)
    U, _, V = np.linalg.svd((here - b).T @ (there - a))
    flip = np.ones(there.shape[1])
    flip[-1] = np.sign(np.linalg.det(U @ V))
    turn = (U * flip) @ V
    return turn, b - turn @ a
