"""Points and weights to integrate a nonlinear energy over the filled part of a cell.

A linear tetrahedron takes its one point, a quadratic one four, a quadratic triangle three, exact
for products of gradients. A grid cell takes 2^dim points of equal weight at

    centroid + S (+-1, +-1, +-1),   S = square root of the filled part's covariance:

whatever the cut, volume, centroid and all second moments are exact and every weight is positive,
which a rule fitted to the 27 moments cannot promise, and without which an energy has no lower
bound. For a full cell these are Gauss's 2 x 2 x 2 points. Integrals of grad N are quadratic without
pure squares, so a constant stress is in exact balance on every cut (patch test).
"""

from dataclasses import dataclass

import numpy as np

from pliant.fem.bodies.body import Body
from pliant.fem.bodies.quadratic_simplices import RULES
from pliant.fem.forces.cells import (
    _PAIR_COEFFICIENTS,
    _SINGLE_COEFFICIENTS,
    FLUCTUATION,
    QUADRATIC,
    quadratic_slopes,
)


@dataclass(frozen=True)
class CellQuadrature:
    """weight: (rows, q) [m^dim]; gradient: (rows, q, k, 3) [1/m] of the rows of a geometry table;
    position: (rows, q, dim) in unit-cell coordinates (grid) or the first dim barycentric ones.
    """

    weight: np.ndarray
    gradient: np.ndarray
    position: np.ndarray


def cell_quadrature(body: Body, *, dilatation: str = "mean") -> CellQuadrature:
    """The rule of every row of the body's geometry table.

    dilatation: "mean" takes gradients on grids as the mean and a share of what varies about it
    (cells.FLUCTUATION), "pointwise" as they are.
    """
    rows = body.geometry_table
    k = body.cells.shape[1]
    if body.kind == QUADRATIC:
        at = RULES[k]
        gradient = np.einsum("qm,rami->rqai", at, quadratic_slopes(rows, k))
        weight = np.repeat(rows[:, 12:13] / len(at), len(at), axis=1)
        position = np.broadcast_to(at[:, : body.dim], (len(rows), len(at), body.dim))
        return CellQuadrature(weight, gradient, position)
    if not body.is_grid:
        gradient = rows[:, :12].reshape(-1, 1, 4, 3)[:, :, :k].copy()
        return CellQuadrature(
            rows[:, 12:13].copy(), gradient, np.full((len(rows), 1, body.dim), 1.0 / k)
        )
    dim, h = body.dim, body.spacing
    volume, mean, covariance = second_moments(rows, dim, h)
    spread, axes = np.linalg.eigh(covariance)
    sigma = np.sqrt(np.maximum(spread, 0.0))
    signs = np.array([[1 - 2 * ((i >> d) & 1) for d in range(dim)] for i in range(2**dim)])
    # the symmetric root: principal axes alone are arbitrary where variances coincide
    offset = np.einsum("qj,rjd,rd,rid->rqi", signs, axes, sigma, axes)
    position = mean[:, None, :] + offset
    weight = np.repeat(volume[:, None] / 2**dim, 2**dim, axis=1) * h**dim
    gradient = body.to_world(_gradients(position, k, dim) / h)
    if dilatation == "mean":  # all points weigh the same
        average = gradient.mean(axis=1, keepdims=True)
        gradient = average + FLUCTUATION**0.5 * (gradient - average)
    return CellQuadrature(weight, gradient, position)


def second_moments(rows: np.ndarray, dim: int, spacing: float):
    """Volume (r,), centroid (r, dim) and covariance (r, dim, dim), in unit-cell coordinates.

    The geometry rows hold integrals of products of l0, l1 in two coordinates; expanding them in
    powers gives back the moments.
    """
    pair = np.linalg.inv(_PAIR_COEFFICIENTS)
    M = rows / spacing if dim == 3 else rows
    n = len(rows)
    if dim == 3:
        yz, xz, xy = (
            np.einsum("ap,bq,rpq->rab", pair, pair, M[:, first : first + 9].reshape(n, 3, 3))
            for first in (0, 9, 18)
        )
        volume = yz[:, 0, 0]
        first = np.stack([xy[:, 1, 0], yz[:, 1, 0], yz[:, 0, 1]], axis=1)
        second = np.empty((n, 3, 3))
        second[:, 0, 0], second[:, 1, 1], second[:, 2, 2] = xy[:, 2, 0], yz[:, 2, 0], yz[:, 0, 2]
        second[:, 0, 1] = second[:, 1, 0] = xy[:, 1, 1]
        second[:, 0, 2] = second[:, 2, 0] = xz[:, 1, 1]
        second[:, 1, 2] = second[:, 2, 1] = yz[:, 1, 1]
    else:
        y = M[:, [0, 3, 6]] @ pair.T
        x = M[:, [9, 12, 15]] @ pair.T
        single = np.linalg.inv(_SINGLE_COEFFICIENTS[:, :2])
        xy = np.einsum("ap,bq,rpq->rab", single, single, M[:, [27, 30, 33, 36]].reshape(n, 2, 2))
        volume = x[:, 0]
        first = np.stack([x[:, 1], y[:, 1]], axis=1)
        second = np.empty((n, 2, 2))
        second[:, 0, 0], second[:, 1, 1] = x[:, 2], y[:, 2]
        second[:, 0, 1] = second[:, 1, 0] = xy[:, 1, 1]
    safe = np.maximum(volume, 1e-300)
    mean = first / safe[:, None]
    covariance = second / safe[:, None, None] - mean[:, :, None] * mean[:, None, :]
    return volume, mean, covariance


def _gradients(t: np.ndarray, k: int, dim: int) -> np.ndarray:
    """Gradients of the multilinear shape functions at unit-cell points t (r, q, dim)."""
    factor = np.stack([1.0 - t, t])
    out = np.zeros((*t.shape[:2], k, 3))
    for a in range(k):
        bits = [(a >> d) & 1 for d in range(dim)]
        for i in range(dim):
            g = np.full(t.shape[:2], 2.0 * bits[i] - 1.0)
            for d in range(dim):
                if d != i:
                    g = g * factor[bits[d], :, :, d]
            out[:, :, a, i] = g
    return out
