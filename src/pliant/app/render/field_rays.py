"""Ray kernels for a level set: sphere tracing, and slices with a transfer function.

A ray goes on by the distance to the surface at each place (times `pace`, since a field carried
along by a deformation is a distance only to first order) until the sign changes; then the secant
finds where. A slice takes away what is between its plane and the camera and shows the field there.
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

import warp as wp

from pliant.app.render.lighting import (
    Stage,
    View,
    background,
    floor_distance,
    floor_light,
    floor_presence,
    ray_direction,
    surface_light,
)

MOST_STEPS = 400
"""Of a ray through a grid; a grazing one needs a few per cell."""

LEAST_STEP = 0.15
"""Cells that a ray advances at least: features thinner than this along it may be missed."""


@wp.struct
class Volume:
    """Nodes at corner + spacing * (i, j, k), and how rays treat them.

    pace: share of the distance that a step takes. solids: 1 if the mesh of obstacles holds any.
    cut: 1 if the plane cut_normal . x = cut_offset (the normal towards the camera) slices the body;
    cap: 1 to colour the slice like the surface, 0 by the transfer function over -depth .. depth.
    """

    corner: wp.vec3f
    spacing: wp.float32
    shape: wp.vec3i
    pace: wp.float32
    solids: wp.int32
    cut: wp.int32
    cap: wp.int32
    cut_normal: wp.vec3f
    cut_offset: wp.float32
    depth: wp.float32


@wp.func
def cell_of(volume: Volume, x: wp.vec3f) -> wp.vec3f:
    """Place in cells, held inside the grid."""
    g = (x - volume.corner) / volume.spacing
    return wp.vec3f(
        wp.clamp(g[0], 0.0, float(volume.shape[0] - 1) - 1.0e-3),
        wp.clamp(g[1], 0.0, float(volume.shape[1] - 1) - 1.0e-3),
        wp.clamp(g[2], 0.0, float(volume.shape[2] - 1) - 1.0e-3),
    )


@wp.func
def phi_at(values: wp.array3d(dtype=wp.float32), volume: Volume, x: wp.vec3f) -> float:
    """Trilinear."""
    g = cell_of(volume, x)
    i = int(g[0])
    j = int(g[1])
    k = int(g[2])
    a = g[0] - float(i)
    b = g[1] - float(j)
    c = g[2] - float(k)
    low = wp.lerp(
        wp.lerp(values[i, j, k], values[i + 1, j, k], a),
        wp.lerp(values[i, j + 1, k], values[i + 1, j + 1, k], a),
        b,
    )
    high = wp.lerp(
        wp.lerp(values[i, j, k + 1], values[i + 1, j, k + 1], a),
        wp.lerp(values[i, j + 1, k + 1], values[i + 1, j + 1, k + 1], a),
        b,
    )
    return wp.lerp(low, high, c)


@wp.func
def colour_at(colours: wp.array3d(dtype=wp.vec3f), volume: Volume, x: wp.vec3f) -> wp.vec3f:
    """Trilinear."""
    g = cell_of(volume, x)
    i = int(g[0])
    j = int(g[1])
    k = int(g[2])
    total = wp.vec3f()
    for corner in range(8):
        di = corner & 1
        dj = (corner >> 1) & 1
        dk = (corner >> 2) & 1
        w = (
            (1.0 - wp.abs(g[0] - float(i + di)))
            * (1.0 - wp.abs(g[1] - float(j + dj)))
            * (1.0 - wp.abs(g[2] - float(k + dk)))
        )
        total += colours[i + di, j + dj, k + dk] * w
    return total


@wp.func
def field_normal(values: wp.array3d(dtype=wp.float32), volume: Volume, x: wp.vec3f) -> wp.vec3f:
    """Direction of the gradient, by differences over a cell: smaller ones show its facets."""
    h = volume.spacing
    dx = wp.vec3f(h, 0.0, 0.0)
    dy = wp.vec3f(0.0, h, 0.0)
    dz = wp.vec3f(0.0, 0.0, h)
    return wp.normalize(
        wp.vec3f(
            phi_at(values, volume, x + dx) - phi_at(values, volume, x - dx),
            phi_at(values, volume, x + dy) - phi_at(values, volume, x - dy),
            phi_at(values, volume, x + dz) - phi_at(values, volume, x - dz),
        )
    )


@wp.func
def stretch_inside(
    volume: Volume, origin: wp.vec3f, direction: wp.vec3f, near: float, far: float
) -> wp.vec2f:
    """The part of [near, far] of a ray within the grid's box and behind the slice."""
    t0 = near
    t1 = far
    for d in range(3):
        low = volume.corner[d]
        high = low + volume.spacing * float(volume.shape[d] - 1)
        if wp.abs(direction[d]) < 1.0e-9:
            if origin[d] < low or origin[d] > high:
                t1 = -1.0
        else:
            a = (low - origin[d]) / direction[d]
            b = (high - origin[d]) / direction[d]
            t0 = wp.max(t0, wp.min(a, b))
            t1 = wp.min(t1, wp.max(a, b))
    if volume.cut == 1:
        ahead = wp.dot(volume.cut_normal, direction)
        above = wp.dot(volume.cut_normal, origin) - volume.cut_offset
        if ahead < -1.0e-9:
            t0 = wp.max(t0, -above / ahead)
        elif ahead > 1.0e-9:
            t1 = wp.min(t1, -above / ahead)
        elif above > 0.0:
            t1 = -1.0
    return wp.vec2f(t0, t1)


