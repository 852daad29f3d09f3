"""A shape that is off: bumps along the surface's normal, fixed to the body.

A scan is wrong where it was wrong, however the body moves. The seen surface lies sum_j o_j b_j(X)
outside of the shape's, X at rest, with bumps b_j that sum to one everywhere and are as wide as
their centres are apart, so that it is smooth by itself. Only what is seen is corrected; the body
that moves stays as it was scanned.
"""

import numpy as np

from pliant.inverse.measuring.costs import Residuals
from pliant.observe.calibration import SURFACE_NUMBERS


def spread_centres(points: np.ndarray, count: int = SURFACE_NUMBERS) -> tuple[np.ndarray, float]:
    """Places (count, 3) among points (n, 3), each the farthest from those before; and how far apart
    the last one is [m].
    """
    first = int(np.argmax(np.linalg.norm(points - points.mean(axis=0), axis=1)))
    chosen = [first]
    distance = np.linalg.norm(points - points[first], axis=1)
    gap = float(distance.max())
    while len(chosen) < count:
        farthest = int(np.argmax(distance))
        gap = float(distance[farthest])
        chosen.append(farthest)
        distance = np.minimum(distance, np.linalg.norm(points - points[farthest], axis=1))
    return points[chosen], max(gap, 1e-12)


class SurfaceBumps:
    """b_j at surface points (n, 3) at rest."""

    def __init__(self, points: np.ndarray):
        centres, gap = spread_centres(points)
        square = ((points[:, None] - centres[None]) ** 2).sum(axis=2) / gap**2
        own = np.exp(-2.0 * (square - square.min(axis=1, keepdims=True)))
        self._share = own / own.sum(axis=1, keepdims=True)

    def slopes(self, res: Residuals) -> np.ndarray:
        """Derivative of residuals by the offsets, (m, SURFACE_NUMBERS).

        A corner's slope lies along the normal; outwards the surface comes nearer to who sees it,
        and residuals fall.
        """
        reach = np.linalg.norm(res.slope, axis=2)
        return -np.einsum("mc,mcj->mj", reach, self._share[res.corners])
