"""Run directories: the files of a simulation that can be stopped at any moment and resumed.

    scene.toml                     the scene, complete; long lists of it in scene.cells.npz
    result.json                    what came out; "status" is running, interrupted, failed, finished
    trajectory.pvd                 opens in ParaView
    trajectory/state_000012.npz    u, v, a, t of a saved step: arrays, no pickles; of a world that
                                   is not made of nodes also its own state
    trajectory/frame_000012.vtu    the same for ParaView
    checkpoint.npz                 the last step, if it is not a saved one
    anchor.npz                     the last fresh start (dynamics.march), if it is not a saved step
    body.npz                       nodes and cells of a mesh, whose making is not repeatable
    final.png, motion.gif, surface.ply

`pliant static` leaves the same files with the kind "rest" in result.json: its states are those of
rest under growing loads, and their times the shares of the load.

Every file is written beside its place and renamed into it, so a crash leaves old files or new
ones, never halves.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pliant.app.describing.scene_files import (
    BodyMaker,
    build_scene,
    describe_scene,
    first_difference,
    read_description,
    save_scene,
)
from pliant.app.describing.side_files import side_path
from pliant.app.describing.typed_files import RunTable, plain, read_typed
from pliant.app.folders.array_files import damaged, read_arrays, require_floats, write_arrays
from pliant.app.folders.folder_lock import holds_nothing
from pliant.app.folders.stored_bodies import store_bodies, stored_maker
from pliant.core.errors import BadInput
from pliant.core.files import write_text
from pliant.dynamics.energies import NAMES
from pliant.dynamics.march import anchor_before
from pliant.dynamics.scene import Scene
from pliant.dynamics.simulate import PHASES

SCENE, RESULT, INDEX, CHECKPOINT, ANCHOR, BODY = (
    "scene.toml", "result.json", "trajectory.pvd", "checkpoint.npz", "anchor.npz", "body.npz",
)  # fmt: skip
TRAJECTORY = "trajectory"

WORK = ("iterations", *PHASES, "parts", "inverted", *NAMES)
"""What is kept of each step: solver iterations, seconds, into how many parts it was cut, cells that
are inside out behind it, and the energies."""

NOT_THE_SCENE = ("steps", "title", "description")
"""Keys of a description that may change when a run is continued."""


NODAL = {"u": "displacement", "v": "velocity", "a": "acceleration"}
"""Arrays of a state of nodes, as its files have them."""

OWN = "state_"
"""Before the names of any other state's arrays."""


