"""How well pliant, at a film's true values, predicts the film's depths."""

from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import pliant as pl
from pliant.inverse.measuring.losses import Loss
from pliant.inverse.measuring.measures import SurfaceMeasure


def depth_residuals_of(folder: Path) -> dict[str, Any]:
    """Depth residuals [mm] over all frames and over each fifth of the film.

    rms counts pixels whose residual is usable (no grazing rays, no just missed silhouettes);
    robust_mm is 1.4826 times the median of |r|, the same as rms for Gaussian noise, blind to edges.
    """
    start = perf_counter()
    scene = pl.load_scene(folder / "scene.toml")
    seen = pl.load_observations(folder / "recording", scene=scene)
    built = perf_counter()
    run = pl.simulate(scene, len(seen.frames))
    moved = perf_counter()
    measure = SurfaceMeasure(scene, seen, "depth")
    loss = Loss(seen.noise or 1e-3)
    residuals = []
    for k, _ in measure.times:
        found = measure.residuals(k, run.displacements[k + 1], loss)
        residuals.append(found.r[found.usable])
    parts = np.array_split(np.arange(len(residuals)), 5)
    everything = np.concatenate(residuals)
    return {
        "cells": len(scene.body.cells),
        "volume_m3": scene.body.volume,
        "points": seen.point_count,
        "usable": len(everything),
        "rms_mm": 1e3 * _rms(everything),
        "mean_mm": 1e3 * float(everything.mean()),
        "robust_mm": 1e3 * 1.4826 * float(np.median(np.abs(everything))),
        "rms_by_fifth_mm": [
            1e3 * _rms(np.concatenate([residuals[k] for k in part])) for part in parts
        ],
        "noise_mm": 1e3 * (seen.noise or 0.0),
        "build_seconds": round(built - start, 1),
        "simulate_seconds": round(moved - built, 1),
    }


def _rms(r: np.ndarray) -> float:
    return float(np.sqrt(np.mean(r**2)))
