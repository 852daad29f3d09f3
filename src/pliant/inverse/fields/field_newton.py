"""Gauss-Newton for many unknowns: conjugate gradients on products with the Hessian.

Every iteration solves (H + L) dq = -g, H = J^T W J of the data (inverse.motion.linearised) and L
that of the field's penalty and the priors, by a few conjugate gradients. They are preconditioned by
L + s I and by the directions of all solves before (the quasi-Newton preconditioner of Morales and
Nocedal 2000): H changes little from one iteration to the next, so what was learned about it is
kept. Descent by gradients alone needs hundreds of iterations where this needs ten, because the data
fix the mean stiffness a million times better than that of a single cell.
"""

import logging
from collections.abc import Callable

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from pliant.core.errors import SolverFailure
from pliant.inverse.fitting.fit_log import Minimum, Optimiser
from pliant.inverse.motion.evaluation import Evaluation
from pliant.inverse.motion.linearised import Linearised
from pliant.inverse.motion.problem import Problem

log = logging.getLogger(__name__)

PRODUCTS = 20
"""Products with the Hessian in one iteration, at most."""

INNER_TOLERANCE = 0.05
"""Fall of the preconditioned residual that ends the conjugate gradients."""

KEPT = 120
"""Directions kept for the preconditioner and the error bars."""

LONGEST = 1.0
"""Largest change of a free coordinate in a step: an e-fold is as far as a linearisation reaches."""

ENOUGH = 0.5
"""Predicted fall of the cost (half of chi square) that ends a fit, with every point counted."""

SHIFT = 0.01
"""Share of the penalty's mean diagonal that is added to it, so that it can be factorised."""

Product = Callable[[np.ndarray], np.ndarray]


class FieldNewton(Optimiser):
    """See the module; its `pairs` (d, H d) also tell how well the data see the field."""

    problem: Problem
    pairs: tuple[tuple[np.ndarray, np.ndarray], ...] = ()

    def run(
        self, q: np.ndarray, horizon: int, final: bool, current: Evaluation | None = None
    ) -> Minimum:
        """See Optimiser."""
        p, loss = self.problem, self.loss(current)
        here = Linearised(p, q, loss, horizon=horizon, tolerance=p.tangent_tolerance)
        if current is None:
            loss = self.loss(here.evaluation)
            here = here.under(loss)
        while True:
            e = here.evaluation
            self.log.add(p, e, horizon)
            if self.log.iterations >= self.max_iterations:
                return Minimum(e.q, e, False, self.pairs)
            dq, fall = self._solve(here)
            if fall < ENOUGH:
                return Minimum(e.q, e, True, self.pairs)
            there = self._step(here, dq, loss, horizon)
            if there is None:
                return Minimum(e.q, e, True, self.pairs)
            self.log.iterations += 1
            e = there.evaluation
            loss = self.loss(e)
            here = there if abs(loss.sigma - e.loss.sigma) < 0.1 * loss.sigma else there.under(loss)

    def _solve(self, here: Linearised) -> tuple[np.ndarray, float]:
        """The step dq, and how far the quadratic model falls along it."""
        q, g = here.evaluation.q, here.gradient
        L = self.problem.penalty_hessian(q)
        free = np.where(self.problem.unknowns.held(q, g), 0.0, 1.0)
        precondition = self._preconditioner(L)
        x, r = np.zeros(len(q)), -g * free
        z = free * precondition(r)
        d, rz = z.copy(), float(r @ z)
        first, fresh = rz, []
        for _ in range(PRODUCTS):
            Hd = here.product(d)
            Ad = free * (Hd + L @ d)
            curvature = float(d @ Ad)
            if not curvature > 0.0:  # rounding of two solves that are not quite transposes
                break
            fresh.append((d, Hd))
            a = rz / curvature
            x, r = x + a * d, r - a * Ad
            z = free * precondition(r)
            rz, before = float(r @ z), rz
            if rz <= INNER_TOLERANCE**2 * first:
                break
            d = z + rz / before * d
        self.pairs = (*self.pairs, *fresh)[-KEPT:]
        return x, 0.5 * float(-g @ x)

    def _preconditioner(self, L: sparse.csr_array) -> Product:
        """(L + s I)^-1, improved by the directions of the solves before."""
        n = len(L.diagonal())
        shift = SHIFT * max(float(L.diagonal().mean()), 1e-12)
        solve = splu(sparse.csc_array(L + shift * sparse.eye_array(n))).solve
        known = []
        for d, Hd in self.pairs:
            y = Hd + L @ d
            known.append((d, y, 1.0 / float(d @ y)))

        def apply(v: np.ndarray) -> np.ndarray:
            shares = []
            for s, y, rho in reversed(known):
                a = rho * float(s @ v)
                shares.append(a)
                v = v - a * y
            v = solve(v)
            for (s, y, rho), a in zip(known, reversed(shares), strict=True):
                v = v + (a - rho * float(y @ v)) * s
            return v

        return apply

    def _step(self, here: Linearised, dq: np.ndarray, loss, horizon: int) -> Linearised | None:
        """Linearised after a step along dq that goes down, or None."""
        p, e = self.problem, here.evaluation
        length = min(1.0, LONGEST / max(float(np.abs(dq).max()), 1e-300))
        for _ in range(6):
            q = p.unknowns.within(e.q + length * dq)
            try:
                there = Linearised(p, q, loss, horizon=horizon, tolerance=p.tangent_tolerance)
                if there.evaluation.rise_from(e) < 0.0:
                    return there
            except SolverFailure as failure:
                log.info("step refused: %s", failure)
            length *= 0.3
        return None
