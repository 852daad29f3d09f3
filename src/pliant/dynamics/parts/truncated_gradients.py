"""Conjugate gradients that end where the matrix curves down (Steihaug 1983).

The exact tangent of surfaces that are pressed together and slide off each other has a few negative
eigenvalues. What was found before one of them showed is a way down all the same; tangents without
them keep half of a residual, and steps take four times as many iterations. Where one shows at once
little was found, and the tangent without them serves: a heap of thirty bodies took 60 iterations a
step with the first directions alone.
"""

from collections.abc import Callable
from math import isfinite, sqrt
from typing import Any

import warp as wp

from pliant.core.launch import zeros
from pliant.core.solution import Outcome, Solution
from pliant.linalg.blocks import combine, dot
from pliant.linalg.pcg import Preconditioner, Tolerance

ENOUGH = 0.5
"""Share of a residual that may be left where the matrix curves down."""

FLAT = 1e-12
"""A curvature p . A p below this share of that of the first direction counts as none."""


class TruncatedGradients:
    """Solves A x = b on the free components, as linalg.pcg.ConjugateGradients does."""

    def __init__(self, operator: Any, preconditioner: Preconditioner):
        self.operator, self.preconditioner = operator, preconditioner
        n = operator.node_count
        vectors = (zeros(n, wp.vec3d) for _ in range(5))
        self.residual, self._start, self._z, self._p, self._q = vectors
        self._curve: Callable[[], tuple[float, float]] = operator.curvature(
            self.residual, self._p, self._q
        )

    def solve(
        self,
        b: wp.array,
        x: wp.array,
        tolerance: Tolerance,
        *,
        square: float | None = None,
        check: bool = True,
    ) -> Solution:
        """Improve x, which is zero, until |b - A x| is at most the tolerance, or A curves down.

        square: r . r, if `residual` already holds r = P (b - A x) for the start. check: of no use,
        a residual that was summed up is off by rounding alone.
        """
        r = self.residual
        norm = sqrt(self.operator.residual(b, x, r) if square is None else square)
        wp.copy(self._start, r)
        solution = self._descend(x, tolerance, norm)
        early = solution.outcome in (Outcome.STAGNATED, Outcome.INDEFINITE)
        tangent = self.operator.pairs
        if early and tangent is not None and solution.residual > ENOUGH * norm:
            self.operator.pairs = tangent.positive()
            x.zero_()
            wp.copy(r, self._start)
            solution = self._descend(x, tolerance, norm)
        return solution

    def _descend(self, x: wp.array, tolerance: Tolerance, norm: float) -> Solution:
        r, z, p, q = self.residual, self._z, self._p, self._q
        goal = tolerance.absolute
        history, rz_before, first = [norm], 0.0, 0.0
        outcome = Outcome.CONVERGED
        while norm > goal:
            if len(history) > tolerance.max_iterations:
                outcome = Outcome.ITERATION_LIMIT
                break
            self.preconditioner.apply(r, z)
            rz = dot(r, z)
            if not isfinite(rz):
                outcome = Outcome.NOT_FINITE
                break
            combine(p, (1.0, z), (rz / rz_before if rz_before > 0.0 else 0.0, p))
            pq = self._curve()[1]
            first = first or pq
            if rz <= 0.0 or pq <= FLAT * abs(first):
                found = len(history) > 1
                outcome = Outcome.STAGNATED if found else Outcome.INDEFINITE
                break
            alpha = rz / pq
            combine(x, (1.0, x), (alpha, p))
            combine(r, (1.0, r), (-alpha, q))
            rz_before, norm = rz, sqrt(dot(r, r))
            history.append(norm)
        return Solution(x, outcome, len(history) - 1, norm, goal, history)
