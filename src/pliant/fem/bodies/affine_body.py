"""A body that only moves, turns and strains uniformly: twelve numbers (Lan et al. 2022).

Four nodes carry it. With m, c and S the mass, the centre and the second moments of mass about it,
L L^T = S / m and t_k the corners of a regular tetrahedron in the unit sphere,

    x_k = c + sqrt(3) L t_k,   a quarter of the mass at each,

have the same m, c and S, for sum t_k = 0 and sum t_k t_k^T = 4/3 I: the kinetic energy of every
affine motion is that of the body, and so is its inertia. The cell between them is smaller than the
body; with density and moduli in the inverse ratio its mass and its energy of uniform strain are
those of the body.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pliant.fem.bodies.body import Body
from pliant.fem.bodies.embedding import Embedding, Surface
from pliant.fem.bodies.tet_body import TetBody

CORNERS = np.array([(1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1)]) / np.sqrt(3.0)
"""t_k."""


@dataclass(frozen=True)
class AffineLocator:
    """Carries points by the four nodes; inner: what finds them in the body itself."""

    nodes: np.ndarray
    inner: Any

    def __call__(self, points: np.ndarray) -> Embedding:
        """All by all four."""
        points = np.atleast_2d(np.asarray(points, float))
        frame = np.vstack([self.nodes.T, np.ones(4)])
        right = np.vstack([points.T, np.ones(len(points))])
        nodes = np.broadcast_to(np.arange(4, dtype=np.int32), (len(points), 4)).copy()
        return Embedding(nodes, np.linalg.solve(frame, right).T.copy(), 4)

    def beyond(self, points: np.ndarray) -> np.ndarray:
        """How far points are beyond the body's own cells, as its weights tell."""
        return np.abs(np.minimum(self.inner(points).weights, 0.0)).sum(axis=1)


def moments(at: np.ndarray, facets: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Volume, centre (3,) and second moments about it (3, 3) inside closed triangles."""
    middle = at.mean(axis=0)
    corners = (at - middle)[facets]
    six = np.einsum("ni,ni->n", corners[:, 0], np.cross(corners[:, 1], corners[:, 2]))
    total = corners.sum(axis=1)
    volume = six.sum() / 6.0
    first = np.einsum("n,ni->i", six, total) / 24.0
    second = np.einsum("n,ni,nj->ij", six, total, total)
    second += np.einsum("n,nki,nkj->ij", six, corners, corners)
    centre = first / volume
    return float(volume), middle + centre, second / 120.0 - volume * np.outer(centre, centre)


def affine_body(body: Body) -> tuple[Body, float]:
    """The body in space on four nodes, with its own surface; its volume over that of its cell."""
    at, facets = body.surface.positions(body.nodes), np.asarray(body.surface.facets)
    volume, centre, second = moments(at, facets)
    nodes = centre + np.sqrt(3.0) * CORNERS @ np.linalg.cholesky(second / volume).T
    made = TetBody((nodes, np.array([[0, 1, 2, 3]])), order=1)
    locate = AffineLocator(made.nodes, body.locate)
    surface = Surface(locate(at), facets, np.zeros(len(facets), np.int64))
    return (
        replace(made, surface=surface, locate=locate, spacing=body.spacing),
        volume / made.volume,
    )
