"""Fit directories: a reconstruction on disk that can be stopped at any moment and taken up again.

scene.toml       the scene, complete
fit.json         what was asked: unknowns and their starts, cost, where the observations are
observations/    what the cameras saw, where the scene was filmed for the fit
history.jsonl    one line per optimiser step
result.json      what came out; "status" is running, interrupted, failed or finished
report.html      the report, with its pictures in figures/
"""

import json
import logging
import math
import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pliant.app.fit_progress import fit_progress
from pliant.app.fit_values import Values, labelled, unlabelled
from pliant.app.runs import (
    BODY,
    NOT_THE_SCENE,
    RESULT,
    SCENE,
    Interrupted,
    RunFailed,
    describe,
    interrupts,
)
from pliant.app.scene_files import first_difference, read_description, save_scene
from pliant.core.errors import BadInput, SolverFailure
from pliant.core.files import read_json, whole_file, write_json
from pliant.dynamics.scene import Scene
from pliant.inverse.fit import Fit, Step
from pliant.inverse.fitter import COARSE, PARTS, REPEAT, STARTS
from pliant.inverse.reconstruct import reconstruct
from pliant.inverse.unknowns import UnknownSet, make_unknown
from pliant.observe.files import RECORD
from pliant.observe.observations import Observations

log = logging.getLogger(__name__)

ASKED, HISTORY, SEEN, REPORT, FIGURES = (
    "fit.json", "history.jsonl", "observations", "report.html", "figures",
)  # fmt: skip


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
        if any(self.path.iterdir()):
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

    def clear(self) -> None:
        """Remove the files of the fit that is here, and nothing else."""
        names = (ASKED, HISTORY, SCENE, RESULT, BODY, REPORT, "demo.png")
        for name in names:
            (self.path / name).unlink(missing_ok=True)
        if (self.seen_path / RECORD).is_file():
            shutil.rmtree(self.seen_path)
        for file in (self.path / FIGURES).glob("*.png"):
            file.unlink()

    def require_same(self, scene: Scene, asked: Mapping[str, Any]) -> None:
        """Refuse to continue another fit."""

        def identity(value: Mapping[str, Any]) -> dict[str, Any]:
            return {k: v for k, v in value.items() if k not in NOT_THE_SCENE}

        there = identity(read_description(self.path / SCENE))
        difference = first_difference(there, identity(describe(scene)[0]))
        if difference is None:
            old = read_json(self.path / ASKED)
            new = json.loads(json.dumps(asked))
            keys = sorted({*old, *new}) if isinstance(old, dict) else []
            changed = [k for k in keys if old.get(k) != new.get(k)]
            difference = f"'{changed[0]}' was {old.get(changed[0])}" if changed else None
            if not isinstance(old, dict):
                difference = f"{ASKED} is damaged"
        if difference is not None:
            raise BadInput(
                f"{self.path}: holds another fit ({difference}); choose another --out or give "
                "--overwrite."
            )

    def status(self) -> str:
        """Of result.json; "" if it cannot be told."""
        try:
            found = read_json(self.path / RESULT)
        except BadInput:
            return ""
        return str(found.get("status", "")) if isinstance(found, dict) else ""

    def result(self) -> dict[str, Any]:
        """What result.json holds."""
        found = read_json(self.path / RESULT)
        if not isinstance(found, dict):
            raise BadInput(f"{self.path / RESULT}: is not a result; start again with --overwrite.")
        return found

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
        for text in path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                r = json.loads(text)
                values = {str(k): float(v) for k, v in r["values"].items()}
                step = Step(
                    int(r["iteration"]),
                    int(r["horizon"]),
                    float(r["cost"]),
                    float(r["rms"]),
                    values,
                    str(r.get("stage", "")),
                )
                lines.append(Line(step, float(r["seconds"])))
            except (ValueError, KeyError, TypeError, AttributeError):
                log.warning("%s: line %d is damaged: left out.", path, len(lines) + 1)
                break
        return lines

    def rewrite_history(self, lines: list[Line]) -> None:
        """Keep these steps only, so that a cut-off last line does not spoil the next."""
        (self.path / HISTORY).unlink(missing_ok=True)
        for line in lines:
            self.append(line)


