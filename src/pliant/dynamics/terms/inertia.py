"""Inertia of the masses, of slivers under explicit schemes, and damping in proportion to both."""

import numpy as np
import warp as wp

from pliant.core.launch import to_device, zeros
from pliant.dynamics.model import Parameters
from pliant.dynamics.terms.stage import Changes, Pulls, Stage, mix
from pliant.dynamics.terms.term import Term
from pliant.fem.bodies.body import Body
from pliant.fem.forces.ghost_operator import GhostInertia
from pliant.fem.forces.mass import MassMatrix
from pliant.linalg.blocks import combine

STARTING_FLOOR = 0.1
"""Share of the heaviest node's mass that no node falls below in the initial acceleration."""


class Inertia(Term):
    """- M (m . (x, u, v, a)); slivers: whether the ghost penalty's faces are heavy, too."""

    def __init__(self, body: Body, *, slivers: bool):
        self.body = body
        self.mass = MassMatrix(body)
        self.ghost: GhostInertia | None = None
        if slivers and body.ghost is not None:
            self.ghost = GhostInertia(body.ghost, body.spacing)

    def set_density(self, density: np.ndarray, attached: np.ndarray | float = 0.0) -> None:
        """Of every cell [kg/m^3]; attached: see MassMatrix."""
        self.mass.set_density(density, attached)
        if self.ghost is not None:
            self.ghost.density = self.mass.of_body / self.body.volume

    @property
    def lumped(self) -> np.ndarray:
        """Masses of the nodes, (nodes,) [kg]."""
        return self.mass.lumped

    def add(self, z: wp.array, out: wp.array, factor: float) -> None:
        """out += factor * M z."""
        self.mass.add(z, out, factor)
        if self.ghost is not None:
            self.ghost.add(z, out, factor)

    def kinetic_energy(self, v: wp.array) -> float:
        """1/2 v M v [J]."""
        momentum = zeros(len(v), wp.vec3d)
        self.add(v, momentum, 1.0)
        return 0.5 * float(np.sum(v.numpy() * momentum.numpy()))

    def add_constant(self, stage: Stage, out: wp.array) -> None:
        """The past's share."""
        past = mix(stage.balance.rows["moved"][1:], stage.past)
        self.add(past, out, -1.0)

    def add_force(self, stage: Stage, out: wp.array) -> None:
        """The share of x."""
        if stage.x is not None:
            self.add(stage.x, out, -stage.balance.per_x("moved"))

    def assemble(self, stage: Stage, matrix, *, project: bool) -> None:
        """Of the slivers; the masses are assembled with the elastic term."""
        factor = stage.balance.per_x("moved")
        if self.ghost is not None and factor != 0.0:
            self.ghost.assemble(matrix, factor)

    def add_change(self, stage: Stage, d: Changes, p: Parameters, out: wp.array) -> None:
        """By the state, the masses and their damping."""
        moved = d["moved"]
        if "mass_damping" in p:
            combine(moved, (1.0, moved), (float(p["mass_damping"]), stage["rate"]))
        self.add(moved, out, -1.0)
        if "mass" in p:
            z = stage["moved"]
            host = -p["mass"][:, None] * z.numpy()
            host -= p["mass"].sum() * self._beside(z)
            combine(out, (1.0, out), (1.0, to_device(host, wp.vec3d)))

    def add_pull(self, stage: Stage, y: wp.array, pulls: Pulls, dual: Parameters) -> None:
        """See add_change."""
        self.add(y, pulls["moved"], -1.0)
        heavy = zeros(len(y), wp.vec3d)
        self.add(stage["rate"], heavy, 1.0)
        z, y_host = stage["moved"], y.numpy()
        dual.add("mass_damping", -np.sum(y_host * heavy.numpy()))
        dual.add("mass", -np.sum(y_host * z.numpy(), axis=1))
        dual.add("mass", -np.sum(y_host * self._beside(z)))

    def _beside(self, z: wp.array) -> np.ndarray | float:
        """Change of M z, beyond the lumped masses, for each kilogram that the body gains evenly."""
        if self.ghost is None and self.mass.is_lumped:
            return 0.0
        out = zeros(len(z), wp.vec3d)
        self.add(z, out, 1.0)
        return (out.numpy() - self.lumped[:, None] * z.numpy()) / self.mass.of_body

    # the start -----------------------------------------------------------------------------------

    def starting(self) -> np.ndarray:
        """Lumped masses with a floor, for the initial acceleration only.

        A sliver's own mass would turn any residual force into a violent start that undamped
        schemes never forget; the floor is a tenth of the heaviest node.
        """
        return np.maximum(self.lumped, STARTING_FLOOR * self.lumped.max())

    def starting_change(self, mass: np.ndarray) -> np.ndarray:
        """Change of `starting` for a change of the lumped masses."""
        top, light = self._light()
        return np.where(light, STARTING_FLOOR * mass[top], mass)

    def starting_pull(self, bar: np.ndarray) -> np.ndarray:
        """Transpose of `starting_change`."""
        top, light = self._light()
        out = np.where(light, 0.0, bar)
        out[top] += STARTING_FLOOR * bar[light].sum()
        return out

    def _light(self) -> tuple[int, np.ndarray]:
        top = int(np.argmax(self.lumped))
        return top, self.lumped <= STARTING_FLOOR * self.lumped[top]
