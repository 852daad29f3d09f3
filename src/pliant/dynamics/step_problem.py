"""One time step of a body with an energy as a problem of Newton's method.

    g = M (m . (x, u, v, a)) + f_new f_int(u') + f_old f_int(u) + beta D(u~) (f_new v' + f_old v)
        + walls(k . (x, u, v, a)) - contact - f_new f' - f_old f = 0,

u' and v' linear in x by the integrator's table: for every scheme the weights of K in the linear
residual are those of f_new u' + f_old u, so the same table serves.
"""

from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
import warp as wp

from pliant.core.launch import to_device, zeros
from pliant.core.solution import Outcome, Solution
from pliant.dynamics.directional_newton import add_contact_product
from pliant.dynamics.integrators import Integrator
from pliant.dynamics.newton import NewtonFailure
from pliant.dynamics.system import State, StepRecord
from pliant.linalg.blocks import combine, combine_three, dot, set_held

if TYPE_CHECKING:
    from pliant.dynamics.law_system import LawSystem


class StepProblem:
    """One step as a NewtonProblem in x."""

    def __init__(self, system: "LawSystem", state: State, scheme: Integrator):
        self.system, self.state, self.scheme = system, state, scheme
        self.matrix, self.solver = system.matrix, system.solver
        self.preconditioner = system.preconditioner
        self.clamped = system.hyper.clamped_converges
        material = system.material
        self.mass = scheme.mass_weights(material.mass_damping)
        self.stiff = scheme.stiffness_weights(material.stiffness_damping)
        self.damping = np.array([scheme.system[1], *[-row[1] for row in scheme.history]])
        self.beta = material.stiffness_damping
        self.c = scheme.next_u[0]
        with system.using(scheme):
            self.predicted = system.predict(state)
        self.u_next, self.v_next, self._w = (zeros(system.node_count, wp.vec3d) for _ in range(3))
        self._given: wp.array | None = None
        if system.boundary.held:
            self._given = to_device(system.boundary.prescribed(state.t + scheme.dt), wp.vec3d)
        self.timings = {"assembly": 0.0, "setup": 0.0, "solve": 0.0}
        self._inertia: float | None = None
        self.constant = self._constant()

    def _constant(self) -> wp.array:
        """What x does not move: loads, inertia of the past, f_old f_int(u)."""
        s, scheme, state = self.system, self.scheme, self.state
        f_new, f_old = scheme.force
        force = f_new * s.external_force(state.t + scheme.dt)
        if f_old != 0.0:
            force = force + f_old * s.external_force(state.t)
        b = to_device(force, wp.vec3d)
        combine(self._w, *zip(self.mass[1:], state.fields(), strict=True))
        s.add_inertia(self._w, b, -1.0)
        if f_old != 0.0:
            combine(b, (1.0, b), (-f_old, s.internal_force(state.u)))
        return b

    def place(self, x: wp.array) -> None:
        """u_next of x, and v_next for the contact, which alone asks for it."""
        scheme, state = self.scheme, self.state
        combine(self.u_next, (scheme.next_u[0], x),
                *zip(scheme.next_u[1:], state.fields(), strict=True))
        if self._given is not None:
            set_held(self.u_next, self.matrix.free, self._given)
        if self.system.contact is not None:
            combine(self.v_next, (scheme.next_v[0], x),
                    *zip(scheme.next_v[1:], state.fields(), strict=True))

    def residual(self, x: wp.array, out: wp.array) -> None:
        """out = -g(x)."""
        s, scheme, state = self.system, self.scheme, self.state
        t0 = perf_counter()
        f_new, f_old = scheme.force
        self.place(x)
        out.zero_()
        s.add_inertia(x, out, -self.mass[0])
        if self._inertia is None:
            self._inertia = float(np.sqrt(dot(out, out, self.matrix.free)))
        combine(out, (1.0, out), (1.0, self.constant))
        w = self._w
        if self.beta > 0.0:
            combine(w, (self.damping[0], x),
                    *zip(self.damping[1:], state.fields(), strict=True))
        s.hyper.add_forces(
            self.u_next, self.predicted, w, out, factor=-f_new, viscous_factor=-self.beta
        )
        if s.walls is not None:
            combine(w, (self.stiff[0], x), *zip(self.stiff[1:], state.fields(), strict=True))
            s.walls.add_force(w, out, factor=-1.0)
        if s.contact is not None:
            s.contact.add_forces(
                state.u, state.v, self.u_next, (self.u_next, self.v_next),
                f_new=f_new, f_old=f_old, per_x=(self.c, scheme.next_v[0]), out=out,
            )  # fmt: skip
        self.timings["assembly"] += perf_counter() - t0

    def assemble(self, x: wp.array, *, project: bool) -> None:
        """matrix = dg/dx at x."""
        s, scheme = self.system, self.scheme
        t0 = perf_counter()
        self.place(x)
        s.hyper.assemble(
            self.matrix, s.mass, self.u_next, mass_factor=self.mass[0],
            stiffness_factor=scheme.force[0] * self.c,
            viscous_factor=self.beta * self.damping[0], viscous_at=self.predicted, project=project,
        )  # fmt: skip
        if s.walls is not None and self.stiff[0] != 0.0:
            s.walls.assemble(self.matrix, self.stiff[0])
        if s.ghost_inertia is not None:
            s.ghost_inertia.assemble(self.matrix, self.mass[0])
        if s.contact is not None:
            self._prepare_contact()
            s.contact.add_to_matrix(self.matrix)
        self.timings["assembly"] += perf_counter() - t0

    def linearise(self, x: wp.array) -> None:
        """Take `multiply` at x."""
        self.place(x)
        self._prepare_contact()

    def multiply(self, p: wp.array, out: wp.array) -> None:
        """out = dg/dx p at the x of `linearise`, without a matrix."""
        s, scheme = self.system, self.scheme
        out.zero_()
        s.add_inertia(p, out, self.mass[0])
        s.hyper.add_direction(self.u_next, p, out, factor=scheme.force[0] * self.c)
        if self.beta > 0.0:
            s.hyper.add_viscous(self.predicted, p, out, factor=self.beta * self.damping[0])
        if s.walls is not None:
            s.walls.add_force(p, out, factor=self.stiff[0])
        if s.contact is not None:
            add_contact_product(s.contact, p, out)

    def _prepare_contact(self) -> None:
        """Blocks of the contact at u_next."""
        s, scheme, scratch = self.system, self.scheme, self._w
        if s.contact is None:
            return
        scratch.zero_()
        s.contact.add_forces(
            self.state.u, self.state.v, self.u_next, (self.u_next, self.v_next),
            f_new=scheme.force[0], f_old=scheme.force[1],
            per_x=(self.c, scheme.next_v[0]), out=scratch,
        )  # fmt: skip

    def first_guess(self) -> wp.array:
        """x of an unchanged acceleration; held components as they must be."""
        s, scheme, state = self.system, self.scheme, self.state
        x = s._combined(scheme.first_guess, state)
        if s.boundary.held:
            w = scheme.next_u
            given = s.boundary.prescribed(state.t + scheme.dt)
            base = s._combined(w[1:], state).numpy()
            value = x.numpy()
            held = s.boundary.free == 0.0
            value[held] = ((given - base) / w[0])[held] if w[0] != 0.0 else 0.0
            x.assign(value)
        return x

    def scale(self) -> float:
        """Size of the forces in balance: loads, those of the past, and inertia, the largest.

        The inertia is that of the first x whose residual was taken.
        """
        s, constant = self.system, self.constant
        assert self._inertia is not None
        external = self.scheme.force_total * s.external_force(self.state.t)
        loads = float(np.sqrt(np.square(external).sum()))  # a norm would wake BLAS's threads
        past = float(np.sqrt(dot(constant, constant, self.matrix.free)))
        return max(loads, past, self._inertia, 1e-300)

    def solve(self) -> tuple[State, StepRecord]:
        """The next state; raises NewtonFailure."""
        s, scheme, state = self.system, self.scheme, self.state
        t0 = perf_counter()
        x = self.first_guess()
        linear = self.c == 0.0
        newton = s.newton
        newton.problem = self  # the buffers serve every step
        if s._recent is None:  # without a past a resumed run ends with the same bits
            newton.forget()
        options = {
            "scale": self.scale, "tolerance": s.scene.tolerance, "linear": linear,
            "rounding": scheme.force[0] * s.force_rounding(),
        }  # fmt: skip
        whole = scheme is s.scene.integrator and not linear
        recent = s._recent if whole else None
        if recent is not None:
            recent.predict(self.matrix, x)
        try:
            token = (scheme.name, scheme.dt, s.version)
            record = newton.solve(x, keep=token, recent=recent, **options)
        except NewtonFailure:
            newton.kept = None
            x = self._calm_guess()
            record = newton.solve(x, **options)
        if recent is not None:
            recent.remember(self.matrix, x, scheme.first_guess, state.fields())
        weights = (scheme.next_u, scheme.next_v, scheme.next_a)
        _, v, a = combine_three(weights, (x, *state.fields()))
        after = State(self.u_next, v, a, state.t + scheme.dt)
        s._impose(after)
        if scheme.force[1] != 0.0:
            s.keep_internal(after.u, s.hyper.last_force(after.u))
        s.newton_records.append(record)
        self.timings["solve"] = perf_counter() - t0 - self.timings["assembly"]
        scale = record.scale
        norm = record.residual * scale
        solution = Solution(
            x, Outcome.CONVERGED, record.solver_iterations, norm, s.scene.tolerance * scale,
            record.history,
        )  # fmt: skip
        return after, StepRecord(solution, self.timings)

    def _calm_guess(self) -> wp.array:
        """x that leaves the free nodes where they are: the law is defined there."""
        w = self.scheme.next_u
        if w[0] == 0.0:
            raise NewtonFailure("the explicit step leaves the law's domain.")
        base = self.system._combined(w[1:], self.state).numpy()
        x = self.first_guess()
        value = x.numpy()
        free = self.system.boundary.free > 0.0
        value[free] = ((self.state.u.numpy() - base) / w[0])[free]
        x.assign(value)
        return x
