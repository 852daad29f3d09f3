"""Preconditioned conjugate gradients, stated once: for one right-hand side or several at a time.

Stops when |b - A x| <= max(relative * |b|, absolute), norms over the free components. The residual
is recomputed from its definition before a result is called converged, because the recursively
updated one drifts; if they disagree the iteration restarts from the recomputed one.

One iteration is the preconditioner and two passes over the vectors (Chronopoulos and Gear 1989):
the product A z with both inner products, then all four updates with the norm; A p follows from the
recurrence of p. The passes are somebody else's (`Passes`): over rows of blocks, over products with
an operator, over blocks of columns. Every column has its own step lengths and stops on its own; one
that has met its target is frozen, so its result does not depend on the company it is in.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, nan, sqrt
from typing import Protocol

from pliant.core.solution import Outcome

SMALLEST_RELATIVE = 1e-14
"""Below this a residual in f64 is rounding; asking for less is clipped."""

LOST = 1e-10
"""A direction's p . A p below this share of z . A z is rounding: the direction is dropped."""

RESTARTS = 6
"""How often the iteration may start again from a recomputed residual before it has stagnated."""


@dataclass(frozen=True)
class Tolerance:
    """When a linear solve is good enough."""

    relative: float = 1e-6
    absolute: float = 0.0
    max_iterations: int = 2000

    def target(self, b_norm: float) -> float:
        """The norm a residual must fall to."""
        return max(max(self.relative, SMALLEST_RELATIVE) * b_norm, self.absolute)


class Passes(Protocol):
    """What an iteration does with the vectors; every number is one of as many as there are columns.

    x, r, p, q = A p and what they are made from belong to whoever implements it.
    """

    def residual(self) -> Sequence[float]:
        """r = P (b - A x); r . r."""
        ...

    def curvature(self) -> tuple[Sequence[float], Sequence[float]]:
        """z = approximately A^{-1} r, w = P A z; r . z and z . w."""
        ...

    def advance(self, alpha: Sequence[float], beta: Sequence[float]) -> Sequence[float]:
        """p = z + beta p, q = w + beta q, x += alpha p, r -= alpha q; r . r."""
        ...


class Column:
    """The iteration of one right-hand side: its step lengths, its norms, and how it ended."""

    __slots__ = ("_best", "_limit", "_pq", "_restarts", "_rz", "_stopped", "history", "iterations",
                 "norm", "outcome", "running", "target")  # fmt: skip

    def __init__(self, target: float, max_iterations: int):
        self.target, self._limit = target, max_iterations
        self.outcome: Outcome | None = None
        self.iterations = 0
        self.norm = nan
        self.history: list[float] = []
        self.running = False
        self._stopped: Outcome | None = None
        self._best, self._restarts = float("inf"), 0
        self._rz = self._pq = 0.0

    def begin(self, norm: float) -> None:
        """Judge a residual that was computed from its definition: the end, or (again) a start."""
        self.norm = norm
        if not self.history:
            self.history.append(norm)
        if not isfinite(norm) or self._stopped is Outcome.NOT_FINITE:
            self.norm, self.outcome = nan, Outcome.NOT_FINITE  # x is of no use
        elif self._stopped is Outcome.INDEFINITE:
            self.outcome = Outcome.INDEFINITE
        elif norm <= self.target:
            self.outcome = Outcome.CONVERGED
        elif self._stopped is not None:
            self.outcome = self._stopped
        elif norm > 0.9 * self._best or self._restarts > RESTARTS:
            self.outcome = Outcome.STAGNATED
        else:
            self._best = norm
            self._restarts += 1
            self._rz = self._pq = 0.0
            self.running = True

    def may_go_on(self) -> bool:
        """True if it runs and has an iteration left."""
        if self.running and self.iterations >= self._limit:
            self._stop(Outcome.ITERATION_LIMIT)
        return self.running

    def lengths(self, rz: float, zw: float) -> tuple[float, float]:
        """alpha and beta of the next step; zeros leave x and r as they are."""
        if not self.running:
            return 0.0, 0.0
        if not (isfinite(rz) and isfinite(zw)):
            return self._stop(Outcome.NOT_FINITE)
        beta = rz / self._rz if self._rz > 0.0 else 0.0
        pq = zw - beta * beta * self._pq  # p . A p, by the conjugacy of successive p
        if zw > 0.0 and pq <= LOST * zw:
            beta, pq = 0.0, zw  # rounding has eaten the direction: start from z
        if rz <= 0.0 or pq <= 0.0:
            # a zero direction: nothing left to do
            return self._stop(Outcome.STAGNATED if 0.0 in (rz, zw) else Outcome.INDEFINITE)
        self._rz, self._pq = rz, pq
        return rz / pq, beta

    def arrive(self, square: float) -> None:
        """The step is done; square: r . r."""
        if not self.running:
            return
        self.iterations += 1
        self.norm = sqrt(square) if square >= 0.0 else nan
        self.history.append(self.norm)
        self.running = self.norm > self.target
        if not isfinite(self.norm):
            self._stop(Outcome.NOT_FINITE)

    def trust(self) -> None:
        """Take the recursive residual for the true one."""
        if self.outcome is None and self._stopped is None and self.norm <= self.target:
            self.outcome = Outcome.CONVERGED

    def _stop(self, outcome: Outcome) -> tuple[float, float]:
        self._stopped, self.running = outcome, False
        return 0.0, 0.0


def iterate(
    columns: Sequence[Column],
    passes: Passes,
    *,
    squares: Sequence[float] | None = None,
    check: bool = True,
) -> None:
    """Improve x until every column has an outcome.

    squares: r . r, if r = P (b - A x) is there already. check: recompute a residual before it
    counts; False where the caller will compute one of his own.
    """  # fmt: skip
    while True:
        squares = passes.residual() if squares is None else squares
        for column, square in zip(columns, squares, strict=True):
            if column.outcome is None:
                column.begin(sqrt(square) if square >= 0.0 else nan)
        while any([column.may_go_on() for column in columns]):
            products = passes.curvature()
            steps = [c.lengths(*pair) for c, *pair in zip(columns, *products, strict=True)]
            if not any([column.running for column in columns]):
                break
            alpha, beta = [step[0] for step in steps], [step[1] for step in steps]
            for column, square in zip(columns, passes.advance(alpha, beta), strict=True):
                column.arrive(square)
        squares = None
        if not check:
            for column in columns:
                column.trust()
        if all([column.outcome is not None for column in columns]):
            return
