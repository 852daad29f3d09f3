"""The levels of a multigrid hierarchy: coarse lattices, interpolation and sparsity, once a body.

A coarse node sits at every even lattice position that interpolates to at least one node of the
finer level. Interpolation is trilinear and simply restricted to the nodes there are: a fine node
always finds all its coarse parents, so linear fields, rigid motions included, are reproduced
exactly up to the last cut cell and no weight has to be renormalised.

A body without a lattice (tetrahedra) gets one as auxiliary space: its nodes are embedded in a
lattice about twice as wide as its edges, and everything below is the same.
"""

import itertools
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from pliant.linalg.nodes import Nodes

COARSEST_NODES = 64
"""Levels are added until so few nodes are left: the dense inverse of 192 unknowns costs 1 ms to set
up and 15 us to apply, less than one more level."""

AUXILIARY_WIDTH = 2.0
"""Lattice spacing of a tetrahedral body in mean edge lengths. A box of 25,704 tetrahedra takes 5
iterations at 1, 8 at 2 and 11 at 3, but a cycle takes six times as long at 1 as at 2: the lattice
then has half as many nodes as the mesh, with 93 blocks a row."""

QUADRATIC_WIDTH = 1.25
"""The same for quadratic cells, whose edges end at their middle nodes too. A box of 13,524 of them
(20,445 nodes) takes 13 iterations at 1.5 and 11 at 1.25, in the same time."""


@dataclass(frozen=True, eq=False)
class Interpolation:
    """Compressed rows of a matrix of numbers: fine = P coarse, or its transpose."""

    row_start: np.ndarray
    columns: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, matrix: sparse.csr_matrix) -> "Interpolation":
        """From a SciPy matrix, columns ascending."""
        matrix.sort_indices()
        return cls(
            matrix.indptr.astype(np.int32),
            matrix.indices.astype(np.int32),
            matrix.data.astype(np.float32),
        )


@dataclass(frozen=True, eq=False)
class Level:
    """One coarse level: its lattice, sparsity, mask and interpolation to the level above.

    lattice: (nodes, 3) non-negative positions; free: (nodes, 3) of 1 or 0; radius: (nodes,) how far
    from a node, in spacings of the level above, the rows of its support couple: 3 where they reach
    two nodes (ghost penalty, tetrahedra), else 2. prolong: rows are nodes of the level above.
    """

    lattice: np.ndarray
    row_start: np.ndarray
    columns: np.ndarray
    free: np.ndarray
    radius: np.ndarray
    prolong: Interpolation
    restrict: Interpolation

    @property
    def node_count(self) -> int:
        """Nodes of this level."""
        return len(self.lattice)


def coarse_levels(nodes: Nodes, free: np.ndarray) -> list[Level]:
    """The levels below the nodes' own, finest first; empty where they are few enough to invert."""
    levels: list[Level] = []
    count = nodes.count
    if count <= COARSEST_NODES:
        return levels
    if nodes.lattice is None:
        parents, weights, lattice = _embed(nodes)
        far, shape = np.ones(count, bool), "cube"
    else:
        lattice = from_zero(nodes.lattice)
        far, shape = _reaches_two(nodes, lattice), "cross"
        parents, weights, lattice = _halve(lattice)
    while True:
        level = _level(parents, weights, lattice, free, far, shape)
        if level.node_count > 0.7 * count:  # too thin to coarsen any further
            break
        levels.append(level)
        if level.node_count <= COARSEST_NODES:
            break
        count, free, far = level.node_count, level.free, level.radius == 3
        parents, weights, lattice = _halve(lattice)
    return levels


def _reaches_two(nodes: Nodes, lattice: np.ndarray) -> np.ndarray:
    """Nodes that couple to others two positions away."""
    key = (lattice @ np.array([1, 7, 49])).astype(np.int32)
    start = nodes.pattern.row_start
    far = np.zeros(len(key), bool)
    for first in range(0, len(key), 100_000):  # in parts: there are 30 times more blocks than nodes
        rows = np.arange(first, min(first + 100_000, len(key)))
        difference = np.abs(
            key[nodes.pattern.columns[start[rows[0]] : start[rows[-1] + 1]]]
            - np.repeat(key[rows], np.diff(start[first : rows[-1] + 2]))
        )
        beyond = (difference == 2) | (difference == 14) | (difference == 98)
        far[rows] = np.add.reduceat(beyond, start[rows] - start[first]) > 0
    return far


def from_zero(lattice: np.ndarray) -> np.ndarray:
    """Positions (nodes, 3) that start at zero along each axis, the longest axis last."""
    padded = np.zeros((len(lattice), 3), np.int64)
    padded[:, : lattice.shape[1]] = lattice - lattice.min(axis=0)
    return _longest_last(padded)


def _longest_last(position: np.ndarray) -> np.ndarray:
    """The same with the axes from the shortest to the longest.

    Coarse nodes are numbered along the first axis first, so that neighbours have numbers as close
    as can be: the smoother then finds many runs of nodes that do not touch.
    """
    return position[:, np.argsort(np.ptp(position, axis=0), kind="stable")]


