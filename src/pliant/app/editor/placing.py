"""An uploaded shape put where a body can be looked at: a sensible size, upright, at the middle."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pliant.core.errors import BadInput
from pliant.geometry.shape import Shape
from pliant.geometry.shapes import shape_from_dict

SMALLEST, LARGEST = 0.1, 5.0
"""Metres that the longest side of an upload may have as it is: files in millimetres, or in units of
their own, are scaled by a power of ten into this range."""


def sensible_scale(shape: Shape) -> float:
    """1, or the power of ten that brings the longest side nearest to a metre."""
    lo, hi = (np.asarray(b, float) for b in shape.bounds)
    longest = float((hi - lo).max())
    if not (np.isfinite(longest) and longest > 0.0):
        raise BadInput("The shape has no size.")
    if SMALLEST <= longest <= LARGEST:
        return 1.0
    return float(10.0 ** -np.round(np.log10(longest)))


def placed(
    description: dict[str, Any], *, scale: float = 1.0, turn: Sequence[float] = (0.0, 0.0, 0.0)
) -> dict[str, Any]:
    """A shape's table, scaled, turned about x, then y, then z [degrees], its box about the origin.

    Turns and scales of 1 leave nothing behind in the table.
    """
    if not (np.isfinite(scale) and scale > 0.0):
        raise BadInput(f"The scale must be positive, not {scale:g}.")
    out = description
    if scale != 1.0:
        out = {"type": "scaled", "factor": float(scale), "shape": out}
    for axis, degrees in zip(np.eye(3), turn, strict=True):
        if degrees % 360.0:
            angle = float(np.radians(degrees % 360.0))
            out = {"type": "rotated", "angle": angle, "axis": axis.tolist(), "shape": out}
    lo, hi = (np.asarray(b, float) for b in shape_from_dict(out).bounds)
    middle = 0.5 * (lo + hi)
    if np.abs(middle).max() > 1e-6 * float((hi - lo).max()):
        out = {"type": "translated", "offset": (-middle).tolist(), "shape": out}
    return out
