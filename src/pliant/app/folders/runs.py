"""Runs into a directory: stopped by a signal or a failure, all that was computed is saved."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from pliant.app.folders.export import FrameWriter, write_index, write_surface
from pliant.app.folders.run_directory import (
    BODY,
    INDEX,
    NODAL,
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
from pliant.app.terminal.endings import Interrupted, RunFailed
from pliant.core.errors import SolverFailure
from pliant.dynamics.energies import NAMES, Energies
from pliant.dynamics.march import anchor_before
from pliant.dynamics.model import Model, State
from pliant.dynamics.parts.parts_scene import PartsScene
from pliant.dynamics.scene import Scene
from pliant.dynamics.simulate import PHASES, Watched, watch
from pliant.dynamics.trajectory import Anchor, Trajectory

__all__ = [
    "BODY", "NOT_THE_SCENE", "RESULT", "SCENE", "Interrupted", "RunDirectory", "RunFailed",
    "describe", "export_frames", "files_digest", "interrupts", "open_scene", "run_scene",
    "summary",
]  # fmt: skip

FRAMES_LOOKED_AT = 200
"""Saved steps from which the motion's frequency is read."""

CHUNK = 8
"""Steps between looks at the disk: what a killed process loses at most."""


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
    system: Model | None = None,
    energy_check: bool = True,
) -> None:
    """Simulate up to `steps` steps in all into a directory that `begin` has made.

    Saves every `every`-th step and the last one. Raises RunFailed or Interrupted, with all that
    was computed saved.
    """
    system = system or scene.make_model()
    if energy_check:
        system.require_stable()
    last, state = _start(scene, system, directory)
    account = Energies.of(last.work[-1, -len(NAMES) :]) if len(last.work) else system.stored(state)
    # steps since the last saved state, which a checkpoint carries along
    rows = [] if directory.state_path(last.step).is_file() else list(last.work)
    number = kept = last.step

    def keep(*, saved: bool) -> None:
        nonlocal kept
        kept = number
        directory.write_state(_snapshot(system, number, state, rows), checkpoint=not saved)
        if saved:
            directory.drop_checkpoint()
            rows.clear()
        if anchor_before(number) == number and not saved:
            directory.write_anchor(_snapshot(system, number, state, []))

    with interrupts() as asked:
        try:
            for seen in watch(
                system, state, account, number=number, until=steps, energy_check=energy_check
            ):
                number, state = seen.step.number, seen.step.after
                rows.append(_row(seen))
                saved = number % every == 0 or number == steps
                if saved or number % CHUNK == 0:
                    keep(saved=saved)
                if progress is not None:
                    progress(number)
                if asked():
                    raise KeyboardInterrupt
        except (SolverFailure, KeyboardInterrupt) as stop:
            if kept < number:
                keep(saved=False)
            if isinstance(stop, KeyboardInterrupt):
                raise Interrupted("interrupted") from None
            raise RunFailed(str(stop)) from stop


def _start(scene: Scene, system: Model, directory: RunDirectory) -> tuple[Snapshot, State]:
    """The last step on disk, and its state with the system's past as it was there."""
    last = directory.last_state(scene.body.nodes.shape)
    if last is None:
        state = system.initial_state()
        last = _snapshot(system, 0, state, [])
        directory.write_state(last)
        return last, state
    from_there = directory.anchor(last)
    anchor = Anchor(from_there.step, from_there.t, from_there.arrays)
    return last, anchor.replay(system, last.step)


def _snapshot(system: Model, number: int, state: State, rows: list[np.ndarray]) -> Snapshot:
    dim = system.scene.dim
    u, v = (f[:, :dim].copy() for f in system.carrier.apply(state))
    arrays = system.saved(state)
    if all(name in NODAL and f.shape == (len(u), 3) for name, f in arrays.items()):
        arrays = {name: f[:, :dim].copy() for name, f in arrays.items()}  # as the body has them
    return Snapshot(number, state.t, u, v, arrays, np.reshape(rows, (len(rows), len(WORK))))


def _row(seen: Watched) -> np.ndarray:
    """What a step took, see WORK."""
    record = seen.step.record
    took = [record.solution.iterations, *(record.timings.get(p, 0.0) for p in PHASES), record.parts]
    return np.concatenate([[*took, seen.inverted], seen.energies.row()])


# --- what comes out


def export_frames(scene: Scene, directory: RunDirectory) -> None:
    """ParaView files of all saved steps that have none yet, the index, and the last surface."""
    steps = directory.saved_steps()
    writer: FrameWriter | None = None
    entries = []
    last = None
    for step in steps:
        last = directory.read_state(step)
        path = directory.frame_path(step)
        if not path.is_file():
            writer = writer or FrameWriter(scene)
            writer.write(path, last.u, last.v)
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


def _parts_told(scene: Any) -> dict[str, Any]:
    """Names and sizes of several bodies, in the order of their nodes and cells."""
    if not isinstance(scene, PartsScene):
        return {}
    each = zip(scene.parts, scene.body.bodies, strict=True)
    return {
        "parts": [
            {"name": part.name, "cells": len(body.cells), "nodes": len(body.nodes)}
            for part, body in each
        ]
    }


MOST_JUDGED = 20_000_000
"""Numbers of displacement that are read to judge a run by: 160 MB."""


def _model_told(scene: Scene, directory: RunDirectory, status: str) -> dict[str, Any]:
    """What the scene's model says of a run, from the last steps that were all saved."""
    if status != "finished" or not scene.judges_runs:
        return {}
    steps = directory.saved_steps()
    steps = steps[-max(4, MOST_JUDGED // scene.body.nodes.size) :]
    if steps and steps[-1] - steps[0] != len(steps) - 1:
        steps = steps[-1:]  # accelerations are differences of steps that follow each other
    states = [directory.read_state(k) for k in steps]
    if not states:
        return {}
    u, v = (np.stack([getattr(s, name) for s in states]) for name in ("u", "v"))
    none = np.zeros(0)
    times = np.array([s.t for s in states])
    try:
        own = scene.run_record(Trajectory(scene, times, u, v, none, none))
    except SolverFailure as failure:
        return {"model_told": str(failure)}
    return {"model_told": own.pop("told"), **own} if own else {}


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
    energies = Energies.of(work[:, -len(NAMES) :])
    return {
        "status": status,
        "title": (scene.source or {}).get("title", ""),
        "out": str(directory.path),
        "cells": len(scene.body.cells),
        "nodes": len(scene.body.nodes),
        **_parts_told(scene),
        "dimension": scene.dim,
        "volume": scene.body.volume,
        "body_warnings": list(scene.body.warnings),
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
            *scene.run_warnings(
                scene.dt * np.arange(1, len(work) + 1), inverted, _velocities(directory)
            ),
            *energies.warnings(),
        ],
        **_model_told(scene, directory, status),
        "files_digest": digest,
    }
