"""Ray kernels for triangle meshes: smooth normals, and the light through a pixel."""

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

CREASE = 0.77
"""Cosine of the angle (40 degrees) beyond which two facets meet in an edge and keep their own
normals: below it a box looks inflated, above it a coarse sphere looks cut from glass."""


@wp.kernel
def corner_normals(
    first: wp.int32,
    facets: wp.array(dtype=wp.int32),
    weighted: wp.array(dtype=wp.vec3f),
    start: wp.array(dtype=wp.int32),
    around: wp.array(dtype=wp.int32),
    out: wp.array(dtype=wp.vec3f),
):
    """Sum of the weighted normals of all corners at a corner's point that face about its way."""
    corner = first + wp.tid()
    own = wp.normalize(weighted[corner])
    point = facets[corner]
    total = own * 1.0e-6
    for i in range(start[point], start[point + 1]):
        other = weighted[around[i]]
        if wp.dot(own, other) >= wp.static(CREASE) * wp.length(other):
            total += other
    out[corner] = wp.normalize(total)


@wp.func
def lit(mesh: wp.uint64, stage: Stage, x: wp.vec3f, n: wp.vec3f) -> float:
    """1 where the lamp is seen from x, else 0."""
    if wp.dot(n, stage.light) <= 0.0:
        return 0.0
    if wp.mesh_query_ray_anyhit(mesh, x + n * stage.lift, stage.light, stage.reach):
        return 0.0
    return 1.0


@wp.func
def ray_light(
    mesh: wp.uint64,
    view: View,
    stage: Stage,
    normals: wp.array(dtype=wp.vec3f),
    colours: wp.array(dtype=wp.vec3f),
    px: float,
    py: float,
) -> wp.vec3f:
    """Linear light along the ray through the point (px, py) of the picture, in pixels."""
    direction = ray_direction(view, px, py)
    sky = background(1.0 - py / float(view.height))
    limit = wp.float32(1.0e30)
    to_floor = floor_distance(view, stage, direction)
    if to_floor > 0.0:
        limit = to_floor * 1.0001
    query = wp.mesh_query_ray(mesh, view.eye, direction, limit)
    if query.result:
        a = normals[3 * query.face]
        b = normals[3 * query.face + 1]
        c = normals[3 * query.face + 2]
        w = 1.0 - query.u - query.v
        n = wp.normalize(a * query.u + b * query.v + c * w)
        if wp.dot(query.normal, direction) > 0.0:
            n = -n
        colour = (
            colours[wp.mesh_get_index(mesh, 3 * query.face)] * query.u
            + colours[wp.mesh_get_index(mesh, 3 * query.face + 1)] * query.v
            + colours[wp.mesh_get_index(mesh, 3 * query.face + 2)] * w
        )
        x = view.eye + direction * query.t
        return surface_light(stage, n, direction, colour, lit(mesh, stage, x, n))
    if to_floor > 0.0:
        x = view.eye + direction * to_floor
        presence = floor_presence(stage, x)
        if presence > 0.0:
            return floor_light(stage, x, sky, presence, lit(mesh, stage, x, stage.normal))
    return sky


@wp.kernel
def draw(
    first: wp.int32,
    pixels: wp.array(dtype=wp.int32),
    samples: wp.int32,
    mesh: wp.uint64,
    view: View,
    stage: Stage,
    normals: wp.array(dtype=wp.vec3f),
    colours: wp.array(dtype=wp.vec3f),
    image: wp.array(dtype=wp.vec3f),
):
    """The mean light of `samples` x `samples` rays through each of some (distinct) pixels."""
    pixel = pixels[first + wp.tid()]
    column = float(pixel % view.width)
    row = float(pixel // view.width)
    total = wp.vec3f()
    for k in range(samples * samples):
        px = column + (float(k % samples) + 0.5) / float(samples)
        py = row + (float(k // samples) + 0.5) / float(samples)
        total += ray_light(mesh, view, stage, normals, colours, px, py)
    image[pixel] = total / float(samples * samples)
