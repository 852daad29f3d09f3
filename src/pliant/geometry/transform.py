"""Shapes moved, turned, scaled, mirrored, extruded and revolved; all keep a distance a distance."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pliant.core.errors import BadInput
from pliant.core.numbers import number, positive
from pliant.geometry.arguments import direction, vector
from pliant.geometry.describe import describes
from pliant.geometry.primitives import block_distance
from pliant.geometry.shape import Shape, require_shape


@dataclass(frozen=True)
class Translated(Shape):
    """phi'(x) = phi(x - offset)."""

    shape: Shape
    offset: tuple[float, ...]

    KIND: ClassVar[str] = "translated"

    @property
    def dim(self) -> int:
        """That of the shape."""
        return self.shape.dim

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """The shape's, moved."""
        lo, hi = self.shape.bounds
        return lo + self.offset, hi + self.offset

    def _distance(self, points: np.ndarray) -> np.ndarray:
        return self.shape._distance(points - self.offset)


@dataclass(frozen=True)
class Rotated(Shape):
    """phi'(x) = phi(R^T x) with R the turn by `angle` [rad] about `axis` (2D: about the origin)."""

    shape: Shape
    angle: float
    axis: tuple[float, ...] | None

    KIND: ClassVar[str] = "rotated"

    @property
    def dim(self) -> int:
        """That of the shape."""
        return self.shape.dim

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Box around the turned box."""
        return _mapped_bounds(self.shape, rotation_matrix(self.angle, self.axis))

    def _distance(self, points: np.ndarray) -> np.ndarray:
        # Rows times R are columns times R^T: the inverse turn.
        return self.shape._distance(points @ rotation_matrix(self.angle, self.axis))


@dataclass(frozen=True)
class Scaled(Shape):
    """phi'(x) = s phi(x / s), uniform about the origin."""

    shape: Shape
    factor: float

    KIND: ClassVar[str] = "scaled"

    @property
    def dim(self) -> int:
        """That of the shape."""
        return self.shape.dim

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """The shape's, scaled."""
        lo, hi = self.shape.bounds
        return lo * self.factor, hi * self.factor

    def _distance(self, points: np.ndarray) -> np.ndarray:
        return self.factor * self.shape._distance(points / self.factor)


@dataclass(frozen=True)
class Mirrored(Shape):
    """phi'(x) = phi(x - 2 (n . x) n), the reflection at the plane n . x = 0."""

    shape: Shape
    normal: tuple[float, ...]

    KIND: ClassVar[str] = "mirrored"

    @property
    def dim(self) -> int:
        """That of the shape."""
        return self.shape.dim

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Box around the reflected box."""
        return _mapped_bounds(self.shape, self._matrix())

    def _matrix(self) -> np.ndarray:
        return np.eye(self.dim) - 2.0 * np.outer(self.normal, self.normal)

    def _distance(self, points: np.ndarray) -> np.ndarray:
        return self.shape._distance(points @ self._matrix())  # symmetric and its own inverse


@dataclass(frozen=True)
class Extruded(Shape):
    """The corner region of q = (phi(x, y), |z| - height / 2): exact if phi is."""

    shape: Shape
    height: float

    KIND: ClassVar[str] = "extruded"

    @property
    def dim(self) -> int:
        """Three."""
        return 3

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """The profile's box between the two end planes."""
        lo, hi = self.shape.bounds
        half = self.height / 2.0
        return np.append(lo, -half), np.append(hi, half)

    def _distance(self, points: np.ndarray) -> np.ndarray:
        profile = self.shape._distance(points[:, :2])
        return block_distance(np.stack([profile, np.abs(points[:, 2]) - self.height / 2.0], axis=1))


