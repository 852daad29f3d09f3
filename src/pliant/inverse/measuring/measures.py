"""What a simulated state is compared with: surface points of cameras, or motions of all nodes.

A measure knows the times of its frames and reduces a state to residuals that are linear in it. A
new kind of observation is a new measure.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from pliant.core.errors import BadInput
from pliant.dynamics.model import World
from pliant.dynamics.trajectory import Trajectory
from pliant.inverse.measuring.costs import (
    Residuals,
    check_observations,
    depth_residuals,
    foot_residuals,
    mean_curvature,
)
from pliant.inverse.measuring.losses import Loss
from pliant.inverse.measuring.surface_bumps import SurfaceBumps
from pliant.inverse.measuring.surface_slopes import SurfaceSlopes
from pliant.inverse.motion.pullback import pull_back_residuals
from pliant.inverse.parameters.recording_blocks import CAMERA_POSE, DEPTHS, POSE, SURFACE, TIME
from pliant.observe.calibration import NONE, Calibration, Pose, Sight, recorded_centre
from pliant.observe.curved_surface import seen_surface
from pliant.observe.observations import Frame, Observations
from pliant.observe.raycast import SurfaceQueries
from pliant.observe.tracks import TrackedPoints

Pair = tuple[np.ndarray, np.ndarray]
"""Displacement and velocity of the nodes, (nodes, 3) each; or their tangents or duals."""

COSTS = ("depth", "foot", "pullback")
"""Of surface points: along the ray, to the foot point, or the seed's (biased) one."""


@dataclass(frozen=True)
class FrameMisfit:
    """Residuals r (m,) [m] of a frame, their derivative J (m, p) by q, and which are usable."""

    r: np.ndarray
    J: np.ndarray
    usable: np.ndarray


def no_slope(name: str) -> np.ndarray:
    """Of a measure that no unknown of the recording but the clock corrects."""
    raise TypeError(name)


@dataclass(frozen=True)
class LinearMisfit:
    """The residuals of a frame, linear in the state: dr = along(du, dv), and its transpose.

    r: (m,) [m]; usable: (m,); along: p Pairs to (m, p); pull: (m,) to a Pair, so that
    pull(w) . change = w . along([change]). by_recording: from the name of one of the recording's
    unknowns, the clock's excepted, to the derivative (m, numbers) by it.
    """

    r: np.ndarray
    usable: np.ndarray
    along: Callable[[Sequence[Pair]], np.ndarray]
    pull: Callable[[np.ndarray], Pair]
    by_recording: Callable[[str], np.ndarray] = field(default=no_slope, repr=False)

    def weight(self, loss: Loss) -> np.ndarray:
        """(m,) so that the cost's derivative by r is weight * r; zero where not usable."""
        return np.where(self.usable, loss(self.r)[1], 0.0)

    def times(self, factor: np.ndarray) -> "LinearMisfit":
        """Every residual times its factor (m,)."""
        return LinearMisfit(
            factor * self.r, self.usable, lambda changes: factor[:, None] * self.along(changes),
            lambda weight: self.pull(factor * weight),
            lambda name: factor[:, None] * self.by_recording(name),
        )  # fmt: skip

    def alone(self) -> FrameMisfit:
        """Without derivatives."""
        return FrameMisfit(self.r, np.zeros((len(self.r), 0)), self.usable)


def beside(columns: Sequence[np.ndarray], rows: int) -> np.ndarray:
    """Columns as a matrix, which may have none."""
    return np.stack(columns, axis=1) if columns else np.zeros((rows, 0))


class Measure:
    """Observations against a state; a kind of observation says how it is linear in the state."""

    cost_name: str
    times: list[tuple[int, float]]
    """(frame, time [s]) of the frames that hold anything."""
    frame_count: int
    noise: float | None

    def linear(
        self, frame: int, state: Pair, loss: Loss, calibration: Calibration = NONE
    ) -> LinearMisfit:
        """Residuals of a frame and their derivative at a state; calibration: of the recording."""
        raise TypeError(type(self).__name__)

    def corrections(self) -> list[str]:
        """Names of the recording's unknowns that this kind of recording has."""
        return [TIME]

    def require(self, name: str) -> None:
        """Refuse an unknown of the recording that changes nothing here."""
        known = self.corrections()
        if name not in known:
            raise BadInput(
                f"'{name}' is unknown, but nothing of this recording depends on it; what may be "
                f"unknown of it: {', '.join(known)}."
            )


