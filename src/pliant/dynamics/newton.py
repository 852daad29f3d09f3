"""Newton's method with a line search over preconditioned conjugate gradients.

Each iteration solves K dx = r, r the residual (minus the gradient of the step's potential), to an
accuracy that follows the nonlinear convergence (Eisenstat and Walker 1996, choice 2), with the
tangent of every quadrature point clamped to be positive definite as long as the iteration is far
away or the exact tangent is indefinite. The line search looks at the slope r . dx only: no energy
is needed, so contact and friction take part, and rounding cannot stop it close to the solution.
A tangent is kept for the next iteration, or the next time step, as long as it reduces the residual
well: a new one costs as much as ten products with it.
"""

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import warp as wp

from pliant.core.errors import SolverFailure
from pliant.core.launch import zeros
from pliant.core.solution import Outcome, Solution
from pliant.linalg.blocks import BlockMatrix, combine, dot, keep_free
from pliant.linalg.direct import DirectSolver
from pliant.linalg.pcg import ConjugateGradients, Preconditioner, Tolerance

MAX_ITERATIONS = 60
"""Newton iterations; an ordinary step takes 2 to 6, a body untangling itself a few dozen."""

LOOSEST = 0.1
"""First and largest relative residual of a linear solve."""

TIGHTEST = 1e-8

CLOSE = 1e-2
"""Share of the forces' scale below which the exact tangent is tried instead of the clamped one."""

OVERSHOOT = 0.9
"""A step is shortened when the slope behind it is more than this share of the slope before, turned
round."""

SHORTEST = 1e-8
"""Share of a Newton step below which the line search gives up."""

ROUNDING = 1e-9
"""A residual that stagnates below this share of the forces counts as solved: their own rounding."""

PATIENCE = 3
"""Iterations with the clamped tangent after which the exact one is tried again."""

KEEP = 0.1
"""A tangent whose step left less than this share of the residual serves again (time steps only)."""

DIRECT_NODES = 1_200
"""Bodies up to this size are factorised when the tangent is badly conditioned (statics)."""


class NewtonFailure(SolverFailure):
    """The iteration did not converge; a smaller step may."""


class NewtonProblem(Protocol):
    """What is solved: residual(x) = 0."""

    matrix: BlockMatrix
    solver: ConjugateGradients
    preconditioner: Preconditioner

    def residual(self, x: wp.array, out: wp.array) -> None:
        """out = r(x) on all components."""
        ...

    def assemble(self, x: wp.array, *, project: bool) -> None:
        """matrix = -dr/dx, clamped or exact."""
        ...


@dataclass
class NewtonRecord:
    """How an iteration went; history: |r| / scale before each iteration and at the end."""

    iterations: int = 0
    solver_iterations: int = 0
    tangents: int = 0
    backtracks: int = 0
    scale: float = 1.0
    history: list[float] = field(default_factory=list)
    projected: list[bool] = field(default_factory=list)

    @property
    def residual(self) -> float:
        """Last |r| / scale."""
        return self.history[-1] if self.history else float("inf")


