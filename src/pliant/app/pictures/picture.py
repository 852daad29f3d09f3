"""Pictures of a deformed body: ray cast in 3D, drawn as polygons in 2D.

`Studio(scene, motion)` chooses a camera and colours that suit a whole motion; its `picture(nodes)`
is one frame, (height, width, 3) uint8.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from pliant.app.render.camera import Camera
from pliant.app.render.colouring import Colouring, Scale, colour_map
from pliant.app.render.field_painter import Cut, FieldPainter
from pliant.app.render.flat import draw_flat
from pliant.app.render.mesh_painter import MeshPainter
from pliant.app.render.picture_files import save_gif, save_mp4, save_png
from pliant.app.render.stage import make_setting
from pliant.core.errors import BadInput
from pliant.dynamics.parts.parts_scene import PartsScene
from pliant.dynamics.scene import Scene
from pliant.fem.bodies.render_mesh import RenderMesh, skin_of

__all__ = ["Camera", "Cut", "Studio", "captioned", "render", "save_gif", "save_mp4", "save_png"]

STYLES = ("surface", "field", "slice")
"""The body's own triangles (or a render mesh), its level set by sphere tracing, a slice of it."""

SAMPLES = 3
"""Rays per axis through a pixel that differs from a neighbour; the others get one."""


def render(
    scene: Scene,
    nodes: np.ndarray,
    *,
    width: int = 640,
    height: int = 480,
    time: float | None = None,
    camera: Camera | None = None,
    style: str = "surface",
    colour: str = "displacement",
    cut: Cut | None = None,
    mesh: RenderMesh | None = None,
    own: bool = False,
    observed: np.ndarray | None = None,
) -> np.ndarray:
    """One picture (height, width, 3) uint8 of the body with its nodes at `nodes` (nodes, dim)."""
    studio = Studio(
        scene, [scene.body.nodes, nodes], width=width, height=height, camera=camera, style=style,
        colour=colour, cut=cut, mesh=mesh, own=own, observed=[observed] * 2,
    )  # fmt: skip
    return studio.picture(nodes, time=time, observed=observed)


