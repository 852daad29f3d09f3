"""A shape given by signed distances on the nodes of a regular grid."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from scipy import ndimage

from pliant.core.errors import BadInput
from pliant.core.numbers import LARGEST, number, positive
from pliant.geometry.arguments import as_points, vector
from pliant.geometry.redistance import redistance
from pliant.geometry.shape import Shape, require_shape

MAX_NODES = 512**3
"""Largest grid taken (1 GB of float64). A larger request is nearly always a spacing in the wrong
unit, and would otherwise end in the machine swapping."""

SPECK_FRACTION = 0.01
"""Pieces with fewer inside nodes than this part of the largest piece are called specks."""

_CHUNK = 1 << 18
_log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class SampledField(Shape):
    """Linear interpolation of phi between nodes at origin + spacing * (i, j, k).

    values: (nx, ny) or (nx, ny, nz), negative inside. origin: position of node (0, 0, 0).
    spacing: edge length of the (square, cubic) cells.
    Outside the grid phi is the distance to the grid's box plus phi at the nearest point of the
    box. If the solid reaches the border it ends there: phi is the intersection with the box.
    """

    values: np.ndarray
    origin: tuple[float, ...]
    spacing: float
    source: dict[str, Any] | None = field(default=None, repr=False)
    """How `to_dict` refers to it: the file and the options it was loaded with."""

    KIND: ClassVar[str] = "field"

    def __post_init__(self):
        values = checked_values(self.values).copy()
        values.setflags(write=False)
        spacing = positive("field", "spacing", self.spacing)
        origin = vector("field", "origin", self.origin, dims=(values.ndim,))
        if not (values < 0.0).any():
            raise BadInput(
                "the field has no inside (no negative value): check its sign, or sample it finer."
            )
        for name, value in (("values", values), ("spacing", spacing), ("origin", origin)):
            object.__setattr__(self, name, value)

    @property
    def dim(self) -> int:
        """From the axes of the values."""
        return self.values.ndim

    @property
    def grid_box(self) -> tuple[np.ndarray, np.ndarray]:
        """Positions (lo, hi) of the first and the last node."""
        lo = np.array(self.origin)
        return lo, lo + self.spacing * (np.array(self.values.shape) - 1)

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Box of all cells that have an inside node."""
        lo, hi = self.grid_box
        inside = self.values < 0.0
        first, last = lo.copy(), hi.copy()
        for axis in range(self.dim):
            others = tuple(a for a in range(self.dim) if a != axis)
            found = np.flatnonzero(inside.any(axis=others))
            first[axis] = self.origin[axis] + self.spacing * (found[0] - 1)
            last[axis] = self.origin[axis] + self.spacing * (found[-1] + 1)
        return np.maximum(first, lo), np.minimum(last, hi)

    @property
    def reaches_border(self) -> bool:
        """Whether the solid is cut off by the end of the grid."""
        inside = self.values < 0.0
        return any(
            np.take(inside, end, axis=axis).any() for axis in range(self.dim) for end in (0, -1)
        )

    def nodes(self) -> np.ndarray:
        """Positions of all nodes (nx * ny * nz, dim), last index fastest."""
        return grid_points(self.values.shape, self.origin, self.spacing)

    def _distance(self, points: np.ndarray) -> np.ndarray:
        lo, hi = self.grid_box
        clamped = np.clip(points, lo, hi)
        phi = self._interpolated(clamped)
        if self.reaches_border:
            # Continuous across the border: nothing sticks out, and depth ends at the cut.
            phi = np.maximum(phi, np.maximum(lo - clamped, clamped - hi).max(axis=1))
        return phi + np.linalg.norm(points - clamped, axis=1)

    def _interpolated(self, points: np.ndarray) -> np.ndarray:
        cells = (points - self.origin) / self.spacing
        return ndimage.map_coordinates(self.values, cells.T, order=1, mode="nearest")

    def gradient(self, points: Any) -> np.ndarray:
        """Gradient (n, dim) by differences over half a cell to each side.

        A smaller step would show the kinks of the linear interpolation, not the solid.
        """
        points = as_points(points, self.dim)
        step = self.spacing / 2.0
        result = np.empty_like(points)
        for axis in range(self.dim):
            offset = np.zeros(self.dim)
            offset[axis] = step
            result[:, axis] = self._distance(points + offset) - self._distance(points - offset)
        return result / (2.0 * step)

    def redistanced(self, *, band: float = 5.0) -> SampledField:
        """The same solid with |grad phi| = 1 around its surface (see `redistance`)."""
        base = self.padded(1) if self.reaches_border else self
        values = redistance(base.values, spacing=base.spacing, band=positive("field", "band", band))
        return SampledField(values=values, origin=base.origin, spacing=base.spacing)

    def padded(self, layers: int) -> SampledField:
        """The same solid on a grid with `layers` more nodes on every side."""
        shape = tuple(n + 2 * layers for n in self.values.shape)
        check_size(shape)
        origin = tuple(c - layers * self.spacing for c in self.origin)
        values = self._distance(grid_points(shape, origin, self.spacing)).reshape(shape)
        return SampledField(values=values, origin=origin, spacing=self.spacing)

    def volume(self) -> float:
        """Content of the solid [length^dim], with a linear ramp one cell wide at the surface.

        Second order in the spacing if the field is a distance; no quadrature, just a quick check.
        """
        filled = np.clip(0.5 - self.values / self.spacing, 0.0, 1.0)
        return float(filled.sum() * self.spacing**self.dim)

    def save(self, path: str | Path) -> SampledField:
        """Write values, origin and spacing to an .npz; returns the field bound to that file."""
        path = Path(path)
        if path.suffix != ".npz":
            raise BadInput(f"{path}: fields are saved as .npz, change the ending.")
        try:
            with path.open("wb") as stream:
                np.savez_compressed(
                    stream, values=self.values, origin=np.array(self.origin), spacing=self.spacing
                )
        except OSError as error:
            raise BadInput(f"{path}: cannot be written ({error.strerror}).") from error
        return replace(self, source={"file": str(path)})

    def to_dict(self) -> dict[str, Any]:
        """The file and its options; a field made in memory must be saved first."""
        if self.source is None:
            raise BadInput("this field exists only in memory: use field.save('name.npz') first.")
        return {"type": self.kind, **self.source}


