"""Forces that do not follow the body: gravity, the scene's loads, and a push of the caller's."""

import numpy as np
import warp as wp

from pliant.core.launch import to_device
from pliant.dynamics.boundary import Boundary
from pliant.dynamics.model import Parameters
from pliant.dynamics.terms.stage import Changes, Pulls, Stage
from pliant.dynamics.terms.term import Term
from pliant.linalg.blocks import combine


class LoadTerm(Term):
    """push: one more force (nodes, 3) [N], which its owner changes from step to step."""

    def __init__(self, boundary: Boundary):
        self.boundary = boundary
        self.push: np.ndarray | None = None

    def set_weight(self, mass: np.ndarray, gravity: np.ndarray) -> None:
        """Masses of the nodes (nodes,) [kg], gravity (3,) [m/s^2]."""
        self._mass, self.gravity = mass, gravity

    @property
    def weight(self) -> np.ndarray:
        """(nodes, 3) [N]."""
        return self._mass[:, None] * self.gravity

    def given(self, t: float) -> np.ndarray:
        """Gravity and loads; the push is apart, for it may change while they do not."""
        return self.weight + self.boundary.load_forces(t)

    def add_change(self, stage: Stage, d: Changes, p: Parameters, out: wp.array) -> None:
        """By masses and gravity."""
        if "mass" not in p and "gravity" not in p:
            return
        host = np.outer(p.get("mass", np.zeros(len(self._mass))), self.gravity)
        host = host + np.outer(self._mass, p.get("gravity", np.zeros(3)))
        change = to_device(stage.balance.force_total * host, wp.vec3d)
        combine(out, (1.0, out), (1.0, change))

    def add_pull(self, stage: Stage, y: wp.array, pulls: Pulls, dual: Parameters) -> None:
        """See add_change."""
        total, y_host = stage.balance.force_total, y.numpy()
        dual.add("mass", total * (y_host @ self.gravity))
        dual.add("gravity", total * (self._mass @ y_host))
