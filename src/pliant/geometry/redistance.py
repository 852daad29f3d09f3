"""Turning any sampled field into a signed distance without moving its zero set.

Each grid node looks for its foot: the nearest point of the zero set of a cubic interpolant.
Linear interpolation would do for the position of the surface, but its normal jumps from cell to
cell, and the gradient of the distance would inherit jumps of the order of curvature * spacing.
"""

import itertools
from typing import Any

import numpy as np
from scipy.spatial import KDTree

from pliant.core.errors import BadInput
from pliant.core.launch import thread_count

REFINE_STEPS = 12
"""Steps of the foot search, from at most about half a cell off. On a torus with a tube of
seven cells half of the nodes settle in 7 steps and four of five in 12; the tangential error that is
left in the others enters the distance only as its square."""

MAX_SHIFT = 0.3
"""How far, in cells, the cubic interpolant may move a crossing off the linear one. More means the
field has a kink there (a feature thinner than two cells), and the linear crossing is kept."""

MAX_GAP = 0.8
"""A foot farther than this many cells from all edge crossings lies on a surface that only the cubic
interpolant has (it overshoots at kinks) and is dropped. A plane comes within 0.71 of a crossing."""

SHARING_ROUNDS = 30
"""Most passes in which nodes try their neighbours' feet; they stop when no node gains."""

SETTLED = 1e-4
"""A foot that moves less than this many cells is left alone."""

CHUNK = 1 << 16
"""Points handled at once; their 4^3 stencils then take about 30 MB."""


def redistance(values: np.ndarray, *, spacing: float, band: float = 5.0) -> np.ndarray:
    """Signed distance (same shape as `values`, 2D or 3D) to the zero set of the sampled field.

    spacing: edge length of a cell. band: nodes within this many cells of the zero set get the
    refined foot point (error of third order, 0.003 cells at ten cells per radius of curvature);
    those beyond, the distance to the nearest sample of the surface, up to 0.1 cells too large.
    No node changes its sign. Sharp edges are rounded as the interpolant rounds them.
    """
    values = np.asarray(values, dtype=np.float64)
    inside = values < 0.0
    field = CubicField(values)
    samples = surface_samples(values, field)
    if len(samples) == 0:
        raise BadInput("the field has no zero crossing, so there is no surface to measure from.")
    tree = KDTree(samples)
    feet = np.empty((values.size, values.ndim))
    for first in range(0, values.size, CHUNK):
        index = np.arange(first, min(first + CHUNK, values.size))
        part = np.stack(np.unravel_index(index, values.shape), axis=1).astype(np.float64)
        found: Any = tree.query(part, workers=thread_count())
        distance, nearest = found
        chosen = samples[nearest]
        near = np.flatnonzero(distance <= band)
        refined = nearest_feet(field, part[near], chosen[near])
        gap: Any = tree.query(refined, workers=thread_count(), distance_upper_bound=MAX_GAP)
        sound = np.isfinite(gap[0])
        chosen[near[sound]] = refined[sound]
        feet[index] = chosen
    distance = shared_feet(feet.reshape(*values.shape, -1)) * spacing
    return np.where(inside, -distance, distance)


def shared_feet(feet: np.ndarray) -> np.ndarray:
    """Distance, in cells, from each node to the nearest of its own and its neighbours' feet.

    feet: (*grid, dim). A search can end on the wrong one of two sheets; a neighbour's foot then
    shows it. Afterwards neighbours differ by at most a cell, as distances do.
    """
    shape = feet.shape[:-1]
    nodes = np.stack(np.meshgrid(*[np.arange(float(n)) for n in shape], indexing="ij"), axis=-1)
    best = np.linalg.norm(nodes - feet, axis=-1)
    for _ in range(SHARING_ROUNDS):
        gained = False
        for axis in range(len(shape)):
            low = tuple(slice(None, -1) if a == axis else slice(None) for a in range(len(shape)))
            high = tuple(slice(1, None) if a == axis else slice(None) for a in range(len(shape)))
            for here, there in ((low, high), (high, low)):
                offered = np.linalg.norm(nodes[here] - feet[there], axis=-1)
                nearer = offered < best[here] - SETTLED
                gained = gained or bool(nearer.any())
                feet[here][nearer] = feet[there][nearer]
                best[here][nearer] = offered[nearer]
        if not gained:
            break
    return best


