"""Pictures of a deformed body: ray cast in 3D, drawn as polygons in 2D.

`Studio(scene, motion)` chooses a camera and colours that suit a whole motion; its `picture(nodes)`
is one frame, (height, width, 3) uint8.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp

from pliant.app.raycast import Stage, View, corner_normals, draw
from pliant.core.errors import BadInput
from pliant.core.files import whole_file
from pliant.core.launch import launch, to_device, zeros
from pliant.dynamics.obstacles import Obstacle, Plane
from pliant.dynamics.scene import Scene
from pliant.fem.triangulate import sampled_surface

COLOURS = "viridis"
"""Matplotlib's name of the colours for displacements."""

DARKEST = 0.2
"""Where on Matplotlib's scale rest begins; its first colours are too dark to show a shape."""

AZIMUTH, ELEVATION = np.radians(28.0), np.radians(17.0)
"""Where the camera stands, seen from the body: to the right of +z, and above."""

OPENING = np.tan(np.radians(15.0))
"""Tangent of half the vertical opening angle: a long lens keeps a body's proportions."""

SAMPLES = 3
"""Rays per axis through a pixel that differs from a neighbour; the others get one."""

MARGIN = 0.84
"""Share of the picture's half width that the motion may fill."""


@dataclass(frozen=True)
class Camera:
    """eye and target [m]; the picture's up is as near to y as it can be."""

    eye: np.ndarray
    target: np.ndarray

    def axes(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(right, up, forward), unit vectors."""
        forward = _unit(self.target - self.eye)
        right = _unit(np.cross(forward, [0.0, 1.0, 0.0]))
        return right, np.cross(right, forward), forward


def render(
    scene: Scene,
    nodes: np.ndarray,
    *,
    width: int = 640,
    height: int = 480,
    time: float | None = None,
    camera: Camera | None = None,
) -> np.ndarray:
    """One picture (height, width, 3) uint8 of the body with its nodes at `nodes` (nodes, dim)."""
    frames = [scene.body.nodes, nodes]
    return Studio(scene, frames, width=width, height=height, camera=camera).picture(
        nodes, time=time
    )


class Studio:
    """Camera, floor, light and colour scale for all pictures of one motion."""

    def __init__(
        self,
        scene: Scene,
        motion: Sequence[np.ndarray],
        *,
        width: int = 640,
        height: int = 480,
        camera: Camera | None = None,
    ):
        if not (16 <= width <= 8192 and 16 <= height <= 8192):
            raise BadInput(f"A picture has 16 to 8192 pixels a side, not {width} x {height}.")
        if any(not np.isfinite(nodes).all() for nodes in motion):
            raise BadInput("The motion has positions that are not finite: nothing to draw.")
        self.scene, self.width, self.height = scene, width, height
        surface = scene.body.surface
        self._rest = surface.positions(scene.body.nodes)
        shown = [surface.positions(nodes) for nodes in motion] or [self._rest]
        largest = max(float(np.linalg.norm(p - self._rest, axis=1).max()) for p in shown)
        self.largest = largest if largest > 0.0 else 1.0
        self.low = np.min([p.min(axis=0) for p in shown], axis=0)
        self.high = np.max([p.max(axis=0) for p in shown], axis=0)
        if scene.dim == 3:
            self._set_stage(shown, camera)

    def picture(self, nodes: np.ndarray, *, time: float | None = None) -> np.ndarray:
        """The body with its nodes at `nodes`, coloured by how far they are from rest."""
        position = self.scene.body.surface.positions(nodes)
        if self.scene.dim == 2:
            image = self._drawn(nodes)
        else:
            image = self._cast(position)
        return captioned(image, self.largest, time)

    # --- three dimensions

    def _set_stage(self, shown: list[np.ndarray], camera: Camera | None) -> None:
        size = float(np.linalg.norm(self.high - self.low))
        planes = [o for o in self.scene.obstacles if isinstance(o, Plane)]
        solids = [o for o in self.scene.obstacles if isinstance(o, Obstacle)]
        spacing = self.scene.body.spacing
        meshes = [sampled_surface(o.shape, o.spacing or spacing) for o in solids]
        if planes:
            # the floor is the plane that faces up most; other planes are walls and not drawn
            floor = max(planes, key=lambda p: p.normal[1])
            normal, offset = np.array(floor.normal), floor.offset
        else:
            lowest = min([self.low[1], *(p[:, 1].min() for p, _ in meshes)])
            normal, offset = np.array([0.0, 1.0, 0.0]), lowest - 0.08 * size
        points = np.concatenate([p[:: max(1, len(p) // 400)] for p in shown])
        corners = np.array([self.low, self.high])
        middle = corners.mean(axis=0)
        feet = points - np.outer(points @ normal - offset, normal)
        self._points = np.concatenate([points, *(p[::7] for p, _ in meshes)])
        framed = np.concatenate([self._points, middle + 0.9 * (feet - middle)])
        self.camera = camera or _placed(framed, self.width / self.height, normal, offset)
        right, up, forward = self.camera.axes()

        view: Any = View()
        view.eye, view.right, view.up, view.forward = (
            wp.vec3f(*map(float, v)) for v in (self.camera.eye, right, up, forward)
        )
        view.half_height = OPENING
        view.half_width = OPENING * self.width / self.height
        view.width, view.height = self.width, self.height
        self._view = view

        along = _unit(np.cross(normal, forward))
        light = _unit(1.1 * normal - 0.55 * forward - 0.55 * along)
        stage: Any = Stage()
        tile_x = _unit(np.cross(normal, [0.0, 0.0, 1.0]))
        stage.normal, stage.along, stage.across, stage.light = (
            wp.vec3f(*map(float, v)) for v in (normal, tile_x, np.cross(normal, tile_x), light)
        )
        foot = middle - (middle @ normal - offset) * normal
        stage.middle = wp.vec3f(*map(float, foot))
        stage.offset, stage.tile, stage.fade = float(offset), _round_length(0.16 * size), 2.6 * size
        stage.reach, stage.lift = 4.0 * size, 0.3 * spacing
        self._stage = stage

        facets = [self.scene.body.surface.facets]
        count = len(self._rest)
        for p, f in meshes:
            facets.append(f + count)
            count += len(p)
        self._solids = [p for p, _ in meshes]
        self._facets = np.concatenate(facets).astype(np.int32)
        corner = self._facets.reshape(-1)
        start = np.concatenate([[0], np.cumsum(np.bincount(corner, minlength=count))])
        self._flat = to_device(corner, wp.int32)
        self._start = to_device(start.astype(np.int32), wp.int32)
        self._around = to_device(np.argsort(corner, kind="stable").astype(np.int32), wp.int32)

    def _cast(self, position: np.ndarray) -> np.ndarray:
        moved = np.linalg.norm(position - self._rest, axis=1) / self.largest
        colours = [_linear(colour_map()(np.clip(moved, 0.0, 1.0))[:, :3])]
        colours += [np.broadcast_to([0.52, 0.50, 0.47], p.shape) for p in self._solids]
        points = np.concatenate([position, *self._solids])
        normals = self._smooth(points)
        mesh = wp.Mesh(points=to_device(points.astype(np.float32), wp.vec3f), indices=self._flat)
        shade = to_device(np.concatenate(colours).astype(np.float32), wp.vec3f)

        def light(pixels: np.ndarray, samples: int) -> np.ndarray:
            out = zeros(len(pixels), wp.vec3f)
            where = to_device(pixels.astype(np.int32), wp.int32)
            inputs = [where, samples, mesh.id, self._view, self._stage, normals, shade, out]
            launch(draw, len(pixels), inputs, grain=2000)
            return out.numpy()

        count = self.width * self.height
        image = light(np.arange(count), 1)
        edges = np.flatnonzero(_uneven(image.reshape(self.height, self.width, 3)))
        image[edges] = light(edges, SAMPLES)
        return _encoded(image.reshape(self.height, self.width, 3))

    def _smooth(self, points: np.ndarray) -> wp.array:
        """Normals (3 facets) of the facets' corners, smooth except across creases.

        Weighted by the corners' angles: on a grid, cut facets come in all sizes, and weighting by
        area would tilt a point's normal towards its largest neighbour.
        """
        corner = points[self._facets]
        following, before = np.roll(corner, -1, axis=1), np.roll(corner, 1, axis=1)
        a, b = following - corner, before - corner
        cross = np.cross(a, b)
        sine = np.linalg.norm(cross, axis=2)
        angle = np.arctan2(sine, np.einsum("fci,fci->fc", a, b))
        weighted = cross * (angle / np.maximum(sine, 1e-300))[:, :, None]
        weighted = to_device(weighted.reshape(-1, 3).astype(np.float32), wp.vec3f)
        normals = zeros(len(weighted), wp.vec3f)
        inputs = [self._flat, weighted, self._start, self._around, normals]
        launch(corner_normals, len(normals), inputs)
        return normals

    # --- two dimensions

    def _drawn(self, nodes: np.ndarray) -> np.ndarray:
        """Cells as polygons, clipped by nothing: a cut cell shows whole but pale."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.collections import LineCollection, PolyCollection
        from matplotlib.figure import Figure

        body = self.scene.body
        figure = Figure(figsize=(self.width / 100.0, self.height / 100.0), dpi=100)
        canvas = FigureCanvasAgg(figure)
        axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        axes.set_axis_off()
        figure.patch.set_facecolor("#fafbfc")
        around = [0, 1, 3, 2] if body.is_grid else [0, 1, 2]
        u = np.linalg.norm(nodes - body.nodes, axis=1)
        shade = colour_map()(u[body.cells].mean(axis=1) / self.largest)
        shade[:, 3] = np.clip(body.fill, 0.15, 1.0)
        polygons = nodes[body.cells[:, around]]
        axes.add_collection(
            PolyCollection(list(polygons), facecolors=shade, edgecolors="#ffffff40", linewidths=0.3)
        )
        surface = body.surface
        for points, style in (
            (self._rest, {"colors": "#9aa4ad", "linewidths": 0.8, "linestyles": "dashed"}),
            (surface.positions(nodes), {"colors": "#20262c", "linewidths": 1.2}),
        ):
            axes.add_collection(LineCollection(list(points[surface.facets]), **style))
        low = np.minimum(self.low, self._rest.min(axis=0))
        high = np.maximum(self.high, self._rest.max(axis=0))
        for plane in (o for o in self.scene.obstacles if isinstance(o, Plane)):
            n = np.array(plane.normal[:2])
            x, y = (float(c) for c in plane.offset * n)
            axes.axline((x, y), (x - float(n[1]), y + float(n[0])), color="#7d868f")
        half = 0.5 * (high - low) / MARGIN
        half = np.maximum(half, half[::-1] * [self.width / self.height, self.height / self.width])
        middle = 0.5 * (high + low)
        axes.set_xlim(middle[0] - half[0], middle[0] + half[0])
        axes.set_ylim(middle[1] - half[1], middle[1] + half[1])
        canvas.draw()
        return np.asarray(canvas.buffer_rgba())[:, :, :3].copy()


# --- the camera


def _placed(points: np.ndarray, aspect: float, normal: np.ndarray, offset: float) -> Camera:
    """A camera that sees all points, above the floor."""
    middle = 0.5 * (points.min(axis=0) + points.max(axis=0))
    camera = _looking(points, middle, aspect, ELEVATION)
    for elevation in np.arange(ELEVATION, 1.4, 0.1):
        camera = _looking(points, middle, aspect, float(elevation))
        away = _unit(camera.eye - camera.target)
        if away @ normal > 0.12 and camera.eye @ normal > offset:
            break
    return camera


def _looking(points: np.ndarray, middle: np.ndarray, aspect: float, elevation: float) -> Camera:
    """The nearest camera in a direction that has all points within the margin."""
    away = np.array(
        [
            np.sin(AZIMUTH) * np.cos(elevation),
            np.sin(elevation),
            np.cos(AZIMUTH) * np.cos(elevation),
        ]
    )
    target = middle
    right, up, forward = Camera(away, np.zeros(3)).axes()
    distance = 1.0
    for _ in range(4):
        p = points - target
        depth = p @ forward
        need_x = np.abs(p @ right) / (MARGIN * OPENING * aspect) - depth
        need_y = np.abs(p @ up) / (MARGIN * OPENING) - depth
        distance = float(max(need_x.max(), need_y.max(), 1e-9))
        x, y = (p @ right) / (distance + depth), (p @ up) / (distance + depth)
        shift = 0.5 * (x.min() + x.max()) * right + 0.5 * (y.min() + y.max()) * up
        target = target + distance * shift
    return Camera(target + distance * away, target)


def _unit(v: np.ndarray) -> np.ndarray:
    v = np.asarray(v, float)
    return v / max(float(np.linalg.norm(v)), 1e-300)


def _round_length(x: float) -> float:
    """The nearest of 1, 2, 5 times a power of ten: tiles that one can count in."""
    power = 10.0 ** np.floor(np.log10(x))
    return float(power * min((1.0, 2.0, 5.0, 10.0), key=lambda m: abs(np.log(m * power / x))))


# --- colours and captions


def colour_map() -> Any:
    """Colours of displacements, from rest (0) to the largest (1)."""
    import matplotlib

    full = matplotlib.colormaps[COLOURS]
    return lambda x: full(DARKEST + (1.0 - DARKEST) * np.asarray(x))


def _linear(srgb: np.ndarray) -> np.ndarray:
    return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)


