"""A law that guards its volume, after seed 004, eq. 4.38, read with the root that its text needs:

psi = mu (J^(-2/3) I1 - 3) + lambda/2 ln^2(1 - sqrt(4 (J - 1)^2)),  sqrt(4 (J - 1)^2) = 2 |J - 1|.

mu, lambda [Pa]. The second term is 2 lambda (J - 1)^2 at small strain and a wall at J = 1/2 and at
3/2: shear modulus 2 mu, bulk modulus 4 lambda.

Why the root. The seed says that the term pushes back harder than (J - 1)^2 wherever J leaves 1, and
that a box of volume 0.64 pressed by 65 % keeps 0.63 against the 0.61 of stable neo-Hookean. As
printed, ln^2(1 - 4 (J - 1)^2) = 16 (J - 1)^4 + ..., weaker than (J - 1)^2 up to |J - 1| = 0.16 and
without any bulk modulus at rest: at nu = 0.49, slippery plates and equal lambda and mu it keeps
0.573. With the root, whose one-variable twin ln^2(1 - sqrt((x - 1)^2)) the seed studies beside its
eq. 4.32, the same box keeps 0.634 against 0.611. The printed form is `volume_guarding_printed`.
"""

import numpy as np

from pliant.fem.laws.invariants import det, first_invariant
from pliant.fem.laws.isochoric_stress import isochoric_stresses
from pliant.fem.laws.law import bulk_and_shear, energy


def _stresses(a, b, c, p):
    def pressure(J):
        q = 1.0 - 2.0 * np.abs(J - 1.0)
        return -2.0 * p.lam * np.sign(J - 1.0) * np.log(q) / q

    return isochoric_stresses(a, b, c, lambda i1, i2: (p.mu, 0.0), pressure)


def _starts(E, nu):
    bulk, mu = bulk_and_shear(E, nu)
    return {"mu": mu / 2.0, "lam": bulk / 4.0}


@energy(
    name="volume-guarding", units={"mu": "Pa", "lam": "Pa"}, stresses=_stresses, starts=_starts,
    lame=lambda p: (4.0 * p.lam - 4.0 / 3.0 * p.mu, 2.0 * p.mu),
)  # fmt: skip
def VolumeGuarding(F, p):  # noqa: N802
    """Walls at half and one and a half times the volume, with a bulk modulus at rest."""
    J = det(F)
    shape = p.mu * (J ** (-2.0 / 3.0) * first_invariant(F) - 3)
    return shape + p.lam / 2 * np.log(1 - 2 * np.sqrt((J - 1) ** 2)) ** 2
