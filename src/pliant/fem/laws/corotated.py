"""Corotated linear elasticity as an energy: psi = mu sum (l_i - 1)^2 + lambda/2 (sum (l_i - 1))^2.

lambda, mu [Pa] are Lame's. Its force is the one of `model="corotated"` plus the turning of R with
F; uniaxial: P = E (l - 1) with lateral stretch 1 - nu (l - 1), exactly.
"""

from pliant.fem.laws.invariants import stretches
from pliant.fem.laws.law import energy, lame_of


def _stresses(a, b, c, p):
    trace = a + b + c - 3.0
    return tuple(2.0 * p.mu * (x - 1.0) + p.lam * trace for x in (a, b, c))


def _starts(E, nu):
    lam, mu = lame_of(E, nu)
    return {"lam": lam, "mu": mu}


@energy(
    name="corotated", units={"lam": "Pa", "mu": "Pa"}, stresses=_stresses, starts=_starts,
    lame=lambda p: (p.lam, p.mu),
)  # fmt: skip
def Corotated(F, p):  # noqa: N802
    """Quadratic in the stretches, inverted ones (a negative last stretch) included."""
    s = stretches(F)
    trace = s[0] + s[1] + s[2] - 3
    return p.mu * sum((x - 1) ** 2 for x in s) + p.lam / 2 * trace**2


def uniaxial(stretch, youngs_modulus):
    """Nominal stress of a bar with free sides, in closed form."""
    return youngs_modulus * (stretch - 1.0)
