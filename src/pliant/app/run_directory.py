"""Run directories: the files of a simulation that can be stopped at any moment and resumed.

    scene.toml                     the scene, complete
    result.json                    what came out; "status" is running, interrupted, failed, finished
    trajectory.pvd                 opens in ParaView
    trajectory/state_000012.npz    u, v, a, t of a saved step: arrays, no pickles
    trajectory/frame_000012.vtu    the same for ParaView
    checkpoint.npz                 the last step, if it is not a saved one
    anchor.npz                     the last fresh start (dynamics.march), if it is not a saved step
    body.npz                       nodes and cells of a mesh, whose making is not repeatable
    final.png, motion.gif, surface.ply

Every file is written beside its place and renamed into it, so a crash leaves old files or new
ones, never halves.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pliant.app.scene_files import (
    BodyMaker,
    build_scene,
    describe_scene,
    first_difference,
    read_description,
    save_scene,
)
from pliant.core.errors import BadInput
from pliant.core.files import whole_file, write_text
from pliant.dynamics.energies import NAMES
from pliant.dynamics.march import anchor_before
from pliant.dynamics.scene import Scene
from pliant.dynamics.simulate import PHASES
from pliant.fem.body import Body
from pliant.fem.tet_body import restored_body

SCENE, RESULT, INDEX, CHECKPOINT, ANCHOR, BODY = (
    "scene.toml", "result.json", "trajectory.pvd", "checkpoint.npz", "anchor.npz", "body.npz",
)  # fmt: skip
TRAJECTORY = "trajectory"

WORK = ("iterations", *PHASES, "parts", "inverted", *NAMES)
"""What is kept of each step: solver iterations, seconds, into how many parts it was cut, cells that
are inside out behind it, and the energies."""

NOT_THE_SCENE = ("steps", "title", "description")
"""Keys of a description that may change when a run is continued."""


@dataclass(frozen=True)
class Snapshot:
    """A step on disk. work: (steps since the last one, columns), see WORK."""

    step: int
    t: float
    u: np.ndarray
    v: np.ndarray
    a: np.ndarray
    work: np.ndarray


class RunDirectory:
    """The files of one run."""

    def __init__(self, path: str | Path):
        self.path = Path(path)

    @property
    def exists(self) -> bool:
        """True if a run was begun here."""
        return (self.path / SCENE).is_file() and (self.path / RESULT).is_file()

    def require_usable(self) -> None:
        """Refuse a place that holds something else than a run."""
        if not self.path.exists() or self.exists:
            return
        if not self.path.is_dir():
            raise BadInput(f"{self.path}: is a file; --out needs a folder.")
        if any(self.path.iterdir()):
            raise BadInput(
                f"{self.path}: the folder is not empty and holds no run; choose another --out."
            )

    def result(self) -> dict[str, Any]:
        """What result.json holds."""
        path = self.path / RESULT
        try:
            value = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise BadInput(f"{path}: cannot be read; start again with --overwrite.") from error
        if not isinstance(value, dict):
            raise BadInput(f"{path}: is not a result; start again with --overwrite.")
        return value

    def write_result(self, result: Mapping[str, Any]) -> None:
        """Replace result.json."""
        write_text(self.path / RESULT, json.dumps(result, indent=2, allow_nan=False) + "\n")

    def begin(self, scene: Scene, digest: str) -> None:
        """Make the directory and write the scene, and the body if it cannot be made again."""
        try:
            (self.path / TRAJECTORY).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInput(f"{self.path}: cannot be made ({error.strerror}).") from error
        if not scene.body.is_grid:
            _write_arrays(self.path / BODY, nodes=scene.body.nodes, cells=scene.body.cells)
        save_scene(scene, self.path / SCENE)
        self.write_result({"status": "running", "files_digest": digest})

    def clear(self) -> None:
        """Remove the files of the run that is here, and nothing else."""
        pictures = ("final.png", "motion.gif", "surface.ply")
        for name in (SCENE, RESULT, INDEX, CHECKPOINT, ANCHOR, BODY, *pictures):
            (self.path / name).unlink(missing_ok=True)
        for file in (self.path / TRAJECTORY).glob("*_*"):
            if re.fullmatch(r"(state_\d+\.npz|frame_\d+\.vtu)", file.name):
                file.unlink()

    def require_same(self, description: dict[str, Any], digest: str) -> None:
        """Refuse to continue another scene's run."""
        there = _identity(read_description(self.path / SCENE))
        difference = first_difference(there, _identity(description))
        if difference is None and self.result().get("files_digest") != digest:
            difference = "the contents of its shape files have changed"
        if difference is not None:
            raise BadInput(
                f"{self.path}: holds a run of another scene ({difference}); "
                "choose another --out or give --overwrite."
            )

    # --- states

    def state_path(self, step: int) -> Path:
        """Where a saved step lies."""
        return self.path / TRAJECTORY / f"state_{step:06d}.npz"

    def frame_path(self, step: int) -> Path:
        """Where its ParaView file lies."""
        return self.path / TRAJECTORY / f"frame_{step:06d}.vtu"

    def saved_steps(self) -> list[int]:
        """Steps on disk, ascending."""
        found = (re.fullmatch(r"state_(\d+)\.npz", p.name) for p in self._states())
        return sorted(int(m.group(1)) for m in found if m)

    def _states(self) -> Iterator[Path]:
        return (self.path / TRAJECTORY).glob("state_*.npz")

    def write_state(self, s: Snapshot, *, checkpoint: bool = False) -> None:
        """Save a step; as the checkpoint it replaces the last one."""
        self._write(self.path / CHECKPOINT if checkpoint else self.state_path(s.step), s)

    def write_anchor(self, s: Snapshot) -> None:
        """Keep the state of a fresh start."""
        self._write(self.path / ANCHOR, s)

    def drop_checkpoint(self) -> None:
        """Remove the checkpoint: a saved step has replaced it."""
        (self.path / CHECKPOINT).unlink(missing_ok=True)

    def anchor(self, last: Snapshot) -> Snapshot:
        """The fresh start before the last step; that step itself where it is gone."""
        number = anchor_before(last.step)
        if number == last.step:
            return last
        if self.state_path(number).is_file():
            return self.read_state(number)
        if (self.path / ANCHOR).is_file():
            found = _read_snapshot(self.path / ANCHOR)
            if found.step == number and found.u.shape == last.u.shape:
                return found
        return last

    def _write(self, path: Path, s: Snapshot) -> None:
        _write_arrays(
            path, step=np.array(s.step), t=np.array(s.t), displacement=s.u, velocity=s.v,
            acceleration=s.a, work=s.work,
        )  # fmt: skip

    def read_state(self, step: int) -> Snapshot:
        """A saved step."""
        return _read_snapshot(self.state_path(step))

    def _checkpoint(self) -> Snapshot | None:
        """The checkpoint, unless a crash left it behind a saved step that replaces it."""
        if not (self.path / CHECKPOINT).is_file():
            return None
        found = _read_snapshot(self.path / CHECKPOINT)
        return found if found.step > max(self.saved_steps(), default=-1) else None

    def last_state(self, nodes: tuple[int, ...]) -> Snapshot | None:
        """The latest step on disk, saved or checkpoint, if it fits a body of this shape."""
        steps = self.saved_steps()
        found = [self.read_state(steps[-1])] if steps else []
        if (later := self._checkpoint()) is not None:
            found.append(later)
        for s in found:
            if s.u.shape != nodes:
                raise BadInput(
                    f"{self.path}: its states are of another body; start again with --overwrite."
                )
        return max(found, key=lambda s: s.step, default=None)

    def work(self) -> np.ndarray:
        """(steps, columns) what each step took (see WORK), of all steps on disk."""
        parts = [self.read_state(s).work for s in self.saved_steps()]
        if (later := self._checkpoint()) is not None:
            parts.append(later.work)
        return np.concatenate(parts) if parts else np.zeros((0, len(WORK)))


