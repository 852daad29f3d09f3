"""How the surfaces of a shape lie in the cells of a lattice: their values, signs and who matters.

A surface is *open* in a cell where its function has both signs there, or vanishes on a face: the
cell must be split by it, or have a facet there. An open surface is *relevant* unless another one
decides alone what is inside (behind one plane of a box the other five do not matter).

On tetrahedra a curved surface is the plane through its values at the corners. These are shifted so
that the volume is right on average: linear interpolation over the six tetrahedra of a cell of width
h exceeds a quadratic f with the Hessian H by

    h^2 / 12 (f_xx + f_yy + f_zz + f_xy + f_yz + f_zx) = h^2 / 24 (tr H + d . H d),  d = (1, 1, 1),

on average; the same in 2D with d = (1, 1).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pliant.fem.cutting.convex_pieces import ROUNDING
from pliant.fem.cutting.mesh_planes import CellPlanes, planes_in_cells
from pliant.fem.cutting.volume_shift import second_differences
from pliant.geometry.surfaces import Curved, Joined, Leaf, Plane, Tree, Triangles, combine, leaves

SNAP = 1e-5
"""Distances below SNAP * spacing count as zero (seed 000, section 2.5.2.6): the surface then runs
through the node. Without it, a body aligned with the grid gets slivers from rounding alone."""

BENDING = 0.02
"""Excess of the linear interpolant, in cell widths, above which cells are split in half first where
curved surfaces pass. A cylinder four cells across is then right to 0.05 % in volume and 0.4 % in
area; without, to 0.1 % and 1.3 %."""

AT_ONCE = 20_000
"""Pieces, at most, that are cut at once; they and their polygons then stay within 100 MB."""

MOST_PIECES = 300_000
"""Bound on the pieces of all cells with more than eight functions; beyond it the shape is finer
than the cells and is cut by its distance."""


@dataclass(frozen=True)
class SurfaceStates:
    """The surfaces in each cell, and the functions to split it by, cell by cell.

    sign: (cells, leaves) -1 or 1, of surfaces that are not open; decided: (cells,) no surface is
    relevant; bent: (cells,) to be split into tetrahedra first.
    row: (entries,) cell, ascending; leaf: (entries,) the surface, or -1 - surface for a plane of a
    mesh; values: (entries, corners).
    """

    sign: np.ndarray
    decided: np.ndarray
    bent: np.ndarray
    row: np.ndarray
    leaf: np.ndarray
    values: np.ndarray

    def batches(self, chosen: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, bool]]:
        """Cells with equally many functions: (cells, entries (cells, k), tetrahedra or not)."""
        rows, start, count = np.unique(self.row, return_index=True, return_counts=True)
        rows, start, count = rows[chosen[rows]], start[chosen[rows]], count[chosen[rows]]
        for k in np.unique(count):
            for bent in (False, True):
                pick = np.flatnonzero((count == k) & (self.bent[rows] == bent))
                size = max(int(AT_ONCE / (_most_pieces(k) * (6 if bent else 1))), 1)
                for first in range(0, len(pick), size):
                    some = pick[first : first + size]
                    yield rows[some], start[some][:, None] + np.arange(k), bent


def states(
    tree: Tree, surfaces: list[Leaf], cells: np.ndarray, shape: tuple[int, ...],
    origin: np.ndarray, h: float, values: "SurfaceValues",
) -> SurfaceStates | None:  # fmt: skip
    """Which surfaces pass through which cells; None where a mesh has too many planes there.

    cells: (cells, dim) of the lattice with so many nodes (`shape`), spacing h from `origin` on.
    """
    # a surface that only touches a cell may still bound the body there
    touching = values.zeros >= cells.shape[1]
    open_ = touching | ((values.low < 0.0) & (values.high > 0.0))
    sign = np.where(values.low < 0.0, -1, 1).astype(np.int8)
    mesh_planes: dict[int, CellPlanes] = {}
    for k, leaf in enumerate(surfaces):
        if isinstance(leaf, Triangles):
            planes = planes_in_cells(leaf.corners, cells, shape, origin, h)
            if planes is None:
                return None
            mesh_planes[k] = planes
            sign[:, k] = np.where(leaf(origin + h * (cells + 0.5)) < 0.0, -1, 1)
            open_[:, k] = False
            open_[planes.cell, k] = True
    relevant = _relevant(tree, open_, sign)
    curved = np.array([isinstance(leaf, Curved) for leaf in surfaces])
    # Snapping bends a plane by up to SNAP. On tetrahedra any values are linear, and all cells
    # around the node are split alike, so that they still fit together.
    bent = np.any(relevant & (curved | values.moved), axis=1)
    plain = relevant.copy()
    plain[:, list(mesh_planes)] = False
    row, leaf = np.nonzero(plain)
    lists = [(row, leaf, values.at_corner[row, :, leaf])]
    for k, planes in mesh_planes.items():
        pick = relevant[planes.cell, k]
        at_corner, shifted = _snapped(planes.values[pick])
        row = planes.cell[pick]
        bent[row[shifted.any(axis=1)]] = True
        lists.append((row, np.full(len(row), -1 - k), at_corner))
    row, leaf, at_corner = (np.concatenate([entry[i] for entry in lists]) for i in range(3))
    count = np.bincount(row)
    if _most_pieces(count[count > 8]).sum() > MOST_PIECES:
        return None
    order = np.argsort(row, kind="stable")
    decided = ~np.any(relevant, axis=1)
    return SurfaceStates(sign, decided, bent, row[order], leaf[order], at_corner[order])


@dataclass(frozen=True)
class SurfaceValues:
    """Values of the surfaces' functions in cells, in cell widths.

    at_corner: (cells, corners, leaves); low, high, zeros: (cells, leaves) least and largest value
    and number of zeros, among finer nodes too where a surface is taken finer; moved: (cells,
    leaves) where snapping bends a plane.
    """

    at_corner: np.ndarray
    low: np.ndarray
    high: np.ndarray
    zeros: np.ndarray
    moved: np.ndarray


def _values(value: np.ndarray, moved: np.ndarray, corner: np.ndarray) -> SurfaceValues:
    """From values at nodes (nodes, leaves) and the nodes of each cell."""
    at = value[corner]
    zeros = (at == 0.0).sum(axis=1)
    return SurfaceValues(at, at.min(axis=1), at.max(axis=1), zeros, np.any(moved[corner], axis=1))


def fineness_of(surfaces, near, shape, origin, h) -> int:
    """2 if a curved surface bends so much within a cell that tetrahedra of half its width are
    needed (a radius of less than about five cells), else 1.
    """
    nodes, _ = _nodes_of(near, _corner_offsets(near.shape[1]), shape)
    at = origin + h * nodes
    for leaf in surfaces:
        if isinstance(leaf, Curved) and leaf.smooth:
            value = leaf(at)
            close = at[np.abs(value) < h]
            if len(close) and np.abs(_excess(leaf, close, leaf(close), h)).max() > BENDING * h:
                return 2
    return 1


def _corner_offsets(dim: int) -> np.ndarray:
    return (np.arange(2**dim)[:, None] >> np.arange(dim)) & 1


def lattice_values(surfaces, near, shape, origin, h, fineness: int) -> SurfaceValues:
    """Values at the corners of cells, and between them where curved surfaces are taken finer."""
    dim = near.shape[1]
    nodes, corner = _nodes_of(near, _corner_offsets(dim), shape)
    at = origin + h * nodes
    value = np.zeros((len(nodes), len(surfaces)))
    moved = np.zeros_like(value, bool)
    finer = [k for k, f in enumerate(surfaces) if isinstance(f, Curved) and fineness > 1]
    for k, leaf in enumerate(surfaces):
        if not isinstance(leaf, Triangles) and k not in finer:
            value[:, k], moved[:, k] = _snapped(_node_values(leaf, at, h) / h)
    values = _values(value, moved, corner)
    if finer:
        step = h / fineness
        grid = np.stack(np.unravel_index(np.arange((fineness + 1) ** dim), (fineness + 1,) * dim))
        fine_shape = tuple((n - 1) * fineness + 1 for n in shape)
        between, inner = _nodes_of(near * fineness, grid.T, fine_shape)
        for k in finer:
            found, _ = _snapped(_node_values(surfaces[k], origin + step * between, step) / step)
            values.low[:, k], values.high[:, k] = found[inner].min(axis=1), found[inner].max(axis=1)
            values.zeros[:, k] = (found[inner] == 0.0).sum(axis=1)
    return values


def fine_values(surfaces, fine, shape, origin, h, fineness: int) -> SurfaceValues:
    """Values at the corners of the parts of cells, in their widths."""
    step = h / fineness
    nodes, corner = _nodes_of(fine, _corner_offsets(fine.shape[1]), shape)
    at = origin + step * nodes
    value = np.zeros((len(nodes), len(surfaces)))
    moved = np.zeros_like(value, bool)
    on_lattice = (nodes % fineness == 0).all(axis=1)
    for k, leaf in enumerate(surfaces):
        if isinstance(leaf, Triangles):
            continue
        found = _node_values(leaf, at, step) / step
        snapped, shifted = _snapped(found)
        if isinstance(leaf, Plane):
            # what whole cells do not see must not be snapped, nor at another distance
            snap = on_lattice & (np.abs(found) < SNAP * fineness)
            tiny = snap | (np.abs(found) < ROUNDING)
            snapped, shifted = np.where(tiny, 0.0, found), snap & (np.abs(found) > ROUNDING)
        value[:, k], moved[:, k] = snapped, shifted
    return _values(value, moved, corner)


def _most_pieces(planes):
    """Into how many pieces so many planes can cut a cell, 1 + n + n (n - 1) / 2 + C(n, 3)."""
    n = planes
    return 1 + n + n * (n - 1) // 2 + n * (n - 1) * (n - 2) // 6


def _nodes_of(near: np.ndarray, offsets: np.ndarray, shape: tuple[int, ...]):
    """Distinct nodes of cells, (nodes, dim), and each cell's corners among them."""
    place = np.ravel_multi_index(tuple(np.moveaxis(near[:, None] + offsets, 2, 0)), shape)
    found, corner = np.unique(place, return_inverse=True)
    return np.stack(np.unravel_index(found, shape), axis=1), corner.reshape(place.shape)


