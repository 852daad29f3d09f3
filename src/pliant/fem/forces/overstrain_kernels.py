"""Kernels of forces that a strain of its own, kept in every cell's frame, exerts on the nodes.

With x = R^T (X + u) a cell's nodes seen in its frame R, from the first of them on, and y = x - X
(see fem.forces.corotation_kernels), y changes with the nodes as

    dy_a = R^T du_a - w x x_a,   w = L sum_a m_a x (R^T du_a),

and a force g in the frame, worth g . dy, is on the nodes

    f_a = R (g_a - l x m_a),    l = L sum_a x_a x g_a.

For g = K (c y + p), p given, the derivative of f is that of the corotated energy with c K for K and
this g. In a body whose cells do not turn R is their axes and L = 0.
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

import warp as wp

from pliant.fem.forces.cell_data import CellData
from pliant.fem.forces.cell_forces import place_forces, place_local, place_spun
from pliant.fem.forces.corotation_kernels import Frame, frame_at, rest_arm


@wp.func
def _frame(d: CellData, c: int, turns: int, u: wp.array(dtype=wp.vec3d)) -> Frame:
    f = Frame()
    if turns == 1:
        f = frame_at(d, c, u)
    else:
        f.R = d.axes
        f.S = wp.identity(n=3, dtype=wp.float64)
        f.L = wp.mat33d()
    return f


@wp.func
def _seen(d: CellData, c: int, a: int, R: wp.mat33d, u: wp.array(dtype=wp.vec3d)) -> wp.vec3d:
    """x_a, from the cell's first node on."""
    i = d.cells[c, a]
    first = d.cells[c, 0]
    return (d.positions[i] - d.positions[first] + u[i] - u[first]) * R


@wp.kernel
def local_displacements(
    first: wp.int32,
    d: CellData,
    turns: wp.int32,
    u: wp.array(dtype=wp.vec3d),
    out: wp.array2d(dtype=wp.vec3d),
):
    """out[c, a] = y_a."""
    c = first + wp.tid()
    f = _frame(d, c, turns, u)
    place_local(d, c, f.R, u, wp.float64(1.0), out)


@wp.kernel
def local_changes(
    first: wp.int32,
    d: CellData,
    turns: wp.int32,
    u: wp.array(dtype=wp.vec3d),
    d_u: wp.array(dtype=wp.vec3d),
    out: wp.array2d(dtype=wp.vec3d),
):
    """out[c, a] = dy_a."""
    c = first + wp.tid()
    f = _frame(d, c, turns, u)
    here = d.cells[c, 0]
    turn = wp.vec3d()
    for a in range(d.k):
        step = (d_u[d.cells[c, a]] - d_u[here]) * f.R
        turn += wp.cross(d.mean[d.row[c], a], step)
        out[c, a] = step
    w = f.L * turn
    for a in range(d.k):
        out[c, a] = out[c, a] - wp.cross(w, _seen(d, c, a, f.R, u))


@wp.kernel
def turned_forces(
    first: wp.int32,
    d: CellData,
    turns: wp.int32,
    u: wp.array(dtype=wp.vec3d),
    g: wp.array2d(dtype=wp.vec3d),
    out: wp.array2d(dtype=wp.vec3d),
):
    """out[c, a] = f_a: the transpose of `local_changes`."""
    c = first + wp.tid()
    f = _frame(d, c, turns, u)
    torque = wp.vec3d()
    total = wp.vec3d()
    for a in range(d.k):
        torque += wp.cross(_seen(d, c, a, f.R, u), g[c, a])
        total += g[c, a]
    l = f.L * torque
    for a in range(d.k):
        own = g[c, a] - wp.cross(l, d.mean[d.row[c], a])
        if a == 0:
            own -= total  # y is seen from there
        out[c, a] = f.R * own


@wp.kernel
def overstrain_forces(
    first: wp.int32,
    d: CellData,
    turns: wp.int32,
    u: wp.array(dtype=wp.vec3d),
    factor: wp.float64,
    past: wp.array2d(dtype=wp.vec3d),
    strain: wp.array2d(dtype=wp.vec3d),
    out: wp.array2d(dtype=wp.vec3d),
):
    """out[c, a] = f_a of g = K (factor y + past)."""
    c = first + wp.tid()
    f = _frame(d, c, turns, u)
    place_local(d, c, f.R, u, wp.float64(1.0), strain)
    for a in range(d.k):
        strain[c, a] = factor * strain[c, a] + past[c, a]
    place_forces(d, c, d.lam[c], d.mu[c], strain, out)
    torque = wp.vec3d()
    for a in range(d.k):
        torque += wp.cross(_seen(d, c, a, f.R, u), out[c, a])
    l = f.L * torque
    for a in range(d.k):
        out[c, a] = f.R * (out[c, a] - wp.cross(l, d.mean[d.row[c], a]))


