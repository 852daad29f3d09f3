"""A grid body's cells as they are cut, for files and pictures: whole ones, and simplices of others.

The engine knows of a cut cell only its moments; here its shape is cut once more. Shapes with edges
give exactly the pieces that the moments are of (fem.cutting.sharp_cut). Smooth ones are cut in each
cell's six tetrahedra, whose flat pieces differ from the body's own within the cut by some tenths of
a per cent of its volume.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np

from pliant.fem.bodies.body import Body
from pliant.fem.bodies.embedding import Embedding
from pliant.fem.bodies.grid_body import lattice_distances, samples_a_cell
from pliant.fem.cutting.convex_pieces import prism_faces, split, tetrahedra_faces, whole_pieces
from pliant.fem.cutting.piece_simplices import piece_simplices
from pliant.fem.cutting.sharp_cut import is_sharp, sharp_simplices
from pliant.fem.cutting.surface_states import SNAP
from pliant.fem.cutting.thin_layers import BEYOND
from pliant.fem.cutting.volume_shift import shifted
from pliant.geometry.surfaces import surfaces_of
from pliant.geometry.upright import upright

ROUNDING = 1e-12
"""Of the filled fraction of a whole cell."""

AT_ONCE = 20_000
"""Cells cut together: some 200 MB."""

SAME_PLACE = 2.0**-24
"""Points closer than this, in cell widths, are one."""


@dataclass(frozen=True)
class ClippedCells:
    """Whole cells by their number; simplices (n, dim + 1) of points and the cell each is of.

    points: carried by the body's nodes.
    """

    whole: np.ndarray
    points: Embedding
    simplices: np.ndarray
    cell: np.ndarray


def clipped_cells(body: Body) -> ClippedCells | None:
    """The body as it is cut; None for meshes and bodies that do not know their shape."""
    if not body.is_grid or body.shape is None or body.lattice is None:
        return None
    is_full = np.abs(body.fill - 1.0) < ROUNDING
    simplex, position = _simplices(body, is_full)
    own = body.lattice[body.cells[:, 0]]
    low, high = own.min(axis=0) - 1, own.max(axis=0) + 1
    number = np.full(tuple(high - low + 1), -1)
    number[tuple((own - low).T)] = np.arange(len(own))
    near = ((position >= low) & (position <= high)).all(axis=1)
    simplex, position = simplex[near], position[near]
    cell = number[tuple((position - low).T)]
    # a cell may be whole and hold a thin layer beyond it as well (fem.cutting.thin_layers)
    whole = is_full | ((body.fill > 1.0) & ~np.isin(np.arange(len(own)), cell))
    layer = np.flatnonzero(cell < 0)
    cell[layer], side = _under(simplex[layer], position[layer], number, low, body.fill)
    simplex[layer] += side[:, None]
    position[layer] -= side
    kept = (cell >= 0) & ~is_full[cell]
    simplex, cell = simplex[kept], cell[kept]
    points, corners = _carried(body, simplex, cell, position[kept])
    return ClippedCells(np.flatnonzero(whole), points, corners, cell)


def _under(
    simplex: np.ndarray, position: np.ndarray, number: np.ndarray, low: np.ndarray, fill: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The cell that holds each simplex of a layer, or -1, and how far it is from there."""
    dim = position.shape[1]
    best, cell, step = np.zeros(len(position)), np.full(len(position), -1), np.zeros_like(position)
    for side in product((-1, 0, 1), repeat=dim):
        if not any(side):
            continue
        beyond = np.max([(1.0 - simplex[:, :, d] if s < 0 else simplex[:, :, d]).max(axis=1)
                         for d, s in enumerate(side) if s], axis=0, initial=0.0)  # fmt: skip
        place = np.clip(position - side - low, 0, np.array(number.shape) - 1)
        other = number[tuple(place.T)]
        better = (other >= 0) & (beyond <= BEYOND) & (fill[other] > best)
        best[better], cell[better], step[better] = fill[other[better]], other[better], side
    return cell, step


