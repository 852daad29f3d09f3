"""The whole simulation and its observation, linear around one value of the unknowns.

With J the derivative of all residuals by q and W the weights of the loss, products with the
Gauss-Newton Hessian

    H dq = J^T W J dq

cost a tangent run and an adjoint run each, however many unknowns there are. J is never formed.
"""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from pliant.dynamics.model import State
from pliant.inverse.measuring.losses import Loss
from pliant.inverse.measuring.measures import FrameMisfit, LinearMisfit, Pair
from pliant.inverse.motion.evaluation import Evaluation
from pliant.inverse.motion.memory import remembered
from pliant.inverse.motion.moment import Moment
from pliant.inverse.motion.problem import Problem
from pliant.inverse.motion.sensitivity import run, run_tangent
from pliant.inverse.parameters.recording_blocks import moving_part, recording_part


class Linearised:
    """Misfit, gradient and Gauss-Newton products at q over the frames up to `horizon`.

    evaluation: the misfit there. The states of the run are held in memory.
    """

    def __init__(
        self,
        problem: Problem,
        q: np.ndarray,
        loss: Loss,
        *,
        horizon: int | None = None,
        tolerance: float | None = None,
        states: Sequence[State] | None = None,
    ):
        self._problem, self._tolerance = problem, tolerance
        self._horizon = horizon
        calibration = problem.unknowns.calibration(q)
        self._moments, steps = problem.moments_until(horizon, calibration)
        self._scene = problem.unknowns.apply(problem.scene, q)
        problem.system.update(self._scene)
        self._states = run(problem.system, steps) if states is None else states
        self._linear: dict[int, LinearMisfit] = {}
        self._weight: dict[int, np.ndarray] = {}
        self._by: dict[int, dict[str, np.ndarray]] = {}
        frames: dict[int, FrameMisfit] = {}
        for m in self._moments:
            carrier = problem.system.carrier
            ends = carrier.apply(self._states[m.step]), carrier.apply(self._states[m.last])
            found = problem.measure.linear(m.frame, m.mix(*ends), loss, calibration)
            self._by[m.frame] = problem.by_recording(found, m, ends)
            self._linear[m.frame] = found
            self._weight[m.frame] = found.weight(loss)
            frames[m.frame] = found.alone()
        self.evaluation: Evaluation = problem.evaluation(q, loss, frames)

    def under(self, loss: Loss) -> "Linearised":
        """The same run judged by another loss."""
        return Linearised(
            self._problem, self.evaluation.q, loss, horizon=self._horizon,
            tolerance=self._tolerance, states=self._states,
        )  # fmt: skip

    @cached_property
    def gradient(self) -> np.ndarray:
        """(p,) of the cost, priors and penalty included."""
        p, e = self._problem, self.evaluation
        what = p.asked("slope", e.q, e.loss, self._horizon)
        residuals = {k: f.r for k, f in self._linear.items()}
        g = remembered(p.memory, what, lambda: {"g": self._pulled(residuals)})["g"]
        return g if self.evaluation.prior is None else g + self.evaluation.prior[1]

    def product(self, dq: np.ndarray) -> np.ndarray:
        """J^T W J dq, (p,): of the data alone."""
        p, e = self._problem, self.evaluation
        what = p.asked("product", e.q, e.loss, self._horizon, dq)
        answer = remembered(p.memory, what, lambda: {"Hd": self._pulled(self.along(dq))})
        return answer["Hd"]

    def along(self, dq: np.ndarray) -> dict[int, np.ndarray]:
        """J dq by frame."""
        p = self._problem
        q = self.evaluation.q
        self._return()
        direction = p.unknowns.along(p.system, q, dq)
        recorded = recording_part(direction)
        out: dict[int, np.ndarray] = {}
        before: Pair | None = None

        def on_frame(step: int, tangent: State) -> None:
            nonlocal before
            now = p.system.carrier.jvp(self._states[step], tangent)
            for m in self._moments:
                if m.last == step:
                    mixed = m.mix(before if m.between and before is not None else now, now)
                    out[m.frame] = self._linear[m.frame].along([mixed])[:, 0]
                    for name, change in recorded.items():
                        out[m.frame] = out[m.frame] + self._by[m.frame][name] @ change
            before = now

        moving = moving_part(direction)
        run_tangent(p.system, self._states, moving, on_frame, tolerance=self._tolerance)
        return out

    def _pulled(self, change: dict[int, np.ndarray]) -> np.ndarray:
        """J^T W applied to residuals by frame."""
        p = self._problem

        def dual_of(m: Moment, _: Pair) -> tuple[LinearMisfit, np.ndarray]:
            return self._linear[m.frame], self._weight[m.frame] * change[m.frame]

        self._return()
        dual = p.walk_back(self._states, self._moments, dual_of)
        return p.unknowns.pull(p.system, self.evaluation.q, dual)

    def _return(self) -> None:
        """The system back to q, where a trial has moved it."""
        if self._problem.system.scene is not self._scene:
            self._problem.system.update(self._scene)
