"""A change of everything a simulation depends on, or the gradient by everything it depends on."""

from dataclasses import dataclass, field

import numpy as np


@dataclass
class Direction:
    """Primal: a direction in parameter space. Dual: the derivative of a number by each entry.

    lam, mu: (cells,) [Pa]; mass: (nodes,) [kg], the lumped masses; mass_damping,
    stiffness_damping: Rayleigh coefficients; gravity: (3,); normal: (obstacles, 3) and offset:
    (obstacles,) of planes; contact_stiffness [Pa/m]; velocity: (nodes, 3) at the start.
    """

    lam: np.ndarray
    mu: np.ndarray
    mass: np.ndarray
    mass_damping: float = 0.0
    stiffness_damping: float = 0.0
    gravity: np.ndarray = field(default_factory=lambda: np.zeros(3))
    normal: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))
    offset: np.ndarray = field(default_factory=lambda: np.zeros(0))
    contact_stiffness: float = 0.0
    velocity: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))

    @classmethod
    def zero(cls, cells: int, nodes: int, obstacles: int) -> "Direction":
        """Nothing changes."""
        return cls(
            lam=np.zeros(cells),
            mu=np.zeros(cells),
            mass=np.zeros(nodes),
            normal=np.zeros((obstacles, 3)),
            offset=np.zeros(obstacles),
            velocity=np.zeros((nodes, 3)),
        )

    def add(self, factor: float, other: "Direction") -> None:
        """self += factor * other, in the entries that self has."""
        for name in self.__dataclass_fields__:
            part = getattr(other, name, None)
            if part is not None and np.size(part):
                setattr(self, name, getattr(self, name) + factor * part)

    def dot(self, other: "Direction") -> float:
        """Sum of the products of all entries: gradient times direction."""
        return float(
            sum(
                np.sum(np.asarray(getattr(self, name)) * np.asarray(getattr(other, name)))
                for name in self.__dataclass_fields__
            )
        )
