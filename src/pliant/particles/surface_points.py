"""Constraints on points of the surface: held ones stay at a place, all stay out of obstacles.

A point is carried by k nodes, x = X + sum w_a u_a; to move it by d takes the nodes
du_a = w_a d / (m_a sum w_b^2 / m_b), the least change by mass. Friction takes back of the way
along an obstacle since the start of the substep as much as Coulomb's law allows: the friction
coefficient times what the obstacle pushed.
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

import numpy as np
import warp as wp

from pliant.core.launch import Recorded, to_device, zeros
from pliant.dynamics.contact_points import ObstacleData, tangential, touch
from pliant.fem.bodies.body import Body
from pliant.particles.colouring import coloured


@wp.struct
class Points:
    """Points in the order of their colours: m nodes each with weights, and rest positions."""

    m: wp.int32
    nodes: wp.array2d(dtype=wp.int32)
    weights: wp.array2d(dtype=wp.float64)
    rest: wp.array(dtype=wp.vec3d)


@wp.func
def _carried(p: Points, i: int, u: wp.array(dtype=wp.vec3d)) -> wp.vec3d:
    x = wp.vec3d()
    for j in range(p.m):
        x += p.weights[i, j] * u[p.nodes[i, j]]
    return x


@wp.func
def _mobility(p: Points, i: int, inverse_mass: wp.array(dtype=wp.float64)) -> wp.float64:
    total = wp.float64(0.0)
    for j in range(p.m):
        total += p.weights[i, j] * p.weights[i, j] * inverse_mass[p.nodes[i, j]]
    return total


@wp.func
def _move(
    p: Points,
    i: int,
    inverse_mass: wp.array(dtype=wp.float64),
    free: wp.array(dtype=wp.vec3d),
    d: wp.vec3d,
    u: wp.array(dtype=wp.vec3d),
):
    for j in range(p.m):
        n = p.nodes[i, j]
        u[n] = u[n] + (p.weights[i, j] * inverse_mass[n]) * wp.cw_mul(free[n], d)


@wp.kernel
def _hold(
    first: wp.int32,
    offset: wp.int32,
    p: Points,
    inverse_mass: wp.array(dtype=wp.float64),
    free: wp.array(dtype=wp.vec3d),
    given: wp.array(dtype=wp.vec3d),
    mask: wp.array(dtype=wp.vec3d),
    pull: wp.array(dtype=wp.vec3d),
    u: wp.array(dtype=wp.vec3d),
):
    """Put held points where they are held; pull: sum of the multipliers [kg m]."""
    i = offset + first + wp.tid()
    w = _mobility(p, i, inverse_mass)
    if w > wp.float64(0.0):
        d = wp.cw_mul(mask[i], given[i] - _carried(p, i, u)) / w
        pull[i] = pull[i] + d
        _move(p, i, inverse_mass, free, d, u)


@wp.kernel
def _keep_out(
    first: wp.int32,
    offset: wp.int32,
    p: Points,
    o: ObstacleData,
    friction: wp.float64,
    stays: wp.float64,
    inverse_mass: wp.array(dtype=wp.float64),
    free: wp.array(dtype=wp.vec3d),
    old: wp.array(dtype=wp.vec3d),
    pushed: wp.array(dtype=wp.float64),
    u: wp.array(dtype=wp.vec3d),
):
    """Push points out of an obstacle; stays: share of a depth at the start that may be left."""
    i = offset + first + wp.tid()
    zero = wp.float64(0.0)
    x = p.rest[i] + _carried(p, i, u)
    t = touch(o, x)
    w = _mobility(p, i, inverse_mass)
    if t.d < zero and w > zero:
        before = p.rest[i] + _carried(p, i, old)
        was = touch(o, before)
        out = wp.min(was.d, zero) * stays - t.d
        if out > zero:
            d = out * t.n
            pushed[i] = pushed[i] + out
            way = tangential(t.n, x - before)
            length = wp.length(way)
            if friction > zero and length > zero:
                d -= wp.min(friction * out / length, wp.float64(1.0)) * way
            _move(p, i, inverse_mass, free, d / w, u)


def points_of(body: Body, chosen: np.ndarray) -> tuple[Points, list[tuple[int, int]], np.ndarray]:
    """Chosen surface points (indices), their colours' ranges and their order."""
    surface = body.surface.points
    nodes, weights = surface.nodes[chosen], surface.weights[chosen]
    # what a weight of zero names is not moved: such a corner must not cost a colour
    own = np.where(weights != 0.0, nodes, nodes[np.arange(len(nodes)), _largest(weights)][:, None])
    order, colours = coloured(own, len(body.nodes))
    rest = np.zeros((len(chosen), 3))
    rest[:, : body.dim] = body.surface.positions(body.nodes)[chosen][order]
    p = Points()
    p.m = nodes.shape[1]
    p.nodes = to_device(own[order], wp.int32)
    p.weights = to_device(weights[order], wp.float64)
    p.rest = to_device(rest, wp.vec3d)
    return p, colours, chosen[order]


def _largest(weights: np.ndarray) -> np.ndarray:
    return np.argmax(np.abs(weights), axis=1)


class HeldPoints:
    """Surface points that are held: given (points, 3) where, along the axes of mask."""

    def __init__(self, body: Body, chosen: np.ndarray, mask: np.ndarray):
        self._points, self._colours, order = points_of(body, chosen)
        where = {int(point): k for k, point in enumerate(chosen)}
        self.order = np.array([where[int(point)] for point in order], int)
        self._mask = to_device(mask[self.order], wp.vec3d)
        self.given = zeros(len(chosen), wp.vec3d)
        self.pull = zeros(len(chosen), wp.vec3d)

    def launches(self, inverse_mass: wp.array, free: wp.array, u: wp.array) -> list[Recorded]:
        """One sweep over the colours."""
        fixed = [self._points, inverse_mass, free, self.given, self._mask, self.pull, u]
        return [Recorded(_hold, n, [first, *fixed]) for first, n in self._colours]

    def set_given(self, given: np.ndarray) -> None:
        """Where the points are held, in the order in which they were chosen."""
        self.given.assign(to_device(given[self.order], wp.vec3d))


class Obstructed:
    """All points of the surface against the obstacles."""

    def __init__(self, body: Body, obstacles: list[ObstacleData]):
        self._obstacles = obstacles
        every = np.arange(len(body.surface.points))
        self._points, self._colours, self._order = points_of(body, every)
        self.pushed = zeros(len(every), wp.float64)
        """How far each point was pushed since it was last set to zero [m]."""

    def touched(self) -> np.ndarray:
        """The points of the surface that were pushed, as indices."""
        return self._order[self.pushed.numpy() > 0.0]

    def launches(
        self, friction: float, stays: float, inverse_mass: wp.array, free: wp.array,
        old: wp.array, u: wp.array,
    ) -> list[Recorded]:  # fmt: skip
        """One sweep over the obstacles and colours."""
        return [
            Recorded(
                _keep_out, n,
                [first, self._points, o, friction, stays, inverse_mass, free, old, self.pushed,
                 u],
            )
            for o in self._obstacles
            for first, n in self._colours
        ]  # fmt: skip
