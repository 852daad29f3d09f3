"""Derivatives of one time step: forward along directions, and backward from a cost.

A step is g(x; u, v, a, parameters) = 0 with g of dynamics.system, linear in x with the symmetric
matrix A. Never the matrix, only forces are differentiated:

tangent   A dx = - (dg by the old state and the parameters), then (du', dv', da') from the table;
adjoint   A y = x_bar, then every dual is - y^T (dg by it).

Both need `system.prepare(before)` to have been called, so that rotations, contact and matrix are
those of the step.
"""

import numpy as np
import warp as wp

from pliant.core.errors import SolverFailure
from pliant.core.launch import column, to_device, zeros
from pliant.dynamics.contact_derivatives import add_contact_adjoint, add_contact_tangent
from pliant.dynamics.scene import vector3
from pliant.dynamics.system import State, System
from pliant.inverse.direction import Direction
from pliant.inverse.initial_derivatives import InitialDerivatives
from pliant.linalg.batched import BatchedConjugateGradients
from pliant.linalg.blocks import combine, keep_free
from pliant.linalg.multigrid import Multigrid
from pliant.linalg.pcg import Tolerance
from pliant.linalg.recent import RecentErrors

LARGEST_BATCH = 8
"""Tangents solved at once: beyond it the vectors no longer fit the cache beside the matrix."""


