"""Newton's method with a line search over preconditioned conjugate gradients.

Each iteration solves K dx = r, r the residual (minus the gradient of the step's potential), to an
accuracy that follows the nonlinear convergence (Eisenstat and Walker 1996, choice 2), with the
tangent of every quadrature point clamped to be positive definite as long as the iteration is far
away or the exact tangent is indefinite. A tangent is kept for the next iteration, or the next time
step, as long as it reduces the residual well: a new one costs as much as ten iterations of a linear
solve. The first guess of a time step is improved from what earlier ones missed (linalg.recent), as
that of a linear one is.

Where an energy has a kink the balance may sit on it, and no force of either side vanishes there. A
failed iteration on such a law is repeated with the kink rounded, less and less (`ROUNDINGS`).
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
import warp as wp

from pliant.core.launch import zeros
from pliant.core.solution import Outcome, Solution
from pliant.dynamics.line_search import advance, free_norm
from pliant.dynamics.newton_problem import NewtonFailure, NewtonProblem
from pliant.dynamics.terms.elastic import EnergyTerm
from pliant.fem.laws.expression import rounded
from pliant.fem.laws.law import Energy, Law
from pliant.linalg.blocks import dot
from pliant.linalg.direct import DirectSolver
from pliant.linalg.pcg import Tolerance
from pliant.linalg.recent import RecentErrors

MAX_ITERATIONS = 60
"""Newton iterations; an ordinary step takes 2 to 6, a body untangling itself a few dozen."""

LOOSEST = 0.1
"""First and largest relative residual of a linear solve."""

LOOSEST_LAST = 0.5
"""The same of the last, where less is needed."""

TIGHTEST = 1e-8

CLOSE = 1e-2
"""Share of the forces' scale below which the exact tangent is tried instead of the clamped one."""

ROUNDING = 1e-9
"""A residual that stagnates below this share of the forces counts as solved: their own rounding."""

PATIENCE = 3
"""Iterations with the clamped tangent after which the exact one is tried again."""

KEEP = 0.05
"""A tangent serves again (time steps only) if its step left no more than this share of the residual
beyond what the linear solve did."""

KEEP_WARPED = 0.25
"""The same where the clamped tangent is as good as any: the corotated energy's warped one misses 3
to 5 % when new and 5 to 9 % a step later. At 0.05 the dragon takes 1.3 tangents a step, at 0.15
half of one; here a step of the landing bunny is 4 % quicker than at 0.15 (medians of 11 and 7)."""

FEW = 8
"""Iterations after which the exact tangent takes the place of the clamped one close to the end,
until all is forgotten. For a soft block that swings by its own length a clamped tangent leaves a
quarter of the residual, so that a step takes ten iterations; with exact ones it takes three."""

PROMPT, MOST = 100, 400
"""Iterations of a linear solve until the preconditioner is made anew for it, and in all."""

FAR = 10.0
"""Share of the forces' scale beyond which a first guess is compared with standing still."""

NEAR = 5e-3
"""A linear solve to this accuracy or less goes straight to the end; beyond, the tangent has changed
before it is reached."""

DIRECT_NODES = 1_200
"""Bodies up to this size are factorised when the tangent is badly conditioned (statics of energies;
a linear body, which is factorised once, may be larger)."""

ROUNDINGS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
"""Widths of rounded kinks, each the start of the next, as shares of what is under the root."""


@lru_cache(maxsize=64)
def _rounded_energy(energy: Energy) -> Energy | None:
    """The energy without its kinks, their width one more parameter; None if it has none."""

    def function(F, p):
        return rounded(energy.function(F, p), p.kink_width)

    names = (*energy.parameters, "kink_width")
    smooth = replace(energy, function=function, parameters=names, stress_code=None)
    return None if smooth.principal is energy.principal else smooth


def _forcing(wanted: float, needed: float) -> float:
    """Accuracy of a linear solve; needed: that after which Newton's method has converged."""
    if needed >= NEAR:
        return min(needed, LOOSEST_LAST)
    return float(np.clip(wanted, TIGHTEST, LOOSEST))


@dataclass
class NewtonRecord:
    """How an iteration went; history: |r| / scale before each iteration and at the end.

    kink_width: 0, or that of the rounded law which is in balance (the law itself is to within it).
    """

    iterations: int = 0
    solver_iterations: int = 0
    tangents: int = 0
    backtracks: int = 0
    scale: float = 1.0
    kink_width: float = 0.0
    history: list[float] = field(default_factory=list)
    projected: list[bool] = field(default_factory=list)

    @property
    def residual(self) -> float:
        """Last |r| / scale."""
        return self.history[-1] if self.history else float("inf")


