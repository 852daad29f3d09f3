"""How an optimiser moves an unknown: charts between free coordinates q and the values they mean.

What a table shows is one number per coordinate; what the scene is given (its setting) may be
another: a unit vector for two angles, one modulus per cell for a few parts.
"""

from dataclasses import dataclass

import numpy as np

from pliant.core.errors import BadInput
from pliant.dynamics.scene import vector3

POISSON_RANGE = (-0.5, 0.4999)


@dataclass(frozen=True)
class Chart:
    """The plain one: q is the value. name: of the unknown, for what is said of it."""

    name: str
    start: np.ndarray
    size: int
    angles = False
    """Whether q are angles about the start, which cannot be bounded."""

    def coordinates(self, value) -> np.ndarray:
        """q of a value."""
        return np.asarray(value, float).reshape(-1)

    def value(self, q: np.ndarray) -> np.ndarray:
        """What a table shows; analytic in q, which may be complex."""
        return np.asarray(q)

    def slope(self, q: np.ndarray) -> np.ndarray:
        """d value / d q per component."""
        return np.ones(self.size)

    def setting(self, q: np.ndarray) -> np.ndarray:
        """What the scene is given; analytic in q."""
        return self.value(q)

    def along(self, q: np.ndarray, dq: np.ndarray) -> np.ndarray:
        """Change of the setting with q along dq."""
        return self.slope(q) * dq

    def pull(self, q: np.ndarray, bar: np.ndarray) -> np.ndarray:
        """Gradient by q from that by the setting."""
        return self.slope(q) * bar


@dataclass(frozen=True)
class Scaled(Chart):
    """A number that moves on its own scale: value = scale q; scale: (size,)."""

    scale: np.ndarray

    def coordinates(self, value):
        return np.asarray(value, float).reshape(-1) / self.scale

    def value(self, q):
        return self.scale * np.asarray(q)

    def slope(self, q):
        return self.scale


class Positive(Chart):
    """A positive number, moved by its logarithm."""

    def coordinates(self, value):
        value = np.asarray(value, float).reshape(-1)
        if not (np.isfinite(value) & (value > 0.0)).all():
            raise BadInput(f"The start of {self.name} must be positive, not {value[0]:g}.")
        return np.log(value)

    def value(self, q):
        return np.exp(q)

    def slope(self, q):
        return np.exp(q)


@dataclass(frozen=True)
class PositiveParts(Positive):
    """One positive number for each of a few parts of the body; segment: (cells,) which of them."""

    segment: np.ndarray

    def setting(self, q):
        return np.exp(q)[self.segment]

    def along(self, q, dq):
        return (np.exp(q) * dq)[self.segment]

    def pull(self, q, bar):
        return np.exp(q) * np.bincount(self.segment, bar, self.size)


class Ratio(Chart):
    """Poisson's ratio by a logistic curve over POISSON_RANGE."""

    def coordinates(self, value):
        lo, hi = POISSON_RANGE
        s = (np.asarray(value, float).reshape(-1) - lo) / (hi - lo)
        if not ((s > 0.0) & (s < 1.0)).all():
            raise BadInput(f"The start of {self.name} must lie in {POISSON_RANGE}.")
        return np.log(s / (1.0 - s))

    def value(self, q):
        lo, hi = POISSON_RANGE
        return lo + (hi - lo) / (1.0 + np.exp(-q))

    def slope(self, q):
        lo, hi = POISSON_RANGE
        s = 1.0 / (1.0 + np.exp(-q))
        return (hi - lo) * s * (1.0 - s)


class Signed(Chart):
    """A number that keeps the sign of its start and moves by the logarithm of its size.

    So moduli stay moduli; one that starts at zero moves on its own scale.
    """

    @property
    def _sign(self) -> float:
        return float(np.sign(self.start[0]))

    def coordinates(self, value):
        value = np.asarray(value, float).reshape(-1)
        if self._sign == 0.0:
            return value
        if not (value * self._sign > 0.0).all():
            raise BadInput(f"{self.name} must keep the sign of its start, {self.start[0]:g}.")
        return np.log(np.abs(value))

    def value(self, q):
        return np.asarray(q) if self._sign == 0.0 else self._sign * np.exp(q)

    def slope(self, q):
        return np.ones(1) if self._sign == 0.0 else self.value(q)


class Direction(Chart):
    """A unit vector near its start: n = normalised(start + q1 t1 + q2 t2), t1 and t2 tangents.

    In 2D there is one tangent. The components of q are tangents of angles from the start.
    """

    angles = True

    def _frame(self) -> tuple[np.ndarray, np.ndarray]:
        n = np.zeros(3)
        n[: len(self.start)] = self.start / np.linalg.norm(self.start)
        if self.size == 1:  # in the plane
            return n, np.cross((0.0, 0.0, 1.0), n)[None]
        t1 = np.cross(np.eye(3)[np.argmin(np.abs(n))], n)
        t1 /= np.linalg.norm(t1)
        return n, np.stack([t1, np.cross(n, t1)])

    def coordinates(self, value):
        """Where the ray along `value` meets the tangent plane of the start."""
        n, tangents = self._frame()
        v = vector3(self.name, list(value))
        along = v @ n
        if along <= 0.0:
            raise BadInput(f"{self.name} lies more than 90 degrees from its start.")
        return tangents @ v / along

    def setting(self, q):
        n, tangents = self._frame()
        m = n + q @ tangents
        return m / np.sqrt(np.sum(m * m))

    def _slopes(self, q) -> np.ndarray:
        """d setting / d q, (size, 3)."""
        n0, tangents = self._frame()
        length = np.linalg.norm(n0 + q @ tangents)
        n = self.setting(q)
        return (tangents - np.outer(tangents @ n, n)) / length

    def along(self, q, dq):
        return dq @ self._slopes(q)

    def pull(self, q, bar):
        return self._slopes(q) @ bar


CHARTS = {
    "plain": Chart, "scaled": Scaled, "positive": Positive, "ratio": Ratio, "signed": Signed,
    "direction": Direction,
}  # fmt: skip
"""By the names that blocks give."""
