"""Far starts: told by how badly they fit, searched for, improved on the coarser grid, judged."""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pliant.core.errors import SolverFailure
from pliant.inverse.fitting.fit_log import Minimum, robust_loss
from pliant.inverse.fitting.search import explains, ladder
from pliant.inverse.fitting.verdict import ABOVE_NOISE
from pliant.inverse.joint.joint_problem import AnyProblem

if TYPE_CHECKING:
    from pliant.inverse.fitting.fitter import Fitter

log = logging.getLogger(__name__)

STARTS, COARSE = "starts", "coarse"
"""Stages of a fit before the fit proper."""

FAR_ITERATIONS = 20
"""Of a far start on the coarser grid."""

RATIO, RATIOS, NEXT_RATIO = "poisson_ratio", (0.3, 0.45, 0.15), 0.08
"""Poisson's ratios to try again from where a far start ends badly, and how near is the same."""

OTHER_MINIMUM = 0.15
"""Distance, in free coordinates, from which the ends of two starts are two minima."""

RIVAL = 1.3
"""Times the residuals of the best one up to which another minimum is a rival."""

HORIZONS = (0.25, 0.5, 1.0)
"""Shares of the recording that a far start sees one after the other."""

NEAR = 0.7
"""Residual, in cells, below which a start counts as near and sees the whole recording at once."""


def from_afar(fitter: "Fitter", problem: AnyProblem, q: np.ndarray, search: bool) -> np.ndarray:
    """A far start, improved on the coarser grid; any other as it is.

    search: over a ladder of stiffnesses first, see `search`.
    """
    coarse = problem is not fitter.own
    loss = robust_loss(problem, fitter.asked.loss)
    before = np.inf
    try:
        start = problem.evaluate(q, loss, derivatives=not coarse)
        before = problem.spread_of(start)
        if start.worst_spread < NEAR * fitter.scene.body.spacing:
            fitter.known = None if coarse else (q, start)
            return q
        search = search and not explains(problem, start, HORIZONS)
        if not coarse and not search:
            fitter.known = (q, start)
            return q
    except SolverFailure as failure:  # so soft, perhaps, that it does not hold together
        log.info("the start fails: %s", failure)
        if not search:
            return q
    fitter.far = search
    rungs = ladder(problem, q, loss, HORIZONS) if search else []
    starts = [r.q for r in rungs] or [q]
    if not coarse and len(starts) == 1:  # the fit proper is what improves it
        return starts[0]
    fitter.log.stage = COARSE if coarse else STARTS
    ends: list[tuple[np.ndarray, Minimum, float]] = []
    for at in starts:
        try:
            found = fitter.minimise(
                problem, at, fitter.log, FAR_ITERATIONS, horizons=HORIZONS, rough=True
            )
        except SolverFailure:  # too coarse to hold together
            continue
        ends.append((at, found, problem.spread_of(found.evaluation)))
    if not ends:
        return starts[0]
    best = min(ends, key=lambda end: end[2])
    fitter.notes += other_minima(problem, best, [end for end in ends if end is not best])
    # robust and in metres: a coarse grid that led astray is not followed
    return best[1].q if best[2] < before else q


def second_thoughts(fitter: "Fitter", problem: AnyProblem, found: Minimum) -> Minimum:
    """The minimum that a far start led to, or a better one with another Poisson's ratio.

    A ratio that is far off has minima of its own, next to a modulus that makes up for it. They
    are looked for only where the residuals are far above the noise.
    """
    labels, noise = problem.unknowns.labels, problem.noise
    if noise is None or not fitter.far or RATIO not in labels:
        return found
    if problem.spread_of(found.evaluation) <= ABOVE_NOISE * noise:
        return found
    place = labels.index(RATIO)
    member = next(m for m in problem.unknowns.members if m.name == RATIO)
    ends = [(found.q, found, problem.spread_of(found.evaluation))]
    for ratio in RATIOS:
        q = found.q.copy()
        q[place] = member.chart.coordinates(np.array([ratio]))[0]
        q = problem.unknowns.within(q)
        if abs(problem.unknowns.values(q)[place] - problem.unknowns.values(found.q)[place]) < (
            NEXT_RATIO
        ):
            continue
        try:
            end = fitter.minimise(problem, q, fitter.log, FAR_ITERATIONS, horizons=(1.0,))
        except SolverFailure:
            continue
        ends.append((q, end, problem.spread_of(end.evaluation)))
        if ends[-1][2] <= ABOVE_NOISE * noise:
            break
    best = min(ends, key=lambda end: end[2])
    fitter.notes += other_minima(problem, best, [end for end in ends if end is not best])
    return best[1]


def other_minima(
    problem: AnyProblem,
    best: tuple[np.ndarray, Minimum, float],
    others: Sequence[tuple[np.ndarray, Minimum, float]],
) -> list[str]:
    """A sentence on each start that ended elsewhere than the best."""
    unknowns, out = problem.unknowns, []
    for start, found, spread in others:
        apart = np.abs(found.q - best[1].q) * unknowns.moves
        if apart.max(initial=0.0) < OTHER_MINIMUM:
            continue
        i = int(np.argmax(apart))
        label = unknowns.labels[i]
        a, b = unknowns.values(start)[i], unknowns.values(found.q)[i]
        text = (
            f"A start at {label} {a:.3g} ends in another minimum, at {b:.3g}, with residuals of "
            f"{spread:.2g} m instead of {best[2]:.2g} m"
        )
        if spread < RIVAL * best[2]:
            text += ": the recording hardly tells the two apart. Give a prior, or film longer."
        else:
            text += ", and is left aside."
        out.append(text)
    return out
