"""How far along a Newton step: where the slope r . dx has fallen enough.

No energy is needed, so contact and friction take part, and rounding cannot stop it close to the
solution.
"""

import numpy as np
import warp as wp

from pliant.dynamics.newton_problem import NewtonFailure, NewtonProblem
from pliant.dynamics.turning import TurningStep
from pliant.linalg.blocks import combine, dot, free_square

OVERSHOOT = 0.9
"""A step is shortened when the slope behind it is more than this share of the slope before, turned
round."""

SHORTEST = 1e-8
"""Share of a Newton step below which the line search gives up."""


def advance(
    p: NewtonProblem,
    x: wp.array,
    r: wp.array,
    dx: wp.array,
    trial: wp.array,
    slope: float,
    *,
    search: bool,
) -> tuple[float, int, bool]:
    """x += t dx with t from the slope r . dx; r becomes that at the new x.

    Returns the norm, how often the step was shortened, and whether it was turned. trial: a buffer;
    search: whether t may be other than 1.

    Where the whole step goes too far, a body that may turn does so truly on the way. A problem that
    knows how far surfaces may move (`longest`) begins with that share of the step.
    """
    longest = getattr(p, "longest", None)
    t = whole = 1.0 if longest is None else longest(x, dx)
    shortened = 0
    low, high = 0.0, np.inf
    turning: TurningStep | None = None
    while True:
        if turning is None:
            combine(trial, (1.0, x), (t, dx))
        else:
            turning.move(t, trial)
        p.residual(trial, r)
        norm = free_norm(p, r)
        if not search:
            if not np.isfinite(norm):
                raise NewtonFailure("moving the held parts distorts the body too far at once.")
            break
        behind = np.nan
        if np.isfinite(norm):
            behind = dot(r, dx if turning is None else turning.direction(t))
            if abs(behind) <= OVERSHOOT * abs(slope) or (behind > 0.0 and t >= whole):
                break
        if t == whole and turning is None and (turning := p.turning(x, dx)) is not None:
            continue  # the whole of it once more
        if behind > 0.0:  # still falling steeply: the last cut was too deep
            low = t
            if not np.isfinite(high) or high - low < 0.05 * high:
                break
            t = 0.5 * (low + high)
            shortened += 1
            continue
        high = t
        if np.isfinite(behind):
            t = max(low + 0.1 * (high - low), min(0.5 * (low + high), t * slope / (slope - behind)))
        else:
            t = low + 0.3 * (high - low)
        shortened += 1
        if t < SHORTEST:
            raise NewtonFailure("the line search found no way down.")
    wp.copy(x, trial)
    return norm, shortened, turning is not None


def free_norm(p: NewtonProblem, r: wp.array) -> float:
    """|r| over the free components; the others become zero."""
    return float(np.sqrt(free_square(r, p.matrix.free)))
