"""Joint fits at the terminal: a file that lists experiments, and the folder that holds the fit.

[[experiments]]
name = "swing"                   its number, from 1, if missing
scene = "swing.toml"             beside this file, or a built-in scene
observations = "swing.csv"       with units, frame_rate and crop as on the command line
[unknowns]
youngs_modulus = 60e3            one value for all
"time_offset@swing" = 0.0        one experiment's own
[priors], [bounds], [fit]        as in a fit file

experiments/NAME/scene.toml      each scene, complete
fit.json, history.jsonl, result.json, opinions.png
"""

import json
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from pliant.app.describing.fineness import AS_IT_IS, Fineness
from pliant.app.describing.scene_files import first_difference, read_description, save_scene
from pliant.app.describing.scenes import find_description, scene_names
from pliant.app.describing.typed_files import JointFileTable, checked, plain
from pliant.app.fitted.fit_directory import ASKED, HISTORY, FitDirectory
from pliant.app.fitted.fit_memory import FolderMemory
from pliant.app.fitted.fit_observations import recorded
from pliant.app.fitted.fit_options import Asked, unknown_options
from pliant.app.fitted.fit_values import Values, labelled, parse_unknowns
from pliant.app.fitted.fits import finite, fit_into, numbers_of, unknown_rows
from pliant.app.folders.runs import NOT_THE_SCENE, RESULT, SCENE, describe, open_scene
from pliant.core.errors import BadInput
from pliant.core.files import read_text, read_toml, write_json
from pliant.core.numbers import shown
from pliant.inverse.fitting.fit import Fit
from pliant.inverse.joint.experiment import Experiment, numbered
from pliant.inverse.joint.sharing import split_name, with_all_places
from pliant.observe.tracks import TrackedPoints

EXPERIMENTS, PICTURE = "experiments", "opinions.png"


def is_joint(name: str) -> bool:
    """Whether a scene's name is a file that lists experiments instead."""
    path = Path(name)
    if name in scene_names() or path.suffix != ".toml":
        return False
    with suppress(BadInput, OSError, tomllib.TOMLDecodeError, RecursionError):
        return EXPERIMENTS in tomllib.loads(read_text(path))
    return False  # whoever reads it as a scene says what is wrong


def read_joint_file(path: str | Path) -> Asked:
    """The tables of a joint fit's file, checked; paths as from here."""
    found = read_toml(path)
    try:
        out = plain(checked(JointFileTable, found))
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None
    for k, table in enumerate(out[EXPERIMENTS]):
        if table["scene"] not in scene_names():
            table["scene"] = str(Path(path).parent / table["scene"])
        table["observations"] = str((Path(path).parent / table["observations"]).absolute())
        if not Path(table["observations"]).exists():
            raise BadInput(
                f"{path}: experiments[{k}].observations: {table['observations']} is not there."
            )
    return out


def scenes_of(file: Asked, fineness: Fineness = AS_IT_IS) -> tuple[Experiment, ...]:
    """The experiments with their scenes, nothing seen yet."""
    return numbered([
        Experiment(
            open_scene(fineness.of(find_description(t["scene"])), None, t["scene"]), None,
            t.get("name", ""),
        )
        for t in file[EXPERIMENTS]
    ])  # fmt: skip


def joint_starts(file: Asked, given: list[str], experiments: tuple[Experiment, ...]) -> Values:
    """Starts by name of [unknowns] or --unknown NAME[@EXPERIMENT][=START]."""
    starts: Values = {}
    wanted = unknown_options(file, given)
    if not wanted:
        wanted = [n for n in ("youngs_modulus", "poisson_ratio")]
    for option in wanted:
        name, found, text = (part.strip() for part in option.partition("="))
        if name in starts:
            raise BadInput(f"--unknown {name} is given twice.")
        bare, whose = split_name(name, experiments)
        scene = experiments[whose or 0].scene
        starts[name] = parse_unknowns([bare + found + text], scene, away=False)[bare]
    return starts


def watched(
    experiments: tuple[Experiment, ...], file: Asked, starts: Values
) -> tuple[Experiment, ...]:
    """The experiments with what was seen."""
    out = []
    for x, table in zip(experiments, file[EXPERIMENTS], strict=True):
        own: Values = {}
        for name, value in starts.items():
            bare, whose = split_name(name, experiments)
            if whose is None or experiments[whose] is x:
                own[bare] = value
        asked = {k: table.get(k) for k in ("observations", "units", "frame_rate", "crop")}
        out.append(Experiment(x.scene, recorded(_scene(x), asked | {"unknowns": own}), x.name))
    return tuple(out)


