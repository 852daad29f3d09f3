"""What energies are written with: determinant, invariants and stretches of F.

F is a 3x3 array whose entries are numbers of any kind: floats, arrays with one entry per point,
complex or multicomplex arrays, or expressions that are being recorded.
"""

from typing import Any

import numpy as np

from pliant.core.errors import BadInput
from pliant.fem.laws.expression import Expression


class NeedsStretches(BadInput):
    """An energy of the principal stretches was recorded for a full F."""


class InvariantRecord:
    """F known by its invariants only, while an energy is recorded as a function of I1, I2 and J."""

    def __init__(self, first: Any, second: Any, volume: Any):
        self.first, self.second, self.volume = first, second, volume

    def __getitem__(self, key: Any) -> Any:
        raise NeedsStretches("This energy looks at the entries of F.")


def det(F: Any) -> Any:
    """J = det F: the local change of volume."""
    if isinstance(F, InvariantRecord):
        return F.volume
    return (
        F[0, 0] * (F[1, 1] * F[2, 2] - F[1, 2] * F[2, 1])
        - F[0, 1] * (F[1, 0] * F[2, 2] - F[1, 2] * F[2, 0])
        + F[0, 2] * (F[1, 0] * F[2, 1] - F[1, 1] * F[2, 0])
    )


def cauchy_green(F: Any) -> np.ndarray:
    """C = F^T F."""
    C = np.empty((3, 3), object)
    for i in range(3):
        for j in range(3):
            C[i, j] = sum(F[k, i] * F[k, j] for k in range(3))
    return C


def first_invariant(F: Any) -> Any:
    """I1 = tr(F^T F): the sum of the squared stretches."""
    if isinstance(F, InvariantRecord):
        return F.first
    return sum(F[i, j] * F[i, j] for i in range(3) for j in range(3))


def second_invariant(F: Any) -> Any:
    """I2 = (I1^2 - tr(C^2)) / 2: the sum of the squared products of two stretches."""
    if isinstance(F, InvariantRecord):
        return F.second
    C = cauchy_green(F)
    return (
        C[0, 0] * C[1, 1] + C[1, 1] * C[2, 2] + C[2, 2] * C[0, 0]
        - C[0, 1] * C[0, 1] - C[1, 2] * C[1, 2] - C[2, 0] * C[2, 0]
    )  # fmt: skip


def isochoric(F: Any) -> tuple[Any, Any, Any]:
    """J^(-2/3) I1 and J^(-4/3) I2, blind to changes of volume, and J."""
    J = det(F)
    r = J ** (-2.0 / 3.0)
    return r * first_invariant(F), r * r * second_invariant(F), J


def stretches(F: Any) -> tuple[Any, Any, Any]:
    """Principal stretches: the diagonal of a diagonal F, else roots of C's characteristic cubic.

    The cubic's roots are polished by Newton's iteration in the arithmetic of F's entries, so
    complex steps pass through where the stretches differ.
    """
    if isinstance(F, InvariantRecord):
        raise NeedsStretches("This energy looks at the stretches.")
    off = [F[i, j] for i in range(3) for j in range(3) if i != j]
    if any(isinstance(x, Expression) for x in F.flat):
        if all(not isinstance(x, Expression) or (x.op == "const" and x.value == 0.0) for x in off):
            return F[0, 0], F[1, 1], F[2, 2]
        raise NeedsStretches(
            "This energy uses the principal stretches, so it cannot be recorded for a full F: "
            "write it with det, first_invariant and second_invariant, or keep it isotropic."
        )
    if all(np.all(_coefficients_zero(x)) for x in off):
        return F[0, 0], F[1, 1], F[2, 2]
    I1, I2, J = first_invariant(F), second_invariant(F), det(F)
    I3 = J * J
    C = cauchy_green(F)
    real = np.stack([np.stack(np.broadcast_arrays(*[_real(c) for c in row]), -1) for row in C], -2)
    roots = np.linalg.eigvalsh(real)
    out = []
    for k in range(3):
        x: Any = roots[..., k]
        for _ in range(4):
            x = x - (((x - I1) * x + I2) * x - I3) / ((3.0 * x - 2.0 * I1) * x + I2)
        out.append(np.sqrt(x))
    return out[0], out[1], out[2]


def _real(x: Any) -> Any:
    return np.real(getattr(x, "real", x))


def _coefficients_zero(x: Any) -> Any:
    if hasattr(x, "re"):
        return np.logical_and(_coefficients_zero(x.re), _coefficients_zero(x.im))
    return np.asarray(x) == 0.0
