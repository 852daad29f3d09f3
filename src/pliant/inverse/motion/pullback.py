"""The seed's point cost: phi0 of the rest shape at the pulled-back point (seed 000, eq. 5.4.4).

A point y on the deformed surface came from X with X + u(X) = y, and phi0(X) should be zero. X is
found by Newton's method inside the deformed cell. Kept for comparison: it measures distance in the
*rest* shape, at the noisy point, so noise biases it (see docs/bias.md).
"""

from dataclasses import dataclass

import numpy as np
from scipy.spatial import KDTree

from pliant.core.errors import BadInput
from pliant.fem.bodies.body import Body

CANDIDATES = 12
"""Deformed cells, nearest centres first, in which a point is looked for."""

BAND = 1.5
"""How far, in cells beyond a cell's own faces, its interpolation is extended to points outside the
active cells; the ghost penalty keeps it close to linear there. Farther points take the nearest
place of this band and count with their distance to it."""

NEWTON_STEPS = 12


@dataclass(frozen=True)
class Origins:
    """cell: (m,); shape: (m, 8) N_a(X); rest: (m, 3) X; stretch: (m, 3, 3) F = dy/dX;
    beyond: (m, 3) y - x(X), nonzero where the point lies outside the extended band.
    """

    cell: np.ndarray
    shape: np.ndarray
    rest: np.ndarray
    stretch: np.ndarray
    beyond: np.ndarray


def pull_back(body: Body, u: np.ndarray, points: np.ndarray) -> Origins:
    """Where points (m, 3) of the deformed body, or near it, come from; u: (nodes, 3)."""
    if not body.is_grid or body.dim != 3:
        raise BadInput("The pull-back cost needs a 3D body on a grid: use cost='foot'.")
    corners = body.nodes[body.cells]
    now = corners + u[body.cells]
    tree = KDTree(now.mean(axis=1))
    count = min(CANDIDATES, len(body.cells))
    _, near = tree.query(points, k=count)
    near = near.reshape(len(points), count)
    best = np.full(len(points), np.inf)
    cell = near[:, 0].copy()
    local = np.full((len(points), 3), 0.5)
    todo = np.arange(len(points))
    for c in range(count):
        found = _newton(now[near[todo, c]], points[todo])
        excess = np.abs(found - 0.5).max(axis=1) - 0.5
        better = excess < best[todo] - 1e-12
        chosen = todo[better]
        best[chosen], cell[chosen], local[chosen] = (
            excess[better], near[chosen, c], found[better],
        )  # fmt: skip
        todo = todo[best[todo] > 1e-9]
        if not len(todo):
            break
    local = np.clip(local, -BAND, 1.0 + BAND)
    shape, gradient = _trilinear(local)
    x = np.einsum("ma,mai->mi", shape, now[cell])
    rest = np.einsum("ma,mai->mi", shape, corners[cell])
    stretch = np.einsum("mai,mak->mik", now[cell], body.to_world(gradient)) / body.spacing
    return Origins(cell, shape, rest, stretch, points - x)


def pull_back_residuals(
    body: Body, u: np.ndarray, points: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """r = phi0(X) (plus the way to the band), nodes (m, 8) and dr / d node (m, 8, 3).

    dr = - (F^-T grad phi0) . du(X); beyond the band, the unit vector towards the point instead.
    """
    if body.shape is None:
        raise BadInput("The pull-back cost needs the body's shape, not bare arrays.")
    at = pull_back(body, u, points)
    r = body.shape.distance(at.rest)
    gradient = body.shape.gradient(at.rest)
    inverse = np.linalg.pinv(at.stretch)
    by_place = np.einsum("mki,mk->mi", inverse, gradient)  # F^-T grad phi0
    way = np.linalg.norm(at.beyond, axis=1)
    outside = way > 1e-6 * body.spacing
    r = r + np.where(outside, way, 0.0)
    unit = at.beyond / np.maximum(way, 1e-300)[:, None]
    by_place = np.where(outside[:, None], unit, by_place)
    slope = -at.shape[:, :, None] * by_place[:, None, :]
    return r, body.cells[at.cell], slope


def _newton(corner: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Local coordinates (m, 3) of y in deformed cells (m, 8, 3), extended beyond their faces."""
    local = np.full((len(y), 3), 0.5)
    for _ in range(NEWTON_STEPS):
        shape, gradient = _trilinear(local)
        gap = y - np.einsum("ma,mai->mi", shape, corner)
        J = np.einsum("mai,mak->mik", corner, gradient)
        det = np.linalg.det(J)
        scale = np.abs(J).max(axis=(1, 2)) ** 3
        J = np.where((np.abs(det) > 1e-9 * scale)[:, None, None], J, np.eye(3))
        step = np.clip(np.linalg.solve(J, gap[..., None])[..., 0], -1.0, 1.0)
        local = np.clip(local + step, -2.0 - BAND, 3.0 + BAND)
        if np.abs(step).max(initial=0.0) < 1e-12:
            break
    return local


def _trilinear(local: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """N_a (m, 8) and its derivative by the local coordinates (m, 8, 3), corners x fastest."""
    bits = (np.arange(8)[:, None] >> np.arange(3)) & 1
    factor = np.where(bits[None] == 1, local[:, None, :], 1.0 - local[:, None, :])
    sign = np.where(bits == 1, 1.0, -1.0)
    N = factor.prod(axis=2)
    dN = np.stack(
        [sign[None, :, k] * np.delete(factor, k, axis=2).prod(axis=2) for k in range(3)],
        axis=2,
    )
    return N, dN
