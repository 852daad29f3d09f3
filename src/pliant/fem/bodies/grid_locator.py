"""Where a material point lies in the cells of a grid body."""

from dataclasses import dataclass

import numpy as np
from scipy.spatial import KDTree

from pliant.fem.bodies.embedding import Embedding


class Locator:
    """Finds the cell of a material point; points outside take the nearest active cell's field."""

    def __init__(self, cells, cell_lattice, origin, spacing, lattice_shape, node_count):
        self._cells = cells
        self._lattice = cell_lattice
        self._origin = origin
        self._h = spacing
        self._cell_of = np.full(lattice_shape, -1, np.int32)
        self._cell_of[tuple(cell_lattice.T)] = np.arange(len(cells))
        self._node_count = node_count
        self._tree: KDTree | None = None

    def cells_of(self, points: np.ndarray) -> np.ndarray:
        """Index of the cell of each point; the nearest active one where there is none."""
        x = (points - self._origin) / self._h
        place = np.clip(np.floor(x).astype(int), 0, np.array(self._cell_of.shape) - 1)
        cell = self._cell_of[tuple(place.T)]
        lost = np.flatnonzero(cell < 0)
        if len(lost):
            tree = self._tree = self._tree or KDTree(self._lattice + 0.5)
            cell[lost] = tree.query(x[lost])[1]
        return cell

    def __call__(self, points: np.ndarray) -> Embedding:
        """Points carried by the cells they lie in."""
        return self.within(self.cells_of(points), points)

    def within(self, cell: np.ndarray, points: np.ndarray) -> Embedding:
        """Points carried by the given cells."""
        t = (points - self._origin) / self._h - self._lattice[cell]
        k, dim = self._cells.shape[1], points.shape[1]
        weights = np.ones((len(points), k))
        for a in range(k):
            for d in range(dim):
                weights[:, a] *= t[:, d] if (a >> d) & 1 else 1.0 - t[:, d]
        return Embedding(self._cells[cell], weights, self._node_count)


@dataclass(frozen=True)
class TurnedLocator:
    """The same for a lattice that lies along other axes than x, y, z."""

    upright: Locator
    turn: np.ndarray

    def __call__(self, points: np.ndarray) -> Embedding:
        """Points carried by the cells they lie in."""
        return self.upright(np.asarray(points, float) @ self.turn)
