"""Draws triangles that move: a body's surface or a render mesh, with obstacles."""

from typing import Any

import numpy as np
import warp as wp

from pliant.app.render.footprints import camera_projection, lamp_projection, triangle_rows
from pliant.app.render.mesh_rays import Family, corner_normals, draw
from pliant.app.render.pixels import antialiased, linear
from pliant.app.render.stage import Setting
from pliant.core.launch import launch, share, to_device, zeros

SOLID = (0.52, 0.50, 0.47)
"""Linear light of obstacles."""


class MeshPainter:
    """Pictures of points (n, 3) joined by fixed facets (f, 3)."""

    def __init__(self, setting: Setting, point_count: int, facets: np.ndarray):
        self._setting = setting
        all_facets = [facets]
        count = point_count
        for p, f in setting.solids:
            all_facets.append(f + count)
            count += len(p)
        self._solids = [p for p, _ in setting.solids]
        self._facets = np.concatenate(all_facets).astype(np.int32)
        corner = self._facets.reshape(-1)
        start = np.concatenate([[0], np.cumsum(np.bincount(corner, minlength=count))])
        self._flat = to_device(corner, wp.int32)
        self._start = to_device(start.astype(np.int32), wp.int32)
        self._around = to_device(np.argsort(corner, kind="stable").astype(np.int32), wp.int32)

    def paint(self, positions: np.ndarray, colours: np.ndarray, samples: int) -> np.ndarray:
        """(height, width, 3) uint8 of points at `positions` in sRGB `colours` (n, 3)."""
        shade = [linear(colours), *(np.broadcast_to(SOLID, p.shape) for p in self._solids)]
        points = np.concatenate([positions, *self._solids])
        normals = self._smooth(points)
        return paint_mesh(
            self._setting, points, self._flat, normals, np.concatenate(shade), samples
        )

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


def paint_mesh(
    setting: Setting,
    points: np.ndarray,
    facets: wp.array,
    normals: wp.array,
    shade: np.ndarray,
    samples: int,
) -> np.ndarray:
    """A picture of one mesh; facets: flat corners, normals: one per corner, shade: linear light."""
    place = to_device(points.astype(np.float32), wp.vec3f)
    colour = to_device(shade.astype(np.float32), wp.vec3f)
    eye = _family(camera_projection(setting.view), place, facets)
    lamp = _family(lamp_projection(setting.stage, points), place, facets)
    inputs = [eye, lamp, place, facets, setting.view, setting.stage, normals, colour]

    def cast(pixels: wp.array, count: int, out: wp.array) -> None:
        launch(draw, len(pixels), [pixels, count, *inputs, out], grain=2000)

    touched = setting.empty.touched(
        eye.plane, _held(eye), lamp.plane, _held(lamp), float(setting.stage.lift)
    )
    kept = setting.empty.unchanged(touched, eye.plane, samples)
    return antialiased(cast, int(setting.view.width), int(setting.view.height), samples, kept)


def _held(family: Any) -> wp.array:
    """Blocks with triangles."""
    return share(np.diff(family.start.numpy()) > 0, wp.bool)


def _family(projection: Any, points: wp.array, facets: wp.array) -> Any:
    family: Any = Family()
    family.plane = projection
    family.rows, lists = triangle_rows(projection, points, facets)
    family.start, family.things = lists.start, lists.things
    return family
