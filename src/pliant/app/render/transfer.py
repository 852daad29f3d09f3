"""Transfer functions: the colour and opacity of a slice by the value of the level set there."""

from dataclasses import dataclass

import numpy as np
import warp as wp

from pliant.app.render.pixels import linear
from pliant.core.errors import BadInput
from pliant.core.launch import to_device

ENTRIES = 1024


@dataclass(frozen=True)
class TransferFunction:
    """Piecewise linear RGBA over signed distances [m], negative inside.

    distances: (n,) ascending; colours: (n, 4) sRGB and opacity, 0 .. 1. lines: distance between
    dark lines of equal distance [m], 0 for none.
    """

    distances: np.ndarray
    colours: np.ndarray
    lines: float = 0.0

    def __post_init__(self):
        d, c = np.asarray(self.distances, float), np.asarray(self.colours, float)
        if d.ndim != 1 or len(d) < 2 or (np.diff(d) <= 0.0).any() or c.shape != (len(d), 4):
            raise BadInput("A transfer function needs ascending distances and a colour for each.")
        if c.min() < 0.0 or c.max() > 1.0:
            raise BadInput("The colours of a transfer function lie between 0 and 1.")
        object.__setattr__(self, "distances", d)
        object.__setattr__(self, "colours", c)

    @property
    def depth(self) -> float:
        """The table reaches from minus to plus this [m]."""
        return float(np.abs(self.distances).max())

    def at(self, phi: np.ndarray) -> np.ndarray:
        """RGBA (n, 4) of distances (n,)."""
        phi = np.asarray(phi, float)
        out = np.stack([np.interp(phi, self.distances, self.colours[:, k]) for k in range(4)], -1)
        if self.lines > 0.0:
            off = np.abs(phi / self.lines - np.round(phi / self.lines))
            out[off < 0.04, :3] *= 0.72
            out[np.abs(phi) < 0.04 * self.lines, :] = (0.08, 0.09, 0.10, 1.0)  # the surface itself
        return out

    def table(self) -> wp.array:
        """For the kernels: ENTRIES of linear RGBA."""
        rgba = self.at(np.linspace(-self.depth, self.depth, ENTRIES))
        rgba[:, :3] = linear(rgba[:, :3])
        return to_device(rgba.astype(np.float32), wp.vec4f)


def distance_colours(spacing: float, deepest: float) -> TransferFunction:
    """Blue depths, pale surface, an orange halo that fades; lines a cell apart.

    spacing: of the grid [m]; deepest: largest depth inside [m].
    """
    inside = max(deepest, spacing)
    return TransferFunction(
        np.array([-inside, -0.4 * inside, 0.0, 1.5 * spacing, 4.0 * spacing]),
        np.array(
            [
                [0.10, 0.19, 0.45, 1.0],
                [0.25, 0.52, 0.76, 1.0],
                [0.90, 0.94, 0.97, 1.0],
                [0.98, 0.72, 0.42, 0.50],
                [0.95, 0.45, 0.25, 0.0],
            ]
        ),
        lines=spacing,
    )
