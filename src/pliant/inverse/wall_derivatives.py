"""How the walls' forces change with the moduli of their cells, and with stiffness damping.

A wall is held by Nitsche's method (fem.walls): the force -(W w - load) at the displacement w, with
W and the load of the given displacement linear in lambda and mu of the wall's own cell.
"""

import numpy as np

from pliant.dynamics.system import System
from pliant.inverse.direction import Direction

MOST_KEPT = 64
"""Directions whose changes are kept: those of one fit by tangents. A fit of a field meets a new
direction with every product, and would keep them all."""


class WallDerivatives:
    """Tangent and adjoint of the walls' forces by the material, on the host."""

    def __init__(self, system: System):
        self.system = system
        self._changes: dict[int, tuple[Direction, np.ndarray]] = {}

    def _load_weights(self, t: float) -> list[tuple[float, float]]:
        """(weight, time) of the wall data in the residual."""
        scheme = self.system.scene.integrator
        return [(scheme.force[0], t + scheme.dt), (scheme.force[1], t)]

    def tangent(self, w: np.ndarray, t: float, d: Direction) -> np.ndarray:
        """-(dW w - d load), (nodes, 3), along d."""
        s = self.system
        walls = s.boundary.walls
        assert walls is not None
        cells = s.scene.body.cells[walls.cell]
        out = np.zeros((s.node_count, 3))
        dl, dm = d.lam[walls.cell], d.mu[walls.cell]
        if np.any(dl) or np.any(dm):
            k = cells.shape[1]
            change = self._change(d, dl, dm)
            wc = w[cells].reshape(len(cells), 3 * k, 1)
            f = np.matmul(change, wc).reshape(len(cells), k, 3)
            for weight, time in self._load_weights(t):
                given = s.wall_data(time)
                if weight != 0.0 and np.any(given):
                    l_lam, l_mu = walls.loads_per_modulus(given)
                    f -= weight * (dl[:, None, None] * l_lam + dm[:, None, None] * l_mu)
            np.add.at(out, cells, -f)
        if d.stiffness_damping != 0.0 and s.boundary.changes:
            for weight, time in self._load_weights(t):
                rate = s.boundary.wall_forces(s.lam, s.mu, s.wall_rate(time))
                out += weight * d.stiffness_damping * rate
        return out

    def add_adjoint(self, w: np.ndarray, t: float, y: np.ndarray, dual: Direction) -> None:
        """dual += the transpose of `tangent` applied to y (nodes, 3)."""
        s = self.system
        walls = s.boundary.walls
        assert walls is not None
        cells = s.scene.body.cells[walls.cell]
        wc, yc = w[cells], y[cells]
        lam = -np.einsum("wai,wabij,wbj->w", yc, walls.by_lam, wc)
        mu = -np.einsum("wai,wabij,wbj->w", yc, walls.by_mu, wc)
        for weight, time in self._load_weights(t):
            given = s.wall_data(time)
            if weight != 0.0 and np.any(given):
                l_lam, l_mu = walls.loads_per_modulus(given)
                lam += weight * np.einsum("wai,wai->w", yc, l_lam)
                mu += weight * np.einsum("wai,wai->w", yc, l_mu)
            if s.boundary.changes:
                rate = s.boundary.wall_forces(s.lam, s.mu, s.wall_rate(time))
                dual.stiffness_damping += weight * float(np.sum(y * rate))
        np.add.at(dual.lam, walls.cell, lam)
        np.add.at(dual.mu, walls.cell, mu)

    def _change(self, d: Direction, dl: np.ndarray, dm: np.ndarray) -> np.ndarray:
        """Change of the walls' matrices (w, 3k, 3k) along d; the same at every step of a run."""
        walls = self.system.boundary.walls
        assert walls is not None
        kept = self._changes.get(id(d))
        if kept is None or kept[0] is not d:
            c = (slice(None), None, None, None, None)
            change = dl[c] * walls.by_lam + dm[c] * walls.by_mu
            w, k = change.shape[:2]
            flat = np.ascontiguousarray(change.transpose(0, 1, 3, 2, 4)).reshape(w, 3 * k, 3 * k)
            if len(self._changes) >= MOST_KEPT:
                self._changes.clear()
            self._changes[id(d)] = kept = (d, flat)
        return kept[1]
