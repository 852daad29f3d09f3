"""Kernels of the corotated energy of a cell: forces, their change, and the parts of the tangent.

With the mean deformation gradient F = R S of a cell, X its nodes at rest and x = R^T (X + u) its
nodes seen in the cell's frame, y = x - X,

    E = 1/2 sum_ab y_a . K_ab y_b,    g_a = sum_b K_ab y_b,

K of fem.forces.cell_forces. R turns with the nodes, dR = R [w]x with w = sum_a W_a dx_a, dx seen in
the frame, W_a = L [m_a]x and L = (tr(S) I - S)^{-1}; so the force is not the warped g alone,

    f_a = R (g_a - l x m_a),    l = L tau,   tau = sum_a x_a x g_a            (Barbic 2012)

(tau vanishes where a cell only stretches: it comes from bending). Its derivative is symmetric,

    H_ab = R (K_ab - W_a^T B_b - B_a^T W_b) R^T,
    B_a  = -[g_a]x - (sum_b K_ab [y_b]x)^T - l (x) m_a + (l . m_a) I - Q W_a / 2,
    Q    = sym(sum_a (x_a (x) g_a - (x_a . g_a) I - [y_a]x sum_b K_ab [y_b]x) + [l]x S).

Without the pair W, B it is the warped stiffness, which is never negative.
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

import warp as wp

from pliant.fem.forces.cell_data import CellData, deformation_gradient
from pliant.fem.forces.cell_forces import (
    place_forces,
    place_local,
    place_spun,
    place_turned_lattice,
)
from pliant.fem.forces.cells import GRID
from pliant.fem.forces.polar import rotation, spin_matrix


@wp.struct
class Frame:
    """R, S and L of a cell."""

    R: wp.mat33d
    S: wp.mat33d
    L: wp.mat33d


@wp.func
def frame_at(d: CellData, c: int, u: wp.array(dtype=wp.vec3d)) -> Frame:
    """The frame of cell c at the displacement u."""
    F = deformation_gradient(d, c, u)
    f = Frame()
    f.R = rotation(F)
    S = wp.transpose(f.R) * F
    f.S = wp.float64(0.5) * (S + wp.transpose(S))
    f.L = spin_matrix(f.R, F)
    return f


@wp.func
def rest_arm(d: CellData, c: int, a: int) -> wp.vec3d:
    """X_a along the cell's own coordinates, from its first node on."""
    return (d.positions[d.cells[c, a]] - d.positions[d.cells[c, 0]]) * d.axes


@wp.func
def _place_corotated(
    d: CellData,
    c: int,
    f: Frame,
    lam: wp.float64,
    mu: wp.float64,
    local: wp.array2d(dtype=wp.vec3d),
    out: wp.array2d(dtype=wp.vec3d),
) -> wp.float64:
    """out[c, a] = the cell's forces for the moduli lam and mu; y in `local`. Returns E."""
    place_forces(d, c, lam, mu, local, out)
    torque = wp.vec3d()
    energy = wp.float64(0.0)
    for a in range(d.k):
        y = local[c, a]
        torque += wp.cross(rest_arm(d, c, a) + y, out[c, a])
        energy += wp.dot(y, out[c, a])
    l = f.L * torque
    for a in range(d.k):
        out[c, a] = f.R * (out[c, a] - wp.cross(l, d.mean[d.row[c], a]))
    return wp.float64(0.5) * energy


@wp.kernel
def corotated_forces(
    first: wp.int32,
    d: CellData,
    u: wp.array(dtype=wp.vec3d),
    lam: wp.array(dtype=wp.float64),
    mu: wp.array(dtype=wp.float64),
    local: wp.array2d(dtype=wp.vec3d),
    out: wp.array2d(dtype=wp.vec3d),
    energy: wp.array(dtype=wp.float64),
    stretch: wp.array(dtype=wp.float64),
):
    """out[c, a] = f_a of the cell; energy[c] = E, stretch[c] = det F."""
    c = first + wp.tid()
    f = frame_at(d, c, u)
    one = wp.float64(1.0)
    if d.kind == GRID:
        energy[c] = place_turned_lattice(d, c, f.R, f.L, lam[c], mu[c], u, one, out)
    else:
        place_local(d, c, f.R, u, one, local)
        energy[c] = _place_corotated(d, c, f, lam[c], mu[c], local, out)
    stretch[c] = wp.determinant(f.S)


@wp.kernel
def gather_two(
    first: wp.int32,
    d: CellData,
    forces: wp.array2d(dtype=wp.vec3d),
    factor: wp.float64,
    others: wp.array2d(dtype=wp.vec3d),
    other_factor: wp.float64,
    out: wp.array(dtype=wp.vec3d),
):
    """out[i] += factor * sum of the cells' forces on node i, and the same of the others."""
    i = first + wp.tid()
    total = wp.vec3d()
    rest = wp.vec3d()
    for e in range(d.incident_start[i], d.incident_start[i + 1]):
        c = d.incident[e] / d.k
        a = d.incident[e] - c * d.k
        total += forces[c, a]
        rest += others[c, a]
    out[i] = out[i] + (factor * total + other_factor * rest)


