"""Fit directories: a reconstruction on disk that can be stopped at any moment and taken up again.

scene.toml       the scene, complete
fit.json         what was asked: unknowns and their starts, cost, where the observations are
observations/    what the cameras saw, where the scene was filmed for the fit
history.jsonl    one line per optimiser step
result.json      what came out; "status" is running, interrupted, failed or finished
report.html      the report, with its pictures in figures/
simulations/     what an interrupted fit goes on from, while it is not finished
"""

import json
import logging
import math
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from pliant.app.describing.scene_files import first_difference, read_description, save_scene
from pliant.app.describing.side_files import side_path
from pliant.app.describing.typed_files import (
    AskedTable,
    FinishedTable,
    LineTable,
    ResultTable,
    plain,
    read_typed,
    typed_line,
)
from pliant.app.fitted.fit_memory import FolderMemory
from pliant.app.fitted.fit_progress import fit_progress
from pliant.app.fitted.fit_values import Values, labelled, unlabelled
from pliant.app.folders.folder_lock import holds_nothing
from pliant.app.folders.runs import (
    BODY,
    NOT_THE_SCENE,
    RESULT,
    SCENE,
    Interrupted,
    RunFailed,
    describe,
    interrupts,
)
from pliant.core.errors import BadInput, SolverFailure
from pliant.core.files import read_bytes, whole_file, write_json
from pliant.core.numbers import shown
from pliant.dynamics.scene import Scene
from pliant.inverse.fitting.fit import Fit, Step
from pliant.inverse.fitting.reconstruct import reconstruct
from pliant.inverse.joint.experiment import Experiment
from pliant.inverse.measuring.track_cost import with_places
from pliant.inverse.parameters.unknowns import UnknownSet, make_unknown
from pliant.observe.files import RECORD
from pliant.observe.observations import Observations
from pliant.observe.tracks import TrackedPoints

log = logging.getLogger(__name__)

ASKED, HISTORY, SEEN, REPORT, FIGURES = (
    "fit.json", "history.jsonl", "observations", "report.html", "figures",
)  # fmt: skip

AGAIN = "Start again with --overwrite."

MAX_HISTORY = 256 * 1024**2
"""Bytes of history.jsonl; a field of 100,000 cells takes 2 MB a step."""


MOST_LABELS = 1000
"""Numbers that are all listed, with their labels; fields have more."""


@dataclass(frozen=True)
class Line:
    """A step on disk; seconds: since the fit began, all its parts added up."""

    step: Step
    seconds: float


