"""Mooney-Rivlin rubber: psi = c10 (J^(-2/3) I1 - 3) + c01 (J^(-4/3) I2 - 3) + kappa/2 (J - 1)^2.

c10, c01, kappa [Pa]; at small strain mu = 2 (c10 + c01), bulk modulus kappa.
"""

from pliant.fem.laws.invariants import isochoric
from pliant.fem.laws.isochoric_stress import isochoric_stresses
from pliant.fem.laws.law import bulk_and_shear, energy


def _stresses(a, b, c, p):
    return isochoric_stresses(a, b, c, lambda i1, i2: (p.c10, p.c01), lambda J: p.kappa * (J - 1.0))


def _starts(E, nu):
    K, mu = bulk_and_shear(E, nu)
    return {"c10": 0.35 * mu, "c01": 0.15 * mu, "kappa": K}


def _lame(p):
    mu = 2.0 * (p.c10 + p.c01)
    return p.kappa - 2.0 / 3.0 * mu, mu


@energy(
    name="mooney-rivlin", units={"c10": "Pa", "c01": "Pa", "kappa": "Pa"}, stresses=_stresses,
    starts=_starts, lame=_lame,
)  # fmt: skip
def MooneyRivlin(F, p):  # noqa: N802
    """Linear in both isochoric invariants."""
    i1, i2, J = isochoric(F)
    return p.c10 * (i1 - 3) + p.c01 * (i2 - 3) + p.kappa / 2 * (J - 1) ** 2
