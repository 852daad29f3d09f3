"""The same scene on a coarser grid with longer steps: quick first guesses, and error estimates."""

from dataclasses import replace

import numpy as np

from pliant.core.errors import BadInput
from pliant.dynamics.integrators import INTEGRATORS
from pliant.dynamics.scene import Scene
from pliant.fem.bodies.grid_body import grid_body


def can_coarsen(scene: Scene) -> bool:
    """True for bodies on a grid with a shape to cut again, of one material or of regions."""
    m = scene.material
    uniform = all(np.ndim(v) == 0 for v in (m.youngs_modulus, m.poisson_ratio, m.density))
    return scene.body.is_grid and scene.body.shape is not None and uniform


def coarser(scene: Scene, *, space: float = 2.0, time: float = 2.0) -> Scene:
    """Spacing times `space` and time step times `time` (below 1: finer).

    Regions (of the material, too), loads and obstacles are shapes, so they mean the same on the
    other grid.
    """
    if space != 1.0 and not can_coarsen(scene):
        raise BadInput(
            "Only a body on a grid, made from a shape and without values for single cells, can be "
            "coarsened."
        )
    old = scene.integrator
    body = scene.body
    if space != 1.0:
        assert body.shape is not None
        axes = "shape" if body.follows_shape else "world"
        body = grid_body(body.shape, space * body.spacing, axes=axes, pieces=body.pieces)
    scheme = INTEGRATORS[old.name](time * old.dt, **old.parameters)
    return replace(scene, body=body, integrator=scheme, source=None)
