"""What a ray can meet: things sorted by the blocks of a picture plane that they cover.

All rays of a picture start at the eye, and all shadow rays run towards one lamp, so either family
is a plane of points (s, t): a thing at (x, y, z) in the family's axes has the homogeneous place

    camera  (x, y, z), weight 1        lamp  (x, y, 1), weight z

and s = first / third, t = second / third. A triangle p q r covers (s, t) where U, V, W, products of
(s, t, 1) with o q x r, o r x p, o p x q (o = the sign of p . q x r), are not negative. U : V : W
are then its barycentric coordinates, and its `value` there, the product of (s, t, 1) with the
sum of weight_k row_k over p . q x r, is 1 / z for the camera and z for the lamp: the largest one is
met first. Neighbours have the same edge with the opposite sign, so that no ray slips between them.
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from pliant.core.launch import launch, share, to_device, zeros

PIXELS = 4
"""Edge of a block in the picture: at 6 the dragon's rays take a quarter longer."""

MOST_BLOCKS = 60_000
"""Blocks are numbered by 16 bits, which NumPy sorts in linear time."""

NOWHERE = 65_535

LAMP_BLOCKS = 50_000
"""The dragon is as quick with 16,000; where obstacles are large, a body has a small share."""

GRAIN = 1_000

Rows = wp.types.matrix(shape=(4, 3), dtype=wp.float32)
"""Of a triangle: U, V, W and value as linear functions of (s, t, 1)."""


@wp.struct
class Projection:
    """Axes of a family of rays, and the blocks of its plane: count, from `low`, of size `block`.

    per: the blocks in a unit length, for each ray finds its block.
    """

    origin: wp.vec3f
    right: wp.vec3f
    up: wp.vec3f
    forward: wp.vec3f
    parallel: wp.int32
    low: wp.vec2f
    block: wp.vec2f
    per: wp.vec2f
    count: wp.vec2i


@wp.func
def in_axes(projection: Projection, x: wp.vec3f) -> wp.vec3d:
    """(x, y, z) in the family's axes."""
    d = wp.vec3d(x - projection.origin)
    return wp.vec3d(
        wp.dot(d, wp.vec3d(projection.right)),
        wp.dot(d, wp.vec3d(projection.up)),
        wp.dot(d, wp.vec3d(projection.forward)),
    )


@wp.func
def lamp_place(projection: Projection, x: wp.vec3f) -> wp.vec3f:
    """(s, t, z) of a point for the lamp."""
    d = x - projection.origin
    return wp.vec3f(
        wp.dot(d, projection.right), wp.dot(d, projection.up), wp.dot(d, projection.forward)
    )


@wp.func
def block_of(projection: Projection, s: float, t: float) -> int:
    """The block that holds (s, t); -1 if none does."""
    i = int(wp.floor((s - projection.low[0]) * projection.per[0]))
    j = int(wp.floor((t - projection.low[1]) * projection.per[1]))
    if i < 0 or j < 0 or i >= projection.count[0] or j >= projection.count[1]:
        return -1
    return j * projection.count[0] + i


@wp.func
def blocks_between(
    projection: Projection, s0: wp.float64, t0: wp.float64, s1: wp.float64, t1: wp.float64
) -> wp.vec4i:
    """First and last column and row of the blocks over a rectangle, and a little beyond."""
    margin = wp.float64(1.0e-3)
    i0 = (s0 - wp.float64(projection.low[0])) / wp.float64(projection.block[0]) - margin
    j0 = (t0 - wp.float64(projection.low[1])) / wp.float64(projection.block[1]) - margin
    i1 = (s1 - wp.float64(projection.low[0])) / wp.float64(projection.block[0]) + margin
    j1 = (t1 - wp.float64(projection.low[1])) / wp.float64(projection.block[1]) + margin
    columns = wp.float64(projection.count[0])
    rows = wp.float64(projection.count[1])
    none = wp.float64(-1.0)  # clamped before they become integers: far places must not wrap around
    return wp.vec4i(
        int(wp.floor(wp.clamp(i0, wp.float64(0.0), columns))),
        int(wp.floor(wp.clamp(j0, wp.float64(0.0), rows))),
        int(wp.floor(wp.clamp(i1, none, columns - wp.float64(1.0)))),
        int(wp.floor(wp.clamp(j1, none, rows - wp.float64(1.0)))),
    )


