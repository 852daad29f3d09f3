"""Light on surfaces and floor, for all ray kernels. Single precision: a picture has 256 levels."""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

import warp as wp

from pliant.core import launch as _launch  # noqa: F401  (sets Warp's configuration first)


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


@wp.func
def background(height: wp.float32) -> wp.vec3f:
    """Linear light from the horizon (0) up (1): warm white to pale blue."""
    t = wp.clamp(height, 0.0, 1.0)
    return wp.vec3f(0.93, 0.935, 0.94) * (1.0 - t) + wp.vec3f(0.72, 0.80, 0.90) * t


@wp.func
def tangents(view: View, px: float, py: float) -> wp.vec2f:
    """To the right and up, at the point (px, py) of the picture, in pixels from the top left."""
    return wp.vec2f(
        (2.0 * px / float(view.width) - 1.0) * view.half_width,
        (1.0 - 2.0 * py / float(view.height)) * view.half_height,
    )


@wp.func
def ray_direction(view: View, at: wp.vec2f) -> wp.vec3f:
    """Unit direction of the ray with these tangents."""
    return wp.normalize(view.forward + view.right * at[0] + view.up * at[1])


@wp.func
def floor_distance(view: View, stage: Stage, direction: wp.vec3f) -> float:
    """Along the ray to the floor; -1 if it does not go there."""
    down = wp.dot(stage.normal, direction)
    if down < -1.0e-6:
        return (stage.offset - wp.dot(stage.normal, view.eye)) / down
    return -1.0


@wp.func
def surface_light(
    stage: Stage, n: wp.vec3f, direction: wp.vec3f, colour: wp.vec3f, seen: float
) -> wp.vec3f:
    """Sky from above, the floor's bounce from below, the lamp (if `seen`) with its highlight."""
    key = wp.max(wp.dot(n, stage.light), 0.0)
    up = 0.5 + 0.5 * wp.dot(n, stage.normal)
    sky = wp.vec3f(0.50, 0.53, 0.58) * up + wp.vec3f(0.27, 0.26, 0.25) * (1.0 - up)
    fill = 0.16 * wp.max(-wp.dot(n, direction), 0.0)
    lamp = wp.vec3f(0.80, 0.78, 0.74) * (key * seen)
    diffuse = wp.cw_mul(colour, sky + lamp + wp.vec3f(fill, fill, fill))
    half = wp.normalize(stage.light - direction)
    gloss = 0.0
    if seen > 0.0:
        eighth = wp.max(wp.dot(n, half), 0.0)
        for _ in range(3):
            eighth = eighth * eighth
        gloss = eighth * eighth * eighth * 0.11 * seen  # the cosine to the power of 24
    edge = 1.0 - wp.clamp(-wp.dot(n, direction), 0.0, 1.0)
    rim = edge * edge * edge * edge * 0.10
    return diffuse + wp.vec3f(1.0, 1.0, 1.0) * (gloss + rim)


@wp.func
def floor_presence(stage: Stage, x: wp.vec3f) -> float:
    """1 near the middle, 0 where the floor has faded into the background."""
    t = wp.clamp(wp.length(x - stage.middle) / stage.fade, 0.0, 1.0)
    return 1.0 - t * t * (3.0 - 2.0 * t)


@wp.func
def floor_light(stage: Stage, x: wp.vec3f, sky: wp.vec3f, presence: float, seen: float) -> wp.vec3f:
    """Checked, shadowed, and gone at the distance `fade`."""
    from_middle = x - stage.middle
    i = int(wp.floor(wp.dot(from_middle, stage.along) / stage.tile))
    j = int(wp.floor(wp.dot(from_middle, stage.across) / stage.tile))
    colour = wp.vec3f(0.80, 0.815, 0.83)
    if (i + j) % 2 != 0:
        colour = wp.vec3f(0.60, 0.63, 0.66)
    colour = colour * (0.52 + 0.48 * seen)
    return sky * (1.0 - presence) + colour * presence