def checked_values(values: Any) -> np.ndarray:
    """Grid values as float64, or a message on what is wrong with them."""
    array = np.asarray(values)
    if array.dtype.kind not in "fiub":
        raise BadInput(f"the values must be real numbers, got dtype {array.dtype}.")
    if array.ndim not in (2, 3):
        raise BadInput(f"the values must have 2 or 3 axes, got shape {array.shape}.")
    if min(array.shape) < 2:
        raise BadInput(f"the grid needs at least 2 nodes per axis, got shape {array.shape}.")
    check_size(array.shape)
    array = array.astype(np.float64)
    bad = ~(np.abs(array) <= LARGEST)
    if bad.any():
        index = tuple(int(i) for i in np.argwhere(bad)[0])
        raise BadInput(
            f"{int(bad.sum())} values are not finite or too large, the first at index {index}: "
            "fill them with a positive distance."
        )
    return array


def check_size(shape: Any) -> None:
    """Refuse grids of more than MAX_NODES nodes, before any memory is taken for them."""
    count = 1
    for n in shape:
        count *= int(n)  # Python integers: a forged header must not overflow the product
    if count > MAX_NODES:
        size = " x ".join(f"{int(n):.4g}" if n > 1e9 else str(int(n)) for n in shape)
        raise BadInput(
            f"a grid of {size} nodes is larger than the limit of 512^3: use a larger spacing."
        )


def grid_points(shape: Any, origin: Any, spacing: float) -> np.ndarray:
    """Positions (n, dim) of all nodes of a grid, last index fastest."""
    axes = [o + spacing * np.arange(n) for n, o in zip(shape, origin, strict=True)]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))


def sample(shape: Shape, *, spacing: float, margin: int = 2) -> SampledField:
    """The shape's distance on grid nodes at integer multiples of `spacing`.

    margin: nodes kept outside the bounds on every side.
    """
    require_shape("sample", "shape", shape)
    h = positive("sample", "spacing", spacing)
    margin = int(number("sample", "margin", margin))
    if margin < 0:
        raise BadInput(f"sample: margin must not be negative, got {margin}.")
    lo, hi = shape.bounds
    if not (np.isfinite(lo).all() and np.isfinite(hi).all()):
        raise BadInput("sample: the shape has no end; intersect it with a box first.")
    # The 1e-9 keeps rounding from adding a layer when a bound lies on a node.
    first = np.floor(lo / h + 1e-9) - margin
    last = np.ceil(hi / h - 1e-9) + margin
    size = tuple(max(int(n), 2) for n in last - first + 1.0)
    check_size(size)
    values = np.empty(size)
    origin = tuple(float(c) for c in first * h)
    flat = values.reshape(-1)
    for start in range(0, flat.size, _CHUNK):
        stop = min(start + _CHUNK, flat.size)
        index = np.stack(np.unravel_index(np.arange(start, stop), size), axis=1)
        flat[start:stop] = shape._distance((index + first) * h)
    if not (values < 0.0).any():
        raise BadInput(
            f"sample: no grid node lies inside the shape; take a spacing below {h:g}, "
            "smaller than its thinnest part."
        )
    return SampledField(values=values, origin=origin, spacing=h)


def solid_field(shape: Shape, *, spacing: float, margin: int = 2) -> SampledField:
    """The sampled shape without specks: pieces of less than 1 % of the largest are removed.

    Pieces are inside nodes connected along grid edges. Coarse grids and meshes with holes leave
    single nodes beside the solid, which would float freely in a simulation. Several big pieces
    are taken to be meant and stay.
    """
    sampled = sample(shape, spacing=spacing, margin=margin)
    inside = sampled.values < 0.0
    found: Any = ndimage.label(inside)
    labels, count = found
    sizes = np.bincount(labels.ravel(), minlength=count + 1)
    sizes[0] = 0
    small = (sizes > 0) & (sizes < SPECK_FRACTION * sizes.max())
    if not small.any():
        return sampled
    _log.info(
        "removed %d specks with %d of %d inside nodes", small.sum(), sizes[small].sum(), sizes.sum()
    )
    specks = small[labels]
    cleaned = np.where(specks, -sampled.values, sampled.values)
    # Around a speck the old values measure the distance to it; measure anew there only.
    around = ndimage.binary_dilation(specks, iterations=2) & ~(inside & ~specks)
    values = np.where(around, redistance(cleaned, spacing=sampled.spacing), cleaned)
    return replace(sampled, values=values)
