"""What Newton's method solves, and how it tells that it could not."""

from typing import Protocol

import warp as wp

from pliant.core.errors import SolverFailure
from pliant.dynamics.terms.elastic import Elastic
from pliant.dynamics.turning import TurningStep
from pliant.linalg.blocks import BlockMatrix
from pliant.linalg.pcg import ConjugateGradients, Preconditioner


class NewtonFailure(SolverFailure):
    """The iteration did not converge; a smaller step may."""


class NewtonProblem(Protocol):
    """What is solved: residual(x) = 0."""

    elastic: Elastic
    clamped: bool  # whether the clamped tangent, which is cheaper, converges as quickly
    matrix: BlockMatrix
    solver: ConjugateGradients
    preconditioner: Preconditioner

    def residual(self, x: wp.array, out: wp.array) -> None:
        """out = r(x) on all components."""
        ...

    def assemble(self, x: wp.array, *, project: bool) -> None:
        """matrix = -dr/dx, clamped or exact."""
        ...

    def turning(self, x: wp.array, dx: wp.array) -> TurningStep | None:
        """The step with the body's turn made finite; None where it may not turn."""
        ...