def _scene(experiment: Experiment) -> Any:
    """Of whatever kind, as far as files are concerned."""
    return experiment.scene


class JointDirectory(FitDirectory):
    """The files of a joint fit."""

    def scene_path(self, experiment: Experiment) -> Path:
        """Of one experiment."""
        return self.path / EXPERIMENTS / experiment.name / SCENE

    def begin_all(self, experiments: tuple[Experiment, ...], asked: Mapping[str, Any]) -> None:
        """Make the directory and write what is asked."""
        for x in experiments:
            path = self.scene_path(x)
            if path.parent.parent != self.path / EXPERIMENTS:
                raise BadInput(f"An experiment's name must do for a folder: '{x.name}'.")
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise BadInput(f"{path.parent}: cannot be made ({error.strerror}).") from error
            save_scene(_scene(x), path)
        write_json(self.path / ASKED, asked)
        self.write_result({"status": "running"})

    def clear(self) -> None:
        """Remove the files of the fit that is here, and nothing else."""
        for name in (ASKED, HISTORY, RESULT, PICTURE):
            (self.path / name).unlink(missing_ok=True)
        FolderMemory(self.path).forget()
        for file in (self.path / EXPERIMENTS).glob(f"*/{SCENE}"):
            file.unlink()
            with suppress(OSError):
                file.parent.rmdir()
        with suppress(OSError):
            (self.path / EXPERIMENTS).rmdir()

    def require_all_same(
        self, experiments: tuple[Experiment, ...], asked: Mapping[str, Any]
    ) -> None:
        """Refuse to continue another fit."""
        old, new = self.asked(), json.loads(json.dumps(asked))
        changed = [k for k in sorted({*old, *new}) if old.get(k) != new.get(k)]
        difference = f"'{changed[0]}' was {shown(old.get(changed[0]))}" if changed else None
        for x in experiments if difference is None else ():
            one, two = (
                {k: v for k, v in d.items() if k not in NOT_THE_SCENE}
                for d in (read_description(self.scene_path(x)), describe(_scene(x))[0])
            )
            difference = difference or first_difference(one, two)
        if difference is not None:
            raise BadInput(
                f"{self.path}: holds another fit ({difference}); choose another --out or give "
                "--overwrite."
            )


def run_joint_fit(
    experiments: tuple[Experiment, ...],
    starts: Values,
    directory: JointDirectory,
    options: Mapping[str, Any],
    truth: Values,
) -> tuple[Fit, dict[str, Any]]:
    """Fit into a directory that `begin_all` has made; the fit, and what result.json holds."""
    options = dict(options)
    starts, options["priors"] = with_all_places(experiments, starts, options.get("priors"))
    fit = fit_into(directory, experiments, None, starts, options)
    return fit, joint_result(experiments, fit, labelled(starts, truth, experiments), directory)


def joint_result(
    experiments: tuple[Experiment, ...],
    fit: Fit,
    truth: dict[str, float],
    directory: FitDirectory,
) -> dict[str, Any]:
    """The contents of result.json."""
    told = []
    for x, o in zip(experiments, fit.opinions, strict=True):
        film = x.seen.as_points() if isinstance(x.seen, TrackedPoints) else x.seen
        moved = o.registration
        told.append({
            "name": x.name, "noise": finite(o.noise), "rms": finite(o.rms),
            "apart": finite(o.apart), "agrees": o.agrees,
            "frames": len(film.frames), "points": film.point_count,
            "registered": None if moved is None else moved.numbers.tolist(),
            "alone": {
                label: {
                    "value": finite(value), "sigma": finite(o.sigma[label]),
                    "total_sigma": finite(o.total_sigma[label]),
                }
                for label, value in o.values.items()
            },
        })  # fmt: skip
    return {
        "status": "finished",
        "out": str(directory.path),
        "unknowns": unknown_rows(fit, truth),
        "numbers": numbers_of(fit),
        "experiments": told,
        "table": fit.opinion_table(),
        "iterations": fit.iterations,
        "seconds": fit.seconds,
        **{k: finite(v) for k, v in fit.timings.items()},
        "optimiser": fit.optimiser,
        "converged": bool(fit.converged),
        "reasons": list(fit.reasons),
        "noise": finite(fit.noise),
        "rms": finite(fit.rms),
        "correlation": [[finite(c) for c in row] for row in fit.correlation],
        "advice": list(fit.advice),
    }
