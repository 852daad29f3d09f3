"""Cubature: a few weighted points whose forces are those of all cells (seed 004, section 3.6).

    min over w >= 0 of  sum_t | sum_p w_p f_p(q_t) - f(q_t) |^2 / |f(q_t)|^2

over training poses q_t (An, Kim and James 2008). Points are chosen greedily among all of them, by
the cosine of what they do with what is left over, some at a time; the weights of those chosen are
found anew each time, by non-negative least squares on their products, from the weights that they
had (Lawson and Hanson 1974). It stops at a stated share left over.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from pliant.reduced.point_forces import PointForces, Points
from pliant.reduced.spans import ScalarSpan, VectorSpan

AT_ONCE = 0.2
"""Points added between two solves for the weights, over the numbers of the body."""

MOST = 600
"""Points, whatever is left over."""

RIDGE = 1e-10
"""Share of the products' diagonal that keeps points that do the same apart."""


@dataclass(frozen=True)
class Trained:
    """points, their training error (share of the forces left over), and the poses it is of."""

    points: Points
    error: float
    poses: int


def trained(
    points: Points, forces: PointForces, poses: np.ndarray, tolerance: float, least: int
) -> Trained:
    """Points that reproduce the forces of `points` at poses (poses, size) within a tolerance.

    forces: of `points`, with the law set. least: points at any rate.
    """
    stress, goal = _stresses(forces, poses)
    size = np.sqrt(np.square(goal).sum(axis=1))
    stress /= size[:, None]
    goal /= size[:, None]
    squares = _squares(points, stress)
    chosen: list[int] = []
    at_once = max(4, round(AT_ONCE * poses.shape[1]))
    columns, gram = np.empty((0, goal.size)), np.empty((0, 0))
    weights, left = np.zeros(0), goal.copy()
    allowed = squares > 1e-24 * float(squares.max())
    whole = float(np.square(goal).sum())
    error = 1.0
    while len(chosen) < min(MOST, int(allowed.sum())):
        score = np.where(allowed, _along(points, stress, left), -np.inf)
        score /= np.sqrt(np.maximum(squares, 1e-300))
        score[chosen] = -np.inf
        best = np.argsort(-score, kind="stable")[:at_once]
        best = best[score[best] > 0.0]
        if len(best) == 0:
            break
        chosen += best.tolist()
        new = _columns(points, stress, best)
        beside = columns @ new.T
        gram = np.block([[gram, beside], [beside.T, new @ new.T]])
        columns = np.vstack([columns, new])
        right = columns @ goal.reshape(-1)
        start = np.concatenate([weights, np.zeros(len(best))])
        weights = non_negative(gram, right, start)
        kept = weights > 0.0
        chosen = [p for p, keep in zip(chosen, kept, strict=True) if keep]
        columns, weights, gram = columns[kept], weights[kept], gram[np.ix_(kept, kept)]
        left = goal - (weights @ columns).reshape(goal.shape)
        before, error = error, float(np.sqrt(np.square(left).sum() / whole))
        if error <= tolerance and len(chosen) >= least:
            break
        if error > before * (1.0 - 1e-4) and len(chosen) >= least:
            break  # the points do not know better
    order = np.argsort(chosen, kind="stable")
    picked = np.asarray(chosen)[order]
    return Trained(some_points(points, picked, weights[order]), error, len(poses))


def some_points(points: Points, chosen: np.ndarray, weights: np.ndarray) -> Points:
    """Some of the points, ascending; weights: over those that they had."""
    d = points.gradients.dim
    rows = (d * chosen[:, None] + np.arange(d)).reshape(-1)
    span = points.gradients
    if isinstance(span, ScalarSpan):
        few: ScalarSpan | VectorSpan = ScalarSpan.of(span.dense()[rows], d)
    else:
        assert isinstance(span, VectorSpan)
        few = VectorSpan(span.basis[rows])
    return Points(weights * points.weights[chosen], points.cells[chosen], few)


def non_negative(gram: np.ndarray, right: np.ndarray, start: np.ndarray) -> np.ndarray:
    """min of x^T G x / 2 - x^T b over x >= 0, from the set that a start is positive on."""
    n = len(right)
    G = gram + RIDGE * np.diag(np.diag(gram))
    x = start.copy()
    active = x > 0.0
    if not active.any():
        x[:] = 0.0
    edge = 1e-9 * float(np.abs(right).max())
    for _ in range(6 * n + 20):
        if active.any():
            x, active = _feasible(G, right, x, active)
        gain = right - G @ x
        gain[active] = -np.inf
        if float(gain.max()) <= edge:
            return x
        active = active | (gain >= 0.3 * float(gain.max()))
    return x


