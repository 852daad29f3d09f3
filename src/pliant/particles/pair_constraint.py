"""The stable neo-Hookean pair of constraints of a simplex, solved together.

The energy (Smith, de Goes, Kim 2018; as a pair of constraints: Macklin and Mueller 2021)

    psi = mu / 2 |F|^2 + l / 2 (det F - gamma)^2,   l = lambda + mu,   gamma = 1 + mu / l,

holds F itself with compliance 1 / (mu V) and det F - gamma with 1 / (l V). At rest neither is
zero: they balance each other, and taken one after the other they would pull a body out of its rest
shape. Their multipliers together are a stress, Q, which should be P = mu (F - C) + l (J - 1) C
with C = cof F, J = det F. A visit moves the nodes, of masses m_a and gradients B_a, by

    du_a = - V dt^2 (dQ B_a) / m_a

with Q + dQ near P + K dF, the balance of the simplex alone, its stiffness K bounded from above:
k = mu + |l (J - 1) - mu| s, with the largest stretch s of F, is what shear has at most, and
k + l |C|^2 what a change of volume has. (With k = mu, as the two constraints alone have it,
shear would be answered twice over: a stiff body crumples.) The exact answer to R = P - Q would be
dQ = R r, r = 1 / (1 + x) with x = k V dt^2 g, g the eigenvalues of G = sum B_a B_a^T / m_a. In a
body, neighbours hold most of the strain that a simplex alone would lose, so that this leaves the
body too soft, and r = 1 / sqrt(1 + x^2) too stiff, by about as much: r = (2 + x) / (2 + 2 x + x^2)
is near their mean. x r <= 1, a visit never overshoots. Gradients are taken along the directions in
which G is diagonal; Q starts at zero in each substep.
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

from dataclasses import dataclass

import numpy as np
import warp as wp

from pliant.core.launch import to_device, zeros
from pliant.particles.simplices import Simplices


@wp.struct
class PairData:
    """Simplices in the order of their colours, on the device.

    axes: F at rest, the directions of G; mobility: its eigenvalues; weight: V dt^2; kept:
    whether Q is kept for another visit.
    """

    nodes: wp.array2d(dtype=wp.int32)
    gradient: wp.array2d(dtype=wp.vec3d)
    axes: wp.array(dtype=wp.mat33d)
    mobility: wp.array(dtype=wp.vec3d)
    weight: wp.array(dtype=wp.float64)
    mu: wp.array(dtype=wp.float64)
    lam: wp.array(dtype=wp.float64)
    Q: wp.array(dtype=wp.mat33d)
    kept: wp.int32


@wp.func
def cofactor(F: wp.mat33d) -> wp.mat33d:
    """det(F) F^-T, of singular F too."""
    r0 = wp.vec3d(F[0, 0], F[0, 1], F[0, 2])
    r1 = wp.vec3d(F[1, 0], F[1, 1], F[1, 2])
    r2 = wp.vec3d(F[2, 0], F[2, 1], F[2, 2])
    return wp.matrix_from_rows(wp.cross(r1, r2), wp.cross(r2, r0), wp.cross(r0, r1))


@wp.func
def deformation(d: PairData, c: int, u: wp.array(dtype=wp.vec3d)) -> wp.mat33d:
    """F along the axes of G."""
    F = d.axes[c]
    for a in range(4):
        F += wp.outer(u[d.nodes[c, a]], d.gradient[c, a])
    return F


@wp.func
def largest_stretch(F: wp.mat33d) -> wp.float64:
    """A bound of the largest singular value, exact for rotations: of S = F^T F at most
    tr S / 3 + sqrt(2 / 3) |dev S| is an eigenvalue.
    """
    S = wp.transpose(F) * F
    third = wp.trace(S) / wp.float64(3.0)
    dev = wp.max(wp.ddot(S, S) - wp.float64(3.0) * third * third, wp.float64(0.0))
    return wp.sqrt(third + wp.sqrt(wp.float64(2.0 / 3.0) * dev))


@wp.func
def answered(x: wp.float64) -> wp.float64:
    """Share r of a stress that a visit puts on, x r <= 1 of the strain being taken away by it."""
    two = wp.float64(2.0)
    return (two + x) / (two + two * x + x * x)


@wp.kernel
def project_pairs(
    first: wp.int32,
    offset: wp.int32,
    d: PairData,
    inverse_mass: wp.array(dtype=wp.float64),
    free: wp.array(dtype=wp.vec3d),
    u: wp.array(dtype=wp.vec3d),
):
    """One colour's constraints, from `offset` on."""
    c = offset + first + wp.tid()
    mu = d.mu[c]
    lam = d.lam[c]
    F = deformation(d, c, u)
    C = cofactor(F)
    j = wp.determinant(F) - wp.float64(1.0)
    R = mu * (F - C) + (lam * j) * C
    k = mu + wp.abs(lam * j - mu) * largest_stretch(F)
    if d.kept == 1:
        R -= d.Q[c]
    one = wp.float64(1.0)
    w = d.weight[c]
    g = d.mobility[c]
    share = wp.vec3d()  # of the stress, by columns
    for l in range(3):
        share[l] = answered(k * w * g[l])
    CC = wp.float64(0.0)
    CG = wp.float64(0.0)
    along = wp.float64(0.0)
    own = wp.float64(0.0)
    for l in range(3):
        cr = C[0, l] * R[0, l] + C[1, l] * R[1, l] + C[2, l] * R[2, l]
        cc = C[0, l] * C[0, l] + C[1, l] * C[1, l] + C[2, l] * C[2, l]
        moved = g[l] * share[l]
        CC += cc
        CG += cc * g[l]
        along += cr * moved
        own += cc * moved
    if own > wp.float64(0.0):
        x = w * CG / CC
        R -= (along / own * (one - answered((k + lam * CC) * x) / answered(k * x))) * C
    dQ = wp.mat33d()
    for i in range(3):
        for l in range(3):
            dQ[i, l] = R[i, l] * share[l]
    if d.kept == 1:
        d.Q[c] = d.Q[c] + dQ
    for a in range(4):
        n = d.nodes[c, a]
        move = (-d.weight[c] * inverse_mass[n]) * (dQ * d.gradient[c, a])
        u[n] = u[n] + wp.cw_mul(free[n], move)


