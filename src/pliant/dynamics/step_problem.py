"""One time step as a problem in its unknown x: all forces in balance.

    g = M (m . (x, u, v, a)) + f_new f_int(u') + f_old f_int(u) + beta D(u~) (f_new v' + f_old v)
        + walls(k . (x, u, v, a)) + f_new t(u') + f_old t(u) - contact - f_new f' - f_old f = 0,

t the body's own stress at its walls, u' and v' linear in x by the integrator's table: for every
scheme the weights of K in the linear residual are those of f_new u' + f_old u, so the same table
serves. Where no force is nonlinear in x (a linear stiffness, frozen frames, explicit schemes) one
linear solve is the whole of it, else it is a NewtonProblem.
"""

from typing import TYPE_CHECKING

import numpy as np
import warp as wp

from pliant.core.compiling import working_time as perf_counter
from pliant.core.errors import SolverFailure
from pliant.core.launch import share, to_device, zeros
from pliant.core.solution import Outcome, Solution
from pliant.dynamics.implicit_energies import part_work
from pliant.dynamics.integrators import Integrator
from pliant.dynamics.model import State, StepRecord
from pliant.dynamics.newton_problem import NewtonFailure
from pliant.dynamics.terms.elastic import EnergyTerm
from pliant.dynamics.terms.stage import mix
from pliant.dynamics.turning import TurningPath, TurningStep
from pliant.linalg.blocks import combine, combine_three, dot
from pliant.linalg.pcg import Tolerance

if TYPE_CHECKING:
    from pliant.dynamics.implicit import ImplicitModel

MOSTLY = 0.9
"""Share of a Newton step that must be a turn to be taken as one: a soft body that crumples has no
turn of its own."""


