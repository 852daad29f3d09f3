"""Assembly of a body's elastic matrix from the rotations of its cells, node by node.

Only blocks on and right of the diagonal are summed; `BlockMatrix.mirror` completes them.
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

import warp as wp

from pliant.core.block_products import add_pairs, add_rotated
from pliant.core.launch import launch
from pliant.fem.forces.cell_data import HEAVY, MEAN, CellData, products
from pliant.fem.forces.cells import GRID, SIMPLEX
from pliant.fem.forces.mass import MassMatrix, MassRows
from pliant.linalg.block_rows import BlockRows, stored_at


@wp.func
def _row_start(A: BlockRows, i: int) -> int:
    """Where the row of node i would begin, were its blocks left of the diagonal stored too."""
    return stored_at(A, i, A.diagonal[i]) - A.diagonal[i] + A.row_start[i]


@wp.func
def _start_row(A: BlockRows, i: int, factor: wp.float64, mass: MassRows):
    """Row i := factor * M."""
    unit = wp.identity(n=3, dtype=wp.float64)
    middle = stored_at(A, i, A.diagonal[i])
    shift = A.diagonal[i] - middle
    for j in range(middle, _row_start(A, i) + A.row_start[i + 1] - A.row_start[i]):
        if mass.beside.shape[0] > 0:
            A.values[j] = (factor * mass.scale * wp.float64(mass.beside[shift + j])) * unit
        else:
            A.values[j] = wp.mat33d()
    A.values[middle] = (factor * mass.own[i]) * unit


@wp.func
def _add_stiffness(
    d: CellData,
    slot: wp.array2d(dtype=wp.uint8),
    A: BlockRows,
    i: int,
    c: int,
    a: int,
    R: wp.mat33d,
    factor: wp.float64,
):
    """Row i += factor * R K_ab R^T of the cell c, whose node a is i."""
    k = d.k
    start = _row_start(A, i)
    lam = factor * d.lam[c]
    mu = factor * d.mu[c]
    row = d.row[c]
    unit = wp.identity(n=3, dtype=wp.float64)
    if d.kind == GRID:  # whose corners are in ascending order: b >= a is right of the diagonal
        pair = a * k
        add_rotated(
            A.values, start, slot, c * k * k + pair, R, d.table, row * d.table.shape[1],
            d.places, d.signs, pair, a, k, lam, mu, d.mean, row * k, d.volume[row],
            d.dilatation == MEAN, d.fluctuation,
        )  # fmt: skip
    elif d.kind == SIMPLEX:  # G = V g_a g_b^T: turning the gradients turns it
        V = d.volume[row]
        ga = R * d.mean[row, a]
        for b in range(k):
            if d.cells[c, b] >= i:
                gb = R * d.mean[row, b]
                j = start + int(slot[c, a * k + b])
                B = wp.outer(lam * V * ga, gb) + wp.outer(mu * V * gb, ga)
                A.values[j] = A.values[j] + B + (mu * V * wp.dot(ga, gb)) * unit
    else:
        for b in range(k):
            if d.cells[c, b] >= i:
                j = start + int(slot[c, a * k + b])
                G = products(d, row, a, b)
                H = lam * G
                if d.dilatation == MEAN:
                    H = wp.outer(lam * d.volume[row] * d.mean[row, a], d.mean[row, b])
                B = R * (H + mu * wp.transpose(G)) * wp.transpose(R)
                A.values[j] = A.values[j] + B + (mu * wp.trace(G)) * unit


@wp.func
def _add_turns(
    d: CellData,
    slot: wp.array2d(dtype=wp.uint8),
    A: BlockRows,
    i: int,
    c: int,
    a: int,
    spin: wp.array2d(dtype=wp.mat33d),
    bend: wp.array2d(dtype=wp.mat33d),
    factor: wp.float64,
):
    """Row i -= factor * (W_a^T B_b + B_a^T W_b) of the cell c, whose node a is i."""
    k = d.k
    start = _row_start(A, i)
    if d.kind == GRID:
        add_pairs(A.values, start, slot, c * k * k + a * k, spin, bend, c * k, a, k, factor)
    else:
        turn = wp.transpose(factor * spin[c, a])
        curve = wp.transpose(factor * bend[c, a])
        for b in range(k):
            if d.cells[c, b] >= i:
                j = start + int(slot[c, a * k + b])
                A.values[j] = A.values[j] - (turn * bend[c, b] + curve * spin[c, b])


@wp.kernel
def _assemble(
    first: wp.int32,
    d: CellData,
    slot: wp.array2d(dtype=wp.uint8),
    mass: MassRows,
    mass_factor: wp.float64,
    stiffness_factor: wp.float64,
    A: BlockRows,
):
    i = first + wp.tid()
    _start_row(A, i, mass_factor, mass)
    for e in range(d.incident_start[i], d.incident_start[i + 1]):
        c = d.incident[e] / d.k
        _add_stiffness(d, slot, A, i, c, d.incident[e] - c * d.k, d.rotations[c], stiffness_factor)


@wp.kernel
def _assemble_corotation(
    first: wp.int32,
    d: CellData,
    slot: wp.array2d(dtype=wp.uint8),
    mass: MassRows,
    mass_factor: wp.float64,
    stiffness_factor: wp.float64,
    rotations: wp.array(dtype=wp.mat33d),
    spin: wp.array2d(dtype=wp.mat33d),
    bend: wp.array2d(dtype=wp.mat33d),
    exact: wp.int32,
    viscous_factor: wp.float64,
    A: BlockRows,
):
    """Rotations of the tangent, and those in d of the damping."""
    i = first + wp.tid()
    _start_row(A, i, mass_factor, mass)
    k = d.k
    for e in range(d.incident_start[i], d.incident_start[i + 1]):
        c = d.incident[e] / k
        a = d.incident[e] - c * k
        _add_stiffness(d, slot, A, i, c, a, rotations[c], stiffness_factor)
        if viscous_factor != wp.float64(0.0):
            _add_stiffness(d, slot, A, i, c, a, d.rotations[c], viscous_factor)
        if exact == 1:
            _add_turns(d, slot, A, i, c, a, spin, bend, stiffness_factor)


@wp.kernel
def _add_overstrain(
    first: wp.int32,
    d: CellData,
    slot: wp.array2d(dtype=wp.uint8),
    rotations: wp.array(dtype=wp.mat33d),
    spin: wp.array2d(dtype=wp.mat33d),
    bend: wp.array2d(dtype=wp.mat33d),
    exact: wp.int32,
    stiffness_factor: wp.float64,
    turn_factor: wp.float64,
    A: BlockRows,
):
    """Rows += stiffness_factor * R K R^T, and if exact turn_factor * what spin and bend make."""
    i = first + wp.tid()
    for e in range(d.incident_start[i], d.incident_start[i + 1]):
        c = d.incident[e] / d.k
        a = d.incident[e] - c * d.k
        _add_stiffness(d, slot, A, i, c, a, rotations[c], stiffness_factor)
        if exact == 1:
            _add_turns(d, slot, A, i, c, a, spin, bend, turn_factor)


def assemble(
    data: CellData,
    slot: wp.array,
    matrix,
    mass: MassMatrix,
    *,
    mass_factor: float,
    stiffness_factor: float,
) -> None:
    """matrix := mass_factor M + stiffness_factor K at the rotations in `data`, not yet mirrored."""
    launch(
        _assemble,
        matrix.node_count,
        [data, slot, mass.rows, mass_factor, stiffness_factor, matrix.rows],
        grain=HEAVY,
    )


def assemble_corotation(
    data: CellData,
    slot: wp.array,
    matrix,
    mass: MassMatrix,
    rotations: wp.array,
    spin: wp.array,
    bend: wp.array,
    *,
    mass_factor: float,
    stiffness_factor: float,
    viscous_factor: float,
    exact: bool,
) -> None:
    """matrix := mass_factor M + stiffness_factor H + viscous_factor K, not yet mirrored.

    H: the tangent of fem.forces.corotation at `rotations`, or R K R^T alone unless exact; K at the
    rotations in `data`.
    """
    launch(
        _assemble_corotation,
        matrix.node_count,
        [
            data, slot, mass.rows, mass_factor, stiffness_factor, rotations, spin, bend, int(exact),
            viscous_factor, matrix.rows,
        ],
        grain=HEAVY,
    )  # fmt: skip


def add_overstrain(
    data: CellData,
    slot: wp.array,
    matrix,
    rotations: wp.array,
    spin: wp.array,
    bend: wp.array,
    *,
    stiffness_factor: float,
    turn_factor: float,
    exact: bool,
) -> None:
    """matrix += the tangent of fem.forces.overstrain, on and right of the diagonal."""
    launch(
        _add_overstrain,
        matrix.node_count,
        [
            data, slot, rotations, spin, bend, int(exact), stiffness_factor, turn_factor,
            matrix.rows,
        ],
        grain=HEAVY,
    )  # fmt: skip
