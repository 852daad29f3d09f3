"""Solids with a closed-form signed distance: ball, box, torus, cylinder, capsule, half space.

Every distance here is exact, inside and outside, so its gradient has length 1.
The ellipsoid needs an iteration and has its own file.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pliant.core.errors import BadInput
from pliant.core.numbers import number, positive
from pliant.geometry.arguments import direction, vector
from pliant.geometry.describe import describes
from pliant.geometry.shape import Shape


@dataclass(frozen=True)
class Ball(Shape):
    """phi = |x - c| - r, a circle in 2D and a sphere in 3D."""

    radius: float
    center: tuple[float, ...]

    @property
    def kind(self) -> str:
        """Sphere or circle."""
        return "sphere" if self.dim == 3 else "circle"

    @property
    def dim(self) -> int:
        """From the length of the center."""
        return len(self.center)

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Center plus and minus the radius."""
        return np.array(self.center) - self.radius, np.array(self.center) + self.radius

    def _distance(self, points: np.ndarray) -> np.ndarray:
        return np.linalg.norm(points - self.center, axis=1) - self.radius


@dataclass(frozen=True)
class Box(Shape):
    """Axis-aligned box with full edge lengths `size`; with q = |x - c| - size / 2,

    phi = |max(q, 0)| + min(max_i q_i, 0).
    """

    center: tuple[float, ...]
    size: tuple[float, ...]

    KIND: ClassVar[str] = "box"

    @property
    def dim(self) -> int:
        """From the number of edge lengths."""
        return len(self.size)

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """The box itself."""
        half = np.array(self.size) / 2.0
        return np.array(self.center) - half, np.array(self.center) + half

    def _distance(self, points: np.ndarray) -> np.ndarray:
        return block_distance(np.abs(points - self.center) - np.array(self.size) / 2.0)


@dataclass(frozen=True)
class Torus(Shape):
    """Tube of radius `minor` around a ring of radius `major` in the plane normal to `axis`.

    phi = sqrt((rho - major)^2 + a^2) - minor, with a along the axis and rho away from it.
    """

    major: float
    minor: float
    center: tuple[float, ...]
    axis: tuple[float, ...]

    KIND: ClassVar[str] = "torus"

    @property
    def dim(self) -> int:
        """Three."""
        return 3

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """The ring's box (its disc tilted by the axis) grown by the tube."""
        half = self.major * _tilt(self.axis) + self.minor
        return np.array(self.center) - half, np.array(self.center) + half

    def _distance(self, points: np.ndarray) -> np.ndarray:
        along, away = _axial(points - self.center, self.axis)
        return np.hypot(away - self.major, along) - self.minor


@dataclass(frozen=True)
class Cylinder(Shape):
    """Solid cylinder of full `height` along `axis`, centred at `center`."""

    radius: float
    height: float
    center: tuple[float, ...]
    axis: tuple[float, ...]

    KIND: ClassVar[str] = "cylinder"

    @property
    def dim(self) -> int:
        """Three."""
        return 3

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Exact box of the two discs."""
        half = np.abs(self.axis) * self.height / 2.0 + self.radius * _tilt(self.axis)
        return np.array(self.center) - half, np.array(self.center) + half

    def _distance(self, points: np.ndarray) -> np.ndarray:
        along, away = _axial(points - self.center, self.axis)
        return block_distance(
            np.stack([away - self.radius, np.abs(along) - self.height / 2.0], axis=1)
        )


@dataclass(frozen=True)
class Capsule(Shape):
    """All points closer than `radius` to the segment from `start` to `end` (2D or 3D)."""

    start: tuple[float, ...]
    end: tuple[float, ...]
    radius: float

    KIND: ClassVar[str] = "capsule"

    @property
    def dim(self) -> int:
        """From the length of the end points."""
        return len(self.start)

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Box of the two end balls."""
        ends = np.array([self.start, self.end])
        return ends.min(axis=0) - self.radius, ends.max(axis=0) + self.radius

    def _distance(self, points: np.ndarray) -> np.ndarray:
        span = np.subtract(self.end, self.start)
        offset = points - self.start
        length2 = float(span @ span)
        # A segment of length zero is a ball: any foot parameter does.
        t = np.clip(offset @ span / length2, 0.0, 1.0) if length2 > 0.0 else np.zeros(len(points))
        return np.linalg.norm(offset - t[:, None] * span, axis=1) - self.radius


