"""Points and weights on the facets of a surface, with the shape functions of their cells."""

from dataclasses import dataclass

import numpy as np

from pliant.fem.bodies.body import Body
from pliant.fem.bodies.quadratic_simplices import quadratic_gradients, quadratic_shapes
from pliant.fem.cutting.covered_facets import covered_facets
from pliant.fem.forces.cells import QUADRATIC
from pliant.geometry.shape import Shape


@dataclass(frozen=True)
class FacetPoints:
    """Quadrature points on facets.

    cell: (q,); position: (q, dim); weight: (q,) [m^(dim-1)]; normal: (q, 3) unit, outward;
    shape: (q, k) values N_a; gradient: (q, k, 3).
    """

    cell: np.ndarray
    position: np.ndarray
    weight: np.ndarray
    normal: np.ndarray
    shape: np.ndarray
    gradient: np.ndarray

    def __getitem__(self, chosen: np.ndarray | slice) -> "FacetPoints":
        return FacetPoints(
            self.cell[chosen], self.position[chosen], self.weight[chosen], self.normal[chosen],
            self.shape[chosen], self.gradient[chosen],
        )  # fmt: skip


def facet_points(body: Body, facets: np.ndarray | None = None) -> FacetPoints:
    """Quadrature on the given facets (all by default), exact for polynomials of degree 7."""
    surface = body.surface
    chosen = np.arange(len(surface.facets)) if facets is None else facets
    return _points(body, chosen, surface.positions(body.nodes)[surface.facets[chosen]])


def covered_points(body: Body, region: Shape) -> FacetPoints:
    """Quadrature on the part of the surface that lies in the region, as exact as on facets."""
    covered = covered_facets(body, region)
    points = _points(body, covered.facet, covered.corners)
    return points[points.weight > 0.0]


def _points(body: Body, facet: np.ndarray, corners: np.ndarray) -> FacetPoints:
    """Quadrature on pieces with the given corners (pieces, dim, dim), each part of a facet."""
    surface = body.surface
    vectors = surface.area_vectors(surface.positions(body.nodes))[facet]
    normal = np.zeros((len(facet), 3))
    normal[:, : body.dim] = vectors / np.maximum(np.linalg.norm(vectors, axis=1), 1e-300)[:, None]
    if body.dim == 2:
        area = np.linalg.norm(corners[:, 1] - corners[:, 0], axis=1)
    else:
        across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        area = 0.5 * np.linalg.norm(across, axis=1)
    bary, share = _rule(body.dim)
    position = np.einsum("qc,fcd->fqd", bary, corners).reshape(-1, body.dim)
    per = len(share)
    cell = np.repeat(surface.facet_cell[facet], per)
    shape, gradient = shape_functions(body, cell, position)
    return FacetPoints(
        cell, position, (area[:, None] * share).reshape(-1), np.repeat(normal, per, axis=0),
        shape, gradient,
    )  # fmt: skip


def shape_functions(body: Body, cell: np.ndarray, position: np.ndarray):
    """Values (q, k) and gradients (q, k, 3) of each point's cell's shape functions."""
    q, k, dim = len(cell), body.cells.shape[1], body.dim
    gradient = np.zeros((q, k, 3))
    corner = body.nodes[body.cells[cell]]
    if not body.is_grid:
        rows = body.geometry_table[body.geometry_row[cell]]
        flat = rows[:, :12].reshape(q, 4, 3)[:, : dim + 1]
        barycentric = np.einsum("qad,qd->qa", flat[..., :dim], position - corner[:, 0])
        barycentric[:, 0] += 1.0
        if body.kind == QUADRATIC:
            return quadratic_shapes(barycentric), quadratic_gradients(rows, barycentric)
        gradient[:] = flat
        return barycentric, gradient
    t = position - corner[:, 0]
    t = (t if body.axes is None else t @ body.axes) / body.spacing
    factor = np.stack([1.0 - t, t])  # (2, q, dim)
    shape = np.ones((q, k))
    for a in range(k):
        bits = [(a >> d) & 1 for d in range(dim)]
        for d in range(dim):
            shape[:, a] *= factor[bits[d], :, d]
        for i in range(dim):
            g = np.full(q, (2 * bits[i] - 1) / body.spacing)
            for d in range(dim):
                if d != i:
                    g = g * factor[bits[d], :, d]
            gradient[:, a, i] = g
    return shape, body.to_world(gradient)


def _rule(dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Barycentric points (q, dim) and weights summing to one: Gauss, collapsed on triangles."""
    x, w = np.polynomial.legendre.leggauss(4)
    t, w = 0.5 * (x + 1.0), 0.5 * w
    if dim == 2:
        return np.stack([1.0 - t, t], axis=1), w
    # collapsing the square costs one degree, so one more point towards the apex
    x5, w5 = np.polynomial.legendre.leggauss(5)
    s, ws = 0.5 * (x5 + 1.0), 0.5 * w5
    S, T = np.meshgrid(s, t, indexing="ij")
    weight = 2.0 * np.outer(ws * (1.0 - s), w)
    bary = np.stack([(1.0 - S) * (1.0 - T), S, (1.0 - S) * T], axis=-1)
    return bary.reshape(-1, 3), weight.reshape(-1)