@dataclass(frozen=True)
class Revolved(Shape):
    """phi'(x, y, z) = phi(sqrt(x^2 + z^2) - offset, y): the profile turned about the y axis.

    Exact if the moved profile stays on one side of the axis or is symmetric about it.
    """

    shape: Shape
    offset: float

    KIND: ClassVar[str] = "revolved"

    @property
    def dim(self) -> int:
        """Three."""
        return 3

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Box of the circle that the profile's outermost point draws."""
        lo, hi = self.shape.bounds
        radius = max(hi[0] + self.offset, 0.0)
        return np.array([-radius, lo[1], -radius]), np.array([radius, hi[1], radius])

    def _distance(self, points: np.ndarray) -> np.ndarray:
        away = np.hypot(points[:, 0], points[:, 2]) - self.offset
        return self.shape._distance(np.stack([away, points[:, 1]], axis=1))


def rotation_matrix(angle: float, axis: tuple[float, ...] | None) -> np.ndarray:
    """R (2, 2) for axis None, else R (3, 3) = I + sin(a) K + (1 - cos(a)) K^2, K = [axis]x."""
    c, s = math.cos(angle), math.sin(angle)
    if axis is None:
        return np.array([[c, -s], [s, c]])
    x, y, z = axis
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + s * K + (1.0 - c) * K @ K


def _mapped_bounds(shape: Shape, matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Box of the image of the bounds: each entry takes its smaller and its larger product."""
    lo, hi = shape.bounds
    # An entry that is zero up to rounding must not turn an infinite bound into all of space.
    live = np.abs(matrix) > 1e-15
    with np.errstate(invalid="ignore"):
        first = np.where(live, matrix * lo, 0.0)
        second = np.where(live, matrix * hi, 0.0)
    return np.minimum(first, second).sum(axis=1), np.maximum(first, second).sum(axis=1)


@describes("translated")
def translated(shape: Shape, *, offset: Any) -> Shape:
    """The shape moved by `offset`."""
    shape = require_shape("translated", "shape", shape)
    return Translated(shape=shape, offset=vector("translated", "offset", offset, dims=(shape.dim,)))


@describes("rotated")
def rotated(shape: Shape, *, angle: float, axis: Any = None) -> Shape:
    """The shape turned about the origin, counter-clockwise seen against `axis`.

    angle: in radians. axis: needed in 3D, meaningless in 2D.
    """
    shape = require_shape("rotated", "shape", shape)
    angle = number("rotated", "angle", angle)
    if shape.dim == 2:
        if axis is not None:
            raise BadInput("rotated: a 2D shape turns in its plane, leave out the axis.")
        return Rotated(shape=shape, angle=angle, axis=None)
    if axis is None:
        raise BadInput("rotated: a 3D shape needs an axis, for example (0, 1, 0).")
    return Rotated(shape=shape, angle=angle, axis=direction("rotated", "axis", axis, dims=(3,)))


@describes("scaled")
def scaled(shape: Shape, *, factor: float) -> Shape:
    """The shape enlarged (factor > 1) or shrunk about the origin."""
    shape = require_shape("scaled", "shape", shape)
    return Scaled(shape=shape, factor=positive("scaled", "factor", factor))


@describes("mirrored")
def mirrored(shape: Shape, *, normal: Any) -> Shape:
    """The mirror image at the plane (2D: line) through the origin with this normal."""
    shape = require_shape("mirrored", "shape", shape)
    unit = direction("mirrored", "normal", normal, dims=(shape.dim,))
    return Mirrored(shape=shape, normal=unit)


@describes("extruded")
def extruded(shape: Shape, *, height: float) -> Shape:
    """A 2D shape drawn along z, from -height / 2 to height / 2."""
    _require_profile("extruded", shape)
    return Extruded(shape=shape, height=positive("extruded", "height", height))


@describes("revolved")
def revolved(shape: Shape, *, offset: float = 0.0) -> Shape:
    """A 2D shape, moved by `offset` along x, turned about the y axis."""
    _require_profile("revolved", shape)
    return Revolved(shape=shape, offset=number("revolved", "offset", offset))


def _require_profile(owner: str, shape: Any) -> None:
    if require_shape(owner, "shape", shape).dim != 2:
        raise BadInput(f"{owner}: the profile must be a 2D shape such as a circle, got a 3D one.")
