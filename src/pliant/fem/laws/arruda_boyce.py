"""Arruda-Boyce eight-chain rubber, five terms of the inverse Langevin function's series:

psi = mu sum over i = 1..5 of C_i / N^(i-1) (i1^i - 3^i) + kappa/2 ((J^2 - 1)/2 - ln J),
i1 = J^(-2/3) I1, C = 1/2, 1/20, 11/1050, 19/7000, 519/673750. mu, kappa [Pa]; N [1] is the number
of links of a chain, which locks at a stretch of sqrt(N).
"""

import numpy as np

from pliant.fem.laws.invariants import det, first_invariant
from pliant.fem.laws.isochoric_stress import isochoric_stresses
from pliant.fem.laws.law import bulk_and_shear, energy

SERIES = (1.0 / 2.0, 1.0 / 20.0, 11.0 / 1050.0, 19.0 / 7000.0, 519.0 / 673750.0)


def _slope(i1, p):
    terms = [k * C * (i1 / p.links) ** (k - 1) for k, C in enumerate(SERIES, start=1)]
    return p.mu * sum(terms)


def _stresses(a, b, c, p):
    return isochoric_stresses(
        a, b, c, lambda i1, i2: (_slope(i1, p), 0.0), lambda J: p.kappa / 2.0 * (J - 1.0 / J)
    )


def _starts(E, nu):
    K, mu = bulk_and_shear(E, nu)
    links = 8.0
    initial = 2.0 * sum(k * C * (3.0 / links) ** (k - 1) for k, C in enumerate(SERIES, start=1))
    return {"mu": mu / initial, "links": links, "kappa": K}


def _lame(p):
    mu = 2.0 * _slope(3.0, p)
    return p.kappa - 2.0 / 3.0 * mu, mu


@energy(
    name="arruda-boyce", units={"mu": "Pa", "links": "1", "kappa": "Pa"}, stresses=_stresses,
    starts=_starts, lame=_lame,
)  # fmt: skip
def ArrudaBoyce(F, p):  # noqa: N802
    """Chains that stiffen towards their full length."""
    J = det(F)
    i1 = J ** (-2.0 / 3.0) * first_invariant(F)
    out = p.kappa / 2 * ((J**2 - 1) / 2 - np.log(J))
    for k, C in enumerate(SERIES, start=1):
        out = out + p.mu * C * (i1**k - 3**k) / p.links ** (k - 1)
    return out
