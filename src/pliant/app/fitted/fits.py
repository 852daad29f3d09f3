"""A reconstruction that can be stopped at any moment and taken up again, and its result.json."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from pliant.app.fitted.fit_directory import FitDirectory, Line
from pliant.app.fitted.fit_memory import FolderMemory
from pliant.app.fitted.fit_progress import fit_progress
from pliant.app.fitted.fit_values import Values, labelled, unlabelled
from pliant.app.folders.runs import Interrupted, RunFailed, interrupts
from pliant.core.errors import SolverFailure
from pliant.dynamics.scene import Scene
from pliant.inverse.fitting.fit import Fit, Step
from pliant.inverse.fitting.reconstruct import reconstruct
from pliant.inverse.joint.experiment import Experiment
from pliant.inverse.measuring.track_cost import with_places
from pliant.inverse.parameters.unknowns import UnknownSet, make_unknown
from pliant.observe.observations import Observations
from pliant.observe.tracks import TrackedPoints

MOST_LABELS = 1000
"""Numbers that are all listed, with their labels; fields have more."""


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
        "noise_by_camera": [] if fit.noise_by is None else fit.noise_by.rows(),
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
