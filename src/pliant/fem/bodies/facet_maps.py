"""The cells behind a body's surface as maps: where a point near a facet was in the rest shape.

About the middle Y of a facet, in its cell of nodes x_j with shape functions N_j,

    x = sum over j of (N_j(Y) + G_j . (X - Y)) x_j,    G_j = grad N_j(Y),

exact for linear tetrahedra and to first order about Y for others. It goes on beyond the cell.
"""

from dataclasses import dataclass

import numpy as np

from pliant.fem.bodies.body import Body
from pliant.fem.bodies.quadratic_simplices import quadratic_shapes
from pliant.fem.forces.cells import GRID, QUADRATIC


@dataclass(frozen=True)
class FacetMaps:
    """nodes: (facets, k) of each facet's cell; weights N_j(Y): (facets, k); slopes G_j:
    (facets, k, 3) [1/m]; middles Y: (facets, 3) [m].
    """

    nodes: np.ndarray
    weights: np.ndarray
    slopes: np.ndarray
    middles: np.ndarray


def facet_maps(body: Body) -> FacetMaps:
    """Of all facets of a body in space."""
    cells, nodes = body.cells[body.surface.facet_cell], body.nodes
    middles = body.surface.positions(nodes)[body.surface.facets].mean(axis=1)
    if body.kind == GRID:
        weights, slopes = _trilinear(nodes[cells[:, 0]], middles, body)
    else:
        weights, slopes = _of_simplices(nodes[cells[:, :4]], middles, body.kind == QUADRATIC)
    return FacetMaps(cells, weights, slopes, middles)


def _trilinear(corner: np.ndarray, points: np.ndarray, body: Body):
    """Weights and slopes of the eight nodes of a lattice cell, x fastest."""
    frame, h = body.frame, body.spacing
    t = (points - corner) @ frame / h
    weights, slopes = np.ones((len(points), 8)), np.ones((len(points), 8, 3))
    for a in range(8):
        for axis in range(3):
            high = bool((a >> axis) & 1)
            own = t[:, axis] if high else 1.0 - t[:, axis]
            weights[:, a] *= own
            for other in range(3):
                slopes[:, a, other] *= (1.0 if high else -1.0) / h if other == axis else own
    return weights, slopes @ frame.T


def _of_simplices(corners: np.ndarray, points: np.ndarray, quadratic: bool):
    """The same of tetrahedra with 4 or 10 nodes."""
    edges = (corners[:, :3] - corners[:, 3:]).transpose(0, 2, 1)
    inverse = np.linalg.inv(edges)
    head = np.einsum("nij,nj->ni", inverse, points - corners[:, 3])
    barycentric = np.column_stack([head, 1.0 - head.sum(axis=1)])
    slopes = np.concatenate([inverse, -inverse.sum(axis=1, keepdims=True)], axis=1)
    if not quadratic:
        return barycentric, slopes
    ahead, behind = (  # N is quadratic: this difference is its derivative
        np.stack([quadratic_shapes(barycentric + s * slopes[:, :, k]) for k in range(3)], axis=2)
        for s in (1.0, -1.0)
    )
    return quadratic_shapes(barycentric), 0.5 * (ahead - behind)
