"""What of a part may touch another: points on its surface, and a distance behind its facets."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from pliant.fem.bodies.body import Body
from pliant.fem.bodies.embedding import Embedding
from pliant.fem.bodies.facet_maps import FacetMaps, facet_maps
from pliant.geometry.mesh_shape import MeshShape
from pliant.geometry.shape import Shape
from pliant.geometry.smooth_field import SmoothField, smooth_field


@dataclass(frozen=True, eq=False)
class TouchingSurface:
    """points: carried by the part's own nodes, (p, m); areas: (p,) [m^2]; facets: (f, 3) of them;
    maps: from near each facet to the rest shape; field: distance in the rest shape.

    rest: (nodes, 3) the part's nodes; first: number of the first of them among those of all parts.
    spacing: of its cells [m].
    """

    points: Embedding
    areas: np.ndarray
    facets: np.ndarray
    maps: FacetMaps
    field: SmoothField
    rest: np.ndarray
    first: int
    spacing: float

    @property
    def matrix(self) -> sparse.csr_matrix:
        """(points, nodes)."""
        return self.points.matrix


def surface_of(body: Body, first: int) -> TouchingSurface:
    """Of a body of cells; a grid's distance is its shape's, that of tetrahedra their surface's."""
    rest = np.asarray(body.nodes, float)
    at = body.surface.positions(rest)
    return TouchingSurface(
        body.surface.points, body.surface.point_areas(at), np.asarray(body.surface.facets),
        facet_maps(body), smooth_field(_shape(body, at), spacing=body.spacing), rest, first,
        body.spacing,
    )  # fmt: skip


def _shape(body: Body, at: np.ndarray) -> Shape:
    if body.is_grid and body.shape is not None:
        return body.shape
    return MeshShape(at, np.asarray(body.surface.facets))