def _write_arrays(path: Path, **arrays: np.ndarray) -> None:
    with whole_file(path) as temporary, temporary.open("wb") as stream:
        np.savez(stream, allow_pickle=False, **arrays)  # pyright: ignore[reportArgumentType]


def _read_arrays(path: Path, *names: str) -> list[np.ndarray]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            return [archive[name] for name in names]
    except Exception as error:  # zipfile and numpy raise whatever a damaged file led them to
        raise BadInput(f"{path}: damaged or not a state; start again with --overwrite.") from error


def _read_snapshot(path: Path) -> Snapshot:
    step, t, u, v, a, work = _read_arrays(
        path, "step", "t", "displacement", "velocity", "acceleration", "work"
    )
    if work.ndim != 2 or work.shape[1] != len(WORK):
        raise BadInput(f"{path}: was written by another version; simulate again (--overwrite).")
    return Snapshot(int(step), float(t), u, v, a, work)


def _identity(description: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in description.items() if k not in NOT_THE_SCENE}


def files_digest(description: Any) -> str:
    """SHA-256 of the contents of all files that a description refers to."""
    digest = hashlib.sha256()
    stack = [description]
    while stack:
        item = stack.pop()
        if isinstance(item, Mapping):
            for key in sorted(item):
                if key == "file" and isinstance(item[key], str):
                    with Path(item[key]).open("rb") as stream:
                        digest.update(hashlib.file_digest(stream, "sha256").digest())
                else:
                    stack.append(item[key])
        elif isinstance(item, list):
            stack.extend(item)
    return digest.hexdigest()


def open_scene(description: Mapping[str, Any], directory: RunDirectory | None, name: str) -> Scene:
    """The scene of a description; a mesh body that a run there began with is used again."""
    maker: BodyMaker | None = None
    if directory is not None and directory.exists and (directory.path / BODY).is_file():
        path = directory.path / BODY

        def stored(shape, table) -> Body:
            nodes, cells = _read_arrays(path, "nodes", "cells")
            return restored_body(nodes, cells)

        maker = stored
    return build_scene(description, name=name, make_body=maker)


def describe(scene: Scene) -> tuple[dict[str, Any], str]:
    """A scene's description and the digest of its files."""
    description = describe_scene(scene)
    return description, files_digest(description)
