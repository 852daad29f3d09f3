"""Ray kernels for a level set: its surface in the lamp's light, and slices of it.

A slice takes away what is between its plane and the camera and shows the field there, coloured by a
transfer function of the distance, or the body's own values where it is inside.
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

import warp as wp

from pliant.app.render.field_march import Field, Volume, cell_of, march, phi_in, vector_at
from pliant.app.render.footprints import block_of, lamp_place
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

UNSEEN = -1.0
"""Light where none was looked for: it differs from every neighbour."""


@wp.func
def lit(
    field: Field,
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
    place = lamp_place(field.lamp, start)
    block = block_of(field.lamp, place[0], place[1])
    if block >= 0:
        part = field.lamp_stretch[block]
        near = wp.max(part[0] - place[2], 0.0)
        far = wp.min(part[1] - place[2], stage.reach)
        if far > near:
            if march(field.phi, volume, start, stage.light, near, far) >= 0.0:
                return 0.0
    if volume.solids == 1:
        if wp.mesh_query_ray_anyhit(solids, x + n * stage.lift, stage.light, stage.reach):
            return 0.0
    return 1.0


@wp.func
def scene_light(
    field: Field,
    solids: wp.uint64,
    volume: Volume,
    view: View,
    stage: Stage,
    place: wp.vec2f,
    direction: wp.vec3f,
    sky: wp.vec3f,
) -> wp.vec3f:
    """Light from the nearest of surface, obstacle and floor."""
    limit = wp.float32(1.0e30)
    to_floor = floor_distance(view, stage, direction)
    if to_floor > 0.0:
        limit = to_floor * 1.0001
    t = wp.float32(-1.0)
    block = block_of(field.eye, place[0], place[1])
    if block >= 0:
        part = field.eye_stretch[block]
        if part[1] > part[0]:
            far = wp.min(part[1], limit)
            t = march(field.phi, volume, view.eye, direction, part[0], far)
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
            seen = lit(field, solids, volume, stage, x, n)
            return surface_light(stage, n, direction, wp.vec3f(0.52, 0.50, 0.47), seen)
    if t >= 0.0:
        x = view.eye + direction * t
        n = wp.normalize(vector_at(field.slope, volume, x))
        if wp.dot(n, direction) > 0.0:
            n = wp.normalize(n - direction * (1.01 * wp.dot(n, direction)))
        seen = lit(field, solids, volume, stage, x, n)
        return surface_light(stage, n, direction, vector_at(field.colour, volume, x), seen)
    if to_floor > 0.0:
        x = view.eye + direction * to_floor
        presence = floor_presence(stage, x)
        if presence > 0.0:
            seen = lit(field, solids, volume, stage, x, stage.normal)
            return floor_light(stage, x, sky, presence, seen)
    return sky


@wp.func
def slice_light(
    field: Field,
    transfer: wp.array(dtype=wp.vec4f),
    volume: Volume,
    view: View,
    stage: Stage,
    direction: wp.vec3f,
) -> wp.vec4f:
    """Linear light and opacity of the slice."""
    over = wp.vec4f(0.0, 0.0, 0.0, 0.0)
    ahead = wp.dot(volume.cut_normal, direction)
    if ahead < -1.0e-6:
        t = (volume.cut_offset - wp.dot(volume.cut_normal, view.eye)) / ahead
        x = view.eye + direction * t
        g = cell_of(volume, x)
        inside = t > 0.0
        for d in range(3):
            if g[d] < 0.0 or g[d] > float(volume.shape[d] - 1):
                inside = False
        hidden = floor_distance(view, stage, direction)
        if hidden > 0.0 and hidden < t:
            inside = False
        if inside:
            phi = phi_in(field.phi, volume, g)
            if volume.cap == 0:
                last = transfer.shape[0] - 1
                entry = (phi / volume.depth * 0.5 + 0.5) * float(last)
                over = transfer[wp.clamp(int(wp.floor(entry + 0.5)), 0, last)]
            elif phi < 0.0:  # values are those of the body: nothing is shown around it
                c = vector_at(field.colour, volume, x)
                over = wp.vec4f(c[0], c[1], c[2], 1.0)
    return over


@wp.kernel
def draw_field(
    first: wp.int32,
    pixels: wp.array(dtype=wp.int32),
    samples: wp.int32,
    field: Field,
    transfer: wp.array(dtype=wp.vec4f),
    solids: wp.uint64,
    volume: Volume,
    view: View,
    stage: Stage,
    behind: wp.array(dtype=wp.vec3f),
    uneven: wp.array(dtype=wp.bool),
    image: wp.array(dtype=wp.vec3f),
):
    """The mean light of `samples` x `samples` rays through each of some (distinct) pixels.

    A slice lies over what is behind it, which one ray a pixel leaves in `behind` (UNSEEN where the
    slice is opaque). More rays take it from there, but where it is `uneven`: most edges are the
    slice's own lines.
    """
    pixel = pixels[first + wp.tid()]
    column = float(pixel % view.width)
    row = float(pixel // view.width)
    total = wp.vec3f()
    again = wp.bool(True)
    if volume.cut == 1 and samples > 1:
        again = uneven[pixel]
    for s in range(samples * samples):
        px = column + (float(s % samples) + 0.5) / float(samples)
        py = row + (float(s // samples) + 0.5) / float(samples)
        place = tangents(view, px, py)
        direction = ray_direction(view, place)
        over = wp.vec4f(0.0, 0.0, 0.0, 0.0)
        if volume.cut == 1:
            over = slice_light(field, transfer, volume, view, stage, direction)
        light = wp.vec3f(over[0], over[1], over[2]) * over[3]
        if over[3] < 0.999:
            rest = wp.vec3f()
            if again:
                sky = background(1.0 - py / float(view.height))
                rest = scene_light(field, solids, volume, view, stage, place, direction, sky)
                if volume.cut == 1 and samples == 1:
                    behind[pixel] = rest
            else:
                rest = behind[pixel]
            light += rest * (1.0 - over[3])
        total += light
    image[pixel] = total / float(samples * samples)
