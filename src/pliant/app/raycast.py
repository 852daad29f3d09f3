"""Warp kernels of the picture renderer: smooth normals, and one pixel's rays.

All in single precision: a picture has 256 levels.
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

# Warp's kernel language looks like Python and is not: its types are values
# pyright: reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportIndexIssue=false, reportReturnType=false

import warp as wp

from pliant.core import launch as _launch  # noqa: F401  (sets Warp's configuration first)

CREASE = 0.77
"""Cosine of the angle (40 degrees) beyond which two facets meet in an edge and keep their own
normals: below it a box looks inflated, above it a coarse sphere looks cut from glass."""


@wp.struct
class View:
    """A pinhole camera; half_width and half_height are tangents of half the opening angles."""

    eye: wp.vec3f
    right: wp.vec3f
    up: wp.vec3f
    forward: wp.vec3f
    half_width: wp.float32
    half_height: wp.float32
    width: wp.int32
    height: wp.int32


@wp.struct
class Stage:
    """Floor and light. The floor is normal . x = offset, checked with squares of edge `tile`.

    It fades into the background beyond `fade` from `middle`. light: towards the lamp. Shadow rays
    start `lift` off the surface: where it turns away from the lamp, its flat facets would otherwise
    shade each other in a saw-tooth line.
    """

    normal: wp.vec3f
    offset: wp.float32
    along: wp.vec3f
    across: wp.vec3f
    tile: wp.float32
    middle: wp.vec3f
    fade: wp.float32
    light: wp.vec3f
    reach: wp.float32
    lift: wp.float32


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
def background(height: wp.float32) -> wp.vec3f:
    """Linear light from the horizon (0) up (1): warm white to pale blue."""
    t = wp.clamp(height, 0.0, 1.0)
    return wp.vec3f(0.93, 0.935, 0.94) * (1.0 - t) + wp.vec3f(0.72, 0.80, 0.90) * t


@wp.func
def lit(mesh: wp.uint64, stage: Stage, x: wp.vec3f, n: wp.vec3f) -> float:
    """1 where the lamp is seen from x, else 0."""
    if wp.dot(n, stage.light) <= 0.0:
        return 0.0
    if wp.mesh_query_ray_anyhit(mesh, x + n * stage.lift, stage.light, stage.reach):
        return 0.0
    return 1.0


@wp.func
def surface_light(
    mesh: wp.uint64,
    stage: Stage,
    x: wp.vec3f,
    n: wp.vec3f,
    direction: wp.vec3f,
    colour: wp.vec3f,
) -> wp.vec3f:
    """Sky from above, the floor's bounce from below, the lamp with its highlight."""
    key = wp.max(wp.dot(n, stage.light), 0.0)
    seen = 0.0
    if key > 0.0:
        seen = lit(mesh, stage, x, n)
    up = 0.5 + 0.5 * wp.dot(n, stage.normal)
    sky = wp.vec3f(0.50, 0.53, 0.58) * up + wp.vec3f(0.27, 0.26, 0.25) * (1.0 - up)
    fill = 0.16 * wp.max(-wp.dot(n, direction), 0.0)
    lamp = wp.vec3f(0.80, 0.78, 0.74) * (key * seen)
    diffuse = wp.cw_mul(colour, sky + lamp + wp.vec3f(fill, fill, fill))
    half = wp.normalize(stage.light - direction)
    gloss = wp.pow(wp.max(wp.dot(n, half), 0.0), 24.0) * 0.11 * seen
    rim = wp.pow(1.0 - wp.clamp(-wp.dot(n, direction), 0.0, 1.0), 4.0) * 0.10
    return diffuse + wp.vec3f(1.0, 1.0, 1.0) * (gloss + rim)


@wp.func
def floor_light(mesh: wp.uint64, stage: Stage, x: wp.vec3f, sky: wp.vec3f) -> wp.vec3f:
    """Checked, shadowed, and gone at the distance `fade`."""
    from_middle = x - stage.middle
    t = wp.clamp(wp.length(from_middle) / stage.fade, 0.0, 1.0)
    presence = 1.0 - t * t * (3.0 - 2.0 * t)
    if presence <= 0.0:
        return sky
    i = int(wp.floor(wp.dot(from_middle, stage.along) / stage.tile))
    j = int(wp.floor(wp.dot(from_middle, stage.across) / stage.tile))
    colour = wp.vec3f(0.80, 0.815, 0.83)
    if (i + j) % 2 != 0:
        colour = wp.vec3f(0.60, 0.63, 0.66)
    seen = lit(mesh, stage, x, stage.normal)
    colour = colour * (0.52 + 0.48 * seen)
    return sky * (1.0 - presence) + colour * presence


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
    sx = (2.0 * px / float(view.width) - 1.0) * view.half_width
    sy = (1.0 - 2.0 * py / float(view.height)) * view.half_height
    direction = wp.normalize(view.forward + view.right * sx + view.up * sy)
    sky = background(1.0 - py / float(view.height))
    limit = wp.float32(1.0e30)
    down = wp.dot(stage.normal, direction)
    to_floor = wp.float32(-1.0)
    if down < -1.0e-6:
        to_floor = (stage.offset - wp.dot(stage.normal, view.eye)) / down
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
        return surface_light(mesh, stage, x, n, direction, colour)
    if to_floor > 0.0:
        return floor_light(mesh, stage, view.eye + direction * to_floor, sky)
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
    """The mean light of `samples` x `samples` rays through each of some pixels."""
    item = first + wp.tid()
    pixel = pixels[item]
    column = float(pixel % view.width)
    row = float(pixel // view.width)
    total = wp.vec3f()
    for k in range(samples * samples):
        px = column + (float(k % samples) + 0.5) / float(samples)
        py = row + (float(k // samples) + 0.5) / float(samples)
        total += ray_light(mesh, view, stage, normals, colours, px, py)
    image[item] = total / float(samples * samples)
