"""A plane through the resting body, carried along by it; of a 2D body, the whole of it."""

from dataclasses import dataclass

import numpy as np

from pliant.fem.bodies.body import Body
from pliant.fem.bodies.embedding import Embedding
from pliant.fem.cutting.triangulate import triangulate

FINENESS = 2.0
"""Squares of the section per cell."""


@dataclass(frozen=True)
class Section:
    """points: the plane's grid points inside the body; faces: (n, 3) triangles of them."""

    points: Embedding
    faces: np.ndarray


def section(body: Body, axis: int, at: float) -> Section | None:
    """The part of the plane x[axis] = at that lies inside a 3D body, None if none does."""
    if body.dim != 3 or body.shape is None:
        return None
    lo, hi = (np.asarray(b, float) for b in body.shape.bounds)
    h = body.spacing / FINENESS
    others = [d for d in range(3) if d != axis]
    lines = [lo[d] + h * np.arange(int(np.ceil((hi[d] - lo[d]) / h)) + 1) for d in others]
    first, second = np.meshgrid(*lines, indexing="ij")
    points = np.empty((first.size, 3))
    points[:, axis] = at
    points[:, others[0]], points[:, others[1]] = first.ravel(), second.ravel()
    inside = (body.shape.distance(points) < 0.25 * h).reshape(first.shape)
    whole = inside[:-1, :-1] & inside[1:, :-1] & inside[:-1, 1:] & inside[1:, 1:]
    i, j = np.nonzero(whole)
    if len(i) == 0:
        return None
    width = first.shape[1]
    a, b, c, d = i * width + j, (i + 1) * width + j, (i + 1) * width + j + 1, i * width + j + 1
    faces = np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])
    used, inverse = np.unique(faces, return_inverse=True)
    return Section(body.locate(points[used]), inverse.reshape(-1, 3))


def filled(body: Body) -> Section:
    """Triangles that fill a 2D body."""
    if not body.is_grid or body.shape is None:
        around = [[0, 1, 3], [0, 3, 2]] if body.is_grid else [[0, 1, 2]]
        count = np.arange(len(body.nodes))
        own = Embedding(count[:, None], np.ones((len(count), 1)), len(count))
        return Section(own, body.cells[:, around].reshape(-1, 3))
    points, faces = triangulate(body.shape, body.spacing)
    return Section(body.locate(points), faces)


def facets_behind(body: Body, skin: Section, axis: int, at: float) -> np.ndarray:
    """(faces,) True where the skin lies at x[axis] <= at when the body rests."""
    rest = skin.points.at(body.nodes)
    return rest[skin.faces].mean(axis=1)[:, axis] <= at


def cell_edges(body: Body) -> tuple[np.ndarray, np.ndarray]:
    """Edges of the cells, (edges, 2) nodes, each once; (edges,) True where a cut cell has it."""
    k = body.cells.shape[1]
    if body.is_grid:
        pairs = [(a, a | 1 << d) for a in range(k) for d in range(body.dim) if not a >> d & 1]
    else:
        corners = range(body.dim + 1)
        pairs = [(a, b) for a in corners for b in corners if a < b]
    all_edges = np.sort(body.cells[:, np.array(pairs)].reshape(-1, 2), axis=1)
    cut = np.repeat(body.fill < 1.0 - 1e-9, len(pairs))
    edges, inverse = np.unique(all_edges, axis=0, return_inverse=True)
    of_cut = np.bincount(inverse.reshape(-1), cut.astype(float), len(edges)) > 0.0
    return edges, of_cut
