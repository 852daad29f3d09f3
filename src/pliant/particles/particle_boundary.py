"""Masks and loads of a scene of particles; on grids, the points of the surface that are held."""

import numpy as np

from pliant.core.errors import BadInput
from pliant.dynamics.boundary import Boundary, build_boundary, spread
from pliant.dynamics.loads import Fixed
from pliant.dynamics.scene import Scene
from pliant.fem.cutting.covered_facets import covered_facets


def particle_boundary(scene: Scene) -> tuple[Boundary, list[tuple[Fixed, np.ndarray]]]:
    """Masks and loads of a scene; on grids, the surface points that each region holds."""
    body = scene.body
    for number, fixed in enumerate(scene.fixed):
        if fixed.stiffness is not None:
            raise BadInput(
                f"fixed[{number}].stiffness: particles know firm clamps only; leave it out, or "
                "take a finite element model."
            )
    if not body.is_grid:
        return build_boundary(scene), []
    free = np.ones((len(body.nodes), 3))
    free[:, body.dim :] = 0.0
    loads = [(load, spread(load, number, body)) for number, load in enumerate(scene.loads)]
    rest = body.surface.positions(body.nodes)
    walls: list[tuple[Fixed, np.ndarray]] = []
    for number, fixed in enumerate(scene.fixed):
        inside = np.flatnonzero(fixed.place.distance(rest) <= 1e-9 * body.spacing)
        if not len(inside):  # a region smaller than a facet
            inside = np.unique(body.surface.facets[covered_facets(body, fixed.place).facet])
        if not len(inside):
            raise BadInput(
                f"fixed[{number}]: the region touches no part of the body's surface; move or "
                "enlarge it."
            )
        taken = np.concatenate([np.zeros(0, int), *(points for _, points in walls)])
        walls.append((fixed, np.setdiff1d(inside, taken)))
    return Boundary(scene, free, [], None, [], loads), walls