@wp.func
def march(
    values: wp.array3d(dtype=wp.float32),
    volume: Volume,
    origin: wp.vec3f,
    direction: wp.vec3f,
    near: float,
    far: float,
) -> float:
    """Along the ray to the surface; -1 if it is not met between near and far."""
    part = stretch_inside(volume, origin, direction, near, far)
    t = part[0]
    if part[1] <= t:
        return -1.0
    before = t
    phi_before = phi_at(values, volume, origin + direction * t)
    if phi_before < 0.0:
        return t
    least = volume.spacing * wp.static(LEAST_STEP)
    for _ in range(wp.static(MOST_STEPS)):
        t = before + wp.max(phi_before * volume.pace, least)
        ended = t >= part[1]
        if ended:
            t = part[1]
        phi = phi_at(values, volume, origin + direction * t)
        if phi < 0.0:
            a = before
            b = t
            fa = phi_before
            fb = phi
            for _refine in range(3):
                m = a + (b - a) * fa / (fa - fb)
                fm = phi_at(values, volume, origin + direction * m)
                if fm < 0.0:
                    b = m
                    fb = fm
                else:
                    a = m
                    fa = fm
            return a + (b - a) * fa / (fa - fb)
        if ended:
            return -1.0
        before = t
        phi_before = phi
    return -1.0


@wp.func
def lit(
    values: wp.array3d(dtype=wp.float32),
    solids: wp.uint64,
    volume: Volume,
    stage: Stage,
    x: wp.vec3f,
    n: wp.vec3f,
) -> float:
    """1 where the lamp is seen from x, else 0."""
    if wp.dot(n, stage.light) <= 0.0:
        return 0.0
    start = x + n * volume.spacing
    if march(values, volume, start, stage.light, 0.0, stage.reach) >= 0.0:
        return 0.0
    if volume.solids == 1:
        if wp.mesh_query_ray_anyhit(solids, x + n * stage.lift, stage.light, stage.reach):
            return 0.0
    return 1.0


