"""Where a far start should begin: a ladder of stiffnesses, tried on the coarser grid.

Sag goes as 1 / E and frequencies as sqrt(E), so that from a far start nothing local points the
right way: a body that is far too stiff does not move, one that is far too soft has fallen out of
sight. A start is in the right place if it leaves but a part of what a body at rest would leave.
All moduli together are multiplied by 10^(k/2), k = -5 .. 5, from the stiff end down to where the
body sags much farther than anything that was seen; one run each tells how well every share of the
recording fits, the early ones where phases still agree, the whole where they must. Between the
rungs the best of each share is refined twice. What no motion depends on nonlinearly (a start's
amplitudes, the recording's own unknowns) is let go along at every rung, by its tangents.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pliant.core.errors import SolverFailure
from pliant.inverse.joint.joint_problem import AnyProblem
from pliant.inverse.measuring.losses import Loss
from pliant.inverse.motion.evaluation import Evaluation
from pliant.inverse.parameters.charts import Chart, Positive, Scaled, Signed
from pliant.inverse.parameters.unknown import Unknown

log = logging.getLogger(__name__)

RUNGS = tuple(k / 2.0 for k in range(5, -6, -1))
"""Decades of stiffness, the stiff end first."""

FINER = (0.25, 0.125)
"""Decades beside the best rung that are tried then."""

EXPLAINED = 0.5
"""Share of what a body at rest leaves that a start may leave, over every horizon."""

FALLEN = 1.5
"""Times the residuals of a body at rest beyond which a softer one is not worth trying."""

PASSED = 3.0
"""Times the residuals of a rung that explains the motion at which a softer one ends the search."""

APART = 0.2
"""Decades within which two starts are one."""


@dataclass(frozen=True)
class Rung:
    """A start that was tried: decades from the one given, q, and spreads [m] by horizon."""

    decades: float
    q: np.ndarray
    spreads: tuple[float, ...]


def stiffness_places(members: Sequence[Unknown]) -> np.ndarray:
    """(p,): which coordinates of q are logarithms of moduli."""
    return np.concatenate([np.full(m.size, _is_modulus(m)) for m in members])


def _is_modulus(m: Unknown) -> bool:
    if m.block.unit != "Pa":
        return False
    return isinstance(m.chart, Positive) or (isinstance(m.chart, Signed) and m.start[0] != 0.0)


def _linear_places(members: Sequence[Unknown]) -> np.ndarray:
    """(p,): which coordinates the motion, or what it is compared with, is about linear in."""
    return np.concatenate([
        np.full(m.size, type(m.chart) is Chart or isinstance(m.chart, Scaled)) for m in members
    ])  # fmt: skip


def _until(problem: AnyProblem, horizons: Sequence[float]) -> list[set[int]]:
    """Frames of every horizon that has any."""
    reached = [problem.frames_until(max(2, round(h * problem.last_step))) for h in horizons]
    return [f for f in reached if f]


def explains(problem: AnyProblem, e: Evaluation, horizons: Sequence[float]) -> bool:
    """Whether a misfit is a part only of what a body at rest would leave, over every horizon."""
    still = problem.at_rest(e.q, e.loss)
    return all(
        problem.spread_of(e.until(f)) < EXPLAINED * problem.spread_of(still.until(f))
        for f in _until(problem, horizons)
    )


def ladder(problem: AnyProblem, q: np.ndarray, loss: Loss, horizons: Sequence[float]) -> list[Rung]:
    """The starts that fit best over one of the horizons, the best over all of it first.

    Empty where no modulus is unknown, or where every stiffness fails.
    """
    members = problem.unknowns.members
    stiff = stiffness_places(members)
    if not stiff.any():
        return []
    linear = _linear_places(members)
    frames = _until(problem, horizons)
    lower, upper = problem.unknowns.limits()
    tried: dict[float, Rung] = {}

    def rung(decades: float) -> Rung | None:
        at = np.clip(q + np.where(stiff, decades * np.log(10.0), 0.0), lower, upper)
        try:
            e = problem.evaluate(at, loss, derivatives=bool(linear.any()))
            e = _projected(e, linear)
            spreads = tuple(problem.spread_of(e.until(f)) for f in frames)
        except SolverFailure as failure:
            log.info("search, stiffness times 10^%g: %s", decades, failure)
            return None
        log.info("search, stiffness times 10^%g: spreads %s m", decades, spreads)
        tried[decades] = Rung(decades, np.clip(e.q, lower, upper), spreads)
        return tried[decades]

    rigid = problem.spread_of(problem.at_rest(q, loss))
    for decades in RUNGS:
        found = rung(decades)
        if found is None and tried:
            break  # softer ones do not hold together either
        if found is None:
            continue
        best = min(r.spreads[-1] for r in tried.values())
        if found.spreads[-1] > FALLEN * rigid:
            break
        if best < EXPLAINED * rigid and found.spreads[-1] > PASSED * best:
            break
    if not tried:
        return []
    for step in FINER:
        for best in {_best(tried, h) for h in range(len(frames))}:
            for side in (-step, step):
                if best + side not in tried:
                    rung(best + side)
    out: list[Rung] = []
    for h in reversed(range(len(frames))):
        best = tried[_best(tried, h)]
        if all(abs(best.decades - other.decades) > APART for other in out):
            out.append(best)
    return out


def _best(tried: dict[float, Rung], horizon: int) -> float:
    return min(tried, key=lambda d: tried[d].spreads[horizon])


def _projected(e: Evaluation, free: np.ndarray) -> Evaluation:
    """The misfit after a Gauss-Newton step in some of the coordinates."""
    if not free.any():
        return e
    _, g, H = e.model
    own = np.ix_(free, free)
    dq = np.zeros(len(e.q))
    dq[free] = -np.linalg.lstsq(H[own] + 1e-9 * np.eye(int(free.sum())), g[free], rcond=1e-12)[0]
    return e.predicted(np.clip(dq, -2.0, 2.0))
