"""Clamps that end in cells of which a thin layer is filled hold more than their region.

Nitsche's method holds the functions of a cut cell as firmly as coercivity asks, as one over what
is filled. Where a clamp ends in the middle of such a cell, the far nodes are held, too. A beam six
cells across, in a clamp that reaches 0.4 cells around its end, with sides that stick out of the
lattice by a thousandth of a cell: its first frequency is 4.5 % too high (finite elements of order
3: 6.78 Hz); by a tenth of a cell, or with sides on the lattice, it is within 1.1 %.
"""

import numpy as np

from pliant.dynamics.scene import Scene
from pliant.fem.cutting.quadrature import covered_points
from pliant.fem.cutting.walls import free_shares

THIN = 0.02
"""Filled share of a cell below which its far nodes are held by a part of it."""

ENDS = 0.1
"""Free share of the surface around a cell from which on a clamp ends there."""

MOST = 0.15
"""Share of a clamp's end that may lie in thin cells without a word: round bodies have to 0.06."""


def thin_wall_warnings(scene: Scene) -> list[str]:
    """A sentence for every region that ends where the grid cuts thin layers."""
    body = scene.body
    if not body.is_grid:
        return []
    out = []
    for number, fixed in enumerate(scene.fixed):
        points = covered_points(body, fixed.place)
        if fixed.stiffness is not None or not len(points.cell):
            continue
        cells, entry = np.unique(points.cell, return_inverse=True)
        area = np.bincount(entry, points.weight) * (free_shares(body, points) > ENDS)
        thin = body.fill[cells] < THIN
        if float(area @ thin) > MOST * float(area.sum()):
            out.append(
                f"fixed[{number}] ends in cells of which less than {100.0 * THIN:.0f} % is filled, "
                "and holds up to a cell more than its region: the body is a few per cent too "
                f"stiff. Use a spacing of {0.95 * body.spacing:.4g}, say, or move the body by a "
                "tenth of a cell."
            )
    return out
