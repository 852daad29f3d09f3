"""Contact that no surface passes: incremental potential contact (Li et al. 2020).

Elements of the surfaces that are nearer than the gap g push each other apart by

    B = k g sum of w b(d / g),    b(s) = -(s^2 - 1)^2 ln s^2   for s < 1, else 0,

d their distance, w their share of the area at rest: a pressure k |b'(d / g)| that knows neither the
mesh nor an upper bound (Li et al. 2023, whose sums over elements these are). Where s is 0.93, 0.8
and 0.5 it is 0.1, 0.9 and 4.3 k. Newton's steps end before anything touches (dynamics.line_search).
Friction: parts.lagged_friction.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from pliant.core.errors import BadInput
from pliant.dynamics.newton_problem import NewtonFailure
from pliant.dynamics.obstacles import ContactLaw, Obstacle, Plane
from pliant.dynamics.parts.collision_surface import CollisionSurface, collision_surface, toolkit
from pliant.dynamics.parts.lagged_friction import CALM, LaggedFriction, lagged_friction
from pliant.fem.bodies.body import Body

STIFFNESS = 0.1
"""k over Young's modulus of the softest part, where the law gives none: a tenth of the modulus
presses surfaces to 0.8 of the gap."""

GAP = 0.1
"""Largest gap over the smallest spacing, where the law gives none."""

LEAST_GAP = 0.01
"""Least of it: parts that begin nearer to each other are refused."""

RESERVE = 1.0
"""Gaps that surfaces may move until pairs of elements are searched for anew."""


@dataclass(frozen=True, eq=False)
class Barrier:
    """gap [m]; stiffness [Pa]; friction and slip_speed as in ContactLaw."""

    surface: CollisionSurface
    gap: float
    stiffness: float
    friction: float
    slip_speed: float

    @cached_property
    def potential(self) -> Any:
        """The toolkit's own."""
        return toolkit().BarrierPotential(self.gap, self.stiffness, True)

    @cached_property
    def advancement(self) -> Any:
        """Conservative advancement (Li et al. 2021): tight inclusion takes minutes where two boxes
        meet face to face and their edges are parallel.
        """
        return toolkit().AdditiveCCD()

    @cached_property
    def rubbing(self) -> Any:
        """The toolkit's potential of friction."""
        return toolkit().FrictionPotential(self.slip_speed)


def first_barrier(
    law: ContactLaw,
    bodies: Sequence[Body],
    starts: Sequence[int],
    obstacles: Sequence[Plane | Obstacle],
) -> Barrier:
    """Between placed bodies, whose first nodes are `starts`; its stiffness is set later."""
    surface = collision_surface(bodies, starts, obstacles, itself=law.self_contact)
    gap = gap_of(law, surface, min(body.spacing for body in bodies))
    return Barrier(surface, gap, 0.0, law.friction, law.slip_speed)


def gap_of(law: ContactLaw, surface: CollisionSurface, spacing: float) -> float:
    """The law's own gap, or one within which nothing begins; spacing: the smallest [m]."""
    within = law.gap or GAP * spacing
    least = surface.closest(within)
    if least <= 0.0 or surface.intersects(np.zeros((surface.node_count, 3))):
        raise BadInput(
            "parts: surfaces touch where they begin; a barrier needs a distance between parts, and "
            "to obstacles."
        )
    if law.gap is not None:
        return law.gap
    if least < LEAST_GAP * spacing:
        raise BadInput(
            f"parts: surfaces are {least:.3g} m from each other where they begin; leave "
            f"{LEAST_GAP * spacing:.3g} m for a barrier, or give [contact] a gap of its own."
        )
    return min(within, least)


class Close:
    """The elements that may be near each other about one placement of the surfaces."""

    def __init__(self, barrier: Barrier):
        self._barrier = barrier
        self._candidates: Any = None
        self._about = np.zeros(0)
        self._last: tuple[np.ndarray, Any] | None = None

    def pairs(self, at: np.ndarray) -> Any:
        """The toolkit's collisions of points at (points, 3)."""
        if self._last is not None and np.array_equal(self._last[0], at):
            return self._last[1]
        ipctk, b = toolkit(), self._barrier
        mesh, reserve = b.surface.mesh, RESERVE * b.gap
        moved = np.inf
        if self._candidates is not None:
            moved = float(np.sqrt(np.square(at - self._about).sum(axis=1).max()))
        if not moved <= reserve:
            self._candidates, self._about = ipctk.Candidates(), at
            self._candidates.build(mesh, at, 0.5 * b.gap + reserve)
        found = ipctk.NormalCollisions()
        found.use_area_weighting = True
        found.collision_set_type = ipctk.NormalCollisions.IMPROVED_MAX_APPROX
        found.build(self._candidates, mesh, at, b.gap)
        self._last = at, found
        return found


