"""Cells with equally many functions, split into convex pieces: their moments and surface polygons.

The pieces inside the shape, by the shape's own tree of surfaces, add up to a cell's moments; their
polygons with the outside behind them are the body's surface.
"""

from dataclasses import dataclass

import numpy as np

from pliant.fem.cutting.convex_pieces import (
    Pieces,
    cube_faces,
    prism_faces,
    split,
    tetrahedra_faces,
    whole_pieces,
)
from pliant.fem.cutting.cutcells import CHUNK, triangle_integrals
from pliant.fem.cutting.piece_simplices import fans, piece_simplices
from pliant.geometry.surfaces import Triangles, combine


@dataclass(frozen=True)
class Batch:
    """What the cells with equally many functions contribute: moments and surface polygons.

    Where they are asked for, also the simplices (n, dim + 1, dim) that their insides consist of;
    else there are none.
    """

    row: np.ndarray  # (cells,) rows of the candidates
    moments: np.ndarray  # (cells, 3, 3, 3)
    vertex: np.ndarray  # (polygons, longest, 3) in the unit cell
    count: np.ndarray
    polygon_row: np.ndarray
    simplex: np.ndarray
    simplex_row: np.ndarray


def cut_batch(
    tree, surfaces, row, sign, functions, values, position, h, *, tets: bool, dim: int, solid: bool
) -> Batch:
    """Cells with the same number of functions. functions: (cells, k) leaves, -1 - leaf for a
    mesh's plane; values: (cells, corners, k); position: (cells, dim) of their first corner [m].
    solid: the simplices are asked for.
    """
    if dim == 2:
        values = np.tile(values, (1, 2, 1))
    solids = (cube_faces(),)
    if tets:
        solids = prism_faces() if dim == 2 else tetrahedra_faces()
    pieces, cube, gradient = whole_pieces(values, solids)
    for k in range(functions.shape[1]):
        wanted = _wanted(tree, pieces, k, sign, functions, cube)
        pieces = split(pieces, k, gradient[:, k], wanted)
    cell = cube[pieces.start]
    side = _sides(pieces, cell, sign, functions)
    meshes = [k for k, leaf in enumerate(surfaces) if isinstance(leaf, Triangles)]
    used = np.arange(pieces.vertex.shape[1]) < pieces.count[:, None]
    first = np.flatnonzero(np.r_[True, pieces.piece[1:] != pieces.piece[:-1]])
    polygon_mean = _means(pieces, used)
    for k in meshes:
        # a piece's sign by its middle: no triangle passes through it
        weight = pieces.count.astype(float)
        total = np.add.reduceat(polygon_mean * weight[:, None], first)
        middle = total / np.add.reduceat(weight, first)[:, None]
        there = position[cell] + h * middle[:, :dim]
        of_planes = (functions[cell] == -1 - k).any(axis=1)
        side[of_planes, k] = np.where(surfaces[k](there[of_planes]) < 0.0, -1, 1)
    full = combine(tree, side) < 0

    # across a polygon that functions vanish on, these have the other sign
    mine = np.flatnonzero(full[pieces.piece])
    zero = ((pieces.vertex[mine, :, 3:] == 0.0) | ~used[mine][:, :, None]).all(axis=1)
    touched = zero.any(axis=1)
    mine, zero = mine[touched], zero[touched]
    owner = pieces.piece[mine]
    across = side[owner].copy()
    flipped = np.where(zero, -pieces.sign[owner], pieces.sign[owner])
    polygon, column = np.nonzero(zero & (functions[cell[owner]] >= 0))
    leaf = functions[cell[owner[polygon]], column]
    across[polygon, leaf] = flipped[polygon, column]
    for k in meshes:
        by_plane = (zero & (functions[cell[owner]] == -1 - k)).any(axis=1)
        across[by_plane, k] = _mesh_across(
            pieces, mine[by_plane], flipped[by_plane], side[:, k], surfaces[k],
            polygon_mean, position[cell], h, dim,
        )  # fmt: skip
    boundary = mine[combine(tree, across) > 0]
    moments = _moments(pieces, full, boundary, cell, len(row))
    simplex, piece = piece_simplices(pieces, full if solid else np.zeros_like(full), dim)
    return Batch(
        row, moments, pieces.vertex[boundary][:, :, :3], pieces.count[boundary],
        row[cell[pieces.piece[boundary]]], simplex, row[cell[piece]],
    )  # fmt: skip


