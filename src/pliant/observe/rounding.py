"""How far a curved surface bulges over its flat facets.

A facet cut from a grid is a chord: a sphere of radius R on cells of size h lies up to h^2 / 8R
above it, which is many times the error of an average over thousands of noisy pixels. The height s
of the true surface above a facet is sampled at its corners and edge midpoints of the body at rest,
taken as a quadratic, and carried along by the deformation.
"""

from dataclasses import dataclass

import numpy as np

from pliant.fem.body import Body

LARGEST = 0.3
"""Height in cells beyond which a facet cuts off an edge or a corner rather than a bulge: it is
flattened to this."""


@dataclass(frozen=True)
class Bulge:
    """corner: (facets, 3) and middle: (facets, 3) heights [m]; middle k lies opposite corner k."""

    corner: np.ndarray
    middle: np.ndarray

    def height(self, facet: np.ndarray, bary: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """s (m,) at barycentric places (m, 3) of facets (m,), and ds / d bary (m, 3).

        s = sum c_k b_k (2 b_k - 1) + 4 sum m_k b_i b_j over the corners k and the others i, j.
        """
        c, m = self.corner[facet], self.middle[facet]
        b = bary
        around = np.stack([b[:, 1] * b[:, 2], b[:, 2] * b[:, 0], b[:, 0] * b[:, 1]], axis=1)
        s = np.sum(c * b * (2.0 * b - 1.0), axis=1) + 4.0 * np.sum(m * around, axis=1)
        others = np.stack(
            [
                m[:, 1] * b[:, 2] + m[:, 2] * b[:, 1],
                m[:, 2] * b[:, 0] + m[:, 0] * b[:, 2],
                m[:, 0] * b[:, 1] + m[:, 1] * b[:, 0],
            ],
            axis=1,
        )
        return s, c * (4.0 * b - 1.0) + 4.0 * others


def bulge_of(body: Body) -> Bulge | None:
    """Heights of a 3D body's shape above its facets; None where there is no shape to ask."""
    if body.shape is None or body.dim != 3 or not body.is_grid:
        return None
    points = body.surface.positions(body.nodes)
    facets = body.surface.facets
    most = LARGEST * body.spacing
    corner = np.clip(-body.shape.distance(points), -most, most)[facets]
    p = points[facets]
    middle = np.empty((len(facets), 3))
    for k in range(3):
        at = 0.5 * (p[:, (k + 1) % 3] + p[:, (k + 2) % 3])
        middle[:, k] = np.clip(-body.shape.distance(at), -most, most)
    return Bulge(corner, middle)
