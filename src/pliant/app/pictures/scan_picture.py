"""A scanned surface from three sides, shaded; what no view saw is orange."""

from pathlib import Path

import numpy as np

from pliant.app.pictures.report_figures import INK, blank, save
from pliant.fem.cutting.triangulate import sampled_surface
from pliant.observe.camera import Camera
from pliant.observe.fusion import Scan
from pliant.observe.raycast import SurfaceQueries

PIXELS = 320
SEEN, UNSEEN = np.array([0.80, 0.82, 0.85]), np.array([0.93, 0.55, 0.20])
SIDES = {"front": (0.5, 0.35, 1.0), "back": (-0.5, 0.35, -1.0), "below": (0.3, -1.0, 0.5)}


def draw_scan(scan: Scan, path: Path) -> None:
    """Write the picture."""
    points, facets = sampled_surface(scan.shape, scan.shape.spacing)
    corner = points[facets]
    normal = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-300)
    seen = scan.seen_at(corner.mean(axis=1))
    queries = SurfaceQueries(points, facets)
    low, high = points.min(axis=0), points.max(axis=0)
    centre, radius = 0.5 * (low + high), 0.5 * float(np.linalg.norm(high - low))
    figure = blank(9.0, 3.3)
    for k, (name, side) in enumerate(SIDES.items()):
        direction = np.array(side) / np.linalg.norm(side)
        camera = Camera.looking(
            centre + 5.0 * radius * direction, centre, width=PIXELS, height=PIXELS, view_angle=24.0
        )
        image = np.ones((PIXELS * PIXELS, 3))
        rays = camera.rays()
        hits = queries.cast(camera.position, rays)
        n = normal[hits.triangle]
        facing = np.abs(np.einsum("ni,ni->n", n, rays[hits.item]))
        above = 0.5 + 0.5 * n[:, 1]
        light = 0.25 + 0.5 * facing + 0.25 * above
        image[hits.item] = light[:, None] * np.where(seen[hits.triangle, None], SEEN, UNSEEN)
        axes = figure.add_axes((k / 3.0, 0.0, 1.0 / 3.0, 0.91))
        axes.imshow(image.reshape(PIXELS, PIXELS, 3).clip(0.0, 1.0), interpolation="lanczos")
        axes.set_axis_off()
        axes.set_title(name, fontsize=10, color=INK)
    save(figure, path)