@wp.kernel
def project_triangles(
    first: wp.int32,
    points: wp.array(dtype=wp.vec3f),
    facets: wp.array(dtype=wp.int32),
    projection: Projection,
    rows: wp.array(dtype=Rows),
    boxes: wp.array(dtype=wp.vec4i),
):
    """The rows of each triangle and the blocks around it; none if it is seen edge on."""
    item = first + wp.tid()
    p = in_axes(projection, points[facets[3 * item]])
    q = in_axes(projection, points[facets[3 * item + 1]])
    r = in_axes(projection, points[facets[3 * item + 2]])
    weight = wp.vec3d(wp.float64(1.0), wp.float64(1.0), wp.float64(1.0))
    if projection.parallel == 1:
        weight = wp.vec3d(p[2], q[2], r[2])
        p = wp.vec3d(p[0], p[1], wp.float64(1.0))
        q = wp.vec3d(q[0], q[1], wp.float64(1.0))
        r = wp.vec3d(r[0], r[1], wp.float64(1.0))
    boxes[item] = wp.vec4i(0, 0, -1, -1)
    near = wp.min(p[2], wp.min(q[2], r[2]))
    far = wp.max(p[2], wp.max(q[2], r[2]))
    volume = wp.dot(p, wp.cross(q, r))
    if far > wp.float64(0.0) and wp.abs(volume) > wp.float64(1.0e-14) * far * far * far:
        u = wp.cross(q, r)
        v = wp.cross(r, p)
        w = wp.cross(p, q)
        value = (u * weight[0] + v * weight[1] + w * weight[2]) / volume
        turn = wp.sign(volume)
        own = Rows()
        for d in range(3):
            own[0, d] = wp.float32(turn * u[d])
            own[1, d] = wp.float32(turn * v[d])
            own[2, d] = wp.float32(turn * w[d])
            own[3, d] = wp.float32(value[d])
        rows[item] = own
        if near > wp.float64(1.0e-6) * far:
            s = wp.vec3d(p[0] / p[2], q[0] / q[2], r[0] / r[2])
            t = wp.vec3d(p[1] / p[2], q[1] / q[2], r[1] / r[2])
            boxes[item] = blocks_between(projection, wp.min(s), wp.min(t), wp.max(s), wp.max(t))
        else:  # it reaches behind the eye and may be seen anywhere
            boxes[item] = wp.vec4i(0, 0, projection.count[0] - 1, projection.count[1] - 1)


@wp.kernel
def project_balls(
    first: wp.int32,
    centres: wp.array(dtype=wp.vec3f),
    radius: wp.float32,
    projection: Projection,
    stretches: wp.array(dtype=wp.vec2f),
    boxes: wp.array(dtype=wp.vec4i),
):
    """The blocks around each ball, and from where to where along a ray it may be met."""
    item = first + wp.tid()
    x = in_axes(projection, centres[item])
    r = wp.float64(radius)
    boxes[item] = wp.vec4i(0, 0, -1, -1)
    if projection.parallel == 1:
        stretches[item] = wp.vec2f(wp.float32(x[2] - r), wp.float32(x[2] + r))
        boxes[item] = blocks_between(projection, x[0] - r, x[1] - r, x[0] + r, x[1] + r)
    else:
        away = wp.length(x)
        stretches[item] = wp.vec2f(
            wp.float32(wp.max(away - r, wp.float64(0.0))), wp.float32(away + r)
        )
        low = x[2] - r
        high = x[2] + r
        if low > wp.float64(1.0e-6) * high:
            boxes[item] = blocks_between(
                projection,
                wp.min((x[0] - r) / low, (x[0] - r) / high),
                wp.min((x[1] - r) / low, (x[1] - r) / high),
                wp.max((x[0] + r) / low, (x[0] + r) / high),
                wp.max((x[1] + r) / low, (x[1] + r) / high),
            )
        elif high > wp.float64(0.0):
            boxes[item] = wp.vec4i(0, 0, projection.count[0] - 1, projection.count[1] - 1)


@wp.kernel
def _spread(
    first: wp.int32,
    boxes: wp.array(dtype=wp.vec4i),
    offset: wp.array(dtype=wp.int32),
    rows: wp.array(dtype=Rows),
    projection: Projection,
    out: wp.array(dtype=wp.uint16),
):
    """The blocks of each thing's box, from its offset on; NOWHERE for those beside a triangle."""
    item = first + wp.tid()
    box = boxes[item]
    at = offset[item]
    for j in range(box[1], box[3] + 1):
        for i in range(box[0], box[2] + 1):
            covered = wp.bool(True)
            if rows.shape[0] > 0:
                own = rows[item]
                s = projection.low[0] + projection.block[0] * float(i)
                t = projection.low[1] + projection.block[1] * float(j)
                for k in range(3):
                    most = (
                        own[k, 2]
                        + wp.max(own[k, 0] * s, own[k, 0] * (s + projection.block[0]))
                        + wp.max(own[k, 1] * t, own[k, 1] * (t + projection.block[1]))
                    )
                    margin = wp.abs(own[k, 0]) * projection.block[0]
                    margin += wp.abs(own[k, 1]) * projection.block[1]
                    if most < -1.0e-3 * margin:
                        covered = wp.bool(False)
            if covered:
                out[at] = wp.uint16(j * projection.count[0] + i)
            else:
                out[at] = wp.uint16(wp.static(NOWHERE))
            at += 1