class Studio:
    """Camera, floor, light and colour scale for all pictures of one motion.

    motion: node positions of the frames (nodes, dim). style: see STYLES; colour: see
    render.colouring; cut: of the style "slice"; mesh: drawn instead of the body's own surface, by
    default the mesh that the body was made from, unless `own`;
    observed: points (p, 3) of each frame, for the colour "observation"; samples: rays per axis at
    edges; directions: azimuth and elevation [rad] for a camera that is placed to see everything;
    spacing: of the lattice [m] on which the field of a mesh is drawn, its mean edge by default.
    """

    def __init__(
        self,
        scene: Scene,
        motion: Sequence[np.ndarray],
        *,
        width: int = 640,
        height: int = 480,
        camera: Camera | None = None,
        directions: dict[str, float] | None = None,
        style: str = "surface",
        colour: str = "displacement",
        cut: Cut | None = None,
        mesh: RenderMesh | None = None,
        own: bool = False,
        observed: Sequence[np.ndarray | None] | None = None,
        samples: int = SAMPLES,
        spacing: float | None = None,
    ):
        if not (16 <= width <= 8192 and 16 <= height <= 8192):
            raise BadInput(f"A picture has 16 to 8192 pixels a side, not {width} x {height}.")
        if any(not np.isfinite(nodes).all() for nodes in motion):
            raise BadInput("The motion has positions that are not finite: nothing to draw.")
        if style not in STYLES:
            raise BadInput(f"The style must be one of {', '.join(STYLES)}, not '{style}'.")
        if scene.dim == 2 and style != "surface":
            raise BadInput(f"A 2D body is drawn whole; the style '{style}' needs a 3D one.")
        if (
            isinstance(scene, PartsScene) and style != "surface"
        ):  # one field would melt them together
            raise BadInput(f"The style '{style}' draws one body, and this scene has parts.")
        self.scene, self.width, self.height, self.samples = scene, width, height, samples
        body = scene.body
        if mesh is None and not own and scene.dim == 3:
            mesh = skin_of(body)
        self._carrier = mesh.points if mesh is not None else body.surface.points
        self._facets = mesh.triangles if mesh is not None else body.surface.facets
        motion = list(motion) or [body.nodes]
        shown = [self._carrier.matrix @ nodes for nodes in motion]
        self.low = np.min([p.min(axis=0) for p in shown], axis=0)
        self.high = np.max([p.max(axis=0) for p in shown], axis=0)
        self._colouring = Colouring(scene, colour)
        if scene.dim == 3:
            self.setting = make_setting(
                scene, shown, width, height, camera=camera, directions=directions
            )
            if style == "surface":
                self._mesh = MeshPainter(self.setting, len(self._carrier), self._facets)
            else:
                given = (cut or Cut()) if style == "slice" else None
                self._field = FieldPainter(self.setting, body, cut=given, spacing=spacing)
        self._style = style
        seen = list(observed) if observed is not None else [None] * len(motion)
        self.scale: Scale = self._colouring.scale(
            [
                self._drawn_values(nodes, points)
                for nodes, points in zip(motion, seen, strict=True)
                if colour != "observation" or points is not None
            ]
        )

    def _drawn_values(self, nodes: np.ndarray, observed: np.ndarray | None) -> np.ndarray:
        """What one frame shows in colours: the values in a slice, else those of the surface."""
        u = nodes - self.scene.body.nodes
        if self._style == "slice":
            found = self._field.sliced(nodes, self._colouring.at_nodes(u, observed))
            if found is not None and len(found):
                return found
        return self._colouring.at_points(self._carrier, u, observed)

    @property
    def camera(self) -> Camera:
        """Where the pictures of a 3D body are taken from."""
        return self.setting.camera

    def picture(
        self,
        nodes: np.ndarray,
        *,
        time: float | None = None,
        observed: np.ndarray | None = None,
        caption: str | None = None,
        scaled: bool = True,
    ) -> np.ndarray:
        """The body with its nodes at `nodes`; a caption takes the place of the time [s].

        scaled: show the scale of the colours.
        """
        scene = self.scene
        u = nodes - scene.body.nodes
        if scene.dim == 2 or self._style != "surface":
            values = self._colouring.at_nodes(u, observed)
            if scene.dim == 2:
                image = draw_flat(
                    scene, nodes, values, self.scale, self.low, self.high, self.width, self.height
                )
            else:
                image = self._field.paint(u, values, self.scale, self.samples)
        else:
            values = self._colouring.at_points(self._carrier, u, observed)
            colours = self.scale.colours(values)
            image = self._mesh.paint(self._carrier.matrix @ nodes, colours, self.samples)
        if caption is None and time is not None:
            caption = f"t = {time:.2f} s"
        return captioned(image, self.scale if scaled else None, caption)


def captioned(image: np.ndarray, scale: Scale | None, text: str | None) -> np.ndarray:
    """The colour scale and a text, such as the time, in the lower corners."""
    from PIL import Image, ImageDraw

    height, width = image.shape[:2]
    if width < 200:
        return image
    picture = Image.fromarray(image)
    pen = ImageDraw.Draw(picture)
    size = max(11, height // 36)
    font = _font(size)
    ink, pad = (60, 66, 74), size
    if scale is not None:
        bar_width, bar_height = width // 5, max(6, size // 2)
        top = height - pad - bar_height
        ramp = colour_map(scale.kind)(np.linspace(0.0, 1.0, bar_width))[:, :3]
        bar = np.broadcast_to((255.0 * ramp).astype(np.uint8), (bar_height, bar_width, 3))
        picture.paste(Image.fromarray(np.ascontiguousarray(bar)), (pad, top))
        pen.text((pad, top - 3), "0", fill=ink, font=font, anchor="ls")
        pen.text((pad + bar_width, top - 3), scale.label, fill=ink, font=font, anchor="rs")
        if scale.name:
            pen.text((pad, top - 3 - 1.3 * size), scale.name, fill=ink, font=font, anchor="ls")
    if text is not None:
        pen.text((width - pad, height - pad), text, fill=ink, font=font, anchor="rs")
    return np.asarray(picture)


@cache
def _font(size: int) -> Any:
    from PIL import ImageFont

    return ImageFont.load_default(size=size)
