"""Where cells lock: too many of them keep their volume for the body to bend.

A trilinear cell with the pointwise dilatation asks eight points to keep their volume, a linear
tetrahedron or triangle has six or fewer unknowns for one volume: near a Poisson's ratio of 1/2 both
come out far too stiff (44 % for a beam four cells across at 0.499). The mean dilatation of grids
and quadratic simplices do not.
"""

import numpy as np

from pliant.dynamics.scene import Scene

LOCKS = 0.45
"""Poisson's ratio from which it shows."""


def locking_warning(scene: Scene) -> list[str]:
    """A sentence where the scene's cells lock, and what does not."""
    body = scene.body
    if body.is_grid:
        locks, instead = scene.dilatation == "pointwise", 'dilatation = "mean"'
    else:
        locks, instead = body.order == 1, "quadratic cells (order = 2), or a grid"
    if not locks:
        return []
    lam, mu = (np.asarray(m, float) for m in scene.constitution.moduli())
    ratio = float(np.max(lam / (2.0 * (lam + mu))))
    if not ratio > LOCKS:
        return []
    kind = 'With dilatation = "pointwise" cells' if body.is_grid else "Linear cells"
    return [
        f"{kind} lock at a Poisson's ratio of {ratio:.4g}: the body is stiffer than its "
        f"material. Use {instead}."
    ]
