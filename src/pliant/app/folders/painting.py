"""Colours of a recording on the body that a scene moves: `pliant texture`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from pliant.app.folders.film_head import Sighting
from pliant.app.folders.motion_at import Progress, nodes_at
from pliant.app.formats.surface_motion import SurfaceMotion
from pliant.core.errors import BadInput
from pliant.dynamics.scene import Scene
from pliant.fem.bodies.body import Body
from pliant.fem.bodies.embedding import Surface
from pliant.fem.bodies.render_mesh import RenderMesh
from pliant.observe.camera import Camera
from pliant.observe.colour_files import colour_files, read_colour_image
from pliant.observe.observations import Observations
from pliant.observe.texture import ColourView, Texture, fuse_colours, painted_surface


@dataclass(frozen=True)
class Painting:
    """texture: colours of the surface's points; times (frames,) [s] and nodes of the frames [m];
    example: one of the images and what saw it.
    """

    body: Body
    texture: Texture
    surface: Surface
    times: np.ndarray
    nodes: np.ndarray
    example: ColourView = field(repr=False)

    @property
    def coverage(self) -> float:
        """Share of the body's surface that some pixel saw, by its own facets: those of the painted
        mesh come in whole turns of them.
        """
        own = self.surface.facets
        coarse = len(self.body.surface.facets)
        met = (self.texture.seen[own] > 0.0).any(axis=1).reshape(-1, coarse).any(axis=0)
        area = np.linalg.norm(self.body.surface.area_vectors(self.nodes[0]), axis=1)
        return float(area @ met / area.sum())

    @property
    def motion(self) -> SurfaceMotion:
        """What is written: the painted body, as it moved."""
        mesh = RenderMesh(self.surface.points, self.surface.facets)
        steps = np.arange(len(self.times))
        return SurfaceMotion(mesh, self.times, self.nodes, steps, colours=self.texture.colours)


def paint(
    scene: Scene,
    seen: Observations,
    folder: str | Path,
    *,
    sighting: Sighting | None = None,
    progress: Progress | None = None,
) -> Painting:
    """The colours of a recording's images on the scene's body; folder: of the recording."""
    sighting = sighting or Sighting()
    eyes = list(sighting.eyes) or seen.cameras
    if not eyes:
        raise BadInput(f"{folder}: colours need cameras with known places.")
    files = colour_files(Path(folder), cameras=len(eyes), frames=len(seen.frames))
    times = [frame.time + sighting.time_offset for frame in seen.frames]
    nodes = np.stack(list(nodes_at(scene, times, progress)))
    surface = painted_surface(scene.body, pixel_width(eyes, nodes[0]))
    texture = fuse_colours(surface, _views(files, eyes, nodes))
    middle = len(files) // 2
    example = next(_views(files[middle : middle + 1], eyes, nodes[middle : middle + 1]))
    return Painting(scene.body, texture, surface, np.array(times), nodes, example)


def _views(
    files: Sequence[Sequence[tuple[int, Path]]], eyes: Sequence[Camera], nodes: np.ndarray
) -> Iterator[ColourView]:
    for k, images in enumerate(files):
        for number, path in images:
            yield ColourView(eyes[number], read_colour_image(path, eyes[number]), nodes[k])


def pixel_width(eyes: Sequence[Camera], nodes: np.ndarray) -> float:
    """Width [m] of a pixel at the body, of the sharpest camera."""
    middle = nodes.mean(axis=0)
    return min(float(np.linalg.norm(eye.position - middle)) / eye.fx for eye in eyes)