def _means(pieces: Pieces, used: np.ndarray) -> np.ndarray:
    """Mean of each polygon's vertices, (polygons, 3)."""
    total = np.where(used[:, :, None], pieces.vertex[:, :, :3], 0.0).sum(axis=1)
    return total / pieces.count[:, None]


def _wanted(tree, pieces: Pieces, function: int, sign, functions, cube):
    """Whether the halves of each piece below and above a function can be inside the shape."""
    cell = cube[pieces.start]
    least = sign[cell].copy()
    own = functions[cell]
    piece, column = np.nonzero(own < 0)
    least[piece, -1 - own[piece, column]] = -1
    piece, column = np.nonzero(own >= 0)
    # what has not been split yet can still be on the inner side
    least[piece, own[piece, column]] = np.minimum(2 * pieces.sign[piece, column] - 1, 1)
    below = combine(tree, least) < 0
    plane = own[:, function] >= 0
    above = least.copy()
    above[plane, own[plane, function]] = 1
    return below, combine(tree, above) < 0


def _sides(pieces: Pieces, cell, sign, functions) -> np.ndarray:
    """(pieces, leaves) -1 or 1: which side of every leaf a piece is on."""
    side = sign[cell].copy()
    own = functions[cell]
    piece, column = np.nonzero(own >= 0)
    side[piece, own[piece, column]] = pieces.sign[piece, column]
    return side


def _mesh_across(pieces, polygon, flipped, sign, mesh, mean, position, h, dim) -> np.ndarray:
    """Side of a mesh behind polygons: that of the piece there, or by query in the next cell."""
    functions = pieces.sign.shape[1]
    bits = 1 << np.arange(functions, dtype=np.int64)
    key = (pieces.start.astype(np.int64) << functions) + (pieces.sign > 0) @ bits
    wanted = pieces.start[pieces.piece[polygon]].astype(np.int64) << functions
    wanted += (flipped > 0) @ bits
    order = np.argsort(key, kind="stable")
    at = np.searchsorted(key, wanted, sorter=order).clip(max=len(key) - 1)
    found = key[order[at]] == wanted
    result = sign[order[at]].copy()
    lost = polygon[~found]
    v = pieces.vertex[lost][:, :, :3]
    normal = np.cross(v[:, 1] - v[:, 0], v[:, 2] - v[:, 0])
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-300)
    beyond = mean[lost] + 1e-3 * normal
    there = position[pieces.piece[lost]] + h * beyond[:, :dim]
    result[~found] = np.where(mesh(there) < 0.0, -1, 1)
    return result


def _moments(pieces: Pieces, full, boundary, cell, cells: int) -> np.ndarray:
    """Moments (cells, 3, 3, 3) by the divergence theorem (cutcells): surface and the face x = 1."""
    chosen = np.zeros(len(pieces.piece), bool)
    chosen[boundary] = True
    used = np.arange(pieces.vertex.shape[1]) < pieces.count[:, None]
    end = ((pieces.vertex[:, :, 0] == 1.0) | ~used).all(axis=1)
    chosen |= end & full[pieces.piece]
    polygon = np.flatnonzero(chosen)
    triangles, which = fans(pieces.vertex[polygon][:, :, :3], pieces.count[polygon])
    owner = cell[pieces.piece[polygon[which]]]
    order = np.argsort(owner, kind="stable")
    triangles, owner = triangles[order], owner[order]
    flat = np.empty((len(owner), 27))
    for start in range(0, len(owner), CHUNK):
        flat[start : start + CHUNK] = triangle_integrals(triangles[start : start + CHUNK])
    total = np.zeros((cells, 27))
    if len(owner):
        starts = np.flatnonzero(np.r_[True, owner[1:] != owner[:-1]])
        total[owner[starts]] = np.add.reduceat(flat, starts, axis=0)
    return total.reshape(cells, 3, 3, 3)