@wp.kernel
def join_stretches(
    first: wp.int32,
    start: wp.array(dtype=wp.int32),
    things: wp.array(dtype=wp.int32),
    stretches: wp.array(dtype=wp.vec2f),
    out: wp.array(dtype=wp.vec2f),
):
    """From the nearest to the farthest place of each block's things; empty (1, -1) without any."""
    block = first + wp.tid()
    total = wp.vec2f(1.0, -1.0)
    for n in range(start[block], start[block + 1]):
        own = stretches[things[n]]
        if n == start[block]:
            total = own
        else:
            total = wp.vec2f(wp.min(total[0], own[0]), wp.max(total[1], own[1]))
    out[block] = total


@dataclass(frozen=True)
class Listed:
    """Things by block: those of block b are things[start[b]] to things[start[b + 1] - 1]."""

    start: wp.array
    things: wp.array


def camera_projection(view: Any, pixels: int = PIXELS) -> Any:
    """The rays of a picture; (s, t) are tangents, as in lighting.ray_direction."""
    width, height = int(view.width), int(view.height)
    edge = max(pixels, int(np.ceil(np.sqrt(width * height / MOST_BLOCKS))))
    block = 2.0 * edge * np.array([view.half_width / width, view.half_height / height])
    axes = (view.eye, view.right, view.up, view.forward)
    low = np.array([-view.half_width, -view.half_height])
    return _projection(axes, low, block, (-(-width // edge), -(-height // edge)), parallel=0)


def lamp_projection(stage: Any, points: np.ndarray, radius: float = 0.0) -> Any:
    """Shadow rays through points (n, 3), or through balls of a radius around them."""
    light = np.array(stage.light, float)
    aside = np.cross(light, np.eye(3)[int(np.argmin(np.abs(light)))])
    right = aside / np.linalg.norm(aside)
    up = np.cross(light, right)
    place = (points - np.array(stage.middle)) @ np.stack([right, up], axis=1)
    low, high = place.min(axis=0) - radius, place.max(axis=0) + radius
    size = high - low
    size = np.maximum(size, max(size.max() / 200.0, 1e-6 * np.abs(high).max(), 1e-9))
    # blocks much smaller than what lies in them would only make the lists longer
    edge = max(np.sqrt(np.prod(size) / LAMP_BLOCKS), radius)
    count = np.ceil(size / edge).astype(int)
    axes = (stage.middle, *(wp.vec3f(*map(float, v)) for v in (right, up)), stage.light)
    return _projection(axes, low, size / count * (1.0 + 1e-6), tuple(map(int, count)), parallel=1)


def triangle_rows(projection: Any, points: wp.array, facets: wp.array) -> tuple[wp.array, Listed]:
    """Rows of all triangles and their lists; points: vec3f, facets: flat corners."""
    count = len(facets) // 3
    rows, boxes = zeros(count, Rows), zeros(count, wp.vec4i)
    launch(project_triangles, count, [points, facets, projection, rows, boxes], grain=GRAIN)
    return rows, _listed(projection, boxes, rows)


def ball_stretches(projection: Any, centres: wp.array, radius: float) -> wp.array:
    """For each block, from where to where (vec2f) along its rays balls may be met."""
    count = len(centres)
    stretches, boxes = zeros(count, wp.vec2f), zeros(count, wp.vec4i)
    launch(project_balls, count, [centres, radius, projection, stretches, boxes], grain=GRAIN)
    lists = _listed(projection, boxes, zeros(0, Rows))
    out = zeros(len(lists.start) - 1, wp.vec2f)
    launch(join_stretches, len(out), [lists.start, lists.things, stretches, out], grain=GRAIN)
    return out


def _projection(axes: Any, low: np.ndarray, block: np.ndarray, count: Any, parallel: int) -> Any:
    out: Any = Projection()
    out.origin, out.right, out.up, out.forward = axes
    out.parallel = parallel
    out.low, out.block, out.per = (wp.vec2f(*map(float, v)) for v in (low, block, 1.0 / block))
    out.count = wp.vec2i(*count)
    return out


def _listed(projection: Any, boxes: wp.array, rows: wp.array) -> Listed:
    box = boxes.numpy()
    many = np.maximum(box[:, 2] - box[:, 0] + 1, 0) * np.maximum(box[:, 3] - box[:, 1] + 1, 0)
    ends = np.cumsum(many)
    blocks = zeros(int(ends[-1]) if len(ends) else 0, wp.uint16)
    offset = to_device((ends - many).astype(np.int32), wp.int32)
    launch(_spread, len(box), [boxes, offset, rows, projection, blocks], grain=GRAIN)
    block = blocks.numpy()
    things = np.repeat(np.arange(len(box), dtype=np.int32), many)[np.argsort(block, kind="stable")]
    count = int(projection.count[0] * projection.count[1])
    held = np.bincount(block, minlength=NOWHERE + 1)[:count]
    start = np.concatenate([[0], np.cumsum(held)]).astype(np.int32)
    return Listed(share(start, wp.int32), share(things, wp.int32))