@wp.kernel
def clear_pairs(first: wp.int32, d: PairData):
    """Multipliers of a new substep."""
    c = first + wp.tid()
    d.Q[c] = wp.mat33d()


@dataclass
class PairTable:
    """Host side of the pairs: simplices in the order of their colours, moduli (s,) [Pa]."""

    parts: Simplices
    mu: np.ndarray
    lam: np.ndarray
    """l = lambda + mu."""

    def data(self, inverse_mass: np.ndarray, dt: float, *, kept: bool) -> PairData:
        """For substeps of dt [s], 1 / mass of the nodes (0: held)."""
        s = self.parts
        G = np.einsum("ca,cai,caj->cij", inverse_mass[s.nodes], s.gradients, s.gradients)
        mobility, axes = np.linalg.eigh(G)
        axes *= np.linalg.det(axes)[:, None, None]
        d = PairData()
        d.nodes = to_device(s.nodes, wp.int32)
        d.gradient = to_device(np.einsum("cai,cij->caj", s.gradients, axes), wp.vec3d)
        d.axes = to_device(axes, wp.mat33d)
        d.mobility = to_device(np.maximum(mobility, 0.0), wp.vec3d)
        d.weight = to_device(s.volumes * dt * dt, wp.float64)
        d.mu, d.lam = to_device(self.mu, wp.float64), to_device(self.lam, wp.float64)
        d.Q = zeros(len(s.nodes) if kept else 1, wp.mat33d)
        d.kept = int(kept)
        return d
