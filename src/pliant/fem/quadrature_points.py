"""Cells with the points that a nonlinear energy is integrated at, for kernels."""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false, reportOptionalCall=false

import warp as wp


@wp.struct
class QuadratureData:
    """Cells with the points they are integrated at.

    weight: (rows, points) [m^dim]; gradient: (rows, points * k) of shape functions [1/m]; row: of
    each cell. Full grid cells share a row.
    """

    k: wp.int32
    points: wp.int32
    cells: wp.array2d(dtype=wp.int32)
    row: wp.array(dtype=wp.int32)
    weight: wp.array2d(dtype=wp.float64)
    gradient: wp.array2d(dtype=wp.vec3d)
    incident_start: wp.array(dtype=wp.int32)
    incident: wp.array(dtype=wp.int32)


@wp.func
def gradient_at(
    d: QuadratureData, c: int, q: int, u: wp.array(dtype=wp.vec3d)
) -> wp.mat33d:
    """sum_a u_a (x) grad N_a at point q of cell c."""
    G = wp.mat33d()
    r = d.row[c]
    for a in range(d.k):
        G += wp.outer(u[d.cells[c, a]], d.gradient[r, q * d.k + a])
    return G


@wp.func
def lower_block(a: int, b: int) -> int:
    """Place of block (a, b), b <= a, in a cell's lower triangle."""
    return a * (a + 1) / 2 + b
