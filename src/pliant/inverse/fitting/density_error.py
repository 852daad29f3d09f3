"""What error bars owe to a density that was held for known.

Where weight and inertia alone move a body, a film shows E / density and no more: a density 10 % too
large gives a modulus 10 % too large and the same residuals. So its own uncertainty belongs into the
total. With A the derivatives of the residuals by the logarithm of the density, at the minimum

    dq = -(J^T W J)^-1 J^T W A d(log density),

whatever else (springs, loads, contact) tells the modulus apart from it.
"""

import logging

import numpy as np

from pliant.core.errors import BadInput, SolverFailure
from pliant.inverse.motion.evaluation import Evaluation
from pliant.inverse.motion.problem import Problem
from pliant.inverse.parameters.unknowns import UnknownSet, find_block, make_unknown

log = logging.getLogger(__name__)

DENSITY = "density"

KNOWN_TO = 0.1
"""Relative standard deviation of a density of which nothing is said, as one from a table for the
material is known. A body that was weighed is known to 1 % or better: say so."""


def density_error(
    problem: Problem, q: np.ndarray, e: Evaluation, known_to: float
) -> np.ndarray | None:
    """(p,) standard deviations of the unknowns, in their own units; None where no density is held.

    e: the evaluation at the minimum q, with tangents.
    """
    if not known_to > 0.0:
        return None
    columns = _by_density(problem, q, e)
    if not columns:
        return None
    pull = np.zeros(len(q))
    for k, f in e.frames.items():
        weight = np.where(f.usable, e.loss(f.r)[1], 0.0)
        pull += f.J.T @ (weight * columns[k])
    change = np.linalg.pinv(e.model[2], hermitian=True) @ pull
    return known_to * np.abs(problem.unknowns.slopes(q) * change)


def _by_density(problem: Problem, q: np.ndarray, e: Evaluation) -> dict[int, np.ndarray]:
    """Derivatives of the residuals by the logarithm of the density, by frame.

    None where it is unknown itself, given for each cell, or not of this world.
    """
    unknowns = problem.unknowns
    if any(DENSITY in label for label in unknowns.labels):
        return {}
    scene = unknowns.apply(problem.scene, q)
    try:
        value = np.atleast_1d(np.asarray(find_block(DENSITY, scene).get(scene), float))
        if value.size != 1 or not value[0] > 0.0:
            return {}
        held = make_unknown(DENSITY, value, scene)
        every = UnknownSet((held, *unknowns.recording_members(q)))
        other = Problem(scene, problem.seen, every, cost=problem.asked_cost)
        moved = other.evaluate(every.start(), e.loss)
    except (BadInput, SolverFailure) as error:
        log.info("nothing is told by the density: %s", error)
        return {}
    return {k: f.J[:, 0] for k, f in moved.frames.items()}
