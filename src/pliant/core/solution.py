"""What every solver returns: the value, how it ended, and what it took."""

from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class Outcome(Enum):
    """How a solve ended; the text says what to do about it."""

    CONVERGED = "converged"
    ITERATION_LIMIT = (
        "the iteration limit was reached: allow more iterations, loosen the tolerance, or use a "
        "stronger preconditioner"
    )
    STAGNATED = (
        "the residual stopped falling: the tolerance is below what rounding allows for this matrix"
    )
    INDEFINITE = (
        "the matrix is not positive definite: the body can move freely (hold it somewhere), or a "
        "modulus or density is not positive"
    )
    NOT_FINITE = (
        "a value became infinite or not a number: the step diverged; use a smaller time step or "
        "check the loads"
    )

    @property
    def ok(self) -> bool:
        """True if the tolerance was met."""
        return self is Outcome.CONVERGED


@dataclass(frozen=True)
class Solution:
    """Result of an iterative solve. residual is the true one, recomputed at exit."""

    value: Any
    outcome: Outcome
    iterations: int
    residual: float
    target: float
    history: list[float] = field(default_factory=list, repr=False)
