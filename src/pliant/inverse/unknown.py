"""One unknown: how it enters a scene, and its transform.

An optimiser moves free coordinates q; an unknown maps them to its value (log for positive numbers,
a logistic curve for Poisson's ratio, a chart of the sphere for a direction) and says in which
Direction the simulation's parameters move with q.
"""

from dataclasses import dataclass

import numpy as np

from pliant.core.errors import BadInput
from pliant.dynamics.scene import Scene, vector3
from pliant.dynamics.system import System
from pliant.inverse.direction import Direction


@dataclass(frozen=True)
class Unknown:
    """One named quantity; labels name its components in tables."""

    name: str
    start: np.ndarray
    labels: tuple[str, ...]

    @property
    def size(self) -> int:
        """Number of free coordinates."""
        return len(self.labels)

    def coordinates(self, value: np.ndarray) -> np.ndarray:
        """q of a value."""
        return np.asarray(value, float).reshape(-1)

    def value(self, q: np.ndarray) -> np.ndarray:
        """Value at q, one number per label (in the units of the table)."""
        return np.asarray(q, float)

    def slope(self, q: np.ndarray) -> np.ndarray:
        """d value / d q per component, for error bars."""
        return np.ones(self.size)

    def size_of(self, value: np.ndarray, scene: Scene, duration: float) -> np.ndarray:
        """What error bars are judged by, per component: the value, or a size that it comes in.

        duration [s]: of the recording.
        """
        return np.maximum(np.abs(value), 1e-12)

    def apply(self, scene: Scene, q: np.ndarray) -> Scene:
        """The scene with this unknown set."""
        raise TypeError(self.name)

    def directions(self, system: System, q: np.ndarray) -> list[Direction]:
        """How the simulation's parameters move with each component of q."""
        raise TypeError(self.name)

    def along(self, system: System, q: np.ndarray, dq: np.ndarray) -> Direction:
        """How the simulation's parameters move with q along dq."""
        parts = self.directions(system, q)
        total = parts[0]
        total.add(float(dq[0]) - 1.0, parts[0])
        for c, part in zip(dq[1:], parts[1:], strict=True):
            total.add(float(c), part)
        return total

    def pull(self, system: System, q: np.ndarray, dual: Direction) -> np.ndarray:
        """Gradient by q from the gradient by the parameters."""
        return np.array([dual.dot(d) for d in self.directions(system, q)])


def zero_direction(system: System) -> Direction:
    """A Direction of the system in which nothing changes."""
    obstacles = len(system.contact.obstacles) if system.contact is not None else 0
    return Direction.zero(len(system.lam), system.node_count, obstacles)


class Positive(Unknown):
    """A positive number, moved by its logarithm."""

    def coordinates(self, value):
        """Logarithms."""
        value = np.asarray(value, float).reshape(-1)
        if not (np.isfinite(value) & (value > 0.0)).all():
            raise BadInput(f"The start of {self.name} must be positive, not {value[0]:g}.")
        return np.log(value)

    def value(self, q):
        """exp(q)."""
        return np.exp(q)

    def slope(self, q):
        """exp(q)."""
        return np.exp(q)


class OnSphere(Unknown):
    """A unit vector near its start: n = normalised(start + q1 t1 + q2 t2), t1 and t2 tangents.

    In 2D there is one tangent. The components of q are tangents of angles from the start.
    """

    def _frame(self) -> tuple[np.ndarray, list[np.ndarray]]:
        n = np.zeros(3)
        n[: len(self.start)] = self.start / np.linalg.norm(self.start)
        if self.size == 1:  # in the plane
            return n, [np.cross((0.0, 0.0, 1.0), n)]
        t1 = np.cross(np.eye(3)[np.argmin(np.abs(n))], n)
        t1 /= np.linalg.norm(t1)
        return n, [t1, np.cross(n, t1)]

    def size_of(self, value, scene, duration):
        """A radian."""
        return np.ones(self.size)

    def coordinates(self, value):
        """Where the ray along `value` meets the tangent plane of the start."""
        n, tangents = self._frame()
        v = vector3(self.name, list(value))
        along = v @ n
        if along <= 0.0:
            raise BadInput(f"{self.name} lies more than 90 degrees from its start.")
        return np.array([v @ t for t in tangents]) / along

    def normal(self, q: np.ndarray) -> np.ndarray:
        """The unit vector at q, (3,)."""
        n, tangents = self._frame()
        m = n + sum(c * t for c, t in zip(q, tangents, strict=True))
        return m / np.linalg.norm(m)

    def normal_slopes(self, q: np.ndarray) -> list[np.ndarray]:
        """d normal / d q, one (3,) per component."""
        n0, tangents = self._frame()
        m = n0 + sum(c * t for c, t in zip(q, tangents, strict=True))
        length = np.linalg.norm(m)
        n = m / length
        return [(t - n * (n @ t)) / length for t in tangents]


def extent(scene: Scene) -> float:
    """Largest side of the body's box [m]."""
    return float(np.ptp(scene.body.nodes, axis=0).max())
