"""Ogden rubber with two terms, in the isochoric stretches m_i = J^(-1/3) l_i:

psi = sum over k = 1, 2 of mu_k / alpha_k (m_1^alpha_k + m_2^alpha_k + m_3^alpha_k - 3)
      + kappa/2 (J - 1)^2.

mu_k, kappa [Pa], alpha_k [1]; at small strain mu = (mu_1 alpha_1 + mu_2 alpha_2) / 2.
"""

from pliant.fem.laws.invariants import stretches
from pliant.fem.laws.law import bulk_and_shear, energy

_UNITS = {"mu1": "Pa", "alpha1": "1", "mu2": "Pa", "alpha2": "1", "kappa": "Pa"}


def _stresses(a, b, c, p):
    J = a * b * c
    r = J ** (-1.0 / 3.0)
    out = [p.kappa * (J - 1.0) * J / x for x in (a, b, c)]
    for m, k in ((p.mu1, p.alpha1), (p.mu2, p.alpha2)):
        powers = [(r * x) ** k for x in (a, b, c)]
        mean = sum(powers) / 3.0
        out = [P + m * (q - mean) / x for P, q, x in zip(out, powers, (a, b, c), strict=True)]
    return tuple(out)


def _starts(E, nu):
    K, mu = bulk_and_shear(E, nu)
    # two thirds of the shear modulus at alpha = 2, a third at alpha = -2
    return {"mu1": 2.0 * mu / 3.0, "alpha1": 2.0, "mu2": -mu / 3.0, "alpha2": -2.0, "kappa": K}


def _lame(p):
    mu = 0.5 * (p.mu1 * p.alpha1 + p.mu2 * p.alpha2)
    return p.kappa - 2.0 / 3.0 * mu, mu


@energy(name="ogden", units=_UNITS, stresses=_stresses, starts=_starts, lame=_lame)
def Ogden(F, p):  # noqa: N802
    """Powers of the stretches."""
    s = stretches(F)
    J = s[0] * s[1] * s[2]
    r = J ** (-1.0 / 3.0)
    out = p.kappa / 2 * (J - 1) ** 2
    for m, k in ((p.mu1, p.alpha1), (p.mu2, p.alpha2)):
        out = out + m / k * (sum((r * x) ** k for x in s) - 3)
    return out
