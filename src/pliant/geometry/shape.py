"""What a shape is: a signed distance, negative inside, with bounds and a plain description."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from pliant.core.errors import BadInput
from pliant.geometry.arguments import as_points

DIFFERENCE_STEP = 6e-6
"""Step of the central differences relative to the shape's size: the cube root of the
rounding unit, where truncation (step^2) and cancellation (rounding / step) balance."""


class Shape(ABC):
    """A solid given by its signed distance phi(x): phi < 0 inside, 0 on the surface, > 0 outside.

    A concrete shape is a frozen dataclass that implements `dim`, `bounds`, `KIND` and `_distance`.
    Combine shapes with `a | b` (union), `a & b` (intersection) and `a - b` (difference).
    Lengths are in the units of the scene, angles in radians.
    """

    KIND: ClassVar[str]

    @property
    @abstractmethod
    def dim(self) -> int:
        """Dimension of space: 2 or 3."""

    @property
    @abstractmethod
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Corners (lo, hi), each (dim,), of a box around the solid; infinite where it is."""

    @property
    def kind(self) -> str:
        """The name under "type" in the dictionary form."""
        return self.KIND

    @abstractmethod
    def _distance(self, points: np.ndarray) -> np.ndarray:
        """Signed distance (n,) at checked points (n, dim)."""

    def distance(self, points: Any) -> np.ndarray:
        """Signed distance phi at points (n, dim) -> (n,), negative inside."""
        return self._distance(as_points(points, self.dim))

    def contains(self, points: Any) -> np.ndarray:
        """Whether each of the points (n, dim) lies inside, phi < 0 -> (n,) bool."""
        return self.distance(points) < 0.0

    def gradient(self, points: Any) -> np.ndarray:
        """Gradient of phi at points (n, dim) -> (n, dim), by central differences.

        It points outwards; its length is 1 where phi is a true distance.
        """
        points = as_points(points, self.dim)
        step = DIFFERENCE_STEP * self._size()
        result = np.empty_like(points)
        for axis in range(self.dim):
            offset = np.zeros(self.dim)
            offset[axis] = step
            result[:, axis] = self._distance(points + offset) - self._distance(points - offset)
        return result / (2.0 * step)

    def _size(self) -> float:
        """Longest finite edge of the bounds, 1 if there is none."""
        lo, hi = self.bounds
        edges = hi - lo
        edges = edges[np.isfinite(edges) & (edges > 0.0)]
        return float(edges.max()) if edges.size else 1.0

    def to_dict(self) -> dict[str, Any]:
        """Plain dictionary (strings, floats, lists) from which `shape_from_dict` rebuilds it."""
        result: dict[str, Any] = {"type": self.kind}
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            result[field.name] = _plain(getattr(self, field.name))
        return result

    def __or__(self, other: Shape) -> Shape:
        from pliant.geometry.boolean import union

        return union(self, other) if isinstance(other, Shape) else NotImplemented

    def __and__(self, other: Shape) -> Shape:
        from pliant.geometry.boolean import intersection

        return intersection(self, other) if isinstance(other, Shape) else NotImplemented

    def __sub__(self, other: Shape) -> Shape:
        from pliant.geometry.boolean import difference

        return difference(self, other) if isinstance(other, Shape) else NotImplemented

    def translated(self, offset: Any) -> Shape:
        """The shape moved by the vector `offset`."""
        from pliant.geometry.transform import translated

        return translated(self, offset=offset)

    def rotated(self, *, angle: float, axis: Any = None) -> Shape:
        """The shape turned about the origin by `angle` [rad], in 3D about `axis`."""
        from pliant.geometry.transform import rotated

        return rotated(self, angle=angle, axis=axis)

    def scaled(self, factor: float) -> Shape:
        """The shape enlarged about the origin by `factor` > 0."""
        from pliant.geometry.transform import scaled

        return scaled(self, factor=factor)

    def mirrored(self, *, normal: Any) -> Shape:
        """The shape reflected at the plane through the origin with this normal."""
        from pliant.geometry.transform import mirrored

        return mirrored(self, normal=normal)

    def extruded(self, height: float) -> Shape:
        """The 2D shape drawn along z to a solid with -height / 2 <= z <= height / 2."""
        from pliant.geometry.transform import extruded

        return extruded(self, height=height)

    def revolved(self, offset: float = 0.0) -> Shape:
        """The 2D shape, moved `offset` away from it, turned about the y axis to a solid."""
        from pliant.geometry.transform import revolved

        return revolved(self, offset=offset)


def require_shape(owner: str, name: str, value: Any) -> Shape:
    """The value itself if it is a shape."""
    if not isinstance(value, Shape):
        raise BadInput(f"{owner}: {name} must be a shape, got {type(value).__name__}.")
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, Shape):
        return value.to_dict()
    if isinstance(value, tuple | list | np.ndarray):
        return [_plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value
