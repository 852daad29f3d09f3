"""Tangent and adjoint of the contact force of a step (see dynamics.contact), for planes.

With x~ the predicted and x' the found position of a point, q = n . (x' - x~) and speed v, its force
per area is f_new ((s + s' q) n + friction(s)) + f_old (s_before n + friction(s_before)).
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

from dataclasses import dataclass

import numpy as np
import warp as wp

from pliant.core.errors import BadInput
from pliant.core.launch import launch, zeros
from pliant.dynamics.contact import (
    Contact,
    ObstacleData,
    PointData,
    carried,
    pressure,
    pressure_curvature,
    pressure_slope,
)


@wp.func
def _friction_tangent(
    p: PointData,
    s: wp.float64,
    ds: wp.float64,
    n: wp.vec3d,
    dn: wp.vec3d,
    v: wp.vec3d,
    dv: wp.vec3d,
) -> wp.vec3d:
    vt = v - wp.dot(n, v) * n
    dvt = dv - (wp.dot(dn, v) + wp.dot(n, dv)) * n - wp.dot(n, v) * dn
    r2 = wp.dot(vt, vt) + p.slip_speed * p.slip_speed
    r = wp.sqrt(r2)
    return -p.friction * (
        (ds / r) * vt + (s / r) * dvt - (s * wp.dot(vt, dvt) / (r2 * r)) * vt
    )


@wp.kernel
def _tangent(
    first: wp.int32,
    p: PointData,
    o: ObstacleData,
    u: wp.array(dtype=wp.vec3d),
    v: wp.array(dtype=wp.vec3d),
    predicted: wp.array(dtype=wp.vec3d),
    found: wp.array(dtype=wp.vec3d),
    du: wp.array(dtype=wp.vec3d),
    dv: wp.array(dtype=wp.vec3d),
    d_predicted: wp.array(dtype=wp.vec3d),
    d_base: wp.array(dtype=wp.vec3d),
    f_new: wp.float64,
    f_old: wp.float64,
    implicit: wp.float64,
    dn: wp.vec3d,
    d_offset: wp.float64,
    d_stiffness: wp.float64,
    force: wp.array(dtype=wp.vec3d),
):
    i = first + wp.tid()
    n = o.normal
    speed = carried(p, i, v)
    d_speed = carried(p, i, dv)
    ahead = p.positions[i] + carried(p, i, predicted)
    d_ahead = carried(p, i, d_predicted)
    d = wp.dot(n, ahead) - o.offset
    dd = wp.dot(n, d_ahead) + wp.dot(dn, ahead) - d_offset
    s = pressure(p, d)
    slope = pressure_slope(p, d)
    rel = d_stiffness / p.stiffness
    gap = implicit * (p.positions[i] + carried(p, i, found) - ahead)
    q = wp.dot(n, gap)
    dq = implicit * wp.dot(n, carried(p, i, d_base) - d_ahead) + wp.dot(dn, gap)
    ds = slope * dd + rel * s
    d_slope = pressure_curvature(p, d) * dd + rel * slope
    total = f_new * (
        (ds + d_slope * q + slope * dq) * n
        + (s + slope * q) * dn
        + _friction_tangent(p, s, ds, n, dn, speed, d_speed)
    )
    if f_old != wp.float64(0.0):
        now = p.positions[i] + carried(p, i, u)
        d = wp.dot(n, now) - o.offset
        dd = wp.dot(n, carried(p, i, du)) + wp.dot(dn, now) - d_offset
        s = pressure(p, d)
        ds = pressure_slope(p, d) * dd + rel * s
        total += f_old * (ds * n + s * dn + _friction_tangent(p, s, ds, n, dn, speed, d_speed))
    force[i] = force[i] + p.area[i] * total


@wp.func
def _friction_adjoint_s(p: PointData, n: wp.vec3d, v: wp.vec3d, bar: wp.vec3d) -> wp.float64:
    vt = v - wp.dot(n, v) * n
    r = wp.sqrt(wp.dot(vt, vt) + p.slip_speed * p.slip_speed)
    return -p.friction * wp.dot(vt, bar) / r


@wp.func
def _friction_adjoint_vt(
    p: PointData, s: wp.float64, n: wp.vec3d, v: wp.vec3d, bar: wp.vec3d
) -> wp.vec3d:
    """Derivative by the tangential velocity."""
    vt = v - wp.dot(n, v) * n
    r2 = wp.dot(vt, vt) + p.slip_speed * p.slip_speed
    r = wp.sqrt(r2)
    return (-p.friction * s / r) * (bar - (wp.dot(vt, bar) / r2) * vt)


@wp.kernel
def _adjoint(
    first: wp.int32,
    p: PointData,
    o: ObstacleData,
    u: wp.array(dtype=wp.vec3d),
    v: wp.array(dtype=wp.vec3d),
    predicted: wp.array(dtype=wp.vec3d),
    found: wp.array(dtype=wp.vec3d),
    f_bar: wp.array(dtype=wp.vec3d),
    f_new: wp.float64,
    f_old: wp.float64,
    implicit: wp.float64,
    u_bar: wp.array(dtype=wp.vec3d),
    v_bar: wp.array(dtype=wp.vec3d),
    predicted_bar: wp.array(dtype=wp.vec3d),
    base_bar: wp.array(dtype=wp.vec3d),
    normal_bar: wp.array(dtype=wp.vec3d),
    scalar_bar: wp.array(dtype=wp.vec2d),
):
    i = first + wp.tid()
    n = o.normal
    bar = p.area[i] * carried(p, i, f_bar)
    along = wp.dot(bar, n)
    speed = carried(p, i, v)
    ahead = p.positions[i] + carried(p, i, predicted)
    d = wp.dot(n, ahead) - o.offset
    s = pressure(p, d)
    slope = pressure_slope(p, d)
    gap = implicit * (p.positions[i] + carried(p, i, found) - ahead)
    q = wp.dot(n, gap)
    # total = f_new ((s + slope q) n + friction(s, n, v)) + f_old (...)
    s_bar = f_new * (along + _friction_adjoint_s(p, n, speed, bar))
    slope_bar = f_new * q * along
    q_bar = f_new * slope * along
    n_bar = (f_new * (s + slope * q)) * bar + q_bar * gap
    vt_bar = f_new * _friction_adjoint_vt(p, s, n, speed, bar)
    d_bar = s_bar * slope + slope_bar * pressure_curvature(p, d)
    stiffness_bar = (s_bar * s + slope_bar * slope) / p.stiffness
    predicted_bar[i] = predicted_bar[i] + (d_bar - implicit * q_bar) * n
    base_bar[i] = base_bar[i] + (implicit * q_bar) * n
    n_bar += d_bar * ahead
    offset_bar = -d_bar
    if f_old != wp.float64(0.0):
        now = p.positions[i] + carried(p, i, u)
        d = wp.dot(n, now) - o.offset
        s = pressure(p, d)
        s_bar = f_old * (along + _friction_adjoint_s(p, n, speed, bar))
        n_bar += (f_old * s) * bar
        vt_bar += f_old * _friction_adjoint_vt(p, s, n, speed, bar)
        d_bar = s_bar * pressure_slope(p, d)
        stiffness_bar += s_bar * s / p.stiffness
        u_bar[i] = u_bar[i] + d_bar * n
        n_bar += d_bar * now
        offset_bar -= d_bar
    # vt = v - (n . v) n
    v_bar[i] = v_bar[i] + vt_bar - wp.dot(n, vt_bar) * n
    n_bar -= wp.dot(n, vt_bar) * speed + wp.dot(n, speed) * vt_bar
    normal_bar[i] = n_bar
    scalar_bar[i] = wp.vec2d(offset_bar, stiffness_bar)


@dataclass
class ContactDual:
    """Nodal derivatives, and those of the planes and the stiffness."""

    normal: np.ndarray
    offset: np.ndarray
    stiffness: float


def require_planes(contact: Contact) -> None:
    """Derivatives exist for planes only: the normal of a sampled shape turns with the point."""
    if any(o.is_plane != 1 for o in contact.obstacles):
        raise BadInput(
            "Reconstruction knows contact with planes only: replace the obstacle shape by a plane."
        )


def add_contact_tangent(
    contact: Contact,
    point: tuple[wp.array, wp.array, wp.array, wp.array],
    change: tuple[wp.array, wp.array, wp.array, wp.array],
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

    point: (u, v, predicted, found); change: (du, dv, d_predicted, d_base) where d_base is the
    change of the next displacement with x held.
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
    point: tuple[wp.array, wp.array, wp.array, wp.array],
    f_bar: wp.array,
    *,
    f_new: float,
    f_old: float,
    implicit: bool,
    out: tuple[wp.array, wp.array, wp.array, wp.array],
) -> ContactDual:
    """Transpose of `add_contact_tangent`; adds to out = (u, v, predicted, base) duals."""
    n = contact.count
    fields = [zeros(n, wp.vec3d) for _ in range(4)]
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
