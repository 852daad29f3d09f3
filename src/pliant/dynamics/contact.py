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

from typing import Any

import numpy as np
import warp as wp
from scipy.special import spence

from pliant.core.launch import launch, to_device, zeros
from pliant.core.vectors import in_space
from pliant.dynamics.contact_points import (
    ObstacleData,
    PointData,
    carried,
    drag,
    pressure,
    pressure_slope,
    tangential,
    touch,
)
from pliant.dynamics.obstacles import ContactLaw, Obstacle, Plane
from pliant.fem.bodies.body import Body
from pliant.geometry.field import sample
from pliant.linalg.block_rows import BlockRows, add_block

DEFAULT_STIFFNESS = 20.0
"""Contact stiffness times spacing over Young's modulus, where the law gives none: the body then
yields twenty times more than the spring over a cell."""


POINTS = 1_000
"""Points per thread from which their forces are worth splitting."""

LIGHT = 0.1
"""Share of Young's modulus up to which a body's own weight leaves the default stiffness alone."""


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
    adding: wp.int32,
    force: wp.array(dtype=wp.vec3d),
    block: wp.array(dtype=wp.mat33d),
):
    """force: the part of f_new f' + f_old f that x does not move; block: the rest.

    base_u, base_v: the next displacement and velocity for x = 0; u_per_x, v_per_x: their change
    with x. adding: whether to add to what earlier obstacles left.
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
    own = p.area[i] * total
    along = wp.outer(t.n, t.n)
    across = wp.identity(n=3, dtype=wp.float64) - along
    B = p.area[i] * ((-f_new * slope * u_per_x) * along + (c * v_per_x) * across)
    if adding == 1:
        own += force[i]
        B += block[i]
    force[i] = own
    block[i] = B


@wp.kernel
def _point_distances(
    first: wp.int32,
    p: PointData,
    o: ObstacleData,
    u: wp.array(dtype=wp.vec3d),
    out: wp.array(dtype=wp.float64),
):
    i = first + wp.tid()
    t = touch(o, p.positions[i] + carried(p, i, u))
    out[i] = t.d


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


WEIGHTLESS = 1e-7
"""Least weight over Young's modulus that the default margin counts with."""


