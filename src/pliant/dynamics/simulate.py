"""Run a scene over time."""

from collections.abc import Callable

import numpy as np
import warp as wp

from pliant.core.errors import BadInput, SolverFailure
from pliant.core.launch import to_device
from pliant.dynamics.energies import NAMES, Energies, EnergyBook
from pliant.dynamics.law_system import make_system
from pliant.dynamics.scene import Scene
from pliant.dynamics.stable_step import require_stable
from pliant.dynamics.system import State, System
from pliant.dynamics.trajectory import Trajectory

PHASES = ("assembly", "setup", "solve")


class SimulationStopped(SolverFailure):
    """A run that could not go on; `trajectory` holds everything up to the last good state."""

    def __init__(self, message: str, trajectory: Trajectory):
        super().__init__(message)
        self.trajectory = trajectory


def simulate(
    scene: Scene,
    steps: int,
    *,
    resume: Trajectory | None = None,
    progress: Callable[[int, Trajectory | None], None] | None = None,
    system: System | None = None,
    energy_check: bool = True,
) -> Trajectory:
    """Advance `steps` time steps from rest, or from the end of `resume` up to `steps` in all.

    energy_check: stop, with a sentence, as soon as energy appears from nowhere (dynamics.energies).

    progress(step, None) is called after each step; an exception raised there (KeyboardInterrupt
    included) stops the run, and the trajectory so far is in SimulationStopped.
    """
    if steps < 0:
        raise BadInput(f"The number of steps must not be negative, not {steps}.")
    system = system or make_system(scene)
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
    book = EnergyBook(system)
    if energy_check:
        require_stable(system)
    timings = {phase: np.zeros(frames - 1) for phase in PHASES}
    if resume is None:
        state = system.initial_state()
        u[0], v[0] = (f.numpy()[:, :dim] for f in (state.u, state.v))
        energies[0], inverted[0] = book.open(state).row(), system.inverted(state.u)
    else:
        u[: done + 1], v[: done + 1] = resume.displacements, resume.velocities
        iterations[:done] = resume.iterations
        parts[: len(resume.parts)] = resume.parts
        for phase in PHASES:
            if phase in resume.timings:
                timings[phase][:done] = resume.timings[phase]
        system.forget()
        state = state_of(resume)
        carried = None
        if np.shape(resume.energies.kinetic) == (done + 1,):
            energies[: done + 1], inverted[: done + 1] = resume.energies.row(), resume.inverted
            carried = Energies.of(energies[done])
        energies[done] = book.open(state, carried).row()

    def so_far(count: int, last: State) -> Trajectory:
        return Trajectory(
            scene, times[: count + 1], u[: count + 1], v[: count + 1],
            last.a.numpy()[:, :dim], iterations[:count],
            {phase: t[:count] for phase, t in timings.items()}, parts[:count],
            Energies.of(energies[: count + 1]), inverted[: count + 1],
        )  # fmt: skip

    for step in range(done, steps):
        try:
            after, record = system.step(state)
            new_u, new_v = (f.numpy()[:, :dim] for f in (after.u, after.v))
            if not (np.isfinite(new_u).all() and np.isfinite(new_v).all()):
                raise SolverFailure(
                    f"The step at t = {state.t:g} s produced values that are not finite: "
                    "use a smaller time step or check the loads."
                )
            energies[step + 1] = book.add(state, after).row()
            complaint = book.complaint(after.t) if energy_check else None
            if complaint is not None:
                raise SolverFailure(complaint)
        except SolverFailure as failure:
            raise SimulationStopped(str(failure), so_far(step, state)) from failure
        state = after
        u[step + 1], v[step + 1] = new_u, new_v
        iterations[step] = record.solution.iterations
        parts[step] = record.parts
        inverted[step + 1] = system.inverted(state.u)
        for phase in PHASES:
            timings[phase][step] = record.timings[phase]
        if progress is not None:
            try:
                progress(step + 1, None)
            except KeyboardInterrupt:
                raise SimulationStopped("interrupted", so_far(step + 1, state)) from None
    return so_far(max(steps, done), state)


def state_of(run: Trajectory) -> State:
    """The last state of a trajectory, on the device."""

    def three(values):
        out = np.zeros((len(values), 3))
        out[:, : values.shape[1]] = values
        return to_device(out, wp.vec3d)

    return State(
        three(run.displacements[-1]), three(run.velocities[-1]), three(run.last_acceleration),
        float(run.times[-1]),
    )  # fmt: skip
