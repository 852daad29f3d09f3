"""The stages of a fit: where it begins, the fit proper, parts of a field, coarser repeats."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pliant.core.errors import BadInput, SolverFailure
from pliant.dynamics.model import World
from pliant.inverse.fields.field_newton import FieldNewton
from pliant.inverse.fields.field_parts import FieldParts, cuts, field_place
from pliant.inverse.fields.field_penalty import FieldPenalty, neighbours
from pliant.inverse.fitting.density_error import KNOWN_TO
from pliant.inverse.fitting.far_starts import COARSE, HORIZONS, NEAR, STARTS, from_afar
from pliant.inverse.fitting.fit import Step
from pliant.inverse.fitting.fit_log import FitLog, Minimum, robust_loss
from pliant.inverse.fitting.gradient_methods import LBFGS, BarzilaiBorwein
from pliant.inverse.fitting.levenberg_marquardt import LevenbergMarquardt
from pliant.inverse.fitting.total_error import (
    GRID,
    GRID_ORDER,
    SURE_GRID_ORDER,
    TIME_STEP,
    Repeat,
    shared_square,
)
from pliant.inverse.joint.experiment import Experiment
from pliant.inverse.joint.joint_problem import AnyProblem, JointProblem
from pliant.inverse.joint.sharing import Sharing
from pliant.inverse.motion.evaluation import Evaluation
from pliant.inverse.motion.memory import Memory
from pliant.inverse.motion.problem import Problem
from pliant.inverse.parameters.priors import Prior
from pliant.inverse.parameters.unknowns import UnknownSet, make_unknown

log = logging.getLogger(__name__)

OPTIMISERS = {
    "lm": LevenbergMarquardt, "gncg": FieldNewton, "lbfgs": LBFGS, "bb": BarzilaiBorwein,
}  # fmt: skip
"""Levenberg-Marquardt, Gauss-Newton by conjugate gradients (for fields), L-BFGS-B, gradient descent
with Barzilai-Borwein steps."""

TANGENT_TOLERANCE = 1e-5
"""Of the solves of adjoints and of single tangents in a fit, never tighter than the scene's own."""

JACOBIAN_TOLERANCE = 1e-4
"""The same for the tangents of all unknowns at once. On the noisy torus it moves values by 3e-5
sigma and error bars by 1e-5 of themselves; 1e-5 costs two iterations more a step."""

MOST_TANGENTS = 64
"""Unknowns up to which tangents are affordable; stiffness fields have more."""

SCREENING = 3
"""Iterations that each of several starts gets before the best goes on."""

PART_ITERATIONS = 12
"""Of the fits of a field's mean, and of its parts."""

SPREAD_OF_STARTS = 1.4
"""Standard deviation of further starts, in free coordinates (a factor of 4 for a modulus)."""

FEWEST_CELLS = 40
"""Of a coarser grid that may improve a far start."""

REPEAT_STEPS = 3
"""Gauss-Newton steps of a coarser repeat."""

SMALL_STEP = 0.03
"""Step in free coordinates after which a repeat is not simulated again: what it leaves is of second
order, a tenth of a percent, where errors are estimated to a few tens of them."""

UNIFORM, PARTS, REPEAT = "uniform", "parts", "coarser repeat"
"""Further stages of a fit, before and after the fit proper."""


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
    field_parts: bool = False
    multi_start: int = 1
    coarse_to_fine: bool | None = None
    discretisation: bool | None = None
    search: bool = True
    memory_limit: float | None = None
    register: bool = True
    seed: int = 0
    density_known_to: float = KNOWN_TO
    memory: Memory | None = None

    def __post_init__(self):
        if self.optimiser != "auto" and self.optimiser not in OPTIMISERS:
            names = ", ".join(("auto", *OPTIMISERS))
            raise BadInput(f"optimiser must be one of {names}, not '{self.optimiser}'.")
        if self.multi_start < 1:
            raise BadInput(f"multi_start must be at least 1, not {self.multi_start}.")
        if not 0.0 <= self.density_known_to <= 1.0:
            raise BadInput(
                "density_known_to is a share of the density between 0 and 1, "
                f"not {self.density_known_to}."
            )


