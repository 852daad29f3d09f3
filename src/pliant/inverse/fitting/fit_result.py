"""What a fit hands back: values, error bars from the Gauss-Newton Hessian, advice."""

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from pliant.dynamics.model import World
from pliant.inverse.fields.field_errors import standard_deviations
from pliant.inverse.fields.field_parts import FieldParts, Part, describe
from pliant.inverse.fitting.density_error import DENSITY, KNOWN_TO, density_error
from pliant.inverse.fitting.fit import Fit
from pliant.inverse.fitting.fit_log import FitLog, Minimum, rescaled
from pliant.inverse.fitting.identifiability import advise, advise_on_field
from pliant.inverse.fitting.robust_error import information
from pliant.inverse.fitting.suspects import advise_on_recording
from pliant.inverse.fitting.total_error import ErrorBudget, Repeat, error_budget
from pliant.inverse.fitting.verdict import UNFINISHED, reasons_against
from pliant.inverse.joint.experiment import AT
from pliant.inverse.joint.joint_problem import AnyProblem, JointProblem
from pliant.inverse.joint.opinion import Opinion
from pliant.inverse.joint.opinions import compared, opinions
from pliant.inverse.measuring.losses import Loss
from pliant.inverse.motion.evaluation import Evaluation
from pliant.inverse.parameters.unknowns import UnknownSet


def make_fit(
    p: AnyProblem,
    minimum: Minimum,
    log: FitLog,
    optimiser: str,
    repeats: Sequence[Repeat],
    began: float,
    density_known_to: float = KNOWN_TO,
) -> Fit:
    """The Fit at a minimum; repeats: coarser ones; began: perf_counter at the start.

    density_known_to: relative standard deviation of a density that is held.
    """
    q, e, named = minimum.q, minimum.evaluation, p.unknowns.named
    noise = p.noise or e.spread
    slopes = p.unknowns.slopes(q)
    iterations = log.iterations
    found: list[Opinion] = []
    if e.has_tangents:
        e = p.reweighed(e, final=True)
        noise = p.noise or e.spread
        loss = Loss(max(noise, 1e-9 * p.spacing), e.loss.kind)
        e = rescaled(p, e, loss, p.last_step)
        covariance_q = _covariance(information(e))
        covariance = slopes[:, None] * covariance_q * slopes[None, :]
        sigma = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        correlation = covariance / np.maximum(np.outer(sigma, sigma), 1e-300)
        budget = error_budget(p.unknowns, q, e, sigma, noise, repeats)
        if not isinstance(p, JointProblem):
            held = density_error(p, q, e, density_known_to)
            if held is not None:
                budget = replace(budget, causes=budget.causes | {DENSITY: held})
        off = budget.discretisation
        error = {} if off is None else named(off)
        advice = advise(p, q, e, covariance_q, noise, error)
        reasons = reasons_against(p, e, minimum.converged, noise, budget)
        if isinstance(p, JointProblem):
            found, quarrels = compared(p, opinions(p, e, repeats))
            reasons += quarrels
            advice += _on_recordings(p, e, found)
        else:
            advice += advise_on_recording(p, q, e, noise)
    else:
        sigma = np.abs(slopes) * standard_deviations(minimum.pairs, p.penalty_hessian(q))
        covariance = correlation = np.zeros((0, 0))
        advice = advise_on_field(p, q, e, sigma, noise)
        budget, error = ErrorBudget({"noise": sigma}), {}
        reasons = [] if minimum.converged else [UNFINISHED]
    seconds = time.perf_counter() - began
    timings = p.step_times()
    timings["forward_run_ms"] = timings["forward_ms"] * p.last_step
    timings["iteration_ms"] = 1e3 * seconds / max(iterations, 1)
    return Fit(
        labels=p.unknowns.labels, start=named(p.unknowns.values(p.unknowns.start())),
        values=named(p.unknowns.values(q)), sigma=named(sigma),
        correlation=correlation, history=log.steps, advice=advice, noise=noise, rms=e.rms,
        iterations=iterations, seconds=seconds, converged=not reasons, reasons=reasons,
        covariance=covariance, timings=timings, frame_rms=e.frame_rms, discretisation=error,
        optimiser=optimiser, opinions=found,
        total_sigma=named(budget.total),
        errors={cause: named(sigmas) for cause, sigmas in budget.causes.items()},
        extrapolated={} if budget.extrapolated is None else named(budget.extrapolated),
    )  # fmt: skip


def _on_recordings(p: JointProblem, e: Evaluation, found: Sequence[Opinion]) -> list[str]:
    """What would explain what is left, of each experiment."""
    out = []
    for x, part, own, opinion in zip(p.experiments, p.parts, p.parts_of(e), found, strict=True):
        own = own.under(Loss(opinion.noise, own.loss.kind))
        for line in advise_on_recording(part, own.q, own, opinion.noise):
            own_name = re.sub(r"--unknown ([\w.]+)", rf"--unknown \1{AT}{x.name}", line)
            out.append(f"Experiment {x.name}: {own_name}")
    return out


def in_parts(fit: Fit, parts: FieldParts, unknowns: UnknownSet, scene: World) -> Fit:
    """The fit of a field's parts, told by cell."""

    def by_cell(values: Mapping[str, float]) -> dict[str, float]:
        return unknowns.named(parts.spread(np.array([values[label] for label in fit.labels])))

    values, sigma = (parts.own(np.array([d[label] for label in fit.labels]))
                     for d in (fit.values, fit.sigma))  # fmt: skip
    centres = scene.body.nodes[scene.body.cells].mean(axis=1)
    found = []
    for k, (value, s) in enumerate(zip(values, sigma, strict=True)):
        cells = np.flatnonzero(parts.segment == k)
        place = tuple(float(c) for c in centres[cells].mean(axis=0))
        found.append(Part(cells, float(value), float(s), place))
    start = unknowns.named(unknowns.values(unknowns.start()))
    return replace(
        fit, labels=unknowns.labels, start=start, values=by_cell(fit.values),
        sigma=by_cell(fit.sigma), total_sigma=by_cell(fit.total_sigma), errors={},
        extrapolated={}, discretisation={}, parts=found, advice=[*describe(found), *fit.advice],
        correlation=np.zeros((0, 0)), covariance=np.zeros((0, 0)),
    )  # fmt: skip


def _covariance(H: np.ndarray) -> np.ndarray:
    """Inverse of the Hessian; singular directions get a huge variance."""
    values, vectors = np.linalg.eigh(H)
    floor = max(1e-14 * values.max(), 1e-200)  # its inverse must stay a number
    inverse = 1.0 / np.maximum(values, floor)
    return (vectors * inverse) @ vectors.T
