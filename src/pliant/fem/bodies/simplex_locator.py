"""The cell of a body of simplices that a point is in, and its weights there."""

from functools import cached_property

import numpy as np
from scipy.spatial import KDTree

from pliant.core.errors import BadInput
from pliant.fem.bodies.embedding import Embedding
from pliant.fem.bodies.quadratic_simplices import quadratic_shapes


class SimplexLocator:
    """Finds the cell of a material point.

    Outside the body, the nearby cell is taken whose smallest barycentric coordinate at the point
    is largest; its linear field goes on beyond its faces. Quadratic cells, whose own polynomial
    would run away outside, are continued linearly from the nearest point in barycentric terms.
    """

    NEAREST = 12
    """Centroids looked at first; in a ball's mesh 99.9 % of the points inside are found so."""

    INSIDE = -1e-10
    """Barycentric coordinates from here on count as inside: a point on a face is in both cells."""

    CHUNK = 100_000
    """Points handled at a time, to bound the memory of the candidates."""

    def __init__(self, nodes: np.ndarray, cells: np.ndarray):
        self._cells = cells
        self._node_count = len(nodes)
        corners = nodes[cells[:, : nodes.shape[1] + 1]]
        self._last = corners[:, -1]
        edges = corners[:, :-1] - corners[:, -1:]
        self._to_barycentric = np.linalg.inv(edges.transpose(0, 2, 1))
        self._centre = corners.mean(axis=1)
        self._reach = np.linalg.norm(corners - self._centre[:, None], axis=2).max(axis=1)

    def cells_of(self, points: np.ndarray) -> np.ndarray:
        """Index of the cell of each point (points, dim), or of the best one outside."""
        points = np.asarray(points, float)
        bad = ~np.isfinite(points).all(axis=1)
        if bad.any():
            raise BadInput(f"Point {int(np.argmax(bad))} is not finite: it has no cell.")
        found = np.empty(len(points), np.int64)
        for start in range(0, len(points), self.CHUNK):
            rows = slice(start, start + self.CHUNK)
            found[rows] = self._find(points[rows])
        return found

    def __call__(self, points: np.ndarray) -> Embedding:
        """The points carried by the nodes of their cells."""
        points = np.asarray(points, float)
        cell = self.cells_of(points)
        weights = self._barycentric(cell, points)
        if self._cells.shape[1] > weights.shape[1]:
            weights = _continued(weights)
        return Embedding(self._cells[cell], weights, self._node_count)

    def _barycentric(self, cell: np.ndarray, points: np.ndarray) -> np.ndarray:
        """Weights (points, dim + 1) of the cells' corners."""
        head = np.einsum("nij,nj->ni", self._to_barycentric[cell], points - self._last[cell])
        return np.column_stack([head, 1.0 - head.sum(axis=1)])

    def _find(self, points: np.ndarray) -> np.ndarray:
        near = self._tree.query(points, k=min(self.NEAREST, len(self._cells)))[1]
        near = near.reshape(len(points), -1)
        best = near[:, 0].astype(np.int64)
        depth = np.full(len(points), -np.inf)
        for candidate in near.T:
            open_ = np.flatnonzero(depth < self.INSIDE)
            self._improve(points, open_, candidate[open_], best, depth)
        # Large cells next to small ones have far centres: look at all that may reach the point.
        lost = np.flatnonzero(depth < self.INSIDE)
        for rows, tree, reach in self._classes:
            hits = tree.query_ball_point(points[lost], reach)
            counts = np.array([len(h) for h in hits], int)
            if not counts.sum():
                continue
            point = np.repeat(lost, counts)
            cell = rows[np.concatenate([h for h in hits if h]).astype(int)]
            lowest = self._barycentric(cell, points[point]).min(axis=1)
            order = np.lexsort((-lowest, point))
            first = order[np.r_[True, point[order][1:] != point[order][:-1]]]
            self._improve(points, point[first], cell[first], best, depth)
        return best

    def _improve(self, points, which, cell, best, depth) -> None:
        """Take `cell` for the points `which` where their smallest coordinate is larger there."""
        lowest = self._barycentric(cell, points[which]).min(axis=1)
        better = lowest > depth[which]
        best[which[better]] = cell[better]
        depth[which[better]] = lowest[better]

    @cached_property
    def _tree(self) -> KDTree:
        return KDTree(self._centre)

    @cached_property
    def _classes(self) -> list[tuple[np.ndarray, KDTree, float]]:
        """Cells grouped by powers of two of their reach, each group with a tree of its centres."""
        size = np.floor(np.log2(self._reach / self._reach.min())).astype(int)
        groups = [np.flatnonzero(size == s) for s in np.unique(size)]
        return [
            (g, KDTree(self._centre[g]), float(self._reach[g].max()) * (1.0 + 1e-9)) for g in groups
        ]


def _continued(barycentric: np.ndarray) -> np.ndarray:
    """Quadratic weights (points, 10 or 6), outside of a cell their first-order continuation.

    N(l + d) without the term of second order in d, which is (N(d) + N(-d)) / 2 as N(0) = 0.
    """
    inner = np.maximum(barycentric, 0.0)
    inner /= inner.sum(axis=1, keepdims=True)
    beyond = barycentric - inner
    bent = 0.5 * (quadratic_shapes(beyond) + quadratic_shapes(-beyond))
    return quadratic_shapes(barycentric) - bent