class FitDirectory:
    """The files of one fit."""

    def __init__(self, path: str | Path):
        self.path = Path(path)

    @property
    def exists(self) -> bool:
        """True if a fit was begun here."""
        return (self.path / ASKED).is_file()

    @property
    def seen_path(self) -> Path:
        """Where the film lies that the fit made itself."""
        return self.path / SEEN

    def require_usable(self) -> None:
        """Refuse a place that holds something else than a fit."""
        if not self.path.exists() or self.exists:
            return
        if not self.path.is_dir():
            raise BadInput(f"{self.path}: is a file; --out needs a folder.")
        if not holds_nothing(self.path):
            raise BadInput(
                f"{self.path}: the folder is not empty and holds no fit; choose another --out."
            )

    def begin(self, scene: Scene, asked: Mapping[str, Any]) -> None:
        """Make the directory and write what is asked, and a body that cannot be made again."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInput(f"{self.path}: cannot be made ({error.strerror}).") from error
        if not scene.body.is_grid:
            with whole_file(self.path / BODY) as temporary, temporary.open("wb") as stream:
                np.savez(stream, nodes=scene.body.nodes, cells=scene.body.cells)
        save_scene(scene, self.path / SCENE)
        write_json(self.path / ASKED, asked)
        self.write_result({"status": "running"})

    def has_results(self) -> bool:
        """True if the optimiser has made a step."""
        path = self.path / HISTORY
        return path.is_file() and path.stat().st_size > 0

    def clear(self) -> None:
        """Remove the files of the fit that is here, and nothing else."""
        names = (ASKED, HISTORY, SCENE, side_path(SCENE).name, RESULT, BODY, REPORT, "demo.png")
        for name in names:
            (self.path / name).unlink(missing_ok=True)
        if (self.seen_path / RECORD).is_file():
            shutil.rmtree(self.seen_path)
        FolderMemory(self.path).forget()
        for file in (self.path / FIGURES).glob("*.png"):
            file.unlink()
        with suppress(OSError):
            (self.path / FIGURES).rmdir()

    def require_same(self, scene: Scene, asked: Mapping[str, Any]) -> None:
        """Refuse to continue another fit."""

        def identity(value: Mapping[str, Any]) -> dict[str, Any]:
            return {k: v for k, v in value.items() if k not in NOT_THE_SCENE}

        there = identity(read_description(self.path / SCENE))
        difference = first_difference(there, identity(describe(scene)[0]))
        if difference is None:
            old = self.asked()
            new = json.loads(json.dumps(asked))
            changed = [k for k in sorted({*old, *new}) if old.get(k) != new.get(k)]
            difference = f"'{changed[0]}' was {shown(old.get(changed[0]))}" if changed else None
        if difference is not None:
            raise BadInput(
                f"{self.path}: holds another fit ({difference}); choose another --out or give "
                "--overwrite."
            )

    def status(self) -> str:
        """Of result.json; "" if there is none."""
        if not (self.path / RESULT).exists():
            return ""
        return read_typed(self.path / RESULT, ResultTable, AGAIN).status

    def asked(self) -> dict[str, Any]:
        """What fit.json holds."""
        return plain(read_typed(self.path / ASKED, AskedTable, AGAIN))

    def result(self) -> dict[str, Any]:
        """What result.json of a finished fit holds."""
        if self.status() in ("running", "interrupted", "failed"):
            raise BadInput(f"{self.path}: the fit is not finished ({self.status()}).")
        return plain(read_typed(self.path / RESULT, FinishedTable, AGAIN))

    def write_result(self, result: Mapping[str, Any]) -> None:
        """Replace result.json."""
        write_json(self.path / RESULT, result)

    def append(self, line: Line) -> None:
        """Add a step to the history, safely on the disk when this returns."""
        s = line.step
        record = {
            "iteration": s.iteration, "horizon": s.horizon, "cost": s.cost, "rms": s.rms,
            "values": s.values, "seconds": line.seconds, "stage": s.stage,
        }  # fmt: skip
        with (self.path / HISTORY).open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(record) + "\n")
            stream.flush()
            os.fsync(stream.fileno())

    def history(self) -> list[Line]:
        """The steps so far; a line that a crash cut off is left out, and all after it."""
        path = self.path / HISTORY
        if not path.is_file():
            return []
        lines = []
        for text in read_bytes(path, limit=MAX_HISTORY).decode("utf-8", "replace").splitlines():
            try:
                r = typed_line(text, LineTable)
            except BadInput as error:
                where = len(lines) + 1
                log.warning("%s: line %d is damaged (%s): left out.", path, where, error)
                break
            step = Step(r.iteration, r.horizon, r.cost, r.rms, r.values, r.stage)
            lines.append(Line(step, r.seconds))
        return lines

    def forget_history(self) -> None:
        """No steps any more."""
        (self.path / HISTORY).unlink(missing_ok=True)


@dataclass(frozen=True)
class FitRun:
    """A finished fit, and the start values it was asked for."""

    scene: Scene
    seen: Observations | TrackedPoints
    starts: Values
    truth: dict[str, float]
    fit: Fit
    result: dict[str, Any]
    cost: str

    @cached_property
    def film(self) -> Observations:
        """What was seen, tracked points as bare ones."""
        return self.seen.as_points() if isinstance(self.seen, TrackedPoints) else self.seen

    def scene_at(self, values: Values) -> Scene:
        """The scene with these values, or starts, of the unknowns."""
        members = tuple(make_unknown(n, v, self.scene) for n, v in values.items())
        unknowns = UnknownSet(members)
        return unknowns.apply(self.scene, unknowns.start())

    @property
    def values(self) -> Values:
        """The recovered values by name."""
        return unlabelled(self.starts, self.fit.values, self.scene)


def fit_into(
    directory: FitDirectory,
    experiments: Scene | Sequence[Experiment],
    seen: Observations | TrackedPoints | None,
    starts: Values,
    options: Mapping[str, Any],
) -> Fit:
    """Fit a scene, or several experiments, into a directory that `begin` has made.

    Where the same fit was interrupted, its simulations are recalled instead of computed, so that it
    ends with the bits of one that was not. options: of `reconstruct`. starts: with the places of
    tracked points, if these are unknown.
    """
    memory = FolderMemory(directory.path)
    directory.forget_history()  # the same steps again, as quickly as they are recalled
    began = time.perf_counter()

    with interrupts() as asked, fit_progress() as shown:

        def on_step(step: Step) -> None:
            shown.step(step)
            directory.append(Line(step, memory.spent + time.perf_counter() - began))

        def reach(done: int, total: int) -> None:
            shown.reach(done, total)
            if asked():
                raise KeyboardInterrupt

        try:
            fit = reconstruct(
                experiments, seen, starts, on_step=on_step, progress=reach, memory=memory, **options
            )
        except KeyboardInterrupt:
            directory.write_result({"status": "interrupted"})
            done = len(directory.history())
            raise Interrupted(
                f"Interrupted after {done} optimiser steps; they are saved in {directory.path}: "
                "run the same command again to go on."
            ) from None
        except SolverFailure as failure:
            directory.write_result({"status": "failed", "reason": str(failure)})
            raise RunFailed(f"{failure} The steps so far are in {directory.path}.") from failure
    memory.forget()
    return replace(fit, seconds=memory.spent + fit.seconds)


def run_fit(
    scene: Scene,
    seen: Observations | TrackedPoints,
    starts: Values,
    directory: FitDirectory,
    *,
    cost: str = "auto",
    loss: str = "huber",
    truth: Values | None = None,
    options: Mapping[str, Any] | None = None,
) -> FitRun:
    """Fit into a directory that `begin` has made, going on where it was interrupted.

    options: further ones of `reconstruct`, optimiser and priors for example.
    """
    options = dict(options or {}) | {"cost": cost, "loss": loss}
    starts, options["priors"] = with_places(seen, starts, options.get("priors"))
    fit = fit_into(directory, scene, seen, starts, options)
    if fit.registration is not None and isinstance(seen, Observations):
        seen = fit.registration.apply(seen)
    known = labelled(starts, truth or {}, scene)
    result = fit_result(scene, seen, fit, known, directory)
    return FitRun(scene, seen, starts, known, fit, result, cost)


def fit_result(
    scene: Scene,
    seen: Observations | TrackedPoints,
    fit: Fit,
    truth: dict[str, float],
    directory: FitDirectory,
) -> dict[str, Any]:
    """The contents of result.json."""
    timings = fit.timings
    tracked = isinstance(seen, TrackedPoints)
    film = seen.as_points() if tracked else seen
    last = max((f.time for f in film.frames if len(f)), default=0.0)
    return {
        "status": "finished",
        "title": (scene.source or {}).get("title", ""),
        "out": str(directory.path),
        "unknowns": unknown_rows(fit, truth),
        "numbers": numbers_of(fit),
        "iterations": fit.iterations,
        "seconds": fit.seconds,
        "forward_ms": timings["forward_ms"],
        "adjoint_ms": timings["adjoint_ms"],
        "iteration_ms": timings["iteration_ms"],
        "forward_run_ms": timings["forward_run_ms"],
        "optimiser": fit.optimiser,
        "steps": math.ceil(last / scene.dt - 1e-9),
        "converged": bool(fit.converged),
        "reasons": list(fit.reasons),
        "noise": finite(fit.noise),
        "rms": finite(fit.rms),
        "correlation": [[finite(c) for c in row] for row in np.asarray(fit.correlation)],
        "advice": list(fit.advice),
        "registered": None if fit.registration is None else fit.registration.numbers.tolist(),
        "cells": len(scene.body.cells),
        "nodes": len(scene.body.nodes),
        "frames": len(film.frames),
        "cameras": len(film.cameras),
        "points": film.point_count,
        "tracked": list(seen.names) if tracked else [],
    }


def numbers_of(fit: Fit) -> dict[str, Any]:
    """Every number with its error bars, in the order of the correlation; of fields none."""
    if len(fit.labels) > MOST_LABELS:
        return {}
    return {
        x: {
            "value": finite(fit.values[x]), "sigma": finite(fit.sigma.get(x, math.nan)),
            "total_sigma": finite(fit.total_sigma.get(x, math.nan)),
            "body_sigma": finite(fit.body_sigma(x)),
        }
        for x in fit.labels
    }  # fmt: skip


def unknown_rows(fit: Fit, truth: dict[str, float]) -> dict[str, Any]:
    """A row per unknown; a value per cell becomes one row of medians with its range."""
    rows: dict[str, Any] = {}
    cells: dict[str, list[str]] = {}
    for label in fit.labels:
        name, bracket, index = label.partition("[")
        if bracket:  # of several experiments, each by itself
            cells.setdefault(name + index.partition("]")[2], []).append(label)
            continue
        rows[label] = {
            "truth": truth.get(label),
            "start": fit.start.get(label),
            "value": finite(fit.values[label]),
            "sigma": finite(fit.sigma.get(label, math.nan)),
            "total_sigma": finite(fit.total_sigma.get(label, math.nan)),
            "errors": {cause: finite(own[label]) for cause, own in fit.errors.items()},
        }
        if label in fit.discretisation:
            rows[label]["discretisation"] = finite(fit.discretisation[label])
        if label in fit.extrapolated:
            rows[label]["extrapolated"] = finite(fit.extrapolated[label])
    for name, labels in cells.items():
        values = np.array([fit.values[label] for label in labels])
        known = [truth[label] for label in labels if label in truth]
        rows[name] = {
            "truth": float(np.median(known)) if known else None,
            "start": float(np.median([fit.start[label] for label in labels])),
            "value": float(np.median(values)), "sigma": None, "total_sigma": None,
            "cells": len(labels),
            "lowest": float(values.min()), "highest": float(values.max()),
        }  # fmt: skip
    return rows


def finite(value: float) -> float | None:
    """A number that JSON can hold, or null."""
    return float(value) if math.isfinite(value) else None
