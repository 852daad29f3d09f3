"""Cells with the points that a nonlinear energy is integrated at, for kernels."""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false, reportOptionalCall=false

import numpy as np
import warp as wp

from pliant.core.launch import to_device
from pliant.core.point_products import (
    PointMatrix,
    add_corner_blocks,
    add_corner_forces,
    corner_gradient,
)
from pliant.fem.bodies.body import Body
from pliant.fem.cutting.cell_quadrature import cell_quadrature


@wp.struct
class QuadratureData:
    """Cells with the points they are integrated at.

    weight: (rows, points) [m^dim]; gradient: (rows + 1, points * k) of shape functions [1/m], the
    last row spare; row: of each cell. Full grid cells share a row.
    """

    k: wp.int32
    points: wp.int32
    cells: wp.array2d(dtype=wp.int32)
    row: wp.array(dtype=wp.int32)
    weight: wp.array2d(dtype=wp.float64)
    gradient: wp.array2d(dtype=wp.vec3d)
    incident_start: wp.array(dtype=wp.int32)
    incident: wp.array(dtype=wp.int32)


def quadrature_data(body: Body, *, dilatation: str = "mean") -> QuadratureData:
    """The cells of a body on the device; dilatation: see fem.cutting.cell_quadrature."""
    rule = cell_quadrature(body, dilatation=dilatation)
    rows = len(rule.weight)
    gradient = np.zeros((rows + 1, rule.weight.shape[1] * body.cells.shape[1], 3))
    gradient[:rows] = rule.gradient.reshape(rows, -1, 3)
    d = QuadratureData()
    d.k = body.cells.shape[1]
    d.points = rule.weight.shape[1]
    d.cells = to_device(body.cells, wp.int32)
    d.row = to_device(body.geometry_row, wp.int32)
    d.weight = to_device(rule.weight, wp.float64)
    d.gradient = to_device(gradient, wp.vec3d)
    d.incident_start = to_device(body.pattern.incident_start, wp.int32)
    d.incident = to_device(body.pattern.incident, wp.int32)
    return d


@wp.func
def gradients_begin(d: QuadratureData, c: int, q: int) -> int:
    """Place of the first corner's gradient at point q of cell c."""
    return (d.row[c] * d.points + q) * d.k


@wp.func
def gradient_at(d: QuadratureData, c: int, q: int, u: wp.array(dtype=wp.vec3d)) -> wp.mat33d:
    """sum_a u_a (x) grad N_a at point q of cell c."""
    return corner_gradient(d.gradient, gradients_begin(d, c, q), d.cells, c * d.k, d.k, u)


@wp.func
def deformation_at(d: QuadratureData, c: int, q: int, u: wp.array(dtype=wp.vec3d)) -> wp.mat33d:
    """F = I + grad u at point q of cell c."""
    return wp.identity(n=3, dtype=wp.float64) + gradient_at(d, c, q, u)


@wp.func
def clear_forces(d: QuadratureData, c: int, out: wp.array2d(dtype=wp.vec4d)):
    """No force on the cell's corners."""
    for a in range(d.k):
        out[c, a] = wp.vec4d()


@wp.func
def add_stress(d: QuadratureData, c: int, q: int, P: wp.mat33d, out: wp.array2d(dtype=wp.vec4d)):
    """out[c, a] += P grad N_a for every corner; P has the point's weight in it."""
    add_corner_forces(d.gradient, gradients_begin(d, c, q), P, c * d.k, d.k, out)


@wp.func
def lower_block(a: int, b: int) -> int:
    """Place of block (a, b), b <= a, in a cell's lower triangle."""
    return a * (a + 1) / 2 + b


@wp.func
def clear_blocks(d: QuadratureData, c: int, blocks: wp.array2d(dtype=wp.mat33d)):
    """No stiffness between the cell's corners."""
    for j in range(lower_block(d.k, 0)):
        blocks[c, j] = wp.mat33d()


@wp.func
def add_tangent(
    d: QuadratureData, c: int, q: int, A: PointMatrix, blocks: wp.array2d(dtype=wp.mat33d)
):
    """blocks[c, :] += the lower triangle of g_a A g_b; A has the point's weight in it."""
    place = c * lower_block(d.k, 0)
    add_corner_blocks(d.gradient, gradients_begin(d, c, q), A, place, d.k, blocks)


@wp.kernel
def gather_forces(
    first: wp.int32,
    d: QuadratureData,
    per_cell: wp.array2d(dtype=wp.vec4d),
    factor: wp.float64,
    out: wp.array(dtype=wp.vec3d),
):
    """out[i] += factor * the forces of the cells around node i."""
    i = first + wp.tid()
    total = wp.vec4d()
    for e in range(d.incident_start[i], d.incident_start[i + 1]):
        c = d.incident[e] / d.k
        total += per_cell[c, d.incident[e] - c * d.k]
    out[i] = out[i] + factor * wp.vec3d(total[0], total[1], total[2])
