"""The whole simulation and its observation, linear around one value of the unknowns.

With J the derivative of all residuals by q and W the weights of the loss, products with the
Gauss-Newton Hessian

    H dq = J^T W J dq

cost a tangent run and an adjoint run each, however many unknowns there are. J is never formed.
"""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from pliant.dynamics.system import State
from pliant.inverse.evaluation import Evaluation
from pliant.inverse.losses import Loss
from pliant.inverse.measures import FrameMisfit, LinearMisfit, Pair
from pliant.inverse.problem import Moment, Problem, pair_of
from pliant.inverse.sensitivity import run, run_tangent


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
        steps = problem.last_step if horizon is None else min(horizon, problem.last_step)
        self._scene = problem.unknowns.apply(problem.scene, q)
        problem.system.update(self._scene)
        self._states = run(problem.system, steps) if states is None else states
        self._moments = [m for m in problem.moments if m.last <= steps]
        self._linear: dict[int, LinearMisfit] = {}
        self._weight: dict[int, np.ndarray] = {}
        frames: dict[int, FrameMisfit] = {}
        for m in self._moments:
            motion = pair_of(self._states[m.step])
            if m.share:
                motion = m.mix(motion, pair_of(self._states[m.step + 1]))
            found = problem.measure.linear(m.frame, motion, loss)
            self._linear[m.frame] = found
            self._weight[m.frame] = found.weight(loss)
            frames[m.frame] = FrameMisfit(found.r, np.zeros((len(found.r), 0)), found.usable)
        self.evaluation: Evaluation = problem.evaluation(q, loss, frames)

    def under(self, loss: Loss) -> "Linearised":
        """The same run judged by another loss."""
        return Linearised(
            self._problem, self.evaluation.q, loss, horizon=len(self._states) - 1,
            tolerance=self._tolerance, states=self._states,
        )  # fmt: skip

    @cached_property
    def gradient(self) -> np.ndarray:
        """(p,) of the cost, priors and penalty included."""
        g = self._pulled({k: f.r for k, f in self._linear.items()})
        return g if self.evaluation.prior is None else g + self.evaluation.prior[1]

    def product(self, dq: np.ndarray) -> np.ndarray:
        """J^T W J dq, (p,): of the data alone."""
        return self._pulled(self.along(dq))

    def along(self, dq: np.ndarray) -> dict[int, np.ndarray]:
        """J dq by frame."""
        p = self._problem
        q = self.evaluation.q
        self._return()
        direction = p.unknowns.along(p.system, q, dq)
        out: dict[int, np.ndarray] = {}
        before: Pair | None = None

        def on_frame(step: int, tangent: State) -> None:
            nonlocal before
            now = pair_of(tangent)
            for m in self._moments:
                if m.last == step:
                    mixed = m.mix(before, now) if m.share and before is not None else now
                    out[m.frame] = self._linear[m.frame].along([mixed])[:, 0]
            before = now

        run_tangent(p.system, self._states, direction, on_frame, tolerance=self._tolerance)
        return out

    def _pulled(self, change: dict[int, np.ndarray]) -> np.ndarray:
        """J^T W applied to residuals by frame."""
        p = self._problem

        def dual_of(m: Moment, _: Pair) -> Pair:
            return self._linear[m.frame].pull(self._weight[m.frame] * change[m.frame])

        self._return()
        dual = p.walk_back(self._states, dual_of)
        return p.unknowns.pull(p.system, self.evaluation.q, dual)

    def _return(self) -> None:
        """The system back to q, where a trial has moved it."""
        if self._problem.system.scene is not self._scene:
            self._problem.system.update(self._scene)