def _feasible(G, right, x, active):
    """Go towards the least squares on the active set; what turns negative on the way leaves it."""
    while active.any():
        at = np.flatnonzero(active)
        goal = np.zeros(len(x))
        goal[at] = cho_solve(cho_factor(G[np.ix_(at, at)]), right[at])
        low = active & (goal <= 0.0)
        if not low.any():
            return goal, active
        new = low & (x <= 0.0)  # just let in, and of no use after all
        if new.any():
            active = active & ~new
            continue
        share = float(np.min(x[low] / (x[low] - goal[low])))
        x = x + share * (goal - x)
        leaving = active & (x <= 1e-14 * float(np.abs(x).max()))
        x[leaving] = 0.0
        active = active & ~leaving
    return np.zeros(len(x)), active


def _stresses(forces: PointForces, poses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weighted P as (rows of the gradients, poses, dim), and f (poses, size)."""
    d, w = forces.dim, forces.points.weights[:, None, None]
    stress, goal = np.empty((d * len(w), len(poses), d)), []
    assert forces.law is not None
    for t, q in enumerate(poses):
        _, P = forces.law.stress(forces.deformation(q))
        stress[:, t] = (w * P[:, :d, :d]).transpose(0, 2, 1).reshape(-1, d)
        goal.append(forces.points.gradients.pull(stress[:, t]))
    return stress, np.array(goal)


def _along(points: Points, stress: np.ndarray, left: np.ndarray) -> np.ndarray:
    """Column times residual for every point: sum over poses of P : grad(left)."""
    gradient = points.gradients.apply_many(left)
    rows = np.einsum("rti,rti->r", stress, gradient)
    return rows.reshape(len(points), -1).sum(axis=1)


def _squares(points: Points, stress: np.ndarray) -> np.ndarray:
    """Squared length of every point's column."""
    d, span = points.gradients.dim, points.gradients
    if isinstance(span, ScalarSpan):
        out = np.zeros(len(points))
        for piece in span.pieces:
            rows = piece.rows.reshape(-1, d, len(piece.columns))
            own = stress[piece.first : piece.last].reshape(len(rows), d, -1)
            products = np.matmul(own, own.transpose(0, 2, 1))
            gram = np.matmul(rows, rows.transpose(0, 2, 1))
            out[piece.first // d : piece.last // d] = np.einsum("pjk,pjk->p", products, gram)
        return out
    assert isinstance(span, VectorSpan)
    own = (
        stress.reshape(len(points), d, -1, d).transpose(0, 1, 3, 2).reshape(len(points), d * d, -1)
    )
    rows = span.basis.reshape(len(points), d * d, span.size)
    products = np.matmul(own, own.transpose(0, 2, 1))
    return np.einsum("pab,pab->p", products, np.matmul(rows, rows.transpose(0, 2, 1)))


def _columns(points: Points, stress: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """What points do at all poses, (chosen, poses size)."""
    d, span = points.gradients.dim, points.gradients
    rows = (d * chosen[:, None] + np.arange(d)).reshape(-1)
    own = stress[rows].reshape(len(chosen), d, -1, d)
    if isinstance(span, ScalarSpan):
        wide = np.zeros((len(rows), span.functions))
        for piece in span.pieces:
            here = (rows >= piece.first) & (rows < piece.last)
            wide[np.ix_(here, piece.columns)] = piece.rows[rows[here] - piece.first]
        b = wide.reshape(len(chosen), d, span.functions)
        out = np.matmul(b.transpose(0, 2, 1), own.reshape(len(chosen), d, -1))
        out = out.reshape(len(chosen), span.functions, -1, d).transpose(0, 2, 1, 3)
        return out.reshape(len(chosen), -1)
    assert isinstance(span, VectorSpan)
    b = span.basis[rows].reshape(len(chosen), d * d, span.size)
    flat = own.transpose(0, 2, 1, 3).reshape(len(chosen), -1, d * d)
    return np.matmul(flat, b).reshape(len(chosen), -1)
