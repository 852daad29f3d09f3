"""Derivatives of the elastic forces of `elasticity` by rotations and moduli.

A rotation changes by dR = R [t]x with the spin t of its cell. With y_b as in `elasticity` and the
tensor T_ijk = sum_b (G_ab)_ij (y_b)_k of a node a of the cell,

    df_a = R (S t + dlam g_lam + dmu g_mu),   g = lam g_lam + mu g_mu = sum_b K_ab y_b,
    S t  = t x g + sum_b K_ab (y_b x t):

the rest shape has no part in S, because K does not see a rotation of it. T is summed once for all
directions, so that many cost little more than one.
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

import warp as wp

from pliant.core.block_products import NineByThree, outer_sum
from pliant.core.launch import launch, zeros
from pliant.fem.cell_data import (
    HEAVY,
    CellData,
    deformation_gradient,
    frame_adjoint,
    frame_derivative,
    products,
)
from pliant.fem.cells import GRID, mean_gradient
from pliant.fem.polar import axial


@wp.struct
class NodeForce:
    """What a cell's force on one of its nodes is made of, in the cell's own frame."""

    by_lam: wp.vec3d
    by_mu: wp.vec3d
    by_spin: wp.mat33d


@wp.kernel
def _local_fields(
    first: wp.int32,
    d: CellData,
    w: wp.array(dtype=wp.vec3d),
    s: wp.float64,
    local: wp.array2d(dtype=wp.vec3d),
):
    """y_b of every cell."""
    c = first + wp.tid()
    R = d.rotations[c]
    origin = d.positions[d.cells[c, 0]]
    for b in range(d.k):
        i = d.cells[c, b]
        X = d.positions[i] - origin
        local[c, b] = w[i] * R + s * (X * R - X)


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
            g = mean_gradient(d.kind, d.table, d.row[c], a, d.centre_gradient)
            dF += wp.outer(d_turned[d.cells[c, a], j], g)
        spins[c, j] = axial(wp.transpose(R) * frame_derivative(d, R, F, dF))


@wp.func
def _node_force(d: CellData, c: int, a: int, local: wp.array2d(dtype=wp.vec3d)) -> NodeForce:
    T = NineByThree()  # T_ijk = T[3 i + j, k]
    row = d.row[c]
    if d.kind == GRID:
        pair = a * d.k
        table_row = row * d.table.shape[1]
        T = outer_sum(d.table, table_row, d.places, d.signs, pair, d.k, local, c * d.k)
    else:
        for b in range(d.k):
            G = products(d, row, a, b)
            y = local[c, b]
            for i in range(3):
                for j in range(3):
                    for k in range(3):
                        T[3 * i + j, k] += G[i, j] * y[k]
    trace = wp.vec3d(
        T[0, 0] + T[4, 0] + T[8, 0],
        T[0, 1] + T[4, 1] + T[8, 1],
        T[0, 2] + T[4, 2] + T[8, 2],
    )
    out = NodeForce()
    out.by_lam = wp.vec3d(
        T[0, 0] + T[1, 1] + T[2, 2], T[3, 0] + T[4, 1] + T[5, 2], T[6, 0] + T[7, 1] + T[8, 2]
    )
    out.by_mu = trace + wp.vec3d(
        T[0, 0] + T[3, 1] + T[6, 2],
        T[1, 0] + T[4, 1] + T[7, 2],
        T[2, 0] + T[5, 1] + T[8, 2],
    )
    lam = d.lam[c]
    mu = d.mu[c]
    # sum_b K_ab [y_b]x, its three terms those of K = lam G + mu (G^T + tr(G) I)
    by_rows = lam * wp.matrix_from_rows(
        wp.vec3d(T[1, 2] - T[2, 1], T[2, 0] - T[0, 2], T[0, 1] - T[1, 0]),
        wp.vec3d(T[4, 2] - T[5, 1], T[5, 0] - T[3, 2], T[3, 1] - T[4, 0]),
        wp.vec3d(T[7, 2] - T[8, 1], T[8, 0] - T[6, 2], T[6, 1] - T[7, 0]),
    )
    across = mu * wp.matrix_from_cols(
        wp.vec3d(T[3, 2] - T[6, 1], T[4, 2] - T[7, 1], T[5, 2] - T[8, 1]),
        wp.vec3d(T[6, 0] - T[0, 2], T[7, 0] - T[1, 2], T[8, 0] - T[2, 2]),
        wp.vec3d(T[0, 1] - T[3, 0], T[1, 1] - T[4, 0], T[2, 1] - T[5, 0]),
    )
    force = lam * out.by_lam + mu * out.by_mu
    out.by_spin = by_rows + across + wp.skew(mu * trace - force)
    return out


@wp.kernel
def _force_tangents(
    first: wp.int32,
    d: CellData,
    local: wp.array2d(dtype=wp.vec3d),
    spins: wp.array2d(dtype=wp.vec3d),
    d_lam: wp.array2d(dtype=wp.float64),
    d_mu: wp.array2d(dtype=wp.float64),
    factor: wp.float64,
    out: wp.array2d(dtype=wp.vec3d),
):
    i = first + wp.tid()
    for e in range(d.incident_start[i], d.incident_start[i + 1]):
        c = d.incident[e] / d.k
        f = _node_force(d, c, d.incident[e] - c * d.k, local)
        R = factor * d.rotations[c]
        for j in range(out.shape[1]):
            change = f.by_spin * spins[c, j] + d_lam[c, j] * f.by_lam + d_mu[c, j] * f.by_mu
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
    local, spins = zeros(data.cells.shape, wp.vec3d), zeros((cells, out.shape[1]), wp.vec3d)
    launch(_local_fields, cells, [data, w, s, local], grain=HEAVY)
    if turned is not None:
        launch(_spins, cells, [data, turned, d_turned, spins], grain=HEAVY)
    launch(
        _force_tangents,
        out.shape[0],
        [data, local, spins, d_lam, d_mu, factor, out],
        grain=HEAVY,
    )


@wp.kernel
def _force_adjoint(
    first: wp.int32,
    d: CellData,
    local: wp.array2d(dtype=wp.vec3d),
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
        f = _node_force(d, c, a, local)
        bar = f_bar[d.cells[c, a]] * R
        by_lam += wp.dot(bar, f.by_lam)
        by_mu += wp.dot(bar, f.by_mu)
        spin_bar += bar * f.by_spin
    lam_bar[c] = lam_bar[c] + by_lam
    mu_bar[c] = mu_bar[c] + by_mu
    if corotated == 1:
        F = deformation_gradient(d, c, turned)
        R_bar = R * wp.skew(wp.float64(0.5) * spin_bar)  # <R_bar, R [t]x> = spin_bar . t
        F_bar = frame_adjoint(d, R, F, R_bar)
        for a in range(d.k):
            g = mean_gradient(d.kind, d.table, d.row[c], a, d.centre_gradient)
            turned_bar[c, a] = F_bar * g


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
    local = zeros(data.cells.shape, wp.vec3d)
    launch(_local_fields, cells, [data, w, s, local], grain=HEAVY)
    at, corotated = (w, 0) if turned is None else (turned, 1)
    launch(
        _force_adjoint,
        cells,
        [data, local, at, corotated, f_bar, lam_bar, mu_bar, turned_bar],
        grain=HEAVY,
    )
