"""Floor, light and obstacles around a body in motion."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from pliant.app.render.camera import Camera, placed, unit
from pliant.app.render.empty_stage import EmptyStage
from pliant.app.render.lighting import Stage
from pliant.dynamics.obstacles import Obstacle, Plane
from pliant.dynamics.scene import Scene
from pliant.fem.cutting.triangulate import sampled_surface


@dataclass(frozen=True)
class Setting:
    """camera; view and stage: what the kernels read; solids: (points, facets) of obstacles.

    empty: the picture without body and obstacles.
    """

    camera: Camera
    view: Any
    stage: Any
    solids: list[tuple[np.ndarray, np.ndarray]]
    empty: EmptyStage


def make_setting(
    scene: Scene,
    shown: Sequence[np.ndarray],
    width: int,
    height: int,
    *,
    camera: Camera | None = None,
    directions: dict[str, float] | None = None,
) -> Setting:
    """The setting for surface points `shown` (points, 3) of all frames.

    directions: azimuth and elevation [rad] of a camera that is placed to see them all.
    """
    low = np.min([p.min(axis=0) for p in shown], axis=0)
    high = np.max([p.max(axis=0) for p in shown], axis=0)
    size = float(np.linalg.norm(high - low))
    planes = [o for o in scene.obstacles if isinstance(o, Plane)]
    solids = [o for o in scene.obstacles if isinstance(o, Obstacle)]
    spacing = scene.body.spacing
    meshes = [sampled_surface(o.shape, o.spacing or spacing) for o in solids]
    if planes:
        # the floor is the plane that faces up most; other planes are walls and not drawn
        floor = max(planes, key=lambda p: p.normal[1])
        normal, offset = np.array(floor.normal), floor.offset
    else:
        lowest = min([low[1], *(p[:, 1].min() for p, _ in meshes)])
        normal, offset = np.array([0.0, 1.0, 0.0]), lowest - 0.08 * size
    points = np.concatenate([p[:: max(1, len(p) // 400)] for p in shown])
    middle = 0.5 * (low + high)
    feet = points - np.outer(points @ normal - offset, normal)
    framed = [points, *(p[::7] for p, _ in meshes), middle + 0.9 * (feet - middle)]
    if camera is None:
        given = directions or {}
        camera = placed(np.concatenate(framed), width / height, normal, offset, **given)
    forward = camera.axes()[2]
    light = unit(1.1 * normal - 0.55 * forward - 0.55 * unit(np.cross(normal, forward)))
    tile_x = unit(np.cross(normal, [0.0, 0.0, 1.0]))
    stage: Any = Stage()
    stage.normal, stage.along, stage.across, stage.light = (
        wp.vec3f(*map(float, v)) for v in (normal, tile_x, np.cross(normal, tile_x), light)
    )
    stage.middle = wp.vec3f(*map(float, middle - (middle @ normal - offset) * normal))
    stage.offset, stage.tile, stage.fade = float(offset), _round_length(0.16 * size), 2.6 * size
    stage.reach, stage.lift = 4.0 * size, 0.3 * spacing
    view = camera.view(width, height)
    return Setting(camera, view, stage, meshes, EmptyStage(view, stage))


def _round_length(x: float) -> float:
    """The nearest of 1, 2, 5 times a power of ten: tiles that one can count in."""
    power = 10.0 ** np.floor(np.log10(x))
    return float(power * min((1.0, 2.0, 5.0, 10.0), key=lambda m: abs(np.log(m * power / x))))
