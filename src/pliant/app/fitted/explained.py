"""A scene, or what a fit found, together with the recording that it is to explain."""

from dataclasses import dataclass
from pathlib import Path

from pliant.app.describing.fineness import Fineness
from pliant.app.folders.film_head import Sighting
from pliant.core.errors import BadInput
from pliant.dynamics.scene import Scene
from pliant.observe.observations import Observations


@dataclass(frozen=True)
class Explained:
    """folder: of the recording; units: that it was asked to be read in; sighting: what a fit found
    out about its clock, cameras and depths.
    """

    scene: Scene
    seen: Observations
    folder: Path
    units: str | None
    sighting: Sighting


def explained(
    subject: str,
    observations: str | None,
    *,
    fineness: Fineness,
    units: str | None = None,
    frame_rate: float | None = None,
) -> Explained:
    """Of the folder of a fit, whose own recording is the default, or of a scene."""
    from pliant.app.describing.scenes import find_description
    from pliant.app.fitted.fit_directory import FitDirectory
    from pliant.app.fitted.fit_film import fitted_film
    from pliant.app.folders.runs import open_scene
    from pliant.observe.files import load_observations

    sighting = Sighting()
    if Path(subject).is_dir() and FitDirectory(subject).exists:
        if fineness.given:
            raise BadInput(f"{subject}: holds a fit, whose cells are given.")
        fit = fitted_film(subject)
        scene, folder = fit.scene, Path(observations or fit.folder)
        if observations is None or folder.absolute() == fit.folder.absolute():
            sighting = fit.sighting
            units = units or fit.asked.get("units")
            frame_rate = frame_rate or fit.asked.get("frame_rate")
    elif observations is None:
        raise BadInput("--observations names the recording that SCENE is to explain.")
    else:
        description = fineness.of(find_description(subject))
        scene, folder = open_scene(description, None, subject), Path(observations)
    seen = load_observations(folder, units=units, frame_rate=frame_rate, scene=scene)
    return Explained(scene, seen, folder, units, sighting)
