"""The shape that a body has without its loads, from the one that it has under them.

A scan shows a body that sags already; simulated as it is, it would sag twice. Sought is the shape X
whose rest under the loads is the scan x:

    X + u(X) = x,    u(X) = rest of X under the loads,

by X <- x - u(X), from X = x on. On a mesh that moves the nodes; on a grid the scan's distance is
read at X + u(X). Each round leaves of the error about what the sag is of the body's size.
"""

import logging
from dataclasses import replace

import numpy as np

from pliant.core.errors import BadInput, SolverFailure
from pliant.dynamics.scene import Scene
from pliant.dynamics.statics import solve_static
from pliant.fem.bodies.body import Body
from pliant.fem.bodies.grid_body import GridBody
from pliant.fem.bodies.tet_body import TetBody
from pliant.geometry.displaced import Displaced

log = logging.getLogger(__name__)

ROUNDS = 12
"""Of the iteration; a beam that sags by a fifth of its length takes six."""

PATIENCE = 4
"""Rounds without a better one after which the best is taken."""

ENOUGH = 0.06
"""The same that may be left after all rounds; with four cells across a beam, 3 % are."""

SETTLED = 1e-3
"""Distance (rms) of the loaded surface from the one given, of the sag, at which that will do."""


def unloaded(scene: Scene) -> Scene:
    """The scene with the shape that its own shape has without the loads at t = 0.

    The scene starts in equilibrium, which is the shape that was given. Its material decides: with
    another one, unload the scan again.
    """
    if scene.begin.modes:
        raise BadInput('Only a scene that starts at rest or in "equilibrium" can be unloaded.')
    scene = replace(scene, start="equilibrium")
    body = scene.body
    if body.is_grid and body.shape is None:
        raise BadInput("A grid without a shape cannot be unloaded: make it from a shape.")
    now, best, least = scene, scene, np.inf
    most, found = 0.0, 1
    for number in range(ROUNDS):
        u = solve_static(now)
        most = float(np.linalg.norm(u, axis=1).max())
        change = shape_change(body, now.body, u)
        off = float(np.sqrt(np.mean(change**2))) if number else np.inf
        log.info("unloading, round %d: sag %g m, off by %g m", number + 1, most, off)
        if off < least:
            best, least, found = now, off, number
        if least <= SETTLED * most:
            return best
        if number >= found + PATIENCE:
            break
        now = replace(scene, body=_moved_back(body, now.body, u, first=number == 0), source=None)
    if least > ENOUGH * most:
        raise SolverFailure(
            f"The unloaded shape was not found: under load it is still {least:.2g} m off, of a sag "
            f"of {most:.2g} m. Take a finer grid or a mesh; or the body is too soft to have come "
            "from any shape: check its modulus, density and loads."
        )
    log.warning(
        "The unloaded shape is under load still %.2g m off the one given, of a sag of %.2g m: a "
        "grid is cut anew in every round. A finer one, or a mesh, leaves less.", least, most,
    )  # fmt: skip
    return best


def _moved_back(body: Body, now: Body, u: np.ndarray, *, first: bool) -> Body:
    """The body that has moved to the one given, if every point moves as `now` does by u."""
    if not body.is_grid:
        corners = body.cells[:, : body.dim + 1]
        used = int(corners.max()) + 1  # nodes on edges come after all corners
        return TetBody(((body.nodes - u)[:used], corners), order=body.order)
    assert body.shape is not None
    places = now.nodes - u if first else now.nodes  # where the unloaded body is
    shape = Displaced(body.shape, places, u, body.spacing)
    return GridBody(shape, body.spacing, axes="shape" if body.follows_shape else "world")


def shape_change(given: Body, now: Body, u: np.ndarray) -> np.ndarray:
    """How far the loaded surface is from the one given [m]."""
    if given.shape is not None and given.is_grid:
        return given.shape.distance(now.surface.positions(now.nodes + u))
    corners = int(given.cells[:, : given.dim + 1].max()) + 1  # edges stay straight
    return (now.nodes + u - given.nodes)[:corners]
