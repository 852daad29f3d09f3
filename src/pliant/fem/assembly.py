"""The matrix of a body: rotated stiffness blocks gathered row by row.

The block of nodes i and j is R (lambda G + mu G^T) R^T + mu tr(G) I summed over their common cells.
The matrix is symmetric: only the blocks on and right of the diagonal are computed; the others will
be their mirror images (`BlockMatrix.mirror`).
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

import warp as wp

from pliant.core.block_products import add_rotated
from pliant.core.launch import launch
from pliant.fem.block_rows import BlockRows, stored_at
from pliant.fem.cell_data import HEAVY, CellData
from pliant.fem.cells import GRID, mean_gradient


@wp.kernel
def _assemble(
    first: wp.int32,
    d: CellData,
    slot: wp.array2d(dtype=wp.uint8),
    mass: wp.array(dtype=wp.float64),
    mass_factor: wp.float64,
    stiffness_factor: wp.float64,
    A: BlockRows,
):
    """Blocks on and right of the diagonal."""
    i = first + wp.tid()
    middle = stored_at(A, i, A.diagonal[i])
    start = middle - A.diagonal[i] + A.row_start[i]  # where the row would begin
    for j in range(middle, start + A.row_start[i + 1] - A.row_start[i]):
        A.values[j] = wp.mat33d()
    k = d.k
    unit = wp.identity(n=3, dtype=wp.float64)
    for e in range(d.incident_start[i], d.incident_start[i + 1]):
        c = d.incident[e] / k
        a = d.incident[e] - c * k
        lam = stiffness_factor * d.lam[c]
        mu = stiffness_factor * d.mu[c]
        R = d.rotations[c]
        row = d.row[c]
        if d.kind == GRID:  # whose corners are in ascending order: b >= a is right of the diagonal
            pair = a * k
            add_rotated(
                A.values, start, slot, c * k * k + pair, R, d.table, row * d.table.shape[1],
                d.places, d.signs, pair, a, k, lam, mu,
            )  # fmt: skip
        else:  # G = V g_a g_b^T: turning the gradients turns it
            V = d.table[row, 12]
            ga = R * mean_gradient(d.kind, d.table, row, a, d.centre_gradient)
            for b in range(k):
                if d.cells[c, b] >= i:
                    gb = R * mean_gradient(d.kind, d.table, row, b, d.centre_gradient)
                    j = start + int(slot[c, a * k + b])
                    B = wp.outer(lam * V * ga, gb) + wp.outer(mu * V * gb, ga)
                    A.values[j] = A.values[j] + B + (mu * V * wp.dot(ga, gb)) * unit
    A.values[middle] = A.values[middle] + (mass_factor * mass[i]) * unit


def assemble(
    data: CellData,
    slot: wp.array,
    matrix,
    mass: wp.array,
    *,
    mass_factor: float,
    stiffness_factor: float,
) -> None:
    """matrix := mass_factor M + stiffness_factor K at the rotations in `data`, not yet mirrored."""
    launch(
        _assemble,
        matrix.node_count,
        [data, slot, mass, mass_factor, stiffness_factor, matrix.rows],
        grain=HEAVY,
    )
