"""The observations of a fit: a recording as it was asked for, or what the fit filmed itself."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pliant.app.fitted.fit_directory import FitDirectory
from pliant.core.errors import BadInput
from pliant.dynamics.scene import Scene
from pliant.inverse.fitting.registering import Registration
from pliant.inverse.parameters.unknowns import UnknownSet, make_unknown
from pliant.observe.crop import crop_to_body
from pliant.observe.files import RECORD, load_observations
from pliant.observe.observations import Observations
from pliant.observe.track_files import are_tracks, load_tracks
from pliant.observe.tracks import TrackedPoints

CROP = 0.25
"""Points farther from the motion than this share of the body's diagonal are not the body's."""


def recorded(scene: Scene, asked: Mapping[str, Any]) -> Observations | TrackedPoints:
    """The recording that `asked` names, in metres, without what is not the body's.

    asked: as in a fit's fit.json; "observations", "unknowns" and, or None, "units", "frame_rate",
    "crop".
    """
    if are_tracks(asked["observations"]):
        for key in ("frame_rate", "crop"):
            if asked.get(key) is not None:
                option = key.replace("_", "-")
                raise BadInput(f"--{option} is for films; {asked['observations']} holds tracks.")
        return load_tracks(asked["observations"], units=asked.get("units"), scene=scene)
    if scene.dim != 3:
        raise BadInput("Depth cameras see 3D bodies only; a 2D body can be fitted to tracks.")
    seen = load_observations(
        Path(asked["observations"]), units=asked.get("units"),
        frame_rate=asked.get("frame_rate"), scene=scene,
    )  # fmt: skip
    crop = asked.get("crop")
    if crop is None:
        nodes = scene.body.nodes
        crop = CROP * float(np.linalg.norm(nodes.max(axis=0) - nodes.min(axis=0)))
    if crop == 0.0:
        return seen
    starts = asked["unknowns"]
    unknowns = UnknownSet(tuple(make_unknown(n, v, scene) for n, v in starts.items()))
    return crop_to_body(seen, unknowns.apply(scene, unknowns.start()), crop)


def observations_of(
    directory: FitDirectory, scene: Scene, asked: Mapping[str, Any]
) -> Observations | TrackedPoints:
    """What a fit compared the scene with, laid onto the shape as the fit did."""
    if (directory.seen_path / RECORD).is_file():
        seen = load_observations(directory.seen_path)
    elif not asked.get("observations"):
        raise BadInput(f"{directory.path}: what it was fitted to is gone; fit again.")
    else:
        seen = recorded(scene, asked)
    numbers = directory.result().get("registered")
    if numbers is None or not isinstance(seen, Observations):
        return seen
    return Registration(np.asarray(numbers, float)).apply(seen)
