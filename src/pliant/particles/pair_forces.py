"""Energy and forces of the stable neo-Hookean pair: what a step is measured by.

psi = mu / 2 (|F|^2 - 3) + l / 2 ((J - gamma)^2 - (1 - gamma)^2),   zero at rest,
P = mu F + l (J - gamma) cof F,   f_a = - V P B_a.
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

import numpy as np
import warp as wp

from pliant.core.launch import launch, to_device, zeros
from pliant.particles.gathering import Gathering
from pliant.particles.pair_constraint import cofactor
from pliant.particles.simplices import Simplices


@wp.func
def gradient_of(
    nodes: wp.array2d(dtype=wp.int32),
    gradient: wp.array2d(dtype=wp.vec3d),
    c: int,
    u: wp.array(dtype=wp.vec3d),
) -> wp.mat33d:
    """F - I."""
    D = wp.mat33d()
    for a in range(4):
        D += wp.outer(u[nodes[c, a]], gradient[c, a])
    return D


@wp.kernel
def _energies(
    first: wp.int32,
    nodes: wp.array2d(dtype=wp.int32),
    gradient: wp.array2d(dtype=wp.vec3d),
    volume: wp.array(dtype=wp.float64),
    mu: wp.array(dtype=wp.float64),
    lam: wp.array(dtype=wp.float64),
    u: wp.array(dtype=wp.vec3d),
    out: wp.array(dtype=wp.vec2d),
):
    """Energy [J] and det F; in D = F - I, so that nothing cancels near the rest."""
    c = first + wp.tid()
    half = wp.float64(0.5)
    D = gradient_of(nodes, gradient, c, u)
    C = cofactor(D)
    # det(I + D) - 1 = tr D + tr cof D + det D, the same sums in |F|^2 - 3 cancel its first order
    j = wp.trace(D) + wp.trace(C) + wp.determinant(D)
    shear = half * wp.ddot(D, D) - wp.trace(C) - wp.determinant(D)
    energy = volume[c] * (mu[c] * shear + half * lam[c] * j * j)
    out[c] = wp.vec2d(energy, wp.float64(1.0) + j)


@wp.kernel
def _corner_forces(
    first: wp.int32,
    nodes: wp.array2d(dtype=wp.int32),
    gradient: wp.array2d(dtype=wp.vec3d),
    volume: wp.array(dtype=wp.float64),
    mu: wp.array(dtype=wp.float64),
    lam: wp.array(dtype=wp.float64),
    u: wp.array(dtype=wp.vec3d),
    out: wp.array2d(dtype=wp.vec3d),
):
    c = first + wp.tid()
    D = gradient_of(nodes, gradient, c, u)
    F = wp.identity(n=3, dtype=wp.float64) + D
    C = cofactor(F)
    # P = mu (F - C) + l (J - 1) C, as l (gamma - 1) = mu
    j = wp.trace(D) + wp.trace(cofactor(D)) + wp.determinant(D)
    P = mu[c] * (F - C) + lam[c] * j * C
    for a in range(4):
        out[c, a] = -volume[c] * (P * gradient[c, a])


class PairForces:
    """Elastic energy and forces of simplices; mu, lam (l = lambda + mu): (s,) [Pa]."""

    def __init__(self, parts: Simplices, mu: np.ndarray, lam: np.ndarray, node_count: int):
        self._count = len(parts.nodes)
        self._inputs = [
            to_device(parts.nodes, wp.int32), to_device(parts.gradients, wp.vec3d),
            to_device(parts.volumes, wp.float64), to_device(mu, wp.float64),
            to_device(lam, wp.float64),
        ]  # fmt: skip
        self.size = 0.0
        """Norm [N] of the forces of the simplices on their corners, when they were last asked."""
        self._energy = zeros(self._count, wp.vec2d)
        self._corner = zeros((self._count, 4), wp.vec3d)
        self._gathering = Gathering(parts, node_count)

    def energies(self, u: wp.array) -> tuple[np.ndarray, np.ndarray]:
        """Energy [J] and det F of each simplex."""
        launch(_energies, self._count, [*self._inputs, u, self._energy])
        found = self._energy.numpy()
        return found[:, 0], found[:, 1]

    def at(self, u: wp.array) -> np.ndarray:
        """Elastic forces on the nodes, (nodes, 3) [N]."""
        launch(_corner_forces, self._count, [*self._inputs, u, self._corner])
        self.size = float(np.linalg.norm(self._corner.numpy()))
        return self._gathering.sums(self._corner)