def _simplices(body: Body, is_full: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Simplices in the unit cell, and the lattice position of their cells."""
    assert body.shape is not None
    assert body.lattice is not None
    shape = upright(body.shape)[0] if body.follows_shape else body.shape
    s = body.subdivisions or samples_a_cell(shape, body.requested_size)
    phi, first, origin, h = lattice_distances(shape, body.requested_size, s)
    if body.subdivisions is None:
        tree = surfaces_of(shape)
        found = sharp_simplices(tree, phi, origin + h * first, h) if is_sharp(tree) else None
        if found is not None:
            return found[0], found[1] + first
        phi = shifted(shape, phi, origin + h * first, h / s)
    phi = np.where(np.abs(phi) < SNAP * h / s, 0.0, phi)
    cut = body.lattice[body.cells[~is_full, 0]]
    if s > 1 and body.subdivisions is None:  # and the layers that belong to them
        around = np.array(list(product((-1, 0, 1), repeat=body.dim)))
        cut = np.unique((cut[:, None] + around).reshape(-1, body.dim), axis=0)
        most = np.array(phi.shape) // s
        cut = cut[((cut >= first) & (cut - first < most)).all(axis=1)]
    parts = np.array(list(product(range(s), repeat=body.dim)))
    cells = ((cut - first)[:, None] * s + parts).reshape(-1, body.dim)
    found = [_cut(phi, cells[i : i + AT_ONCE]) for i in range(0, len(cells), AT_ONCE)]
    simplex = np.concatenate([np.zeros((0, body.dim + 1, body.dim)), *(f[0] for f in found)])
    place = np.concatenate([np.zeros((0, body.dim), int), *(f[1] for f in found)])
    return (simplex + (place % s)[:, None]) / s, place // s + first


def _cut(phi: np.ndarray, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What is below zero of cells (n, dim) of a lattice with values phi at its nodes."""
    dim = phi.ndim
    offsets = (np.arange(2**dim)[:, None] >> np.arange(dim)) & 1
    values = phi[tuple(np.moveaxis(cells[:, None] + offsets, 2, 0))]
    values = values / np.maximum(np.abs(values).max(axis=1, keepdims=True), 1e-300)
    inside = (values < 0.0).any(axis=1)
    cells, values = cells[inside], values[inside]
    solids = tetrahedra_faces() if dim == 3 else prism_faces()
    if dim == 2:
        values = np.tile(values, (1, 2))
    pieces, cube, gradient = whole_pieces(values[:, :, None], solids)
    every = np.ones(len(pieces.start), bool)
    pieces = split(pieces, 0, gradient[:, 0], (every, ~every))
    simplex, piece = piece_simplices(pieces, np.ones(len(pieces.start), bool), dim)
    return simplex, cells[cube[pieces.start[piece]]]


def _carried(
    body: Body, simplex: np.ndarray, cell: np.ndarray, position: np.ndarray
) -> tuple[Embedding, np.ndarray]:
    """The distinct corners of simplices, carried by their cells, and their numbers."""
    dim = body.dim
    local = simplex.reshape(-1, dim)
    owner = np.repeat(cell, dim + 1)
    place = np.rint((local + np.repeat(position, dim + 1, axis=0)) / SAME_PLACE).astype(np.int64)
    _, first, number = np.unique(place, axis=0, return_index=True, return_inverse=True)
    x, owner = local[first], owner[first]
    weights = np.ones((len(x), 2**dim))
    for corner in range(2**dim):
        for axis in range(dim):
            weights[:, corner] *= x[:, axis] if corner >> axis & 1 else 1.0 - x[:, axis]
    points = Embedding(body.cells[owner].astype(np.int32), weights, len(body.nodes))
    return points, number.reshape(-1, dim + 1)