class Newton:
    """Buffers and the iteration; one instance per problem size."""

    def __init__(self, problem: NewtonProblem | None, node_count: int, *, direct: bool = False):
        """problem: may be set later, and again: the buffers fit all of one size."""
        self._problem = problem
        self.direct = direct and node_count <= DIRECT_NODES
        self.kept: object = None  # what the matrix at hand was assembled for
        self._r, self._dx, self._trial = (zeros(node_count, wp.vec3d) for _ in range(3))

    def solve(
        self, x: wp.array, *, scale: float, tolerance: float, given: np.ndarray | None = None,
        linear: bool = False, keep: object = None, rounding: float = 0.0,
    ) -> NewtonRecord:
        """Improve x in place until |r| <= tolerance * scale on the free components.

        given: (nodes, 3) increments of the held components, taken in the first iteration. linear:
        the problem is linear in x, so the first solve is to the full tolerance. keep: a token that
        says which problems may share a tangent; None: a new tangent in every iteration. rounding:
        |r| that the forces' own rounding may leave, where the iteration may stagnate.
        """
        p, r, dx = self.problem, self._r, self._dx
        record = NewtonRecord(scale=scale)
        p.residual(x, r)
        norm = self._norm(r)
        if not np.isfinite(norm):
            raise NewtonFailure("the forces at the start are infinite or not defined.")
        record.history.append(norm / scale)
        forcing, clamped_for = LOOSEST, PATIENCE
        best, waited = (np.inf if given is not None else norm), 0
        while norm > tolerance * scale or given is not None:
            if record.iterations >= MAX_ITERATIONS:
                raise NewtonFailure(
                    f"{MAX_ITERATIONS} Newton iterations left {norm / scale:.1e} of the forces."
                )
            project = clamped_for < PATIENCE or norm > CLOSE * scale
            if linear:
                forcing = max(TIGHTEST, min(LOOSEST, 0.5 * tolerance * scale / max(norm, 1e-300)))
            old = keep is not None and self.kept == keep
            if not old:
                p.assemble(x, project=project)
                record.tangents += 1
            self._start(given)
            solution = self._solve(r, dx, forcing, refresh=not old)
            uphill = solution.outcome is Outcome.INDEFINITE
            uphill = uphill or (given is None and dot(r, dx) <= 0.0)
            if not project and not old and uphill:
                clamped_for, project = 0, True
                p.assemble(x, project=True)
                self._start(given)
                solution = self._solve(r, dx, forcing)
            record.solver_iterations += solution.iterations
            record.projected.append(project)
            clamped_for += 1
            if not np.isfinite(solution.residual):
                raise NewtonFailure(f"the linear solve failed: {solution.outcome.value}.")
            before = norm
            norm, shortened = self._advance(x, r, dx, search=given is None)
            record.backtracks += shortened
            record.iterations += 1
            record.history.append(norm / scale)
            well = norm <= KEEP * before and not shortened
            self.kept = keep if well else None
            given = None
            ratio = (norm / before) ** 2 if before > 0.0 else 0.0
            safeguard = 0.9 * forcing**2
            forcing = max(0.9 * ratio, safeguard if safeguard > 0.1 else 0.0)
            # no more than the last iteration needs: half the tolerance still to be reached
            needed = 0.5 * tolerance * scale / max(norm, 1e-300)
            forcing = float(np.clip(max(forcing, needed), TIGHTEST, LOOSEST))
            waited = 0 if norm < 0.5 * best else waited + 1
            best = min(best, norm)
            if waited >= 3 and best <= max(ROUNDING * scale, rounding):
                break  # the forces' own rounding
        return record

    @property
    def problem(self) -> NewtonProblem:
        """What is being solved."""
        assert self._problem is not None
        return self._problem

    @problem.setter
    def problem(self, problem: NewtonProblem) -> None:
        self._problem = problem

    def _start(self, given: np.ndarray | None) -> None:
        self._dx.zero_()
        if given is not None:
            self._dx.assign(given)

    def _norm(self, r: wp.array) -> float:
        keep_free(r, self.problem.matrix.free)
        return float(np.sqrt(dot(r, r)))

    def _solve(
        self, r: wp.array, dx: wp.array, forcing: float, *, refresh: bool = True
    ) -> Solution:
        p = self.problem
        if self.direct:
            found = DirectSolver(p.matrix).solve(r, dx)
            return found
        if refresh:
            p.preconditioner.update(p.matrix)
        start = float(np.sqrt(p.matrix.residual(r, dx, self._trial)))  # held parts push as well
        tolerance = Tolerance(relative=0.0, absolute=forcing * start, max_iterations=400)
        solution = p.solver.solve(r, dx, tolerance)
        p.preconditioner.report(solution)
        return solution

    def _advance(self, x, r, dx, *, search: bool) -> tuple[float, int]:
        """x += t dx with t from the slope; r and its norm at the new x."""
        p, trial = self.problem, self._trial
        slope = dot(r, dx)
        t, shortened = 1.0, 0
        low, high = 0.0, np.inf
        while True:
            combine(trial, (1.0, x), (t, dx))
            p.residual(trial, r)
            norm = self._norm(r)
            if not search:
                if not np.isfinite(norm):
                    raise NewtonFailure("moving the held parts distorts the body too far at once.")
                break
            if np.isfinite(norm):
                behind = dot(r, dx)
                if abs(behind) <= OVERSHOOT * abs(slope) or (behind > 0.0 and t >= 1.0):
                    break
                if behind > 0.0:  # still falling steeply: the last cut was too deep
                    low = t
                    if not np.isfinite(high) or high - low < 0.05 * high:
                        break
                    t = 0.5 * (low + high)
                    shortened += 1
                    continue
                high = t
                t = max(low + 0.1 * (high - low), min(
                    0.5 * (low + high), t * slope / (slope - behind)))
            else:
                high = t
                t = low + 0.3 * (high - low)
            shortened += 1
            if t < SHORTEST:
                raise NewtonFailure("the line search found no way down.")
        wp.copy(x, trial)
        return norm, shortened
