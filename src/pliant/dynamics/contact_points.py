"""Surface points against obstacles, on the device: distance, normal, pressure and friction there.

What `contact` sums to forces and `contact_derivatives` differentiates.
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

import warp as wp


@wp.struct
class PointData:
    """Surface points and the contact law, on the device; margin_slope: d margin / d stiffness."""

    m: wp.int32
    nodes: wp.array2d(dtype=wp.int32)
    weights: wp.array2d(dtype=wp.float64)
    area: wp.array(dtype=wp.float64)
    positions: wp.array(dtype=wp.vec3d)
    stiffness: wp.float64
    sharpness: wp.float64
    margin: wp.float64
    margin_slope: wp.float64
    friction: wp.float64
    slip_speed: wp.float64


@wp.struct
class ObstacleData:
    """A plane (is_plane = 1) or a sampled distance."""

    is_plane: wp.int32
    normal: wp.vec3d
    offset: wp.float64
    values: wp.array3d(dtype=wp.float64)
    origin: wp.vec3d
    spacing: wp.float64


@wp.struct
class Touch:
    """Distance to an obstacle and the outward normal there."""

    d: wp.float64
    n: wp.vec3d


@wp.func
def softplus(x: wp.float64) -> wp.float64:
    """ln(1 + e^x) without overflow (Maechler 2012)."""
    one = wp.float64(1.0)
    if x > wp.float64(35.0):
        return x
    if x < wp.float64(-35.0):
        return wp.exp(x)
    return wp.log(one + wp.exp(x))


@wp.func
def logistic(x: wp.float64) -> wp.float64:
    """1 / (1 + e^-x)."""
    one = wp.float64(1.0)
    if x >= wp.float64(0.0):
        return one / (one + wp.exp(-x))
    e = wp.exp(x)
    return e / (one + e)


@wp.func
def pressure(p: PointData, d: wp.float64) -> wp.float64:
    """s(d) >= 0."""
    return p.stiffness * softplus(-p.sharpness * (d + p.margin)) / p.sharpness


@wp.func
def pressure_slope(p: PointData, d: wp.float64) -> wp.float64:
    """s'(d) <= 0."""
    return -p.stiffness * logistic(-p.sharpness * (d + p.margin))


@wp.func
def pressure_curvature(p: PointData, d: wp.float64) -> wp.float64:
    """s''(d) >= 0."""
    g = logistic(-p.sharpness * (d + p.margin))
    return p.stiffness * p.sharpness * g * (wp.float64(1.0) - g)


@wp.func
def clamped_cell(o: ObstacleData, t: wp.vec3d) -> wp.vec3i:
    """The cell of the samples that holds t (in cells, within the samples)."""
    i = wp.vec3i()
    for axis in range(3):
        i[axis] = wp.clamp(int(wp.floor(t[axis])), 0, wp.max(o.values.shape[axis] - 2, 0))
    return i


@wp.func
def sampled_distance(o: ObstacleData, x: wp.vec3d) -> wp.float64:
    """Trilinear distance; beyond the samples the border value plus the way to the border."""
    one = wp.float64(1.0)
    t = (x - o.origin) / o.spacing
    outside = wp.float64(0.0)
    for axis in range(3):
        last = wp.float64(o.values.shape[axis] - 1)
        clamped = wp.clamp(t[axis], wp.float64(0.0), last)
        outside += (t[axis] - clamped) * (t[axis] - clamped)
        t[axis] = clamped
    i = clamped_cell(o, t)
    f = wp.vec3d(t[0] - wp.float64(i[0]), t[1] - wp.float64(i[1]), t[2] - wp.float64(i[2]))
    total = wp.float64(0.0)
    for c in range(8):
        w = one
        j = wp.vec3i(i[0], i[1], i[2])
        for axis in range(3):
            if (c >> axis) & 1 == 1:
                w = w * f[axis]
                j[axis] = wp.min(j[axis] + 1, o.values.shape[axis] - 1)
            else:
                w = w * (one - f[axis])
        total += w * o.values[j[0], j[1], j[2]]
    return total + wp.sqrt(outside) * o.spacing


@wp.func
def touch(o: ObstacleData, x: wp.vec3d) -> Touch:
    """Distance and normal at x."""
    t = Touch()
    if o.is_plane == 1:
        t.n = o.normal
        t.d = wp.dot(o.normal, x) - o.offset
        return t
    t.d = sampled_distance(o, x)
    h = wp.float64(0.5) * o.spacing
    g = wp.vec3d()
    for axis in range(3):
        e = wp.vec3d()
        e[axis] = h
        g[axis] = sampled_distance(o, x + e) - sampled_distance(o, x - e)
    length = wp.length(g)
    t.n = g / wp.max(length, wp.float64(1.0e-12))
    return t


@wp.func
def carried(p: PointData, i: int, u: wp.array(dtype=wp.vec3d)) -> wp.vec3d:
    """Field value at surface point i."""
    x = wp.vec3d()
    for j in range(p.m):
        x += p.weights[i, j] * u[p.nodes[i, j]]
    return x


@wp.func
def tangential(n: wp.vec3d, v: wp.vec3d) -> wp.vec3d:
    """v without its part along n."""
    return v - wp.dot(n, v) * n


@wp.func
def drag(p: PointData, s: wp.float64, n: wp.vec3d, v: wp.vec3d) -> wp.float64:
    """Friction per area and tangential speed: mu s / sqrt(|v_t|^2 + slip^2)."""
    vt = tangential(n, v)
    return p.friction * s / wp.sqrt(wp.dot(vt, vt) + p.slip_speed * p.slip_speed)
