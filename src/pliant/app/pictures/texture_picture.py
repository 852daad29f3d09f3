"""One image of a recording beside the fused colours, seen by a camera with finer pixels."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from pliant.app.folders.painting import Painting
from pliant.app.pictures.report_figures import INK, blank, save
from pliant.observe.camera import Camera
from pliant.observe.raycast import SurfaceQueries

FINER = 4
"""Pixels of the second picture for one of the first, along each side."""

MARGIN = 2
"""Pixels of the image that are shown around the body."""


def draw_texture(found: Painting, path: Path) -> None:
    """Write the picture."""
    view = found.example
    positions = found.surface.points.matrix @ view.nodes
    eye = finer(view.camera, FINER)
    queries = SurfaceQueries(positions, found.surface.facets)
    hits = queries.cast(eye.position, eye.rays())
    corners = found.texture.colours[found.surface.facets[hits.triangle]]
    image = np.ones((eye.pixel_count, 3))
    image[hits.item] = np.einsum("hk,hki->hi", hits.bary, corners)
    rows, columns = (
        slice(max(int(k.min()) // FINER - MARGIN, 0), int(k.max()) // FINER + 1 + MARGIN)
        for k in (hits.item // eye.width, hits.item % eye.width)
    )
    own = image.reshape(view.camera.height, FINER, view.camera.width, FINER, 3)[rows, :, columns]
    figure = blank(8.0, 4.2)
    panels = (
        ("one image", view.image[rows, columns]),
        (f"fused from {found.texture.views} images",
         own.reshape(FINER * own.shape[0], FINER * own.shape[2], 3)),
    )  # fmt: skip
    for k, (title, shown) in enumerate(panels):
        axes = figure.add_axes((0.01 + 0.5 * k, 0.02, 0.48, 0.88))
        axes.imshow(np.clip(shown, 0.0, 1.0), interpolation="nearest")
        axes.set_axis_off()
        axes.set_title(title, fontsize=10, color=INK)
    save(figure, path)


def finer(camera: Camera, factor: int) -> Camera:
    """The same view with `factor` times the pixels along each side."""
    shift = 0.5 * (factor - 1)
    return replace(
        camera, width=factor * camera.width, height=factor * camera.height,
        fx=factor * camera.fx, fy=factor * camera.fy,
        cx=factor * camera.cx + shift, cy=factor * camera.cy + shift,
    )  # fmt: skip
