"""Contact forces at surface points: softmin springs towards planes and sampled shapes.

A point p of area A at distance d presses with A * s(d) along the obstacle's normal n, where
s(d) = k ln(1 + exp(-a (d + m))) / a (seed 000, eq. 2.8.3, with a margin m). A step needs the force
at its end. It is taken at the predicted position x~ and, because s is steep, linearised there in
the unknown:

    f' = A n (s(d~) + s'(d~) n . (x' - x~)),

whose second part goes to the matrix. The seed stops after the first (eq. 2.8.2), which bounds the
time step by the spring; this form does not. Friction acts on the tangential velocity of the step's
end, - mu s(d~) v'_t / sqrt(|v_t|^2 + slip^2) with the speed in the root taken from its start, so it
is a damper in the matrix and cannot overshoot.
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

from dataclasses import dataclass

import numpy as np
import warp as wp

from pliant.core.launch import launch, to_device, zeros
from pliant.dynamics.obstacles import ContactLaw, Obstacle, Plane
from pliant.fem.block_rows import BlockRows, add_block
from pliant.fem.body import Body
from pliant.geometry.field import sample

DEFAULT_STIFFNESS = 20.0
"""Contact stiffness times spacing over Young's modulus, where the law gives none: the body then
yields twenty times more than the spring over a cell."""


@wp.struct
class PointData:
    """Surface points and the contact law, on the device."""

    m: wp.int32
    nodes: wp.array2d(dtype=wp.int32)
    weights: wp.array2d(dtype=wp.float64)
    area: wp.array(dtype=wp.float64)
    positions: wp.array(dtype=wp.vec3d)
    stiffness: wp.float64
    sharpness: wp.float64
    margin: wp.float64
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


@wp.kernel
def _point_forces(
    first: wp.int32,
    p: PointData,
    o: ObstacleData,
    u: wp.array(dtype=wp.vec3d),
    v: wp.array(dtype=wp.vec3d),
    predicted: wp.array(dtype=wp.vec3d),
    base_u: wp.array(dtype=wp.vec3d),
    base_v: wp.array(dtype=wp.vec3d),
    f_new: wp.float64,
    f_old: wp.float64,
    u_per_x: wp.float64,
    v_per_x: wp.float64,
    force: wp.array(dtype=wp.vec3d),
    block: wp.array(dtype=wp.mat33d),
):
    """Adds the part of f_new f' + f_old f that x does not move to force, the rest to block.

    base_u, base_v: the next displacement and velocity for x = 0; u_per_x, v_per_x: their change
    with x.
    """
    i = first + wp.tid()
    X = p.positions[i]
    ahead = carried(p, i, predicted)
    t = touch(o, X + ahead)
    s = pressure(p, t.d)
    slope = pressure_slope(p, t.d)
    gap = wp.float64(0.0)
    if u_per_x != wp.float64(0.0):
        gap = wp.dot(t.n, carried(p, i, base_u) - ahead)
    c = (f_new + f_old) * drag(p, s, t.n, carried(p, i, v))
    total = (f_new * (s + slope * gap)) * t.n - c * tangential(t.n, carried(p, i, base_v))
    if f_old != wp.float64(0.0):
        before = touch(o, X + carried(p, i, u))
        total += (f_old * pressure(p, before.d)) * before.n
    force[i] = force[i] + p.area[i] * total
    along = wp.outer(t.n, t.n)
    across = wp.identity(n=3, dtype=wp.float64) - along
    block[i] = block[i] + p.area[i] * ((-f_new * slope * u_per_x) * along + (c * v_per_x) * across)


@wp.kernel
def _point_products(
    first: wp.int32,
    p: PointData,
    block: wp.array(dtype=wp.mat33d),
    x: wp.array(dtype=wp.vec3d),
    factor: wp.float64,
    out: wp.array(dtype=wp.vec3d),
):
    i = first + wp.tid()
    out[i] = factor * (block[i] * carried(p, i, x))


@wp.kernel
def _gather_points(
    first: wp.int32,
    start: wp.array(dtype=wp.int32),
    point: wp.array(dtype=wp.int32),
    weight: wp.array(dtype=wp.float64),
    force: wp.array(dtype=wp.vec3d),
    out: wp.array(dtype=wp.vec3d),
):
    i = first + wp.tid()
    total = wp.vec3d()
    for e in range(start[i], start[i + 1]):
        total += weight[e] * force[point[e]]
    out[i] = out[i] + total


@wp.kernel
def _add_blocks(
    first: wp.int32,
    p: PointData,
    start: wp.array(dtype=wp.int32),
    point: wp.array(dtype=wp.int32),
    weight: wp.array(dtype=wp.float64),
    block: wp.array(dtype=wp.mat33d),
    A: BlockRows,
):
    i = first + wp.tid()
    for e in range(start[i], start[i + 1]):
        q = point[e]
        B = block[q]
        if wp.trace(B) > wp.float64(0.0):
            for j in range(p.m):
                w = weight[e] * p.weights[q, j]
                if w != wp.float64(0.0):
                    for c in range(A.row_start[i], A.row_start[i + 1]):
                        if A.columns[c] == p.nodes[q, j]:
                            add_block(A, i, c, w * B)


@dataclass
class _Gather:
    start: wp.array
    point: wp.array
    weight: wp.array


def _margin(law: ContactLaw, spacing: float) -> float:
    if law.margin is not None:
        return law.margin
    return 0.5 * spacing if law.sharpness is None else 0.0


class Contact:
    """Contact of one body with the obstacles of a scene."""

    def __init__(self, body: Body, obstacles, law: ContactLaw):
        self.law = law
        self._body = body
        self.stiffness_per_modulus = 0.0 if law.stiffness else DEFAULT_STIFFNESS / body.spacing
        points = body.surface.points
        rest = body.surface.positions(body.nodes)
        positions = np.zeros((len(points), 3))
        positions[:, : body.dim] = rest
        data = PointData()
        data.m = points.nodes.shape[1]
        data.nodes = to_device(points.nodes, wp.int32)
        data.weights = to_device(points.weights, wp.float64)
        data.area = to_device(body.surface.point_areas(rest), wp.float64)
        data.positions = to_device(positions, wp.vec3d)
        data.stiffness = law.stiffness or 0.0
        data.sharpness = law.sharpness or 10.0 / body.spacing
        data.margin = _margin(law, body.spacing)
        data.friction = law.friction
        data.slip_speed = law.slip_speed
        self.points = data
        self.count = len(points)
        self.node_count = len(body.nodes)
        self.obstacles = [_obstacle_data(o, body) for o in obstacles]
        transpose = points.matrix.T.tocsr()
        self._gather = _Gather(
            to_device(transpose.indptr, wp.int32),
            to_device(transpose.indices, wp.int32),
            to_device(transpose.data, wp.float64),
        )
        self._force = zeros(self.count, wp.vec3d)
        self.block = zeros(self.count, wp.mat33d)

    def set_obstacles(self, obstacles, law: ContactLaw) -> None:
        """Other planes (sampled shapes stay as they are) and another stiffness."""
        for k, o in enumerate(obstacles):
            if isinstance(o, Plane):
                self.obstacles[k] = _obstacle_data(o, self._body)
        self.law = law
        if law.stiffness:
            self.stiffness_per_modulus = 0.0
            self.points.stiffness = law.stiffness

    def set_stiffness(self, youngs_modulus: float) -> None:
        """A law without a stiffness of its own follows the body's modulus."""
        if self.stiffness_per_modulus > 0.0:
            self.points.stiffness = self.stiffness_per_modulus * youngs_modulus

    def add_forces(
        self,
        u: wp.array,
        v: wp.array,
        predicted: wp.array,
        base: tuple[wp.array, wp.array],
        *,
        f_new: float,
        f_old: float,
        per_x: tuple[float, float],
        out: wp.array,
    ) -> None:
        """out += nodal contact forces; also prepares the blocks for `add_to_matrix`.

        base: next displacement and velocity for x = 0; per_x: their change with x.
        """
        self._force.zero_()
        self.block.zero_()
        for o in self.obstacles:
            launch(
                _point_forces,
                self.count,
                [
                    self.points, o, u, v, predicted, *base, f_new, f_old, *per_x,
                    self._force, self.block,
                ],
                grain=4000,
            )  # fmt: skip
        self.gather(self._force, out)

    def gather(self, force: wp.array, out: wp.array) -> None:
        """out += the transpose of the surface's embedding applied to point forces."""
        g = self._gather
        launch(_gather_points, self.node_count, [g.start, g.point, g.weight, force, out])

    def add_to_matrix(self, matrix) -> None:
        """matrix += what the unknown moves of the contact force."""
        g = self._gather
        launch(
            _add_blocks,
            self.node_count,
            [self.points, g.start, g.point, g.weight, self.block, matrix.rows],
        )

    def add_product(self, x: wp.array, out: wp.array, *, factor: float) -> None:
        """out += factor * C x, C what `add_to_matrix` adds."""
        launch(_point_products, self.count, [self.points, self.block, x, factor, self._force])
        self.gather(self._force, out)


def _obstacle_data(obstacle: Plane | Obstacle, body: Body) -> ObstacleData:
    o = ObstacleData()
    if isinstance(obstacle, Plane):
        n = np.zeros(3)
        n[: len(obstacle.normal)] = obstacle.normal
        o.is_plane = 1
        o.normal = wp.vec3d(*n)
        o.offset = obstacle.offset
        return o
    field = sample(obstacle.shape, spacing=obstacle.spacing or body.spacing)
    values = field.values
    if values.ndim == 2:
        values = np.repeat(values[:, :, None], 3, axis=2)
    origin = np.full(3, -float(field.spacing))  # a plane body lies in the middle of three layers
    origin[: len(field.origin)] = field.origin
    o.is_plane = 0
    o.values = to_device(values.astype(float), wp.float64)
    o.origin = wp.vec3d(*origin)
    o.spacing = float(field.spacing)
    return o
