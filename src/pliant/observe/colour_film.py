"""What colour cameras see of a motion whose surface is painted: a pattern as a function of the
material point, filmed pixel by pixel as the mean over each pixel.
"""

from collections.abc import Callable, Sequence

import numpy as np

from pliant.dynamics.trajectory import Trajectory
from pliant.observe.camera import Camera
from pliant.observe.curved_surface import seen_surface
from pliant.observe.raycast import SurfaceQueries
from pliant.observe.texture import shifted_rays

Paint = Callable[[np.ndarray], np.ndarray]
"""Colours (n, 3) in 0 .. 1 of rest positions (n, 3) [m]."""

RAYS = 4
"""Of a pixel along each side; another number than a fusion takes."""

BACKGROUND = 0.9


def stripes(width: float) -> Paint:
    """Three sets of smooth stripes of `width` [m] across the axes, one in each colour."""

    def paint(points: np.ndarray) -> np.ndarray:
        return 0.5 + 0.4 * np.sin(np.pi / width * points)

    return paint


def film_colours(
    run: Trajectory,
    cameras: Sequence[Camera],
    paint: Paint,
    *,
    frames: Sequence[int],
    noise: float = 0.0,
    seed: int = 0,
) -> list[list[np.ndarray]]:
    """For each frame and camera an image (h, w, 3); noise: of each of its numbers."""
    body, rng = run.scene.body, np.random.default_rng(seed)
    surface = seen_surface(body).surface
    rest = surface.positions(body.nodes)
    queries = SurfaceQueries(rest, surface.facets)
    grid = (np.arange(RAYS) + 0.5) / RAYS - 0.5
    out = []
    for k in frames:
        queries.move(surface.points.matrix @ (body.nodes + run.displacements[k]))
        views = []
        for camera in cameras:
            total = np.zeros((camera.pixel_count, 3))
            for dy in grid:
                for dx in grid:
                    hits = queries.cast(camera.position, shifted_rays(camera, dx, dy))
                    corners = rest[surface.facets[hits.triangle]]
                    colour = np.full((camera.pixel_count, 3), BACKGROUND)
                    colour[hits.item] = paint(np.einsum("hk,hki->hi", hits.bary, corners))
                    total += colour
            image = total / RAYS**2 + noise * rng.standard_normal(total.shape)
            views.append(image.reshape(camera.height, camera.width, 3))
        out.append(views)
    return out
