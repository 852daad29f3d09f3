"""Ray kernels for triangle meshes: smooth normals, and the light through a pixel."""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

import warp as wp

from pliant.app.render.footprints import Projection, Rows, block_of, lamp_place
from pliant.app.render.lighting import (
    Stage,
    View,
    background,
    floor_distance,
    floor_light,
    floor_presence,
    ray_direction,
    surface_light,
    tangents,
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


@wp.struct
class Family:
    """Triangles as one family of rays sees them, see footprints."""

    plane: Projection
    start: wp.array(dtype=wp.int32)
    things: wp.array(dtype=wp.int32)
    rows: wp.array(dtype=Rows)


@wp.func
def lit(lamp: Family, stage: Stage, x: wp.vec3f, n: wp.vec3f) -> float:
    """1 where the lamp is seen from x, else 0."""
    if wp.dot(n, stage.light) <= 0.0:
        return 0.0
    place = lamp_place(lamp.plane, x + n * stage.lift)
    block = block_of(lamp.plane, place[0], place[1])
    if block >= 0:
        at = wp.vec3f(place[0], place[1], 1.0)
        for i in range(lamp.start[block], lamp.start[block + 1]):
            found = lamp.rows[lamp.things[i]] * at
            if found[0] >= 0.0 and found[1] >= 0.0 and found[2] >= 0.0:
                if found[3] > place[2]:
                    return 0.0
    return 1.0


@wp.func
def ray_light(
    eye: Family,
    lamp: Family,
    points: wp.array(dtype=wp.vec3f),
    facets: wp.array(dtype=wp.int32),
    view: View,
    stage: Stage,
    normals: wp.array(dtype=wp.vec3f),
    colours: wp.array(dtype=wp.vec3f),
    px: float,
    py: float,
) -> wp.vec3f:
    """Linear light through the point (px, py) of the picture."""
    place = tangents(view, px, py)
    direction = ray_direction(view, place)
    sky = background(1.0 - py / float(view.height))
    ahead = wp.dot(direction, view.forward)
    at = wp.vec3f(place[0], place[1], 1.0)
    block = block_of(eye.plane, at[0], at[1])
    to_floor = floor_distance(view, stage, direction)
    nearest = wp.float32(0.0)  # 1 / z: whatever is nearer than the floor has more
    if to_floor > 0.0:
        nearest = 0.9999 / (to_floor * ahead)
    face = wp.int32(-1)
    share = wp.vec3f()
    if block >= 0:
        for i in range(eye.start[block], eye.start[block + 1]):
            other = eye.things[i]
            found = eye.rows[other] * at
            if found[0] >= 0.0 and found[1] >= 0.0 and found[2] >= 0.0 and found[3] > nearest:
                nearest = found[3]
                face = other
                share = wp.vec3f(found[0], found[1], found[2])
    if face >= 0:
        share = share / (share[0] + share[1] + share[2])
        n = wp.normalize(
            normals[3 * face] * share[0]
            + normals[3 * face + 1] * share[1]
            + normals[3 * face + 2] * share[2]
        )
        p = facets[3 * face]
        q = facets[3 * face + 1]
        r = facets[3 * face + 2]
        flat = wp.cross(points[q] - points[p], points[r] - points[p])
        if wp.dot(flat, direction) > 0.0:
            n = -n
        colour = colours[p] * share[0] + colours[q] * share[1] + colours[r] * share[2]
        x = view.eye + direction * (1.0 / (nearest * ahead))
        return surface_light(stage, n, direction, colour, lit(lamp, stage, x, n))
    if to_floor > 0.0:
        x = view.eye + direction * to_floor
        presence = floor_presence(stage, x)
        if presence > 0.0:
            return floor_light(stage, x, sky, presence, lit(lamp, stage, x, stage.normal))
    return sky


@wp.kernel
def draw(
    first: wp.int32,
    pixels: wp.array(dtype=wp.int32),
    samples: wp.int32,
    eye: Family,
    lamp: Family,
    points: wp.array(dtype=wp.vec3f),
    facets: wp.array(dtype=wp.int32),
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
        total += ray_light(eye, lamp, points, facets, view, stage, normals, colours, px, py)
    image[pixel] = total / float(samples * samples)
