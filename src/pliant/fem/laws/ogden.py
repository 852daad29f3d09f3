"""Ogden rubber with two or three terms, in the isochoric stretches m_i = J^(-1/3) l_i:

psi = sum over k of mu_k / alpha_k (m_1^alpha_k + m_2^alpha_k + m_3^alpha_k - 3)
      + kappa/2 (J - 1)^2.

mu_k, kappa [Pa], alpha_k [1]; at small strain mu = (sum over k of mu_k alpha_k) / 2. Two terms do
for moderate stretches; three follow vulcanised rubber to sevenfold length (Ogden 1972).
"""

from pliant.fem.laws.invariants import stretches
from pliant.fem.laws.law import Energy, bulk_and_shear, energy


def _ogden(name: str, shares: tuple[tuple[float, float], ...], summary: str) -> Energy:
    """shares: (mu_k / mu, alpha_k) of each term where a law starts from E and nu."""
    numbers = range(1, len(shares) + 1)
    units = {f"{n}{k}": u for k in numbers for n, u in (("mu", "Pa"), ("alpha", "1"))}

    def terms(p):
        return [(getattr(p, f"mu{k}"), getattr(p, f"alpha{k}")) for k in numbers]

    def stresses(a, b, c, p):
        J = a * b * c
        r = J ** (-1.0 / 3.0)
        out = [p.kappa * (J - 1.0) * J / x for x in (a, b, c)]
        for m, k in terms(p):
            powers = [(r * x) ** k for x in (a, b, c)]
            mean = sum(powers) / 3.0
            out = [P + m * (q - mean) / x for P, q, x in zip(out, powers, (a, b, c), strict=True)]
        return tuple(out)

    def starts(E, nu):
        K, mu = bulk_and_shear(E, nu)
        out = {}
        for k, (share, alpha) in enumerate(shares, start=1):
            out |= {f"mu{k}": share * mu, f"alpha{k}": alpha}
        return {**out, "kappa": K}

    def lame(p):
        mu = 0.5 * sum(m * k for m, k in terms(p))
        return p.kappa - 2.0 / 3.0 * mu, mu

    def psi(F, p):
        s = stretches(F)
        J = s[0] * s[1] * s[2]
        r = J ** (-1.0 / 3.0)
        out = p.kappa / 2 * (J - 1) ** 2
        for m, k in terms(p):
            out = out + m / k * (sum((r * x) ** k for x in s) - 3)
        return out

    psi.__doc__ = summary
    units["kappa"] = "Pa"
    return energy(name=name, units=units, stresses=stresses, starts=starts, lame=lame)(psi)


# two thirds of the shear modulus at alpha = 2, a third at alpha = -2
Ogden = _ogden("ogden", ((2.0 / 3.0, 2.0), (-1.0 / 3.0, -2.0)), "Powers of the stretches.")

# the exponents and shares of Ogden 1972 for Treloar's rubber, rounded
Ogden3 = _ogden(
    "ogden-3", ((1.91 / 1.3, 1.3), (0.004, 5.0), (-0.035, -2.0)), "Three powers of the stretches."
)
