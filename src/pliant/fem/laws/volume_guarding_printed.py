"""Seed 004, eq. 4.38, letter by letter (see `volume_guarding` for the law its text describes):

psi = mu (J^(-2/3) I1 - 3) + lambda/2 ln^2(1 - 4 (J - 1)^2).

mu, lambda [Pa]. The second term keeps J between 1/2 and 3/2, but it is of fourth order in J - 1: at
small strain the shear modulus is 2 mu and the bulk modulus zero, so E = 0 and nu = -1 there.
"""

import numpy as np

from pliant.fem.laws.invariants import det, first_invariant
from pliant.fem.laws.isochoric_stress import isochoric_stresses
from pliant.fem.laws.law import bulk_and_shear, energy

SECANT_AT = 0.01
"""Change of volume at which `from_moduli` gives the law its bulk modulus, having none at rest."""


def _stresses(a, b, c, p):
    def pressure(J):
        q = 1.0 - 4.0 * (J - 1.0) ** 2
        return p.lam * np.log(q) * (-8.0 * (J - 1.0)) / q

    return isochoric_stresses(a, b, c, lambda i1, i2: (p.mu, 0.0), pressure)


def _starts(E, nu):
    bulk, mu = bulk_and_shear(E, nu)
    q = 1.0 - 4.0 * SECANT_AT**2
    return {"mu": mu / 2.0, "lam": -bulk * q / (8.0 * np.log(q))}


@energy(
    name="volume-guarding-printed", units={"mu": "Pa", "lam": "Pa"}, stresses=_stresses,
    starts=_starts, lame=lambda p: (-4.0 / 3.0 * p.mu + 0.0 * p.lam, 2.0 * p.mu),
)  # fmt: skip
def VolumeGuardingPrinted(F, p):  # noqa: N802
    """A wall at half and one and a half times the volume, nothing in the middle."""
    J = det(F)
    shape = p.mu * (J ** (-2.0 / 3.0) * first_invariant(F) - 3)
    return shape + p.lam / 2 * np.log(1 - 4 * (J - 1) ** 2) ** 2
