"""Clamps that give: beds of springs on parts of the surface, traction = -k P (u - g).

k [Pa/m] of every bed, P the held components, g the given displacement. The springs are damped as
the body's own stiffness is, so they act on the field `strained` (dynamics.terms.stage).
"""

from collections.abc import Sequence

import numpy as np
import warp as wp

from pliant.core.launch import to_device, zeros
from pliant.dynamics.boundary import Boundary, SpringBed
from pliant.dynamics.model import Parameters, State
from pliant.dynamics.terms.stage import Balance, Changes, Pulls, Stage, inner, mix
from pliant.dynamics.terms.term import Support
from pliant.fem.forces.wall_operator import WallOperator
from pliant.linalg.blocks import combine

STIFFNESS = "wall_stiffness"


class SpringTerm(Support):
    """The beds of a boundary; dt [s]: of the scene, to take rates by."""

    def __init__(self, boundary: Boundary, dt: float):
        self.boundary, self._dt = boundary, dt
        self.beds: Sequence[SpringBed] = boundary.springs
        body = boundary.scene.body
        self._flat = np.array([1.0] * body.dim + [0.0] * (3 - body.dim))
        cells, which, blocks = [], [], []
        for number, bed in enumerate(self.beds):
            cell, entry = np.unique(bed.points.cell, return_inverse=True)
            p, k = bed.points, body.cells.shape[1]
            mass = np.zeros((len(cell), k, k))
            np.add.at(mass, entry, p.weight[:, None, None] * p.shape[:, :, None] * p.shape[:, None])
            cells.append(cell)
            which.append(np.full(len(cell), number))
            blocks.append(mass[..., None, None] * np.diag(self._held(bed)))
        self._cell, self._which = np.concatenate(cells), np.concatenate(which)
        self._unit = np.concatenate(blocks)
        self.corners = body.cells[self._cell]
        self.operator = WallOperator(body, self._cell)

    def _held(self, bed: SpringBed) -> np.ndarray:
        return bed.fixed.mask() * self._flat

    def set_stiffness(self, stiffness: np.ndarray, stiffness_damping: float) -> None:
        """k (beds,) [Pa/m], and the body's stiffness damping [s]."""
        self.stiffness, self._beta = np.asarray(stiffness, float), stiffness_damping
        per_entry = self.stiffness[self._which]
        self.operator.set_blocks(per_entry[:, None, None, None, None] * self._unit)

    # what is given -------------------------------------------------------------------------------

    def _rates(self, t: float) -> list[np.ndarray]:
        h = 1e-3 * self._dt
        ends = [[self.boundary.given_on(bed, t + s) for bed in self.beds] for s in (h, -h)]
        return [(later - earlier) / (2.0 * h) for later, earlier in zip(*ends, strict=True)]

    def _data(self, t: float) -> list[np.ndarray]:
        """Given displacement plus stiffness damping times its rate, (q, 3) of every bed."""
        given = [self.boundary.given_on(bed, t) for bed in self.beds]
        if self._beta > 0.0 and self.boundary.changes:
            given = [g + self._beta * r for g, r in zip(given, self._rates(t), strict=True)]
        return given

    def _loads(self, data: list[np.ndarray]) -> np.ndarray:
        """Nodal forces (beds, nodes, 3) of given displacements for a stiffness of one."""
        out = np.zeros((len(self.beds), len(self.boundary.free), 3))
        for bed, given, total in zip(self.beds, data, out, strict=True):
            p, held = bed.points, self._held(bed) * given
            nodal = np.einsum("q,qa,qi->qai", p.weight, p.shape, held)
            np.add.at(total, self.boundary.scene.body.cells[p.cell], nodal)
        return out

    def given(self, t: float) -> np.ndarray:
        return np.tensordot(self.stiffness, self._loads(self._data(t)), 1)

    def standing_force(self, t: float) -> np.ndarray:
        """`given` without what the clamps' rate does."""
        given = [self.boundary.given_on(bed, t) for bed in self.beds]
        return np.tensordot(self.stiffness, self._loads(given), 1)

    # forces --------------------------------------------------------------------------------------

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
        d_w, beta = d["strained"], float(p.get("stiffness_damping", 0.0))
        if beta != 0.0:
            d_w = mix((1.0, beta), (d_w, stage["rate"]))
        self.operator.add_force(d_w, out, factor=-1.0)
        host = np.zeros((len(self.boundary.free), 3))
        if STIFFNESS in p:
            d_k = np.asarray(p[STIFFNESS], float)
            w = stage["strained"].numpy()[self.corners]
            entries = np.einsum("wabij,wbj->wai", self._unit, w)
            np.add.at(host, self.corners, -d_k[self._which][:, None, None] * entries)
            for weight, t in self._ends(stage.balance):
                host += weight * np.tensordot(d_k, self._loads(self._data(t)), 1)
        if beta != 0.0 and self.boundary.changes:
            for weight, t in self._ends(stage.balance):
                host += weight * beta * np.tensordot(self.stiffness, self._loads(self._rates(t)), 1)
        combine(out, (1.0, out), (1.0, to_device(host, wp.vec3d)))

    def _ends(self, b: Balance) -> list[tuple[float, float]]:
        return [(w, t) for w, t in zip(b.force, b.times, strict=True) if w != 0.0]

    def add_pull(self, stage: Stage, y: wp.array, pulls: Pulls, dual: Parameters) -> None:
        w_bar, at = zeros(len(y), wp.vec3d), y.numpy()
        self.operator.add_force(y, w_bar, factor=-1.0)
        combine(pulls["strained"], (1.0, pulls["strained"]), (1.0, w_bar))
        dual.add("stiffness_damping", inner(w_bar, stage["rate"].numpy()))
        w = stage["strained"].numpy()[self.corners]
        own = -np.einsum("wai,wabij,wbj->w", at[self.corners], self._unit, w)
        by = np.bincount(self._which, own, len(self.beds))
        for weight, t in self._ends(stage.balance):
            by = by + weight * np.einsum("ni,bni->b", at, self._loads(self._data(t)))
            if self.boundary.changes:
                force = np.tensordot(self.stiffness, self._loads(self._rates(t)), 1)
                dual.add("stiffness_damping", weight * np.sum(at * force))
        dual.add(STIFFNESS, by)

    # energies ------------------------------------------------------------------------------------

    def energy(self, u: wp.array, t: float) -> float:
        """1/2 k |P (u - g)|^2 over the beds."""
        at = [self.boundary.given_on(bed, t) for bed in self.beds]
        return 0.5 * sum(self._product(self._slips(u, at), self._slips(u, at)))

    def hand_work(self, before: State, after: State) -> float:
        """Work of the hand that moves the clamps, u in the middle of the step."""
        ends = [[self.boundary.given_on(b, s.t) for b in self.beds] for s in (before, after)]
        middle = [0.5 * (one + other) for one, other in zip(*ends, strict=True)]
        way = [other - one for one, other in zip(*ends, strict=True)]
        slips = self._slips(mix((0.5, 0.5), (before.u, after.u)), middle)
        return -sum(self._product(slips, way))

    def _slips(self, u: wp.array, given: list[np.ndarray]) -> list[np.ndarray]:
        host, cells = u.numpy(), self.boundary.scene.body.cells
        return [
            np.einsum("qa,qai->qi", bed.points.shape, host[cells[bed.points.cell]]) - g
            for bed, g in zip(self.beds, given, strict=True)
        ]

    def _product(self, a: list[np.ndarray], b: list[np.ndarray]) -> list[float]:
        """k times the integral of P a . b of every bed."""
        return [
            k * float(np.sum(bed.points.weight[:, None] * self._held(bed) * x * y))
            for k, bed, x, y in zip(self.stiffness, self.beds, a, b, strict=True)
        ]
