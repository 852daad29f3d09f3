"""Cells of a lattice that are in use, and their nodes."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class LatticeCells:
    """Cells of a lattice and their nodes, x fastest; cell_of and index_of: position to number."""

    cell_lattice: np.ndarray
    cells: np.ndarray
    lattice: np.ndarray
    index_of: np.ndarray
    cell_of: np.ndarray


def lattice_cells(active: np.ndarray) -> LatticeCells:
    """The cells that are True in an array over the lattice."""
    dim = active.ndim
    cell_lattice = np.argwhere(active)
    cell_lattice = cell_lattice[np.lexsort(cell_lattice.T)]
    corner_offsets = np.array([[(a >> d) & 1 for d in range(dim)] for a in range(2**dim)])
    corners = cell_lattice[:, None, :] + corner_offsets  # (cells, k, dim)
    is_node = np.zeros(tuple(n + 1 for n in active.shape), bool)
    is_node[tuple(corners.reshape(-1, dim).T)] = True
    lattice = np.argwhere(is_node)
    lattice = lattice[np.lexsort(lattice.T)]
    index_of = np.full(is_node.shape, -1, np.int32)
    index_of[tuple(lattice.T)] = np.arange(len(lattice))
    cell_of = np.full(is_node.shape, -1, np.int32)
    cell_of[tuple(cell_lattice.T)] = np.arange(len(cell_lattice))
    cells = index_of[tuple(np.moveaxis(corners, 2, 0))]
    return LatticeCells(cell_lattice, cells, lattice, index_of, cell_of)


def any_corner(inside: np.ndarray) -> np.ndarray:
    """Cells with at least one inside corner."""
    for axis in range(inside.ndim):
        low = tuple(slice(None, -1) if d == axis else slice(None) for d in range(inside.ndim))
        high = tuple(slice(1, None) if d == axis else slice(None) for d in range(inside.ndim))
        inside = inside[low] | inside[high]
    return inside
