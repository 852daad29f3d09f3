"""Wall terms on the device: added to the matrix and to forces, row by row."""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

import numpy as np
import warp as wp

from pliant.core.launch import launch, share, to_device, zeros
from pliant.fem.bodies.body import Body
from pliant.linalg.block_rows import BlockRows, add_block

FEW = 100
"""Nodes per thread from which these kernels are split (a microsecond each)."""


@wp.kernel
def _assemble_walls(
    first: wp.int32,
    node: wp.array(dtype=wp.int32),
    start: wp.array(dtype=wp.int32),
    incident: wp.array(dtype=wp.int32),
    cell: wp.array(dtype=wp.int32),
    slot: wp.array2d(dtype=wp.uint8),
    k: wp.int32,
    blocks: wp.array2d(dtype=wp.mat33d),
    factor: wp.float64,
    A: BlockRows,
):
    r = first + wp.tid()
    i = node[r]
    for e in range(start[r], start[r + 1]):
        w = incident[e] / k
        a = incident[e] - w * k
        for b in range(k):
            e_block = A.row_start[i] + int(slot[cell[w], a * k + b])
            add_block(A, i, e_block, factor * blocks[w, a * k + b])


@wp.kernel
def _wall_forces(
    first: wp.int32,
    node: wp.array(dtype=wp.int32),
    start: wp.array(dtype=wp.int32),
    incident: wp.array(dtype=wp.int32),
    corners: wp.array2d(dtype=wp.int32),
    k: wp.int32,
    blocks: wp.array2d(dtype=wp.mat33d),
    factor: wp.float64,
    x: wp.array(dtype=wp.vec3d),
    out: wp.array(dtype=wp.vec3d),
):
    r = first + wp.tid()
    total = wp.vec3d()
    for e in range(start[r], start[r + 1]):
        w = incident[e] / k
        a = incident[e] - w * k
        for b in range(k):
            total += blocks[w, a * k + b] * x[corners[w, b]]
    out[node[r]] = out[node[r]] + factor * total


@wp.kernel
def _gather_entries(
    first: wp.int32,
    node: wp.array(dtype=wp.int32),
    start: wp.array(dtype=wp.int32),
    incident: wp.array(dtype=wp.int32),
    k: wp.int32,
    forces: wp.array2d(dtype=wp.vec3d),
    factor: wp.float64,
    out: wp.array(dtype=wp.vec3d),
):
    r = first + wp.tid()
    total = wp.vec3d()
    for e in range(start[r], start[r + 1]):
        w = incident[e] / k
        total += forces[w, incident[e] - w * k]
    out[node[r]] = out[node[r]] + factor * total


class WallOperator:
    """A stiffness of some cells, one entry each: with Elasticity's interface where they meet."""

    def __init__(self, body: Body, cell: np.ndarray):
        cells = body.cells[cell]
        self._k = cells.shape[1]
        nodes, flat = np.unique(cells.reshape(-1), return_inverse=True)
        order = np.argsort(flat, kind="stable")
        start = np.zeros(len(nodes) + 1, np.int64)
        np.cumsum(np.bincount(flat, minlength=len(nodes)), out=start[1:])
        self._count = len(nodes)
        self._node = to_device(nodes, wp.int32)
        self._start = to_device(start, wp.int32)
        self._incident = to_device(order, wp.int32)
        self._cell = to_device(cell, wp.int32)
        self._corners = to_device(cells, wp.int32)
        self._slot = share(body.pattern.slot, wp.uint8)
        self._blocks = zeros((len(cell), self._k**2), wp.mat33d)

    def set_blocks(self, blocks: np.ndarray) -> None:
        """Of every entry, (w, k, k, 3, 3)."""
        self._blocks.assign(blocks.reshape(len(blocks), -1, 3, 3))

    def assemble(self, matrix, factor: float) -> None:
        """matrix += factor * wall stiffness."""
        self.assemble_entries(matrix, self._blocks, factor)

    def assemble_entries(self, matrix, blocks: wp.array, factor: float) -> None:
        """matrix += factor * blocks (w, k k) of the entries."""
        launch(
            _assemble_walls,
            self._count,
            [
                self._node, self._start, self._incident, self._cell, self._slot, self._k,
                blocks, factor, matrix.rows,
            ],
            grain=FEW,
        )  # fmt: skip

    def add_entries(self, forces: wp.array, out: wp.array, *, factor: float) -> None:
        """out += factor * the sum of forces (w, k) on the entries' nodes."""
        launch(
            _gather_entries,
            self._count,
            [self._node, self._start, self._incident, self._k, forces, factor, out],
            grain=FEW,
        )

    def add_force(self, x: wp.array, out: wp.array, *, factor: float = 1.0) -> None:
        """out += factor * wall stiffness * x."""
        launch(
            _wall_forces,
            self._count,
            [
                self._node, self._start, self._incident, self._corners, self._k, self._blocks,
                factor, x, out,
            ],
            grain=FEW,
        )  # fmt: skip
