"""Where pictures are taken from."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from pliant.app.render.lighting import View

AZIMUTH, ELEVATION = np.radians(28.0), np.radians(17.0)
"""Where the camera stands, seen from the body: to the right of +z, and above."""

OPENING = np.tan(np.radians(15.0))
"""Tangent of half the vertical opening angle: a long lens keeps a body's proportions."""

MARGIN = 0.84
"""Share of the picture's half width that the motion may fill."""


@dataclass(frozen=True)
class Camera:
    """eye and target [m]; the picture's up is as near to y as it can be."""

    eye: np.ndarray
    target: np.ndarray

    def axes(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(right, up, forward), unit vectors."""
        forward = unit(self.target - self.eye)
        aside = np.cross(forward, [0.0, 1.0, 0.0])
        if np.linalg.norm(aside) < 1e-9:  # straight up or down: any right will do
            aside = np.array([1.0, 0.0, 0.0])
        right = unit(aside)
        return right, np.cross(right, forward), forward

    def view(self, width: int, height: int) -> Any:
        """What the kernels read."""
        view: Any = View()
        view.eye, view.right, view.up, view.forward = (
            wp.vec3f(*map(float, v)) for v in (self.eye, *self.axes())
        )
        view.half_height = OPENING
        view.half_width = OPENING * width / height
        view.width, view.height = width, height
        return view


def placed(
    points: np.ndarray,
    aspect: float,
    normal: np.ndarray,
    offset: float,
    *,
    azimuth: float = float(AZIMUTH),
    elevation: float = float(ELEVATION),
) -> Camera:
    """A camera that sees all points, above the floor normal . x = offset."""
    middle = 0.5 * (points.min(axis=0) + points.max(axis=0))
    camera = looking(points, middle, aspect, azimuth, elevation)
    for angle in np.arange(elevation, 1.4, 0.1):
        camera = looking(points, middle, aspect, azimuth, float(angle))
        away = unit(camera.eye - camera.target)
        if away @ normal > 0.12 and camera.eye @ normal > offset:
            break
    return camera


def looking(
    points: np.ndarray, middle: np.ndarray, aspect: float, azimuth: float, elevation: float
) -> Camera:
    """The nearest camera in a direction that has all points within the margin."""
    away = np.array(
        [
            np.sin(azimuth) * np.cos(elevation),
            np.sin(elevation),
            np.cos(azimuth) * np.cos(elevation),
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


def unit(v: np.ndarray) -> np.ndarray:
    """v / |v|."""
    v = np.asarray(v, float)
    return v / max(float(np.linalg.norm(v)), 1e-300)
