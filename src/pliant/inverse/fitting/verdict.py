"""Whether a fit may claim success: one sentence for every reason why not."""

from dataclasses import dataclass

import numpy as np

from pliant.core.errors import SolverFailure
from pliant.core.lengths import length
from pliant.inverse.fitting.identifiability import FEW_WILD, WILD
from pliant.inverse.fitting.total_error import ErrorBudget
from pliant.inverse.joint.joint_problem import AnyProblem
from pliant.inverse.motion.evaluation import Evaluation, rms
from pliant.inverse.motion.gradient_check import INVISIBLE
from pliant.inverse.parameters.charts import POISSON_RANGE

ABOVE_NOISE = 2.0
"""Size of the residuals over a known noise from which a fit does not fit."""

UNEXPLAINED = 0.5
"""Root mean square of what the model misses, over the noise, from which a fit does not fit."""

UNREPEATED = 1.0
"""The same without coarser repeats, which would tell what is the grid's."""

PATTERN_CELLS = 0.05
"""The same in cells, where the noise is not known."""

ASIDE = 0.01
"""How far the end point is displaced, against each unknown's own size."""

ASTRAY = 0.5
"""Part of that displacement that a Gauss-Newton step may leave, or add."""

SLIPPED = 0.05
"""Share of residuals left out there: rays that slip off a silhouette."""

AT_END = 0.01
"""Distance of a Poisson's ratio from its lower end at which it counts as being there."""

AT_TOP = 0.003
"""The same from its upper end: many bodies are nearly incompressible."""

DRIVEN = 0.25
"""What neighbouring residuals share, over the noise, from which a ratio at its upper end is what
the model misses. The fit of a scanned beam of 0.4 ended at 0.4995 with 0.44 of the noise shared."""

UNFINISHED = "The optimiser ended before a minimum: allow more iterations, or start nearer."


@dataclass(frozen=True)
class Return:
    """A step back from a displaced end point: `left` of the displacement, 0 for all the way.

    growth: size of the motions that the tangents promised over that of the motions found.
    """

    left: float
    growth: float


def way_back(problem: AnyProblem, e: Evaluation, signs: np.ndarray | None = None) -> Return | None:
    """Displace the end point, simulate, and step back by the tangents at the end point.

    With r' the residuals at q + d and J the tangents at q, b = (J^T W J)^-1 J^T W (r' - r) is d
    for a motion that its tangents describe; left = |b - d| / |d| in the norm of J^T W J. None where
    the displacement hardly moves anything.
    """
    unknowns, sizes = problem.unknowns, problem.sizes(e.q)
    d = ASIDE * sizes / np.maximum(np.abs(unknowns.slopes(e.q)), 1e-300)
    d = np.clip(d, -0.1, 0.1) * (np.resize([1.0, -1.0], len(d)) if signs is None else signs)
    lower, upper = unknowns.limits()
    d = np.where((e.q + d < lower) | (e.q + d > upper), -d, d)
    other = problem.evaluate(e.q + d, e.loss, derivatives=False)
    J, change, weight = [], [], []
    for k, f in e.frames.items():
        both = f.usable & other.frames[k].usable
        J.append(f.J[both])
        change.append((other.frames[k].r - f.r)[both])
        weight.append(e.loss(f.r[both])[1])
    J, change, weight = np.concatenate(J), np.concatenate(change), np.concatenate(weight)
    promised = J @ d
    if not len(d) or rms(promised) + rms(change) < INVISIBLE * problem.spacing:
        return None
    apart = np.abs(change - promised)
    kept = apart <= np.quantile(apart, 1.0 - SLIPPED)
    J, change, weight, promised = J[kept], change[kept], weight[kept], promised[kept]
    H = J.T @ (weight[:, None] * J)
    back = np.linalg.lstsq(H, J.T @ (weight * change), rcond=None)[0]
    miss, whole = back - d, d @ H @ d
    left = float(np.sqrt(max(miss @ H @ miss, 0.0) / max(whole, 1e-300)))
    return Return(left, rms(promised) / max(rms(change), 1e-300))


def reasons_against(
    problem: AnyProblem, e: Evaluation, converged: bool, noise: float, budget: ErrorBudget
) -> list[str]:
    """Why the fit at e is no success; none if it is one."""
    out = []
    if not np.isfinite(e.rms) or not np.isfinite(budget.total).all():
        return ["The residuals or their derivatives are not finite at the end: start nearer."]
    if not converged:
        out.append(UNFINISHED)
    try:
        back = way_back(problem, e)
    except SolverFailure as failure:
        return [*out, f"A little beside the end point the simulation fails: {failure}"]
    if back is not None and back.left > ASTRAY:
        why = (
            f"the tangents are {back.growth:.2g} times as large as the motion's own change, so the "
            "error bars mean nothing"
            if back.growth > 1.0 + ASTRAY
            else "the motion does not change smoothly with the unknowns there"
        )
        out.append(
            f"A step from beside the end point does not lead back to it ({100 * back.left:.0f} % "
            f"of the way is left): {why}. Use a smaller time step or a shorter film."
        )
    driven = float(np.sqrt(budget.pattern)) > DRIVEN * noise
    return out + _impossible(problem, e.q, driven=driven) + _misfit(problem, e, noise, budget)


def _impossible(problem: AnyProblem, q: np.ndarray, *, driven: bool = False) -> list[str]:
    """Ends that no material has, or few; driven: whether residuals are no noise."""
    found = problem.unknowns.named(problem.unknowns.values(q))
    if driven and found.get("poisson_ratio", 0.0) > POISSON_RANGE[1] - AT_TOP:
        return [
            f"poisson_ratio ended at {found['poisson_ratio']:.4f}, the most that is possible, and "
            "neighbouring residuals are off together: what the model misses has driven it there."
        ]
    if found.get("poisson_ratio", 0.0) > POISSON_RANGE[0] + AT_END:
        return []
    return [
        f"poisson_ratio ended at {found['poisson_ratio']:.3f}, the least that is possible: the "
        "data do not tell it. Give it a prior, or let the body move more."
    ]


def _misfit(problem: AnyProblem, e: Evaluation, noise: float, budget: ErrorBudget) -> list[str]:
    missed = float(np.sqrt(budget.lasting))
    cause = "gravity, density, walls, contact, shape or law"
    if problem.noise:
        far = float(np.mean(np.abs(e.usable) > WILD * noise)) if len(e.usable) else 0.0
        size = e.spread
        if e.loss.kind != "tukey":  # which leaves strangers aside; the others have fitted them
            size = max(size, rms(np.minimum(np.abs(e.usable), WILD * noise)))
        if size > ABOVE_NOISE * noise or far > FEW_WILD:
            return [
                f"The residuals ({length(e.rms)}) are far above the noise ({length(noise)}): the "
                f"model does not fit the film ({cause}), or this is a second minimum, or the grid "
                "is too coarse."
            ]
    repeated = budget.discretisation is not None
    least = (UNEXPLAINED if repeated else UNREPEATED) * noise
    if not problem.noise:
        least = max(PATTERN_CELLS * problem.spacing, least)
    if missed <= least:
        return []
    which = "which neither spacing nor time step explains: the model does not fit the film"
    if not repeated:
        which = "and no coarser repeat tells whether spacing or time step explains it, or the model"
    return [f"Neighbouring residuals are off together by {length(missed, 2)}, {which} ({cause})."]
