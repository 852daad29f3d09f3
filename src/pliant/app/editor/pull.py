"""A spring between the mouse and a patch of the surface.

The patch is the surface around the grabbed point, weighted by a Gaussian of its radius, w summing
to one over the nodes; the spring pulls the patch's mean position to the target,
f_i = k w_i (target - sum_j w_j x_j). The force is explicit (it lags a step), so k stays below
what the implicit step gives way to: the stiffness of a half space pressed over the patch, about
2 E r, and the inertia of the whole body, m / dt^2.

However far the mouse goes, the spring is no longer than `reach`, so a body is neither torn nor
thrown. A body that nothing holds is pulled by a spring of frequency w (SWING, or what lifts four
times its weight) and slowed by 2 m w times its mean velocity, critically, for as long as it is
held: it arrives with no more than reach w.
"""

from dataclasses import dataclass

import numpy as np

from pliant.dynamics.scene import Scene

RADIUS = 2.0
"""Of the patch, in cells: a smaller one tears a spike out of the surface."""

REACH, TEARING = 0.25, 3.0
"""The longest spring: a share of the body's diagonal, and patch radii, beyond which the patch would
be stretched by more than its own size."""

SWING, LIFT = 1.5, 4.0
"""Of a free body: frequency of the pull [Hz], and how many times its weight it can lift."""


@dataclass(frozen=True)
class Grip:
    """weights: (nodes,) of the patch; stiffness [N/m]; reach [m]: the longest that the spring gets.

    slowing: (nodes,) [kg/s], what its mean velocity is taken times for a free body, else zero.
    """

    weights: np.ndarray
    stiffness: float
    reach: float
    slowing: np.ndarray

    def force(
        self, positions: np.ndarray, velocities: np.ndarray, target: np.ndarray
    ) -> np.ndarray:
        """Nodal forces (nodes, 3) that pull the patch to the target."""
        pull = np.zeros(3)
        pull[: len(target)] = target
        pull[: positions.shape[1]] -= self.weights @ positions
        length = float(np.linalg.norm(pull))
        pull *= min(1.0, self.reach / max(length, 1e-300))
        out = self.stiffness * self.weights[:, None] * pull
        total = self.slowing.sum()
        if total > 0.0:
            mean = self.slowing @ velocities / total
            out[:, : len(mean)] -= self.slowing[:, None] * mean
        return out


def grip(scene: Scene, masses: np.ndarray, point: int, strength: float = 1.0) -> Grip:
    """A grip at a surface point; masses: (nodes,) [kg]; strength: share of the stiffness."""
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
    size = float(np.linalg.norm(np.ptp(body.nodes, axis=0)))
    reach = min(REACH * size, TEARING * radius)
    share = float(np.clip(strength, 0.0, 1.0))
    if scene.fixed:
        return Grip(weights, share * local, reach, np.zeros(len(masses)))
    mass = float(masses.sum())
    gravity = float(np.linalg.norm(np.asarray(scene.gravity, float)))
    swing = max((2.0 * np.pi * SWING) ** 2, LIFT * gravity / reach)
    stiffness = share * min(local, 0.1 * mass / scene.dt**2, mass * swing)
    frequency = np.sqrt(stiffness / mass)
    return Grip(weights, stiffness, reach, 2.0 * frequency * np.asarray(masses, float))
