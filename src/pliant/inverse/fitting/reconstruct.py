"""Find the unknowns of a scene from what was seen.

Few unknowns: Levenberg-Marquardt on batched tangents. Many: Gauss-Newton by conjugate gradients on
tangent and adjoint runs, or L-BFGS-B on the adjoint. Far starts first see a short horizon, where
phases still agree, then longer ones; they may also begin on a coarser grid, or from several places.
"""

import gc
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pliant.core.errors import BadInput, SolverFailure
from pliant.core.shown import shown_by
from pliant.dynamics.model import World
from pliant.inverse.fitting.certified import certified
from pliant.inverse.fitting.far_starts import second_thoughts
from pliant.inverse.fitting.fit import Fit, Step
from pliant.inverse.fitting.fit_log import FitLog
from pliant.inverse.fitting.fit_result import in_parts, make_fit
from pliant.inverse.fitting.fitter import FitOptions, Fitter
from pliant.inverse.fitting.noise_weights import weighed
from pliant.inverse.fitting.registering import Registration, register
from pliant.inverse.joint.experiment import Experiment, numbered
from pliant.inverse.joint.sharing import Sharing, share, with_all_places
from pliant.inverse.measuring.level_set_cost import LevelSets
from pliant.inverse.measuring.losses import Loss
from pliant.inverse.measuring.measures import NodeMotions
from pliant.inverse.motion.gradient_check import gradient_mismatch
from pliant.inverse.motion.problem import Problem
from pliant.observe.observations import Observations
from pliant.observe.tracks import TrackedPoints

logger = logging.getLogger(__name__)

GRADIENT_MISMATCH = 1e-3
"""Relative difference of the two gradients above which a fit does not start."""

DIFFERENCE_MISMATCH = 0.25
"""The same against differences of the residuals. Sound ones are 1e-6 off; those of the foot point's
curvature shift, which no derivative knows, 2 % with half a voxel of noise and 7 % with one."""

NO_PARTS = (
    "No parts: the field has none that stand out, or they explain the data worse than the field "
    "does. It is given as it was fitted, with contrasts that the penalty has lowered."
)


