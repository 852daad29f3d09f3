"""A body's cells on the device: connectivity, geometry, material and rotations."""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

import numpy as np
import warp as wp

from pliant.core.launch import share, to_device, zeros
from pliant.core.point_products import corner_gradient
from pliant.fem.bodies.body import Body
from pliant.fem.forces.cells import (
    FLUCTUATION,
    GRID,
    gradient_moments,
    gradient_product_blocks,
    gradient_products,
    grid_places,
    mean_gradients,
    softened_moments,
)
from pliant.fem.forces.frames import qr_rotation, qr_rotation_adjoint, qr_rotation_derivative
from pliant.fem.forces.polar import rotation, rotation_adjoint, rotation_derivative

POLAR_FRAME = wp.constant(0)
QR_FRAME = wp.constant(1)

FRAMES = {"corotated": POLAR_FRAME, "corotated-frozen": POLAR_FRAME, "corotated-qr": QR_FRAME}
"""Models that take the cells' rotations out, and how: by the polar decomposition, or by the cheaper
frame of Gram and Schmidt (seed 003, section 4.1.3), which favours the first axis."""

MEAN = wp.constant(0)
POINTWISE = wp.constant(1)

DILATATIONS = {"mean": MEAN, "pointwise": POINTWISE}
"""Which dilatation lambda multiplies: the cell's mean (B-bar: Hughes 1980; no locking near a
Poisson's ratio of 1/2; on grids with cells.FLUCTUATION), or that of every point (plain elements,
for comparison)."""

SMALLEST_SHARE = 1e-9
"""Filled share of a cell below which rounding of its moments has destroyed the mean gradients; the
middle of the cell then stands for them."""

HEAVY = 500
"""Cells or nodes per thread from which these kernels are worth splitting (a microsecond each)."""


@wp.struct
class CellData:
    """Device arrays of a body's cells and their material.

    axes: Body.frame. Table, moments and means are along the cells' own coordinates; with the
    gradients so, x = F Y has F = axes at rest, R = axes is no rotation, and R turns from these
    coordinates to the world's. Isotropic elasticity does not see which coordinates they are.
    moments: `cells.gradient_moments`, for grids, softened as `fluctuation` says.
    fluctuation: share of the energy of strains that vary within a cell; `table` is without it.
    mean: means of grad N_a over the filled part [1/m], volume: of the filled part, by rows.
    shared: all G_ab of the most frequent row of the table, that of full cells on a grid.
    places, signs: `cells.grid_places`, for grids.
    """

    kind: wp.int32
    k: wp.int32
    axes: wp.mat33d
    frame: wp.int32
    dilatation: wp.int32
    fluctuation: wp.float64
    spacing: wp.float64
    moments: wp.array2d(dtype=wp.float64)
    mean: wp.array2d(dtype=wp.vec3d)
    volume: wp.array(dtype=wp.float64)
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
    """F = axes + sum_a u_a (x) grad N_a, its mean over the cell, by the cell's coordinates."""
    grad = corner_gradient(d.mean, d.row[c] * d.k, d.cells, c * d.k, d.k, u)
    return d.axes + grad


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


def cell_means(body: Body) -> tuple[np.ndarray, np.ndarray]:
    """Means of grad N_a (rows, k, 3) [1/m] and filled volumes (rows,) of a body's table.

    The gradients are along the cells' own coordinates (Body.frame), as the table is.
    """
    k, h = body.cells.shape[1], body.spacing
    volume = np.zeros(len(body.geometry_table))
    volume[body.geometry_row] = body.cell_volumes
    mean = mean_gradients(body.kind, body.geometry_table, k, spacing=h)
    if body.kind == GRID:
        middle = np.zeros((k, 3))
        bits = (np.arange(k)[:, None] >> np.arange(body.dim)) & 1
        middle[:, : body.dim] = (2 * bits - 1) / (2 ** (body.dim - 1) * h)
        mean[volume < SMALLEST_SHARE * h**body.dim] = middle
    return mean, volume


def cell_data(body: Body, *, model: str, dilatation: str = "mean") -> CellData:
    """The arrays of a body, without a material (zero moduli) and unrotated."""
    n, m, k = len(body.nodes), len(body.cells), body.cells.shape[1]
    positions = body.nodes
    if body.dim == 2:
        positions = np.concatenate([body.nodes, np.zeros((n, 1))], axis=1)
    mean, volume = cell_means(body)
    common = int(np.bincount(body.geometry_row).argmax())
    blocks = gradient_product_blocks(body.kind, body.geometry_table[[common]], k)
    data = CellData()
    data.kind = body.kind
    data.k = k
    data.axes = wp.mat33d(*body.frame.reshape(-1))
    data.frame = FRAMES.get(model, POLAR_FRAME)
    data.dilatation = DILATATIONS[dilatation]
    data.fluctuation = 1.0
    data.spacing = body.spacing
    spare = np.zeros((1, *mean.shape[1:]))  # gradients are read four numbers at a time
    data.mean = to_device(np.concatenate([mean, spare]), wp.vec3d)
    data.volume = to_device(volume, wp.float64)
    data.cells = share(body.cells, wp.int32)
    data.row = share(body.geometry_row, wp.int32)
    data.table = share(body.geometry_table, wp.float64)
    data.positions = share(positions, wp.vec3d)
    data.lam = zeros(m, wp.float64)
    data.mu = zeros(m, wp.float64)
    data.rotations = to_device(np.broadcast_to(body.frame, (m, 3, 3)), wp.mat33d)
    data.incident_start = share(body.pattern.incident_start, wp.int32)
    data.incident = share(body.pattern.incident, wp.int32)
    data.shared_row = common
    data.shared = to_device(blocks.reshape(k * k, 3, 3), wp.mat33d)
    if body.kind == GRID:
        moments = gradient_moments(body.geometry_table, body.dim)
        if data.dilatation == MEAN:
            data.fluctuation = FLUCTUATION
            moments = softened_moments(moments)
        data.moments = to_device(moments, wp.float64)
        places, signs = grid_places(k)
        data.places = to_device(places.reshape(-1), wp.uint8)
        data.signs = to_device(signs.reshape(-1), wp.float64)
    return data
