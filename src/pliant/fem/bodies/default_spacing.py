"""How large cells are made where nobody says: by the size of the shape's bounding box.

    h = max(a / ACROSS, (V / CELLS)^(1/d)),   a its shortest side, V its volume,

eight cells across, and fewer where a long body would have too many to wait for.
"""

import numpy as np

from pliant.core.errors import BadInput
from pliant.geometry.shape import Shape

ACROSS = 8
"""Cells across the shortest side: frequencies of a beam are then within a per mille or two."""

CELLS = 20_000
"""Of the bounding box at most: a step takes tens of milliseconds."""

FEWEST = 2
"""Cells across from which on a body is not made without asking."""


def default_spacing(shape: Shape) -> float:
    """A spacing [m] for a bounded shape."""
    lo, hi = (np.asarray(b, float) for b in shape.bounds)
    sides = hi - lo
    if not np.isfinite(sides).all():
        raise BadInput("The shape is unbounded: intersect it with a box before making a body.")
    shortest = float(sides.min())
    if not shortest > 0.0:
        raise BadInput("The shape has no inside: check its parameters.")
    # the sides first in units of the shortest: a product of lengths in metres could underflow
    volume = float(np.prod(sides / shortest))
    h = shortest * max(1.0 / ACROSS, (volume / CELLS) ** (1.0 / len(sides)))
    if shortest < FEWEST * h:
        raise BadInput(
            f"The shape is thin, {shortest:.3g} m of {float(sides.max()):.3g} m: say how large its "
            f"cells are to be, for example spacing = {float(f'{shortest / FEWEST:.2g}'):g}."
        )
    return h
