"""Runs into a directory: stopped by a signal or a failure, all that was computed is saved."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from pliant.app.export import write_frame, write_index, write_surface
from pliant.app.run_directory import (
    BODY,
    CHECKPOINT,
    INDEX,
    NOT_THE_SCENE,
    RESULT,
    SCENE,
    TRAJECTORY,
    WORK,
    RunDirectory,
    Snapshot,
    describe,
    files_digest,
    open_scene,
)
from pliant.core.errors import PliantError
from pliant.dynamics.energies import NAMES, Energies
from pliant.dynamics.law_system import make_system
from pliant.dynamics.scene import Scene
from pliant.dynamics.scene_stress import SceneStress
from pliant.dynamics.simulate import PHASES, SimulationStopped, simulate
from pliant.dynamics.step_quality import step_warnings
from pliant.dynamics.system import System
from pliant.dynamics.trajectory import Trajectory, inversion_warning

__all__ = [
    "BODY", "NOT_THE_SCENE", "RESULT", "SCENE", "Interrupted", "RunDirectory", "RunFailed",
    "describe", "export_frames", "files_digest", "interrupts", "open_scene", "run_scene",
    "summary",
]  # fmt: skip

FRAMES_LOOKED_AT = 200
"""Saved steps from which the motion's frequency is read."""

CHUNK = 8
"""Steps between looks at the disk: what a killed process loses at most."""


class Interrupted(PliantError):
    """The run was stopped by a signal; its state is saved."""


class RunFailed(PliantError):
    """The run could not go on; its last good state is saved."""


