"""What to know before trusting a run of a scene, or a fit of its numbers, a sentence each."""

from collections.abc import Sequence

import numpy as np

from pliant.dynamics.locking import locking_warning
from pliant.dynamics.mesh_walls import mesh_wall_warnings
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
        *mesh_wall_warnings(scene),
        *_inversion_warning(scene, times, inverted),
        *(step_warnings(scene, velocities) if made.finite_elements else []),
        *made.run_warnings(),
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


def cautions(scene: Scene, labels: Sequence[str], values: np.ndarray) -> list[str]:
    """What a fit that found `values`, and the scene with them, cannot tell."""
    return [
        *_integrator_damping(scene, labels),
        *locking_warning(scene),
        *mesh_wall_warnings(scene),
        *_given_density(scene, labels, values),
        *scene.constitution.cautions(),
    ]


def _given_density(scene: Scene, labels: Sequence[str], values: np.ndarray) -> list[str]:
    """Say where a modulus is as right as the density that was given.

    Weight and inertia are all that moves the body, so that a density wrong by a fifth fits as well
    with a modulus wrong by a fifth: no residual tells.
    """
    if "youngs_modulus" not in labels or "density" in labels or scene.loads:
        return []
    modulus = values[labels.index("youngs_modulus")]
    density = float(np.mean(scene.cell_material.density))
    return [
        f"Only youngs_modulus / density is seen, {modulus / density:.5g} per unit density: "
        f"youngs_modulus is as right as the density given ({density:.4g}). The total error bar "
        "takes it as known to density_known_to, 10 % unless told: weigh the body and say how well."
    ]


def _integrator_damping(scene: Scene, labels: Sequence[str]) -> list[str]:
    """Warn where the scheme's own damping rivals the recovered one."""
    if not any("damping" in label for label in labels):
        return []
    scheme, material = scene.integrator, scene.material
    omega = 2.0 * np.pi / (20.0 * scheme.dt)  # a motion of twenty steps a period
    eigenvalues = np.linalg.eigvals(scheme.amplification(omega))
    turning = eigenvalues[np.argmax(np.abs(eigenvalues.imag))]
    own = -np.log(abs(turning)) / max(abs(np.angle(turning)), 1e-12)
    found = 0.5 * (material.mass_damping / omega + material.stiffness_damping * omega)
    if own > 0.3 * found:
        return [
            f"The integrator itself damps a motion of 20 steps a period with ratio {own:.3g}, "
            f"the material with {found:.3g}: use Newmark2, or a smaller time step, before trusting "
            "the recovered damping."
        ]
    return []