def _halve(lattice: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Parents (nodes, 8) or -1, weights (nodes, 8) and the lattice of the coarse nodes."""
    below, odd = lattice // 2, lattice % 2
    shape = below.max(axis=0) + 2
    strides = np.array([1, shape[0], shape[0] * shape[1]])  # node numbers ascend with z, y, x
    parents = np.full((len(lattice), 8), -1, np.int64)
    for corner in range(8):
        step = np.array([(corner >> d) & 1 for d in range(3)])
        inside = (step <= odd).all(axis=1)
        parents[inside, corner] = (below[inside] + step) @ strides
    weight = np.prod(np.where(odd == 1, 0.5, 1.0), axis=1)
    return _number(parents, np.where(parents >= 0, weight[:, None], 0.0), shape)


def _embed(nodes: Nodes) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Parents and weights of mesh nodes in a lattice, and its positions."""
    rows = np.repeat(np.arange(nodes.count), np.diff(nodes.pattern.row_start))
    at = nodes.positions
    edges = at[nodes.pattern.columns] - at[rows]
    lengths = np.linalg.norm(edges, axis=1)
    # no edge may span more than one lattice cell, or the coupling would reach beyond two nodes
    width = AUXILIARY_WIDTH if nodes.middles is None else QUADRATIC_WIDTH
    spacing = max(width * lengths[lengths > 0.0].mean(), np.abs(edges).max())
    position = np.zeros((nodes.count, 3))
    position[:, : nodes.dim] = (at - at.min(axis=0)) / spacing
    position = _longest_last(position)
    below = np.floor(position).astype(np.int64)
    t = position - below
    shape = below.max(axis=0) + 2
    strides = np.array([1, shape[0], shape[0] * shape[1]])
    parents = np.full((nodes.count, 8), -1, np.int64)
    weights = np.ones((nodes.count, 8))
    for corner in range(8):
        step = np.array([(corner >> d) & 1 for d in range(3)])
        weights[:, corner] = np.prod(np.where(step == 1, t, 1.0 - t), axis=1)
        inside = weights[:, corner] > 0.0
        parents[inside, corner] = (below[inside] + step) @ strides
    return _number(parents, weights, shape)


def _number(
    parents: np.ndarray, weights: np.ndarray, shape: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Number the places that are somebody's parent, in ascending order."""
    used = np.zeros(int(np.prod(shape)), bool)
    used[parents[parents >= 0]] = True
    places = np.flatnonzero(used)
    number = np.full(len(used), -1, np.int64)
    number[places] = np.arange(len(places))
    numbered = np.where(parents >= 0, number[np.maximum(parents, 0)], -1)
    x, rest = places % shape[0], places // shape[0]
    lattice = np.stack([x, rest % shape[1], rest // shape[1]], axis=1)
    return numbered, weights, lattice


def _level(
    parents: np.ndarray,
    weights: np.ndarray,
    lattice: np.ndarray,
    free: np.ndarray,
    far: np.ndarray,
    shape: str,
) -> Level:
    present = parents >= 0
    start = np.zeros(len(parents) + 1, np.int64)
    np.cumsum(present.sum(axis=1), out=start[1:])
    P = sparse.csr_matrix(
        (weights[present], parents[present], start), shape=(len(parents), len(lattice))
    )
    transposed = P.T.tocsr()
    far = transposed @ far.astype(float) > 0.0
    row_start, columns = _stencil(lattice, far, shape)
    return Level(
        lattice=lattice,
        row_start=row_start,
        columns=columns,
        # a component is held if all the components it would interpolate to are
        free=(transposed @ (free > 0) > 0.0).astype(float),
        radius=np.where(far, 3, 2),
        prolong=Interpolation.of(P),
        restrict=Interpolation.of(transposed),
    )


def _stencil(lattice: np.ndarray, far: np.ndarray, shape: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows that couple neighbours and, among far nodes, those two away: along one axis ("cross",
    what the ghost penalty leaves) or along several ("cube").
    """
    border = lattice.max(axis=0) + 5  # two empty layers on each side
    strides = np.array([1, border[0], border[0] * border[1]])
    place = (lattice + 2) @ strides
    number = np.full(int(np.prod(border)), -1, np.int32)
    number[place] = np.arange(len(lattice))
    side = range(-2, 3) if far.any() else range(-1, 2)
    offsets = [
        o
        for o in itertools.product(side, side, side)
        if shape == "cube" or sum(abs(d) == 2 for d in o) <= 1
    ]
    neighbour = np.empty((len(lattice), len(offsets)), np.int32)
    for column, (k, j, i) in enumerate(offsets):
        found = number[place + int(np.dot((i, j, k), strides))]
        if max(map(abs, (i, j, k))) == 2:
            found = np.where(far & far[found], found, -1)
        neighbour[:, column] = found
    present = neighbour >= 0
    row_start = np.zeros(len(lattice) + 1, np.int32)
    np.cumsum(present.sum(axis=1), out=row_start[1:])
    return row_start, neighbour[present]
