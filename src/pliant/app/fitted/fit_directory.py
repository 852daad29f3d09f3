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
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
from pliant.app.folders.folder_lock import holds_nothing
from pliant.app.folders.runs import BODY, NOT_THE_SCENE, RESULT, SCENE, describe
from pliant.app.folders.stored_bodies import store_bodies
from pliant.core.errors import BadInput
from pliant.core.files import read_bytes, write_json
from pliant.core.numbers import shown
from pliant.dynamics.scene import Scene
from pliant.inverse.fitting.fit import Step
from pliant.observe.files import RECORD

log = logging.getLogger(__name__)

ASKED, HISTORY, SEEN, REPORT, FIGURES = (
    "fit.json", "history.jsonl", "observations", "report.html", "figures",
)  # fmt: skip

AGAIN = "Start again with --overwrite."

MAX_HISTORY = 256 * 1024**2
"""Bytes of history.jsonl; a field of 100,000 cells takes 2 MB a step."""


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
        store_bodies(scene, self.path / BODY)
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
