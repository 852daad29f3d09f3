"""Union, intersection and difference of shapes, sharp or with a rounded seam.

Min and max of distances keep the sign right everywhere and never overestimate the distance,
but on one side of a seam they underestimate it: redistance a sampled field where that matters.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar

import numpy as np

from pliant.core.errors import BadInput
from pliant.core.numbers import not_negative
from pliant.geometry.describe import describes
from pliant.geometry.shape import Shape, require_shape


def smooth_min(a: np.ndarray, b: np.ndarray, blend: float) -> np.ndarray:
    """min(a, b) - k/4 max(1 - |a - b| / k, 0)^2 with k = `blend`; the plain minimum for k = 0.

    Continuously differentiable, equal to min(a, b) where they differ by more than k, below it by
    at most k/4. Its gradient is a mean of the two gradients, so a 1-Lipschitz bound survives.
    """
    lower = np.minimum(a, b)
    if blend == 0.0:
        return lower
    return lower - blend / 4.0 * np.square(np.maximum(1.0 - np.abs(a - b) / blend, 0.0))


def smooth_max(a: np.ndarray, b: np.ndarray, blend: float) -> np.ndarray:
    """-smooth_min(-a, -b): above max(a, b) by at most blend / 4."""
    return -smooth_min(-a, -b, blend)


@dataclass(frozen=True)
class Union(Shape):
    """Points in any of the shapes: min_i phi_i, rounded over |phi_i - phi_j| < blend."""

    shapes: tuple[Shape, ...]
    blend: float

    KIND: ClassVar[str] = "union"

    @property
    def dim(self) -> int:
        """That of the parts."""
        return self.shapes[0].dim

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Box of all parts, grown by what the seams can add."""
        corners = [shape.bounds for shape in self.shapes]
        grow = self.blend / 4.0 * (len(self.shapes) - 1)
        lo = np.min([lo for lo, _ in corners], axis=0) - grow
        return lo, np.max([hi for _, hi in corners], axis=0) + grow

    def _distance(self, points: np.ndarray) -> np.ndarray:
        return _fold(self.shapes, points, smooth_min, self.blend)


@dataclass(frozen=True)
class Intersection(Shape):
    """Points in all of the shapes: max_i phi_i, rounded over |phi_i - phi_j| < blend."""

    shapes: tuple[Shape, ...]
    blend: float

    KIND: ClassVar[str] = "intersection"

    @property
    def dim(self) -> int:
        """That of the parts."""
        return self.shapes[0].dim

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Common part of all boxes; of no extent when they are apart."""
        corners = [shape.bounds for shape in self.shapes]
        lo = np.max([lo for lo, _ in corners], axis=0)
        return lo, np.maximum(np.min([hi for _, hi in corners], axis=0), lo)

    def _distance(self, points: np.ndarray) -> np.ndarray:
        return _fold(self.shapes, points, smooth_max, self.blend)


@dataclass(frozen=True)
class Difference(Shape):
    """Points of `base` that are not in `cut`: max(phi_base, -phi_cut)."""

    base: Shape
    cut: Shape
    blend: float

    KIND: ClassVar[str] = "difference"

    @property
    def dim(self) -> int:
        """That of the base."""
        return self.base.dim

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Those of the base."""
        return self.base.bounds

    def _distance(self, points: np.ndarray) -> np.ndarray:
        return smooth_max(self.base._distance(points), -self.cut._distance(points), self.blend)


def _fold(
    shapes: tuple[Shape, ...],
    points: np.ndarray,
    join: Callable[[np.ndarray, np.ndarray, float], np.ndarray],
    blend: float,
) -> np.ndarray:
    return reduce(lambda a, b: join(a, b, blend), (shape._distance(points) for shape in shapes))


def _checked(owner: str, shapes: tuple[Any, ...]) -> tuple[Shape, ...]:
    if not shapes:
        raise BadInput(f"{owner}: at least one shape is needed.")
    parts = tuple(require_shape(owner, f"shapes[{i}]", part) for i, part in enumerate(shapes))
    for i, part in enumerate(parts):
        if part.dim != parts[0].dim:
            raise BadInput(
                f"{owner}: shapes[{i}] is {part.dim}D but shapes[0] is {parts[0].dim}D; "
                "extrude or revolve the 2D one."
            )
    return parts


@describes("union")
def union(*shapes: Shape, blend: float = 0.0) -> Shape:
    """Everything that is in one of the shapes; `blend` > 0 fills the seam over that length."""
    return Union(shapes=_checked("union", shapes), blend=not_negative("union", "blend", blend))


@describes("intersection")
def intersection(*shapes: Shape, blend: float = 0.0) -> Shape:
    """What is in all of the shapes; `blend` > 0 rounds the edge over that length."""
    return Intersection(
        shapes=_checked("intersection", shapes),
        blend=not_negative("intersection", "blend", blend),
    )


@describes("difference")
def difference(base: Shape, cut: Shape, *, blend: float = 0.0) -> Shape:
    """The base without the cut; `blend` > 0 rounds the edge over that length."""
    parts = _checked("difference", (base, cut))
    return Difference(base=parts[0], cut=parts[1], blend=not_negative("difference", "blend", blend))


def smooth_union(*shapes: Shape, blend: float) -> Shape:
    """The union with its seams filled over the length `blend`."""
    return union(*shapes, blend=blend)


def smooth_intersection(*shapes: Shape, blend: float) -> Shape:
    """The intersection with its edges rounded over the length `blend`."""
    return intersection(*shapes, blend=blend)


def smooth_difference(base: Shape, cut: Shape, *, blend: float) -> Shape:
    """The difference with its edges rounded over the length `blend`."""
    return difference(base, cut, blend=blend)
