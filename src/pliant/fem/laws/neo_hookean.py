"""Compressible neo-Hookean solid: psi = mu/2 (I1 - 3) - mu ln J + lambda/2 ln^2 J.

lambda, mu [Pa] are Lame's. P_i = mu (l_i - 1/l_i) + lambda ln J / l_i. Not defined for J <= 0:
`invertible=True` continues it.
"""

import numpy as np

from pliant.fem.laws.invariants import det, first_invariant
from pliant.fem.laws.law import energy, lame_of


def _stresses(a, b, c, p):
    log_J = np.log(a * b * c)
    return tuple(p.mu * (x - 1.0 / x) + p.lam * log_J / x for x in (a, b, c))


def _starts(E, nu):
    lam, mu = lame_of(E, nu)
    return {"lam": lam, "mu": mu}


@energy(
    name="neo-hookean", units={"lam": "Pa", "mu": "Pa"}, stresses=_stresses, starts=_starts,
    lame=lambda p: (p.lam, p.mu),
    stress_code="""
    J = wp.determinant(F)
    r0 = wp.vec3d(F[0, 0], F[0, 1], F[0, 2])
    r1 = wp.vec3d(F[1, 0], F[1, 1], F[1, 2])
    r2 = wp.vec3d(F[2, 0], F[2, 1], F[2, 2])
    C = wp.matrix_from_rows(wp.cross(r1, r2), wp.cross(r2, r0), wp.cross(r0, r1))
    return p_mu * F + ((p_lam * wp.log(J) - p_mu) / J) * C
    """,
)  # fmt: skip
def NeoHookean(F, p):  # noqa: N802
    """The energy of verification tables: stretches free, volume by ln^2 J."""
    log_J = np.log(det(F))
    return p.mu / 2 * (first_invariant(F) - 3) - p.mu * log_J + p.lam / 2 * log_J**2
