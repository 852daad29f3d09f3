"""St. Venant-Kirchhoff: Hooke's law between Green strain and second Piola-Kirchhoff stress.

psi = lambda/2 tr(E)^2 + mu tr(E^2), E = (F^T F - I) / 2. lambda, mu [Pa] are Lame's.
Uniaxial: P = E l (l^2 - 1) / 2 with lateral stretch sqrt(1 - nu (l^2 - 1)); it softens below
l = 1 / sqrt 3 and resists no collapse, so large compressions want `invertible=True`.
"""

from pliant.fem.laws.invariants import first_invariant, second_invariant
from pliant.fem.laws.law import energy, lame_of


def _stresses(a, b, c, p):
    trace = 0.5 * (a * a + b * b + c * c - 3.0)
    return tuple(x * (p.lam * trace + p.mu * (x * x - 1.0)) for x in (a, b, c))


def _starts(E, nu):
    lam, mu = lame_of(E, nu)
    return {"lam": lam, "mu": mu}


@energy(
    name="st-venant-kirchhoff", units={"lam": "Pa", "mu": "Pa"}, stresses=_stresses,
    starts=_starts, lame=lambda p: (p.lam, p.mu),
    stress_code="""
    C = wp.transpose(F) * F
    I = wp.identity(n=3, dtype=wp.float64)
    t = wp.float64(0.5) * (wp.trace(C) - wp.float64(3.0))
    return F * ((p_lam * t - p_mu) * I + p_mu * C)
    """,
)  # fmt: skip
def StVenantKirchhoff(F, p):  # noqa: N802
    """Strain energy of the Green strain: tr E = (I1 - 3)/2, tr E^2 = (I1^2 - 2 I2 - 2 I1 + 3)/4."""
    I1, I2 = first_invariant(F), second_invariant(F)
    return p.lam / 8 * (I1 - 3) ** 2 + p.mu / 4 * (I1**2 - 2 * I2 - 2 * I1 + 3)


def uniaxial(stretch, youngs_modulus):
    """Nominal stress of a bar with free sides, in closed form."""
    return youngs_modulus * stretch * (stretch**2 - 1.0) / 2.0
