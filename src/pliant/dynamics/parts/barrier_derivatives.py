"""A barrier through one step that was taken: how its forces change, and transposed.

The forces on the nodes (dynamics.parts.barrier) are

    F = -P^T (f_new B'(X + P u') + f_old B'(X + P u) + (f_new + f_old) R(v'; u)),

R of friction by the velocity at the end and the contacts at the start. All of it is proportional to
the stiffness. The matrices are the toolkit's exact ones.
"""

from typing import Any

import numpy as np
from scipy import sparse

from pliant.dynamics.parts.barrier import BarrierBetween
from pliant.dynamics.parts.between_derivatives import Pulled
from pliant.dynamics.parts.collision_surface import toolkit


class BarrierDerivatives:
    """At displacement u and velocity v (nodes, 3) of the step's end."""

    def __init__(self, between: BarrierBetween, u: np.ndarray, v: np.ndarray):
        b = between.barrier
        surface, mesh = b.surface, b.surface.mesh
        self.P = sparse.kron(surface.P, sparse.identity(3), format="csr")
        f_new, f_old = between.force
        at = surface.at(u)
        self.by_u = f_new * b.potential.hessian(between.close.pairs(at), mesh, at)
        points = self.by_u.shape[0]
        self.by_v: Any = sparse.csr_matrix((points, points))
        self.by_old: Any = sparse.csr_matrix((points, points))
        if f_old != 0.0:
            was = between.start
            self.by_old = f_old * b.potential.hessian(between.close.pairs(was), mesh, was)
        if between.rubs is not None:
            rate, total = surface.P @ v, f_new + f_old
            kinds = toolkit().FrictionPotential.DiffWRT
            self.by_v = total * between.rubs.hessian(rate)
            self.by_old = self.by_old - total * b.rubbing.force_jacobian(
                between.contacts, mesh, surface.rest, between.start - surface.rest, rate,
                b.potential, kinds.LAGGED_DISPLACEMENTS,
            )  # fmt: skip
        self.per_stiffness = between.forces(u, v) / b.stiffness

    def _through(self, H: Any, x: np.ndarray) -> np.ndarray:
        """P^T H P x for x (nodes, 3)."""
        return (self.P.T @ (H @ (self.P @ x.reshape(-1)))).reshape(-1, 3)

    def change(
        self, next_u: np.ndarray, next_v: np.ndarray, u: np.ndarray, stiffness: np.ndarray
    ) -> np.ndarray:
        """Of the forces on the nodes (nodes, 3); stiffness: (1,)."""
        pairs = (self.by_u, next_u), (self.by_v, next_v), (self.by_old, u)
        return self.per_stiffness * stiffness[0] - sum(self._through(H, x) for H, x in pairs)

    def pull(self, y: np.ndarray) -> Pulled:
        """The transpose of `change` for y (nodes, 3)."""
        by_u, by_v, by_old = (
            -self._through(H.T, y) for H in (self.by_u, self.by_v, self.by_old)
        )  # fmt: skip
        return Pulled(by_u, by_v, by_old, np.array([np.sum(self.per_stiffness * y)]))

    def matrix(self, u_per_x: float, v_per_x: float) -> sparse.csr_matrix:
        """Of minus the forces by the step's unknown, (3 nodes, 3 nodes)."""
        return (self.P.T @ (u_per_x * self.by_u + v_per_x * self.by_v) @ self.P).tocsr()
