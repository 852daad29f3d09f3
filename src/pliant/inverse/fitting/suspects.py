"""What was held for known and would explain what a fit leaves: clock, poses, clamps, masses.

At the end of a fit the residuals are linear in whatever was not an unknown, with columns A beside
the tangents J of the unknowns. With weights W and H = J^T W J, letting it loose alone would take

    s^T S^-1 s,   S = A^T W A - B^T H^-1 B,   s = A^T W r - B^T H^-1 g,   B = J^T W A,

off the sum of squares, in units of the noise: k of it by chance for k numbers. The recording's own
unknowns cost one run without tangents; a clamp's place two for each axis, an attached mass two, so
that these are tried only where the residuals are no noise.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pliant.core.errors import BadInput, SolverFailure
from pliant.dynamics.loads import AXES, place_name
from pliant.dynamics.model import World
from pliant.inverse.fitting.attached_suspects import MassTrial, mass_trials
from pliant.inverse.fitting.identifiability import PATTERN, WILD, shared_by_neighbours
from pliant.inverse.measuring.measures import FrameMisfit
from pliant.inverse.motion.evaluation import Evaluation
from pliant.inverse.motion.problem import Problem
from pliant.inverse.parameters.recording_blocks import (
    CAMERA_POSE,
    PLACES,
    POSE,
    SURFACE,
    TIME,
    recording_block,
)
from pliant.inverse.parameters.unknowns import UnknownSet, make_unknown

log = logging.getLogger(__name__)

SURE = 30.0
"""Fall of the sum of squares, in units of the noise and per number, that no chance explains."""

WORTH = 0.03
"""Share of all squares that must go: less is also what a grid or a time step leaves."""

LEAST_TIME, LEAST_LENGTH = 0.05, 0.01
"""Time steps by which a clock must be off, cells by which a place must be: errors of the step and
of the grid look like less."""

RIVAL = 0.9
"""Share of the best one's fall from which another explains the same."""

FLEXIBLE = 2.0
"""Times the best other's merit that a surface which is off must have: it bends to explain a share
of whatever else is wrong."""

SHIFT = 0.25
"""Cells by which a clamp is moved each way for the difference of two runs."""

MOST_CLAMPS = 2
"""Held regions whose place is tried."""


@dataclass(frozen=True)
class Suspect:
    """fall: of the sum of squares, share: of all squares; values, sigma: (k,) it would have;
    change: of the free coordinates of the unknowns.
    """

    name: str
    fall: float
    share: float
    values: np.ndarray
    sigma: np.ndarray
    change: np.ndarray
    mass: MassTrial | None = None

    @property
    def merit(self) -> float:
        """The fall beyond what each number may take by chance."""
        return self.fall - SURE * len(self.values)

    def matters(self, scene: World) -> bool:
        """Whether it is larger than what time step and grid could be mistaken for."""
        if self.mass is not None:
            return self.mass.matters(float(self.values[0]), scene)
        if self.name == TIME:
            return bool(abs(self.values[0]) > LEAST_TIME * scene.dt)
        off = np.abs(self.values)
        if self.name == "depth_scale":
            off = np.abs(self.values - 1.0)
        if self.name in ("depth_scale", POSE) or self.name.startswith(CAMERA_POSE):
            off = off * np.r_[np.ones(3), np.full(3, _extent(scene))][-len(off) :]
        return bool(off.max() > LEAST_LENGTH * scene.body.spacing)


