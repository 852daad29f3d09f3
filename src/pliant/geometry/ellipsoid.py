"""Ellipse and ellipsoid with their true distance, found from the foot point."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pliant.core.numbers import positive
from pliant.geometry.arguments import vector
from pliant.geometry.describe import describes
from pliant.geometry.shape import Shape

NEWTON_STEPS = 40
"""More than any tested case needs (2 to 15, with axes up to 1e6 apart); the loop leaves as soon as
nothing moves."""

TINY = 1e-30
"""Smallest scaled coordinate. A point exactly on the plane of symmetry has two feet; this picks
one and keeps the equation regular, and it is far below the rounding of the distance."""


@dataclass(frozen=True)
class Ellipsoid(Shape):
    """The solid sum_i ((x_i - c_i) / e_i)^2 <= 1 with half axes e = `radii` (2D or 3D)."""

    radii: tuple[float, ...]
    center: tuple[float, ...]

    KIND: ClassVar[str] = "ellipsoid"

    @property
    def dim(self) -> int:
        """From the number of half axes."""
        return len(self.radii)

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Center plus and minus the half axes."""
        return np.array(self.center) - self.radii, np.array(self.center) + self.radii

    def _distance(self, points: np.ndarray) -> np.ndarray:
        offset = np.abs(points - self.center)
        foot = foot_point(offset, np.array(self.radii))
        inside = np.sum(np.square(offset / self.radii), axis=1) < 1.0
        return np.linalg.norm(offset - foot, axis=1) * np.where(inside, -1.0, 1.0)


def foot_point(y: np.ndarray, e: np.ndarray) -> np.ndarray:
    """Nearest point of the ellipsoid with half axes e (d,) to each y (n, d) >= 0.

    The foot is x_i = e_i v_i with v_i = r_i z_i / (t + r_i - 1), where z = y / e,
    r = (e / min e)^2, and t > 0 makes |v(t)| = 1. As in trust-region steps, 1 / |v| is concave
    and increasing in t, so Newton on 1 / |v(t)| = 1 from the left never overshoots. Counting t
    from the pole at r = 1 keeps full precision for points near the middle.
    """
    z = np.maximum(y / e, TINY)
    r = np.square(e / e.min())
    q = r - 1.0
    t = np.max(r * z - q, axis=1)  # there the largest v_i is 1, so |v| >= 1: left of the root
    for _ in range(NEWTON_STEPS):
        v = r * z / (t[:, None] + q)
        norm2 = np.sum(np.square(v), axis=1)
        slope = np.sum(np.square(v) / (t[:, None] + q), axis=1)
        step = (norm2**1.5 - norm2) / slope
        t = t + np.maximum(step, 0.0)
        if np.all(step <= 1e-15 * t):
            break
    return e * (r * z / (t[:, None] + q))


@describes("ellipsoid")
def ellipsoid(*, radii: Any, center: Any = None) -> Shape:
    """An axis-aligned ellipsoid (three half axes) or ellipse (two), by default at the origin."""
    axes = vector("ellipsoid", "radii", radii)
    axes = tuple(positive("ellipsoid", f"radii[{i}]", axis) for i, axis in enumerate(axes))
    middle = (0.0,) * len(axes) if center is None else center
    return Ellipsoid(radii=axes, center=vector("ellipsoid", "center", middle, dims=(len(axes),)))
