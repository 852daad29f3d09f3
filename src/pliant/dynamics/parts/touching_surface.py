"""What of a part may touch another: points on its surface, and a distance behind its facets."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from pliant.fem.bodies.body import Body
from pliant.fem.bodies.cell_maps import nodal_gradients
from pliant.fem.bodies.embedding import Embedding
from pliant.geometry.mesh_shape import MeshShape
from pliant.geometry.shape import Shape
from pliant.geometry.smooth_field import SmoothField, smooth_field

FINER = 4
"""Samples of a distance along a cell: edges are rounded within half a cell."""


@dataclass(frozen=True, eq=False)
class TouchingSurface:
    """body: the part's, where it begins; areas: (points,) [m^2] of its surface's points;
    middles: (facets, 3) [m] of its facets at rest; field: distance in the rest shape; gradients:
    the columns of F at its nodes (fem.bodies.cell_maps).

    first: number of its first node among those of all parts.
    """

    body: Body
    areas: np.ndarray
    middles: np.ndarray
    field: SmoothField
    gradients: list[sparse.csr_matrix]
    first: int

    @property
    def points(self) -> Embedding:
        """On the surface, carried by the part's own nodes."""
        return self.body.surface.points

    def own(self, x: np.ndarray) -> np.ndarray:
        """The part's rows of an array over the nodes of all parts."""
        return x[self.first : self.first + len(self.body.nodes)]


def surface_of(body: Body, first: int) -> TouchingSurface:
    """Of a body of cells; a grid's distance is its shape's, that of tetrahedra their surface's."""
    at = body.surface.positions(body.nodes)
    return TouchingSurface(
        body, body.surface.point_areas(at), at[body.surface.facets].mean(axis=1),
        smooth_field(_shape(body, at), spacing=body.spacing / FINER), nodal_gradients(body),
        first,
    )  # fmt: skip


def _shape(body: Body, at: np.ndarray) -> Shape:
    if body.is_grid and body.shape is not None:
        return body.shape
    return MeshShape(at, np.asarray(body.surface.facets))
