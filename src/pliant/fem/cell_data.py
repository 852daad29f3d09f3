"""A body's cells on the device: connectivity, geometry, material and rotations."""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

import numpy as np
import warp as wp

from pliant.core.launch import share, to_device, zeros
from pliant.fem.body import Body
from pliant.fem.cells import (
    GRID,
    gradient_product_blocks,
    gradient_products,
    grid_places,
    mean_gradient,
)
from pliant.fem.frames import qr_rotation, qr_rotation_adjoint, qr_rotation_derivative
from pliant.fem.polar import rotation, rotation_adjoint, rotation_derivative

POLAR_FRAME = wp.constant(0)
QR_FRAME = wp.constant(1)

FRAMES = {"corotated": POLAR_FRAME, "corotated-qr": QR_FRAME}
"""Models that take the cells' rotations out, and how: by the polar decomposition, or by the cheaper
frame of Gram and Schmidt (seed 003, section 4.1.3), which favours the first axis."""

HEAVY = 500
"""Cells or nodes per thread from which these kernels are worth splitting (a microsecond each)."""



@wp.struct
class CellData:
    """Device arrays of a body's cells and their material.

    shared: all G_ab of the most frequent row of the table, that of full cells on a grid.
    places, signs: `cells.grid_places`, for grids.
    """

    kind: wp.int32
    k: wp.int32
    frame: wp.int32
    centre_gradient: wp.vec3d
    cells: wp.array2d(dtype=wp.int32)
    row: wp.array(dtype=wp.int32)
    table: wp.array2d(dtype=wp.float64)
    positions: wp.array(dtype=wp.vec3d)
    lam: wp.array(dtype=wp.float64)
    mu: wp.array(dtype=wp.float64)
    rotations: wp.array(dtype=wp.mat33d)
    incident_start: wp.array(dtype=wp.int32)
    incident: wp.array(dtype=wp.int32)
    shared_row: wp.int32
    shared: wp.array(dtype=wp.mat33d)
    places: wp.array(dtype=wp.uint8)
    signs: wp.array(dtype=wp.float64)


@wp.func
def products(d: CellData, row: int, a: int, b: int) -> wp.mat33d:
    """G_ab of a cell with that row of the table."""
    if row == d.shared_row:
        return d.shared[a * d.k + b]
    return gradient_products(d.kind, d.table, row, a, b)


@wp.func
def deformation_gradient(d: CellData, c: int, u: wp.array(dtype=wp.vec3d)) -> wp.mat33d:
    """F = I + sum_a u_a (x) grad N_a in the middle of the cell."""
    F = wp.identity(n=3, dtype=wp.float64)
    for a in range(d.k):
        g = mean_gradient(d.kind, d.table, d.row[c], a, d.centre_gradient)
        F += wp.outer(u[d.cells[c, a]], g)
    return F


@wp.func
def frame(d: CellData, F: wp.mat33d) -> wp.mat33d:
    """Rotation of the cell, in the way the model takes it."""
    if d.frame == QR_FRAME:
        return qr_rotation(F)
    return rotation(F)


@wp.func
def frame_derivative(d: CellData, R: wp.mat33d, F: wp.mat33d, dF: wp.mat33d) -> wp.mat33d:
    """Change of the rotation R of F by dF."""
    if d.frame == QR_FRAME:
        return qr_rotation_derivative(R, F, dF)
    return rotation_derivative(R, F, dF)


@wp.func
def frame_adjoint(d: CellData, R: wp.mat33d, F: wp.mat33d, R_bar: wp.mat33d) -> wp.mat33d:
    """Transpose of `frame_derivative`."""
    if d.frame == QR_FRAME:
        return qr_rotation_adjoint(R, F, R_bar)
    return rotation_adjoint(R, F, R_bar)


def cell_data(body: Body, *, model: str) -> CellData:
    """The arrays of a body, without a material (zero moduli) and unrotated."""
    n, m, k = len(body.nodes), len(body.cells), body.cells.shape[1]
    positions = body.nodes
    if body.dim == 2:
        positions = np.concatenate([body.nodes, np.zeros((n, 1))], axis=1)
    centre = np.zeros(3)
    if body.kind == GRID:
        centre[: body.dim] = 1.0 / (2 ** (body.dim - 1) * body.spacing)
    common = int(np.bincount(body.geometry_row).argmax())
    blocks = gradient_product_blocks(body.kind, body.geometry_table[[common]], k)
    data = CellData()
    data.kind = body.kind
    data.k = k
    data.frame = FRAMES.get(model, POLAR_FRAME)
    data.centre_gradient = wp.vec3d(*centre)
    data.cells = share(body.cells, wp.int32)
    data.row = share(body.geometry_row, wp.int32)
    data.table = share(body.geometry_table, wp.float64)
    data.positions = share(positions, wp.vec3d)
    data.lam = zeros(m, wp.float64)
    data.mu = zeros(m, wp.float64)
    data.rotations = to_device(np.broadcast_to(np.eye(3), (m, 3, 3)), wp.mat33d)
    data.incident_start = share(body.pattern.incident_start, wp.int32)
    data.incident = share(body.pattern.incident, wp.int32)
    data.shared_row = common
    data.shared = to_device(blocks.reshape(k * k, 3, 3), wp.mat33d)
    if body.kind == GRID:
        places, signs = grid_places(k)
        data.places = to_device(places.reshape(-1), wp.uint8)
        data.signs = to_device(signs.reshape(-1), wp.float64)
    return data
