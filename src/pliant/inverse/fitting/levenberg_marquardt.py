"""Levenberg-Marquardt on batched tangents: the optimiser for few unknowns.

Each iteration simulates once, with the derivative along every unknown, and solves
(H + mu diag H) dq = -g with the Gauss-Newton Hessian H over the unknowns that no bound holds.
"""

import logging

import numpy as np

from pliant.core.errors import SolverFailure
from pliant.inverse.fitting.fit_log import Minimum, Optimiser, rescaled
from pliant.inverse.motion.evaluation import Evaluation

log = logging.getLogger(__name__)

STEP_TOLERANCE = 0.2
"""A step predicted to be shorter than this share of its standard deviation is taken without another
simulation and ends the fit: what it leaves is of second order, some hundredths of a deviation."""

ROUGH_TOLERANCE = 3.0
"""The same for a shortened horizon, whose result is only the next one's start."""

ROUGH_STEP = 0.02
"""Step in free coordinates that is short enough there, whatever its standard deviation."""

STUCK_LENGTH, STUCK_STEP = 3.0, 1e-3
"""Undamped step, in standard deviations or in free coordinates, up to which a fit that finds no way
down counts as ended: pixels that come and go make the cost that rough."""

SHRINKING = 0.7
"""Share of its forerunner that a second step uphill may have: Newton's steps shrink faster."""


class LevenbergMarquardt(Optimiser):
    """See the module; `damping` carries over from one horizon to the next."""

    damping = 1e-3

    def run(
        self, q: np.ndarray, horizon: int, final: bool, current: Evaluation | None = None
    ) -> Minimum:
        """See Optimiser."""
        p = self.problem
        if current is None:
            current = p.evaluate(q, self.loss(), horizon=horizon)
        enough = STEP_TOLERANCE if final else ROUGH_TOLERANCE
        self._uphill = np.inf  # length of the last step taken although the cost rose
        while True:
            current = p.reweighed(current)
            loss = self.loss(current)
            current = rescaled(p, current, loss, horizon)
            self.log.add(p, current, horizon)
            dq, length = self._proposal(current)
            if np.abs(dq).max(initial=0.0) < 1e-9:
                return Minimum(current.q, current, True)
            rough = not final and np.abs(dq).max(initial=0.0) < ROUGH_STEP
            if (length < enough or rough) and current.spread <= 1.2 * loss.sigma:
                if final:
                    current = current.predicted(dq)
                    self.log.iterations += 1
                    self.log.add(p, current, horizon)
                return Minimum(current.q, current, True)
            if self.log.iterations >= self.max_iterations:
                return Minimum(current.q, current, False)
            trial = self._step(current, horizon)
            if trial is None:  # stuck: at a minimum if the undamped step is next to none
                self.damping = 0.0
                dq, length = self._proposal(current)
                still = length < STUCK_LENGTH or np.abs(dq).max(initial=0.0) < STUCK_STEP
                return Minimum(current.q, current, bool(still))
            current = trial

    def _proposal(self, e: Evaluation) -> tuple[np.ndarray, float]:
        """The damped step that keeps to the bounds, and its length in standard deviations."""
        _, g, H = e.model
        free = np.flatnonzero(~self.problem.unknowns.held(e.q, g))
        dq = np.zeros(len(e.q))
        if len(free):
            Hf = H[np.ix_(free, free)]
            scaling = np.maximum(np.diag(Hf), 1e-12 * max(np.diag(Hf).max(), 1e-300))
            dq[free] = -np.linalg.solve(Hf + self.damping * np.diag(scaling), g[free])
        dq = np.clip(dq, -1.0, 1.0)  # one e-fold a step is as far as a linearisation reaches
        dq = self.problem.unknowns.within(e.q + dq) - e.q
        return dq, float(np.sqrt(max(dq @ H @ dq, 0.0)))

    def _step(self, e: Evaluation, horizon: int) -> Evaluation | None:
        """The evaluation after one accepted step, or None if no step goes down."""
        for _ in range(8):
            dq, length = self._proposal(e)
            if np.abs(dq).max(initial=0.0) < 1e-9:
                return None
            try:
                trial = self.problem.evaluate(e.q + dq, e.loss, horizon=horizon)
            except SolverFailure as failure:
                log.info("step refused: %s", failure)
                self.damping = max(self.damping, 1e-2) * 10.0
                continue
            self.log.iterations += 1
            down = trial.rise_from(e) <= 1e-12 * e.cost
            # within a standard deviation the model beats a cost with pixels coming and going, but
            # steps that do not become shorter lead away
            if down or length < min(1.0, SHRINKING * self._uphill):
                self._uphill = np.inf if down else length
                self.damping = max(self.damping / 10.0, 1e-9)
                return trial
            self.damping = max(self.damping, 1e-4) * 10.0
        return None
