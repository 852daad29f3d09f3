"""Stable neo-Hookean solid (Smith, de Goes and Kim 2018): defined and restoring for every F.

psi = m/2 (I1 - 3) + l/2 (J - a)^2 - m/2 ln((I1 + 1) / 4) - l/2 (1 - a)^2, a = 1 + 3 m / (4 l), with
m = 4/3 mu and l = lambda + 5/6 mu, so that lambda and mu [Pa] are Lame's at small strain.
"""

import numpy as np

from pliant.fem.laws.invariants import det, first_invariant
from pliant.fem.laws.law import energy, lame_of


def _constants(p):
    m, k = 4.0 / 3.0 * p.mu, p.lam + 5.0 / 6.0 * p.mu
    return m, k, 1.0 + 0.75 * m / k


def _stresses(a, b, c, p):
    m, k, rest = _constants(p)
    J, I1 = a * b * c, a * a + b * b + c * c
    return tuple(m * x * (1.0 - 1.0 / (I1 + 1.0)) + k * (J - rest) * J / x for x in (a, b, c))


def _starts(E, nu):
    lam, mu = lame_of(E, nu)
    return {"lam": lam, "mu": mu}


@energy(
    name="stable-neo-hookean", units={"lam": "Pa", "mu": "Pa"}, stresses=_stresses,
    starts=_starts, lame=lambda p: (p.lam, p.mu),
)  # fmt: skip
def StableNeoHookean(F, p):  # noqa: N802
    """Finite for collapsed and inverted cells."""
    m, k, rest = _constants(p)
    I1, J = first_invariant(F), det(F)
    volume = k / 2 * ((J - rest) ** 2 - (1 - rest) ** 2)
    return m / 2 * (I1 - 3) + volume - m / 2 * np.log((I1 + 1) / 4)