@wp.kernel
def stiff_products(
    first: wp.int32,
    d: CellData,
    lam: wp.array(dtype=wp.float64),
    mu: wp.array(dtype=wp.float64),
    strain: wp.array2d(dtype=wp.vec3d),
    out: wp.array2d(dtype=wp.vec3d),
):
    """out[c, a] = sum_b K_ab strain_b for the moduli lam and mu."""
    c = first + wp.tid()
    place_forces(d, c, lam[c], mu[c], strain, out)


@wp.kernel
def overstrain_tangents(
    first: wp.int32,
    d: CellData,
    turns: wp.int32,
    u: wp.array(dtype=wp.vec3d),
    factor: wp.float64,
    g: wp.array2d(dtype=wp.vec3d),
    exact: wp.int32,
    local: wp.array2d(dtype=wp.vec3d),
    spun: wp.array2d(dtype=wp.vec3d),
    forces: wp.array2d(dtype=wp.vec3d),
    rotations: wp.array(dtype=wp.mat33d),
    spin: wp.array2d(dtype=wp.mat33d),
    bend: wp.array2d(dtype=wp.mat33d),
):
    """Rotations, and if exact W_a R^T and B_a R^T, of factor * K and the forces g in the frame."""
    c = first + wp.tid()
    f = _frame(d, c, turns, u)
    rotations[c] = f.R
    if exact == 1:
        place_local(d, c, f.R, u, wp.float64(1.0), local)
        unit = wp.identity(n=3, dtype=wp.float64)
        lam = factor * d.lam[c]
        mu = factor * d.mu[c]
        for a in range(d.k):
            bend[c, a] = wp.mat33d()
        if factor != wp.float64(0.0):
            for axis in range(3):
                place_spun(d, c, axis, local, spun)
                place_forces(d, c, lam, mu, spun, forces)
                e = wp.vec3d()
                e[axis] = wp.float64(-1.0)
                for a in range(d.k):
                    bend[c, a] = bend[c, a] + wp.outer(e, forces[c, a])
        torque = wp.vec3d()
        Q = wp.mat33d()
        for a in range(d.k):
            y = local[c, a]
            x = rest_arm(d, c, a) + y
            torque += wp.cross(x, g[c, a])
            Q += wp.outer(x, g[c, a]) - wp.dot(x, g[c, a]) * unit
            Q += wp.skew(y) * wp.transpose(bend[c, a])
            bend[c, a] = bend[c, a] - wp.skew(g[c, a])
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
def overstrain_changes(
    first: wp.int32,
    d: CellData,
    d_u: wp.array(dtype=wp.vec3d),
    factor: wp.float64,
    rotations: wp.array(dtype=wp.mat33d),
    spin: wp.array2d(dtype=wp.mat33d),
    bend: wp.array2d(dtype=wp.mat33d),
    local: wp.array2d(dtype=wp.vec3d),
    out: wp.array2d(dtype=wp.vec3d),
):
    """out[c, a] = change of f_a with the nodes, its parts as `overstrain_tangents` left them."""
    c = first + wp.tid()
    R = rotations[c]
    place_local(d, c, R, d_u, wp.float64(0.0), local)
    place_forces(d, c, factor * d.lam[c], factor * d.mu[c], local, out)
    w = wp.vec3d()
    b = wp.vec3d()
    for a in range(d.k):
        step = d_u[d.cells[c, a]]
        w += spin[c, a] * step
        b += bend[c, a] * step
    for a in range(d.k):
        out[c, a] = R * out[c, a] - b * spin[c, a] - w * bend[c, a]


@wp.kernel
def moduli_products(
    first: wp.int32,
    d: CellData,
    strain: wp.array2d(dtype=wp.vec3d),
    other: wp.array2d(dtype=wp.vec3d),
    forces: wp.array2d(dtype=wp.vec3d),
    out: wp.array(dtype=wp.vec2d),
):
    """out[c] = other . K strain for lambda = 1 alone, and for mu = 1 alone."""
    c = first + wp.tid()
    zero = wp.float64(0.0)
    one = wp.float64(1.0)
    place_forces(d, c, one, zero, strain, forces)
    by_lam = zero
    for a in range(d.k):
        by_lam += wp.dot(other[c, a], forces[c, a])
    place_forces(d, c, zero, one, strain, forces)
    by_mu = zero
    for a in range(d.k):
        by_mu += wp.dot(other[c, a], forces[c, a])
    out[c] = wp.vec2d(by_lam, by_mu)
