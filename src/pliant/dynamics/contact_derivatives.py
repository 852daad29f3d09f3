"""Tangent and adjoint of the contact force of a step (see dynamics.contact), for planes.

With x~ the predicted and x' the found position of a point, q = n . (x' - x~), old velocity v and
new velocity v', its force per area is f_new (s + s' q) n + f_old s_before n - (f_new + f_old) c T
v', where T = I - n n^T and c = mu s / sqrt(|T v|^2 + slip^2).
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
    tangential,
)


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
    dn: wp.vec3d,
    d_offset: wp.float64,
    d_stiffness: wp.float64,
    force: wp.array(dtype=wp.vec3d),
):
    i = first + wp.tid()
    n = o.normal
    ahead = p.positions[i] + carried(p, i, predicted)
    d_ahead = carried(p, i, d_predicted)
    d = wp.dot(n, ahead) - o.offset
    dd = wp.dot(n, d_ahead) + wp.dot(dn, ahead) - d_offset
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
        d = wp.dot(n, now) - o.offset
        dd = wp.dot(n, carried(p, i, du)) + wp.dot(dn, now) - d_offset
        before = pressure(p, d)
        total += (f_old * (pressure_slope(p, d) * dd + rel * before)) * n + (f_old * before) * dn
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
    n = o.normal
    bar = p.area[i] * carried(p, i, f_bar)
    along = wp.dot(bar, n)
    ahead = p.positions[i] + carried(p, i, predicted)
    d = wp.dot(n, ahead) - o.offset
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
    stiffness_bar = (s_bar * s + slope_bar * slope) / p.stiffness
    predicted_bar[i] = predicted_bar[i] + (d_bar - implicit * q_bar) * n
    base_u_bar[i] = base_u_bar[i] + (implicit * q_bar) * n
    n_bar += d_bar * ahead
    offset_bar = -d_bar
    if f_old != wp.float64(0.0):
        now = p.positions[i] + carried(p, i, u)
        d = wp.dot(n, now) - o.offset
        before = pressure(p, d)
        n_bar += (f_old * before) * bar
        d_bar = f_old * along * pressure_slope(p, d)
        stiffness_bar += f_old * along * before / p.stiffness
        u_bar[i] = u_bar[i] + d_bar * n
        n_bar += d_bar * now
        offset_bar -= d_bar
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
