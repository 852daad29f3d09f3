"""Regions of a body that are made of something else: a shape, and the numbers that differ in it.

A cell belongs to a region whole or not at all: where the middle of its filled part lies inside the
region's shape. Where regions overlap, the later one counts. A cell that a region covers in part is
thus of one of the two materials, never of a third one between them, and the cut cells of an organ's
rim are of the organ's own; the border is as sharp as a cell.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from pliant.core.errors import BadInput
from pliant.geometry.shape import Shape, require_shape

if TYPE_CHECKING:
    from pliant.fem.bodies.body import Body

NUMBERS = ("youngs_modulus", "poisson_ratio", "density")
"""What a region may have of its own."""

NOBODY = -1
"""In place of a region's number: the cell is of the body's own material."""

_FOUND: "WeakKeyDictionary[Body, list[tuple[Shape, np.ndarray]]]" = WeakKeyDictionary()
"""Cells in a shape, of bodies that are in use: a fit makes a scene for every step of its own."""


@dataclass(frozen=True)
class MaterialRegion:
    """What lies inside `shape` has these numbers; those that are None are the body's own."""

    shape: Shape
    youngs_modulus: float | None = None
    poisson_ratio: float | None = None
    density: float | None = None

    def __post_init__(self):
        require_shape("MaterialRegion", "shape", self.shape)
        if all(getattr(self, name) is None for name in NUMBERS):
            raise BadInput(f"A region needs a number of its own: {', '.join(NUMBERS)}.")


def middles(body: "Body") -> np.ndarray:
    """Centres (cells, dim) of the filled parts of the cells [m]."""
    weights = np.maximum(body.node_volumes, 0.0)
    total = weights.sum(axis=1, keepdims=True)
    share = np.where(total > 0.0, weights, 1.0)
    share = share / share.sum(axis=1, keepdims=True)
    return np.einsum("ca,cad->cd", share, body.nodes[body.cells])


def cells_inside(body: "Body", shape: Shape) -> np.ndarray:
    """Whether the middle of each cell lies inside the shape, (cells,) bool."""
    if shape.dim != body.dim:
        raise BadInput(f"its shape is {shape.dim}D, but the body is {body.dim}D.")
    known = _FOUND.setdefault(body, [])
    for other, cells in known:
        if other is shape:
            return cells
    found = shape.contains(middles(body))
    known.append((shape, found))
    return found


def owners(body: "Body", regions: Sequence[MaterialRegion], number: str) -> np.ndarray:
    """The region whose `number` each cell has, (cells,) int; NOBODY for the body's own."""
    out = np.full(len(body.cells), NOBODY)
    for i, region in enumerate(regions):
        try:
            inside = cells_inside(body, region.shape)
        except BadInput as error:
            raise BadInput(f"regions[{i}]: {error}") from error
        if not inside.any():
            raise BadInput(
                f"regions[{i}]: its shape holds the middle of none of the body's "
                f"{len(inside)} cells; move it, or use smaller cells."
            )
        if getattr(region, number) is not None:
            out[inside] = i
    return out


def composed(owner: np.ndarray, own: Any, values: Sequence[Any]) -> np.ndarray:
    """`own`, a number or one per cell, with values[i] where owner == i, (cells,)."""
    given = [v for i, v in enumerate(values) if v is not None and (owner == i).any()]
    kind = np.result_type(float, np.asarray(own), *(np.asarray(v) for v in given))
    out = np.broadcast_to(np.asarray(own, kind), owner.shape).copy()
    for i, value in enumerate(values):
        if value is not None:
            out[owner == i] = value
    return out