@dataclass(frozen=True, eq=False)
class BarrierBetween:
    """Barrier through one step, as Between; u: (nodes, 3) displacement at its start.

    force: (f_new, f_old) of the scheme. softer: (1,) the part whose modulus the stiffness follows.
    """

    barrier: Barrier
    u: np.ndarray
    force: tuple[float, float]
    softer: np.ndarray

    def __bool__(self) -> bool:
        return True

    @cached_property
    def close(self) -> Close:
        """What may be near, searched for as the step goes on."""
        return Close(self.barrier)

    @cached_property
    def start(self) -> np.ndarray:
        """Points at the step's start."""
        return self.barrier.surface.at(self.u)

    @cached_property
    def old(self) -> np.ndarray:
        """f_old times the forces on the nodes at the step's start."""
        if self.force[1] == 0.0:
            return np.zeros_like(self.u)
        return -self.force[1] * self.barrier.surface.spread(self._gradient(self.start))

    @cached_property
    def contacts(self) -> Any:
        """The toolkit's contacts with friction, by the pressures at the step's start."""
        b, found = self.barrier, toolkit().TangentialCollisions()
        if b.friction > 0.0:
            pairs = self.close.pairs(self.start)
            found.build(b.surface.mesh, self.start, pairs, b.potential, b.friction)
        return found

    @cached_property
    def rubs(self) -> LaggedFriction | None:
        """Their friction; None without any."""
        b = self.barrier
        if not len(self.contacts):
            return None
        return lagged_friction(self.contacts, b.surface.mesh, b.slip_speed)

    def _gradient(self, at: np.ndarray) -> np.ndarray:
        b = self.barrier
        return b.potential.gradient(self.close.pairs(at), b.surface.mesh, at)

    def forces(self, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """On the nodes (nodes, 3), for displacement u and velocity v at the step's end."""
        b = self.barrier
        g = self.force[0] * self._gradient(b.surface.at(u))
        if self.rubs is not None:
            g = g + sum(self.force) * self.rubs.gradient(b.surface.P @ v)
        return self.old - b.surface.spread(g)

    def tangent(
        self,
        u: np.ndarray,
        v: np.ndarray,
        u_per_x: float,
        v_per_x: float,
        *,
        project: bool = False,
    ) -> "BarrierTangent":
        """How minus the forces change with the step's unknown.

        project: of friction, see LaggedFriction.hessian; the potential is made positive only where
        it must be (parts.truncated_gradients).
        """
        b = self.barrier
        at, mesh = b.surface.at(u), b.surface.mesh
        pairs, per = self.close.pairs(at), self.force[0] * u_per_x
        beside: Any = sparse.csr_matrix((3 * len(at), 3 * len(at)))
        if self.rubs is not None:
            share = CALM if project else 1.0
            D = self.rubs.hessian(b.surface.P @ v, share)
            beside = sum(self.force) * v_per_x * D

        def made(way: Any) -> Any:
            return (per * b.potential.hessian(pairs, mesh, at, way) + beside).tocsr()

        return BarrierTangent(b.surface, made, made(toolkit().PSDProjectionMethod.NONE))

    def energy(self, u: np.ndarray) -> float:
        """At displacement u [J]."""
        b, at = self.barrier, self.barrier.surface.at(u)
        return float(b.potential(self.close.pairs(at), b.surface.mesh, at))

    def longest(self, u: np.ndarray, du: np.ndarray) -> float:
        """The share of the way du (nodes, 3) from u on which nothing touches, at most 1."""
        b = self.barrier
        ends = b.surface.at(u), b.surface.at(u + du)
        t = toolkit().compute_collision_free_stepsize(
            b.surface.mesh, *ends, narrow_phase_ccd=b.advancement
        )
        if not t > 0.0:
            raise NewtonFailure("surfaces are too near to each other to move.")
        return float(t)


@dataclass(frozen=True, eq=False)
class BarrierTangent:
    """P^T H P, H over the points; made: H by the toolkit's way to make it positive."""

    surface: CollisionSurface
    made: Callable[[Any], Any]
    H: Any

    def positive(self) -> "BarrierTangent":
        """Without what curves down, contact by contact."""
        return replace(self, H=self.made(toolkit().PSDProjectionMethod.CLAMP))

    def product(self, x: np.ndarray) -> np.ndarray:
        """Of nodal numbers (nodes, 3)."""
        return self.surface.spread(self.H @ (self.surface.P @ x).reshape(-1))
