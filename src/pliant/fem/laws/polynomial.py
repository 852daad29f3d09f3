"""General polynomial rubber of second degree in the isochoric invariants:

psi = sum over 0 < i + j <= 2 of c_ij (i1 - 3)^i (i2 - 3)^j + kappa/2 (J - 1)^2 + d2 (J - 1)^4.

c_ij, kappa, d2 [Pa]; at small strain mu = 2 (c10 + c01), bulk modulus kappa.
"""

from pliant.fem.laws.invariants import isochoric
from pliant.fem.laws.isochoric_stress import isochoric_stresses
from pliant.fem.laws.law import bulk_and_shear, energy

_UNITS = dict.fromkeys(("c10", "c01", "c20", "c11", "c02", "kappa", "d2"), "Pa")


def _stresses(a, b, c, p):
    def slopes(i1, i2):
        x, y = i1 - 3.0, i2 - 3.0
        return (
            p.c10 + 2.0 * p.c20 * x + p.c11 * y,
            p.c01 + p.c11 * x + 2.0 * p.c02 * y,
        )

    return isochoric_stresses(
        a, b, c, slopes, lambda J: p.kappa * (J - 1.0) + 4.0 * p.d2 * (J - 1.0) ** 3
    )


def _starts(E, nu):
    K, mu = bulk_and_shear(E, nu)
    c = {"c10": 0.35 * mu, "c01": 0.15 * mu, "c20": 0.02 * mu, "c11": 0.01 * mu, "c02": 0.005 * mu}
    return {**c, "kappa": K, "d2": 0.1 * K}


def _lame(p):
    mu = 2.0 * (p.c10 + p.c01)
    return p.kappa - 2.0 / 3.0 * mu, mu


@energy(name="polynomial", units=_UNITS, stresses=_stresses, starts=_starts, lame=_lame)
def Polynomial(F, p):  # noqa: N802
    """All products of the invariants up to second degree."""
    i1, i2, J = isochoric(F)
    x, y = i1 - 3, i2 - 3
    shape = p.c10 * x + p.c01 * y + p.c20 * x**2 + p.c11 * x * y + p.c02 * y**2
    return shape + p.kappa / 2 * (J - 1) ** 2 + p.d2 * (J - 1) ** 4
