"""Overlapping groups of a body's nodes: k-means, each grown by one ring of neighbours.

As many groups as nodes are one around every node. Pieces of a body that do not touch are grouped
apart, each into its share of the groups, at least one.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

LLOYD = 20
"""Rounds of k-means: the groups are to be compact, not optimal."""


@dataclass(frozen=True)
class Clusters:
    """member, start: nodes of cluster c are member[start[c]:start[c + 1]], ascending."""

    member: np.ndarray
    start: np.ndarray

    def __len__(self) -> int:
        return len(self.start) - 1

    @property
    def cluster(self) -> np.ndarray:
        """The cluster of every member."""
        return np.repeat(np.arange(len(self)), np.diff(self.start))


def clusters_of(nodes: np.ndarray, cells: np.ndarray, count: int) -> Clusters:
    """`count` clusters of the nodes (n, dim) of cells (c, k) of neighbours; 0: one a node."""
    near = neighbours(len(nodes), cells)
    if count == 0 or count >= len(nodes):
        grown = near
    else:
        grown = sparse.csr_array((near @ _groups(nodes, near, count)).T)
    grown.sort_indices()
    return Clusters(grown.indices.astype(np.int32), grown.indptr.astype(np.int32))


def neighbours(count: int, cells: np.ndarray) -> sparse.csr_array:
    """1 where two nodes share a cell, and on the diagonal."""
    k = cells.shape[1]
    row = np.repeat(cells, k, axis=1).reshape(-1)
    column = np.tile(cells, (1, k)).reshape(-1)
    near = sparse.csr_array((np.ones(len(row)), (row, column)), shape=(count, count))
    near.data[:] = 1.0
    return near


def _groups(nodes: np.ndarray, near: sparse.csr_array, count: int) -> sparse.csr_array:
    """(nodes, groups) of 1 where a node belongs to a group."""
    pieces, piece = connected_components(near, directed=False)
    label, groups = np.zeros(len(nodes), int), 0
    for k in range(pieces):
        own = np.flatnonzero(piece == k)
        wanted = max(1, min(len(own), round(count * len(own) / len(nodes))))
        found = _k_means(nodes[own], wanted)
        label[own], groups = groups + found, groups + int(found.max()) + 1
    table = (np.ones(len(nodes)), (np.arange(len(nodes)), label))
    return sparse.csr_array(table, shape=(len(nodes), groups))


def _k_means(points: np.ndarray, count: int) -> np.ndarray:
    """Labels 0 .. of at most `count` groups; starts at points far from each other."""
    if count == 1:
        return np.zeros(len(points), int)
    middle = points.mean(axis=0)
    chosen = [int(np.argmax(np.linalg.norm(points - middle, axis=1)))]
    gap = np.linalg.norm(points - points[chosen[0]], axis=1)
    while len(chosen) < count:
        chosen.append(int(np.argmax(gap)))
        gap = np.minimum(gap, np.linalg.norm(points - points[chosen[-1]], axis=1))
    centres = points[chosen]
    label = np.zeros(len(points), int)
    for _ in range(LLOYD):
        distance = ((points[:, None] - centres[None]) ** 2).sum(axis=2)
        label = np.argmin(distance, axis=1)
        sizes = np.bincount(label, minlength=count)
        sums = np.stack([np.bincount(label, p, count) for p in points.T], axis=1)
        centres = np.where(sizes[:, None] > 0, sums / np.maximum(sizes, 1)[:, None], centres)
    return np.unique(label, return_inverse=True)[1]
