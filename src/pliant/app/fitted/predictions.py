"""A fit's folder as knowledge of a material, and the folder of a prediction."""

from pathlib import Path
from typing import Any

import numpy as np

from pliant.app.fitted.fit_directory import ASKED, FitDirectory
from pliant.app.fitted.fits import finite
from pliant.core.errors import BadInput
from pliant.dynamics.scene import Scene
from pliant.fem.laws.tables import law_of
from pliant.inverse.fitting.known_material import KnownMaterial, known
from pliant.inverse.fitting.prediction import Prediction

RECORD, PICTURE = "prediction.json", "prediction.png"


def read_fit(folder: str | Path) -> tuple[KnownMaterial, dict[str, Any]]:
    """What the finished fit in a folder found, and its result."""
    directory = FitDirectory(folder)
    if not directory.exists:
        raise BadInput(f"{folder}: holds no fit ({ASKED}); `pliant reconstruct` makes one.")
    result = directory.result()
    rows = result.get("numbers") or {
        name: row
        for name, row in result["unknowns"].items()
        if row.get("sigma") is not None and row["value"] is not None
    }
    labels = list(rows)
    correlation = result.get("correlation") or np.eye(len(labels))
    correlation = np.array([[np.nan if c is None else c for c in row] for row in correlation])
    if not labels or correlation.shape != (len(labels), len(labels)):
        raise BadInput(
            f"{folder}: has no error bars and correlations of its values (a field has none, nor "
            "has a fit of an earlier version): fit again."
        )
    values = {n: np.nan if r["value"] is None else r["value"] for n, r in rows.items()}
    sigma = np.array([_sigma(row) for row in rows.values()])
    if not np.isfinite(list(values.values())).all():
        raise BadInput(f"{folder}: a value of the fit is missing; fit again.")
    noise = result.get("noise") or result.get("rms") or 0.0
    if not noise > 0.0:
        noise = 1e-6  # a film without noise: nobody measures to a micrometre
    experiments = [x["name"] for x in result.get("experiments", [])]
    try:
        found = known(
            labels, values, sigma, correlation, noise, result.get("converged", True), experiments
        )
    except BadInput as error:
        raise BadInput(f"{folder}: {error}") from None
    return found, result


def _sigma(row: dict[str, Any]) -> float:
    for key in ("body_sigma", "total_sigma", "sigma"):
        if row.get(key) is not None:
            return row[key]
    return np.nan


def with_law(scene: Scene, result: dict[str, Any]) -> Scene:
    """The scene with the law that a comparison of laws has chosen, if the fit is one."""
    from dataclasses import replace

    return scene if result.get("law") is None else replace(scene, law=law_of(result["law"]))


def prediction_result(found: Prediction) -> dict[str, Any]:
    """Plain numbers for --json and prediction.json."""
    return {
        "rms": finite(found.rms), "noise": finite(found.noise), "band": finite(found.band),
        "expected": finite(found.expected), "within": finite(found.within),
        "covered": found.covered, "agrees": found.agrees, "apart": finite(found.apart),
        "material": {
            label: {
                "value": finite(value), "sigma": finite(found.sigma[label]),
                "alone": finite(found.alone[label][0]),
                "alone_sigma": finite(found.alone[label][1]),
            }
            for label, value in found.values.items()
        },
        "own": {n: finite(v) for n, v in found.own.items()},
        "times": found.times.tolist(), "frame_rms": found.frame_rms.tolist(),
        "frame_band": found.frame_band.tolist(), "advice": list(found.advice),
    }  # fmt: skip


def prediction_folder(out: str | Path) -> Path:
    """Where a prediction is left: nothing, an empty folder, or one with an earlier prediction."""
    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"{folder}: is a file; --out needs a folder.")
    strangers = folder.is_dir() and any(p.name not in (RECORD, PICTURE) for p in folder.iterdir())
    if strangers:
        raise BadInput(f"{folder}: holds other things than a prediction; choose another --out.")
    return folder