def suspects(problem: Problem, q: np.ndarray, e: Evaluation, noise: float) -> list[Suspect]:
    """Those that would explain more than noise, grid and time step do, the best first."""
    if not (noise > 0.0 and e.rms > 1e-6 * problem.scene.body.spacing and e.has_tangents):
        return []
    found = []
    try:
        moved, at, columns = _recording_columns(problem, q, e)
        for name, own in columns.items():
            found.append(_judged(name, e, moved, own, *at[name]))
        found = [s for s in found if s is not None]
        found, surface = _parted(found)
        best = max((s.merit for s in found), default=0.0)
        if _unexplained(e, noise) and best < RIVAL * _all_squares(e):
            found += [s for s in _clamps(problem, q, e, moved) if s is not None]
            found += _masses(problem, q, e, moved)
    except SolverFailure as failure:
        log.info("nothing is suspected: %s", failure)
        return []
    scene = problem.scene
    best = max((s.merit for s in found), default=0.0)
    found += [s for s in surface if s.merit > FLEXIBLE * best]
    found = [s for s in found if s.merit > 0.0 and s.share > WORTH and s.matters(scene)]
    return sorted(found, key=lambda s: -s.merit)


def _parted(found: Sequence[Suspect]) -> tuple[list[Suspect], list[Suspect]]:
    """Without the surface, and the surface alone."""
    return [s for s in found if s.name != SURFACE], [s for s in found if s.name == SURFACE]


def advise_on_recording(problem: Problem, q: np.ndarray, e: Evaluation, noise: float) -> list[str]:
    """A sentence on what would explain what is left, and on its rivals."""
    found = suspects(problem, q, e, noise)
    return [
        _sentence(problem, q, s, first=k == 0)
        for k, s in enumerate(found)
        if s.merit > RIVAL * found[0].merit
    ][:3]


def _extent(scene: World) -> float:
    return float(np.ptp(scene.body.nodes, axis=0).max())


def _unexplained(e: Evaluation, noise: float) -> bool:
    return e.rms > 1.2 * noise or shared_by_neighbours(e, WILD * noise) > PATTERN


def _all_squares(e: Evaluation) -> float:
    return sum(float(e.loss(f.r)[1][f.usable] @ f.r[f.usable] ** 2) for f in e.frames.values())


def _recording_columns(
    problem: Problem, q: np.ndarray, e: Evaluation
) -> tuple[Evaluation, dict[str, Any], dict[str, Mapping[int, np.ndarray]]]:
    """The misfit at q anew; by name, start and scale, and columns by frame, of what is held."""
    on = problem.unknowns.of_recording
    names = [n for n in problem.measure.corrections() if n not in on and n != PLACES]
    scene = problem.unknowns.apply(problem.scene, q)
    held = [make_unknown(n, _neutral(n), scene) for n in names]
    every = UnknownSet((*held, *problem.unknowns.recording_members(q)))
    other = Problem(scene, problem.seen, every, cost=problem.asked_cost)
    moved = other.evaluate(every.start(), e.loss)
    at, columns = {}, {}
    first = 0
    for m in held:
        own = slice(first, first + m.size)
        columns[m.name] = {k: f.J[:, own] for k, f in moved.frames.items()}
        at[m.name] = (m.start, m.chart.slope(np.zeros(m.size)))
        first += m.size
    return moved, at, columns


def _neutral(name: str) -> Any:
    block = recording_block(name)
    assert block is not None
    return block.get(None)


