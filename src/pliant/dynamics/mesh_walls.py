"""How much of what a region covers a mesh holds: a mesh is held at its nodes inside the region.

Where a region ends between nodes, the rest of the facets there goes free: a clamp that wraps 5 mm
around a block of 18 mm tetrahedra held its end face only, and the block swung 9 % deeper. Grids are
held on exactly what the region covers (fem.cutting.walls).
"""

import numpy as np

from pliant.dynamics.loads import Fixed
from pliant.dynamics.scene import Scene
from pliant.fem.bodies.body import Body
from pliant.fem.cutting.covered_facets import ON_FACE
from pliant.fem.cutting.quadrature import covered_points

MISSING = 0.1
"""Share of the covered surface that a mesh may leave free without a word."""


def mesh_wall_warnings(scene: Scene) -> list[str]:
    """A sentence for every region of which the mesh leaves a good part free."""
    body = scene.body
    if body.is_grid:
        return []
    out = []
    for number, fixed in enumerate(scene.fixed):
        if fixed.stiffness is not None:  # springs act on what the region covers
            continue
        covered = float(covered_points(body, fixed.region).weight.sum())
        held = _held_area(body, fixed)
        if held < (1.0 - MISSING) * covered:
            out.append(
                f"fixed[{number}] covers {covered:.3g} of the surface, but the nodes inside it "
                f"hold {held:.3g}: a mesh is held at its nodes. Use shorter edges, a region that "
                "ends where the mesh has nodes, or a grid, which is held on all that is covered."
            )
    return out


def _held_area(body: Body, fixed: Fixed) -> float:
    """Area (length in 2D) of the facets all of whose points lie in the region."""
    points = body.surface.positions(body.nodes)
    inside = fixed.region.distance(points) <= ON_FACE * body.spacing
    area = np.linalg.norm(body.surface.area_vectors(points), axis=1)
    return float(area[inside[body.surface.facets].all(axis=1)].sum())
