"""A depth film's first frame laid onto the shape, before anything is fitted.

The surface at the first frame's time, simulated with the start values, attracts the points that
were seen: Gauss-Newton on their distances to it, with a robust loss, over the six numbers of a pose
(iterated closest points, to planes: Chen and Medioni 1992). What the unknowns could do as well (a
start's velocity, say) is left to them: they take part, each known to within one free coordinate.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pliant.dynamics.model import World
from pliant.inverse.measuring.losses import Loss
from pliant.inverse.measuring.measures import LinearMisfit, Pair
from pliant.inverse.motion.evaluation import robust_size
from pliant.inverse.motion.problem import Problem
from pliant.inverse.motion.sensitivity import run_with_tangents
from pliant.inverse.parameters.recording_blocks import CAMERA_POSE, DEPTHS, POSE
from pliant.inverse.parameters.unknowns import UnknownSet
from pliant.observe.calibration import Pose, recorded_centre
from pliant.observe.observations import Observations

log = logging.getLogger(__name__)

FEWEST_POINTS = 50
"""Of a first frame that can be laid onto anything."""

MOVED = 0.5
"""Cells that the body may have moved by the first frame: later ones tell of its material."""

LEAST = 0.02
"""Cells below which a recording without noise counts as in place."""

FITS, NOISY = 0.5, 1.5
"""Share of the distances, or times the noise, that may be left: where a pose leaves more, something
else is off."""

ROUNDS = 15
STILL = 1e-4
"""Cells of the last step at which the pose has settled."""

WEAK = 1e-3
"""Share of the best seen direction below which one is not seen: a ball has no turn. The end faces
of a beam ten times as long as wide are a fortieth of it."""


@dataclass(frozen=True)
class Registration:
    """numbers: (6,) of the pose about the middle of the recording that was applied; before, after:
    robust standard deviations [m] of the first frame's distances.
    """

    numbers: np.ndarray
    before: float = 0.0
    after: float = 0.0

    def apply(self, seen: Observations) -> Observations:
        """The recording, moved."""
        pose = Pose(self.numbers, recorded_centre(seen))
        cameras = [
            replace(
                c,
                position=pose.apply(np.asarray(c.position, float)[None])[0],
                rotation=np.asarray(c.rotation) @ pose.rotation.T,
            )
            for c in seen.cameras
        ]
        frames = [replace(f, points=pose.apply(f.points)) for f in seen.frames]
        return replace(seen, frames=frames, cameras=cameras)

    def told(self) -> str:
        """What was done, in a sentence."""
        shift, turn = 1e3 * self.numbers[:3], np.degrees(np.linalg.norm(self.numbers[3:]))
        by = ", ".join(f"{x:+.2f}" for x in shift)
        return (
            f"The recording was laid onto the shape by its first frame: moved by ({by}) mm and "
            f"turned by {turn:.2f} degrees, which took its distances from {1e3 * self.before:.2g} "
            f"to {1e3 * self.after:.2g} mm. Say register = false (--no-register) to leave it where "
            "it is, or let recording_pose be unknown to have its error bars."
        )


def register(scene: World, seen: Any, unknowns: UnknownSet) -> Registration | None:
    """How a depth film has to be moved so that its first frame lies on the body; None where it
    does, or where that cannot be told.
    """
    if not isinstance(seen, Observations) or scene.dim != 3:
        return None
    if any(n == POSE or n.startswith(CAMERA_POSE) for n in unknowns.of_recording):
        return None
    frame = next((k for k, f in enumerate(seen.frames) if len(f)), None)
    if frame is None or not seen.frames[frame].organised:
        return None
    if len(seen.frames[frame]) < FEWEST_POINTS:
        return None
    problem = Problem(scene, seen, unknowns, cost="foot")
    motion, tangents = _motion(problem, unknowns.start())
    spacing = scene.body.spacing
    if np.abs(motion[0]).max(initial=0.0) > MOVED * spacing:
        log.info("the body has moved by the first frame: the recording is left where it is.")
        return None
    calibration = unknowns.calibration(unknowns.start())
    parts = unknowns.each(unknowns.start())
    depths = [(m, q) for m, q in parts if m.name in DEPTHS]
    pose, extent = np.zeros(6), float(np.ptp(scene.body.nodes, axis=0).max())

    def at(pose: np.ndarray, loss: Loss) -> LinearMisfit:
        return problem.measure.linear(frame, motion, loss, replace(calibration, pose=pose))

    begin = found = at(pose, Loss(spacing))
    for _ in range(ROUNDS):
        loss = Loss(max(seen.noise or 0.0, robust_size(found.r), 1e-6 * spacing), "tukey", 4.0)
        others = [found.by_recording(m.name) * m.chart.slope(q) for m, q in depths]
        step, moved = _step(found, tangents, others, loss, extent)
        pose = pose + step
        found = at(pose, loss)
        if moved < STILL * spacing:
            break
    before, after = robust_size(begin.r), robust_size(found.r)
    off = float(np.sqrt(np.mean((found.by_recording(POSE) @ pose) ** 2)))
    fits = after < FITS * before or after < NOISY * (seen.noise or 0.0)
    if off < max(seen.noise or after, LEAST * spacing) or not fits:
        log.info("first frame: %g m beside the shape, distances %g to %g m", off, before, after)
        return None
    return Registration(pose, before, after)


def _motion(problem: Problem, q: np.ndarray) -> tuple[Pair, list[Pair]]:
    """The motion at the first frame, and its changes with the unknowns that move it."""
    system, calibration = problem.system, problem.unknowns.calibration(q)
    moment = problem.moments_until(None, calibration)[0][0]
    directions = problem.unknowns.directions(system, q)
    moving = [d for d, m in zip(directions, problem.unknowns.moves, strict=True) if m]
    states: dict[int, list[Pair]] = {}

    def on_frame(step: int, state: Any, tangents: list[Any]) -> None:
        if step >= moment.step:
            carrier = system.carrier
            states[step] = [carrier.apply(state), *(carrier.jvp(state, t) for t in tangents)]

    run_with_tangents(system, moment.last, moving, on_frame)
    ends = zip(states[moment.step], states[moment.last], strict=True)
    mixed = [moment.mix(a, b) for a, b in ends]
    return mixed[0], mixed[1:]


def _step(
    found: LinearMisfit,
    tangents: Sequence[Pair],
    others: Sequence[np.ndarray],
    loss: Loss,
    extent: float,
) -> tuple[np.ndarray, float]:
    """A change of the pose (6,), shift and turn, and how far [m] it moves the points."""
    weight, A = found.weight(loss), found.by_recording(POSE)
    J = found.along(list(tangents)) if tangents else np.zeros((len(A), 0))
    J = np.concatenate([J, *others], axis=1)
    H = J.T @ (weight[:, None] * J) + np.eye(J.shape[1])
    B, g = J.T @ (weight[:, None] * A), J.T @ (weight * found.r)
    S = A.T @ (weight[:, None] * A) - B.T @ np.linalg.solve(H, B)
    s = A.T @ (weight * found.r) - B.T @ np.linalg.solve(H, g)
    # turns count by what they move at the body's size; what is hardly seen stays as it is
    scale = np.r_[np.ones(3), np.full(3, 1.0 / extent)]
    values, vectors = np.linalg.eigh(S * np.outer(scale, scale))
    most = np.linalg.eigvalsh(A.T @ (weight[:, None] * A) * np.outer(scale, scale)).max()
    seen = values > WEAK * max(most, 1e-300)
    own = vectors[:, seen]
    step = -scale * (own @ ((own.T @ (scale * s)) / values[seen]))
    return step, float(np.sqrt(np.mean((A @ step) ** 2)))
