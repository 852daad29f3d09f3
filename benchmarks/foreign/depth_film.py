"""Depth images of a motion that NGSolve computed, as observations that pliant reads.

Every triangle of the (curved) surface is sampled in `SPLIT`^2 small ones whose corners are moved by
the finite element field itself; rays meet those.
"""

from typing import Any

import ngsolve as ng
import numpy as np

from foreign.motion import ForeignMotion
from pliant.observe.camera import Camera
from pliant.observe.observations import Frame, Observations
from pliant.observe.raycast import SurfaceQueries

SPLIT = 6
"""Small triangles along an edge: a chord of a bent edge of 8 mm, radius 50 mm, is 4 um off."""

WIDTH, HEIGHT = 160, 120
VIEW_ANGLE = 36.0
"""Of the image's height [degrees]."""

ROOM = 1.02
"""Radius of what a camera sees over that of the ball around all the motion."""

DIRECTIONS = ((0.45, 0.65, 0.8), (0.5, -0.4, -0.9), (1.0, 0.5, -0.35))
"""From the body to the three cameras: from above, from below on the other side, from the end."""


class MovingSurface:
    """The surface of a motion as many small triangles: points (p, 3) [m] by frame."""

    def __init__(self, motion: ForeignMotion):
        self._motion = motion
        mesh = motion.mesh
        lattice = [(i, j) for j in range(SPLIT + 1) for i in range(SPLIT + 1 - j)]
        number = {place: k for k, place in enumerate(lattice)}
        small = []
        for i, j in lattice:
            if i + j < SPLIT:
                small.append((number[i, j], number[i + 1, j], number[i, j + 1]))
            if i + j < SPLIT - 1:
                small.append((number[i + 1, j], number[i + 1, j + 1], number[i, j + 1]))
        points = [(i / SPLIT, j / SPLIT) for i, j in lattice]
        rule = ng.IntegrationRule(points=points, weights=[1.0] * len(points))
        outer = mesh.Boundaries("clamp|free")
        self._places = mesh.MapToAllElements({ng.ET.TRIG: rule}, outer)
        rest = self._evaluate(ng.CF((ng.x, ng.y, ng.z)))
        count = len(rest) // len(points)
        all_small = np.asarray(small) + len(points) * np.arange(count)[:, None, None]
        # neighbours share corners, so that no ray slips between them
        _, first, merged = np.unique(
            np.round(rest / 1e-8).astype(np.int64), axis=0, return_index=True, return_inverse=True
        )
        self._first = first
        self.rest = rest[first]
        self.triangles = merged.reshape(-1)[all_small.reshape(-1, 3)]

    def _evaluate(self, field: Any) -> np.ndarray:
        return np.asarray(field(self._places)).reshape(-1, 3)

    def at(self, frame: int) -> np.ndarray:
        """Positions (p, 3) [m] of its points in a frame."""
        return self.rest + self._evaluate(self._motion.at(frame))[self._first]


def cameras_around(positions: np.ndarray) -> list[Camera]:
    """Three cameras that see all of `positions` (m, 3) [m]."""
    low, high = positions.min(axis=0), positions.max(axis=0)
    target = 0.5 * (low + high)
    radius = ROOM * float(np.linalg.norm(positions - target, axis=1).max())
    distance = radius / np.sin(np.radians(VIEW_ANGLE) / 2)
    return [
        Camera.looking(
            target + distance * np.asarray(d) / np.linalg.norm(d), target,
            width=WIDTH, height=HEIGHT, view_angle=VIEW_ANGLE,
        )
        for d in DIRECTIONS
    ]  # fmt: skip


def film(motion: ForeignMotion, *, noise: float, seed: int) -> Observations:
    """All frames but the first; noise: standard deviation along each ray [m]."""
    surface = MovingSurface(motion)
    shown = range(1, len(motion.times))
    cameras = cameras_around(np.concatenate([surface.at(k) for k in (0, *shown)]))
    queries = SurfaceQueries(surface.rest, surface.triangles)
    rng = np.random.default_rng(seed)
    frames = []
    for k in shown:
        queries.move(surface.at(k))
        parts = []
        for index, camera in enumerate(cameras):
            rays = camera.rays()
            hits = queries.cast(camera.position, rays)
            jitter = rng.standard_normal(camera.pixel_count)[hits.item]
            depth = hits.distance + noise * jitter
            points = camera.position + depth[:, None] * rays[hits.item]
            parts.append((points, np.full(len(depth), index), hits.item, depth))
        joined = (np.concatenate([part[c] for part in parts]) for c in range(4))
        frames.append(Frame(float(motion.times[k]), *joined))
    return Observations(frames, cameras, noise)
