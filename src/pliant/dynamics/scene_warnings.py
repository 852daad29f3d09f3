"""What to know before trusting a run of a scene."""

import numpy as np

from pliant.dynamics.locking import locking_warning
from pliant.dynamics.own_weight import weight_warning
from pliant.dynamics.scene import Scene
from pliant.dynamics.step_quality import step_warnings


def run_warnings(
    scene: Scene, times: np.ndarray, inverted: np.ndarray, velocities: np.ndarray
) -> list[str]:
    """What to know before trusting a run; velocities: of frames one step apart."""
    made = scene.constitution
    return [
        *weight_warning(scene),
        *locking_warning(scene),
        *_inversion_warning(scene, times, inverted),
<<<<<<< HEAD
        *step_warnings(scene, velocities),
=======
        *(step_warnings(scene, velocities) if made.finite_elements else []),
        *made.run_warnings(),
>>>>>>> 6245a243a6fa8452f8ac57fb2b82507a3fa6d74e
    ]


def _inversion_warning(scene: Scene, times: np.ndarray, inverted: np.ndarray) -> list[str]:
    """A sentence where cells were inside out, and what to do about it."""
    bad = np.flatnonzero(inverted > 0)
    if not len(bad):
        return []
    cells, first = len(scene.body.cells), float(times[bad[0]])
    stays = bool(inverted[-1] > 0)
    until = "on" if stays else f"to t = {float(times[bad[-1]]):.4g} s"
    return [
        f"{int(inverted.max())} of {cells} cells are inside out from t = {first:.4g} s {until}: "
        f"use dt <= {scene.dt / 4.0:.2g} s, smaller cells, or a softer impact."
    ]