class Newton:
    """Buffers and the iteration; one instance per problem size."""

    problem: NewtonProblem
    """What is being solved."""

    def __init__(self, problem: NewtonProblem | None, node_count: int, *, direct: bool = False):
        """problem: may be set later, and again: the buffers fit all of one size.

        direct: systems are factorised.
        """
        if problem is not None:
            self.problem = problem
        self.direct = direct
        self.kept: object = None  # what the matrix at hand may serve again
        self._made_for: object = None  # what it was assembled for, though it may have aged
        self._missed = LOOSEST  # share of a residual that the last step left beyond its solve
        self._poor = False  # whether clamped tangents have taken many iterations
        self._r, self._dx, self._trial = (zeros(node_count, wp.vec3d) for _ in range(3))

    def forget(self) -> None:
        """Start anew: what follows does not depend on the tangents of earlier problems."""
        self.kept = self._made_for = None
        self._missed = LOOSEST
        self._poor = False

    def solve(self, x: wp.array, **options: Any) -> NewtonRecord:
        """`converge`; where that fails on a law with kinks, again with these rounded."""
        start = wp.clone(x)
        try:
            return self.converge(x, **options)
        except NewtonFailure:
            elastic = self.problem.elastic
            if not isinstance(elastic, EnergyTerm):
                raise
            hyper = elastic.operator
            law: Law = hyper.law
            energy = _rounded_energy(law.energy)
            if energy is None:
                raise
            wp.copy(x, start)
            options.update(keep=None, recent=None)
            record = NewtonRecord()
            try:
                for width in ROUNDINGS:
                    hyper.set_law(Law(energy, {**law.values, "kink_width": width}, law.floor))
                    before, record = record, self.converge(x, **options)
                    record.kink_width, options["given"] = width, None
                    for count in ("iterations", "solver_iterations", "tangents", "backtracks"):
                        setattr(record, count, getattr(before, count) + getattr(record, count))
            finally:
                hyper.set_law(law)
            return record

    def converge(
        self,
        x: wp.array,
        *,
        scale: float | Callable[[], float],
        tolerance: float,
        given: np.ndarray | None = None,
        linear: bool = False,
        keep: object = None,
        rounding: Callable[[], float] = float,
        recent: RecentErrors | None = None,
        calm: Callable[[], wp.array] | None = None,
        watch: Callable[[float], None] | None = None,
    ) -> NewtonRecord:
        """Improve x in place until |r| <= tolerance * scale on the free components.

        scale: a number [N], or what tells it once the first residual is known.
        given: (nodes, 3) increments of the held components, taken in the first iteration. linear:
        the problem is linear in x, so the first solve is to the full tolerance. keep: a token that
        says which problems may share a tangent; None: a new tangent in every iteration. rounding:
        tells |r| that the forces' own rounding may leave, where the iteration may stagnate. recent:
        what earlier first guesses missed, from which this one is improved. calm: another start, for
        where x is far off (after an impact it extrapolates what has ended). watch: told |r| / scale
        after every iteration; what it raises ends the iteration.
        """
        p, r, dx = self.problem, self._r, self._dx
        p.residual(x, r)
        scale = scale() if callable(scale) else scale
        record = NewtonRecord(scale=scale)
        norm = free_norm(p, r)
        if not np.isfinite(norm):
            raise NewtonFailure("the forces at the start are infinite or not defined.")
        if calm is not None and norm > FAR * scale:
            norm = self._better_start(x, calm(), norm)
        if keep is None or self._made_for != keep:
            recent = None  # their images under the matrix at hand would mean nothing
        record.history.append(norm / scale)
        goal = 0.5 * tolerance * scale  # what the last iteration should leave
        forcing, clamped_for = LOOSEST, PATIENCE
        if given is None:  # else the held parts' push is still to come
            forcing = _forcing(LOOSEST, goal / max(norm, 1e-300))
        best, waited = (np.inf if given is not None else norm), 0
        while norm > tolerance * scale or given is not None:
            if record.iterations >= MAX_ITERATIONS:
                raise NewtonFailure(
                    f"{MAX_ITERATIONS} Newton iterations left {norm / scale:.1e} of the forces."
                )
            project = clamped_for < PATIENCE or norm > CLOSE * scale
            self._poor = self._poor or record.iterations >= FEW
            clamped = p.clamped and not self._poor
            project = project or clamped
            if linear:
                forcing = max(TIGHTEST, min(LOOSEST, 0.5 * tolerance * scale / max(norm, 1e-300)))
            old = keep is not None and self.kept == keep
            if not old:
                p.assemble(x, project=project)
                record.tangents += 1
                self._made_for = keep
            if old:
                forcing = self._worthwhile(goal / max(norm, 1e-300))
            solution = self._solve(
                r, norm, dx, given, forcing, refresh=not old, recent=recent if old else None
            )
            recent = None
            uphill = solution.outcome is Outcome.INDEFINITE
            slope = dot(r, dx)
            uphill = uphill or (given is None and slope <= 0.0)
            if not project and not old and uphill:
                clamped_for, project = 0, True
                p.assemble(x, project=True)
                record.tangents += 1
                solution = self._solve(r, norm, dx, given, forcing)
                slope = dot(r, dx)
            record.solver_iterations += solution.iterations
            record.projected.append(project)
            clamped_for += 1
            if not np.isfinite(solution.residual):
                raise NewtonFailure(f"the linear solve failed: {solution.outcome.value}.")
            before = norm
            norm, shortened, turned = advance(p, x, r, dx, self._trial, slope, search=given is None)
            record.backtracks += shortened
            record.iterations += 1
            record.history.append(norm / scale)
            if watch is not None:
                watch(norm / scale)
            # what the linear solve did not leave is the tangent's fault
            missed = max(norm - solution.residual, 0.0) / max(before, 1e-300)
            self._missed = missed if not shortened else LOOSEST
            enough = KEEP_WARPED if clamped else KEEP
            self.kept = keep if missed <= enough and not shortened and not turned else None
            given = None
            ratio = (norm / before) ** 2 if before > 0.0 else 0.0
            safeguard = 0.9 * forcing**2
            forcing = max(0.9 * ratio, safeguard if safeguard > 0.1 else 0.0)
            forcing = _forcing(forcing, goal / max(norm, 1e-300))
            waited = 0 if norm < 0.5 * best else waited + 1
            best = min(best, norm)
            if waited >= 1 and best <= max(ROUNDING * scale, rounding()):
                break  # the forces' own rounding
        return record

    def _better_start(self, x: wp.array, other: wp.array, norm: float) -> float:
        """x := the one with the smaller residual, which is left in _r; its norm."""
        self.problem.residual(other, self._r)
        of_other = free_norm(self.problem, self._r)
        if of_other < norm:
            wp.copy(x, other)
            return of_other
        self.problem.residual(x, self._r)
        return free_norm(self.problem, self._r)

    def _start(self, given: np.ndarray | None) -> None:
        self._dx.zero_()
        if given is not None:
            self._dx.assign(given)

    def _worthwhile(self, needed: float) -> float:
        """Accuracy of a solve with a kept tangent: not much beyond what such a one last missed.

        needed: that after which Newton's method has converged.
        """
        clamped = self.problem.clamped and not self._poor
        missed = self._missed if clamped else 0.5 * self._missed
        return float(np.clip(max(needed, missed), TIGHTEST, LOOSEST_LAST))

    def _solve(
        self,
        r: wp.array,
        norm: float,
        dx: wp.array,
        given: np.ndarray | None,
        forcing: float,
        *,
        refresh: bool = True,
        recent: RecentErrors | None = None,
    ) -> Solution:
        """K dx = r by the matrix; recent: what earlier first guesses missed, to start from."""
        p = self.problem
        self._start(given)
        if self.direct:
            return DirectSolver(p.matrix).solve(r, dx)
        if refresh:
            p.preconditioner.update(p.matrix)
        solution = self._iterate(r, norm, dx, given, forcing, recent, PROMPT)
        if solution.outcome is Outcome.ITERATION_LIMIT:  # a body that has turned far since
            p.preconditioner.update(p.matrix, fresh=True)
            self._start(given)
            solution = self._iterate(r, norm, dx, given, forcing, None, MOST)
        return solution

    def _iterate(self, r, norm: float, dx, given, forcing: float, recent, limit: int) -> Solution:
        """Conjugate gradients from dx, at most `limit` iterations."""
        p = self.problem
        if given is not None:  # held parts push as well
            square = p.matrix.residual(r, dx, p.solver.residual)
        else:
            wp.copy(p.solver.residual, r)
            square = norm * norm
            if recent is not None:
                square = recent.improve_correction(dx, p.solver.residual)
        start = norm if recent is not None else float(np.sqrt(square))
        tolerance = Tolerance(relative=0.0, absolute=forcing * start, max_iterations=limit)
        solution = p.solver.solve(r, dx, tolerance, square=square, check=False)
        p.preconditioner.report(solution)
        return solution
