"""What a compressed film says of itself, and what its scene predicts of it.

Whoever writes a film and whoever plays it must predict the same bits, so both do it here, from the
head alone and from the scene as the file holds it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pliant.app.describing.typed_files import FilmTable, checked
from pliant.app.folders.motion_at import Progress, nodes_at
from pliant.core.errors import BadInput
from pliant.dynamics.scene import Scene
from pliant.observe.calibration import Pose
from pliant.observe.camera import Camera
from pliant.observe.curved_surface import seen_surface
from pliant.observe.depth_png import camera_from
from pliant.observe.raycast import SurfaceQueries

FORMAT = "pliant film 1"

MOST_PIXELS = 10**9
"""Of all images of a film; a bit each is read before anything else is known of them."""


@dataclass(frozen=True)
class Sighting:
    """How a fit looks at its recording: eyes, where its cameras really are (none: where they are
    said to be); a frame stamped t is of t + time_offset, a depth d means depth_scale d +
    depth_offset [m].
    """

    eyes: Sequence[Camera] = field(default_factory=list)
    time_offset: float = 0.0
    depth_scale: float = 1.0
    depth_offset: float = 0.0


@dataclass(frozen=True)
class Film:
    """A head, and what follows from it alone: both sides must see the same."""

    table: FilmTable
    cameras: list[Camera]
    eyes: list[Camera]

    @classmethod
    def of(cls, head: dict[str, Any]) -> "Film":
        """The film of a head, all of which is checked."""
        stated = head.get("format") if isinstance(head, dict) else None
        if isinstance(stated, str) and stated != FORMAT:
            raise BadInput(f"another version ('{stated[:40]}'); this one reads '{FORMAT}'.")
        table: FilmTable = checked(FilmTable, head)
        cameras = [_camera(c, f"cameras[{k}]") for k, c in enumerate(table.cameras)]
        eyes = [_camera(c, f"eyes[{k}]") for k, c in enumerate(table.eyes)] or cameras
        if len(eyes) != len(cameras) or len(table.views) != len(table.times):
            raise BadInput("its lists do not belong together")
        pixels = 0
        for view in table.views:
            if sorted(set(view)) != view or any(index >= len(cameras) for index in view):
                raise BadInput("a frame names a camera that it does not have")
            pixels += sum(cameras[index].pixel_count for index in view)
        if pixels > MOST_PIXELS:
            raise BadInput(f"{pixels} pixels are more than {MOST_PIXELS}: cut the recording")
        if any(b <= a for a, b in zip(table.times, table.times[1:], strict=False)):
            raise BadInput("its times do not ascend")
        return cls(table, cameras, eyes)

    @property
    def whole(self) -> bool:
        """Whether values are steps of 16-bit images."""
        return self.table.image_steps is not None

    @property
    def sizes(self) -> list[int]:
        """Pixels of the images, in their order."""
        return [self.cameras[i].pixel_count for view in self.table.views for i in view]

    def values_of(self, index: int, pixel: np.ndarray, depth: np.ndarray) -> np.ndarray:
        """Depths [m] along the ray as the codec's values."""
        if self.table.image_steps is None:
            return depth
        return np.rint(depth * self.cameras[index].axis_cosine(pixel) * self.table.image_steps)

    def depths_of(self, index: int, pixel: np.ndarray, value: np.ndarray) -> np.ndarray:
        """The inverse of `values_of`."""
        if self.table.image_steps is None:
            return value
        return value / self.table.image_steps / self.cameras[index].axis_cosine(pixel)

    def length_of(self, value: float) -> float:
        """A difference of values in metres."""
        return value if self.table.image_steps is None else value / self.table.image_steps

    def predictions(
        self, scene: Scene, progress: Progress | None
    ) -> Iterator[Callable[[int, np.ndarray], np.ndarray]]:
        """For each frame the function from camera and pixels to predicted values, 0: none."""
        body, t = scene.body, self.table
        if body.dim != 3:
            raise BadInput("Depth cameras see 3D bodies only.")
        times = [time + t.time_offset for time in t.times]
        motion = nodes_at(scene, times, progress)
        surface = seen_surface(body).surface
        queries = SurfaceQueries(surface.positions(body.nodes), surface.facets)

        def values(index: int, pixel: np.ndarray) -> np.ndarray:
            eye = self.eyes[index]
            hits = queries.cast(eye.position, eye.rays(pixel))
            out = np.zeros(len(pixel))
            own = pixel[hits.item]
            depth = np.maximum((hits.distance - t.depth_offset) / t.depth_scale, 0.0)
            out[hits.item] = self.values_of(index, own, depth)
            return out

        for nodes in motion:
            queries.move(surface.points.matrix @ nodes)
            yield values


def _camera(record: dict[str, Any], where: str) -> Camera:
    """As the head holds it: rebuilt on both sides, so that both have the same bits."""
    try:
        T = np.asarray(record["extrinsic"], float).reshape(4, 4, order="F")
        intrinsic = record["intrinsic"]
    except (KeyError, TypeError, ValueError):
        raise BadInput(f"{where} needs intrinsic and extrinsic") from None
    return camera_from(intrinsic, T, where)


def corrected(cameras: list[Camera], poses: Callable[[int], Sequence[Pose]]) -> list[Camera]:
    """Cameras moved by poses, each by those that poses(index) lists, in their order."""
    out = []
    for index, camera in enumerate(cameras):
        position, rotation = np.asarray(camera.position, float), np.asarray(camera.rotation)
        for pose in poses(index):
            position = pose.apply(position[None])[0]
            rotation = rotation @ pose.rotation.T
        out.append(replace(camera, position=position, rotation=rotation))
    return out
