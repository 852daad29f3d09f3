"""From linear light to 8-bit pictures: where more rays are needed, and the encoding."""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
import warp as wp

from pliant.core.launch import launch, share, to_device, zeros

UNEVEN = 0.035
"""Difference of linear light between neighbours from which a pixel gets more rays."""

COMB = 16
"""Every thread gets rows from all over the picture, for up to this many threads."""

GRAIN = 20_000
TABLE = 1 << 13
"""Entries of the encoding's table: darkest steps of 0.4 levels."""


@wp.kernel
def _find_uneven(
    first: wp.int32,
    pixels: wp.array(dtype=wp.int32),
    light: wp.array(dtype=wp.vec3f),
    width: wp.int32,
    height: wp.int32,
    threshold: wp.float32,
    out: wp.array(dtype=wp.bool),
):
    pixel = pixels[first + wp.tid()]
    column = pixel % width
    row = pixel // width
    own = light[pixel]
    most = wp.float32(0.0)
    if column > 0:
        most = wp.max(most, wp.max(wp.abs(light[pixel - 1] - own)))
    if column < width - 1:
        most = wp.max(most, wp.max(wp.abs(light[pixel + 1] - own)))
    if row > 0:
        most = wp.max(most, wp.max(wp.abs(light[pixel - width] - own)))
    if row < height - 1:
        most = wp.max(most, wp.max(wp.abs(light[pixel + width] - own)))
    out[pixel] = most > threshold


@wp.kernel
def _encode(
    first: wp.int32,
    pixels: wp.array(dtype=wp.int32),
    light: wp.array(dtype=wp.vec3f),
    table: wp.array(dtype=wp.uint8),
    out: wp.array(dtype=wp.vec3ub),
):
    pixel = pixels[first + wp.tid()]
    last = float(table.shape[0] - 1)
    c = light[pixel]
    out[pixel] = wp.vec3ub(
        table[int(wp.clamp(c[0], 0.0, 1.0) * last + 0.5)],
        table[int(wp.clamp(c[1], 0.0, 1.0) * last + 0.5)],
        table[int(wp.clamp(c[2], 0.0, 1.0) * last + 0.5)],
    )


@cache
def _table() -> np.ndarray:
    c = np.arange(TABLE) / (TABLE - 1.0)
    c = np.where(c <= 0.0031308, 12.92 * c, 1.055 * c ** (1.0 / 2.4) - 0.055)
    return (255.0 * c + 0.5).astype(np.uint8)


def linear(srgb: np.ndarray) -> np.ndarray:
    """Linear light of sRGB colours between 0 and 1."""
    srgb = np.asarray(srgb, float)
    return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)


@dataclass(frozen=True)
class Unchanged:
    """A picture that others keep in part.

    light: linear, one ray a pixel; picture: (height, width, 3) uint8; touched: (pixels,) where the
    others differ.
    """

    light: np.ndarray
    picture: np.ndarray
    touched: np.ndarray


Cast = Callable[[wp.array, int, wp.array], None]
"""cast(pixels, samples, light) sets light[p] to the mean linear light of each p in pixels."""


def drawn_once(cast: Cast, width: int, height: int) -> np.ndarray:
    """Linear light (pixels, 3) float32 of one ray a pixel."""
    light = zeros(width * height, wp.vec3f)
    cast(share(_all_combed(width * height, width), wp.int32), 1, light)
    return light.numpy()


def antialiased(
    cast: Cast, width: int, height: int, samples: int, unchanged: Unchanged | None = None
) -> np.ndarray:
    """A picture (height, width, 3) uint8 of one ray a pixel, and samples^2 at edges."""
    count = width * height
    chosen = _all_combed(count, width)
    if unchanged is None:
        light, out = zeros(count, wp.vec3f), zeros(count, wp.vec3ub)
    else:
        light = to_device(unchanged.light, wp.vec3f)
        out = to_device(unchanged.picture.reshape(-1, 3), wp.vec3ub)
        chosen = chosen[unchanged.touched[chosen]]
    pixels = share(chosen, wp.int32)
    if len(pixels):
        cast(pixels, 1, light)
    if samples > 1:
        flags = find_uneven(light, pixels, width, height)
        edges = np.flatnonzero(flags.numpy()).astype(np.int32)
        if len(edges):
            cast(to_device(_combed(edges, width), wp.int32), samples, light)
    launch(_encode, len(pixels), [pixels, light, share(_table(), wp.uint8), out], grain=GRAIN)
    return out.numpy().reshape(height, width, 3).copy()


def find_uneven(light: wp.array, pixels: wp.array, width: int, height: int) -> wp.array:
    """Which of some pixels (bool, for all of the picture) differ from a neighbour in `light`."""
    flags = zeros(width * height, wp.bool)
    inputs = [pixels, light, width, height, UNEVEN, flags]
    launch(_find_uneven, len(pixels), inputs, grain=GRAIN)
    return flags


def _combed(pixels: np.ndarray, width: int) -> np.ndarray:
    """Pixels row by row with steps of COMB: threads then share sky, floor and body evenly."""
    comb = (pixels // width % COMB).astype(np.uint8)  # bytes are sorted in linear time
    return pixels[np.argsort(comb, kind="stable")]


@lru_cache(maxsize=2)
def _all_combed(count: int, width: int) -> np.ndarray:
    return _combed(np.arange(count, dtype=np.int32), width)
