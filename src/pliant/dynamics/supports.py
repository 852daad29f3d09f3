"""What holds a body's surface weakly: walls, the body's own stress there, and clamps that give.

They are built from a scene's held regions and follow where those are (Fixed.shift).
"""

from dataclasses import dataclass

import numpy as np
import warp as wp

from pliant.core.launch import zeros
from pliant.dynamics.boundary import Boundary, build_boundary
from pliant.dynamics.scene import Scene
from pliant.dynamics.terms.springs import SpringTerm
from pliant.dynamics.terms.stage import Stage
from pliant.dynamics.terms.term import Support
from pliant.dynamics.terms.tractions import TractionTerm
from pliant.dynamics.terms.walls import WallTerm
from pliant.fem.cutting.walls import Hold


@dataclass(frozen=True)
class Supports:
    """The terms of a boundary; None where the scene has no such thing."""

    boundary: Boundary
    walls: WallTerm | None
    tractions: TractionTerm | None
    springs: SpringTerm | None

    @property
    def terms(self) -> list[Support]:
        """Those that there are, in the order of their sum."""
        return [term for term in (self.walls, self.tractions, self.springs) if term is not None]

    def set_numbers(self, scene: Scene, lam: np.ndarray, mu: np.ndarray) -> bool:
        """Moduli of every cell [Pa], and the scene's own numbers.

        True where something that stands still holds the body elsewhere than it was made.
        """
        damping, pull = scene.material.stiffness_damping, False
        if self.walls is not None:
            self.walls.set_material(lam, mu, damping)
            pull = bool(np.any(self.walls.given(0.0)))
        if self.tractions is not None:
            self.tractions.set_material(lam, mu)
        if self.springs is not None:
            stiffness = [scene.fixed[bed.number].stiffness for bed in self.boundary.springs]
            self.springs.set_stiffness(np.array(stiffness), damping)
            pull = pull or bool(np.any(self.springs.given(0.0)))
        return pull

    def force(self, stage: Stage) -> np.ndarray:
        """All they do to the nodes in a step or at rest, (nodes, 3), as it is balanced there."""
        out = zeros(len(self.boundary.free), wp.vec3d)
        for term in self.terms:
            term.add_constant(stage, out)
            term.add_force(stage, out)
        host = out.numpy().copy()
        for weight, t in zip(stage.balance.force, stage.balance.times, strict=True):
            if weight != 0.0:
                for term in self.terms:
                    host += weight * term.given(t)
        return host


def build_supports(scene: Scene, hold: Hold) -> Supports:
    """A scene's held regions as terms; hold: see fem.cutting.walls."""
    boundary = build_boundary(scene, hold=hold)
    walls = tractions = springs = None
    if boundary.walls is not None:
        walls = WallTerm(boundary, boundary.walls, scene.dt)
        if hold == "turning":
            tractions = TractionTerm(walls)
    if boundary.springs:
        springs = SpringTerm(boundary, scene.dt)
    return Supports(boundary, walls, tractions, springs)