def reconstruct(
    scene: World | Sequence[Experiment],
    seen: Observations | NodeMotions | LevelSets | TrackedPoints | None = None,
    unknowns: Mapping | None = None,
    *,
    on_step: Callable[[Step], None] | None = None,
    progress: Callable[[int, int], None] | bool | None = None,
    model: str | None = None,
    numbers: Mapping | None = None,
    **options,
) -> Fit:
    """Recover `unknowns` (name: start value) of a scene from observations.

    In place of scene and seen, a list of Experiments is fitted jointly: a plain name is one value
    for all, NAME@EXPERIMENT (its name, or its number from 1) is that one's own. `Fit.opinions` then
    holds what each says alone.

    Beside those of the scene, unknowns may be the recording's own: time_offset, recording_pose,
    camera_pose.<number>, depth_scale, depth_offset. Tracked points whose places are known to within
    a sigma bring their own, tracked_places, with that as prior.

    cost: "depth", "foot", "pullback" (the seed's, biased) or "auto" (depth where every point has
    its pixel). loss: "squares", "huber" or "tukey". optimiser: "lm", "gncg", "lbfgs", "bb" or
    "auto". horizons: shares of the recording to fit in turn (chosen by default). priors, bounds: by
    label.
    field_penalty: on a Young's modulus per cell (its start is an array). field_parts: cut the
    fitted field into parts of one modulus each and fit these again, which undoes what the penalty
    took off their contrast. multi_start: how many starts to try. coarse_to_fine: begin at twice the
    spacing and time step (by default where the start is far off). discretisation: estimate the
    errors by grid and time step from coarser repeats (by default where there are tangents).
    density_known_to: relative standard deviation of a density that is held, part of the total error
    bars (0.1 unless told; 0.01 for a body that was weighed).
    search: try a ladder of stiffnesses first where the start is far off.
    memory_limit [bytes]: of stored states in gradients. register: lay a depth film onto the shape
    by its first frame where it is off by more than its noise. memory: of the same
    fit, begun before.

    model: "reduced", "modal" (with numbers of its own, a table): find them with that model of the
    bodies first, which is cheap, and end with steps of the full ones.

    progress: True shows values and a bar, in terminals and notebooks; else progress(done, total) is
    called after the time steps of each simulation, on_step after each step of the optimiser.

    `Fit.converged` is false, with `Fit.reasons`, where no success may be claimed (see `verdict`).
    """
    if progress is True:
        with shown_by("fit_progress")() as bar:

            def both(step: Step) -> None:
                bar.step(step)
                if on_step is not None:
                    on_step(step)

            return reconstruct(
                scene, seen, unknowns, on_step=both, progress=bar.reach, model=model,
                numbers=numbers, **options,
            )  # fmt: skip
    if not unknowns:
        raise BadInput("Name at least one unknown, for example {'youngs_modulus': 2000.0}.")
    if model is not None:
        given = {"on_step": on_step, "progress": progress, **options}
        return certified(reconstruct, scene, seen, unknowns, model, numbers, given)
    if isinstance(scene, Sequence):
        if seen is not None:
            raise BadInput("Each experiment has its own observations: give no others beside them.")
        experiments = numbered(scene)
    else:
        experiments = (Experiment(scene, seen, "1"),)
    unknowns, options["priors"] = with_all_places(experiments, unknowns, options.get("priors"))
    asked = FitOptions(**options)
    began = time.perf_counter()
    gc.collect()  # a system and its derivatives hold each other, 30 MB and more a fit
    sharing = share(experiments, unknowns, asked.priors or {}, asked.bounds or {})
    fitted = sharing.unknowns
    experiments, registrations = _registered(experiments, sharing, asked)
    log = FitLog(on_step)
    fitter = Fitter(experiments, sharing, asked, log, progress or None)
    q = fitter.first_guess(fitted.start())
    problem = fitter.problem()
    if fitter.few:
        apart, off = gradient_mismatch(problem, q, Loss(problem.spacing))
        if apart > GRADIENT_MISMATCH:
            raise SolverFailure(
                f"Tangent and adjoint gradients differ by {apart:.1e}; a fit would go astray. "
                "Lower the scene's tolerance, and see `pliant check-gradients`."
            )
        if off > DIFFERENCE_MISMATCH:
            raise SolverFailure(
                f"The tangents and the difference of two runs differ by {off:.1e}; a fit would go "
                "astray. See `pliant check-gradients`; a start a little aside may lie off a kink."
            )
    log.stage = ""
    minimum = second_thoughts(fitter, problem, fitter.minimise(problem, q, log))
    problem, minimum, noise_by = weighed(fitter, problem, minimum)
    repeats = fitter.repeats(minimum.q) if minimum.evaluation.has_tangents else []

    def told(fit: Fit) -> Fit:
        fit = replace(fit, advice=[*fit.advice, *fitter.notes], noise_by=noise_by)
        moved = [r for r in registrations if r is not None]
        if not moved:
            return fit
        if isinstance(problem, Problem):
            return replace(fit, registration=moved[0], advice=[moved[0].told(), *fit.advice])
        own = zip(fit.opinions, registrations, strict=True)
        said = [
            f"Experiment {x.name}: {r.told()}"
            for x, r in zip(experiments, registrations, strict=True)
            if r is not None
        ]
        return replace(
            fit, opinions=[replace(o, registration=r) for o, r in own],
            advice=[*said, *fit.advice],
        )  # fmt: skip

    parts = None
    if asked.field_parts and (cut_out := fitter.parts_of(minimum)) is not None:
        parts, problem, minimum = cut_out
    fit = make_fit(
        problem, minimum, log, fitter.optimiser(), repeats, began, asked.density_known_to
    )
    if parts is not None:
        fit = in_parts(fit, parts, fitted, experiments[0].scene)
    elif asked.field_parts:
        fit = replace(fit, advice=[NO_PARTS, *fit.advice])
    return told(fit)


def _registered(
    experiments: tuple[Experiment, ...], sharing: Sharing, asked: FitOptions
) -> tuple[tuple[Experiment, ...], list[Registration | None]]:
    """The experiments with their depth films laid onto the shapes, and how."""
    out, how = [], []
    for x, own in zip(experiments, sharing.own, strict=True):
        found = register(x.scene, x.seen, own) if asked.register else None
        if found is not None:
            logger.warning("%s", found.told())
            x = replace(x, seen=found.apply(x.seen))
        out.append(x)
        how.append(found)
    return tuple(out), how
