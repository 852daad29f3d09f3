"""Convex pieces as tetrahedra, or triangles in the plane: what files and pictures of cells need."""

import numpy as np

from pliant.fem.cutting.convex_pieces import Pieces

FLAT = 1e-14
"""Volume in unit cells below which a simplex has no inside."""


def piece_simplices(pieces: Pieces, chosen: np.ndarray, dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Simplices (n, dim + 1, dim) of the chosen pieces in the unit cell, and the piece of each.

    chosen: (pieces,) bool. A piece is split into cones from one of its corners to its polygons, in
    2D, where it is a prism, into fans of its foot. All are turned to a positive volume.
    """
    polygon = np.flatnonzero(chosen[pieces.piece])
    vertex, count = pieces.vertex[polygon][:, :, :3], pieces.count[polygon]
    owner = pieces.piece[polygon]
    if dim == 2:
        used = np.arange(vertex.shape[1]) < count[:, None]
        foot = ((vertex[:, :, 2] == 0.0) | ~used).all(axis=1)
        triangles, which = fans(vertex[foot], count[foot])
        simplices, owner = triangles[:, ::-1, :2], owner[foot][which]
    else:
        triangles, which = fans(vertex, count)
        owner = owner[which]
        first = np.r_[True, pieces.piece[1:] != pieces.piece[:-1]][: len(pieces.piece)]
        apex = np.zeros((len(pieces.start), 3))
        apex[pieces.piece[first]] = pieces.vertex[first][:, 0, :3]
        simplices = np.concatenate([triangles[:, ::-1], apex[owner][:, None]], axis=1)
    content = np.linalg.det(simplices[:, 1:] - simplices[:, :1])
    kept = content > FLAT
    return simplices[kept], owner[kept]


def fans(vertex: np.ndarray, count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Triangles from each polygon's first vertex, (triangles, 3, ...), and their polygon."""
    polygon, corner = np.nonzero(np.arange(vertex.shape[1] - 2) < count[:, None] - 2)
    picked = np.stack([np.zeros_like(corner), corner + 1, corner + 2], axis=1)
    return vertex[polygon[:, None], picked], polygon
