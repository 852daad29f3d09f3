"""Isotropic Fung tissue: psi = mu / (2 b) (exp(b (J^(-2/3) I1 - 3)) - 1) + kappa/2 (J - 1)^2.

mu, kappa [Pa], b [1]; at small strain the shear modulus is mu, and b says how soon it stiffens.
"""

import numpy as np

from pliant.fem.laws.invariants import det, first_invariant
from pliant.fem.laws.isochoric_stress import isochoric_stresses
from pliant.fem.laws.law import bulk_and_shear, energy


def _stresses(a, b, c, p):
    return isochoric_stresses(
        a, b, c, lambda i1, i2: (p.mu / 2.0 * np.exp(p.b * (i1 - 3.0)), 0.0),
        lambda J: p.kappa * (J - 1.0),
    )  # fmt: skip


def _starts(E, nu):
    K, mu = bulk_and_shear(E, nu)
    return {"mu": mu, "b": 0.5, "kappa": K}


@energy(
    name="fung", units={"mu": "Pa", "b": "1", "kappa": "Pa"}, stresses=_stresses, starts=_starts,
    lame=lambda p: (p.kappa - 2.0 / 3.0 * p.mu, p.mu),
)  # fmt: skip
def Fung(F, p):  # noqa: N802
    """Exponential stiffening."""
    J = det(F)
    k = J ** (-2.0 / 3.0) * first_invariant(F) - 3
    return p.mu / (2 * p.b) * (np.exp(p.b * k) - 1) + p.kappa / 2 * (J - 1) ** 2
