"""Along a ray through a sampled level set to its surface: sphere tracing.

A ray goes on by the distance to the surface at each place (times `pace`, since a field carried
along by a deformation is a distance only to first order) until the sign changes; then the secant
finds where.
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

import warp as wp

from pliant.app.render.footprints import Projection

MOST_STEPS = 400
"""Of a ray through a grid; a grazing one needs a few per cell."""

LEAST_STEP = 0.15
"""Cells that a ray advances at least: features thinner than this along it may be missed."""


CLOSE = 4.0e-3
"""Cells from the surface at which a ray has arrived."""

BOLDEST = 1.6
"""Of a distance below a cell, the most that a step may take."""


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


@wp.struct
class Field:
    """Nodal values, last index fastest, and where rays may meet the surface.

    phi: level set [m]; slope: its differences over two cells; colour: linear light. eye and lamp
    are the families of rays of footprints, eye_stretch and lamp_stretch the parts of the rays of
    each block in which cells with a change of sign lie.
    """

    phi: wp.array(dtype=wp.float32)
    slope: wp.array(dtype=wp.vec3f)
    colour: wp.array(dtype=wp.vec3f)
    eye: Projection
    eye_stretch: wp.array(dtype=wp.vec2f)
    lamp: Projection
    lamp_stretch: wp.array(dtype=wp.vec2f)


@wp.func
def corner_of(volume: Volume, g: wp.vec3f) -> wp.vec3i:
    """First node of the cell that holds a place in cells (or is nearest to it)."""
    return wp.vec3i(
        wp.clamp(int(g[0]), 0, volume.shape[0] - 2),
        wp.clamp(int(g[1]), 0, volume.shape[1] - 2),
        wp.clamp(int(g[2]), 0, volume.shape[2] - 2),
    )


@wp.func
def cell_of(volume: Volume, x: wp.vec3f) -> wp.vec3f:
    """Place in cells of a position."""
    return (x - volume.corner) / volume.spacing


@wp.func
def phi_in(values: wp.array(dtype=wp.float32), volume: Volume, g: wp.vec3f) -> float:
    """Trilinear, at a place in cells."""
    corner = corner_of(volume, g)
    a = g[0] - float(corner[0])
    b = g[1] - float(corner[1])
    c = g[2] - float(corner[2])
    column = volume.shape[2]
    sheet = volume.shape[1] * column
    n = corner[0] * sheet + corner[1] * column + corner[2]
    low = wp.lerp(
        wp.lerp(values[n], values[n + sheet], a),
        wp.lerp(values[n + column], values[n + column + sheet], a),
        b,
    )
    high = wp.lerp(
        wp.lerp(values[n + 1], values[n + sheet + 1], a),
        wp.lerp(values[n + column + 1], values[n + column + sheet + 1], a),
        b,
    )
    return wp.lerp(low, high, c)


@wp.func
def vector_at(values: wp.array(dtype=wp.vec3f), volume: Volume, x: wp.vec3f) -> wp.vec3f:
    """Trilinear, at a position."""
    g = cell_of(volume, x)
    corner = corner_of(volume, g)
    a = g[0] - float(corner[0])
    b = g[1] - float(corner[1])
    c = g[2] - float(corner[2])
    column = volume.shape[2]
    sheet = volume.shape[1] * column
    n = corner[0] * sheet + corner[1] * column + corner[2]
    low = (values[n] * (1.0 - a) + values[n + sheet] * a) * (1.0 - b)
    low += (values[n + column] * (1.0 - a) + values[n + column + sheet] * a) * b
    high = (values[n + 1] * (1.0 - a) + values[n + sheet + 1] * a) * (1.0 - b)
    high += (values[n + column + 1] * (1.0 - a) + values[n + column + sheet + 1] * a) * b
    return low * (1.0 - c) + high * c


@wp.kernel
def nodal_slopes(
    first: wp.int32,
    phi: wp.array(dtype=wp.float32),
    shape: wp.vec3i,
    out: wp.array(dtype=wp.vec3f),
):
    """Differences over two cells: those over one, or less, would show the facets of the cells."""
    item = first + wp.tid()
    k = item % shape[2]
    j = (item // shape[2]) % shape[1]
    i = item // (shape[2] * shape[1])
    column = shape[2]
    sheet = shape[1] * column
    out[item] = wp.vec3f(
        phi[item + sheet * wp.min(1, shape[0] - 1 - i)] - phi[item - sheet * wp.min(1, i)],
        phi[item + column * wp.min(1, shape[1] - 1 - j)] - phi[item - column * wp.min(1, j)],
        phi[item + wp.min(1, shape[2] - 1 - k)] - phi[item - wp.min(1, k)],
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
def crossing(
    values: wp.array(dtype=wp.float32),
    volume: Volume,
    start: wp.vec3f,
    ahead: wp.vec3f,
    outside: wp.vec2f,
    inside: wp.vec2f,
) -> float:
    """Where phi is zero between two (t, phi) of a ray start + ahead t in cells, by the secant."""
    a = outside
    b = inside
    for _ in range(3):
        m = a[0] + (b[0] - a[0]) * a[1] / (a[1] - b[1])
        phi = phi_in(values, volume, start + ahead * m)
        if wp.abs(phi) < volume.spacing * wp.static(CLOSE):
            return m
        if phi < 0.0:
            b = wp.vec2f(m, phi)
        else:
            a = wp.vec2f(m, phi)
    return a[0] + (b[0] - a[0]) * a[1] / (a[1] - b[1])


@wp.func
def march(
    values: wp.array(dtype=wp.float32),
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
    start = cell_of(volume, origin)
    ahead = direction / volume.spacing
    before = t
    phi_before = phi_in(values, volume, start + ahead * t)
    if phi_before < 0.0:
        return t
    least = volume.spacing * wp.static(LEAST_STEP)
    step = wp.float32(0.0)
    fall = wp.float32(0.0)  # of phi along the last step, per length
    for _ in range(wp.static(MOST_STEPS)):
        last = step
        step = phi_before * volume.pace
        if phi_before < volume.spacing and fall > 0.0:
            # close by, to where the last step's fall would end, and a little beyond
            step = wp.clamp(1.05 * phi_before / fall, step, wp.static(BOLDEST) * phi_before)
        t = wp.min(before + wp.max(step, least), part[1])
        step = t - before
        phi = phi_in(values, volume, start + ahead * t)
        if phi < 0.0:
            return crossing(
                values, volume, start, ahead, wp.vec2f(before, phi_before), wp.vec2f(t, phi)
            )
        rise = (phi - phi_before) / step
        if fall > 0.0 and rise > 0.0 and phi_before < least:
            # past the lowest place of a ray that grazes: was it inside there?
            lowest = before + 0.5 * ((last + step) * fall / (fall + rise) - last)
            phi_lowest = phi_in(values, volume, start + ahead * lowest)
            if phi_lowest < 0.0:
                outside = wp.vec2f(before, phi_before)
                if lowest < before:
                    outside = wp.vec2f(before - last, phi_before + fall * last)
                inside = wp.vec2f(lowest, phi_lowest)
                return crossing(values, volume, start, ahead, outside, inside)
        if t >= part[1]:
            return -1.0
        fall = -rise
        before = t
        phi_before = phi
    return -1.0
