"""Run a scene over time."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from pliant.core.errors import BadInput, SolverFailure
from pliant.core.shown import shown_by
from pliant.dynamics.energies import NAMES, Energies, EnergyBook
from pliant.dynamics.march import Step, anchor_before, march
from pliant.dynamics.model import Model, State, World
from pliant.dynamics.trajectory import Anchor, Trajectory

PHASES = ("assembly", "setup", "solve")


class SimulationStopped(SolverFailure):
    """A run that could not go on; `trajectory` holds everything up to the last good state.

    interrupted: by a person, and not by what the solver met.
    """

    def __init__(self, message: str, trajectory: Trajectory, *, interrupted: bool = False):
        super().__init__(message)
        self.trajectory, self.interrupted = trajectory, interrupted


@dataclass(frozen=True)
class Watched:
    """A step with its account of energies and the cells that it left inside out."""

    step: Step
    energies: Energies
    inverted: int


def watch(
    system: Model,
    state: State,
    account: Energies,
    *,
    number: int = 0,
    until: int | None = None,
    energy_check: bool = True,
) -> Iterator[Watched]:
    """`march`, looking at every step: raises SolverFailure where one went wrong.

    account: the energies at `state` (energies.stored, or what led there).
    """
    book = EnergyBook(system)
    book.open(state, account)
    energy_check = energy_check and system.judged_by_energy
    if energy_check:
        system.require_stable()
    for step in march(system, state, number=number, until=until):
        require_finite(system, step)
        energies = book.add(step.before, step.after)
        complaint = book.complaint(step.after.t) if energy_check else None
        if complaint is not None:
            raise SolverFailure(complaint)
        yield Watched(step, energies, system.inverted(step.after))


def require_finite(model: Model, step: Step) -> None:
    """Refuse a step that ended nowhere."""
    if not all(np.isfinite(f).all() for f in model.carrier.apply(step.after)):
        raise SolverFailure(
            f"The step at t = {step.before.t:g} s produced values that are not finite: "
            "use a smaller time step or check the loads."
        )


def simulate(
    scene: World,
    steps: int,
    *,
    resume: Trajectory | None = None,
    progress: Callable[[int], None] | bool | None = None,
    system: Model | None = None,
    energy_check: bool = True,
) -> Trajectory:
    """Advance `steps` time steps from rest, or from the end of `resume` up to `steps` in all.

    energy_check: stop, with a sentence, as soon as energy appears from nowhere (dynamics.energies).

    progress: True shows a bar, in terminals and notebooks. progress(step) is called after each
    step; an exception raised there (KeyboardInterrupt included)
    stops the run, and the trajectory so far is in SimulationStopped.
    """
    if progress is True:
        with shown_by("progress")("simulating", steps) as bar:
            return simulate(
                scene, steps, resume=resume, progress=bar.reach, system=system,
                energy_check=energy_check,
            )  # fmt: skip
    if steps < 0:
        raise BadInput(f"The number of steps must not be negative, not {steps}.")
    system = system or scene.make_model()
    dim, n = scene.dim, len(scene.body.nodes)
    done = 0 if resume is None else resume.steps
    frames = max(steps, done) + 1
    u = np.empty((frames, n, dim))
    v = np.empty((frames, n, dim))
    times = scene.dt * np.arange(frames)
    iterations = np.zeros(frames - 1, int)
    parts = np.ones(frames - 1, int)
    inverted = np.zeros(frames, int)
    energies = np.zeros((frames, len(NAMES)))
    timings = {phase: np.zeros(frames - 1) for phase in PHASES}
    if resume is None:
        state = system.initial_state()
        anchor = Anchor.at(0, state, system)
        u[0], v[0] = (f[:, :dim] for f in system.carrier.apply(state))
        energies[0], inverted[0] = system.stored(state).row(), system.inverted(state)
    else:
        u[: done + 1], v[: done + 1] = resume.displacements, resume.velocities
        iterations[:done] = resume.iterations
        parts[: len(resume.parts)] = resume.parts
        for phase in PHASES:
            if phase in resume.timings:
                timings[phase][:done] = resume.timings[phase]
        anchor = resume.anchor or Anchor(done, float(resume.times[-1]), resume.last_arrays())
        state = anchor.replay(system, done)
        if np.shape(resume.energies.kinetic) == (done + 1,):
            energies[: done + 1], inverted[: done + 1] = resume.energies.row(), resume.inverted
        else:
            energies[done] = system.stored(state).row()

    def acceleration(last: State) -> np.ndarray:
        a = system.saved(last).get("a")
        return np.zeros((0, dim)) if a is None else a[:, :dim]

    def so_far(count: int, last: State) -> Trajectory:
        return Trajectory(
            scene, times[: count + 1], u[: count + 1], v[: count + 1],
            acceleration(last), iterations[:count],
            {phase: t[:count] for phase, t in timings.items()}, parts[:count],
            Energies.of(energies[: count + 1]), inverted[: count + 1], anchor,
        )  # fmt: skip

    reached = done
    try:
        account = Energies.of(energies[done])
        for seen in watch(
            system, state, account, number=done, until=steps, energy_check=energy_check
        ):
            step, state, reached = seen.step, seen.step.after, seen.step.number
            u[reached], v[reached] = (f[:, :dim] for f in system.carrier.apply(state))
            energies[reached], inverted[reached] = seen.energies.row(), seen.inverted
            iterations[reached - 1] = step.record.solution.iterations
            parts[reached - 1] = step.record.parts
            for phase in PHASES:
                timings[phase][reached - 1] = step.record.timings.get(phase, 0.0)
            if anchor_before(reached) == reached:
                anchor = Anchor.at(reached, state, system)
            if callable(progress):
                progress(reached)
    except SolverFailure as failure:
        raise SimulationStopped(str(failure), so_far(reached, state)) from failure
    except KeyboardInterrupt:
        told = f"Interrupted after {reached} of {steps} steps."
        raise SimulationStopped(told, so_far(reached, state), interrupted=True) from None
    return so_far(reached, state)