class Contact:
    """Contact of one body with the obstacles of a scene.

    weight: what the body presses by lying there [Pa]. Where it just touches, the default law
    presses as much: with a share of its modulus instead, a stiff body would be thrown up from the
    floor it lies on, and float above it. burden: weight beyond LIGHT times the modulus [Pa]: a body
    that sags under itself would sink through springs that follow its modulus alone.
    """

    def __init__(
        self, body: Body, obstacles, law: ContactLaw, *, weight: float = 0.0, burden: float = 0.0
    ):
        self._body = body
        self._weight = weight
        self._least = burden * DEFAULT_STIFFNESS / body.spacing
        points = body.surface.points
        rest = body.surface.positions(body.nodes)
        data = PointData()
        data.m = points.nodes.shape[1]
        data.nodes = to_device(points.nodes, wp.int32)
        data.weights = to_device(points.weights, wp.float64)
        data.area = to_device(body.surface.point_areas(rest), wp.float64)
        data.positions = to_device(in_space(rest), wp.vec3d)
        self.points = data
        self.set_law(law)
        self.count = len(points)
        self.node_count = len(body.nodes)
        self.obstacles = [obstacle_data(o, body) for o in obstacles]
        transpose = points.matrix.T.tocsr()
        self._transpose = (
            to_device(transpose.indptr, wp.int32),
            to_device(transpose.indices, wp.int32),
            to_device(transpose.data, wp.float64),
        )
        self._force = zeros(self.count, wp.vec3d)
        self.block = zeros(self.count, wp.mat33d)

    def set_obstacles(self, obstacles, law: ContactLaw) -> None:
        """Other planes (sampled shapes stay as they are) and another law."""
        for k, o in enumerate(obstacles):
            if isinstance(o, Plane):
                self.obstacles[k] = obstacle_data(o, self._body)
        self.set_law(law)

    def set_law(self, law: ContactLaw) -> None:
        """Take over a law; one without a stiffness gets it by `set_stiffness`."""
        p, spacing = self.points, self._body.spacing
        self.law = law
        self.stiffness_per_modulus = 0.0 if law.stiffness else DEFAULT_STIFFNESS / spacing
        p.stiffness = law.stiffness or 0.0
        p.sharpness = law.sharpness or 10.0 / spacing
        p.margin = law.margin or 0.0
        if law.margin is None and law.sharpness is None:
            p.margin = 0.5 * spacing
        p.margin_slope = 0.0
        p.friction, p.slip_speed = law.friction, law.slip_speed

    @property
    def _margin_follows(self) -> bool:
        """Whether nothing but the body tells where the law sets in."""
        given = self.law.stiffness or self.law.sharpness or self.law.margin is not None
        return not given and self._weight > 0.0

    def set_stiffness(self, youngs_modulus: float) -> None:
        """A law without a stiffness of its own follows the body's modulus."""
        if self.stiffness_per_modulus > 0.0:
            p = self.points
            p.stiffness = self.following_stiffness(youngs_modulus)
            p.margin = float(self.margin_at(p.stiffness))
            p.margin_slope = self._margin_slope()

    def following_stiffness(self, youngs_modulus: Any) -> Any:
        """Stiffness [Pa/m] of a law that gives none."""
        return self.stiffness_per_modulus * youngs_modulus + self._least

    def margin_at(self, stiffness: Any) -> Any:
        """Margin [m] of the law with this stiffness k: s(0) is the weight, k softplus(-a m) / a."""
        if not self._margin_follows:
            return self.points.margin
        a = float(self.points.sharpness)
        return -np.log(np.expm1(self._pressed(stiffness))) / a

    def _pressed(self, stiffness: Any) -> Any:
        """Weight times sharpness over stiffness, q."""
        share = self._weight * float(self.points.sharpness) / stiffness
        return np.where(np.real(share) > self._least_pressed, share, self._least_pressed)

    @property
    def _least_pressed(self) -> float:
        """q of a body whose weight is WEIGHTLESS times its modulus."""
        return WEIGHTLESS * float(self.points.sharpness) * self._body.spacing / DEFAULT_STIFFNESS

    def _margin_slope(self) -> float:
        """Change of the margin with the stiffness: q / (k a (1 - e^-q))."""
        p = self.points
        k, a = float(p.stiffness), float(p.sharpness)
        q = float(self._pressed(k))
        if not self._margin_follows or q <= self._least_pressed:
            return 0.0
        return q / (k * a * -np.expm1(-q))

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
        for k, o in enumerate(self.obstacles):
            launch(
                _point_forces,
                self.count,
                [
                    self.points, o, u, v, predicted, *base, f_new, f_old, *per_x, int(k > 0),
                    self._force, self.block,
                ],
                grain=POINTS,
            )  # fmt: skip
        self.gather(self._force, out)

    def distances(self, u: wp.array, obstacle: int) -> np.ndarray:
        """Distance of every surface point from an obstacle, (points,)."""
        out = zeros(self.count, wp.float64)
        launch(_point_distances, self.count, [self.points, self.obstacles[obstacle], u, out])
        return out.numpy()

    def energy(self, u: wp.array) -> float:
        """Energy of the springs: A k times the integral of ln(1 + e^-a(t + m)) / a over t > d.

        With z = -a (d + m) that is -Li2(-e^z) / a^2; spence(1 + e^z) is Li2(-e^z).
        """
        p = self.points
        area, total = p.area.numpy(), 0.0
        for k in range(len(self.obstacles)):
            z = -float(p.sharpness) * (self.distances(u, k) + float(p.margin))
            far = z > 30.0  # where e^-z is below rounding: z^2 / 2 + pi^2 / 6
            soft = -spence(1.0 + np.exp(np.where(far, 0.0, z)))
            value = np.where(far, 0.5 * z * z + np.pi**2 / 6.0, soft)
            total += float(area @ value) * float(p.stiffness) / float(p.sharpness) ** 2
        return total

    def gather(self, force: wp.array, out: wp.array) -> None:
        """out += the transpose of the surface's embedding applied to point forces."""
        launch(_gather_points, self.node_count, [*self._transpose, force, out])

    def add_to_matrix(self, matrix) -> None:
        """matrix += what the unknown moves of the contact force."""
        arguments = [self.points, *self._transpose, self.block, matrix.rows]
        launch(_add_blocks, self.node_count, arguments, grain=POINTS)


def obstacle_data(obstacle: Plane | Obstacle, body: Body) -> ObstacleData:
    """A plane, or the shape sampled, on the device."""
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