@wp.kernel
def corotated_pull(
    first: wp.int32,
    d: CellData,
    u: wp.array(dtype=wp.vec3d),
    y: wp.array(dtype=wp.vec3d),
    factor: wp.float64,
    local: wp.array2d(dtype=wp.vec3d),
    forces: wp.array2d(dtype=wp.vec3d),
    out: wp.array(dtype=wp.vec2d),
):
    """out[c] += factor * (y . f for lambda = 1 alone, y . f for mu = 1 alone)."""
    c = first + wp.tid()
    f = frame_at(d, c, u)
    place_local(d, c, f.R, u, wp.float64(1.0), local)
    zero = wp.float64(0.0)
    one = wp.float64(1.0)
    _energy = _place_corotated(d, c, f, one, zero, local, forces)
    by_lam = wp.float64(0.0)
    for a in range(d.k):
        by_lam += wp.dot(y[d.cells[c, a]], forces[c, a])
    _energy = _place_corotated(d, c, f, zero, one, local, forces)
    by_mu = wp.float64(0.0)
    for a in range(d.k):
        by_mu += wp.dot(y[d.cells[c, a]], forces[c, a])
    out[c] = out[c] + factor * wp.vec2d(by_lam, by_mu)


@wp.kernel
def corotated_tangents(
    first: wp.int32,
    d: CellData,
    u: wp.array(dtype=wp.vec3d),
    exact: wp.int32,
    local: wp.array2d(dtype=wp.vec3d),
    spun: wp.array2d(dtype=wp.vec3d),
    forces: wp.array2d(dtype=wp.vec3d),
    rotations: wp.array(dtype=wp.mat33d),
    spin: wp.array2d(dtype=wp.mat33d),
    bend: wp.array2d(dtype=wp.mat33d),
):
    """Rotations of the cells, and if exact W_a R^T and B_a R^T of their nodes."""
    c = first + wp.tid()
    f = frame_at(d, c, u)
    rotations[c] = f.R
    if exact == 1:
        place_local(d, c, f.R, u, wp.float64(1.0), local)
        unit = wp.identity(n=3, dtype=wp.float64)
        lam = d.lam[c]
        mu = d.mu[c]
        # columns of sum_b K_ab [y_b]x, kept as rows: bend is their negative transpose
        place_spun(d, c, 0, local, spun)
        place_forces(d, c, lam, mu, spun, forces)
        for a in range(d.k):
            bend[c, a] = wp.matrix_from_rows(-forces[c, a], wp.vec3d(), wp.vec3d())
        place_spun(d, c, 1, local, spun)
        place_forces(d, c, lam, mu, spun, forces)
        for a in range(d.k):
            bend[c, a] = bend[c, a] + wp.matrix_from_rows(wp.vec3d(), -forces[c, a], wp.vec3d())
        place_spun(d, c, 2, local, spun)
        place_forces(d, c, lam, mu, spun, forces)
        for a in range(d.k):
            bend[c, a] = bend[c, a] + wp.matrix_from_rows(wp.vec3d(), wp.vec3d(), -forces[c, a])
        place_forces(d, c, lam, mu, local, forces)
        torque = wp.vec3d()
        Q = wp.mat33d()
        for a in range(d.k):
            y = local[c, a]
            x = rest_arm(d, c, a) + y
            g = forces[c, a]
            torque += wp.cross(x, g)
            Q += wp.outer(x, g) - wp.dot(x, g) * unit + wp.skew(y) * wp.transpose(bend[c, a])
            bend[c, a] = bend[c, a] - wp.skew(g)
        l = f.L * torque
        Q += wp.skew(l) * f.S
        Q = wp.float64(0.25) * (Q + wp.transpose(Q))
        back = wp.transpose(f.R)
        for a in range(d.k):
            m = d.mean[d.row[c], a]
            W = f.L * wp.skew(m)
            B = bend[c, a] - wp.outer(l, m) + wp.dot(l, m) * unit - Q * W
            spin[c, a] = W * back
            bend[c, a] = B * back


@wp.kernel
def corotated_changes(
    first: wp.int32,
    d: CellData,
    u: wp.array(dtype=wp.vec3d),
    d_u: wp.array(dtype=wp.vec3d),
    rotations: wp.array(dtype=wp.mat33d),
    spin: wp.array2d(dtype=wp.mat33d),
    bend: wp.array2d(dtype=wp.mat33d),
    local: wp.array2d(dtype=wp.vec3d),
    out: wp.array2d(dtype=wp.vec3d),
):
    """out[c, a] = sum_b H_ab d_u_b of the cell, its parts as `corotated_tangents` left them."""
    c = first + wp.tid()
    R = rotations[c]
    place_local(d, c, R, d_u, wp.float64(0.0), local)
    place_forces(d, c, d.lam[c], d.mu[c], local, out)
    w = wp.vec3d()
    b = wp.vec3d()
    for a in range(d.k):
        step = d_u[d.cells[c, a]]
        w += spin[c, a] * step
        b += bend[c, a] * step
    for a in range(d.k):
        out[c, a] = R * out[c, a] - b * spin[c, a] - w * bend[c, a]