@contextmanager
def interrupts() -> Iterator[Callable[[], bool]]:
    """While active, the first SIGINT or SIGTERM only sets a flag; a second one acts at once."""
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False  # only the main thread may set handlers
        return
    asked: list[int] = []
    before: dict[int, Any] = {}

    def note(number, frame):
        asked.append(number)
        if len(asked) > 1:
            raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM):
        before[number] = signal.signal(number, note)
    try:
        yield lambda: bool(asked)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run_scene(
    scene: Scene,
    directory: RunDirectory,
    *,
    steps: int,
    every: int = 1,
    progress: Callable[[int], None] | None = None,
    system: System | None = None,
    energy_check: bool = True,
) -> None:
    """Simulate up to `steps` steps in all into a directory that `begin` has made.

    Saves every `every`-th step and the last one. Raises RunFailed or Interrupted, with all that
    was computed saved.
    """
    last = directory.last_state(scene.body.nodes.shape)
    system = system or make_system(scene)
    if last is None:
        last = _initial(system)
        directory.write_state(last)
    with interrupts() as asked:

        def after_step(done: int) -> None:
            if progress is not None:
                progress(done)
            if asked():
                raise KeyboardInterrupt

        try:
            while last.step < steps:
                target = min(steps, (last.step // every + 1) * every, last.step + CHUNK)
                last = _advance(
                    scene, system, last, target, after_step, directory, energy_check=energy_check
                )
                _keep(directory, last, every=every, final=last.step == steps)
        except _Stopped as stop:
            _keep(directory, stop.last, every=every, final=False)
            if stop.reason is None:
                raise Interrupted("interrupted") from None
            raise RunFailed(stop.reason) from stop


class _Stopped(Exception):
    def __init__(self, last: Snapshot, reason: str | None):
        super().__init__(reason)
        self.last = last
        self.reason = reason


def _initial(system: System) -> Snapshot:
    dim = system.scene.dim
    state = system.initial_state()
    u, v, a = (f.numpy()[:, :dim].copy() for f in state.fields())
    return Snapshot(0, state.t, u, v, a, np.zeros((0, len(WORK))))


def _advance(
    scene: Scene,
    system: System,
    last: Snapshot,
    target: int,
    after_step: Callable[[int], None],
    directory: RunDirectory,
    *,
    energy_check: bool,
) -> Snapshot:
    """From `last` to step `target`."""
    start = Trajectory(
        scene, np.array([last.t]), last.u[None], last.v[None], last.a, np.zeros(0, int)
    )
    if len(last.work):
        start = replace(
            start, energies=Energies.of(last.work[-1:, -len(NAMES):]),
            inverted=last.work[-1:, WORK.index("inverted")].astype(int),
        )  # fmt: skip
    # steps since the last saved state, which a checkpoint in between carries along
    carried = last.work if not directory.state_path(last.step).is_file() else last.work[:0]
    t = last.t

    def snapshot(run: Trajectory) -> Snapshot:
        # as the steps themselves count time: adding dt each time, not multiplying by it
        now = t
        for _ in range(run.steps):
            now += scene.dt
        columns = [run.iterations, *(run.timings[p] for p in PHASES), run.parts, run.inverted[1:]]
        work = np.stack([np.asarray(c, float) for c in columns], axis=1)
        work = np.concatenate([work, run.energies.row()[1:]], axis=1)
        return Snapshot(
            last.step + run.steps, now, run.displacements[-1].copy(), run.velocities[-1].copy(),
            run.last_acceleration, np.concatenate([carried, work]),
        )  # fmt: skip

    try:
        run = simulate(
            scene, target - last.step, resume=start, system=system, energy_check=energy_check,
            progress=lambda done, _: after_step(last.step + done),
        )  # fmt: skip
    except SimulationStopped as stopped:
        reason = None if str(stopped) == "interrupted" else str(stopped)
        raise _Stopped(snapshot(stopped.trajectory), reason) from stopped
    return snapshot(run)


def _keep(directory: RunDirectory, s: Snapshot, *, every: int, final: bool) -> None:
    """Write a saved step, or the checkpoint if it is none; the other one is then out of date."""
    saved = final or s.step % every == 0
    directory.write_state(s, checkpoint=not saved)
    if saved:
        (directory.path / CHECKPOINT).unlink(missing_ok=True)


# --- what comes out


def export_frames(scene: Scene, directory: RunDirectory) -> None:
    """ParaView files of all saved steps that have none yet, the index, and the last surface."""
    steps = directory.saved_steps()
    stress = SceneStress(scene)
    entries = []
    last = None
    for step in steps:
        last = directory.read_state(step)
        path = directory.frame_path(step)
        if not path.is_file():
            write_frame(path, scene.body, last.u, last.v, stress=stress.at(last.u).von_mises)
        entries.append((last.t, f"{TRAJECTORY}/{path.name}"))
    write_index(directory.path / INDEX, entries)
    if last is not None and scene.dim == 3:
        write_surface(directory.path / "surface.ply", scene.body, last.u)


def _velocities(directory: RunDirectory) -> np.ndarray:
    """Velocities (frames, nodes, dim) of the last steps that were all saved."""
    steps = directory.saved_steps()[-FRAMES_LOOKED_AT:]
    if not steps:
        return np.zeros((0, 0, 0))
    while len(steps) > 1 and steps[-1] - steps[0] != len(steps) - 1:
        steps = steps[1:]
    return np.stack([directory.read_state(k).v for k in steps])


def summary(scene: Scene, directory: RunDirectory, status: str, digest: str) -> dict[str, Any]:
    """The contents of result.json."""
    last = directory.last_state(scene.body.nodes.shape)
    if last is None:
        return {"status": status, "files_digest": digest}
    work = directory.work()
    size = np.linalg.norm(last.u, axis=1)
    mean = work.mean(axis=0) if len(work) else np.zeros(len(WORK))
    parts, inverted = (work[:, WORK.index(name)] for name in ("parts", "inverted"))
    cut = np.flatnonzero(parts > 1)
    energies = Energies.of(work[:, -len(NAMES):])
    return {
        "status": status,
        "title": (scene.source or {}).get("title", ""),
        "out": str(directory.path),
        "cells": len(scene.body.cells),
        "nodes": len(scene.body.nodes),
        "dimension": scene.dim,
        "volume": scene.body.volume,
        "steps": last.step,
        "time": last.t,
        "largest_displacement": float(size.max()),
        "largest_displacement_in_cells": float(size.max() / scene.body.spacing),
        "iterations": float(mean[0]),
        **{f"{p}_ms": float(1e3 * mean[1 + i]) for i, p in enumerate(PHASES)},
        "step_ms": float(1e3 * mean[1 : 1 + len(PHASES)].sum()),
        "steps_cut": [{"t": float(scene.dt * k), "parts": int(parts[k])} for k in cut],
        "inverted_cells": int(inverted.max(initial=0)),
        "energies": {n: float(work[-1, WORK.index(n)]) if len(work) else 0.0 for n in NAMES},
        "energies_over_time": {
            "t": (scene.dt * np.arange(1, len(work) + 1)).tolist(),
            **{n: np.asarray(getattr(energies, n)).tolist() for n in NAMES},
        },
        "warnings": [
            *inversion_warning(scene, scene.dt * np.arange(1, len(work) + 1), inverted),
            *step_warnings(scene, _velocities(directory)),
        ],
        "files_digest": digest,
    }
