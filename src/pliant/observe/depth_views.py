"""Depth images out of a recording's frames: depth, its slope against the ray, where nothing was.

A pixel's depth is averaged over the pixels around it, as far as half a node's distance reaches: a
node of the fused grid stands for all of them. The surface's tilt against the ray comes from a plane
through a wider neighbourhood, since noise as large as a pixel would drown the difference of two.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pliant.core.errors import BadInput
from pliant.observe.camera import Camera
from pliant.observe.observations import Frame, Observations

TILT_REACH = 2
"""Pixels to each side that the plane of the tilt goes through, at least."""

LARGEST_REACH = 6
"""Most pixels to each side that are averaged: a window costs its area."""

STEEPEST = 6.0
"""Slope (depth over width) beyond which two neighbouring pixels lie on different surfaces."""

EMPTY_REACH = 3
"""Pixels around one without depth that must be without too, for it to have seen nothing: a lost
pixel on the body is no hole."""


@dataclass(frozen=True)
class DepthView:
    """What one camera saw at one time. depth (h, w) [m] along the ray, 0: none; cosine (h, w) of
    the angle between ray and surface; empty (h, w): nothing there; jump [m]: depths of neighbouring
    pixels that differ by more belong to different surfaces.
    """

    camera: Camera
    depth: np.ndarray
    cosine: np.ndarray
    empty: np.ndarray
    jump: float


def depth_images(seen: Observations) -> Iterator[tuple[Camera, np.ndarray]]:
    """Camera and raw depth image (h, w) of every camera at every time that saw anything."""
    for number, frame in enumerate(seen.frames):
        if not len(frame):
            continue
        if not frame.organised:
            raise BadInput(
                f"Frame {number} has points without camera and pixel; a scan needs depth images "
                "with known cameras (pliant observe --layout npz or depth)."
            )
        for index in np.unique(frame.camera):
            yield seen.cameras[index], _image(frame, index, seen.cameras[index])


def _image(frame: Frame, index: int, camera: Camera) -> np.ndarray:
    own = frame.camera == index
    depth = frame.depth[own]
    good = np.isfinite(depth) & (depth > 0.0)
    image = np.zeros(camera.pixel_count)
    image[frame.pixel[own][good]] = depth[good]
    return image.reshape(camera.height, camera.width)


def pixel_size(seen: Observations) -> float:
    """Median width [m] of a pixel at the depth that it saw."""
    sizes = [
        np.median(image[image > 0.0]) / camera.fx
        for camera, image in depth_images(seen)
        if (image > 0.0).any()
    ]
    return float(np.median(sizes)) if sizes else 0.0


def depth_view(camera: Camera, image: np.ndarray, *, spacing: float, noise: float) -> DepthView:
    """A view for a grid of this spacing [m]; noise: of a depth [m], 0 if not known."""
    known = image > 0.0
    width = float(np.median(image[known])) / camera.fx if known.any() else spacing
    reach = int(np.clip(round(0.5 * spacing / width), 0, LARGEST_REACH))
    jump = STEEPEST * width + 6.0 * noise
    depth, across, down = _plane(image, max(reach, TILT_REACH), jump * max(reach, TILT_REACH))
    if reach == 0:
        smooth = image
    else:
        smooth, _, _ = _plane(image, reach, jump * reach)
    rays = camera.rays().reshape(*image.shape, 3) @ camera.rotation.T  # in the camera's frame
    # d (depth * ray) / d pixel: the ray turns by about 1 / f a pixel
    by_column = across[..., None] * rays + depth[..., None] * _turn(rays, 0, camera.fx)
    by_row = down[..., None] * rays + depth[..., None] * _turn(rays, 1, camera.fy)
    normal = np.cross(by_column, by_row)
    length = np.linalg.norm(normal, axis=-1)
    cosine = np.abs(np.einsum("hwi,hwi->hw", normal, rays)) / np.where(length > 0.0, length, 1.0)
    return DepthView(
        camera, np.where(known, smooth, 0.0), np.where(known, cosine, 0.0), _nothing(known), jump
    )


def _turn(rays: np.ndarray, axis: int, focal: float) -> np.ndarray:
    """Change of the unit ray by one pixel along an axis."""
    step = np.zeros(3)
    step[axis] = 1.0 / focal
    moved = rays / rays[..., 2:3] + step
    moved /= np.linalg.norm(moved, axis=-1, keepdims=True)
    return moved - rays


def _plane(image: np.ndarray, reach: int, jump: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Least-squares plane through the known pixels around each: value, slope across, slope down.

    Pixels whose depth differs by more than `jump` are left out.
    """
    h, w = image.shape
    padded = np.pad(image, reach)
    S = np.zeros((9, h, w))  # sums of 1, x, y, xx, xy, yy, d, xd, yd; d relative to the centre
    for y in range(-reach, reach + 1):
        for x in range(-reach, reach + 1):
            other = padded[reach + y : reach + y + h, reach + x : reach + x + w]
            d = other - image
            use = (other > 0.0) & (np.abs(d) <= jump)
            d = np.where(use, d, 0.0)
            for k, factor in enumerate((1.0, x, y, x * x, x * y, y * y)):
                S[k] += factor * use
            for k, factor in enumerate((1.0, x, y), start=6):
                S[k] += factor * d
    A = np.stack([S[0], S[1], S[2], S[1], S[3], S[4], S[2], S[4], S[5]], -1).reshape(h, w, 3, 3)
    A = A + 1e-9 * np.eye(3)  # a lonely pixel has no slope
    found = np.linalg.solve(A, np.moveaxis(S[6:], 0, -1)[..., None])[..., 0]
    return image + found[..., 0], found[..., 1], found[..., 2]


def _nothing(known: np.ndarray) -> np.ndarray:
    """Pixels around which nothing was seen either."""
    from scipy.ndimage import maximum_filter

    around = maximum_filter(known, size=2 * EMPTY_REACH + 1, mode="constant", cval=False)
    return np.logical_not(around)
