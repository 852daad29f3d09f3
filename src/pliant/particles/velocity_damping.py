"""Stiffness damping of particles: once a step, the velocities lose what the strain rates take.

With Green's strain rate e = sym(F^T grad v) of each simplex and the stress 2 mu e + lambda tr(e) I,

    (M + dt beta D) v' = M v,   D v = sum V F (2 mu e + lambda tr(e) I) B_a,

a step of implicit Euler for the damping alone, solved by conjugate gradients preconditioned with
the masses. D is symmetric, has no energy in a rigid motion of the body as it is, and so takes
neither momentum nor angular momentum. Held components keep their velocity.
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

import numpy as np
import warp as wp

from pliant.core.launch import launch, to_device, zeros
from pliant.particles.gathering import Gathering
from pliant.particles.pair_forces import gradient_of
from pliant.particles.simplices import Simplices

TOLERANCE = 1e-6
"""Residual of the solve, relative to M v in the norm of 1 / M."""

MOST_ITERATIONS = 300


@wp.kernel
def _viscous(
    first: wp.int32,
    nodes: wp.array2d(dtype=wp.int32),
    gradient: wp.array2d(dtype=wp.vec3d),
    volume: wp.array(dtype=wp.float64),
    mu: wp.array(dtype=wp.float64),
    lam: wp.array(dtype=wp.float64),
    u: wp.array(dtype=wp.vec3d),
    v: wp.array(dtype=wp.vec3d),
    out: wp.array2d(dtype=wp.vec3d),
):
    c = first + wp.tid()
    F = wp.identity(n=3, dtype=wp.float64) + gradient_of(nodes, gradient, c, u)
    A = wp.transpose(F) * gradient_of(nodes, gradient, c, v)
    S = mu[c] * (A + wp.transpose(A)) + lam[c] * wp.trace(A) * wp.identity(n=3, dtype=wp.float64)
    P = volume[c] * (F * S)
    for a in range(4):
        out[c, a] = P * gradient[c, a]


class VelocityDamping:
    """mu, lam: (s,) Lame's constants [Pa]; free: (nodes, 3), 0 where held."""

    def __init__(self, parts: Simplices, mu: np.ndarray, lam: np.ndarray, free: np.ndarray):
        self._count, self._free = len(parts.nodes), free
        self._inputs = [
            to_device(parts.nodes, wp.int32), to_device(parts.gradients, wp.vec3d),
            to_device(parts.volumes, wp.float64), to_device(mu, wp.float64),
            to_device(np.maximum(lam, 0.0), wp.float64),
        ]  # fmt: skip
        self._gathering = Gathering(parts, len(free))
        self._corner = zeros((self._count, 4), wp.vec3d)

    def _product(self, u: wp.array, v: np.ndarray) -> np.ndarray:
        launch(_viscous, self._count, [*self._inputs, u, to_device(v, wp.vec3d), self._corner])
        return self._gathering.sums(self._corner)

    def damped(self, u: wp.array, v: np.ndarray, masses: np.ndarray, time: float) -> np.ndarray:
        """v' for time = dt beta [s^2]."""
        m, free = masses[:, None], self._free
        x = v.copy()
        r = -time * self._product(u, x) * free
        z = r / m
        p, rz = z, float(np.sum(r * z))
        target = TOLERANCE**2 * float(np.sum(m * v * v))
        for _ in range(MOST_ITERATIONS):
            if not rz > target:
                break
            q = (m * p + time * self._product(u, p)) * free
            step = rz / float(np.sum(p * q))
            x, r = x + step * p, r - step * q
            z = r / m
            before, rz = rz, float(np.sum(r * z))
            p = z + (rz / before) * p
        return x
