"""The body's surface as cameras see it: finer than the cut cells, on the true shape.

A facet cut from a grid is a chord: a sphere of radius R on cells of size h lies up to h^2 / 8R
above it, which is many times the error of an average over thousands of noisy pixels. So each facet
is split, the new points are moved onto the shape at rest, and the cells carry them as they carry
everything; the chord's error falls by four with each level. It stays a surface of flat facets, so
that depths are continuous and their derivatives exact.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from pliant.fem.bodies.body import Body
from pliant.fem.bodies.embedding import Surface

LEVELS = 2
"""Splits of every facet in two along each edge: sixteen small facets, a sixteenth of the error."""

FARTHEST = 0.25
"""Way to the shape, in cells, beyond which a facet cuts off an edge or a corner: its new points
stay on it."""


@dataclass(frozen=True)
class SeenSurface:
    """surface: the fine one; share: (fine points, points of the body's own surface), by which
    values on that surface are interpolated to the fine one (None: they are the same).
    """

    surface: Surface
    share: sparse.csr_matrix | None = None


def seen_surface(body: Body) -> SeenSurface:
    """The fine surface of a 3D body on a grid; its own surface for all others."""
    if body.shape is None or body.dim != 3 or not body.is_grid:
        return SeenSurface(body.surface)
    kept = body.__dict__.get("_seen_surface")  # a body is frozen, its surface is made once
    if kept is None:
        kept = _refined(body)
        body.__dict__["_seen_surface"] = kept
    return kept


def _refined(body: Body) -> SeenSurface:
    points = body.surface.positions(body.nodes)
    facets, cell = body.surface.facets, body.surface.facet_cell
    share = sparse.identity(len(points), format="csr")
    for _ in range(LEVELS):
        mean, facets = split_facets(len(points), facets)
        points, share = mean @ points, mean @ share
        cell = np.tile(cell, 4)
    fine = Surface(body.locate(_onto(body, points)), facets, cell)
    return SeenSurface(fine, sparse.csr_matrix(share))


def split_facets(count: int, facets: np.ndarray) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Each triangle into four by the midpoints of its edges, shared with its neighbours.

    Returns the averages (new points, count) that make the points, and the facets.
    """
    edges = np.sort(facets[:, [[1, 2], [2, 0], [0, 1]]].reshape(-1, 2), axis=1)
    key = edges[:, 0] * count + edges[:, 1]
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    ends = edges[first]
    middle = sparse.csr_matrix(
        (np.full(2 * len(ends), 0.5), (np.repeat(np.arange(len(ends)), 2), ends.reshape(-1))),
        shape=(len(ends), count),
    )
    m = count + inverse.reshape(-1, 3)  # opposite each corner
    a, b, c = facets.T
    parts = [(a, m[:, 2], m[:, 1]), (m[:, 2], b, m[:, 0]), (m[:, 1], m[:, 0], c), tuple(m.T)]
    mean = sparse.vstack([sparse.identity(count, format="csr"), middle], format="csr")
    return sparse.csr_matrix(mean), np.concatenate([np.stack(p, axis=1) for p in parts])


def _onto(body: Body, points: np.ndarray) -> np.ndarray:
    """Points moved onto the zero of the shape, two Newton steps along its gradient."""
    assert body.shape is not None
    moved = points
    for _ in range(2):
        g = body.shape.gradient(moved)
        square = np.maximum(np.einsum("ij,ij->i", g, g), 0.25)
        moved = moved - (body.shape.distance(moved) / square)[:, None] * g
    near = np.linalg.norm(moved - points, axis=1) < FARTHEST * body.spacing
    return np.where(near[:, None], moved, points)
