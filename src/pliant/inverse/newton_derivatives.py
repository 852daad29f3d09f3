"""Derivatives of a converged Newton step, by implicit differentiation.

g(x; u, v, a, p) = 0 of dynamics.law_system gives A dx = -dg with A the exact tangent (unclamped) at
the solution; it is symmetric, so the adjoint solves with the same matrix. The forces' own changes
come from the kernels of the law: K(u') du', d f / d p, and their transposes.

A step that was taken in parts is differentiated part by part (`DividedState`).

Friction grows with the pressure at the step's end, which the symmetric matrix of a step leaves out:
A - E then has to be solved with, E that growth, by repeated solves with A.
"""

import numpy as np
import warp as wp

from pliant.core.errors import SolverFailure
from pliant.core.launch import to_device, zeros
from pliant.dynamics.contact_derivatives import add_contact_adjoint, add_contact_tangent
from pliant.dynamics.law_system import LawSystem, parts_of
from pliant.dynamics.scene import vector3
from pliant.dynamics.step_problem import StepProblem
from pliant.dynamics.system import State, System
from pliant.inverse.direction import Direction
from pliant.inverse.law_direction import LawDirection, follow_moduli
from pliant.inverse.step_derivatives import StepDerivatives
from pliant.linalg.blocks import combine, dot, keep_free
from pliant.linalg.direct import DirectSolver

MOST_CORRECTIONS = 60
"""Solves for the growth of friction; each reduces the rest by friction times the share of a step in
which a point travels its own slip speed."""

DIRECT_NODES = 3_000
"""Bodies up to this size are factorised when the exact tangent is not positive definite."""


