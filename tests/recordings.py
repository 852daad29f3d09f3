"""A small recording of two cameras that several tests share."""

import numpy as np
import pytest

from pliant.observe.camera import Camera
from pliant.observe.observations import Frame, Observations

CAMERAS = [
    Camera.looking((3.0, 0.4, 0.2), (0.0, 0.0, 0.0), width=12, height=9),
    Camera.looking((-0.5, 1.0, 2.5), (0.1, 0.0, 0.0), width=7, height=8),
]


@pytest.fixture
def seen() -> Observations:
    rng = np.random.default_rng(3)
    frames = []
    for k in range(3):
        camera = np.repeat([0, 1], [20, 15])
        pixel = np.concatenate(
            [np.sort(rng.choice(c.pixel_count, n, replace=False)) for c, n in
             zip(CAMERAS, (20, 15), strict=True)]
        )  # fmt: skip
        depth = rng.uniform(1.0, 4.0, 35)
        frames.append(frame(0.04 * (k + 1), camera, pixel, depth))
    return Observations(frames, CAMERAS, 0.01)


def frame(time, camera, pixel, depth) -> Frame:
    points = np.empty((len(pixel), 3))
    for i, c in enumerate(CAMERAS):
        own = camera == i
        points[own] = c.position + depth[own, None] * c.rays(pixel[own])
    return Frame(time, points, camera, pixel, depth)


def ply_text(points) -> str:
    rows = "\n".join(f"{x:.9g} {y:.9g} {z:.9g} 255" for x, y, z in points)
    return (
        f"ply\nformat ascii 1.0\ncomment a scanner\nelement vertex {len(points)}\n"
        "property float x\nproperty float y\nproperty float z\nproperty uchar red\n"
        f"element face 0\nproperty list uchar int vertex_indices\nend_header\n{rows}\n"
    )
