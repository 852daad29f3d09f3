"""Derivatives of the initial state by the parameters: tangents along directions, and the adjoint.

The initial acceleration balances the forces on the body at rest or set in motion (System.
initial_state), so it moves with the moduli, masses, damping, gravity, contact and velocity.
"""

import numpy as np
import warp as wp

from pliant.core.launch import column, to_device, zeros
from pliant.dynamics.contact_derivatives import add_contact_adjoint, add_contact_tangent
from pliant.dynamics.system import State, System
from pliant.inverse.direction import Direction
from pliant.inverse.wall_derivatives import WallDerivatives
from pliant.linalg.blocks import combine


class InitialDerivatives:
    """Tangent and adjoint of a system's initial state."""

    def __init__(self, system: System):
        self.system = system
        self._zero = zeros(system.node_count, wp.vec3d)
        self._walls = WallDerivatives(system)

    def initial_tangents(self, state: State, directions: list[Direction]) -> list[State]:
        """Changes of the initial state (see System.initial_state)."""
        s = self.system
        velocities = [to_device(s.boundary.compatible(d.velocity), wp.vec3d) for d in directions]
        forces = self._force_tangents(state, velocities, directions) if directions else []
        push = s.initial_push(state)
        out = []
        for d, velocity, force in zip(directions, velocities, forces, strict=True):
            heavier = s.starting_mass_change(d.mass)[:, None]
            a = force.numpy() - heavier * push
            a = a / s.starting_mass()[:, None] + d.gravity
            a -= s.material.mass_damping * velocity.numpy() + d.mass_damping * state.v.numpy()
            a = to_device(s.boundary.compatible(a), wp.vec3d)
            out.append(State(zeros(s.node_count, wp.vec3d), velocity, a, state.t))
        return out

    def initial_adjoint(self, state: State, bar: State, dual: Direction) -> None:
        """Parameters' share of the initial state's dual: the transpose of `initial_tangents`."""
        s = self.system
        compatible = s.boundary.compatible  # symmetric
        a_bar = compatible(bar.a.numpy())
        v_bar = bar.v.numpy() - s.material.mass_damping * a_bar
        f_bar = a_bar / s.starting_mass()[:, None]
        dual.mass -= s.starting_mass_pull(np.sum(f_bar * s.initial_push(state), axis=1))
        dual.mass_damping -= float(np.sum(a_bar * state.v.numpy()))
        dual.gravity += a_bar.sum(axis=0)
        y = to_device(f_bar, wp.vec3d)
        v_bar = v_bar + self._force_adjoint(state, y, dual) + self._touch_adjoint(state, y, dual)
        dual.velocity += compatible(v_bar)

    def _force_adjoint(self, state: State, y: wp.array, dual: Direction) -> np.ndarray:
        """Velocity's share, (nodes, 3), in - y . elastic(u + beta v); the parameters' to dual."""
        s = self.system
        beta = s.material.stiffness_damping
        w = self._mix((1.0, beta), (state.u, state.v))
        lam_bar, mu_bar = (zeros(len(s.lam), wp.float64) for _ in range(2))
        turned_bar, w_bar = (zeros(s.node_count, wp.vec3d) for _ in range(2))
        s.elasticity.rotate(state.u)
        minus = self._mix((-1.0,), (y,))
        s.elasticity.add_force_adjoint(w, 1.0, state.u, minus, lam_bar, mu_bar, turned_bar)
        s.elasticity.add_force(y, 0.0, w_bar, factor=-1.0)
        dual.lam += lam_bar.numpy()
        dual.mu += mu_bar.numpy()
        dual.stiffness_damping += float(np.sum(w_bar.numpy() * state.v.numpy()))
        return beta * w_bar.numpy()

    def _touch_adjoint(self, state: State, y: wp.array, dual: Direction) -> np.ndarray | float:
        """The same of y . contact."""
        s = self.system
        if s.contact is None:
            return 0.0
        out = tuple(zeros(s.node_count, wp.vec3d) for _ in range(5))
        c = add_contact_adjoint(
            s.contact, (state.u, state.v, state.u, state.u, state.v), y,
            f_new=1.0, f_old=0.0, implicit=False, out=out,
        )  # fmt: skip
        dual.normal += c.normal
        dual.offset += c.offset
        dual.contact_stiffness += c.stiffness
        return out[1].numpy() + out[4].numpy()  # by v, and by the v that x = 0 would leave

    def _force_tangents(
        self, state: State, d_v: list[wp.array], directions: list[Direction]
    ) -> list[wp.array]:
        """Changes of the total force at the initial state, d_v those of its velocity."""
        s = self.system
        w = self._mix((1.0, s.material.stiffness_damping), (state.u, state.v))
        s.elasticity.rotate(state.u)
        still = zeros((s.node_count, len(directions)), wp.vec3d)
        b = self._elastic_tangents(w, 1.0, state.u, still, directions)
        forces = [column(b, j) for j in range(len(directions))]
        for own in zip(forces, d_v, directions, strict=True):
            self._add_initial_tangent(state, *own)
        return forces

    def _add_initial_tangent(
        self, state: State, b: wp.array, d_v: wp.array, d: Direction
    ) -> None:
        """b += change of the initial force other than by rotations and moduli."""
        s = self.system
        if np.any(d.velocity) or d.stiffness_damping != 0.0:
            weights = (s.material.stiffness_damping, d.stiffness_damping)
            d_w = self._mix(weights, (d_v, state.v))
            s.elasticity.add_force(d_w, 0.0, b, factor=-1.0)
        if s.contact is not None:
            add_contact_tangent(
                s.contact, (state.u, state.v, state.u, state.u, state.v),
                (self._zero, d_v, self._zero, self._zero, d_v),
                f_new=1.0, f_old=0.0, implicit=False, normal=d.normal, offset=d.offset,
                stiffness=d.contact_stiffness, out=b,
            )  # fmt: skip

    # parts -------------------------------------------------------------------------------------

    def _elastic_tangents(
        self, w: wp.array, s_total: float, turned: wp.array, d_turned: wp.array,
        directions: list[Direction],
    ) -> wp.array:
        """Changes of minus the elastic force by those of the rotations and of the moduli.

        d_turned and the result: (nodes, directions).
        """
        out = wp.zeros_like(d_turned)
        lam, mu = (
            to_device(np.stack(part, axis=1), wp.float64)
            for part in ([d.lam for d in directions], [d.mu for d in directions])
        )
        self.system.elasticity.add_force_tangents(
            w, s_total, turned, d_turned, lam, mu, out, factor=-1.0
        )
        return out

    def _mix(self, weights, fields) -> wp.array:
        out = zeros(fields[0].shape, wp.vec3d)  # contiguous, as a column is not
        combine(out, *zip([float(c) for c in weights], fields, strict=True))
        return out

    def _add_host(self, b: wp.array, host: np.ndarray) -> None:
        combine(b, (1.0, b), (1.0, to_device(host, wp.vec3d)))
