"""Pictures of two-dimensional bodies: cells as polygons."""

import numpy as np

from pliant.app.render.camera import MARGIN
from pliant.app.render.colouring import Scale, colour_map
from pliant.dynamics.obstacles import Plane
from pliant.dynamics.scene import Scene


def draw_flat(
    scene: Scene,
    nodes: np.ndarray,
    values: np.ndarray,
    scale: Scale,
    low: np.ndarray,
    high: np.ndarray,
    width: int,
    height: int,
) -> np.ndarray:
    """Cells of a 2D body coloured by nodal values; a cut cell shows whole but pale.

    low, high: corners of the box that must be in view.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.collections import LineCollection, PolyCollection
    from matplotlib.figure import Figure

    body = scene.body
    rest = body.surface.positions(body.nodes)
    figure = Figure(figsize=(width / 100.0, height / 100.0), dpi=100)
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_axis_off()
    figure.patch.set_facecolor("#fafbfc")
    around = [0, 1, 3, 2] if body.is_grid else [0, 1, 2]
    shade = colour_map(scale.kind)(values[body.cells].mean(axis=1) / scale.largest)
    shade[:, 3] = np.clip(body.fill, 0.15, 1.0)
    polygons = nodes[body.cells[:, around]]
    axes.add_collection(
        PolyCollection(list(polygons), facecolors=shade, edgecolors="#ffffff40", linewidths=0.3)
    )
    surface = body.surface
    for points, style in (
        (rest, {"colors": "#9aa4ad", "linewidths": 0.8, "linestyles": "dashed"}),
        (surface.positions(nodes), {"colors": "#20262c", "linewidths": 1.2}),
    ):
        axes.add_collection(LineCollection(list(points[surface.facets]), **style))
    low = np.minimum(low, rest.min(axis=0))
    high = np.maximum(high, rest.max(axis=0))
    for plane in (o for o in scene.obstacles if isinstance(o, Plane)):
        n = np.array(plane.normal[:2])
        x, y = (float(c) for c in plane.offset * n)
        axes.axline((x, y), (x - float(n[1]), y + float(n[0])), color="#7d868f")
    half = 0.5 * (high - low) / MARGIN
    half = np.maximum(half, half[::-1] * [width / height, height / width])
    middle = 0.5 * (high + low)
    axes.set_xlim(middle[0] - half[0], middle[0] + half[0])
    axes.set_ylim(middle[1] - half[1], middle[1] + half[1])
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[:, :, :3].copy()
