"""Poses that cubature is trained on: what the body does, and a little of everything it could do.

Half of them are steps of a reduced run that takes all points: random loads, one after the other,
that are linear in X and as large as the scene's own, or bend the body by `REACH` of its size where
the scene has none. The others are small: random numbers in which every mode of the reduced body has
the same energy, so that no direction of q is left without a stiffness.
"""

from dataclasses import replace

import numpy as np
from scipy.linalg import eigh

from pliant.core.errors import SolverFailure
from pliant.dynamics.integrators import ImplicitEuler
from pliant.dynamics.march import march
from pliant.dynamics.scene import Scene, vector3
from pliant.reduced.cubature import some_points
from pliant.reduced.reduced_model import Q, ReducedModel, reduced_state
from pliant.reduced.reduction import Reduction

LARGE, SMALL = 20, 24
"""Poses of either kind."""

ENOUGH_POINTS = 3_000
"""Points of a body that poses are found with."""

HELD = 4
"""Steps that a load stays: a pose after each."""

REACH = 0.15
"""Displacement over the body's size that a load would bring by the rest stiffness, at least."""

FARTHEST = 0.6
"""The same, at most: loads of a scene that bends the body further than a linear one can."""

TINY = 1e-4
"""Strain of the small poses: their forces are as good as linear."""


def training_poses(scene: Scene, reduction: Reduction) -> np.ndarray:
    """Poses (poses, size); reduction: with all points."""
    rng = np.random.default_rng(0)
    bare = replace(
        scene, obstacles=(), loads=(), gravity=(0.0,) * 3, initial_velocity=(0.0,) * 3,
        initial_spin=(0.0,) * 3, start="rest",
        material=replace(scene.material, mass_damping=0.0, stiffness_damping=0.0),
    )  # fmt: skip
    model = ReducedModel(bare, _thinned(reduction))
    values, modes = reduced_modes(model)
    poses = [*_small(model, values, modes, rng)]
    period = 2.0 * np.pi / float(np.sqrt(values[0]))
    model.update(replace(bare, integrator=ImplicitEuler(0.3 * period), tolerance=1e-4))
    state = model.initial_state()
    nodes = model.masses[:, None]
    for _ in range(LARGE // HELD):
        force = _sized(scene, model, values, modes, nodes * _linear_field(scene, rng))
        model.push(force)
        try:
            for step in march(model, state, until=HELD):
                state = step.after
                poses.append(state.arrays[Q].copy())
        except SolverFailure:  # too far: what was reached will do
            none = np.zeros(model.size)
            state = reduced_state(none, none, none, 0.0)
    return np.array(poses)


def _thinned(reduction: Reduction) -> Reduction:
    """Every so many points of many, heavier: poses need not be exact."""
    points = reduction.points
    step = -(-len(points) // ENOUGH_POINTS)
    if step <= 1:
        return reduction
    chosen = np.arange(0, len(points), step)
    volume = float(points.weights.sum() / points.weights[chosen].sum())
    return replace(reduction, points=some_points(points, chosen, np.full(len(chosen), volume)))


def reduced_modes(model: ReducedModel) -> tuple[np.ndarray, np.ndarray]:
    """w^2 and modes (size, size) of the reduced body about its rest, those of rigid motions first
    where nothing holds it; w^2 no less than what a rigid motion's rounding is.
    """
    K = model.forces.stiffness(np.zeros(model.size))
    if model.walls is not None:
        K = K + model.walls
    values, modes = eigh(K, model.mass.matrix)
    still = np.maximum(values, 1e-8 * float(values[-1]) if len(values) else 0.0)
    first = int(np.argmax(values > 1e-6 * np.median(values)))
    return still[first:], modes[:, first:]


def _small(model: ReducedModel, values, modes, rng) -> np.ndarray:
    even = rng.standard_normal((SMALL, len(values))) / np.sqrt(values)
    poses = even @ modes.T
    for k, q in enumerate(poses):
        strain = float(np.sqrt(np.mean(np.square(model.forces.gradient(q)))))
        poses[k] = q * (TINY / max(strain, 1e-300))
    return poses


def _linear_field(scene: Scene, rng) -> np.ndarray:
    """A random acceleration that is linear in X, (nodes, 3)."""
    d, X = scene.dim, scene.body.nodes
    x = (X - X.mean(axis=0)) / float(np.ptp(X, axis=0).max())
    out = np.zeros((len(X), 3))
    out[:, :d] = rng.standard_normal(d) + 2.0 * x @ rng.standard_normal((d, d))
    return out


def _sized(scene: Scene, model: ReducedModel, values, modes, force: np.ndarray) -> np.ndarray:
    """The force with the scene's own strength, within REACH and FARTHEST."""
    size = float(np.ptp(scene.body.nodes, axis=0).max())

    def reach(field: np.ndarray) -> float:
        along = modes.T @ model.span.pull(field[:, : scene.dim])
        return float(np.abs(model.span.apply(modes @ (along / values))).max()) / size

    weight = model.masses[:, None] * vector3("gravity", scene.gravity)
    own = reach(weight + model.boundary.load_forces(0.0)) if scene.fixed else 0.0
    return force * (min(max(own, REACH), FARTHEST) / max(reach(force), 1e-300))
