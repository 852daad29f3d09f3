"""Contact with the obstacles of a scene: the forces of dynamics.contact in a step.

An energy's step takes them where it ends; a linear one at the predicted displacement, from where
they are linear in x. Friction grows with the pressure at the step's end, which the symmetric matrix
of a step leaves out: `add_growth` is that change.
"""

import numpy as np
import warp as wp

from pliant.core.launch import zeros
from pliant.dynamics.contact import Contact
from pliant.dynamics.contact_derivatives import add_contact_adjoint, add_contact_tangent
from pliant.dynamics.model import Parameters
from pliant.dynamics.scene import Scene
from pliant.dynamics.terms.stage import Changes, Pulls, Stage
from pliant.dynamics.terms.term import Term
from pliant.linalg.blocks import combine


class ContactTerm(Term):
    """at: the field that distance and normal are taken at, "next_u" or "predicted"."""

    def __init__(self, contact: Contact, at: str):
        self.contact, self._at = contact, at
        self._kept_energy: tuple[wp.array, float] | None = None
        self._still = zeros(contact.node_count, wp.vec3d)
        self._scratch = zeros(contact.node_count, wp.vec3d)

    def add_force(self, stage: Stage, out: wp.array) -> None:
        """Also prepares the blocks for `assemble`."""
        b = stage.balance
        f_new, f_old = b.force
        self.contact.add_forces(
            stage["u"], stage["v"], stage[self._at], (stage["next_u"], stage["next_v"]),
            f_new=f_new, f_old=f_old, per_x=(b.per_x("next_u"), b.per_x("next_v")), out=out,
        )  # fmt: skip

    def assemble(self, stage: Stage, matrix, *, project: bool) -> None:
        self._scratch.zero_()
        self.add_force(stage, self._scratch)
        self.contact.add_to_matrix(matrix)

    def add_change(self, stage: Stage, d: Changes, p: Parameters, out: wp.array) -> None:
        self._add_tangent(stage, [d[n] for n in ("u", "v", self._at, "next_u", "next_v")], p, out)

    def add_pull(self, stage: Stage, y: wp.array, pulls: Pulls, dual: Parameters) -> None:
        names = ("u", "v", self._at, "next_u", "next_v")
        if self._at == "next_u":  # two shares of one field
            bars = [pulls["u"], pulls["v"], zeros(len(y), wp.vec3d), pulls["next_u"],
                    pulls["next_v"]]  # fmt: skip
        else:
            bars = [pulls[n] for n in names]
        c = self._pulled(stage, y, bars)
        if self._at == "next_u":
            combine(bars[3], (1.0, bars[3]), (1.0, bars[2]))
        dual.add("normal", c.normal)
        dual.add("offset", c.offset)
        dual.add("contact_stiffness", c.stiffness)

    @property
    def grows(self) -> bool:
        """Whether the matrix leaves out what friction gains with x."""
        return self._at == "next_u" and self.contact.law.friction > 0.0

    def growth(self, stage: Stage, x: wp.array, *, transposed: bool) -> wp.array:
        """Change of the force by the place where the pressure is taken, along x."""
        c = stage.balance.per_x("next_u")
        still, out = self._still, zeros(len(x), wp.vec3d)
        if transposed:
            bars = [zeros(len(x), wp.vec3d) for _ in range(5)]
            self._pulled(stage, x, bars)
            combine(out, (c, bars[2]))
        else:
            moved = zeros(len(x), wp.vec3d)
            combine(moved, (c, x))
            self._add_tangent(stage, [still, still, moved, still, still], Parameters(), out)
        return out

    def energy(self, u: wp.array, t: float) -> float:
        """Once for each u: a step ends where the next one starts."""
        if self._kept_energy is None or self._kept_energy[0] is not u:
            self._kept_energy = (u, self.contact.energy(u))
        return self._kept_energy[1]

    def set_numbers(self, scene: Scene, modulus: float) -> None:
        """Another scene's obstacles and law; modulus: Young's, which the default law follows."""
        self._kept_energy = None
        self.contact.set_obstacles(scene.obstacles, scene.contact)
        self.contact.set_stiffness(modulus)

    def _around(self, stage: Stage) -> tuple[wp.array, ...]:
        return tuple(stage[n] for n in ("u", "v", self._at, "next_u", "next_v"))

    def _add_tangent(self, stage: Stage, change, p: Parameters, out: wp.array) -> None:
        count = len(self.contact.obstacles)
        f_new, f_old = stage.balance.force
        add_contact_tangent(
            self.contact, self._around(stage), tuple(change), f_new=f_new, f_old=f_old,
            implicit=stage.balance.per_x("next_u") != 0.0,
            normal=p.get("normal", np.zeros((count, 3))), offset=p.get("offset", np.zeros(count)),
            stiffness=float(p.get("contact_stiffness", 0.0)), out=out,
        )  # fmt: skip

    def _pulled(self, stage: Stage, y: wp.array, bars):
        f_new, f_old = stage.balance.force
        return add_contact_adjoint(
            self.contact, self._around(stage), y, f_new=f_new, f_old=f_old,
            implicit=stage.balance.per_x("next_u") != 0.0, out=tuple(bars),
        )  # fmt: skip
