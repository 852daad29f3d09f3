"""Arrays of simplices made fit for use: valid, without spare nodes, well numbered, oriented."""

import logging
from itertools import combinations
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import reverse_cuthill_mckee

from pliant.core.errors import BadInput
from pliant.fem.bodies.simplex_files import planar
from pliant.fem.forces.cells import simplex_geometry_rows

DEGENERATE = 1e-12
"""Volumes below this times the cube (2D: square) of the cell's longest edge count as zero: the
gradients of such a cell would be rounding errors."""

_FACES = {
    3: np.array([[0, 1], [1, 2], [2, 0]]),
    4: np.array([[1, 2, 3], [0, 3, 2], [0, 1, 3], [0, 2, 1]]),
}
"""Faces of a positively oriented simplex, normals outward."""

_log = logging.getLogger(__name__)


def edges_of(cells: np.ndarray) -> np.ndarray:
    """Distinct edges (edges, 2) of simplices, lower node first."""
    pairs = [cells[:, list(p)] for p in combinations(range(cells.shape[1]), 2)]
    ends = np.sort(np.concatenate(pairs), axis=1).astype(np.int64)
    span = int(ends.max()) + 1
    keys = np.unique(ends[:, 0] * span + ends[:, 1])  # numbers sort ten times as fast as rows
    return np.stack([keys // span, keys % span], axis=1).astype(cells.dtype)


def checked(nodes: Any, cells: Any, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Finite nodes (n, dim) and integer cells (m, dim + 1) that refer to them."""
    try:
        nodes, cells = np.array(nodes, dtype=np.float64), np.asarray(cells)
    except (TypeError, ValueError) as error:
        raise BadInput(f"{name}nodes and cells must be arrays of numbers.") from error
    if nodes.ndim != 2 or nodes.shape[1] not in (2, 3):
        raise BadInput(f"{name}nodes must have the shape (n, 2) or (n, 3), got {nodes.shape}.")
    if cells.size == 0:
        raise BadInput(f"{name}there are no cells: a body needs at least one.")
    if cells.ndim != 2 or cells.dtype.kind not in "iu":
        raise BadInput(f"{name}cells must be integers (m, {nodes.shape[1] + 1}).")
    bad = ~(np.abs(nodes) < 1e100).all(axis=1)
    if bad.any():
        i = int(np.argmax(bad))
        raise BadInput(f"{name}node {i} is not a usable position: {nodes[i].tolist()}.")
    if nodes.shape[1] == 3 and cells.shape[1] == 3 and planar(nodes):
        nodes = nodes[:, :2].copy()
    if cells.shape[1] != nodes.shape[1] + 1:
        raise BadInput(
            f"{name}cells of {cells.shape[1]} nodes do not fill {nodes.shape[1]}D space "
            f"({nodes.shape[1] + 1} are needed); for a surface use MeshShape(vertices, faces)."
        )
    wrong = ((cells < 0) | (cells >= len(nodes))).any(axis=1)
    if wrong.any():
        c = int(np.argmax(wrong))
        raise BadInput(
            f"{name}cell {c} refers to a node that does not exist: {cells[c].tolist()}, "
            f"there are {len(nodes)}."
        )
    return nodes, cells.astype(np.int32)


def used(nodes: np.ndarray, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Without the nodes that no cell has: they would make every matrix singular."""
    kept, flat = np.unique(cells, return_inverse=True)
    if len(kept) == len(nodes):
        return nodes, cells
    _log.info("%d nodes belong to no cell and are dropped", len(nodes) - len(kept))
    return nodes[kept], flat.reshape(cells.shape).astype(np.int32)


def renumbered(nodes: np.ndarray, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Neighbours near each other in memory: reverse Cuthill-McKee, cells by their lowest node."""
    ends = edges_of(cells)
    both = np.concatenate([ends, ends[:, ::-1]])
    graph = sparse.csr_matrix((np.ones(len(both)), tuple(both.T)), shape=(len(nodes),) * 2)
    order = reverse_cuthill_mckee(graph, symmetric_mode=True)
    new = np.empty(len(nodes), np.int32)
    new[order] = np.arange(len(nodes), dtype=np.int32)
    cells = new[cells]
    rank = np.sort(cells, axis=1)
    return nodes[order], cells[np.lexsort(rank.T[::-1])]


def oriented(nodes: np.ndarray, cells: np.ndarray, name: str):
    """Cells with positive volumes, their geometry rows and volumes."""
    corners = nodes[cells]
    dim = nodes.shape[1]
    with np.errstate(all="ignore"):  # a flat cell is reported below
        rows, volumes = simplex_geometry_rows(corners)
    longest = np.zeros(len(cells))
    for a, b in combinations(range(dim + 1), 2):
        np.maximum(longest, np.linalg.norm(corners[:, a] - corners[:, b], axis=1), out=longest)
    zero = ~(np.abs(volumes) > DEGENERATE * longest**dim)
    if zero.any():
        c = int(np.argmax(zero))
        raise BadInput(
            f"{name}cell {c} has no volume (nodes {cells[c].tolist()}, {int(zero.sum())} such "
            "cells in all): remove it or mesh again."
        )
    turned = volumes < 0.0
    if turned.any():
        _log.debug("%s%d cells were turned to positive volume", name, int(turned.sum()))
        cells = cells.copy()
        cells[turned, -2:] = cells[turned][:, [-1, -2]]
        rows, volumes = simplex_geometry_rows(nodes[cells])
    return cells, rows, volumes


def boundary(cells: np.ndarray, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Faces that one cell owns alone, (facets, dim) outward, and their cells, ascending."""
    k = cells.shape[1]
    faces = cells[:, _FACES[k]].reshape(-1, k - 1)
    owner = np.repeat(np.arange(len(cells), dtype=np.int32), k)
    key = np.sort(faces, axis=1)
    order = np.lexsort(key.T)
    new = np.r_[True, (key[order][1:] != key[order][:-1]).any(axis=1)]
    group = np.empty(len(faces), np.int64)
    group[order] = np.cumsum(new) - 1
    count = np.bincount(group)
    # two cells on opposite sides of a face see it turned in opposite ways
    side = np.bincount(group, _handedness(faces))
    bad = (count > 2) | ((count == 2) & (side != 0.0))
    if bad.any():
        c = int(owner[bad[group]].min())
        raise BadInput(
            f"{name}cell {c} overlaps another cell that has the same face: remove one of them."
        )
    alone = np.flatnonzero(count[group] == 1)
    return faces[alone], owner[alone]


def _handedness(faces: np.ndarray) -> np.ndarray:
    """+1 or -1: whether the corners are an even permutation of the ascending order."""
    sign = np.ones(len(faces))
    for a, b in combinations(range(faces.shape[1]), 2):
        sign[faces[:, a] > faces[:, b]] *= -1.0
    return sign
