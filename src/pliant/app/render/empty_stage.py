"""The stage without anything on it: drawn once, and kept wherever a frame leaves it alone.

Camera, floor and lamp stay the same for all frames of a motion. A block of the picture is left
alone if no thing covers it, none throws a shadow on its floor, and no slice passes through it.
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

from typing import Any

import numpy as np
import warp as wp

from pliant.app.render.footprints import Projection, lamp_place
from pliant.app.render.lighting import (
    Stage,
    View,
    background,
    floor_distance,
    floor_light,
    floor_presence,
    ray_direction,
    tangents,
)
from pliant.app.render.pixels import Unchanged, antialiased, drawn_once
from pliant.core.launch import launch, zeros

MOST_SHADED = 4_000
"""Blocks of the lamp's plane that are looked at before a block of the picture counts as shaded."""


@wp.kernel
def draw_empty(
    first: wp.int32,
    pixels: wp.array(dtype=wp.int32),
    samples: wp.int32,
    view: View,
    stage: Stage,
    image: wp.array(dtype=wp.vec3f),
):
    """As the other ray kernels, of floor and sky alone."""
    pixel = pixels[first + wp.tid()]
    column = float(pixel % view.width)
    row = float(pixel // view.width)
    total = wp.vec3f()
    seen = wp.float32(0.0)
    if wp.dot(stage.normal, stage.light) > 0.0:
        seen = 1.0
    for k in range(samples * samples):
        px = column + (float(k % samples) + 0.5) / float(samples)
        py = row + (float(k // samples) + 0.5) / float(samples)
        direction = ray_direction(view, tangents(view, px, py))
        light = background(1.0 - py / float(view.height))
        to_floor = floor_distance(view, stage, direction)
        if to_floor > 0.0:
            x = view.eye + direction * to_floor
            presence = floor_presence(stage, x)
            if presence > 0.0:
                light = floor_light(stage, x, light, presence, seen)
        total += light
    image[pixel] = total / float(samples * samples)


@wp.func
def corner_direction(view: View, eye: Projection, block: int, corner: int) -> wp.vec3f:
    """Through one of the four corners of a block."""
    i = block % eye.count[0] + corner % 2
    j = block // eye.count[0] + corner // 2
    s = eye.low[0] + eye.block[0] * float(i)
    t = eye.low[1] + eye.block[1] * float(j)
    return view.forward + view.right * s + view.up * t


@wp.kernel
def find_shaded(
    first: wp.int32,
    view: View,
    stage: Stage,
    eye: Projection,
    lamp: Projection,
    lift: wp.float32,
    covered: wp.array(dtype=wp.bool),
    shading: wp.array(dtype=wp.bool),
    out: wp.array(dtype=wp.bool),
):
    """Blocks that are covered, or whose floor (`lift` above it) lies beneath a shading block."""
    block = first + wp.tid()
    found = covered[block]
    hits = wp.int32(0)
    low = wp.vec2f()
    high = wp.vec2f()
    for corner in range(4):
        direction = corner_direction(view, eye, block, corner)
        to_floor = floor_distance(view, stage, direction)
        if to_floor > 0.0:
            x = view.eye + direction * to_floor + stage.normal * lift
            place = lamp_place(lamp, x)
            at = wp.vec2f(place[0], place[1])
            if hits == 0:
                low = at
                high = at
            low = wp.min(low, at)
            high = wp.max(high, at)
            hits += 1
    if hits > 0 and hits < 4:
        found = True  # the horizon
    if hits == 4 and not found:
        margin = wp.vec2f(0.01, 0.01)
        size = wp.vec2f(float(lamp.count[0]), float(lamp.count[1]))
        zero = wp.vec2f()
        a = wp.cw_mul(low - lamp.low, lamp.per) - margin
        b = wp.cw_mul(high - lamp.low, lamp.per) + margin
        a = wp.min(wp.max(a, zero), size)
        b = wp.min(wp.max(b, -margin), size)
        i0 = int(a[0])
        j0 = int(a[1])
        i1 = wp.min(int(wp.floor(b[0])), lamp.count[0] - 1)
        j1 = wp.min(int(wp.floor(b[1])), lamp.count[1] - 1)
        if i1 >= i0 and j1 >= j0:
            if (i1 - i0 + 1) * (j1 - j0 + 1) > wp.static(MOST_SHADED):
                found = True
            else:
                for j in range(j0, j1 + 1):
                    for i in range(i0, i1 + 1):
                        if shading[j * lamp.count[0] + i]:
                            found = True
    out[block] = found


@wp.kernel
def find_sliced(
    first: wp.int32,
    view: View,
    eye: Projection,
    normal: wp.vec3f,
    offset: wp.float32,
    corner: wp.vec3f,
    size: wp.vec3f,
    out: wp.array(dtype=wp.bool),
):
    """Adds the blocks in which the plane normal . x = offset may be seen inside a box."""
    block = first + wp.tid()
    hits = wp.int32(0)
    low = wp.vec3f()
    high = wp.vec3f()
    for k in range(4):
        direction = corner_direction(view, eye, block, k)
        ahead = wp.dot(normal, direction)
        if ahead < -1.0e-6:
            x = view.eye + direction * ((offset - wp.dot(normal, view.eye)) / ahead) - corner
            if hits == 0:
                low = x
                high = x
            low = wp.min(low, x)
            high = wp.max(high, x)
            hits += 1
    if hits > 0 and hits < 4:
        out[block] = True
    if hits == 4:
        inside = wp.bool(True)
        for d in range(3):
            margin = 1.0e-3 * size[d]
            if high[d] < -margin or low[d] > size[d] + margin:
                inside = False
        if inside:
            out[block] = True


class EmptyStage:
    """Floor and sky of one setting, drawn when first needed."""

    def __init__(self, view: Any, stage: Any):
        self._view, self._stage = view, stage
        self._drawn: dict[int, Any] = {}

    def unchanged(self, touched: wp.array, eye: Any, samples: int) -> Unchanged:
        """What a picture keeps where `touched` (by blocks of `eye`) is False."""
        width, height = int(self._view.width), int(self._view.height)
        if samples not in self._drawn:

            def cast(pixels: wp.array, count: int, out: wp.array) -> None:
                inputs = [pixels, count, self._view, self._stage, out]
                launch(draw_empty, len(pixels), inputs, grain=2000)

            once = drawn_once(cast, width, height)
            self._drawn[samples] = once, antialiased(cast, width, height, samples)
        columns, rows = int(eye.count[0]), int(eye.count[1])
        edge = round(float(eye.block[0]) * width / (2.0 * float(self._view.half_width)))
        blocks = touched.numpy().reshape(rows, columns)
        # blocks count from the lower left corner of the picture, rows of pixels from the top
        j, i = (height - 1 - np.arange(height)) // edge, np.arange(width) // edge
        light, picture = self._drawn[samples]
        return Unchanged(light, picture, blocks[j][:, i].reshape(-1))

    def touched(
        self, eye: Any, covered: wp.array, lamp: Any, shading: wp.array, lift: float
    ) -> Any:
        """Blocks (bool) of `eye` that things cover or shade, from those of eye and lamp."""
        out = zeros(len(covered), wp.bool)
        inputs = [self._view, self._stage, eye, lamp, lift, covered, shading, out]
        launch(find_shaded, len(out), inputs, grain=1000)
        return out
