"""What a body's own weight does to it: rho g L against Young's modulus."""

import numpy as np

from pliant.dynamics.scene import Scene, vector3

LARGEST_LOAD = 2.0
"""Weight over modulus from which a body is told to collapse: a column of its height is then shorter
than nothing by linear elasticity, and a hanging one several times longer."""


def own_weight(scene: Scene) -> float:
    """Pressure rho g L [Pa] that a column as long as the body exerts on its foot."""
    length = float(np.ptp(scene.body.nodes, axis=0).max())
    gravity = float(np.linalg.norm(vector3("gravity", scene.gravity)))
    return float(np.mean(scene.cell_material.density)) * gravity * length


def weight_warning(scene: Scene) -> list[str]:
    """A sentence where nothing elastic could bear its own weight: most likely a wrong unit."""
    modulus = float(np.mean(scene.cell_material.youngs_modulus))
    share = own_weight(scene) / modulus
    if share <= LARGEST_LOAD or not (scene.fixed or scene.obstacles):
        return []
    return [
        f"The body cannot bear its own weight, density * gravity * length = "
        f"{own_weight(scene):.3g} Pa, {share:.3g} times its Young's modulus: check the units of "
        "modulus, density and length."
    ]