class StepProblem:
    """One step as a NewtonProblem in x."""

    def __init__(self, model: "ImplicitModel", state: State, scheme: Integrator):
        self.model, self.state, self.scheme = model, state, scheme
        self.matrix, self.solver = model.matrix, model.solver
        self.preconditioner = model.preconditioner
        self.elastic, self.clamped = model.elastic, model.elastic.clamped
        self.stage = model.step_stage(state, scheme)
        self.timings = {"assembly": 0.0, "setup": 0.0, "solve": 0.0}
        self._inertia: float | None = None
        self._constant: wp.array | None = None

    @property
    def constant(self) -> wp.array:
        """What x does not move: loads, inertia of the past, f_old f_int(u)."""
        if self._constant is None:
            s, (f_new, f_old) = self.model, self.scheme.force
            force = f_new * s.external_force(self.state.t + self.scheme.dt)
            if f_old != 0.0:
                force = force + f_old * s.external_force(self.state.t)
            b = to_device(force, wp.vec3d)
            for term in (s.elastic, *s.beside):
                term.add_constant(self.stage, b)
            self._constant = b
        return self._constant

    def residual(self, x: wp.array, out: wp.array) -> None:
        """out = -g(x)."""
        s, t0 = self.model, perf_counter()
        stage = self.stage.at(x)
        if self._inertia is None:  # its size alone is asked for once
            out.zero_()
            s.inertia.add_force(stage, out)
            self._inertia = float(np.sqrt(dot(out, out, self.matrix.free)))
            combine(out, (1.0, out), (1.0, self.constant))
        else:
            wp.copy(out, self.constant)
            s.inertia.add_force(stage, out)
        s.elastic.add_force(stage, out)
        for term in s.beside:
            if term is not s.inertia:
                term.add_force(stage, out)
        self.timings["assembly"] += perf_counter() - t0

    def assemble(self, x: wp.array, *, project: bool) -> None:
        """matrix = dg/dx at x."""
        t0 = perf_counter()
        assemble(self.model, self.stage.at(x), project=project)
        self.timings["assembly"] += perf_counter() - t0

    def turning(self, x: wp.array, dx: wp.array) -> TurningStep | None:
        """The step dx from x with the turn of a body that nothing holds made finite."""
        s, factor = self.model, self.scheme.next_u[0]
        if s.boundary.held or s.supports:
            return None
        u = self.stage.at(x)["next_u"].numpy()
        path = TurningPath(s.masses, s.arms() + u, factor * dx.numpy())
        return TurningStep(path, x, factor) if path.share > MOSTLY else None

    def first_guess(self) -> wp.array:
        """x of an unchanged acceleration; held components as they must be."""
        scheme, state, boundary = self.scheme, self.state, self.model.boundary
        x = mix(scheme.first_guess, state.fields())
        if boundary.held:
            w = scheme.next_u
            given = boundary.prescribed(state.t + scheme.dt)
            base = mix(w[1:], state.fields()).numpy()
            value = x.numpy()
            held = boundary.free == 0.0
            value[held] = ((given - base) / w[0])[held] if w[0] != 0.0 else 0.0
            x.assign(value)
        return x

    def scale(self) -> float:
        """Size of the forces in balance: loads, those of the past, and inertia, the largest.

        The inertia is that of the first x whose residual was taken.
        """
        assert self._inertia is not None
        external = self.scheme.force_total * self.model.external_force(self.state.t)
        loads = float(np.sqrt(np.square(external).sum()))  # a norm would wake BLAS's threads
        past = float(np.sqrt(dot(self.constant, self.constant, self.matrix.free)))
        return max(loads, past, self._inertia, 1e-300)

    def solve(self) -> tuple[State, StepRecord]:
        """The next state; raises NewtonFailure, or SolverFailure where one solve should do."""
        if self.elastic.linear or self.scheme.next_u[0] == 0.0:
            return self._solve_once()
        return self._solve_newton()

    @property
    def iterations(self) -> int:
        """Of Newton's method."""
        return self.model.newton_records[-1].iterations

    def exchanged(self, before: State, after: State) -> tuple[float, float]:
        """What damping took and loads gave over the step, once it is solved."""
        stage = self.stage
        if self.scheme.next_u[0] == 0.0:
            stage = self.model.stage_between(before, after, self.scheme)
        damping, _, loads = part_work(self.model, stage, before, after, self.scheme, touching=False)
        return damping, loads

    # nonlinear -----------------------------------------------------------------------------------

    def _solve_newton(self) -> tuple[State, StepRecord]:
        s, scheme, state = self.model, self.scheme, self.state
        t0 = perf_counter()
        x = self.first_guess()
        newton = s.newton
        newton.problem = self  # the buffers serve every step
        if s.recent is None:  # without a past a resumed run ends with the same bits
            newton.forget()
        options = {
            "scale": self.scale, "tolerance": s.scene.tolerance,
            "rounding": lambda: scheme.force[0] * s.force_rounding(state.u),
        }  # fmt: skip
        recent = s.recent if scheme is s.scene.integrator else None
        if recent is not None:
            recent.predict(self.matrix, x)
        try:
            token = (scheme.name, scheme.dt, s.version)
            calm = self.calm_guess if s.touch is not None else None
            record = newton.solve(x, keep=token, recent=recent, calm=calm, **options)
        except NewtonFailure:
            newton.kept = None
            x = self.calm_guess()
            record = newton.solve(x, **options)
        finally:
            del newton.problem  # or model and problem would hold each other
        if recent is not None:
            recent.remember(self.matrix, x, scheme.first_guess, state.fields())
        after = self.reached(x, self.stage["next_u"])
        if scheme.force[1] != 0.0 and isinstance(self.elastic, EnergyTerm):
            self.elastic.keep_last(after.u)
        s.newton_records.append(record)
        self.timings["solve"] = perf_counter() - t0 - self.timings["assembly"]
        scale = record.scale
        solution = Solution(
            x, Outcome.CONVERGED, record.solver_iterations, record.residual * scale,
            s.scene.tolerance * scale, record.history,
        )  # fmt: skip
        return after, StepRecord(solution, self.timings)

    def calm_guess(self) -> wp.array:
        """x that leaves the free nodes where they are: the law is defined there."""
        w = self.scheme.next_u
        base = mix(w[1:], self.state.fields()).numpy()
        x = self.first_guess()
        value = x.numpy()
        free = self.model.boundary.free > 0.0
        value[free] = ((self.state.u.numpy() - base) / w[0])[free]
        x.assign(value)
        return x

    # linear --------------------------------------------------------------------------------------

    def _solve_once(self) -> tuple[State, StepRecord]:
        s, scheme, state = self.model, self.scheme, self.state
        t0 = perf_counter()
        b = self.prepare()
        t1 = perf_counter()
        self.preconditioner.update(self.matrix)
        t2 = perf_counter()
        x = self.first_guess()
        square = None
        if s.recent is not None:
            square = s.recent.improve(self.matrix, b, x, self.solver.residual)
        goal = Tolerance(relative=s.scene.tolerance)
        solution = self.solver.solve(b, x, goal, square=square)
        if s.recent is not None:
            s.recent.remember(self.matrix, x, scheme.first_guess, state.fields())
        self.preconditioner.report(solution)
        near = solution.residual <= 1e3 * solution.target  # stagnation there is rounding
        if not solution.outcome.ok and not (solution.outcome is Outcome.STAGNATED and near):
            kind = SolverFailure if self.elastic.linear else NewtonFailure
            raise kind(
                f"The step at t = {state.t:g} s failed: {solution.outcome.value} "
                f"(residual {solution.residual:.2e}, wanted {solution.target:.2e})."
            )
        after = self.reached(x)
        s.linearised_at = state
        timings = {"assembly": t1 - t0, "setup": t2 - t1, "solve": perf_counter() - t2}
        return after, StepRecord(solution, timings)

    def prepare(self) -> wp.array:
        """The matrix A, and b of A x = b."""
        s, scheme, state = self.model, self.scheme, self.state
        s.linearised_at = None
        stage, b = self.stage.at(None), zeros(s.node_count, wp.vec3d)
        s.elastic.begin_with_force(stage, self.matrix, s.inertia.mass, b)
        external = zip(scheme.force, (state.t + scheme.dt, state.t), strict=True)
        given = [(f, share(s.external_force(t), wp.vec3d)) for f, t in external if f != 0.0]
        combine(b, (1.0, b), *given)
        for term in s.beside:
            term.add_constant(stage, b)
            term.add_force(stage, b)
            term.assemble(stage, self.matrix, project=False)
        return b

    # both ----------------------------------------------------------------------------------------

    def reached(self, x: wp.array, u: wp.array | None = None) -> State:
        """The state after the step.

        Held components are where they are held, with the velocity of their wall and at ease. The
        schemes' own formulas would differentiate the given displacement: v and a ring where it has
        a kink, and under linear acceleration they double every step.
        """
        scheme, state, boundary = self.scheme, self.state, self.model.boundary
        t = state.t + scheme.dt
        weights = (scheme.next_u, scheme.next_v, scheme.next_a)
        found = combine_three(weights, (x, *state.fields()))
        fields = (found[0] if u is None else u, found[1], found[2])
        if boundary.held:
            now, before = (boundary.prescribed(time) for time in (t, state.t))
            held = boundary.free == 0.0
            imposed = (now, (now - before) / scheme.dt, np.zeros_like(now))
            for array, value in zip(fields, imposed, strict=True):
                host = array.numpy()
                host[held] = value[held]
                array.assign(host)
        after = State.of(*fields, t)
        branches = self.model.branches
        if branches is None:
            return after
        reached = self.model.stage_between(state, after, scheme)
        return State.of(*fields, t, history=branches.advance(reached))


def assemble(model: "ImplicitModel", stage, *, project: bool) -> None:
    """matrix := the tangent of all terms at a stage."""
    model.linearised_at = None
    model.elastic.begin(stage, model.matrix, model.inertia.mass, project=project)
    for term in model.beside:
        term.assemble(stage, model.matrix, project=project)
