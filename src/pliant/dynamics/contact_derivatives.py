"""Tangent and adjoint of the contact force of a step (see dynamics.contact).

With x~ the predicted and x' the found position of a point, q = n . (x' - x~), old velocity v and
new velocity v', its force per area is f_new (s + s' q) n + f_old s_before n - (f_new + f_old) c T
v', where T = I - n n^T and c = mu s / sqrt(|T v|^2 + slip^2).

Distance and normal move with the point and, for a plane, with its own parameters. Of a sampled
shape they are those that the force itself uses, d trilinear and n from differences of d over a
cell, so the derivatives are exact for the discrete force; d has kinks at the faces of the samples'
cells, where the derivative is that of one side.
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

from dataclasses import dataclass

import numpy as np
import warp as wp

from pliant.core.launch import launch, zeros
from pliant.dynamics.contact import Contact
from pliant.dynamics.contact_points import (
    ObstacleData,
    PointData,
    carried,
    clamped_cell,
    pressure,
    pressure_curvature,
    pressure_slope,
    sampled_distance,
    tangential,
    touch,
)


@wp.struct
class Turn:
    """How distance and normal move with the point: dd = slope . dx, dn = turning dx."""

    slope: wp.vec3d
    turning: wp.mat33d


@wp.func
def sampled_slope(o: ObstacleData, x: wp.vec3d) -> wp.vec3d:
    """Gradient of the sampled distance (see contact_points.sampled_distance)."""
    one = wp.float64(1.0)
    t = (x - o.origin) / o.spacing
    inside = wp.vec3d()
    for axis in range(3):
        inside[axis] = wp.clamp(t[axis], wp.float64(0.0), wp.float64(o.values.shape[axis] - 1))
    i = clamped_cell(o, inside)
    g = wp.vec3d()
    for c in range(8):
        j = wp.vec3i(i[0], i[1], i[2])
        w = wp.vec3d(one, one, one)
        for axis in range(3):
            f = inside[axis] - wp.float64(i[axis])
            own = one - f
            sign = -one
            if (c >> axis) & 1 == 1:
                j[axis] = wp.min(j[axis] + 1, o.values.shape[axis] - 1)
                own = f
                sign = one
            for other in range(3):
                if other == axis:
                    w[other] = w[other] * sign
                else:
                    w[other] = w[other] * own
        g += o.values[j[0], j[1], j[2]] * w
    away = t - inside
    length = wp.length(away)
    for axis in range(3):
        if away[axis] != wp.float64(0.0):
            g[axis] = wp.float64(0.0)  # the border's value does not change across the border
    g = g / o.spacing
    if length > wp.float64(0.0):
        g += away / length
    return g


@wp.func
def turn(o: ObstacleData, x: wp.vec3d) -> Turn:
    """Derivatives of `touch` by the point."""
    out = Turn()
    if o.is_plane == 1:
        out.slope = o.normal
        return out
    out.slope = sampled_slope(o, x)
    h = wp.float64(0.5) * o.spacing
    G = wp.vec3d()
    M = wp.mat33d()
    for axis in range(3):
        e = wp.vec3d()
        e[axis] = h
        change = sampled_slope(o, x + e) - sampled_slope(o, x - e)
        G[axis] = sampled_distance(o, x + e) - sampled_distance(o, x - e)
        for other in range(3):
            M[axis, other] = change[other]
    length = wp.length(G)
    if length > wp.float64(1.0e-12):
        n = G / length
        out.turning = (wp.identity(n=3, dtype=wp.float64) - wp.outer(n, n)) * M / length
    return out


@wp.kernel
def _tangent(
    first: wp.int32,
    p: PointData,
    o: ObstacleData,
    u: wp.array(dtype=wp.vec3d),
    v: wp.array(dtype=wp.vec3d),
    predicted: wp.array(dtype=wp.vec3d),
    found_u: wp.array(dtype=wp.vec3d),
    found_v: wp.array(dtype=wp.vec3d),
    du: wp.array(dtype=wp.vec3d),
    dv: wp.array(dtype=wp.vec3d),
    d_predicted: wp.array(dtype=wp.vec3d),
    d_base_u: wp.array(dtype=wp.vec3d),
    d_base_v: wp.array(dtype=wp.vec3d),
    f_new: wp.float64,
    f_old: wp.float64,
    implicit: wp.float64,
    d_normal: wp.vec3d,
    d_offset: wp.float64,
    d_stiffness: wp.float64,
    force: wp.array(dtype=wp.vec3d),
):
    """d_normal, d_offset: of a plane; nothing for other obstacles."""
    i = first + wp.tid()
    ahead = p.positions[i] + carried(p, i, predicted)
    d_ahead = carried(p, i, d_predicted)
    t = touch(o, ahead)
    by = turn(o, ahead)
    n = t.n
    d = t.d
    dn = d_normal + by.turning * d_ahead
    d_margin = p.margin_slope * d_stiffness  # the law sees distance and margin together
    dd = wp.dot(by.slope, d_ahead) + wp.dot(d_normal, ahead) - d_offset + d_margin
    s = pressure(p, d)
    slope = pressure_slope(p, d)
    rel = d_stiffness / p.stiffness
    gap = implicit * (p.positions[i] + carried(p, i, found_u) - ahead)
    q = wp.dot(n, gap)
    dq = implicit * wp.dot(n, carried(p, i, d_base_u) - d_ahead) + wp.dot(dn, gap)
    ds = slope * dd + rel * s
    d_slope = pressure_curvature(p, d) * dd + rel * slope
    total = (f_new * (ds + d_slope * q + slope * dq)) * n + (f_new * (s + slope * q)) * dn
    if f_old != wp.float64(0.0):
        now = p.positions[i] + carried(p, i, u)
        d_now = carried(p, i, du)
        was = touch(o, now)
        by_now = turn(o, now)
        change = wp.dot(by_now.slope, d_now) + wp.dot(d_normal, now) - d_offset + d_margin
        before = pressure(p, was.d)
        total += (f_old * (pressure_slope(p, was.d) * change + rel * before)) * was.n
        total += (f_old * before) * (d_normal + by_now.turning * d_now)
    # friction: -(f_new + f_old) (dc T v' + c dT v' + c T dv')
    old = carried(p, i, v)
    d_old = carried(p, i, dv)
    vt = tangential(n, old)
    dvt = tangential(n, d_old) - wp.dot(dn, old) * n - wp.dot(n, old) * dn
    r2 = wp.dot(vt, vt) + p.slip_speed * p.slip_speed
    r = wp.sqrt(r2)
    c = p.friction * s / r
    dc = p.friction * (ds / r - s * wp.dot(vt, dvt) / (r2 * r))
    new = carried(p, i, found_v)
    turned = wp.dot(dn, new) * n + wp.dot(n, new) * dn
    rubbed = dc * tangential(n, new) - c * turned + c * tangential(n, carried(p, i, d_base_v))
    force[i] = force[i] + p.area[i] * (total - (f_new + f_old) * rubbed)


@wp.kernel
def _adjoint(
    first: wp.int32,
    p: PointData,
    o: ObstacleData,
    u: wp.array(dtype=wp.vec3d),
    v: wp.array(dtype=wp.vec3d),
    predicted: wp.array(dtype=wp.vec3d),
    found_u: wp.array(dtype=wp.vec3d),
    found_v: wp.array(dtype=wp.vec3d),
    f_bar: wp.array(dtype=wp.vec3d),
    f_new: wp.float64,
    f_old: wp.float64,
    implicit: wp.float64,
    u_bar: wp.array(dtype=wp.vec3d),
    v_bar: wp.array(dtype=wp.vec3d),
    predicted_bar: wp.array(dtype=wp.vec3d),
    base_u_bar: wp.array(dtype=wp.vec3d),
    base_v_bar: wp.array(dtype=wp.vec3d),
    normal_bar: wp.array(dtype=wp.vec3d),
    scalar_bar: wp.array(dtype=wp.vec2d),
):
    i = first + wp.tid()
    ahead = p.positions[i] + carried(p, i, predicted)
    t = touch(o, ahead)
    by = turn(o, ahead)
    n = t.n
    d = t.d
    bar = p.area[i] * carried(p, i, f_bar)
    along = wp.dot(bar, n)
    s = pressure(p, d)
    slope = pressure_slope(p, d)
    gap = implicit * (p.positions[i] + carried(p, i, found_u) - ahead)
    q = wp.dot(n, gap)
    slope_bar = f_new * q * along
    q_bar = f_new * slope * along
    n_bar = (f_new * (s + slope * q)) * bar + q_bar * gap
    # friction = -(f_new + f_old) c T v'
    f_all = f_new + f_old
    old = carried(p, i, v)
    new = carried(p, i, found_v)
    vt = tangential(n, old)
    r2 = wp.dot(vt, vt) + p.slip_speed * p.slip_speed
    r = wp.sqrt(r2)
    c = p.friction * s / r
    c_bar = -f_all * wp.dot(bar, tangential(n, new))
    base_v_bar[i] = base_v_bar[i] - (f_all * c) * tangential(n, bar)
    n_bar += (f_all * c) * (wp.dot(new, n) * bar + along * new)
    vt_bar = (-c_bar * p.friction * s / (r2 * r)) * vt
    v_bar[i] = v_bar[i] + tangential(n, vt_bar)
    n_bar -= wp.dot(n, old) * vt_bar + wp.dot(n, vt_bar) * old
    s_bar = f_new * along + c_bar * p.friction / r
    d_bar = s_bar * slope + slope_bar * pressure_curvature(p, d)
    stiffness_bar = (s_bar * s + slope_bar * slope) / p.stiffness + d_bar * p.margin_slope
    base_u_bar[i] = base_u_bar[i] + (implicit * q_bar) * n
    turned = wp.transpose(by.turning) * n_bar
    predicted_bar[i] = predicted_bar[i] + d_bar * by.slope - (implicit * q_bar) * n + turned
    n_bar += d_bar * ahead
    offset_bar = -d_bar
    if f_old != wp.float64(0.0):
        now = p.positions[i] + carried(p, i, u)
        was = touch(o, now)
        by_now = turn(o, now)
        before = pressure(p, was.d)
        was_along = wp.dot(bar, was.n)
        was_bar = (f_old * before) * bar
        d_bar = f_old * was_along * pressure_slope(p, was.d)
        stiffness_bar += f_old * was_along * before / p.stiffness + d_bar * p.margin_slope
        u_bar[i] = u_bar[i] + d_bar * by_now.slope + wp.transpose(by_now.turning) * was_bar
        n_bar += was_bar + d_bar * now
        offset_bar -= d_bar
    normal_bar[i] = n_bar
    scalar_bar[i] = wp.vec2d(offset_bar, stiffness_bar)


@dataclass
class ContactDual:
    """Nodal derivatives, and those of the planes and the stiffness."""

    normal: np.ndarray
    offset: np.ndarray
    stiffness: float


def add_contact_tangent(
    contact: Contact,
    point: tuple[wp.array, ...],
    change: tuple[wp.array, ...],
    *,
    f_new: float,
    f_old: float,
    implicit: bool,
    normal: np.ndarray,
    offset: np.ndarray,
    stiffness: float,
    out: wp.array,
) -> None:
    """out += change of the contact force.

    point: (u, v, predicted, found u, found v); change: (du, dv, d_predicted, d_base_u, d_base_v)
    where d_base are the changes of the next displacement and velocity with x held.
    """
    force = zeros(contact.count, wp.vec3d)
    for k, o in enumerate(contact.obstacles):
        launch(
            _tangent,
            contact.count,
            [
                contact.points, o, *point, *change, f_new, f_old, float(implicit),
                wp.vec3d(*normal[k]), float(offset[k]), stiffness, force,
            ],
        )  # fmt: skip
    contact.gather(force, out)


def add_contact_adjoint(
    contact: Contact,
    point: tuple[wp.array, ...],
    f_bar: wp.array,
    *,
    f_new: float,
    f_old: float,
    implicit: bool,
    out: tuple[wp.array, ...],
) -> ContactDual:
    """Transpose of `add_contact_tangent`; adds to out = (u, v, predicted, base u, base v) duals."""
    n = contact.count
    fields = [zeros(n, wp.vec3d) for _ in range(5)]
    normals, offsets, stiffness = [], [], 0.0
    for o in contact.obstacles:
        normal_bar, scalar_bar = zeros(n, wp.vec3d), zeros(n, wp.vec2d)
        launch(
            _adjoint,
            n,
            [
                contact.points, o, *point, f_bar, f_new, f_old, float(implicit),
                *fields, normal_bar, scalar_bar,
            ],
        )  # fmt: skip
        normals.append(normal_bar.numpy().sum(axis=0))
        scalars = scalar_bar.numpy().sum(axis=0)
        offsets.append(scalars[0])
        stiffness += float(scalars[1])
    for at_points, at_nodes in zip(fields, out, strict=True):
        contact.gather(at_points, at_nodes)
    return ContactDual(np.array(normals), np.array(offsets), stiffness)
