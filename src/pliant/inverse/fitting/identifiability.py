"""What the data cannot see, in words."""

from collections.abc import Mapping

import numpy as np

from pliant.core.lengths import length
from pliant.inverse.joint.joint_problem import AnyProblem
from pliant.inverse.motion.evaluation import Evaluation
from pliant.inverse.parameters.charts import POISSON_RANGE
from pliant.inverse.parameters.recording_blocks import PLACES

BLIND = 0.3
"""Standard deviation, against the unknown's own size, above which the data hardly see it."""

NOTHING = 1e6
"""The same above which they do not see it at all."""

ROUGH = 0.03
"""The same above which it is known only roughly, and its value not to be quoted without it."""

CORRELATED = 0.98
"""Correlation above which two unknowns are only known in combination."""

WILD = 5.0
"""Residual over noise beyond which a point is not this body's."""

FEW_WILD = 0.2
"""Share of such points up to which they are strangers; with more the model is wrong."""

PATTERN = 0.1
"""Share of the residuals' square that neighbours have in common from which they are no noise."""

CHANCE = 5.0
"""Standard deviations of white noise that a pattern must exceed."""

AT_BOUND = 1e-6
"""Distance to a bound, in free coordinates, at which it counts as active."""


def advise(
    problem: AnyProblem,
    q: np.ndarray,
    e: Evaluation,
    covariance: np.ndarray,
    noise: float,
    discretisation: Mapping[str, float] | None = None,
) -> list[str]:
    """Sentences on unknowns that are blind, tied together, or rivalled by the method itself."""
    labels = problem.unknowns.labels
    values = problem.unknowns.values(q)
    slopes = problem.unknowns.slopes(q)
    sigma_q = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    sigma = np.abs(slopes) * sigma_q
    out: list[str] = []
    tied: set[int] = set()
    for i in range(len(labels)):
        for j in range(i):
            c = covariance[i, j] / max(sigma_q[i] * sigma_q[j], 1e-300)
            if abs(c) > CORRELATED and max(sigma_q[i], sigma_q[j]) > 0.1:
                out.append(_tied(labels, values, covariance, i, j, c))
                tied |= {i, j}
    relative = sigma / problem.sizes(q)
    rough = []
    for i, label in enumerate(labels):
        if i in tied:
            continue
        if relative[i] > BLIND:
            seen = f"hardly see {label}: {values[i]:.4g} +- {sigma[i]:.2g}. "
            if relative[i] > NOTHING:
                seen = f"do not see {label} at all: {values[i]:.4g} is where it began. "
            out.append(f"The data {seen}Let the body move more, film it longer, or give a prior.")
        elif relative[i] > ROUGH:
            rough.append(f"{label} ({100 * relative[i]:.0f} %)")
    if rough:
        out.append(f"The data see only roughly, to one sigma: {', '.join(rough)}.")
    out += _at_bounds(problem, q)
    out += problem.cautions(q)
    for i, label in enumerate(labels):
        error = (discretisation or {}).get(label, 0.0)
        if error > 2.0 * sigma[i] and not label.startswith(PLACES):
            out.append(
                f"{label} depends on the grid more than on the noise: spacing and time step leave "
                f"an error of {error:.2g} (sigma {sigma[i]:.2g}). Quote the total sigma; refine "
                "them for a smaller one."
            )
    return out + _residuals(problem, e, noise)


def advise_on_field(
    problem: AnyProblem, q: np.ndarray, e: Evaluation, sigma: np.ndarray, noise: float
) -> list[str]:
    """Sentences on a fit with a value for every cell: what its error bars mean, where it is blind.

    sigma: (p,) of the values, NaN where the optimiser gives none.
    """
    out = []
    if np.isnan(sigma).all():
        out.append(
            "This optimiser gives no error bars for so many unknowns: optimiser 'gncg' does."
        )
    else:
        values = problem.unknowns.values(q)
        blind = int((sigma > BLIND * np.abs(values)).sum())
        text = (
            "The error bars of the field hold given its penalty: what the data do not see is as "
            "sure as the penalty makes it."
        )
        if blind:
            text += f" {blind} of {len(q)} values are less sure than {100 * BLIND:.0f} %."
        out.append(text)
    out += _at_bounds(problem, q)
    return out + _residuals(problem, e, noise)


