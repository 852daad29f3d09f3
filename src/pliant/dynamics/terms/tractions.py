"""The body's own stress at weak walls of a corotated grid: fem.forces.wall_traction in a step.

Its force is an energy's, counted as the elastic one: f_new times that of the end, f_old times that
of the start. The penalties beside it, with their damping, are the WallTerm's.
"""

from functools import cached_property

import numpy as np
import warp as wp

from pliant.core.launch import zeros
from pliant.dynamics.boundary import Boundary
from pliant.dynamics.model import Parameters, State
from pliant.dynamics.terms.stage import Balance, Changes, Pulls, Stage
from pliant.dynamics.terms.term import Support
from pliant.dynamics.terms.walls import WallTerm
from pliant.fem.forces.wall_traction import WallTractions


class TractionTerm(Support):
    """Of the walls of a boundary that hold by tractions in turning frames."""

    def __init__(self, walls: WallTerm):
        self.boundary: Boundary = walls.boundary
        self.tractions = WallTractions(walls.walls, walls.operator)
        self._cell = walls.walls.cell

    def set_material(self, lam: np.ndarray, mu: np.ndarray) -> None:
        """Moduli of every cell [Pa]."""
        self._cells = len(lam)
        self.tractions.set_material(lam, mu)

    @cached_property
    def _standing(self) -> np.ndarray | None:
        """Where walls that do not move hold the nodes of their cells."""
        return self.boundary.given_at_wall_nodes(0.0)

    def _given(self, b: Balance, t: float) -> np.ndarray | None:
        moves = self.boundary.changes
        given = self.boundary.given_at_wall_nodes(t) if moves else self._standing
        return None if given is None else b.given * given

    def _ends(self, stage: Stage):
        """(weight, field, given displacement) of the ends of a step that count."""
        b = stage.balance
        for weight, name, t in zip(b.force, ("next_u", "u"), b.times, strict=True):
            if weight != 0.0:
                yield weight, name, self._given(b, t)

    def add_constant(self, stage: Stage, out: wp.array) -> None:
        b = stage.balance
        if b.force[1] != 0.0:
            given = self._given(b, b.times[1])
            self.tractions.add_force(stage["u"], given, out, factor=-b.force[1])

    def add_force(self, stage: Stage, out: wp.array) -> None:
        b = stage.balance
        given = self._given(b, b.times[0])
        self.tractions.add_force(stage["next_u"], given, out, factor=-b.force[0])

    def assemble(self, stage: Stage, matrix, *, project: bool) -> None:
        b = stage.balance
        factor = b.force[0] * b.per_x("next_u")
        if factor != 0.0:
            given = self._given(b, b.times[0])
            self.tractions.assemble(matrix, stage["next_u"], given, factor, exact=not project)

    def assemble_rest(self, matrix) -> None:
        """matrix += the second derivative at rest, where Nitsche's terms are the linear ones."""
        rest = zeros(len(self.boundary.free), wp.vec3d)
        self.tractions.assemble(matrix, rest, None, 1.0, exact=False)

    def add_change(self, stage: Stage, d: Changes, p: Parameters, out: wp.array) -> None:
        for weight, name, given in self._ends(stage):
            u = stage[name]
            self.tractions.add_change(u, given, d[name], out, factor=-weight)
            if "lam" in p or "mu" in p:
                by = self.tractions.by_moduli(u, given)
                change = [np.broadcast_to(p.get(n, 0.0), (self._cells,)) for n in ("lam", "mu")]
                d_lam, d_mu = (c[self._cell][:, None, None] for c in change)
                f = d_lam * by[0] + d_mu * by[1]
                self.tractions.add_host(f, out, factor=-weight)

    def add_pull(self, stage: Stage, y: wp.array, pulls: Pulls, dual: Parameters) -> None:
        at = y.numpy()[self.tractions.cells]
        for weight, name, given in self._ends(stage):
            u = stage[name]
            self.tractions.add_change(u, given, y, pulls[name], factor=-weight)
            for modulus, g in zip(("lam", "mu"), self.tractions.by_moduli(u, given), strict=True):
                own = -weight * np.einsum("wai,wai->w", at, g)
                dual.add(modulus, np.bincount(self._cell, own, self._cells))

    def energy(self, u: wp.array, t: float) -> float:
        given = self.boundary.given_at_wall_nodes(t)
        return self.tractions.energy(u, given)

    def hand_work(self, before: State, after: State) -> float:
        """Work of the hand that moves the walls against the body's stress: dE/dg dg."""
        ends = [(s.u, self.boundary.given_at_wall_nodes(s.t)) for s in (before, after)]
        there, here = (0.0 if g is None else g for _, g in (ends[1], ends[0]))
        pull = sum(self.tractions.pull_of_given(u, g) for u, g in ends)
        return 0.5 * float(np.sum(pull * (there - here)))