@dataclass(frozen=True)
class Snapshot:
    """A step on disk.

    u, v: displacement and velocity of the nodes; arrays: the model's state, by name; work: (steps
    since the last one, columns), see WORK.
    """

    step: int
    t: float
    u: np.ndarray
    v: np.ndarray
    arrays: Mapping[str, np.ndarray]
    work: np.ndarray

    @property
    def a(self) -> np.ndarray:
        """Acceleration of the nodes; none where the state does not hold it."""
        own, dim = self.arrays.get("a"), self.u.shape[1]
        if own is None or own.shape not in (self.u.shape, (len(self.u), 3)):
            return np.zeros((0, dim))
        return own[:, :dim]

    @property
    def of_nodes(self) -> bool:
        """True if the state is the motion of the nodes and nothing else."""
        own = self.arrays
        if set(own) != set(NODAL) or own["a"].shape != self.u.shape:
            return False
        return np.array_equal(own["u"], self.u) and np.array_equal(own["v"], self.v)


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
        if not holds_nothing(self.path):
            raise BadInput(
                f"{self.path}: the folder is not empty and holds no run; choose another --out."
            )

    def result(self) -> dict[str, Any]:
        """What result.json holds."""
        return plain(read_typed(self.path / RESULT, RunTable, "Start again with --overwrite."))

    def is_rest(self) -> bool:
        """True if its states are of a body at rest."""
        return self.result().get("kind") == "rest"

    def write_result(self, result: Mapping[str, Any]) -> None:
        """Replace result.json."""
        write_text(self.path / RESULT, json.dumps(result, indent=2, allow_nan=False) + "\n")

    def begin(self, scene: Scene, digest: str) -> None:
        """Make the directory and write the scene, and the body if it cannot be made again."""
        try:
            (self.path / TRAJECTORY).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInput(f"{self.path}: cannot be made ({error.strerror}).") from error
        store_bodies(scene, self.path / BODY)
        save_scene(scene, self.path / SCENE)
        self.write_result({"status": "running", "files_digest": digest})

    def clear(self) -> None:
        """Remove the files of the run that is here, and nothing else."""
        pictures = ("final.png", "motion.gif", "surface.ply", "rest.png", "rest.vtu")
        side = side_path(self.path / SCENE).name
        for name in (SCENE, side, RESULT, INDEX, CHECKPOINT, ANCHOR, BODY, *pictures):
            (self.path / name).unlink(missing_ok=True)
        for file in (self.path / TRAJECTORY).glob("*_*"):
            if re.fullmatch(r"(state_\d+\.npz|frame_\d+\.vtu)", file.name):
                file.unlink()
        with suppress(OSError):
            (self.path / TRAJECTORY).rmdir()

    def has_results(self) -> bool:
        """True if a step is saved."""
        return (self.path / CHECKPOINT).is_file() or any(self.saved_steps())

    def require_same(self, description: dict[str, Any], digest: str) -> None:
        """Refuse to continue another scene's run, or what is no motion."""
        if self.is_rest():
            raise BadInput(
                f"{self.path}: holds a body at rest (pliant static); choose another --out or give "
                "--overwrite."
            )
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
        own = {f"{OWN}{name}": array for name, array in s.arrays.items()}
        write_arrays(
            path, step=np.array(s.step), t=np.array(s.t), displacement=s.u, velocity=s.v,
            **({NODAL["a"]: s.a} if s.of_nodes else own), work=s.work,
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


def _read_snapshot(path: Path) -> Snapshot:
    found = read_arrays(path)
    own = {n.removeprefix(OWN): array for n, array in found.items() if n.startswith(OWN)}
    needed = ("step", "t", NODAL["u"], NODAL["v"], "work")
    for name in needed if own else (*needed, NODAL["a"]):
        if name not in found:
            raise damaged(path, f"the array '{name}' is missing")
    step, t, u, v, work = (found[n] for n in needed)
    arrays = own or {name: found[key] for name, key in NODAL.items()}
    if work.ndim != 2 or work.shape[1] != len(WORK):
        raise BadInput(f"{path}: was written by another version; simulate again (--overwrite).")
    if step.shape or step.dtype.kind not in "iu" or not 0 <= step < 10**12:
        raise damaged(path, "its step is no number of one")
    require_floats(path, {"t": t}, shape=())
    require_floats(path, {NODAL["u"]: u, NODAL["v"]: v}, shape=u.shape if u.ndim == 2 else (0, 0))
    if not own:
        require_floats(path, {NODAL["a"]: arrays["a"]}, shape=u.shape)
    require_floats(path, own)
    require_floats(path, {"work": work})
    return Snapshot(int(step), float(t), u, v, arrays, work)


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
    """The scene of a description; a mesh body that a run began with is used again.

    directory: of the run that is gone on with; name: what the user called the scene, which may be
    the folder of another run.
    """
    maker: BodyMaker | None = None
    path = Path(name) / BODY
    if directory is not None and directory.exists:
        path = directory.path / BODY
    elif path.is_file() and not _same_body(read_description(Path(name) / SCENE), description):
        path = Path()  # it is to be of another shape or fineness
    if path.is_file():
        maker = stored_maker(path)
    return build_scene(description, name=name, make_body=maker)


def _same_body(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    def made(scene: Any) -> Any:
        own = scene.get("parts")
        tables = own if isinstance(own, list) else [scene]
        return [[t.get(k) for k in ("name", "shape", "body")] for t in tables]

    return made(one) == made(other)


def describe(scene: Scene) -> tuple[dict[str, Any], str]:
    """A scene's description and the digest of its files."""
    description = describe_scene(scene)
    return description, files_digest(description)
