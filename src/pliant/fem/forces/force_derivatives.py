"""Derivatives of the elastic forces of `elasticity` by rotations and moduli.

A rotation changes by dR = R [t]x with the spin t of its cell. With y and g of `cell_forces`,

    df_a = R (S t + dlam g_lam + dmu g_mu),   g = lam g_lam + mu g_mu = sum_b K_ab y_b,
    S t  = t x g + sum_b K_ab (y_b x t):

the rest shape has no part in S, because K does not see a rotation of it. The sums over pairs of
nodes are taken once for all directions, so that many cost little more than one.
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

import warp as wp

from pliant.core.launch import launch, zeros
from pliant.fem.forces.cell_data import (
    HEAVY,
    CellData,
    deformation_gradient,
    frame_adjoint,
    frame_derivative,
)
from pliant.fem.forces.cell_forces import place_forces, place_local, place_spun
from pliant.fem.forces.polar import axial


@wp.struct
class ForceParts:
    """What the cells' forces on their nodes (cells, k) are made of, each in its cell's frame.

    y: the field; by_lam, by_mu: forces for one modulus alone; spun: scratch; by_x, by_y, by_z: the
    columns of S, the change of the force by a spin of the frame.
    """

    y: wp.array2d(dtype=wp.vec3d)
    spun: wp.array2d(dtype=wp.vec3d)
    by_lam: wp.array2d(dtype=wp.vec3d)
    by_mu: wp.array2d(dtype=wp.vec3d)
    by_x: wp.array2d(dtype=wp.vec3d)
    by_y: wp.array2d(dtype=wp.vec3d)
    by_z: wp.array2d(dtype=wp.vec3d)


@wp.kernel
def _force_parts(
    first: wp.int32,
    d: CellData,
    w: wp.array(dtype=wp.vec3d),
    s: wp.float64,
    p: ForceParts,
):
    c = first + wp.tid()
    zero = wp.float64(0.0)
    one = wp.float64(1.0)
    place_local(d, c, d.rotations[c], w, s, p.y)
    place_forces(d, c, one, zero, p.y, p.by_lam)
    place_forces(d, c, zero, one, p.y, p.by_mu)
    place_spun(d, c, 0, p.y, p.spun)
    place_forces(d, c, d.lam[c], d.mu[c], p.spun, p.by_x)
    place_spun(d, c, 1, p.y, p.spun)
    place_forces(d, c, d.lam[c], d.mu[c], p.spun, p.by_y)
    place_spun(d, c, 2, p.y, p.spun)
    place_forces(d, c, d.lam[c], d.mu[c], p.spun, p.by_z)
    for a in range(d.k):
        g = d.lam[c] * p.by_lam[c, a] + d.mu[c] * p.by_mu[c, a]
        p.by_x[c, a] = p.by_x[c, a] + wp.vec3d(zero, -g[2], g[1])
        p.by_y[c, a] = p.by_y[c, a] + wp.vec3d(g[2], zero, -g[0])
        p.by_z[c, a] = p.by_z[c, a] + wp.vec3d(-g[1], g[0], zero)


def _parts(data: CellData, w: wp.array, s: float) -> ForceParts:
    p = ForceParts()
    for name in ("y", "spun", "by_lam", "by_mu", "by_x", "by_y", "by_z"):
        setattr(p, name, zeros(data.cells.shape, wp.vec3d))
    launch(_force_parts, data.cells.shape[0], [data, w, s, p], grain=HEAVY)
    return p


@wp.kernel
def _spins(
    first: wp.int32,
    d: CellData,
    turned: wp.array(dtype=wp.vec3d),
    d_turned: wp.array2d(dtype=wp.vec3d),
    spins: wp.array2d(dtype=wp.vec3d),
):
    """t of every cell and direction."""
    c = first + wp.tid()
    R = d.rotations[c]
    F = deformation_gradient(d, c, turned)
    for j in range(d_turned.shape[1]):
        dF = wp.mat33d()
        for a in range(d.k):
            dF += wp.outer(d_turned[d.cells[c, a], j], d.mean[d.row[c], a])
        spins[c, j] = axial(wp.transpose(R) * frame_derivative(d, R, F, dF))


@wp.kernel
def _force_tangents(
    first: wp.int32,
    d: CellData,
    p: ForceParts,
    spins: wp.array2d(dtype=wp.vec3d),
    d_lam: wp.array2d(dtype=wp.float64),
    d_mu: wp.array2d(dtype=wp.float64),
    factor: wp.float64,
    out: wp.array2d(dtype=wp.vec3d),
):
    i = first + wp.tid()
    for e in range(d.incident_start[i], d.incident_start[i + 1]):
        c = d.incident[e] / d.k
        a = d.incident[e] - c * d.k
        R = factor * d.rotations[c]
        for j in range(out.shape[1]):
            t = spins[c, j]
            change = d_lam[c, j] * p.by_lam[c, a] + d_mu[c, j] * p.by_mu[c, a]
            change += t[0] * p.by_x[c, a] + t[1] * p.by_y[c, a] + t[2] * p.by_z[c, a]
            out[i, j] = out[i, j] + R * change


def add_force_tangents(
    data: CellData,
    w: wp.array,
    s: float,
    turned: wp.array | None,
    d_turned: wp.array,
    d_lam: wp.array,
    d_mu: wp.array,
    out: wp.array,
    factor: float,
) -> None:
    """out += factor * df, (nodes, directions); turned: None if the rotations stay."""
    cells = data.cells.shape[0]
    spins = zeros((cells, out.shape[1]), wp.vec3d)
    if turned is not None:
        launch(_spins, cells, [data, turned, d_turned, spins], grain=HEAVY)
    launch(
        _force_tangents,
        out.shape[0],
        [data, _parts(data, w, s), spins, d_lam, d_mu, factor, out],
        grain=HEAVY,
    )


@wp.kernel
def _force_adjoint(
    first: wp.int32,
    d: CellData,
    p: ForceParts,
    turned: wp.array(dtype=wp.vec3d),
    corotated: wp.int32,
    f_bar: wp.array(dtype=wp.vec3d),
    lam_bar: wp.array(dtype=wp.float64),
    mu_bar: wp.array(dtype=wp.float64),
    turned_bar: wp.array2d(dtype=wp.vec3d),
):
    c = first + wp.tid()
    R = d.rotations[c]
    by_lam = wp.float64(0.0)
    by_mu = wp.float64(0.0)
    spin_bar = wp.vec3d()
    for a in range(d.k):
        bar = f_bar[d.cells[c, a]] * R
        by_lam += wp.dot(bar, p.by_lam[c, a])
        by_mu += wp.dot(bar, p.by_mu[c, a])
        spin_bar += wp.vec3d(
            wp.dot(bar, p.by_x[c, a]), wp.dot(bar, p.by_y[c, a]), wp.dot(bar, p.by_z[c, a])
        )
    lam_bar[c] = lam_bar[c] + by_lam
    mu_bar[c] = mu_bar[c] + by_mu
    if corotated == 1:
        F = deformation_gradient(d, c, turned)
        R_bar = R * wp.skew(wp.float64(0.5) * spin_bar)  # <R_bar, R [t]x> = spin_bar . t
        F_bar = frame_adjoint(d, R, F, R_bar)
        for a in range(d.k):
            turned_bar[c, a] = F_bar * d.mean[d.row[c], a]


def add_force_adjoint(
    data: CellData,
    w: wp.array,
    s: float,
    turned: wp.array | None,
    f_bar: wp.array,
    lam_bar: wp.array,
    mu_bar: wp.array,
    turned_bar: wp.array,
) -> None:
    """Transpose of `add_force_tangents`: adds to the moduli's duals.

    Each cell's share of the dual of `turned` is put into turned_bar, (cells, nodes of a cell).
    """
    cells = data.cells.shape[0]
    at, corotated = (w, 0) if turned is None else (turned, 1)
    launch(
        _force_adjoint,
        cells,
        [data, _parts(data, w, s), at, corotated, f_bar, lam_bar, mu_bar, turned_bar],
        grain=HEAVY,
    )