@dataclass(frozen=True)
class HalfSpace(Shape):
    """phi = n . x - offset with unit n: everything on or behind the plane n . x = offset."""

    normal: tuple[float, ...]
    offset: float

    KIND: ClassVar[str] = "half_space"

    @property
    def dim(self) -> int:
        """From the length of the normal."""
        return len(self.normal)

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Infinite, except in front of a plane that faces along an axis."""
        lo, hi = np.full(self.dim, -np.inf), np.full(self.dim, np.inf)
        axis = int(np.argmax(np.abs(self.normal)))
        if self.normal[axis] == 1.0:
            hi[axis] = self.offset
        elif self.normal[axis] == -1.0:
            lo[axis] = -self.offset
        return lo, hi

    def _distance(self, points: np.ndarray) -> np.ndarray:
        return points @ np.array(self.normal) - self.offset


def block_distance(q: np.ndarray) -> np.ndarray:
    """Signed distance to the corner region q <= 0, for q (n, k): |max(q, 0)| + min(max q, 0)."""
    return np.linalg.norm(np.maximum(q, 0.0), axis=1) + np.minimum(q.max(axis=1), 0.0)


def _axial(offset: np.ndarray, axis: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Coordinate along the unit axis and distance from it, each (n,)."""
    along = offset @ np.array(axis)
    return along, np.linalg.norm(offset - along[:, None] * np.array(axis), axis=1)


def _tilt(axis: tuple[float, ...]) -> np.ndarray:
    """Half extents of the unit disc normal to `axis`: sqrt(1 - axis_i^2)."""
    return np.sqrt(np.maximum(1.0 - np.square(axis), 0.0))


@describes("sphere")
def sphere(*, radius: float, center: Any = (0.0, 0.0, 0.0)) -> Shape:
    """A solid sphere."""
    return Ball(
        radius=positive("sphere", "radius", radius),
        center=vector("sphere", "center", center, dims=(3,)),
    )


@describes("circle")
def circle(*, radius: float, center: Any = (0.0, 0.0)) -> Shape:
    """A disc in the plane."""
    return Ball(
        radius=positive("circle", "radius", radius),
        center=vector("circle", "center", center, dims=(2,)),
    )


@describes("box")
def box(*, size: Any, center: Any = None) -> Shape:
    """An axis-aligned box (three edge lengths) or rectangle (two), around `center` or the origin.

    size: full edge lengths.
    """
    edges = vector("box", "size", size)
    edges = tuple(positive("box", f"size[{i}]", edge) for i, edge in enumerate(edges))
    middle = (0.0,) * len(edges) if center is None else center
    return Box(center=vector("box", "center", middle, dims=(len(edges),)), size=edges)


@describes("torus")
def torus(
    *, major: float, minor: float, center: Any = (0.0, 0.0, 0.0), axis: Any = (0.0, 0.0, 1.0)
) -> Shape:
    """A ring of radius `major` with tube radius `minor`, in the x-y plane unless `axis` says else.

    Hung by its top point (0, major, 0) it therefore swings under gravity along -y.
    """
    major = positive("torus", "major", major)
    minor = positive("torus", "minor", minor)
    if minor >= major:
        # The formula stays a distance outside, but inside the tube meets itself at the axis.
        raise BadInput(
            f"torus: minor ({minor:g}) must be smaller than major ({major:g}); "
            "a ring without a hole is a sphere or an ellipsoid."
        )
    return Torus(
        major=major,
        minor=minor,
        center=vector("torus", "center", center, dims=(3,)),
        axis=direction("torus", "axis", axis, dims=(3,)),
    )


@describes("cylinder")
def cylinder(
    *, radius: float, height: float, center: Any = (0.0, 0.0, 0.0), axis: Any = (0.0, 1.0, 0.0)
) -> Shape:
    """A solid cylinder, upright (along y) unless `axis` says else; `height` is its full length."""
    return Cylinder(
        radius=positive("cylinder", "radius", radius),
        height=positive("cylinder", "height", height),
        center=vector("cylinder", "center", center, dims=(3,)),
        axis=direction("cylinder", "axis", axis, dims=(3,)),
    )


@describes("capsule")
def capsule(*, start: Any, end: Any, radius: float) -> Shape:
    """A segment from `start` to `end` thickened by `radius`, with round ends."""
    first = vector("capsule", "start", start)
    return Capsule(
        start=first,
        end=vector("capsule", "end", end, dims=(len(first),)),
        radius=positive("capsule", "radius", radius),
    )


@describes("half_space")
def half_space(*, normal: Any, offset: float = 0.0) -> Shape:
    """All points with normal . x <= offset, the normal scaled to length 1 first."""
    return HalfSpace(
        normal=direction("half_space", "normal", normal),
        offset=number("half_space", "offset", offset),
    )
