"""A finished fit as a prediction of its own recording: scene, recording, and how it is seen."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pliant.app.describing.scene_files import read_description
from pliant.app.fitted.fit_directory import FitDirectory
from pliant.app.fitted.fit_observations import observations_of
from pliant.app.fitted.fit_values import unlabelled
from pliant.app.folders.film_head import Sighting, corrected
from pliant.app.folders.runs import SCENE, open_scene
from pliant.core.errors import BadInput
from pliant.dynamics.scene import Scene
from pliant.fem.laws.tables import law_of
from pliant.inverse.parameters.unknowns import UnknownSet, make_unknown
from pliant.observe.calibration import Pose, recorded_centre
from pliant.observe.observations import Observations


@dataclass(frozen=True)
class FittedFilm:
    """scene: at the values found; folder: of the recording; asked: how it was read; sighting: what
    the fit found out about its clock, cameras and depths.
    """

    scene: Scene
    folder: Path
    asked: dict[str, Any]
    sighting: Sighting


def fitted_film(place: str | Path) -> FittedFilm:
    """What the fit in a folder found."""
    directory = FitDirectory(place)
    if not (directory.path / SCENE).is_file():
        raise BadInput(f"{place}: is a joint fit; compress each of its recordings with its scene.")
    result, asked = directory.result(), directory.asked()
    scene = open_scene(read_description(directory.path / SCENE), None, str(place))
    seen = observations_of(directory, scene, asked)
    if not isinstance(seen, Observations):
        raise BadInput(f"{place}: was fitted to tracked points, which are no film.")
    rows = result["unknowns"]
    numbers = {n: float(row["value"]) for n, row in rows.items() if row["value"] is not None}
    values = asked["unknowns"]
    if result.get("law") is not None:  # the best of several laws, with its own parameters
        scene, values = replace(scene, law=law_of(result["law"])), numbers
    values = unlabelled(values, numbers, scene)
    unknowns = UnknownSet(tuple(make_unknown(n, v, scene) for n, v in values.items()))
    found = unknowns.calibration(unknowns.start())
    centre = recorded_centre(seen)
    whole = Pose(found.pose, centre)

    def poses(index: int) -> list[Pose]:
        own = found.camera_poses.get(index)
        return [whole] if own is None else [Pose(own, centre), whole]

    sighting = Sighting(
        corrected(seen.cameras, poses), found.time_offset, found.depth_scale, found.depth_offset
    )
    folder = Path(asked.get("observations") or directory.seen_path)
    return FittedFilm(unknowns.apply(scene, unknowns.start()), folder, asked, sighting)
