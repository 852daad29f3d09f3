"""What the pictures of a fit show: the motions at its start and at its end, and their residuals."""

from typing import Any

import numpy as np

from pliant.app.fitted.fits import FitRun
from pliant.app.terminal.progress import progress
from pliant.core.vectors import in_space
from pliant.dynamics.scene import Scene
from pliant.dynamics.simulate import simulate
from pliant.dynamics.trajectory import Trajectory
from pliant.inverse.measuring.losses import Loss
from pliant.inverse.measuring.measures import SurfaceMeasure
from pliant.inverse.measuring.track_cost import TrackMeasure
from pliant.inverse.motion.problem import Problem
from pliant.inverse.parameters.unknowns import UnknownSet, make_unknown
from pliant.observe.calibration import Calibration, Sight

MOMENTS = 4
"""Times at which the motion is shown."""


class Evidence:
    """The motions at the start and at the fit, and the residuals of both."""

    def __init__(self, run: FitRun):
        self.run = run
        starts = {n: run.starts[n] for n in run.starts}
        members = tuple(make_unknown(n, v, run.scene) for n, v in starts.items())
        unknowns = UnknownSet(members)
        self._problem = Problem(run.scene, run.seen, unknowns, cost=run.cost)
        self.cost = self._problem.cost_name
        self.sigma = max(run.fit.noise, 1e-6 * run.scene.body.spacing)
        self._loss = Loss(self.sigma)
        values = (run.starts, run.values)
        q = [np.concatenate([m.chart.coordinates(np.atleast_1d(v[m.name])) for m in members])
             for v in values]  # fmt: skip
        self._corrected = [unknowns.calibration(p) for p in q]
        steps = max(self._problem.moments_until(None, c)[1] for c in self._corrected)
        with progress("simulating for the report", 2 * steps) as shown:
            self.start = _motion(run.scene_at(run.starts), steps, shown, 0)
            self.fitted = _motion(run.scene_at(run.values), steps, shown, steps)
        self.frames = [k for k, _ in self._problem.measure.times]

    def correction(self, motion: Trajectory) -> Calibration:
        """Of the recording, as the start or the fit has it."""
        return self._corrected[int(motion is self.fitted)]

    def displacement(self, motion: Trajectory, frame: int) -> np.ndarray:
        """Displacement (nodes, dim) at a frame's time, between the steps if need be."""
        moments, _ = self._problem.moments_until(None, self.correction(motion))
        m = next(m for m in moments if m.frame == frame)
        ends = [(motion.displacements[k], motion.velocities[k]) for k in (m.step, m.last)]
        return m.mix(ends[0], ends[1])[0]

    def sight(self, motion: Trajectory, frame: int) -> Sight:
        """What was seen in a frame of a film, corrected."""
        assert isinstance(self._problem.measure, SurfaceMeasure)
        return self._problem.measure.sight(frame, self.correction(motion))

    def nodes(self, motion: Trajectory, frame: int) -> np.ndarray:
        """Node positions at a frame's time."""
        return self.run.scene.body.nodes + self.displacement(motion, frame)

    def residuals(self, motion: Trajectory, frame: int) -> np.ndarray:
        """(p,) [m], NaN for points that did not count."""
        assert isinstance(self._problem.measure, SurfaceMeasure)
        res = self._problem.measure.residuals(
            frame, self.displacement(motion, frame), self._loss, self.correction(motion)
        )
        return np.where(res.usable, res.r, np.nan)

    def tracks(self, motion: Trajectory) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Times (frames,) by the scene's clock; tracked and simulated points, (frames, points, 3)
        each.
        """
        measure, correction = self._problem.measure, self.correction(motion)
        assert isinstance(measure, TrackMeasure)
        moved = []
        for k in self.frames:
            u = in_space(self.displacement(motion, k))
            moved.append(measure.positions(u, correction))
        times = np.array([t for _, t in measure.times]) + correction.time_offset
        seen = np.stack([measure.tracked(k, correction) for k in self.frames])
        return times, seen, np.stack(moved)

    def moments(self) -> list[int]:
        """Frames spread over the recording."""
        count = min(MOMENTS, len(self.frames))
        at = (
            np.linspace(0, len(self.frames) - 1, count + 1)[1:]
            if count < len(self.frames)
            else (np.arange(count))
        )
        return [self.frames[round(float(i))] for i in at]


def _motion(scene: Scene, steps: int, shown: Any, done: int) -> Trajectory:
    return simulate(scene, steps, progress=lambda step: shown.reach(done + step))
