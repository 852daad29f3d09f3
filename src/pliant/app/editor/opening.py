"""What `pliant view TARGET` opens: a scene to edit, a finished run to play, a fit to inspect."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from pliant.app.describing.elastic_scenes import require_elastic
from pliant.app.describing.fineness import AS_IT_IS, Fineness
from pliant.app.describing.scene_files import build_scene, read_description
from pliant.app.describing.scenes import ShapeFile, find_description
from pliant.app.editor.history import Frame
from pliant.app.fitted.fit_directory import ASKED, FitDirectory
from pliant.app.fitted.fit_observations import observations_of
from pliant.app.fitted.fit_values import unlabelled
from pliant.app.fitted.joint_fits import EXPERIMENTS, PICTURE
from pliant.app.folders.runs import SCENE, RunDirectory, open_scene
from pliant.core.errors import BadInput
from pliant.dynamics.scene import Scene
from pliant.fem.laws.tables import law_of
from pliant.inverse.parameters.unknowns import UnknownSet, make_unknown
from pliant.observe.files import RECORD
from pliant.observe.observations import Observations
from pliant.observe.tracks import TrackedPoints


@dataclass(frozen=True)
class FitFound:
    """A fit: the scene as asked, values by name, and per label value and sigma."""

    scene: Scene
    values: dict[str, Any]
    rows: dict[str, dict[str, float | None]]
    seen: Observations
    advice: list[str]

    def scene_at(self, labelled: dict[str, float]) -> Scene:
        """The scene with these numbers by label."""
        values = unlabelled(self.values, labelled, self.scene)
        members = UnknownSet(tuple(make_unknown(n, v, self.scene) for n, v in values.items()))
        return members.apply(self.scene, members.start())


@dataclass(frozen=True)
class Opened:
    """kind: "editor", "player" or "fit"; folder: where files are read and written."""

    kind: str
    name: str
    scene: Scene
    folder: Path
    frames: list[Frame] = field(default_factory=list)
    fit: FitFound | None = None


def open_target(
    target: str,
    *,
    shape: ShapeFile | None = None,
    folder: str | None = None,
    fineness: Fineness = AS_IT_IS,
) -> Opened:
    """Look at what is there and read it."""
    place = Path(target)
    if place.is_dir() and (shape is not None or fineness.given):
        raise BadInput(f"{target}: is shown as it was computed; its shape and cells are given.")
    if place.is_dir() and FitDirectory(place).exists:
        return _fit(place)
    if place.is_dir() and RunDirectory(place).exists:
        return _run(place)
    if place.is_dir():
        hint = " It is a recording: open a scene and choose it in Reconstruct."
        recording = (place / RECORD).is_file()
        raise BadInput(
            f"{target}: holds neither a run (scene.toml, result.json) nor a fit ({ASKED})."
            + (hint if recording else "")
        )
    scene = build_scene(fineness.of(find_description(target, shape=shape)), name=target)
    require_elastic(scene, "The editor")
    here = Path(folder) if folder is not None else Path.cwd()
    if folder is None and place.suffix == ".toml":
        here = place.absolute().parent
    if not here.is_dir():
        raise BadInput(f"{here}: there is no such folder.")
    return Opened("editor", place.name if place.suffix == ".toml" else target, scene, here)


def _run(place: Path) -> Opened:
    directory = RunDirectory(place)
    scene = open_scene(read_description(place / SCENE), directory, str(place))
    require_elastic(scene, "The editor")
    frames = []
    for step in directory.saved_steps():
        s = directory.read_state(step)
        if s.u.shape != scene.body.nodes.shape:
            raise BadInput(f"{place}: its states are of another body; simulate it again.")
        frames.append(Frame(s.step, s.t, s.u.astype(np.float32)))
    if not frames:
        raise BadInput(f"{place}: the run has no saved steps: simulate it first.")
    return Opened("player", place.name, scene, place.absolute(), frames)


def _fit(place: Path) -> Opened:
    directory = FitDirectory(place)
    if not (place / SCENE).is_file() and (place / EXPERIMENTS).is_dir():
        raise BadInput(
            f"{place}: is a joint fit; look at {PICTURE} in it, or view one of its scenes, "
            f"{EXPERIMENTS}/NAME/{SCENE}."
        )
    scene = open_scene(read_description(place / SCENE), RunDirectory(place), str(place))
    require_elastic(scene, "The editor")
    result, asked = directory.result(), directory.asked()
    rows = result["unknowns"]
    seen = observations_of(directory, scene, asked)
    seen = seen.as_points() if isinstance(seen, TrackedPoints) else seen
    numbers = {n: float(row["value"]) for n, row in rows.items() if row["value"] is not None}
    values = asked["unknowns"]
    if result.get("law") is not None:  # the best of several laws, with its own parameters
        scene, values = replace(scene, law=law_of(result["law"])), numbers
    found = FitFound(scene, values, rows, seen, list(result.get("advice", [])))
    return Opened("fit", place.name, found.scene_at(numbers), place.absolute(), fit=found)
