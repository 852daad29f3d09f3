"""A spring between the mouse and a patch of the surface.

The patch is the surface around the grabbed point, weighted by a Gaussian of its radius, w summing
to one over the nodes; the spring pulls the patch's mean position to the target,
f_i = k w_i (target - sum_j w_j x_j). The force is explicit (it lags a step), so k stays below
what the implicit step gives way to: the stiffness of a half space pressed over the patch, about
2 E r, and the inertia of the whole body, m / dt^2.
"""

from dataclasses import dataclass

import numpy as np

from pliant.dynamics.scene import Scene

RADIUS = 2.0
"""Of the patch, in cells: a smaller one tears a spike out of the surface."""


@dataclass(frozen=True)
class Grip:
    """weights: (nodes,) of the patch; stiffness [N/m]."""

    weights: np.ndarray
    stiffness: float

    def force(self, positions: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Nodal forces (nodes, 3) that pull the patch to the target."""
        reach = np.zeros(3)
        reach[: len(target)] = target
        reach[: positions.shape[1]] -= self.weights @ positions
        return self.stiffness * self.weights[:, None] * reach


def grip(scene: Scene, mass: float, point: int, strength: float = 1.0) -> Grip:
    """A grip at a surface point; strength: share of the stable stiffness, at most 1."""
    body = scene.body
    rest = body.surface.positions(body.nodes)
    radius = RADIUS * body.spacing
    distance = np.linalg.norm(rest - rest[point], axis=1)
    near = np.exp(-((distance / radius) ** 2)) * body.surface.point_areas(rest)
    near[distance > 2.5 * radius] = 0.0
    near[point] = max(near[point], 1e-12 * body.spacing**2)
    weights = body.surface.points.spread(near)
    weights = weights / weights.sum()
    modulus = float(np.mean(scene.cell_material.youngs_modulus))
    local = 0.5 * modulus * radius
    whole = 0.1 * mass / scene.dt**2
    stiffness = np.clip(strength, 0.0, 1.0) * (local if scene.fixed else min(local, whole))
    return Grip(weights, float(stiffness))