def _snapped(value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values with tiny ones set to zero, and where that bends a plane beyond rounding."""
    size = np.abs(value)
    return np.where(size < SNAP, 0.0, value), (size < SNAP) & (size > 1e-12)


def _node_values(leaf: Plane | Curved, at: np.ndarray, h: float) -> np.ndarray:
    """Values of a surface's function at nodes (n, dim), of curved ones shifted as said above."""
    value = leaf(at)
    if isinstance(leaf, Plane) or not leaf.smooth:
        return value
    near = np.abs(value) < 2.0 * h
    value[near] -= _excess(leaf, at[near], value[near], h)
    return value


def _excess(leaf: Curved, x: np.ndarray, f: np.ndarray, h: float) -> np.ndarray:
    """Mean of the linear interpolant minus f about nodes x; zero where f has a kink."""
    dim = x.shape[1]
    return second_differences(leaf, x, f, h, (*np.eye(dim), np.ones(dim))) / 24.0


def _relevant(tree: Tree, open_: np.ndarray, sign: np.ndarray) -> np.ndarray:
    """(cells, leaves) surfaces that decide what is inside a cell: open, as all nodes above them."""
    low, high = np.where(open_, -1, sign), np.where(open_, 1, sign)
    found = np.zeros_like(open_)

    def visit(node: Tree, first: int, above: np.ndarray) -> int:
        if not isinstance(node, Joined):
            found[:, first] = above & open_[:, first]
            return first + 1
        for part in node.parts:
            columns = slice(first, first + len(leaves(part)))
            undecided = combine(part, low[:, columns]) < combine(part, high[:, columns])
            first = visit(part, first, above & undecided)
        return first

    visit(tree, 0, combine(tree, low) < combine(tree, high))
    return found
