"""Points carried by nodes: contact points, render meshes, sensors and observed surfaces alike."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse


@dataclass(frozen=True)
class Embedding:
    """point[p] = sum over m of weights[p, m] * node[nodes[p, m]].

    nodes: (points, m) int; weights: (points, m); node_count: rows of the arrays it is applied to.
    """

    nodes: np.ndarray
    weights: np.ndarray
    node_count: int

    def __len__(self) -> int:
        return len(self.nodes)

    @cached_property
    def matrix(self) -> sparse.csr_matrix:
        """The same as a sparse matrix (points, node_count); its transpose spreads forces."""
        points, m = self.nodes.shape
        start = np.arange(0, points * m + 1, m)
        matrix = sparse.csr_matrix(
            (self.weights.reshape(-1), self.nodes.reshape(-1), start),
            shape=(points, self.node_count),
        )
        return matrix

    def at(self, values: np.ndarray) -> np.ndarray:
        """Interpolated values, (points, ...), of nodal values (node_count, ...)."""
        flat = self.matrix @ np.reshape(values, (len(values), -1))
        return flat.reshape(len(self), *np.shape(values)[1:])

    def spread(self, loads: np.ndarray) -> np.ndarray:
        """The transpose of `at`: nodal sums (node_count, ...) of loads at the points."""
        return self.matrix.T @ loads


@dataclass(frozen=True)
class Surface:
    """A body's surface: points carried by its nodes, joined to facets.

    facets: (facets, dim) point indices, triangles or 2D segments, normals outward;
    facet_cell: (facets,) the cell each facet belongs to.
    """

    points: Embedding
    facets: np.ndarray
    facet_cell: np.ndarray

    def positions(self, nodes: np.ndarray) -> np.ndarray:
        """Surface points for the given node positions."""
        return self.points.at(nodes)

    def area_vectors(self, positions: np.ndarray) -> np.ndarray:
        """Outward normal times area (length in 2D) of each facet, (facets, dim)."""
        corner = positions[self.facets]
        if positions.shape[1] == 2:
            along = corner[:, 1] - corner[:, 0]
            return np.stack([along[:, 1], -along[:, 0]], axis=1)
        return 0.5 * np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])

    def point_areas(self, positions: np.ndarray) -> np.ndarray:
        """Each facet's area shared out equally to its points, (points,)."""
        area = np.linalg.norm(self.area_vectors(positions), axis=1)
        share = np.repeat(area / self.facets.shape[1], self.facets.shape[1])
        return np.bincount(self.facets.reshape(-1), share, minlength=len(self.points))