@dataclass(frozen=True)
class FitRun:
    """A finished fit: history holds all steps, those before an interruption included.

    original: the start values asked for; starts: those of the last part, if it was interrupted.
    """

    scene: Scene
    seen: Observations
    original: Values
    starts: Values
    truth: dict[str, float]
    fit: Fit
    result: dict[str, Any]
    cost: str

    def scene_at(self, values: Values) -> Scene:
        """The scene with these values, or starts, of the unknowns."""
        members = tuple(make_unknown(n, v, self.scene) for n, v in values.items())
        unknowns = UnknownSet(members)
        return unknowns.apply(self.scene, unknowns.start())

    @property
    def values(self) -> Values:
        """The recovered values by name."""
        return unlabelled(self.starts, self.fit.values, self.scene)


def run_fit(
    scene: Scene,
    seen: Observations,
    starts: Values,
    directory: FitDirectory,
    *,
    cost: str = "auto",
    loss: str = "huber",
    truth: Values | None = None,
    options: Mapping[str, Any] | None = None,
) -> FitRun:
    """Fit into a directory that `begin` has made, going on where its history ends.

    options: further ones of `reconstruct`, optimiser and priors for example.
    """
    options = dict(options or {})
    before = directory.history()
    # trying out several starts is begun again; what came after it is gone on from
    before = before if before and before[-1].step.stage != STARTS else []
    before = [line for line in before if line.step.stage not in (PARTS, REPEAT)]
    directory.rewrite_history(before)
    offset, spent = 0, 0.0
    resumed = starts
    if before:
        options["multi_start"] = 1
        if before[-1].step.stage != COARSE:
            options["coarse_to_fine"] = False
        last = before[-1]
        offset, spent = last.step.iteration, last.seconds
        resumed = unlabelled(starts, last.step.values, scene)
        if options.get("max_iterations"):  # of the whole fit, not of each part
            options["max_iterations"] = max(1, options["max_iterations"] - offset)
    began = time.perf_counter()

    with interrupts() as asked, fit_progress(offset) as shown:

        def on_step(step: Step) -> None:
            shown.step(step)
            if before and step.iteration == 0:
                return  # where the interrupted fit ended: the line is there
            moved = replace(step, iteration=step.iteration + offset)
            directory.append(Line(moved, spent + time.perf_counter() - began))

        def reach(done: int, total: int) -> None:
            shown.reach(done, total)
            if asked():
                raise KeyboardInterrupt

        try:
            fit = reconstruct(
                scene, seen, resumed, cost=cost, loss=loss, on_step=on_step, progress=reach,
                **options,
            )  # fmt: skip
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
    earlier = [line.step for line in before]
    steps = [replace(s, iteration=s.iteration + offset) for s in fit.history]
    fit = replace(
        fit,
        start=labelled(resumed, starts, scene),
        history=[*earlier, *(steps[1:] if earlier else steps)],
        iterations=fit.iterations + offset,
        seconds=spent + fit.seconds,
    )
    known = labelled(resumed, truth or {}, scene)
    result = fit_result(scene, seen, fit, known, directory)
    return FitRun(scene, seen, starts, resumed, known, fit, result, cost)


def fit_result(
    scene: Scene, seen: Observations, fit: Fit, truth: dict[str, float], directory: FitDirectory
) -> dict[str, Any]:
    """The contents of result.json."""
    timings = fit.timings
    last = max((f.time for f in seen.frames if len(f)), default=0.0)
    return {
        "status": "finished",
        "title": (scene.source or {}).get("title", ""),
        "out": str(directory.path),
        "unknowns": _unknowns(fit, truth),
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
        "cells": len(scene.body.cells),
        "nodes": len(scene.body.nodes),
        "frames": len(seen.frames),
        "cameras": len(seen.cameras),
        "points": seen.point_count,
    }


def _unknowns(fit: Fit, truth: dict[str, float]) -> dict[str, Any]:
    """A row per unknown; a value per cell becomes one row of medians with its range."""
    rows: dict[str, Any] = {}
    cells: dict[str, list[str]] = {}
    for label in fit.labels:
        name, bracket, _ = label.partition("[")
        if bracket:
            cells.setdefault(name, []).append(label)
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