class LawStepDerivatives(StepDerivatives):
    """Tangent and adjoint of the steps of a LawSystem."""

    def __init__(self, system: LawSystem, *, tolerance: float | None = None):
        super().__init__(system, tolerance=tolerance)
        self.system: LawSystem = system

    # the exact tangent -------------------------------------------------------------------------

    def _linearise(self, before: State, after: State) -> StepProblem:
        s = self.system
        problem = StepProblem(s, before, s.scene.integrator)
        self._ends = (before, after)
        problem.assemble(s.unknown(before, after), project=False)
        s.preconditioner.update(s.matrix)
        return problem

    def _solve(self, b: wp.array, x: wp.array, what: str, tolerance: float | None = None) -> None:
        self._solve_symmetric(b, x, what, tolerance)
        contact = self.system.contact
        if contact is None or contact.law.friction == 0.0:
            return
        goal = (tolerance or self.tolerance) * float(np.sqrt(dot(b, b)))
        counted, correction = zeros(len(b), wp.vec3d), zeros(len(b), wp.vec3d)
        for _ in range(MOST_CORRECTIONS):
            grown = self._friction_growth(x, transposed=what == "adjoint")
            rest = self._mix((1.0, -1.0), (grown, counted))
            if float(np.sqrt(dot(rest, rest))) <= goal:
                return
            correction.zero_()
            self._solve_symmetric(rest, correction, what, tolerance)
            combine(x, (1.0, x), (1.0, correction))
            counted = grown
        raise SolverFailure(
            f"The {what} solve failed: friction dominates the step, use a smaller time step."
        )

    def _solve_symmetric(self, b, x, what: str, tolerance: float | None) -> None:
        try:
            super()._solve(b, x, what, tolerance)
        except SolverFailure:
            if self.system.node_count > DIRECT_NODES:
                raise
            x.zero_()
            solution = DirectSolver(self.system.matrix).solve(b, x)
            if not np.isfinite(solution.residual):
                raise

    def _friction_growth(self, x: wp.array, *, transposed: bool) -> wp.array:
        """E x: change of the contact force by the place where the pressure is taken, u' = c x."""
        contact, (before, after) = self.system.contact, self._ends
        assert contact is not None
        scheme, n = self.system.scene.integrator, self.system.node_count
        c = scheme.next_u[0]
        f_new, f_old = scheme.force
        at = (before.u, before.v, after.u, after.u, after.v)
        if transposed:
            out = tuple(zeros(n, wp.vec3d) for _ in range(5))
            add_contact_adjoint(
                contact, at, x, f_new=f_new, f_old=f_old, implicit=c != 0.0, out=out
            )
            grown = self._mix((c,), (out[2],))
        else:
            grown = zeros(n, wp.vec3d)
            still = self._zero
            count = len(contact.obstacles)
            add_contact_tangent(
                contact, at, (still, still, self._mix((c,), (x,)), still, still), f_new=f_new,
                f_old=f_old, implicit=c != 0.0, normal=np.zeros((count, 3)),
                offset=np.zeros(count), stiffness=0.0, out=grown,
            )  # fmt: skip
        keep_free(grown, self.system.matrix.free)
        return grown

    def _solve_batch(self, sides, starts, tolerance: float) -> None:
        contact = self.system.contact
        try:
            if contact is not None and contact.law.friction > 0.0:
                raise SolverFailure("friction has to be corrected for one by one")
            super()._solve_batch(sides, starts, tolerance)
        except SolverFailure:  # one by one, factorised where that is needed and possible
            for b, x in zip(sides, starts, strict=True):
                self._solve(b, x, "tangent", tolerance)

    def _law_change(self, d: Direction) -> np.ndarray | None:
        """Change of the law's parameters, (cells, parameters)."""
        if isinstance(d, LawDirection):
            return d.law if np.any(d.law) else None
        if not (np.any(d.lam) or np.any(d.mu)):
            return None
        by = follow_moduli(self.system)
        return None if by is None else d.lam[:, None] * by[0] + d.mu[:, None] * by[1]

    # forward -----------------------------------------------------------------------------------

    def tangents(self, before, after, changes, directions, *, tolerance=None):
        """Changes of `after` by changes of `before` and of the parameters: one batched solve."""
        s = self.system
        for start, end, scheme in parts_of(before, after, s.scene.integrator):
            with s.using(scheme):
                self._problem = self._linearise(start, end)
                changes = super().tangents(start, end, changes, directions, tolerance=tolerance)
        return changes

    def right_hand_sides(self, before, after, changes, directions):
        """-(dg by the old state and the parameters), for each direction."""
        return [
            self._law_right_hand_side(before, after, change, d)
            for change, d in zip(changes, directions, strict=True)
        ]

    def _law_right_hand_side(
        self, before: State, after: State, change: State, d: Direction
    ) -> wp.array:
        s, q = self.system, self._problem
        scheme = q.scheme
        f_new, f_old = scheme.force
        total = scheme.force_total
        state4 = (s.unknown(before, after), *before.fields())
        fields = change.fields()
        d_u = self._mix(scheme.next_u[1:], fields)
        d_v = self._mix(scheme.next_v[1:], fields)
        b = zeros(s.node_count, wp.vec3d)
        d_p = self._law_change(d)
        s.hyper.add_force_change(after.u, d_u, b, d_p=d_p, factor=-f_new)
        if f_old != 0.0:
            s.hyper.add_force_change(before.u, change.u, b, d_p=d_p, factor=-f_old)
        lam, mu = (to_device(x, wp.float64) for x in (d.lam, d.mu))
        rate = self._mix(q.damping, state4)
        if q.beta > 0.0:
            d_at = self._mix(scheme.predictor, fields)
            keep_free(d_at, s.matrix.free)
            s.hyper.add_viscous_change(
                q.predicted, d_at, rate, self._mix(q.damping[1:], fields), lam, mu, b,
                factor=-q.beta,
            )  # fmt: skip
        if d.stiffness_damping != 0.0:
            s.hyper.add_viscous(q.predicted, rate, b, factor=-d.stiffness_damping)
        if s.hyper.ghost is not None and np.any(d.mu):
            s.hyper.ghost.add_force_by_shear(
                self._ghosted(before, after, rate), mu, b, factor=-1.0
            )
        if s.walls is not None:
            d_w = self._mix(q.stiff[1:], fields)
            if d.stiffness_damping != 0.0:
                combine(d_w, (1.0, d_w), (d.stiffness_damping, rate))
            s.walls.add_force(d_w, b, factor=-1.0)
            self._add_host(
                b, self._walls.tangent(self._mix(q.stiff, state4).numpy(), before.t, d)
            )
        m_change = self._mix(q.mass[1:], fields)
        if d.mass_damping != 0.0:
            combine(m_change, (1.0, m_change), (d.mass_damping, rate))
        s.add_inertia(m_change, b, -1.0)
        if np.any(d.mass) or np.any(d.gravity):
            g = vector3("gravity", s.scene.gravity)
            m_total = self._mix(q.mass, state4)
            host = d.mass[:, None] * (total * g - m_total.numpy())
            host = host + total * s.mass_host[:, None] * d.gravity
            ghost = s.inertia_per_mass(m_total)
            if ghost is not None:
                host -= d.mass.sum() * ghost
            self._add_host(b, host)
        if s.contact is not None:
            add_contact_tangent(
                s.contact, (before.u, before.v, after.u, after.u, after.v),
                (change.u, change.v, d_u, d_u, d_v),
                f_new=f_new, f_old=f_old, implicit=scheme.next_u[0] != 0.0,
                normal=d.normal, offset=d.offset, stiffness=d.contact_stiffness, out=b,
            )  # fmt: skip
        keep_free(b, s.matrix.free)
        return b

    def _ghosted(self, before: State, after: State, rate: wp.array) -> wp.array:
        """The field that the ghost penalty acts on in a step."""
        f_new, f_old = self.system.scene.integrator.force
        return self._mix(
            (f_new, f_old, self.system.material.stiffness_damping), (after.u, before.u, rate)
        )

    def _force_tangents(self, state, d_v, directions):
        """Changes of the total force at the initial state, d_v those of its velocity."""
        pairs = zip(d_v, directions, strict=True)
        return [self._law_force_tangent(state, velocity, d) for velocity, d in pairs]

    def _law_force_tangent(self, state: State, d_v: wp.array, d: Direction) -> wp.array:
        s = self.system
        beta = s.material.stiffness_damping
        b = zeros(s.node_count, wp.vec3d)
        s.hyper.add_force_change(
            state.u, self._zero, b, d_p=self._law_change(d), factor=-1.0
        )
        lam, mu = (to_device(x, wp.float64) for x in (d.lam, d.mu))
        if beta > 0.0:
            s.hyper.add_viscous_change(
                state.u, self._zero, state.v, d_v, lam, mu, b, factor=-beta
            )
        if d.stiffness_damping != 0.0:
            s.hyper.add_viscous(state.u, state.v, b, factor=-d.stiffness_damping)
        w = self._mix((1.0, beta), (state.u, state.v))
        if s.hyper.ghost is not None:
            s.hyper.ghost.add_force_by_shear(w, mu, b, factor=-1.0)
        if s.contact is not None:
            add_contact_tangent(
                s.contact, (state.u, state.v, state.u, state.u, state.v),
                (self._zero, d_v, self._zero, self._zero, d_v),
                f_new=1.0, f_old=0.0, implicit=False, normal=d.normal, offset=d.offset,
                stiffness=d.contact_stiffness, out=b,
            )  # fmt: skip
        return b

    # backward ----------------------------------------------------------------------------------

    def adjoint(self, before: State, after: State, bar: State, dual: Direction) -> State:
        """Dual of `before` from that of `after`; adds the parameters' share to `dual`."""
        s = self.system
        for start, end, scheme in reversed(parts_of(before, after, s.scene.integrator)):
            with s.using(scheme):
                bar = self._adjoint_of_part(start, end, bar, dual)
        return bar

    def _adjoint_of_part(self, before: State, after: State, bar: State, dual: Direction) -> State:
        s = self.system
        q = self._linearise(before, after)
        scheme, n = q.scheme, s.node_count
        f_new, f_old = scheme.force
        total = scheme.force_total
        rows = (scheme.next_u, scheme.next_v, scheme.next_a)
        x_bar = self._mix([r[0] for r in rows], bar.fields())
        keep_free(x_bar, s.matrix.free)
        y = self._y
        y.zero_()
        self._solve(x_bar, y, "adjoint")
        state4 = (s.unknown(before, after), *before.fields())
        rate = self._mix(q.damping, state4)
        u_bar, v_bar, turned_bar, base_u_bar, base_v_bar, at_bar, rate_bar, w_bar = (
            zeros(n, wp.vec3d) for _ in range(8)
        )
        s.hyper.add_force_change(after.u, y, base_u_bar, factor=-f_new)
        if f_old != 0.0:
            s.hyper.add_force_change(before.u, y, u_bar, factor=-f_old)
        self._pull_law(after.u, before.u, y, f_new, f_old, dual)
        mu_bar = zeros(len(s.lam), wp.float64)
        visc = zeros(n, wp.vec3d)
        s.hyper.add_viscous(q.predicted, rate, visc)
        y_host = y.numpy()
        dual.stiffness_damping -= float(np.sum(y_host * visc.numpy()))
        if q.beta > 0.0:
            s.hyper.add_viscous(q.predicted, y, rate_bar, factor=-q.beta)
            by_lam, by_mu = s.hyper.viscous_pull(
                q.predicted, rate, y, factor=-q.beta, at_bar=at_bar
            )
            keep_free(at_bar, s.matrix.free)
            self._add_moduli(dual, by_lam, by_mu)
        if s.hyper.ghost is not None:
            minus_y = self._mix((-1.0,), (y,))
            s.hyper.ghost.add_shear_adjoint(self._ghosted(before, after, rate), minus_y, mu_bar)
            dual.mu += mu_bar.numpy()
        host4 = [f.numpy() for f in state4]
        damped = sum(c * f for c, f in zip(q.damping, host4, strict=True))
        if s.walls is not None:
            s.walls.add_force(y, w_bar, factor=-1.0)
            self._walls.add_adjoint(self._mix(q.stiff, state4).numpy(), before.t, y_host, dual)
            dual.stiffness_damping += float(np.sum(w_bar.numpy() * damped))
        damped_inertia = zeros(n, wp.vec3d)
        s.add_inertia(to_device(np.asarray(damped), wp.vec3d), damped_inertia, 1.0)
        dual.mass_damping -= float(np.sum(y_host * damped_inertia.numpy()))
        m_total = np.asarray(sum(c * f for c, f in zip(q.mass, host4, strict=True)))
        g = vector3("gravity", s.scene.gravity)
        dual.mass += np.sum(y_host * (total * g - m_total), axis=1)
        ghost = s.inertia_per_mass(to_device(m_total, wp.vec3d))
        if ghost is not None:
            dual.mass -= np.sum(y_host * ghost)
        dual.gravity += total * (s.mass_host @ y_host)
        if s.contact is not None:
            c = add_contact_adjoint(
                s.contact, (before.u, before.v, after.u, after.u, after.v), y,
                f_new=f_new, f_old=f_old, implicit=scheme.next_u[0] != 0.0,
                out=(u_bar, v_bar, turned_bar, base_u_bar, base_v_bar),
            )  # fmt: skip
            combine(base_u_bar, (1.0, base_u_bar), (1.0, turned_bar))
            dual.normal += c.normal
            dual.offset += c.offset
            dual.contact_stiffness += c.stiffness
        out = []
        for z in range(3):
            field = self._mix([r[z + 1] for r in rows], bar.fields())
            s.add_inertia(y, field, -q.mass[z + 1])
            combine(
                field, (1.0, field), (scheme.next_u[z + 1], base_u_bar),
                (scheme.next_v[z + 1], base_v_bar), (scheme.predictor[z], at_bar),
            )  # fmt: skip
            combine(
                field, (1.0, field), (q.damping[z + 1], rate_bar), (q.stiff[z + 1], w_bar)
            )
            out.append(field)
        combine(out[0], (1.0, out[0]), (1.0, u_bar))
        combine(out[1], (1.0, out[1]), (1.0, v_bar))
        return State(out[0], out[1], out[2], before.t)

    def _pull_law(self, u_new, u_old, y, f_new, f_old, dual: Direction) -> None:
        s = self.system
        by = s.hyper.parameter_pull(u_new, y, factor=-f_new)
        if f_old != 0.0:
            by = by + s.hyper.parameter_pull(u_old, y, factor=-f_old)
        if isinstance(dual, LawDirection):
            dual.law += by
        followed = follow_moduli(s)
        if followed is not None:
            dual.lam += np.sum(by * followed[0], axis=1)
            dual.mu += np.sum(by * followed[1], axis=1)

    def _add_moduli(self, dual: Direction, lam: np.ndarray, mu: np.ndarray) -> None:
        dual.lam += lam
        dual.mu += mu

    def _force_adjoint(self, state: State, y: wp.array, dual: Direction) -> np.ndarray:
        """Share of the velocity in y . (- force of the law - viscous); the parameters' too."""
        s, n = self.system, self.system.node_count
        beta = s.material.stiffness_damping
        self._pull_law(state.u, state.u, y, 1.0, 0.0, dual)
        rate_bar, at_bar, visc = (zeros(n, wp.vec3d) for _ in range(3))
        s.hyper.add_viscous(state.u, state.v, visc)
        dual.stiffness_damping -= float(np.sum(y.numpy() * visc.numpy()))
        if beta > 0.0:
            s.hyper.add_viscous(state.u, y, rate_bar, factor=-beta)
            self._add_moduli(
                dual, *s.hyper.viscous_pull(state.u, state.v, y, factor=-beta, at_bar=at_bar)
            )
        w = self._mix((1.0, beta), (state.u, state.v))
        if s.hyper.ghost is not None:
            mu_bar = zeros(len(s.lam), wp.float64)
            s.hyper.ghost.add_shear_adjoint(w, self._mix((-1.0,), (y,)), mu_bar)
            dual.mu += mu_bar.numpy()
        return rate_bar.numpy()


def step_derivatives(system: System) -> StepDerivatives:
    """The derivatives that suit a system; use with `system.cached`."""
    if isinstance(system, LawSystem):
        return LawStepDerivatives(system)
    return StepDerivatives(system)


def zero_dual(system: System) -> Direction:
    """A dual to add to."""
    if isinstance(system, LawSystem):
        return LawDirection.of(system)
    obstacles = len(system.contact.obstacles) if system.contact is not None else 0
    return Direction.zero(len(system.lam), system.node_count, obstacles)