def _judged(
    name: str,
    e: Evaluation,
    moved: Evaluation,
    columns: Mapping[int, np.ndarray],
    start: np.ndarray,
    scale: np.ndarray,
) -> Suspect | None:
    """What letting go of it would do; None where nothing depends on it."""
    p = len(e.q)
    k = len(start)
    B, C, c, g = np.zeros((p, k)), np.zeros((k, k)), np.zeros(k), np.zeros(p)
    total = 0.0
    for frame, f in e.frames.items():
        other = moved.frames[frame]
        use = f.usable & other.usable
        r, J, A = other.r[use], f.J[use], columns[frame][use]
        weight = e.loss(r)[1]
        B += J.T @ (weight[:, None] * A)
        C += A.T @ (weight[:, None] * A)
        c += A.T @ (weight * r)
        g += J.T @ (weight * r)
        total += float(weight @ r**2)
    if e.prior is not None:
        g = g + e.prior[1]
    H = e.model[2]
    seen = np.diag(C) > 1e-12 * max(np.diag(C).max(), 1e-300)
    if not seen.any() or not total > 0.0:
        return None
    inverse = np.linalg.pinv(H, hermitian=True)
    S = (C - B.T @ inverse @ B)[np.ix_(seen, seen)]
    s = (c - B.T @ inverse @ g)[seen]
    size = np.sqrt(np.maximum(np.diag(C)[seen], 1e-300))
    # what the unknowns do as well is no news: directions in which S has lost all digits are left
    covariance = np.linalg.pinv(S / np.outer(size, size), rcond=1e-8, hermitian=True)
    covariance = covariance / np.outer(size, size)
    step = -covariance @ s
    values, sigma = np.array(start, float), np.full(k, np.inf)
    values[seen] += scale[seen] * step
    sigma[seen] = scale[seen] * np.sqrt(np.maximum(np.diag(covariance), 0.0))
    whole = np.zeros(k)
    whole[seen] = step
    fall = float(-s @ step)
    change = -inverse @ (g + B @ whole)
    return Suspect(name, fall, fall / total, values, sigma, change)


def _clamps(
    problem: Problem, q: np.ndarray, e: Evaluation, moved: Evaluation
) -> list[Suspect | None]:
    """Held regions, moved along each axis."""
    h = SHIFT * problem.scene.body.spacing
    out: list[Suspect | None] = []
    for number, fixed in enumerate(list(problem.scene.fixed)[:MOST_CLAMPS]):
        if not hasattr(fixed, "place"):
            continue
        columns = []
        held = [place_name(number, a) not in problem.unknowns.labels for a in AXES]
        for axis in range(problem.scene.dim):
            offset = np.zeros(problem.scene.dim)
            offset[axis] = h
            try:
                ends = []
                if held[axis] and _ends_there(problem.scene.body, fixed.place, offset):
                    ends = [
                        _displaced(problem, q, e, number, side * offset) for side in (1.0, -1.0)
                    ]
            except (BadInput, SolverFailure) as error:
                log.info("clamp %d cannot be moved along %s: %s", number, "xyz"[axis], error)
                ends = []
            columns.append(_difference(ends, moved, 2.0 * h))
        stacked = {k: np.stack([c[k] for c in columns], axis=1) for k in moved.frames}
        zero, one = np.zeros(problem.scene.dim), np.ones(problem.scene.dim)
        out.append(_judged(f"fixed[{number}]", e, moved, stacked, zero, one))
    return out


def _masses(problem: Problem, q: np.ndarray, e: Evaluation, moved: Evaluation) -> list[Suspect]:
    """What is attached, or might be."""
    out = []
    for trial in mass_trials(problem.scene, problem.seen):
        scene: Any = problem.scene
        try:
            ends = [_misfit(problem, replace(scene, attached=a), q, e) for a in trial.ends]
        except (BadInput, SolverFailure) as error:
            log.info("the mass %s cannot be tried: %s", trial.name, error)
            continue
        change = _difference(ends, moved, trial.width)
        columns = {k: c[:, None] for k, c in change.items()}
        found = _judged(trial.name, e, moved, columns, np.array([trial.start]), np.ones(1))
        if found is not None:
            out.append(replace(found, mass=trial))
    return out


def _ends_there(body: Any, region: Any, offset: np.ndarray) -> bool:
    """Whether the region's boundary on the body moves with it."""
    points = body.surface.positions(body.nodes)
    distance = region.distance(points)
    near = np.abs(distance) < body.spacing
    change = region.translated(offset).distance(points[near]) - distance[near]
    return bool((np.abs(change) > 0.1 * np.linalg.norm(offset)).any())


def _displaced(problem: Problem, q, e: Evaluation, number: int, offset) -> dict[int, FrameMisfit]:
    scene: Any = problem.scene
    regions = list(scene.fixed)
    own = regions[number]
    # the shift is the unknowns' own, which are put in after this
    regions[number] = replace(own, region=own.region.translated(offset))
    return _misfit(problem, replace(scene, fixed=regions), q, e)