class CubicField:
    """Tensor-product cubic (Catmull-Rom) interpolant of grid values, in units of cells."""

    def __init__(self, values: np.ndarray):
        self.shape = values.shape
        # One extrapolated layer on every side gives each cell its four values per axis.
        self.padded = np.pad(values, 1, mode="reflect", reflect_type="odd")

    def __call__(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Value (n,) and gradient (n, dim) at points (n, dim), which are held inside the grid."""
        dim = len(self.shape)
        last = np.array(self.shape) - 1
        points = np.clip(points, 0.0, last)
        cell = np.minimum(points.astype(np.int64), last - 1)
        t = points - cell
        weight, slope = _cubic_weights(t)  # (4, n, dim)
        offsets = np.array(list(itertools.product(range(4), repeat=dim)))
        strides = np.array(self.padded.strides) // self.padded.itemsize
        block = self.padded.ravel()[(cell @ strides)[:, None] + offsets @ strides]
        value = np.zeros(len(points))
        block = block.reshape(-1, *(4,) * dim)
        axes = "ijk"[:dim]
        gradient = np.empty_like(points)
        for derivative in range(-1, dim):
            factors = [(slope if a == derivative else weight)[:, :, a] for a in range(dim)]
            sums = f"n{axes}," + ",".join(f"{a}n" for a in axes) + "->n"
            total = np.einsum(sums, block, *factors, optimize=True)
            if derivative < 0:
                value = total
            else:
                gradient[:, derivative] = total
        return value, gradient


def _cubic_weights(t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weights of the four neighbours at -1, 0, 1, 2 for the fraction t, and their derivatives."""
    t2, t3 = t * t, t * t * t
    weight = np.stack([-t + 2 * t2 - t3, 2 - 5 * t2 + 3 * t3, t + 4 * t2 - 3 * t3, t3 - t2])
    slope = np.stack([-1 + 4 * t - 3 * t2, 9 * t2 - 10 * t, 1 + 8 * t - 9 * t2, 3 * t2 - 2 * t])
    return weight / 2, slope / 2


def edge_crossings(values: np.ndarray) -> np.ndarray:
    """Linear zero crossings (m, dim), in cells, on the grid edges whose ends differ in sign."""
    inside = values < 0.0
    found = []
    for axis in range(values.ndim):
        a = np.take(values, range(values.shape[axis] - 1), axis=axis)
        b = np.take(values, range(1, values.shape[axis]), axis=axis)
        inside_a = np.take(inside, range(values.shape[axis] - 1), axis=axis)
        inside_b = np.take(inside, range(1, values.shape[axis]), axis=axis)
        where = np.argwhere(inside_a != inside_b)
        index = tuple(where.T)
        points = where.astype(np.float64)
        points[:, axis] += a[index] / (a[index] - b[index])
        found.append(points)
    return np.concatenate(found)


def surface_samples(values: np.ndarray, field: CubicField) -> np.ndarray:
    """Points (m, dim), in cells, on the cubic zero set, at most about a cell apart."""
    linear = edge_crossings(values)
    points = linear.copy()
    for _ in range(4):
        points += _normal_step(*field(points), limit=0.25)
    residual, gradient = field(points)
    off = np.linalg.norm(_normal_step(residual, gradient, limit=1.0), axis=1)
    moved = np.linalg.norm(points - linear, axis=1)
    keep = (moved <= MAX_SHIFT) & (off <= 1e-3)
    return np.where(keep[:, None], points, linear)


def _normal_step(value: np.ndarray, gradient: np.ndarray, *, limit: float) -> np.ndarray:
    """Newton step -f g / |g|^2 (n, dim), no longer than `limit` cells."""
    square = np.einsum("ni,ni->n", gradient, gradient)
    scale = -value / np.where(square > 0.0, square, np.inf)
    length = np.abs(scale) * np.sqrt(square)
    scale *= limit / np.maximum(length, limit)
    return scale[:, None] * gradient


def nearest_feet(field: CubicField, nodes: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Nearest point (n, dim) of the zero set to each node, in cells, searched from `start`.

    Each step goes to the surface along the normal and along the tangent plane towards the node.
    The full tangential step diverges where distance * curvature > 1, so it is halved for
    a node whenever it did not bring the foot nearer. The nearest foot that lay on the surface
    counts, and never one farther than the start.
    """
    x = start.copy()
    best = np.linalg.norm(nodes - x, axis=1)
    best_foot = start.copy()
    last = best.copy()
    damping = np.ones(len(nodes))
    live = np.arange(len(nodes))  # those still moving
    for _ in range(REFINE_STEPS):
        value, gradient = field(x[live])
        normal_step = _normal_step(value, gradient, limit=0.5)
        foot = x[live] + normal_step
        offset = nodes[live] - foot
        now = np.linalg.norm(offset, axis=1)
        miss = np.linalg.norm(normal_step, axis=1)
        nearer = (miss < 1e-2) & (now < best[live])
        best[live[nearer]] = now[nearer]
        best_foot[live[nearer]] = foot[nearer]
        damping[live[now > last[live] * (1.0 + 1e-9)]] /= 2.0
        last[live] = now
        norm = np.linalg.norm(gradient, axis=1, keepdims=True)
        normal = gradient / np.where(norm > 0.0, norm, 1.0)
        tangent = offset - np.einsum("ni,ni->n", offset, normal)[:, None] * normal
        step = damping[live, None] * tangent
        length = np.linalg.norm(step, axis=1)
        x[live] = foot + step * (0.5 / np.maximum(length, 0.5))[:, None]
        live = live[(length > SETTLED) | (miss > SETTLED)]
        if live.size == 0:
            break
    return best_foot