def _residuals(problem: AnyProblem, e: Evaluation, noise: float) -> list[str]:
    """Warn where the residuals are not the noise."""
    if not (noise > 0.0 and e.rms > 1e-6 * problem.spacing):
        return []
    pattern = shared_by_neighbours(e, WILD * noise)
    if pattern > PATTERN:
        return [
            f"The residuals ({length(e.rms)}) are not noise-like: neighbouring points are off "
            f"together, by {length(np.sqrt(pattern) * e.rms, 2)}. The model misses something that "
            "moves the body (gravity, walls, contact, shape or law); the error bars do not cover "
            "that."
        ]
    if not e.rms > 1.5 * noise:
        return []
    text = f"The residuals ({length(e.rms)}) are larger than the noise ({length(noise)})"
    far = float(np.mean(np.abs(e.usable) > WILD * noise))
    if far < FEW_WILD:
        tukey = e.loss.kind == "tukey"
        way = "They are left out." if tukey else "The loss 'tukey' leaves them out."
        return [
            f"{text}: {100 * far:.2g} % of the points lie more than {WILD:.0f} times the noise "
            f"off, points of other things perhaps. {way}"
        ]
    return [f"{text}: the model, the walls or the shape do not fit everywhere."]


def shared_by_neighbours(e: Evaluation, limit: float) -> float:
    """Share of the residuals' square that a point has in common with the next one of its frame.

    Noise of a camera differs from pixel to pixel: nothing in common, within 1 / sqrt(points). What
    a model misses moves whole patches. Points farther off than the limit are left out: strangers
    come in patches too. Points in no order hide a pattern but never feign one.
    """
    common = total = count = 0.0
    for f in e.frames.values():
        r = f.r[f.usable & (np.abs(f.r) < limit)]
        common += float(r[1:] @ r[:-1])
        total += float(r @ r)
        count += len(r)
    if total == 0.0 or common / total < CHANCE / np.sqrt(count):
        return 0.0
    return common / total


def _tied(labels, values, covariance, i, j, c) -> str:
    """Two unknowns known only together: in logarithms, their ratio or product."""
    names = sorted((labels[i], labels[j]))
    if {labels[i], labels[j]} == {"youngs_modulus", "density"}:
        e, r = (i, j) if labels[i] == "youngs_modulus" else (j, i)
        ratio = values[e] / values[r]
        spread = covariance[e, e] + covariance[r, r] - 2.0 * covariance[e, r]
        sigma = ratio * np.sqrt(max(spread, 0.0))
        return (
            f"youngs_modulus and density are seen only as a ratio: {ratio:.5g} +- {sigma:.2g} per "
            "unit density. Weigh the body, or hold one of them."
        )
    kind = "difference or ratio" if c > 0 else "sum or product"
    return (
        f"{names[0]} and {names[1]} are seen only in combination (correlation {c:.3f}): the data "
        f"fix their {kind}, not each of them. Hold one of them or give a prior."
    )


def _at_bounds(problem: AnyProblem, q: np.ndarray) -> list[str]:
    """Warn where a value is what a bound made it."""
    out = []
    lower, upper = problem.unknowns.limits()
    for i, label in enumerate(problem.unknowns.labels):
        for limit, side in ((lower[i], "lower"), (upper[i], "upper")):
            if abs(q[i] - limit) < AT_BOUND:
                out.append(
                    f"{label} lies at its {side} bound: its value is the bound's, not the data's, "
                    "and its sigma means nothing. Widen the bound if it is not a physical one."
                )
        if label == "poisson_ratio":
            lo, hi = POISSON_RANGE
            value = problem.unknowns.values(q)[i]
            if min(value - lo, hi - value) < 0.003:
                out.append(
                    f"poisson_ratio lies at the end of what is possible ({value:.4f}): the body "
                    "may be incompressible, or the data do not tell."
                )
    return out
