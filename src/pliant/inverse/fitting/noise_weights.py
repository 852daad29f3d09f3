"""A depth film's residuals weighed by the noise of their camera and depth, where that is not one.

A fit ends with one sigma for all. Its residuals tell what the noise is (observe.depth_noise); where
it surely differs, the fit goes on from there with every residual in units of its own sigma, which
is what least squares want: noisy cameras then count little, and error bars become those of what is
left. Films of several experiments are weighed as wholes only (inverse.joint).
"""

from dataclasses import replace

import numpy as np

from pliant.core.lengths import length
from pliant.inverse.fitting.fit_log import Minimum
from pliant.inverse.fitting.fitter import Fitter
from pliant.inverse.joint.joint_problem import AnyProblem
from pliant.inverse.motion.evaluation import Evaluation
from pliant.inverse.motion.problem import Problem
from pliant.observe.depth_noise import DepthNoise, depth_noise
from pliant.observe.observations import Observations

LEAST = 1e-3
"""Cells below which residuals are what the last step of a fit leaves, not noise: a film that was
simulated without any."""

TOLD = 4
"""Cameras that a sentence names."""


def film_noise(seen: Observations, e: Evaluation) -> DepthNoise | None:
    """The noise in a depth film's residuals; None where it is one and the same."""
    camera, depth, residual = [], [], []
    for k, f in e.frames.items():
        frame = seen.frames[k]
        camera.append(frame.camera[f.usable])
        depth.append(frame.depth[f.usable])
        residual.append(f.r[f.usable])
    if not residual:
        return None
    cameras, depths, residuals = (np.concatenate(x) for x in (camera, depth, residual))
    return depth_noise(cameras, depths, residuals, len(seen.cameras))


def weighed(
    fitter: Fitter, problem: AnyProblem, minimum: Minimum
) -> tuple[AnyProblem, Minimum, DepthNoise | None]:
    """The fit gone on with weights, if the noise asks for them."""
    seen = fitter.seen
    if (
        not isinstance(problem, Problem) or not isinstance(seen, Observations)
        or problem.cost_name != "depth" or not minimum.evaluation.has_tangents
        or seen.noise_by is not None
    ):  # fmt: skip
        return problem, minimum, None
    if not minimum.converged or minimum.evaluation.spread < LEAST * problem.spacing:
        return problem, minimum, None
    found = film_noise(seen, minimum.evaluation)
    if found is None:
        return problem, minimum, None
    fitter.take(replace(seen, noise_by=found))
    clock, problem = problem.clock, fitter.problem()
    assert isinstance(problem, Problem)
    problem.clock = clock  # the same model: its times go on being measured
    fitter.notes.append(told(found))
    return problem, fitter.minimise(problem, minimum.q, fitter.log, horizons=(1.0,)), found


def told(noise: DepthNoise) -> str:
    """The noise in a sentence."""
    rows = sorted(noise.rows(), key=lambda row: -row["sigma_far"])
    words = []
    for row in rows[:TOLD]:
        grows = row["growth"] > 0.0
        ends = f"{length(row['sigma_near'], 2)}" + (
            f" at {length(row['near'])} to {length(row['sigma_far'], 2)} at {length(row['far'])}"
            if grows
            else ""
        )
        words.append(f"camera {row['camera']} {ends}")
    rest = f", {len(rows) - TOLD} others less" if len(rows) > TOLD else ""
    return f"The noise is not one: {', '.join(words)}{rest}; residuals are weighed by it."