def _encoded(light: np.ndarray) -> np.ndarray:
    """Linear light to 8-bit sRGB."""
    c = np.clip(light, 0.0, 1.0)
    c = np.where(c <= 0.0031308, 12.92 * c, 1.055 * c ** (1.0 / 2.4) - 0.055)
    return (255.0 * c + 0.5).astype(np.uint8)


def _uneven(light: np.ndarray, threshold: float = 0.02) -> np.ndarray:
    """Pixels (height, width) whose light differs from that of a neighbour: edges to be refined."""
    steps = np.zeros(light.shape[:2], bool)
    across = (np.abs(light[:, 1:] - light[:, :-1]) > threshold).any(axis=2)
    down = (np.abs(light[1:] - light[:-1]) > threshold).any(axis=2)
    steps[:, 1:] |= across
    steps[:, :-1] |= across
    steps[1:] |= down
    steps[:-1] |= down
    return steps


def captioned(image: np.ndarray, largest: float, time: float | None) -> np.ndarray:
    """The colour scale of displacements, and the time, in the lower corners."""
    from PIL import Image, ImageDraw, ImageFont

    height, width = image.shape[:2]
    if width < 200:
        return image
    picture = Image.fromarray(image)
    pen = ImageDraw.Draw(picture)
    size = max(11, height // 36)
    font = ImageFont.load_default(size=size)
    ink, pad = (60, 66, 74), size
    bar_width, bar_height = width // 5, max(6, size // 2)
    top = height - pad - bar_height
    ramp = colour_map()(np.linspace(0.0, 1.0, bar_width))[:, :3]
    bar = np.broadcast_to((255.0 * ramp).astype(np.uint8), (bar_height, bar_width, 3))
    picture.paste(Image.fromarray(np.ascontiguousarray(bar)), (pad, top))
    pen.text((pad, top - 3), "0", fill=ink, font=font, anchor="ls")
    pen.text((pad + bar_width, top - 3), f"{largest:.3g} m", fill=ink, font=font, anchor="rs")
    if time is not None:
        pen.text((width - pad, height - pad), f"t = {time:.2f} s", fill=ink, font=font, anchor="rs")
    return np.asarray(picture)


# --- files


def save_png(path: str | Path, image: np.ndarray) -> None:
    """Write a picture."""
    from PIL import Image

    with whole_file(path) as temporary:
        Image.fromarray(image).save(temporary, format="PNG", optimize=True)


def save_gif(path: str | Path, frames: Sequence[np.ndarray], *, seconds: float = 0.05) -> None:
    """Write an animation, each frame shown for `seconds` (to 1/100 s), repeated for ever."""
    from PIL import Image

    if not frames:
        raise BadInput(f"{path}: an animation needs at least one frame.")
    pictures = [Image.fromarray(f) for f in frames]
    palette = _palette(frames)
    reduced = [p.quantize(palette=palette, dither=Image.Dither.NONE) for p in pictures]
    with whole_file(path) as temporary:
        reduced[0].save(
            temporary, format="GIF", save_all=True, append_images=reduced[1:],
            duration=max(20, round(1000.0 * seconds)), loop=0,
        )  # fmt: skip


def _palette(frames: Sequence[np.ndarray]) -> Any:
    """256 colours for all frames: one palette, or the background flickers.

    Half the vote goes to the pixels and half to the distinct colours: by pixels alone, floor and
    sky would take all and leave the body in bands; by colours alone, it would be the reverse.
    """
    from PIL import Image

    chosen = np.concatenate([f[::2, ::2].reshape(-1, 3) for f in frames[:: len(frames) // 8 + 1]])
    colours = np.unique(chosen // 3 * 3, axis=0)
    pixels = chosen[:: max(1, len(chosen) // len(colours))]
    votes = np.concatenate([colours, pixels])[None]
    return Image.fromarray(votes).quantize(256, method=Image.Quantize.MEDIANCUT)