def _misfit(problem: Problem, scene: Any, q, e: Evaluation) -> dict[int, FrameMisfit]:
    """Of another scene at the same values of the unknowns."""
    other = Problem(scene, problem.seen, problem.unknowns, cost=problem.asked_cost)
    return other.evaluate(q, e.loss, derivatives=False).frames


def _difference(
    ends: Sequence[dict[int, FrameMisfit]], moved: Evaluation, width: float
) -> dict[int, np.ndarray]:
    """Derivative of the residuals; zero where it cannot be told."""
    if not ends:
        return {k: np.zeros(len(f.r)) for k, f in moved.frames.items()}
    up, down = ends
    return {
        k: np.where(up[k].usable & down[k].usable, up[k].r - down[k].r, 0.0) / width
        for k in moved.frames
    }


# --- in words


def _sentence(problem: Problem, q: np.ndarray, s: Suspect, *, first: bool) -> str:
    unknowns = problem.unknowns
    before, after = unknowns.values(q), unknowns.values(q + np.clip(s.change, -2.0, 2.0))
    moving = np.flatnonzero(unknowns.moves)
    lead = ""
    if len(moving):
        i = int(moving[0])
        lead = f" {unknowns.labels[i]} would go from {before[i]:.4g} to {after[i]:.4g}."
    if not first:
        return f"So would {_told(s)} ({100 * s.share:.0f} %).{lead}"
    what = _told(s)
    way = f"Let it be unknown (--unknown {s.name})."
    if s.name == SURFACE:
        way = f"Let it be unknown (--unknown {s.name}), or scan it again."
    if s.name.startswith("fixed["):
        way = f"Look where it really holds, and move its region{_as_unknown(problem, s)}."
    if s.mass is not None:
        way = s.mass.way
    return (
        f"{what[0].upper()}{what[1:]} would alone take {100 * s.share:.0f} % off the squares of "
        f"the residuals.{lead} {way}"
    )


def _as_unknown(problem: Problem, s: Suspect) -> str:
    """How to let a clamp's place be found, along the axis on which it is farthest off."""
    axis = AXES[int(np.argmax(np.abs(s.values)))]
    name = place_name(int(s.name[len("fixed[") : -1]), axis)
    try:
        make_unknown(name, 0.0, problem.scene)
    except BadInput:  # a mesh holds whole nodes
        return ""
    return f", or let its place be unknown (--unknown {name})"


def _told(s: Suspect) -> str:
    v, sigma = s.values, s.sigma
    if s.mass is not None:
        return s.mass.told(float(v[0]), float(sigma[0]))
    if s.name == TIME:
        return f"a clock {1e3 * v[0]:+.3g} +- {1e3 * sigma[0]:.2g} ms off (time_offset)"
    if s.name == POSE or s.name.startswith(CAMERA_POSE):
        whose = "a recording" if s.name == POSE else f"camera {s.name.removeprefix(CAMERA_POSE)}"
        shift, turn = 1e3 * np.linalg.norm(v[:3]), np.degrees(np.linalg.norm(v[3:]))
        return f"{whose} shifted by {shift:.3g} mm and turned by {turn:.2g} degrees ({s.name})"
    if s.name == "depth_scale":
        return f"depths to be multiplied by {v[0]:.5g} +- {sigma[0]:.2g} (depth_scale)"
    if s.name == "depth_offset":
        return f"depths {1e3 * v[0]:+.3g} +- {1e3 * sigma[0]:.2g} mm off (depth_offset)"
    if s.name == SURFACE:
        size = 1e3 * np.sqrt(np.mean(v[np.isfinite(sigma)] ** 2))
        return f"a shape whose surface is off by {size:.2g} mm here and there (surface_offset)"
    by = ", ".join(f"{1e3 * x:+.2g}" for x in v)
    return f"a clamp, {s.name}, that sits ({by}) mm beside its region"
