"""A distance that may be differentiated twice: a cubic B-spline through samples of a shape.

    phi(X) = sum over i, j, k of c_ijk B(x - i) B(y - j) B(z - k),    (x, y, z) = (X - origin) / h,

B the cubic B-spline (de Boor 1978), c such that phi takes the samples' values at the nodes. What is
linear it reproduces exactly; edges of the shape it rounds within a sample. X may be complex, so
that a complex step through `at` gives the second derivatives.
"""

from dataclasses import dataclass

import numpy as np
from scipy import ndimage

from pliant.geometry.field import sample
from pliant.geometry.shape import Shape

TAPS = 4
"""Samples along each axis that a value depends on."""


@dataclass(frozen=True, eq=False)
class SmoothField:
    """coefficients: (i, j, k); origin: (3,) of the first [m]; spacing [m].

    Beyond the samples phi is continued by its value at their border, which is outside the shape.
    """

    coefficients: np.ndarray
    origin: np.ndarray
    spacing: float

    def at(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """phi (n,) and its gradient (n, 3) at X (n, 3)."""
        place = (X - self.origin) / self.spacing
        last = np.array(self.coefficients.shape) - TAPS + 1
        beyond = (place.real < 1.0) | (place.real > last)
        place = np.where(beyond, np.clip(place.real, 1.0, last), place)
        cell = np.clip(np.floor(place.real).astype(int), 1, last - 1)
        weights, slopes = _taps(place - cell)
        i, j, k = (cell[:, axis, None] + np.arange(-1, 3) for axis in range(3))
        c = self.coefficients[i[:, :, None, None], j[:, None, :, None], k[:, None, None, :]]
        along_z = np.einsum("nijk,nk->nij", c, weights[:, 2])
        along_y = np.einsum("nij,nj->ni", along_z, weights[:, 1])
        gradient = np.stack([
            np.einsum("ni,ni->n", along_y, slopes[:, 0]),
            np.einsum("nij,nj,ni->n", along_z, slopes[:, 1], weights[:, 0]),
            np.einsum("nijk,nk,nj,ni->n", c, slopes[:, 2], weights[:, 1], weights[:, 0]),
        ], axis=1)  # fmt: skip
        phi = np.einsum("ni,ni->n", along_y, weights[:, 0])
        return phi, np.where(beyond, 0.0, gradient / self.spacing)

    def moved(self, offset: np.ndarray) -> "SmoothField":
        """The same, displaced by `offset` (3,)."""
        return SmoothField(self.coefficients, self.origin + offset, self.spacing)


def _taps(t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """B-spline weights and their slopes, (n, 3, 4) each, at t (n, 3) between 0 and 1."""
    s = 1.0 - t
    weights = [s**3, 3.0 * t**3 - 6.0 * t**2 + 4.0, 3.0 * s**3 - 6.0 * s**2 + 4.0, t**3]
    slopes = [-3.0 * s**2, 9.0 * t**2 - 12.0 * t, 12.0 * s - 9.0 * s**2, 3.0 * t**2]
    return np.stack(weights, axis=2) / 6.0, np.stack(slopes, axis=2) / 6.0


def smooth_field(shape: Shape, *, spacing: float, margin: int = 5) -> SmoothField:
    """The distance of a 3D shape sampled at `spacing` [m]; margin: samples beyond its bounds."""
    field = sample(shape, spacing=spacing, margin=margin)
    coefficients = ndimage.spline_filter(np.asarray(field.values, float), order=3, mode="mirror")
    return SmoothField(coefficients, np.asarray(field.origin, float), float(field.spacing))