class SurfaceMeasure(Measure):
    """Points of cameras or scanners against the deformed surface."""

    def __init__(self, scene: World, seen: Observations, cost: str):
        if scene.dim != 3:
            raise BadInput(
                "Points and depth images are of 3D bodies; a 2D body is fitted to NodeMotions or "
                "LevelSets."
            )
        check_observations(seen)
        organised = all(f.organised for f in seen.frames if len(f))
        self.cost_name = ("depth" if organised else "foot") if cost == "auto" else cost
        if self.cost_name not in COSTS:
            raise BadInput(f"cost must be 'auto' or one of {', '.join(COSTS)}, not '{cost}'.")
        if self.cost_name == "depth" and not organised:
            raise BadInput("The depth cost needs the pixel of every point: use cost='foot'.")
        self._body, self._seen = scene.body, seen
        fine = seen_surface(scene.body)
        self._surface, self._share = fine.surface, fine.share
        surface = fine.surface
        self._queries = SurfaceQueries(surface.positions(scene.body.nodes), surface.facets)
        self._slopes = SurfaceSlopes(surface.points)
        self._bumps: SurfaceBumps | None = None
        self.times = [(k, f.time) for k, f in enumerate(seen.frames) if len(f)]
        self.frame_count = len(seen.frames)
        self.noise = seen.noise
        self._organised, self._centre = organised, recorded_centre(seen)

    def corrections(self) -> list[str]:
        """See Measure."""
        if self.cost_name == "pullback":
            return [TIME, POSE]
        if not self._organised:
            return [TIME, POSE, SURFACE]
        count = len(self._seen.cameras)
        own = [f"{CAMERA_POSE}{k}" for k in range(count)] if count > 1 else []
        return [TIME, POSE, SURFACE, *DEPTHS, *own]

    def sight(self, frame: int, calibration: Calibration = NONE) -> Sight:
        """What was seen in a frame, corrected."""
        seen = self._seen
        return Sight.of(seen.frames[frame], seen.cameras, calibration, self._centre)

    def residuals(
        self, frame: int, u: np.ndarray, loss: Loss, calibration: Calibration = NONE
    ) -> Residuals:
        """Residuals of one frame for a displacement (nodes, 3)."""
        return self._residuals(self.sight(frame, calibration), u, loss)

    def _residuals(self, seen: Sight, u: np.ndarray, loss: Loss) -> Residuals:
        if self.cost_name == "pullback":
            r, nodes, slope = pull_back_residuals(self._body, u, seen.points)
            return Residuals(r, nodes, slope, np.ones(len(r), bool), seen.points)
        points = self._surface.points.matrix @ (self._body.nodes + u)
        self._queries.move(points)
        if self.cost_name == "depth":
            near = max(3.0 * loss.sigma, self._body.spacing)
            return depth_residuals(self._queries, seen, near)
        own = self._body.surface
        curvature = mean_curvature(own.positions(self._body.nodes + u), own.facets)
        if self._share is not None:
            curvature = self._share @ curvature
        return foot_residuals(self._queries, seen.points, curvature, self._noise(loss))

    def _noise(self, loss: Loss) -> float:
        """Noise that the foot points' shift is removed for: known, or the residuals' scale.

        Before the first evaluation that scale is a guess of a whole cell; the shift of so much
        noise would drown every residual.
        """
        if self.noise is not None:
            return self.noise
        return loss.sigma if loss.sigma < 0.5 * self._body.spacing else 0.0

    def _surface_slopes(self, res: Residuals) -> np.ndarray:
        if self._bumps is None:  # most fits need none
            self._bumps = SurfaceBumps(self._surface.positions(self._body.nodes))
        return self._bumps.slopes(res)

    def _by_recording(
        self, name: str, frame: Frame, seen: Sight, res: Residuals, calibration: Calibration
    ) -> np.ndarray:
        """Derivative of the residuals by one of the recording's unknowns, (m, numbers)."""
        if name == SURFACE:
            return self._surface_slopes(res)
        g = res.by_place()
        whole = Pose(calibration.pose, self._centre)
        if name == POSE:
            return whole.slopes(g, res.place)
        if name.startswith(CAMERA_POSE):
            camera = int(name.removeprefix(CAMERA_POSE))
            own = frame.camera == camera
            pose = Pose(calibration.camera_poses.get(camera, np.zeros(6)), self._centre)
            out = np.zeros((len(g), 6))
            out[own] = pose.slopes(g[own] @ whole.rotation, whole.back(res.place[own]))
            return out
        along = np.einsum("mi,mi->m", g, seen.ray)
        return (along * frame.depth if name == "depth_scale" else along)[:, None]

    def linear(
        self, frame: int, state: Pair, loss: Loss, calibration: Calibration = NONE
    ) -> LinearMisfit:
        """See Measure."""
        seen = self.sight(frame, calibration)
        res = self._residuals(seen, state[0], loss)
        nodal = self.cost_name == "pullback"
        count = len(self._body.nodes) if nodal else len(self._surface.points)

        def pull(weight: np.ndarray) -> Pair:
            bar = res.pull(weight, count)
            bar = bar if nodal else self._surface.points.spread(bar)
            return bar, np.zeros_like(bar)

        def along(changes: Sequence[Pair]) -> np.ndarray:
            motions = [du for du, _ in changes]
            if nodal:
                return beside([res.along(du) for du in motions], len(res.r))
            return self._slopes.along(res, motions)

        def by_recording(name: str) -> np.ndarray:
            return self._by_recording(name, self._seen.frames[frame], seen, res, calibration)

        r = res.r
        if calibration.surface is not None:
            r = r + self._surface_slopes(res) @ calibration.surface
        found = LinearMisfit(r, res.usable, along, pull, by_recording)
        noise, own = self._seen.noise_by, self._seen.frames[frame]
        return found if noise is None else found.times(noise.weights(own.camera, own.depth))


