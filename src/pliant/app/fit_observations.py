"""The observations of a fit: a recording as it was asked for, or what the fit filmed itself."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pliant.app.fits import FitDirectory
from pliant.dynamics.scene import Scene
from pliant.inverse.unknowns import UnknownSet, make_unknown
from pliant.observe.crop import crop_to_body
from pliant.observe.files import RECORD, load_observations
from pliant.observe.observations import Observations

CROP = 0.25
"""Points farther from the motion than this share of the body's diagonal are not the body's."""


def recorded(scene: Scene, asked: Mapping[str, Any]) -> Observations:
    """The recording that `asked` names, in metres, without what is not the body's.

    asked: as in a fit's fit.json; "observations", "unknowns" and, or None, "units", "frame_rate",
    "crop".
    """
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
) -> Observations:
    """What a fit compared the scene with."""
    if (directory.seen_path / RECORD).is_file():
        return load_observations(directory.seen_path)
    return recorded(scene, asked)
