"""Optimisers that need the adjoint gradient only: L-BFGS-B, and Barzilai-Borwein descent.

One forward and one backward run per evaluation, however many unknowns there are: the way to fit a
stiffness for every cell. Both move x = q * scale, scale from the Gauss-Newton Hessian's diagonal
where it is affordable, so that a unit of x is about a standard deviation.
"""

import logging

import numpy as np
from scipy.optimize import minimize

from pliant.core.errors import SolverFailure
from pliant.inverse.fitting.fit_log import Minimum, Optimiser
from pliant.inverse.measuring.losses import Loss
from pliant.inverse.motion.evaluation import Evaluation

log = logging.getLogger(__name__)

FEW = 32
"""Unknowns up to which their tangents are computed once, for the scaling and the error bars."""

COST_TOLERANCE = 5e-3
"""Fall of the cost (half of chi square) that ends a fit: a tenth of a standard deviation."""

ROUNDS = 3
"""Times the robust scale is set anew from the residuals."""

PATIENCE = 2
"""Falls below the tolerance in a row that end a fit; Barzilai-Borwein steps are not monotone."""

MEMORY = 5
"""Costs that a Barzilai-Borwein step is compared with: it must fall below the worst of them."""


class GradientMethod(Optimiser):
    """Common to both: scaled variables, costs comparable over changing sets of pixels, logging."""

    _scale: np.ndarray | None = None
    _count = 0

    def run(
        self, q: np.ndarray, horizon: int, final: bool, current: Evaluation | None = None
    ) -> Minimum:
        """See Optimiser."""
        p, few = self.problem, len(q) <= FEW
        if current is None and few:
            current = p.evaluate(q, self.loss(), horizon=horizon)
        elif current is None:
            current = p.gradient(q, self.loss(), horizon=horizon)[0]
        converged = False
        for _ in range(ROUNDS):
            current = p.reweighed(current)
            loss = self.loss(current)
            current = current.under(loss)
            self.log.add(p, current, horizon)
            if few and current.has_tangents:
                diagonal = np.diag(current.model[2])
                self._scale = np.sqrt(np.maximum(diagonal, 1e-6 * diagonal.max()))
            elif self._scale is None:
                self._scale = np.ones(len(q))
            self._count = max(len(current.usable), 1)
            before = loss.sigma
            current, converged = self.descend(current, loss, horizon)
            scale = self.loss(current).sigma
            if abs(scale - before) < 0.2 * before or self.log.iterations >= self.max_iterations:
                break
        if few and final and not current.has_tangents:
            current = p.evaluate(current.q, current.loss, horizon=horizon)
        return Minimum(current.q, current, converged)

    def descend(self, e: Evaluation, loss: Loss, horizon: int) -> tuple[Evaluation, bool]:
        """From e downhill under one loss: (the last evaluation, whether it converged)."""
        raise TypeError

    def value(self, q: np.ndarray, loss: Loss, horizon: int):
        """(cost, gradient, evaluation); the data's cost is per usable pixel times a fixed count,
        so that a pixel that comes or goes moves it by its own difference from the mean only.
        """
        e, g = self.problem.gradient(q, loss, horizon=horizon)
        penalty = e.prior or (0.0, np.zeros(len(q)), None)
        ratio = self._count / max(len(e.usable), 1)
        cost = ratio * (e.cost - penalty[0]) + penalty[0]
        return cost, ratio * (g - penalty[1]) + penalty[1], e


class LBFGS(GradientMethod):
    """SciPy's L-BFGS-B."""

    def descend(self, e, loss, horizon):
        """See GradientMethod."""
        scale = self._scale
        assert scale is not None
        seen: dict[bytes, Evaluation] = {}
        best, last, small, converged = e, np.inf, 0, False

        def fun(x):
            q = self.problem.unknowns.within(x / scale)
            try:
                cost, g, found = self.value(q, loss, horizon)
            except SolverFailure as failure:  # a wall the line search shortens its step at
                log.info("step refused: %s", failure)
                return 1e30, np.zeros(len(x))
            seen[np.asarray(x).tobytes()] = found
            return cost, g / scale

        def callback(intermediate_result):
            nonlocal best, last, small, converged
            x, cost = intermediate_result.x, float(intermediate_result.fun)
            self.log.iterations += 1
            best = seen.get(np.asarray(x).tobytes(), best)
            seen.clear()
            self.log.add(self.problem, best, horizon)
            small = small + 1 if last - cost < COST_TOLERANCE else 0
            last = cost
            converged = small >= PATIENCE
            if converged or self.log.iterations >= self.max_iterations:
                raise StopIteration

        limits = np.stack(self.problem.unknowns.limits(), axis=1) * scale[:, None]
        bounds = limits if np.isfinite(limits).any() else None
        left = max(self.max_iterations - self.log.iterations, 1)
        found = minimize(
            fun, e.q * scale, jac=True, method="L-BFGS-B", bounds=bounds, callback=callback,
            options={"maxiter": left, "ftol": 1e-14, "gtol": 1e-6, "maxls": 12, "maxcor": 12},
        )  # fmt: skip
        return best, bool(converged or found.status == 0)


class BarzilaiBorwein(GradientMethod):
    """Gradient descent with step length s.s / s.y, the seed's (seed 000, section 5.7)."""

    def descend(self, e, loss, horizon):
        """See GradientMethod."""
        scale = self._scale
        assert scale is not None
        lower, upper = self.problem.unknowns.limits()
        cost, g, e = self.value(e.q, loss, horizon)
        g = g / scale
        recent = [cost]
        step = 0.1 * float(np.abs(scale).min()) / max(float(np.abs(g).max()), 1e-300)
        small = 0
        while self.log.iterations < self.max_iterations:
            for _ in range(10):
                x = np.clip(e.q * scale - step * g, lower * scale, upper * scale)
                try:
                    new_cost, new_g, trial = self.value(x / scale, loss, horizon)
                except SolverFailure as failure:
                    log.info("step refused: %s", failure)
                    step *= 0.25
                    continue
                # a fall no smaller than rounding and coming pixels, below the worst of the last
                if new_cost <= max(recent[-MEMORY:]) + COST_TOLERANCE:
                    break
                step *= 0.25
            else:
                return e, True
            self.log.iterations += 1
            s, y = x - e.q * scale, new_g / scale - g
            fall = recent[-1] - new_cost
            e, g = trial, new_g / scale
            recent.append(new_cost)
            self.log.add(self.problem, e, horizon)
            small = small + 1 if abs(fall) < COST_TOLERANCE else 0
            if small >= PATIENCE or not s.any():
                return e, True
            curvature = float(s @ y)
            step = float(s @ s) / curvature if curvature > 0.0 else 2.0 * step
        return e, False