@dataclass(frozen=True)
class NodeMotions:
    """Displacements and velocities of all nodes over time (seed 000, eq. 5.4.1).

    displacements: (frames, nodes, dim) [m] or None; velocities likewise [m/s]; velocity_scale [s]
    turns velocities into lengths, r = velocity_scale (v - v_observed). noise [m] where known.
    """

    times: np.ndarray
    displacements: np.ndarray | None = None
    velocities: np.ndarray | None = None
    velocity_scale: float = 0.1
    noise: float | None = None

    @classmethod
    def of(cls, run: Trajectory, *, noise: float = 0.0, seed: int = 0) -> "NodeMotions":
        """All frames of a run but the first, blurred by noise [m]."""
        rng = np.random.default_rng(seed)
        u, v = run.displacements[1:], run.velocities[1:]
        scale = cls.velocity_scale
        return cls(
            np.asarray(run.times[1:], float),
            u + noise * rng.standard_normal(u.shape),
            v + noise / scale * rng.standard_normal(v.shape),
            noise=noise or None,
        )


class NodeMeasure(Measure):
    """Known motions of the nodes against the simulated ones."""

    cost_name = "nodes"

    def __init__(self, scene: World, seen: NodeMotions):
        wanted = (len(seen.times), len(scene.body.nodes), scene.dim)
        for name in ("displacements", "velocities"):
            given = getattr(seen, name)
            if given is not None and np.shape(given) != wanted:
                raise BadInput(f"The observed {name} have shape {np.shape(given)}, not {wanted}.")
        if seen.displacements is None and seen.velocities is None:
            raise BadInput("Node motions need displacements, velocities or both.")
        self._seen, self._dim = seen, scene.dim
        self.times = list(enumerate(float(t) for t in seen.times))
        self.frame_count, self.noise = len(seen.times), seen.noise

    def _stack(self, du: np.ndarray, dv: np.ndarray) -> np.ndarray:
        """The observed components of a motion, (m,) [m]."""
        s = self._seen
        parts = []
        if s.displacements is not None:
            parts.append(du[:, : self._dim].reshape(-1))
        if s.velocities is not None:
            parts.append(s.velocity_scale * dv[:, : self._dim].reshape(-1))
        return np.concatenate(parts)

    def linear(
        self, frame: int, state: Pair, loss: Loss, calibration: Calibration = NONE
    ) -> LinearMisfit:
        """See Measure."""
        s, dim, n = self._seen, self._dim, len(state[0])
        u = 0.0 if s.displacements is None else s.displacements[frame]
        v = 0.0 if s.velocities is None else s.velocities[frame]
        r = self._stack(state[0][:, :dim] - u, state[1][:, :dim] - v)

        def pull(weight: np.ndarray) -> Pair:
            bars = (np.zeros((n, 3)), np.zeros((n, 3)))
            if s.displacements is not None:
                bars[0][:, :dim] = weight[: n * dim].reshape(n, dim)
                weight = weight[n * dim :]
            if s.velocities is not None:
                bars[1][:, :dim] = s.velocity_scale * weight.reshape(n, dim)
            return bars

        def along(changes: Sequence[Pair]) -> np.ndarray:
            return beside([self._stack(*change) for change in changes], len(r))

        return LinearMisfit(r, np.ones(len(r), bool), along, pull)


class Measurable(Protocol):
    """Observations that make their own measure (level sets, say, in a module above this one)."""

    def measure(self, scene: World) -> Measure:
        """What a fit compares a scene with."""
        ...


def make_measure(
    scene: World, seen: Observations | NodeMotions | TrackedPoints | Measurable, cost: str
) -> Measure:
    """The measure for what was seen."""
    if isinstance(seen, TrackedPoints):
        from pliant.inverse.measuring.track_cost import TrackMeasure  # a Measure itself

        return TrackMeasure(scene, seen)
    if isinstance(seen, NodeMotions):
        return NodeMeasure(scene, seen)
    if not isinstance(seen, Observations):
        return seen.measure(scene)
    return SurfaceMeasure(scene, seen, cost)
