"""Friction of a barrier: pressures and tangent planes of a step's start, velocity of its end.

Of each contact, tau = G v is the sliding velocity in its two tangents, N the force that presses,

    force = -mu N f(y) / |tau| G^T tau,   y = |tau| / slip_speed,   f = 2 y - y^2, 1 beyond y = 1

(Li et al. 2020, section 5). N and G stay through the step, so the force has a potential.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

CALM = 0.5
"""Share of what friction loses by the growing speed in tangents far from the end: with the whole of
it points that slide go as if nothing held them, and Newton's steps overshoot."""


@dataclass(frozen=True, eq=False)
class LaggedFriction:
    """G: (2 n, 3 points), both tangents of a contact one after the other; most: (n,) mu N [N]."""

    G: sparse.csr_matrix
    most: np.ndarray
    slip_speed: float

    def __len__(self) -> int:
        return len(self.most)

    def _sliding(self, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """tau (n, 2), its length, and force over speed (n,)."""
        tau = (self.G @ v.reshape(-1)).reshape(-1, 2)
        speed = np.sqrt((tau * tau).sum(axis=1))
        y = np.minimum(speed / self.slip_speed, 1.0)
        return tau, speed, self.most * (2.0 - y) / np.maximum(speed, self.slip_speed)

    def gradient(self, v: np.ndarray) -> np.ndarray:
        """Minus the forces on the points, (3 points,), at their velocity v (points, 3)."""
        tau, _, c = self._sliding(v)
        return self.G.T @ (c[:, None] * tau).reshape(-1)

    def hessian(self, v: np.ndarray, share: float = 1.0) -> Any:
        """Of the potential, (3 points, 3 points); share: of what the growing speed takes away."""
        tau, speed, c = self._sliding(v)
        y = np.minimum(speed / self.slip_speed, 1.0)
        along = self.most * 2.0 * (1.0 - y) / self.slip_speed
        lost = share * (c - along) / np.maximum(speed, 1e-100) ** 2
        blocks = c[:, None, None] * np.eye(2) - lost[:, None, None] * tau[:, :, None] * tau[:, None]
        n = np.arange(len(self))
        middle = sparse.bsr_matrix((blocks, n, np.arange(len(n) + 1)), (2 * len(n), 2 * len(n)))
        return (self.G.T @ middle @ self.G).tocsr()


def lagged_friction(found: Any, mesh: Any, slip_speed: float) -> LaggedFriction:
    """Of the toolkit's TangentialCollisions."""
    edges, faces = mesh.edges, mesh.faces
    rows, columns, values = [], [], []
    most = np.empty(len(found))
    for k in range(len(found)):
        one = found[k]
        own = [i for i in one.vertex_ids(edges, faces) if i >= 0]
        G = one.tangent_basis.T @ one.relative_velocity_jacobian()
        most[k] = one.mu_k * one.weight * one.normal_force_magnitude
        dofs = (3 * np.array(own)[:, None] + np.arange(3)).reshape(-1)
        rows.append(np.repeat([2 * k, 2 * k + 1], len(dofs)))
        columns.append(np.tile(dofs, 2))
        values.append(G.reshape(-1))
    entries = np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))
    G = sparse.csr_matrix(entries, (2 * len(found), 3 * mesh.num_vertices))
    return LaggedFriction(G, most, slip_speed)
