"""Which nodes interact: rows of a sparse matrix of 3x3 blocks, and who adds to which block."""

from dataclasses import dataclass

import numpy as np

from pliant.core.errors import BadInput


@dataclass(frozen=True)
class Pattern:
    """Compressed rows of blocks, with columns ascending in each row.

    row_start: (nodes + 1,) int32; columns: (blocks,) int32.
    slot: (cells, k * k) uint8, place within row a of the block (a, b) of a cell.
    incident_start, incident: the cells around each node, as cell * k + local node index.
    """

    row_start: np.ndarray
    columns: np.ndarray
    slot: np.ndarray
    incident_start: np.ndarray
    incident: np.ndarray


def incident_cells(cells: np.ndarray, node_count: int) -> tuple[np.ndarray, np.ndarray]:
    """For each node the list of `cell * k + a` with cells[cell, a] == node, in ascending order."""
    flat = cells.reshape(-1)
    order = np.argsort(flat, kind="stable").astype(np.int32)
    start = np.zeros(node_count + 1, np.int32)
    np.cumsum(np.bincount(flat, minlength=node_count), out=start[1:])
    return start, order


def general_pattern(
    cells: np.ndarray, node_count: int, extra_pairs: np.ndarray | None = None
) -> Pattern:
    """Pattern of any mesh. extra_pairs: (m, 2) further blocks to keep room for."""
    k = cells.shape[1]
    rows = np.repeat(cells, k, axis=1).reshape(-1).astype(np.int64)
    cols = np.tile(cells, (1, k)).reshape(-1).astype(np.int64)
    keys = rows * node_count + cols
    every = keys
    if extra_pairs is not None and len(extra_pairs):
        every = np.concatenate([keys, extra_pairs[:, 0] * node_count + extra_pairs[:, 1]])
    unique = np.unique(every)
    row_start = np.searchsorted(unique, np.arange(node_count + 1, dtype=np.int64) * node_count)
    slot = np.searchsorted(unique, keys) - row_start[rows]
    if len(slot) and slot.max() > 254:
        worst = int(rows[slot.argmax()])
        raise BadInput(
            f"Node {worst} touches more than 254 others; remesh so that fewer cells meet there."
        )
    start, incident = incident_cells(cells, node_count)
    return Pattern(
        row_start=row_start.astype(np.int32),
        columns=(unique % node_count).astype(np.int32),
        slot=slot.astype(np.uint8).reshape(len(cells), k * k),
        incident_start=start,
        incident=incident,
    )


def lattice_pattern(
    cells: np.ndarray, lattice: np.ndarray, index_of: np.ndarray, reach_two: np.ndarray
) -> tuple[Pattern, np.ndarray]:
    """Pattern of grid cells, without sorting all pairs, and where each row has its axes' blocks.

    lattice: (nodes, 3) integer position of each node; index_of: dense array from position (offset
    so that a border of two empty layers surrounds all nodes) to node or -1; reach_two: (nodes,) of
    bool, nodes that also need the blocks two steps away along each axis (ghost penalty).
    The second result, (nodes, 15) uint8, is the place in a row of the blocks at -2 .. 2 along x, y
    and z; 255 where there is none.
    """
    n, k = len(lattice), cells.shape[1]
    offsets = [(i, j, l) for l in range(-2, 3) for j in range(-2, 3) for i in range(-2, 3)]
    near = [o for o in offsets if max(map(abs, o)) <= 1]
    far = [o for o in offsets if max(map(abs, o)) == 2 and sum(map(abs, o)) == 2]
    # node numbers ascend with z, then y, then x; keeping the offsets in that order sorts each row
    used = sorted(near + far, key=lambda o: (o[2], o[1], o[0]))
    strides = np.array([index_of.shape[1] * index_of.shape[2], index_of.shape[2], 1])
    flat_index = index_of.reshape(-1)
    place = (lattice @ strides).astype(np.int64)
    shares = _shared_cell_offsets(cells, n)
    neighbour = np.full((n, len(used)), -1, np.int32)
    for column, o in enumerate(used):
        found = flat_index[place + int(np.dot(o, strides))]
        if max(map(abs, o)) <= 1:
            bit = np.uint32(1) << np.uint32((o[0] + 1) + 3 * (o[1] + 1) + 9 * (o[2] + 1))
            found = np.where(shares & bit, found, -1)
        else:
            found = np.where(reach_two, found, -1)
        neighbour[:, column] = found
    present = neighbour >= 0
    row_start = np.zeros(n + 1, np.int64)
    np.cumsum(present.sum(axis=1), out=row_start[1:])
    rank = np.cumsum(present, axis=1, dtype=np.uint8) - np.uint8(1)
    slot = np.empty((len(cells), k * k), np.uint8)
    for a in range(k):
        for b in range(k):
            i, j, l = (((b >> d) & 1) - ((a >> d) & 1) for d in range(3))
            slot[:, a * k + b] = rank[cells[:, a], used.index((i, j, l))]
    along = np.empty((n, 15), np.uint8)
    for axis in range(3):
        for step in range(-2, 3):
            x, y, z = (step * (d == axis) for d in range(3))
            at = used.index((x, y, z))
            along[:, 5 * axis + step + 2] = np.where(present[:, at], rank[:, at], 255)
    start, incident = incident_cells(cells, n)
    pattern = Pattern(
        row_start=row_start.astype(np.int32),
        columns=neighbour[present],
        slot=slot,
        incident_start=start,
        incident=incident,
    )
    return pattern, along


def _shared_cell_offsets(cells: np.ndarray, node_count: int) -> np.ndarray:
    """Per node, a bit for each of the 27 offsets at which a node shares a cell with it."""
    k = cells.shape[1]
    bits = np.zeros(node_count, np.uint32)
    for a in range(k):
        mask = np.uint32(0)
        for b in range(k):
            o = [((b >> d) & 1) - ((a >> d) & 1) for d in range(3)]
            mask |= np.uint32(1) << np.uint32((o[0] + 1) + 3 * (o[1] + 1) + 9 * (o[2] + 1))
        # a node is corner a of at most one cell, so plain indexing has no collisions
        bits[cells[:, a]] |= mask
    return bits
