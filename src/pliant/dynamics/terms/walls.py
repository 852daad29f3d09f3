"""Weak walls of a grid: the force -(W w - load) of fem.cutting.walls, and how it changes.

W and the load of the given displacement are linear in lambda and mu of the wall's own cell.
"""

import numpy as np
import warp as wp

from pliant.core.launch import to_device, zeros
from pliant.dynamics.boundary import Boundary
from pliant.dynamics.model import Parameters, State
from pliant.dynamics.terms.stage import Balance, Changes, Pulls, Stage, inner, mix
from pliant.dynamics.terms.term import Support
from pliant.fem.cutting.walls import Walls
from pliant.fem.forces.wall_operator import WallOperator
from pliant.linalg.blocks import combine, dot

MOST_KEPT = 64
"""Directions whose changes are kept: those of one fit by tangents. A fit of a field meets a new
direction with every product, and would keep them all."""


class WallTerm(Support):
    """The walls of a boundary; dt [s]: of the scene, to take rates by."""

    def __init__(self, boundary: Boundary, walls: Walls, dt: float):
        self.boundary, self.walls, self._dt = boundary, walls, dt
        self.operator = WallOperator(walls.body, walls.cell)
        self._cells = walls.body.cells[walls.cell]
        self._kept: dict[int, tuple[Parameters, np.ndarray]] = {}

    def set_material(self, lam: np.ndarray, mu: np.ndarray, stiffness_damping: float) -> None:
        """Moduli of every cell [Pa]."""
        self._lam, self._mu, self._beta = lam, mu, stiffness_damping
        self.operator.set_blocks(self.walls.blocks(lam, mu))
        self._kept.clear()

    def data(self, t: float) -> np.ndarray:
        """Given displacement plus stiffness damping times its rate, (q, 3)."""
        given = self.boundary.given_on_walls(t)
        if self._beta > 0.0 and self.boundary.changes:
            given = given + self._beta * self.rate(t)
        return given

    def rate(self, t: float) -> np.ndarray:
        """Velocity of the given displacement (q, 3), by a central difference."""
        h = 1e-3 * self._dt
        later, earlier = (self.boundary.given_on_walls(t + s) for s in (h, -h))
        return (later - earlier) / (2.0 * h)

    def given(self, t: float) -> np.ndarray:
        return self._force_of(self.data(t))

    def _force_of(self, given: np.ndarray) -> np.ndarray:
        return self.boundary.wall_forces(self._lam, self._mu, given)

    def add_force(self, stage: Stage, out: wp.array) -> None:
        """All but the given displacement's share, which is among the loads."""
        self.operator.add_force(stage["strained"], out, factor=-1.0)

    def assemble(self, stage: Stage, matrix, *, project: bool) -> None:
        factor = stage.balance.per_x("strained")
        if factor != 0.0:
            self.operator.assemble(matrix, factor)

    def assemble_rest(self, matrix) -> None:
        self.operator.assemble(matrix, 1.0)

    def add_damping(self, rate: wp.array, out: wp.array, factor: float) -> None:
        self.operator.add_force(rate, out, factor=factor)

    def add_change(self, stage: Stage, d: Changes, p: Parameters, out: wp.array) -> None:
        d_w = d["strained"]
        if "stiffness_damping" in p:
            both = wp.empty_like(d_w)
            combine(both, (1.0, d_w), (float(p["stiffness_damping"]), stage["rate"]))
            d_w = both
        self.operator.add_force(d_w, out, factor=-1.0)
        host = self._by_material(stage, p)
        combine(out, (1.0, out), (1.0, to_device(host, wp.vec3d)))

    def _by_material(self, stage: Stage, p: Parameters) -> np.ndarray:
        """-(dW w - d load), (nodes, 3), along p."""
        cells, cell = self._cells, self.walls.cell
        out = np.zeros((len(self.boundary.free), 3))
        if "lam" in p or "mu" in p:
            zero = np.zeros(len(self._lam))
            dl, dm = p.get("lam", zero)[cell], p.get("mu", zero)[cell]
            k = cells.shape[1]
            wc = stage["strained"].numpy()[cells].reshape(len(cells), 3 * k, 1)
            f = np.matmul(self._change(p, dl, dm), wc).reshape(len(cells), k, 3)
            for weight, given in self._data_of(stage.balance):
                l_lam, l_mu = self.walls.loads_per_modulus(given)
                f -= weight * (dl[:, None, None] * l_lam + dm[:, None, None] * l_mu)
            np.add.at(out, cells, -f)
        if "stiffness_damping" in p and self.boundary.changes:
            for weight, t in zip(stage.balance.force, stage.balance.times, strict=True):
                out += weight * float(p["stiffness_damping"]) * self._force_of(self.rate(t))
        return out

    def _data_of(self, b: Balance) -> list[tuple[float, np.ndarray]]:
        """(weight, given displacement) of the ends of a step that have any."""
        both = [(w, self.data(t)) for w, t in zip(b.force, b.times, strict=True) if w != 0.0]
        return [(weight, given) for weight, given in both if np.any(given)]

    def add_pull(self, stage: Stage, y: wp.array, pulls: Pulls, dual: Parameters) -> None:
        w_bar, y_host = zeros(len(y), wp.vec3d), y.numpy()
        self.operator.add_force(y, w_bar, factor=-1.0)
        combine(pulls["strained"], (1.0, pulls["strained"]), (1.0, w_bar))
        dual.add("stiffness_damping", inner(w_bar, stage["rate"].numpy()))
        wc, yc = stage["strained"].numpy()[self._cells], y_host[self._cells]
        lam = -np.einsum("wai,wabij,wbj->w", yc, self.walls.by_lam, wc)
        mu = -np.einsum("wai,wabij,wbj->w", yc, self.walls.by_mu, wc)
        for weight, given in self._data_of(stage.balance):
            l_lam, l_mu = self.walls.loads_per_modulus(given)
            lam += weight * np.einsum("wai,wai->w", yc, l_lam)
            mu += weight * np.einsum("wai,wai->w", yc, l_mu)
        if self.boundary.changes:
            for weight, t in zip(stage.balance.force, stage.balance.times, strict=True):
                force = self._force_of(self.rate(t))
                dual.add("stiffness_damping", weight * np.sum(y_host * force))
        count = len(self._lam)
        dual.add("lam", np.bincount(self.walls.cell, lam, count))
        dual.add("mu", np.bincount(self.walls.cell, mu, count))

    def _change(self, p: Parameters, dl: np.ndarray, dm: np.ndarray) -> np.ndarray:
        """Change of the walls' matrices (w, 3k, 3k) along p; the same at every step of a run."""
        kept = self._kept.get(id(p))
        if kept is None or kept[0] is not p:
            c = (slice(None), None, None, None, None)
            change = dl[c] * self.walls.by_lam + dm[c] * self.walls.by_mu
            w, k = change.shape[:2]
            flat = np.ascontiguousarray(change.transpose(0, 1, 3, 2, 4)).reshape(w, 3 * k, 3 * k)
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            self._kept[id(p)] = kept = (p, flat)
        return kept[1]

    def energy(self, u: wp.array, t: float) -> float:
        """1/2 (u - g) W (u - g) with the data g of time t."""
        force = zeros(len(u), wp.vec3d)
        self.operator.add_force(u, force)
        return 0.5 * dot(force, u) - self.shift(u, t)

    def shift(self, u: wp.array, t: float) -> float:
        """1/2 u W u minus the energy."""
        given = self.boundary.given_on_walls(t)
        if not np.any(given):
            return 0.0
        own = self.walls.energy_of_given(self._lam, self._mu, given)
        return float(np.sum(self.standing_force(t) * u.numpy())) - own

    def standing_force(self, t: float) -> np.ndarray:
        """W g (nodes, 3): `given` without what the walls' rate does."""
        return self._force_of(self.boundary.given_on_walls(t))

    def hand_work(self, before: State, after: State) -> float:
        """Work of the hand that moves the walls: -W dg . (u - g), u in the middle of the step."""
        middle = mix((0.5, 0.5), (before.u, after.u))
        return self.shift(middle, before.t) - self.shift(middle, after.t)
