"""Yeoh rubber: psi = sum over i = 1..3 of c_i (J^(-2/3) I1 - 3)^i + kappa/2 (J - 1)^2.

c1, c2, c3, kappa [Pa]; at small strain mu = 2 c1, bulk modulus kappa.
"""

from pliant.fem.laws.invariants import det, first_invariant
from pliant.fem.laws.isochoric_stress import isochoric_stresses
from pliant.fem.laws.law import bulk_and_shear, energy


def _stresses(a, b, c, p):
    def slopes(i1, i2):
        k = i1 - 3.0
        return p.c1 + 2.0 * p.c2 * k + 3.0 * p.c3 * k * k, 0.0

    return isochoric_stresses(a, b, c, slopes, lambda J: p.kappa * (J - 1.0))


def _starts(E, nu):
    K, mu = bulk_and_shear(E, nu)
    return {"c1": mu / 2.0, "c2": 0.05 * mu, "c3": 0.005 * mu, "kappa": K}


@energy(
    name="yeoh", units={"c1": "Pa", "c2": "Pa", "c3": "Pa", "kappa": "Pa"}, stresses=_stresses,
    starts=_starts, lame=lambda p: (p.kappa - 4.0 / 3.0 * p.c1, 2.0 * p.c1),
)  # fmt: skip
def Yeoh(F, p):  # noqa: N802
    """Cubic in the first isochoric invariant: stiffens when stretched far."""
    J = det(F)
    k = J ** (-2.0 / 3.0) * first_invariant(F) - 3
    return p.c1 * k + p.c2 * k**2 + p.c3 * k**3 + p.kappa / 2 * (J - 1) ** 2
