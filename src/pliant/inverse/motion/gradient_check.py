"""Whether the tangents of a problem are the derivatives of its residuals, asked before a fit."""

from typing import TYPE_CHECKING

import numpy as np

from pliant.inverse.measuring.losses import Loss
from pliant.inverse.measuring.measures import FrameMisfit

if TYPE_CHECKING:
    from pliant.inverse.joint.joint_problem import AnyProblem
    from pliant.inverse.motion.problem import Problem

INVISIBLE = 1e-5
"""Motions by an unknown, in spacings, of which tangent and adjoint hold rounding only."""

CHANGES = (1e-3, 1e-4)
"""Of the unknowns, in free coordinates, for the difference that checks the tangents."""

MOST_CHANGE = 30.0
"""Times these for unknowns of which little is seen."""

CLOSE = 0.01
"""Relative difference at which no smaller change is tried."""

KEPT = 0.8
"""Share of the residuals that move which is compared with differences: the rest are rays that slip
off a silhouette and feet that jump to another place."""


def gradient_mismatch(problem: "AnyProblem", q: np.ndarray, loss: Loss) -> tuple[float, float]:
    """How far the tangents over the first frame are from the adjoint, and from differences.

    The worst of all experiments, each relative to a gradient at least as large as motions of
    INVISIBLE spacings would make it.
    """
    apart, off = zip(*(_mismatch(*own) for own in problem.each(q, loss)), strict=True)
    return max(apart), max(off)


def _mismatch(problem: "Problem", q: np.ndarray, loss: Loss) -> tuple[float, float]:
    horizon = max(1, min(m.last for m in problem.moments))
    e = problem.evaluate(q, loss, horizon=horizon, tolerance=problem.tangent_tolerance)
    tangent = adjoint = e.model[1]
    if problem.system.differentiable:
        adjoint = problem.gradient(q, loss, horizon=horizon)[1]
    invisible = INVISIBLE * problem.spacing
    pull = sum(float(np.abs(loss(f.r)[1] * f.r)[f.usable].sum()) for f in e.frames.values())
    least = max(invisible * pull, 1e-300)
    apart = float(np.abs(tangent - adjoint).max() / max(np.abs(tangent).max(), least))
    seen = np.sqrt(sum(np.square(f.J[f.usable]).sum(axis=0) for f in e.frames.values()))
    # all unknowns at once, those of which less is seen changed by more
    d = np.minimum(seen.max() / np.maximum(seen, 1e-300), MOST_CHANGE)
    if not seen.any():  # nothing is seen of any, or all derivatives are lost: differences tell
        d[:] = 1.0
    d[1::2] *= -1.0
    off = np.inf
    for h in CHANGES:
        up, down = (
            problem.evaluate(q + step * d, loss, derivatives=False, horizon=horizon).frames
            for step in (h, -h)
        )
        off = min(off, _difference_error(e.frames, up, down, h, d, invisible))
        if off < CLOSE:
            break
    return apart, off


def _difference_error(
    at: dict[int, FrameMisfit],
    up: dict[int, FrameMisfit],
    down: dict[int, FrameMisfit],
    h: float,
    d: np.ndarray,
    invisible: float,
) -> float:
    """Relative error of J d against (r(q + h d) - r(q - h d)) / 2h, residual by residual."""
    tangents, differences = [], []
    for k, f in at.items():
        both = f.usable & up[k].usable & down[k].usable
        tangents.append(f.J[both] @ d)
        differences.append((up[k].r - down[k].r)[both] / (2.0 * h))
    along, found = np.concatenate(tangents), np.concatenate(differences)
    error, size = np.abs(along - found), np.maximum(np.abs(along), np.abs(found))
    visible = np.flatnonzero(size > max(1e-3 * size.max(initial=0.0), invisible))
    kept = visible[np.argsort(error[visible])][: int(np.ceil(KEPT * len(visible)))]
    return float(error[kept].sum() / max(size[kept].sum(), 1e-300))
