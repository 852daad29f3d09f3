"""Find the unknowns of a scene from what was seen.

Few unknowns: Levenberg-Marquardt on batched tangents. Many: Gauss-Newton by conjugate gradients on
tangent and adjoint runs, or L-BFGS-B on the adjoint. Far starts
first see a short horizon, where phases still agree, then longer ones; they may also begin on a
coarser grid, or from several places.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from pliant.core.errors import BadInput, SolverFailure
from pliant.dynamics.scene import Scene
from pliant.inverse.coarser import can_coarsen, coarser
from pliant.inverse.evaluation import Evaluation
from pliant.inverse.field_errors import standard_deviations
from pliant.inverse.field_newton import FieldNewton
from pliant.inverse.field_penalty import FieldPenalty
from pliant.inverse.fit import Fit, Step
from pliant.inverse.fit_log import FitLog, Minimum, rescaled, robust_loss
from pliant.inverse.gradient_methods import LBFGS, BarzilaiBorwein
from pliant.inverse.identifiability import advise, advise_on_field
from pliant.inverse.level_set_cost import LevelSets
from pliant.inverse.levenberg_marquardt import LevenbergMarquardt
from pliant.inverse.losses import Loss
from pliant.inverse.measures import NodeMotions
from pliant.inverse.priors import Prior
from pliant.inverse.problem import Problem
from pliant.inverse.unknowns import UnknownSet, make_unknown
from pliant.observe.observations import Observations

OPTIMISERS = {
    "lm": LevenbergMarquardt, "gncg": FieldNewton, "lbfgs": LBFGS, "bb": BarzilaiBorwein,
}  # fmt: skip
"""Levenberg-Marquardt, Gauss-Newton by conjugate gradients (for fields), L-BFGS-B, gradient descent
with Barzilai-Borwein steps."""

HORIZONS = (0.25, 0.5, 1.0)
"""Shares of the recording that a far start sees one after the other."""

NEAR = 0.7
"""Residual, in cells, below which a start counts as near and sees the whole recording at once."""

GRADIENT_MISMATCH = 1e-3
"""Relative difference of the two gradients above which a fit does not start."""

TANGENT_TOLERANCE = 1e-5
"""Of the tangents' solves in a fit: steps and error bars to five digits. Tighter than the scene's
own tolerance is never needed."""

MOST_TANGENTS = 64
"""Unknowns up to which tangents are affordable; stiffness fields have more."""

SCREENING = 3
"""Iterations that each of several starts gets before the best goes on."""

SPREAD_OF_STARTS = 1.4
"""Standard deviation of further starts, in free coordinates (a factor of 4 for a modulus)."""

STARTS, UNIFORM, COARSE, REPEAT = "starts", "uniform", "coarse", "coarser repeat"
"""Stages of a fit before and after the fit proper."""


@dataclass(frozen=True)
class FitOptions:
    """How to fit; see `reconstruct`."""

    cost: str = "auto"
    loss: str = "huber"
    optimiser: str = "auto"
    max_iterations: int | None = None
    horizons: tuple[float, ...] | None = None
    priors: Mapping[str, Prior] | None = None
    bounds: Mapping[str, tuple[float, float]] | None = None
    field_penalty: FieldPenalty | None = None
    multi_start: int = 1
    coarse_to_fine: bool = False
    discretisation: bool = False
    memory_limit: float | None = None
    seed: int = 0

    def __post_init__(self):
        if self.optimiser != "auto" and self.optimiser not in OPTIMISERS:
            names = ", ".join(("auto", *OPTIMISERS))
            raise BadInput(f"optimiser must be one of {names}, not '{self.optimiser}'.")
        if self.multi_start < 1:
            raise BadInput(f"multi_start must be at least 1, not {self.multi_start}.")


def reconstruct(
    scene: Scene,
    seen: Observations | NodeMotions | LevelSets,
    unknowns: Mapping,
    *,
    on_step: Callable[[Step], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
    **options,
) -> Fit:
    """Recover `unknowns` (name: start value) of a scene from observations.

    cost: "depth", "foot", "pullback" (the seed's, biased) or "auto" (depth where every point has
    its pixel). loss: "squares", "huber" or "tukey". optimiser: "lm", "gncg", "lbfgs", "bb" or
    "auto".
    horizons: shares of the recording to fit in turn (chosen by default). priors, bounds: by label.
    field_penalty: on a Young's modulus per cell (its start is an array). multi_start: how many
    starts to try. coarse_to_fine: begin at twice the spacing and time step. discretisation:
    estimate its error from such a repeat. memory_limit [bytes]: of stored states in gradients.
    """
    if not unknowns:
        raise BadInput("Name at least one unknown, for example {'youngs_modulus': 2000.0}.")
    asked = FitOptions(**options)
    began = time.perf_counter()
    members = tuple(make_unknown(n, v, scene) for n, v in unknowns.items())
    fitted = UnknownSet(members, asked.priors or {}, asked.bounds or {})
    log = FitLog(on_step)
    fitter = _Fitter(scene, seen, fitted, asked, log, progress)
    q = fitter.first_guess(fitted.start())
    problem = fitter.problem(scene)
    if len(q) <= MOST_TANGENTS:
        mismatch = problem.gradient_mismatch(q, Loss(scene.body.spacing))
        if mismatch > GRADIENT_MISMATCH:
            raise SolverFailure(
                f"Tangent and adjoint gradients differ by {mismatch:.1e}; a fit would go astray. "
                "Lower the scene's tolerance, and see `pliant check-gradients`."
            )
    log.stage = ""
    minimum = fitter.minimise(problem, q, log)
    error = fitter.discretisation_error(minimum.q) if asked.discretisation else {}
    return _result(problem, minimum, log, fitter.optimiser(len(q)), error, began)


class _Fitter:
    def __init__(self, scene, seen, unknowns: UnknownSet, asked: FitOptions, log, progress):
        self.scene, self.seen, self.unknowns = scene, seen, unknowns
        self.asked, self.log, self.progress = asked, log, progress

    def optimiser(self, size: int) -> str:
        if self.asked.optimiser != "auto":
            if self.asked.optimiser == "lm" and size > MOST_TANGENTS:
                raise BadInput(f"Levenberg-Marquardt takes at most {MOST_TANGENTS} unknowns.")
            return self.asked.optimiser
        return "lm" if size <= MOST_TANGENTS else "gncg"

    def problem(self, scene: Scene) -> Problem:
        unknowns = self.unknowns
        if scene is not self.scene:  # labels and charts do not depend on the grid
            members = tuple(make_unknown(m.name, _plain(m), scene) for m in unknowns.members)
            unknowns = replace(unknowns, members=members)
        return Problem(
            scene, self.seen, unknowns, cost=self.asked.cost, progress=self.progress,
            tangent_tolerance=max(TANGENT_TOLERANCE, scene.tolerance),
            memory_limit=self.asked.memory_limit, regulariser=self._regulariser(scene),
        )  # fmt: skip

    def _regulariser(self, scene: Scene):
        first = 0
        for m in self.unknowns.members:
            if m.name == "youngs_modulus" and m.size > 1:
                penalty = self.asked.field_penalty or FieldPenalty()
                return penalty.on(scene.body, slice(first, first + m.size))
            first += m.size
        if self.asked.field_penalty is not None:
            raise BadInput("A field penalty needs a Young's modulus per cell among the unknowns.")
        return None

    def minimise(
        self, problem: Problem, q: np.ndarray, log: FitLog, limit: int | None = None
    ) -> Minimum:
        """All horizons in turn."""
        name = self.optimiser(len(q))
        usual = self.asked.max_iterations or (30 if name == "lm" else 100)
        method = OPTIMISERS[name](
            problem, log, loss=self.asked.loss,
            max_iterations=log.iterations + (limit or usual),
        )  # fmt: skip
        horizons, known = self.asked.horizons, None
        if horizons is None:
            loss = robust_loss(self.asked.loss, None, problem.noise, problem.scene.body.spacing)
            if len(q) <= MOST_TANGENTS:
                known = problem.evaluate(q, loss)
            else:
                known = problem.gradient(q, loss)[0]
            near = known.spread < NEAR * problem.scene.body.spacing
            horizons = (1.0,) if near or limit else HORIZONS
        found = None
        for share in horizons:
            horizon = max(2, round(share * problem.last_step))
            start = q if found is None else found.q
            if found is None and known is not None:
                known = known.until(problem.frames_until(horizon))
            if known is not None and not known.frames:
                continue
            found = method.run(start, horizon, share == horizons[-1], known)
            known = None
        assert found is not None
        return found

    def first_guess(self, q: np.ndarray) -> np.ndarray:
        """Where the fit begins: the best of several starts, improved on a coarser grid."""
        asked = self.asked
        q = self._uniform(q)
        if asked.multi_start == 1 and not asked.coarse_to_fine:
            return q
        problem = None
        if can_coarsen(self.scene) and all(m.size < MOST_TANGENTS for m in self.unknowns.members):
            try:
                problem = self.problem(coarser(self.scene))
            except BadInput as error:  # a wall or a load that twice the spacing misses
                if asked.coarse_to_fine:
                    raise BadInput(f"Coarse to fine fails here: {error}") from error
        elif asked.coarse_to_fine:
            raise BadInput("Coarse to fine needs a body on a grid and one modulus throughout.")
        if problem is None:
            problem = self.problem(self.scene)
        if asked.multi_start > 1:
            q = self._best_start(problem, q)
        if asked.coarse_to_fine:
            self.log.stage = COARSE
            q = self.minimise(problem, q, self.log).q
        return q

    def _uniform(self, q: np.ndarray) -> np.ndarray:
        """A field that starts as one value: that value fitted, with the other unknowns.

        The mean is what the data see best; a field that had to find it would bend to do so.
        """
        members = self.unknowns.members
        flat = [
            m.name == "youngs_modulus" and m.size > 1 and np.ptp(m.start) == 0.0 for m in members
        ]
        if not any(flat):
            return q
        few = tuple(
            make_unknown(m.name, float(m.start[0]), self.scene) if own else m
            for m, own in zip(members, flat, strict=True)
        )
        problem = Problem(
            self.scene, self.seen, UnknownSet(few), cost=self.asked.cost, progress=self.progress,
            tangent_tolerance=max(TANGENT_TOLERANCE, self.scene.tolerance),
        )  # fmt: skip

        def spread(numbers: np.ndarray) -> np.ndarray:
            """One number for all cells becomes one for each."""
            parts = zip(problem.unknowns.split(numbers), members, strict=True)
            return np.concatenate([np.broadcast_to(p, m.size) for p, m in parts])

        def on_step(step: Step) -> None:
            if self.log.on_step is not None:
                values = spread(np.array(list(step.values.values()))).tolist()
                named = dict(zip(self.unknowns.labels, values, strict=True))
                self.log.on_step(replace(step, values=named))

        log = FitLog(on_step, stage=UNIFORM)
        method = LevenbergMarquardt(problem, log, loss=self.asked.loss, max_iterations=10)
        found = method.run(problem.unknowns.start(), problem.last_step, True)
        self.log.iterations = log.iterations
        lower, upper = self.unknowns.limits()
        return np.clip(spread(found.q), lower, upper)

    def _best_start(self, problem: Problem, q: np.ndarray) -> np.ndarray:
        self.log.stage = STARTS
        rng = np.random.default_rng(self.asked.seed)
        lower, upper = self.unknowns.limits()
        best, lowest = q, np.inf
        for k in range(self.asked.multi_start):
            start = q if k == 0 else q + SPREAD_OF_STARTS * rng.standard_normal(len(q))
            start = np.clip(start, lower, upper)
            try:
                found = self.minimise(problem, start, self.log, SCREENING)
            except SolverFailure:
                continue
            # robust and in metres: costs under different scales do not compare
            spread = found.evaluation.spread
            if spread < lowest:
                best, lowest = found.q, spread
        return best

    def discretisation_error(self, q: np.ndarray) -> dict[str, float]:
        """How far values may be off because of spacing and time step, by label.

        From two repeats, v1 at twice the spacing and v2 at twice the time step as well:
        |v - v1| + |v1 - v2|, so that the two cannot cancel. It is Richardson's estimate for a
        method of first order, hence on the safe side of one of second.
        """
        if not can_coarsen(self.scene) or len(q) > MOST_TANGENTS:
            return {}
        log = FitLog(self.log.on_step, stage=REPEAT, iterations=self.log.iterations)
        found = [q]
        for step in (1.0, 2.0):
            try:
                problem = self.problem(coarser(self.scene, time=step))
                found.append(self.minimise(problem, found[-1], log, 5).q)
            except (BadInput, SolverFailure):  # too coarse to hold together
                return {}
        v, v1, v2 = (self.unknowns.values(f) for f in found)
        error = np.abs(v - v1) + np.abs(v1 - v2)
        return dict(zip(self.unknowns.labels, error.tolist(), strict=True))


def _plain(member):
    return member.start if member.size > 1 or len(member.start) > 1 else float(member.start[0])


def _result(
    p: Problem, minimum: Minimum, log: FitLog, optimiser: str, error: dict[str, float], began: float
) -> Fit:
    labels, q, e = p.unknowns.labels, minimum.q, minimum.evaluation
    noise = p.noise or e.spread
    start = p.unknowns.values(p.unknowns.start())
    slopes = p.unknowns.slopes(q)
    iterations = log.iterations
    if e.has_tangents:
        loss = Loss(max(noise, 1e-9 * p.scene.body.spacing), e.loss.kind)
        e = rescaled(p, e, loss, p.last_step)
        covariance_q = _covariance(e.model[2])
        covariance = slopes[:, None] * covariance_q * slopes[None, :]
        sigma = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        correlation = covariance / np.maximum(np.outer(sigma, sigma), 1e-300)
        advice = advise(p, q, e, covariance_q, noise, error)
    else:
        sigma = np.abs(slopes) * standard_deviations(minimum.pairs, p.penalty_hessian(q))
        covariance = correlation = np.zeros((0, 0))
        advice = advise_on_field(p, q, e, sigma, noise)
    seconds = time.perf_counter() - began
    timings = p.step_times()
    timings["forward_run_ms"] = timings["forward_ms"] * p.last_step
    timings["iteration_ms"] = 1e3 * seconds / max(iterations, 1)
    return Fit(
        labels=labels,
        start=dict(zip(labels, start.tolist(), strict=True)),
        values=dict(zip(labels, p.unknowns.values(q).tolist(), strict=True)),
        sigma=dict(zip(labels, sigma.tolist(), strict=True)),
        correlation=correlation, history=log.steps, advice=advice, noise=noise, rms=e.rms,
        iterations=iterations, seconds=seconds, converged=minimum.converged,
        covariance=covariance, timings=timings, frame_rms=e.frame_rms, discretisation=error,
        optimiser=optimiser,
    )  # fmt: skip


def _covariance(H: np.ndarray) -> np.ndarray:
    """Inverse of the Hessian; singular directions get a huge variance."""
    values, vectors = np.linalg.eigh(H)
    floor = 1e-14 * max(values.max(), 1e-300)
    inverse = 1.0 / np.maximum(values, floor)
    return (vectors * inverse) @ vectors.T


__all__ = ["OPTIMISERS", "Evaluation", "FitOptions", "reconstruct"]
