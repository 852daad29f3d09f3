"""The largest time step of a scheme that is stable for short steps only."""

from typing import TYPE_CHECKING

import numpy as np

from pliant.core.errors import SolverFailure

if TYPE_CHECKING:
    from pliant.dynamics.implicit import ImplicitModel

POWER_STEPS = 60
"""Steps of the power method; the largest frequency is then known to a few per cent, from below."""

MARGIN = 1.05
"""What the power method may have missed."""


def largest_frequency(system: "ImplicitModel") -> float:
    """Angular frequency [1/s] of the stiffest motion of the body about its rest shape."""
    s = system
    s.assemble_rest()
    free = np.flatnonzero(s.boundary.free.reshape(-1))
    K = s.matrix.to_scipy().tocsr()[free][:, free]
    s.elasticity.assemble(s.matrix, s.inertia.mass, mass_factor=1.0, stiffness_factor=0.0)
    if s.inertia.ghost is not None:
        s.inertia.ghost.assemble(s.matrix, 1.0)
    M = s.matrix.to_scipy().tocsr()[free][:, free]
    return float(np.sqrt(largest_ratio(K, M)))


def largest_ratio(K, M) -> float:
    """Largest eigenvalue of K x = w M x, by the power method on M^-1 K."""
    from scipy.sparse.linalg import splu

    solve = splu(M.tocsc()).solve
    x = np.random.default_rng(0).standard_normal(K.shape[0])
    for _ in range(POWER_STEPS):
        x = solve(K @ x)
        x /= np.abs(x).max()
    return float(x @ (K @ x) / (x @ (M @ x)))


def require_stable(system: "ImplicitModel") -> None:
    """Refuse a time step beyond the limit of a conditionally stable scheme."""
    scheme = system.scene.integrator
    if not np.isfinite(scheme.stable_to):
        return
    sudden = float(np.sqrt(1.0 + system.branch_share))
    omega = MARGIN * sudden * largest_frequency(system)
    if omega * scheme.dt > scheme.stable_to:
        raise SolverFailure(
            f"{scheme.name} is stable for this body up to dt = {scheme.stable_to / omega:.2g} s, "
            f"and dt = {scheme.dt:g} s would explode: use a smaller time step, or an implicit "
            "scheme such as GeneralisedAlpha."
        )