class Fitter:
    """Minimises the misfit of a scene in stages, as FitOptions ask."""

    def __init__(
        self,
        experiments: Sequence[Experiment],
        sharing: Sharing,
        asked: FitOptions,
        log: FitLog,
        progress: Callable[[int, int], None] | None,
    ):
        self.experiments, self.sharing, self.unknowns = experiments, sharing, sharing.unknowns
        self.asked, self.log, self.progress = asked, log, progress
        self.scene, self.seen = experiments[0].scene, experiments[0].seen
        """What a fit of one experiment has; only one may have fields."""
        self.notes: list[str] = []
        """What is to be told of how the fit began."""
        self.own: AnyProblem | None = None
        self.known: tuple[np.ndarray, Evaluation] | None = None
        self.far = False
        if len(experiments) > 1 and field_place(self.unknowns) is not None:
            raise BadInput("A Young's modulus per cell is fitted to one experiment at a time.")

    def take(self, seen: Any) -> None:
        """Another account of the recording of the one experiment that there is."""
        self.experiments = [replace(self.experiments[0], seen=seen)]
        self.seen, self.own, self.known = seen, None, None

    @property
    def can_coarsen(self) -> bool:
        """Whether all bodies have larger cells."""
        return all(x.scene.can_coarsen for x in self.experiments)

    @property
    def few(self) -> bool:
        """Whether the tangents of all unknowns are affordable; a recording's need no solves."""
        return int(self.unknowns.moves.sum()) <= MOST_TANGENTS

    def optimiser(self) -> str:
        """Name of the optimiser for the unknowns."""
        field = not self.few or field_place(self.unknowns) is not None
        if self.asked.optimiser != "auto":
            if self.asked.optimiser == "lm" and field:
                raise BadInput(
                    f"Levenberg-Marquardt takes at most {MOST_TANGENTS} unknowns and no field: use "
                    "optimiser 'gncg'."
                )
            return self.asked.optimiser
        if not field:
            return "lm"
        # products with the Hessian hold every state; the gradient alone can recompute them
        return "gncg" if self.asked.memory_limit is None else "lbfgs"

    def problem(self, **coarser: float) -> AnyProblem:
        """The misfit of all experiments, on their scenes or on coarser ones (space, time)."""
        if not coarser and self.own is not None:
            return self.own
        parts = [
            self._part(x, own, coarser)
            for x, own in zip(self.experiments, self.sharing.own, strict=True)
        ]
        if len(parts) == 1 and self.sharing.own[0] is self.unknowns:
            problem: AnyProblem = parts[0]
        else:
            problem = JointProblem(self.experiments, parts, self.sharing)
        if not coarser:
            self.own = problem
        return problem

    def _part(self, x: Experiment, unknowns: UnknownSet, coarser: Mapping[str, float]) -> Problem:
        scene = x.scene
        if coarser:  # labels and charts do not depend on the grid
            scene = scene.coarser(**coarser)
            members = tuple(
                replace(make_unknown(m.block.name, m.start, scene), chart=m.chart)
                for m in unknowns.members
            )
            unknowns = replace(unknowns, members=members)
        return self._problem(
            scene, x.seen, unknowns, memory_limit=self.asked.memory_limit,
            regulariser=self._regulariser(scene),
        )  # fmt: skip

    def _problem(self, scene: World, seen: Any, unknowns: UnknownSet, **options: Any) -> Problem:
        return Problem(
            scene, seen, unknowns, cost=self.asked.cost, progress=self.progress,
            tangent_tolerance=max(TANGENT_TOLERANCE, scene.tolerance),
            jacobian_tolerance=max(JACOBIAN_TOLERANCE, scene.tolerance),
            memory=self.asked.memory, **options,
        )  # fmt: skip

    def _regulariser(self, scene: World):
        place, penalty = field_place(self.unknowns), self.asked.field_penalty
        if place is None:
            if penalty is not None:
                raise BadInput("A field penalty needs a Young's modulus per cell as an unknown.")
            return None
        first, *_, last = self.unknowns.split(np.arange(len(self.unknowns.labels)))[place]
        return (penalty or FieldPenalty()).on(scene.body, slice(first, last + 1))

    def minimise(
        self,
        problem: AnyProblem,
        q: np.ndarray,
        log: FitLog,
        limit: int | None = None,
        horizons: tuple[float, ...] | None = None,
        rough: bool = False,
    ) -> Minimum:
        """All horizons in turn: those asked for, those given, or by how far the start is off.

        rough: end as soon as the minimum will do for a start.
        """
        name = self.optimiser()
        usual = self.asked.max_iterations or (30 if name == "lm" else 100)
        method = OPTIMISERS[name](
            problem, log, loss=self.asked.loss,
            max_iterations=log.iterations + (limit or usual),
        )  # fmt: skip
        horizons, known = self.asked.horizons or horizons, None
        if horizons is None:
            loss = robust_loss(problem, self.asked.loss)
            if self.known is not None and problem is self.own and self.known[0] is q:
                known = self.known[1]
            elif self.few:
                known = problem.evaluate(q, loss)
            else:
                known = problem.gradient(q, loss)[0]
            near = known.worst_spread < NEAR * problem.spacing
            horizons = (1.0,) if near or limit else HORIZONS
        found = None
        for share in horizons:
            horizon = max(2, round(share * problem.last_step))
            reached = problem.frames_until(horizon)
            if not reached:  # the first frame comes later
                continue
            begin = known.until(reached) if found is None and known is not None else None
            start, last = q if found is None else found.q, share == horizons[-1]
            try:
                found = method.run(start, horizon, last and not rough, begin)
            except SolverFailure as failure:
                if found is None or known is None:
                    raise
                # a short horizon led where the body does not hold together for longer
                logging.getLogger(__name__).info("back to where the fit began: %s", failure)
                found = method.run(q, horizon, last and not rough, known.until(reached))
        if found is None:
            raise BadInput(
                f"No frame lies within the horizons {', '.join(f'{h:g}' for h in horizons)} of the "
                "recording: end them with 1."
            )
        return found

    def first_guess(self, q: np.ndarray) -> np.ndarray:
        """Where the fit begins: the best of several starts, improved on a coarser grid.

        Unless told, a start that is far off on the coarser grid is improved there.
        """
        asked = self.asked
        q = self._uniform(q)
        if asked.multi_start == 1 and asked.coarse_to_fine is False:
            return q
        problem = None
        field = field_place(self.unknowns) is not None
        if self.can_coarsen and not field and self.few:
            try:
                problem = self.problem(space=2.0, time=2.0)
            except BadInput as error:  # a wall or a load that twice the spacing misses
                if asked.coarse_to_fine:
                    raise BadInput(f"Coarse to fine fails here: {error}") from error
        elif asked.coarse_to_fine:
            raise BadInput("Coarse to fine needs a body on a grid and one modulus throughout.")
        if asked.multi_start > 1:
            q = self._best_start(problem or self.problem(), q)
        if asked.coarse_to_fine:
            assert problem is not None
            self.log.stage = COARSE
            return self.minimise(problem, q, self.log).q
        alone = asked.multi_start == 1 and asked.horizons is None
        if asked.coarse_to_fine is None and asked.horizons is None and not field and self.few:
            if problem is None or problem.cells < FEWEST_CELLS:
                problem = self.problem() if asked.search and alone else None
            return q if problem is None else from_afar(self, problem, q, asked.search and alone)
        return q

    def _uniform(self, q: np.ndarray) -> np.ndarray:
        """A field that starts as one value: that value fitted, with the other unknowns.

        The mean is what the data see best; a field that had to find it would bend to do so.
        """
        place = field_place(self.unknowns)
        if place is None or np.ptp(self.unknowns.split(q)[place]) > 0.0:
            return q
        parts = FieldParts(self.unknowns, np.zeros(self.unknowns.members[place].size, np.int64))
        _, found = self.fit_parts(parts, q, UNIFORM)
        return self.unknowns.within(parts.spread(found.q))

    def fit_parts(self, parts: FieldParts, q: np.ndarray, stage: str) -> tuple[Problem, Minimum]:
        """Fit one modulus a part, and the other unknowns, from the field q."""
        few = parts.unknowns
        problem = self._problem(self.scene, self.seen, few)

        def on_step(step: Step) -> None:
            if self.log.on_step is not None:
                values = parts.spread(np.array([step.values[label] for label in few.labels]))
                self.log.on_step(replace(step, values=self.unknowns.named(values)))

        log = FitLog(on_step, stage=stage, iterations=self.log.iterations)
        most = log.iterations + PART_ITERATIONS
        method = LevenbergMarquardt(problem, log, loss=self.asked.loss, max_iterations=most)
        found = method.run(parts.gather(q), problem.last_step, True)
        self.log.iterations = log.iterations
        return problem, found

    def parts_of(self, field: Minimum) -> tuple[FieldParts, Problem, Minimum] | None:
        """The parts of a fitted field, fitted again; None where they explain the data worse."""
        place = field_place(self.unknowns)
        if place is None:
            raise BadInput("field_parts needs a Young's modulus per cell among the unknowns.")
        own = self.unknowns.split(field.q)[place]
        e = field.evaluation
        data, penalty = replace(e, prior=None), e.prior[0] if e.prior is not None else 0.0
        best, lowest = None, penalty  # a cut must not explain the data worse than field and penalty
        for segment in cuts(own, neighbours(self.scene.body)):
            parts = FieldParts(self.unknowns, segment)
            problem, found = self.fit_parts(parts, field.q, PARTS)
            rise = replace(found.evaluation.under(e.loss), prior=None).rise_from(data)
            if rise <= lowest:
                best, lowest = (parts, problem, found), rise
        return best

    def _best_start(self, problem: AnyProblem, q: np.ndarray) -> np.ndarray:
        self.log.stage = STARTS
        rng = np.random.default_rng(self.asked.seed)
        best, lowest = q, np.inf
        for k in range(self.asked.multi_start):
            aside = SPREAD_OF_STARTS * rng.standard_normal(len(q)) * self.unknowns.moves
            start = self.unknowns.within(q if k == 0 else q + aside)
            try:
                found = self.minimise(problem, start, self.log, SCREENING)
            except SolverFailure:
                continue
            # robust and in metres: costs under different scales do not compare
            spread = problem.spread_of(found.evaluation)
            if spread < lowest:
                best, lowest = found.q, spread
        return best

    def repeats(self, q: np.ndarray) -> list[Repeat]:
        """The fit at a minimum q with larger cells, and with longer steps; without those that fail.

        Gauss-Newton steps from q: at most three simulations each, of an eighth and of half the
        cost of one of the fit's own.
        """
        if not self.few or self.asked.discretisation is False:
            return []
        order = min(x.scene.order for x in self.experiments)
        plans = [(TIME_STEP, 1.0, 2.0, order)]
        if self.can_coarsen:
            larger = min(_larger(x.scene) for x in self.experiments)
            plans.insert(0, (GRID, larger, 1.0, GRID_ORDER))
        out = []
        for kind, space, step, p in plans:
            try:
                found = self._repeat(problem := self.problem(space=space, time=step), q)
            except (BadInput, SolverFailure) as error:  # too coarse to hold together
                log.info("no repeat with a coarser %s: %s", kind, error)
                continue
            pattern = shared_square(found, problem.noise or found.spread)
            sure = SURE_GRID_ORDER if kind == GRID else None
            parts = problem.parts_of(found)
            out.append(Repeat(kind, max(space, step), p, found.q, pattern, sure, parts))
        return out

    def _repeat(self, problem: AnyProblem, q: np.ndarray) -> Evaluation:
        """Where Gauss-Newton steps lead from q, by the last one's linearisation."""
        scale = robust_loss(problem, self.asked.loss)
        for _ in range(REPEAT_STEPS):
            e = problem.reweighed(problem.evaluate(q, scale))
            e = e.under(robust_loss(problem, self.asked.loss, e))
            _, g, H = e.model
            held = self.unknowns.held(q, g)
            H = H + np.diag(np.where(held, 1e12 * max(np.diag(H).max(initial=0.0), 1e-300), 0.0))
            dq = -np.linalg.lstsq(H, g, rcond=1e-12)[0]
            dq = self.unknowns.within(q + np.clip(dq, -1.0, 1.0)) - q
            if not np.isfinite(dq).all():
                raise SolverFailure("The coarser repeat has no step.")
            e = e.predicted(dq)
            q = e.q
            if np.abs(dq).max(initial=0.0) < SMALL_STEP:
                break
        return e


def _larger(scene: World) -> float:
    """Twice the spacing, or 1.5 times where too few cells would be left."""
    return 2.0 if len(scene.body.cells) >= 8 * FEWEST_CELLS else 1.5