class StepDerivatives(InitialDerivatives):
    """Tangent and adjoint of the steps of one system."""

    def __init__(self, system: System, *, tolerance: float | None = None):
        super().__init__(system)
        self.tolerance = tolerance or system.scene.tolerance
        n = system.node_count
        self._y, self._z, self._product = (zeros(n, wp.vec3d) for _ in range(3))
        self._batched: dict[int, BatchedConjugateGradients] = {}
        multigrid = isinstance(system.preconditioner, Multigrid)
        self._recent = RecentErrors(n) if multigrid else None
        self._backward_tolerance: float | None = None

    # forward -----------------------------------------------------------------------------------

    def tangents(
        self,
        before: State,
        after: State,
        changes: list[State],
        directions: list[Direction],
        *,
        tolerance: float | None = None,
    ) -> list[State]:
        """Changes of `after` by changes of `before` and of the parameters: one batched solve."""
        if not directions:
            return []
        s, tolerance = self.system, tolerance or self.tolerance
        scheme = s.scene.integrator
        sides = self.right_hand_sides(before, after, changes, directions)
        starts = [self._start(scheme, change) for change in changes]
        if len(sides) == 1 or not isinstance(s.preconditioner, Multigrid):
            for b, dx in zip(sides, starts, strict=True):
                self._solve(self._mix((1.0,), (b,)), dx, "tangent", tolerance)
        else:
            for first in range(0, len(sides), LARGEST_BATCH):
                part = slice(first, first + LARGEST_BATCH)
                self._solve_batch(sides[part], starts[part], tolerance)
        return [
            self.advance_tangent(scheme, change, dx, after.t)
            for change, dx in zip(changes, starts, strict=True)
        ]

    def _start(self, scheme, change: State) -> wp.array:
        """First guess of dx, as in the step itself."""
        x = self._mix(scheme.first_guess, change.fields())
        keep_free(x, self.system.matrix.free)
        return x

    def _solve_batch(
        self, sides: list[wp.array], starts: list[wp.array], tolerance: float
    ) -> None:
        s, k = self.system, len(sides)
        assert isinstance(s.preconditioner, Multigrid)
        if k not in self._batched:
            self._batched[k] = BatchedConjugateGradients(s.matrix, s.preconditioner, k)
        b, x = (
            to_device(np.stack([f.numpy() for f in group], axis=1), wp.vec3d)
            for group in (sides, starts)
        )
        for found in self._batched[k].solve(b, x, Tolerance(relative=tolerance)):
            if not found.outcome.ok and found.residual > 1e3 * found.target:
                raise SolverFailure(f"The tangent solve failed: {found.outcome.value}.")
        solved = x.numpy()
        for j, start in enumerate(starts):
            start.assign(np.ascontiguousarray(solved[:, j]))

    def advance_tangent(self, scheme, change: State, dx: wp.array, t: float) -> State:
        """(du', dv', da') of the table."""
        out = []
        for weights in (scheme.next_u, scheme.next_v, scheme.next_a):
            field = wp.empty_like(dx)
            combine(field, (weights[0], dx), *zip(weights[1:], change.fields(), strict=True))
            out.append(field)
        return State(out[0], out[1], out[2], t)

    def right_hand_sides(
        self, before: State, after: State, changes: list[State], directions: list[Direction]
    ) -> list[wp.array]:
        """-(dg by the old state and the parameters), for each direction."""
        s = self.system
        scheme, material = s.scene.integrator, s.material
        state4 = (s.unknown(before, after), *before.fields())
        w = self._mix(scheme.stiffness_weights(material.stiffness_damping), state4)
        d_turned = zeros((s.node_count, len(directions)), wp.vec3d)
        for j, change in enumerate(changes):
            combine(column(d_turned, j), *zip(scheme.predictor, change.fields(), strict=True))
        b = self._elastic_tangents(w, scheme.force_total, s.predicted, d_turned, directions)
        return [
            self._right_hand_side(before, after, state4, w, *own, column(d_turned, j), column(b, j))
            for j, own in enumerate(zip(changes, directions, strict=True))
        ]

    def _right_hand_side(
        self, before: State, after: State, state4: tuple[wp.array, ...], w: wp.array,
        change: State, d: Direction, d_turned: wp.array, b: wp.array,
    ) -> wp.array:
        """One of them; b: its share by rotations and moduli, added to and returned."""
        s = self.system
        scheme, material = s.scene.integrator, s.material
        mass = scheme.mass_weights(material.mass_damping)
        stiff = scheme.stiffness_weights(material.stiffness_damping)
        damping = _damping_weights(scheme)
        f_new, f_old = scheme.force
        total = scheme.force_total

        d_w = self._z
        combine(d_w, *zip(stiff[1:], change.fields(), strict=True))
        if d.stiffness_damping != 0.0:
            combine(d_w, (1.0, d_w), (d.stiffness_damping, self._mix(damping, state4)))
        self._add_stiffness(d_w, b, -1.0)
        if s.walls is not None:
            self._add_host(b, self._walls.tangent(w.numpy(), before.t, d))
        # inertia, and gravity in the same breath: -(M m + dM m_total) + total (M dg + dM g)
        m_change = self._mix(mass[1:], change.fields())
        if d.mass_damping != 0.0:
            combine(m_change, (1.0, m_change), (d.mass_damping, self._mix(damping, state4)))
        s.add_inertia(m_change, b, -1.0)
        if np.any(d.mass) or np.any(d.gravity):
            g = vector3("gravity", s.scene.gravity)
            m_total = self._mix(mass, state4)
            host = d.mass[:, None] * (total * g - m_total.numpy())
            host = host + total * s.mass_host[:, None] * d.gravity
            ghost = s.inertia_per_mass(m_total)
            if ghost is not None:
                host -= d.mass.sum() * ghost
            self._add_host(b, host)
        if s.contact is not None:
            d_base_u = self._mix(scheme.next_u[1:], change.fields())
            d_base_v = self._mix(scheme.next_v[1:], change.fields())
            add_contact_tangent(
                s.contact,
                (before.u, before.v, s.predicted, after.u, after.v),
                (change.u, change.v, d_turned, d_base_u, d_base_v),
                f_new=f_new, f_old=f_old, implicit=scheme.next_u[0] != 0.0,
                normal=d.normal, offset=d.offset, stiffness=d.contact_stiffness, out=b,
            )  # fmt: skip
        keep_free(b, s.matrix.free)
        return b

    # backward ----------------------------------------------------------------------------------

    def begin_adjoint(self, tolerance: float | None = None) -> None:
        """A backward run begins: its solves start from nothing that came before.

        tolerance: of its solves, the scene's own unless told.
        """
        self._backward_tolerance = tolerance
        if self._recent is not None:
            self._recent.forget()

    def adjoint(self, before: State, after: State, bar: State, dual: Direction) -> State:
        """Dual of `before` from that of `after`; adds the parameters' share to `dual`."""
        s = self.system
        scheme, material = s.scene.integrator, s.material
        n = s.node_count
        rows = (scheme.next_u, scheme.next_v, scheme.next_a)
        x_bar = self._mix([r[0] for r in rows], bar.fields())
        keep_free(x_bar, s.matrix.free)
        y = self._y
        y.zero_()
        square = None
        if self._recent is not None:  # y changes as smoothly from step to step as x does
            square = self._recent.improve(s.matrix, x_bar, y, s.solver.residual)
        self._solve(x_bar, y, "adjoint", self._backward_tolerance, square=square)
        if self._recent is not None:
            self._recent.remember(s.matrix, y, (0.0, 0.0, 0.0), (y, y, y))

        x = s.unknown(before, after)
        mass = scheme.mass_weights(material.mass_damping)
        stiff = scheme.stiffness_weights(material.stiffness_damping)
        damping = _damping_weights(scheme)
        state4 = (x, *before.fields())
        f_new, f_old = scheme.force
        total = scheme.force_total
        w = self._mix(stiff, state4)

        minus_y = wp.empty_like(y)
        combine(minus_y, (-1.0, y))
        lam_bar, mu_bar = (zeros(len(s.lam), wp.float64) for _ in range(2))
        turned_bar, w_bar, u_bar, v_bar, base_u_bar, base_v_bar = (
            zeros(n, wp.vec3d) for _ in range(6)
        )
        s.elasticity.add_force_adjoint(
            w, total, s.predicted, minus_y, lam_bar, mu_bar, turned_bar
        )
        dual.lam += lam_bar.numpy()
        dual.mu += mu_bar.numpy()
        y_host = y.numpy()
        self._add_stiffness(y, w_bar, -1.0)
        if s.walls is not None:
            self._walls.add_adjoint(w.numpy(), before.t, y_host, dual)
        host4 = [f.numpy() for f in state4]
        damped = np.asarray(sum(c * f for c, f in zip(damping, host4, strict=True)))
        dual.stiffness_damping += float(np.sum(w_bar.numpy() * damped))
        damped_inertia = zeros(n, wp.vec3d)
        s.add_inertia(to_device(damped, wp.vec3d), damped_inertia, 1.0)
        dual.mass_damping -= float(np.sum(y_host * damped_inertia.numpy()))
        m_total = np.asarray(sum(c * f for c, f in zip(mass, host4, strict=True)))
        g = vector3("gravity", s.scene.gravity)
        dual.mass += np.sum(y_host * (total * g - m_total), axis=1)
        ghost = s.inertia_per_mass(to_device(m_total, wp.vec3d))
        if ghost is not None:
            dual.mass -= np.sum(y_host * ghost)
        dual.gravity += total * (s.mass_host @ y_host)
        if s.contact is not None:
            c = add_contact_adjoint(
                s.contact,
                (before.u, before.v, s.predicted, after.u, after.v),
                y,
                f_new=f_new, f_old=f_old, implicit=scheme.next_u[0] != 0.0,
                out=(u_bar, v_bar, turned_bar, base_u_bar, base_v_bar),
            )  # fmt: skip
            dual.normal += c.normal
            dual.offset += c.offset
            dual.contact_stiffness += c.stiffness

        out = []
        for z in range(3):
            field = self._mix([r[z + 1] for r in rows], bar.fields())
            s.add_inertia(y, field, -mass[z + 1])
            combine(
                field, (1.0, field), (stiff[z + 1], w_bar), (scheme.predictor[z], turned_bar),
                (scheme.next_u[z + 1], base_u_bar),
            )  # fmt: skip
            combine(field, (1.0, field), (scheme.next_v[z + 1], base_v_bar))
            out.append(field)
        combine(out[0], (1.0, out[0]), (1.0, u_bar))
        combine(out[1], (1.0, out[1]), (1.0, v_bar))
        return State(out[0], out[1], out[2], before.t)

    # parts -------------------------------------------------------------------------------------

    def _add_stiffness(self, z: wp.array, out: wp.array, factor: float) -> None:
        """out += factor * (K + walls) z, from the matrix of the step where that holds them.

        z: an array that lasts, for the matrix remembers what it multiplies.
        """
        s = self.system
        scheme, material = s.scene.integrator, s.material
        in_matrix = scheme.stiffness_weights(material.stiffness_damping)[0]
        if in_matrix == 0.0:  # an explicit scheme
            s.elasticity.add_force(z, 0.0, out, factor=factor)
            if s.walls is not None:
                s.walls.add_force(z, out, factor=factor)
            return
        s.matrix.multiply(z, self._product, masked=False)
        share = factor / in_matrix
        combine(out, (1.0, out), (share, self._product))
        s.add_inertia(z, out, -share * scheme.mass_weights(material.mass_damping)[0])
        if s.contact is not None:
            s.contact.add_product(z, out, factor=-share)

    def _solve(
        self,
        b: wp.array,
        x: wp.array,
        what: str,
        tolerance: float | None = None,
        *,
        square: float | None = None,
    ) -> None:
        goal = Tolerance(relative=tolerance or self.tolerance)
        solution = self.system.solver.solve(b, x, goal, square=square)
        if not solution.outcome.ok and solution.residual > 1e3 * solution.target:
            raise SolverFailure(f"The {what} solve failed: {solution.outcome.value}.")


def _damping_weights(scheme) -> np.ndarray:
    """Weights of D in the residual for (x, u, v, a)."""
    return np.array([scheme.system[1], *[-row[1] for row in scheme.history]])
