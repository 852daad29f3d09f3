"""Newton's method on a few hundred numbers, with a line search on the slope.

    A dx = -g(x),   A = dg/dx

At a hundred numbers a new tangent costs some twenty residuals. So a factor of an earlier A serves,
corrected by what the iterations since have shown of A (limited-memory BFGS, Nocedal 1980, with that
factor as its start), as long as each iteration leaves less than `KEEP` of the residual. A step is
cut while the slope dx . g has turned to more than it was: g is nearly everywhere the gradient of a
convex energy.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs  # pyright: ignore[reportAttributeAccessIssue]

from pliant.core.errors import SolverFailure

KEEP = 0.3
"""Share of the residual that an iteration with an old factor may leave before A is made anew."""

MOST = 60
"""Iterations; three to six are usual."""

CUTS = 12
"""Halvings of a step."""

SHOWN = 6
"""Pairs of steps and changes of the residual that are remembered."""

ROUNDING = 1e-12
"""Share of the forces' size below which no balance can be told."""


@dataclass(frozen=True)
class Found:
    """x, its residual, the iterations and the tangents that were factorised."""

    x: np.ndarray
    residual: float
    target: float
    iterations: int
    factors: int


class DenseNewton:
    """Keeps a factor from solve to solve; `forget` drops it."""

    def __init__(self) -> None:
        self._factor: np.ndarray | None = None
        self._token: object = None
        self._pairs: list[tuple[np.ndarray, np.ndarray, float]] = []

    def forget(self) -> None:
        """Start without a past."""
        self._factor = None
        self._pairs.clear()

    def _direction(self, g: np.ndarray) -> np.ndarray:
        """- A^-1 g, A as the factor and the pairs know it."""
        q, shares = g.copy(), []
        for s, y, sy in reversed(self._pairs):
            share = float(s @ q) / sy
            q -= share * y
            shares.append(share)
        q = dpotrs(self._factor, q, lower=1)[0]
        for (s, y, sy), share in zip(self._pairs, reversed(shares), strict=True):
            q += (share - float(y @ q) / sy) * s
        return -q

    def _remember(self, s: np.ndarray, y: np.ndarray) -> None:
        sy = float(s @ y)
        if sy > 0.0:
            self._pairs.append((s, y, sy))
            del self._pairs[:-SHOWN]

    def solve(
        self,
        residual: Callable[[np.ndarray], np.ndarray],
        tangent: Callable[[np.ndarray, bool], np.ndarray],
        x: np.ndarray,
        *,
        scale: float,
        tolerance: float,
        token: object = None,
    ) -> Found:
        """x with |g(x)| <= tolerance * scale; tangent(x, project) is A.

        token: what the kept factor belongs to, such as the scheme. Raises SolverFailure.
        """
        if token != self._token:
            self._token = token
            self.forget()
        target = max(tolerance, ROUNDING) * scale
        g = residual(x)
        size, factors = _norm(g), 0
        if not np.isfinite(size):
            raise SolverFailure("the law is not defined where the step begins")
        for iteration in range(MOST):
            if size <= target:
                return Found(x, size, target, iteration, factors)
            old = self._factor is not None
            if not old:
                self.forget()
                self._factor = _factorised(tangent, x)
                factors += 1
            dx = self._direction(g)
            slope, moved = float(dx @ g), x + dx
            g_next = residual(moved)
            if old and not _norm(g_next) <= KEEP * size:
                if _norm(g_next) < size:  # what was gained is kept
                    x, g, size = moved, g_next, _norm(g_next)
                self._factor = None
                continue
            for _ in range(CUTS):
                after = float(dx @ g_next)
                if np.isfinite(_norm(g_next)) and abs(after) <= max(abs(slope), dx.size * target):
                    break
                dx = 0.5 * dx
                moved = x + dx
                g_next = residual(moved)
            else:
                break
            self._remember(dx, g_next - g)
            x, g = moved, g_next
            before, size = size, _norm(g)
            if size > KEEP * before:
                self._factor = None
                if size <= 1e3 * target and size > 0.9 * before:  # rounding
                    return Found(x, size, target, iteration + 1, factors)
        self._factor = None
        raise SolverFailure(
            f"no balance was found in {MOST} iterations (residual {size:.1e}, wanted "
            f"{target:.1e}): use a smaller time step"
        )


def _factorised(tangent: Callable[[np.ndarray, bool], np.ndarray], x: np.ndarray) -> np.ndarray:
    for project in (False, True):
        factor, wrong = dpotrf(tangent(x, project), lower=1, clean=0)
        if wrong == 0 and np.isfinite(factor).all():
            return factor
    raise SolverFailure("the tangent is not positive definite: use a smaller time step")


def _norm(g: np.ndarray) -> float:
    return float(np.sqrt(np.sum(g * g)))
