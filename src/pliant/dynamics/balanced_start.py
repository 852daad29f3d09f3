"""The first state of a body that begins in balance, and how it changes with the parameters.

The forces' balance g(u; p) = 0 gives K du = -dg with K the stiffness at rest, as a step does
(dynamics.implicit_derivatives); what a body is plucked by is one more load, M A.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING
from weakref import ref

import numpy as np
import warp as wp

from pliant.core.launch import to_device, zeros
from pliant.dynamics.model import Parameters, State
from pliant.dynamics.rest import StaticProblem, find_rest
from pliant.dynamics.start import StartFields
from pliant.dynamics.terms.stage import Changes, Pulls, Stage
from pliant.dynamics.terms.term import Term
from pliant.linalg.blocks import keep_free

if TYPE_CHECKING:
    from pliant.dynamics.implicit import ImplicitModel

TOLERANCE = 1e-10
"""Imbalance that the start keeps, as a share of the loads: far below what a step leaves."""


class BalancedStart:
    """Of a model whose scene begins in equilibrium, or plucked out of it."""

    def __init__(self, model: "ImplicitModel"):
        self._model = ref(model)  # which holds this

    @property
    def model(self) -> "ImplicitModel":
        """Whose start it is."""
        model = self._model()
        assert model is not None
        return model

    @cached_property
    def fields(self) -> StartFields:
        """The modes; they do not follow the scene's material."""
        return StartFields(self.model.scene)

    def state(self) -> State:
        """Displacement, velocity and acceleration."""
        s = self.model
        held_by, velocity = self._held_by(), self._velocity()
        u, _, _ = find_rest(s, tolerance=TOLERANCE, held_by=held_by)
        s.forget()
        a = self._acceleration(held_by, velocity)
        u, v, a = (to_device(f, wp.vec3d) for f in (u, velocity, a))
        return State.of(u, v, a, history=s.relaxed())

    def _held_by(self) -> np.ndarray | None:
        start = self.model.scene.begin
        if not start.modes:
            return None
        return self.fields.field(self.fields.squares * np.asarray(start.amplitudes))

    def _velocity(self) -> np.ndarray:
        start = self.model.scene.begin
        if not start.modes:
            return np.zeros((self.model.node_count, 3))
        return self.model.boundary.compatible(self._asked_velocity())

    def _asked_velocity(self) -> np.ndarray:
        """Whatever the walls allow of it."""
        return self.fields.field(np.asarray(self.model.scene.begin.velocities))

    def _viscous(self, velocities: Sequence[float]) -> np.ndarray | float:
        """What a unit of stiffness damping takes from modes of these velocities [m/s^2]."""
        if not self.model.scene.begin.modes:
            return 0.0
        return self.fields.field(self.fields.squares * np.asarray(velocities))

    def _acceleration(self, held_by: np.ndarray | None, velocity: np.ndarray) -> np.ndarray:
        return self.model.boundary.compatible(self._asked_acceleration(held_by, velocity))

    def _asked_acceleration(self, held_by: np.ndarray | None, velocity: np.ndarray) -> np.ndarray:
        m = self.model.material
        a = -m.mass_damping * velocity
        a = a - m.stiffness_damping * self._viscous(self.model.scene.begin.velocities)
        return a if held_by is None else a - held_by

    # derivatives ---------------------------------------------------------------------------------

    @property
    def _terms(self) -> list[Term]:
        """What is in balance."""
        s = self.model
        every = (s.elastic, *s.supports, s.places, s.touch, s.inertia, s.loads)
        return [term for term in every if term is not None]

    def _linearise(self, u: wp.array) -> Stage:
        """The stiffness at the start, and its preconditioner."""
        s = self.model
        problem = StaticProblem(s, held_by=self._held_by())
        problem.assemble(u, project=False)
        s.preconditioner.update(s.matrix, fresh=True)
        return problem.at(u)

    def tangents(self, state: State, directions: Sequence[Parameters]) -> list[State]:
        """Changes of the first state."""
        s, n = self.model, self.model.node_count
        m, start = s.material, s.scene.begin
        stage = self._linearise(state.u)
        sides, found, out = [], [], []
        for p in directions:
            b = zeros(n, wp.vec3d)
            d = Changes(stage.balance, (None, None, None), s.matrix.free)
            for term in self._terms:
                term.add_change(stage, d, p, b)
            held = self._of_modes(p, "start_amplitudes", squared=True)
            s.inertia.add(to_device(held, wp.vec3d), b, 1.0)
            keep_free(b, s.matrix.free)
            sides.append(b)
            found.append(zeros(n, wp.vec3d))
            v = s.boundary.compatible(self._of_modes(p, "start_velocities"))
            if s.places is not None and start.modes:
                v = v + s.places.compatible_change(p, self._asked_velocity())
            a = -held - m.mass_damping * v - p.get("mass_damping", 0.0) * state.v.numpy()
            a = a - m.stiffness_damping * self._of_modes(p, "start_velocities", squared=True)
            a = a - p.get("stiffness_damping", 0.0) * self._viscous(start.velocities)
            a = s.boundary.compatible(a)
            if s.places is not None and start.modes:
                asked = self._asked_acceleration(self._held_by(), state.v.numpy())
                a = a + s.places.compatible_change(p, asked)
            out.append((v, a))
        s.derivatives.solve_all(stage, sides, found, s.scene.tolerance)
        s.forget()
        return [
            State.of(u, to_device(v, wp.vec3d), to_device(a, wp.vec3d), state.t)
            for u, (v, a) in zip(found, out, strict=True)
        ]

    def _of_modes(self, p: Parameters, name: str, *, squared: bool = False) -> np.ndarray:
        if name not in p:
            return np.zeros((self.model.node_count, 3))
        return self.fields.field((self.fields.squares if squared else 1.0) * p[name])

    def adjoint(self, state: State, bar: State, dual: Parameters) -> None:
        """The transpose of `tangents`."""
        s, n = self.model, self.model.node_count
        m, start = s.material, s.scene.begin
        stage, y = self._linearise(state.u), zeros(n, wp.vec3d)
        u_bar = wp.clone(bar.u)
        keep_free(u_bar, s.matrix.free)
        s.derivatives.solve_one(stage, u_bar, y, "adjoint", s.scene.tolerance)
        pulls = Pulls(n)
        for term in self._terms:
            term.add_pull(stage, y, pulls, dual)
        s.forget()
        a_bar = s.boundary.compatible(bar.a.numpy())
        dual.add("mass_damping", -np.sum(a_bar * state.v.numpy()))
        if not start.modes:
            return
        squares = self.fields.squares
        dual.add("stiffness_damping", -np.sum(a_bar * self._viscous(start.velocities)))
        heavy = zeros(n, wp.vec3d)
        s.inertia.add(y, heavy, 1.0)
        dual.add("start_amplitudes", squares * self.fields.pull(heavy.numpy() - a_bar))
        v_bar = bar.v.numpy() - m.mass_damping * a_bar
        if s.places is not None:
            s.places.compatible_pull(v_bar, self._asked_velocity(), dual)
            asked = self._asked_acceleration(self._held_by(), state.v.numpy())
            s.places.compatible_pull(bar.a.numpy(), asked, dual)
        by_velocity = self.fields.pull(s.boundary.compatible(v_bar))
        by_velocity -= m.stiffness_damping * squares * self.fields.pull(a_bar)
        dual.add("start_velocities", by_velocity)