@wp.func
def scene_light(
    values: wp.array3d(dtype=wp.float32),
    colours: wp.array3d(dtype=wp.vec3f),
    solids: wp.uint64,
    volume: Volume,
    view: View,
    stage: Stage,
    direction: wp.vec3f,
    sky: wp.vec3f,
) -> wp.vec3f:
    """Light from the nearest of surface, obstacle and floor."""
    limit = wp.float32(1.0e30)
    to_floor = floor_distance(view, stage, direction)
    if to_floor > 0.0:
        limit = to_floor * 1.0001
    t = march(values, volume, view.eye, direction, 0.0, limit)
    if volume.solids == 1:
        most = limit
        if t >= 0.0:
            most = t
        query = wp.mesh_query_ray(solids, view.eye, direction, most)
        if query.result:
            n = query.normal
            if wp.dot(n, direction) > 0.0:
                n = -n
            x = view.eye + direction * query.t
            seen = lit(values, solids, volume, stage, x, n)
            return surface_light(stage, n, direction, wp.vec3f(0.52, 0.50, 0.47), seen)
    if t >= 0.0:
        x = view.eye + direction * t
        n = field_normal(values, volume, x)
        if wp.dot(n, direction) > 0.0:
            n = wp.normalize(n - direction * (1.01 * wp.dot(n, direction)))
        seen = lit(values, solids, volume, stage, x, n)
        return surface_light(stage, n, direction, colour_at(colours, volume, x), seen)
    if to_floor > 0.0:
        x = view.eye + direction * to_floor
        presence = floor_presence(stage, x)
        if presence > 0.0:
            seen = lit(values, solids, volume, stage, x, stage.normal)
            return floor_light(stage, x, sky, presence, seen)
    return sky


@wp.func
def ray_light(
    values: wp.array3d(dtype=wp.float32),
    colours: wp.array3d(dtype=wp.vec3f),
    transfer: wp.array(dtype=wp.vec4f),
    solids: wp.uint64,
    volume: Volume,
    view: View,
    stage: Stage,
    px: float,
    py: float,
) -> wp.vec3f:
    """Linear light through the point (px, py) of the picture; the slice over what is behind it."""
    direction = ray_direction(view, px, py)
    sky = background(1.0 - py / float(view.height))
    over = wp.vec4f(0.0, 0.0, 0.0, 0.0)
    if volume.cut == 1:
        ahead = wp.dot(volume.cut_normal, direction)
        if ahead < -1.0e-6:
            t = (volume.cut_offset - wp.dot(volume.cut_normal, view.eye)) / ahead
            x = view.eye + direction * t
            g = (x - volume.corner) / volume.spacing
            inside = t > 0.0
            for d in range(3):
                if g[d] < 0.0 or g[d] > float(volume.shape[d] - 1):
                    inside = False
            hidden = floor_distance(view, stage, direction)
            if hidden > 0.0 and hidden < t:
                inside = False
            if inside:
                phi = phi_at(values, volume, x)
                last = transfer.shape[0] - 1
                place = (phi / volume.depth * 0.5 + 0.5) * float(last)
                over = transfer[wp.clamp(int(wp.floor(place + 0.5)), 0, last)]
                if volume.cap == 1 and phi < 0.0:
                    c = colour_at(colours, volume, x)
                    over = wp.vec4f(c[0], c[1], c[2], 1.0)
    if over[3] >= 0.999:
        return wp.vec3f(over[0], over[1], over[2])
    rest = scene_light(values, colours, solids, volume, view, stage, direction, sky)
    return rest * (1.0 - over[3]) + wp.vec3f(over[0], over[1], over[2]) * over[3]


@wp.kernel
def draw_field(
    first: wp.int32,
    pixels: wp.array(dtype=wp.int32),
    samples: wp.int32,
    values: wp.array3d(dtype=wp.float32),
    colours: wp.array3d(dtype=wp.vec3f),
    transfer: wp.array(dtype=wp.vec4f),
    solids: wp.uint64,
    volume: Volume,
    view: View,
    stage: Stage,
    image: wp.array(dtype=wp.vec3f),
):
    """The mean light of `samples` x `samples` rays through each of some (distinct) pixels."""
    pixel = pixels[first + wp.tid()]
    column = float(pixel % view.width)
    row = float(pixel // view.width)
    total = wp.vec3f()
    for s in range(samples * samples):
        px = column + (float(s % samples) + 0.5) / float(samples)
        py = row + (float(s // samples) + 0.5) / float(samples)
        total += ray_light(values, colours, transfer, solids, volume, view, stage, px, py)
    image[pixel] = total / float(samples * samples)
