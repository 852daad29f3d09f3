"""A body's turn within a Newton step is a turn, not a stretch."""

import numpy as np
import pytest

import pliant as pl
from pliant.dynamics.implicit import ImplicitModel
from pliant.dynamics.march import march
from pliant.dynamics.turning import TurningPath


@pytest.fixture
def cloud():
    rng = np.random.default_rng(3)
    return rng.uniform(0.1, 1.0, 20), rng.normal(size=(20, 3)), rng.normal(size=(20, 3))


def test_rigid_step_keeps_every_distance(cloud):
    masses, X, _ = cloud
    turn, shift = np.array([0.3, -0.8, 0.5]), np.array([1.0, 2.0, 3.0])
    path = TurningPath(masses, X, np.cross(turn, X) + shift)
    assert path.turn == pytest.approx(turn, abs=1e-10)
    there = X + path.displacement(1.7)
    apart = [np.linalg.norm(p[:, None] - p[None], axis=2) for p in (X, there)]
    assert apart[1] == pytest.approx(apart[0], abs=1e-12)


def test_turns_about_the_centre_of_mass(cloud):
    """A quarter turn about z, of bodies in space and in the plane."""
    masses, X, _ = cloud
    for Y in (X, X * [1.0, 1.0, 0.0]):
        centre = masses @ Y / masses.sum()
        path = TurningPath(masses, Y, np.cross([0.0, 0.0, np.pi / 2.0], Y - centre))
        x, y, z = (Y - centre).T
        assert Y + path.displacement(1.0) == pytest.approx(centre + np.stack([-y, x, z], 1))


def test_begins_along_the_step_and_knows_its_direction(cloud):
    masses, X, step = cloud
    path = TurningPath(masses, X, step)
    assert path.displacement(0.0) == pytest.approx(np.zeros_like(X), abs=1e-15)
    assert path.direction(0.0) == pytest.approx(step, abs=1e-12)
    e = 1e-6
    slope = (path.displacement(0.7 + e) - path.displacement(0.7 - e)) / (2.0 * e)
    assert path.direction(0.7) == pytest.approx(slope, abs=1e-8)


@pytest.mark.parametrize("dim", [2, 3])
def test_stiff_body_rolls_over_in_a_few_iterations(dim):
    """A spinning rubber block of 2 cm meets the ground; straight steps took up to sixty."""
    box = pl.shapes.box(center=(0.0,) * dim, size=(0.02, 0.01, 0.01)[:dim])
    scene = pl.Scene(
        pl.GridBody(box, spacing=0.004),
        pl.Material(youngs_modulus=5e7, poisson_ratio=0.49, density=200.0),
        gravity=(0.0, -9.81, 0.0)[:dim],
        obstacles=[pl.Plane(normal=(0.0, 1.0, 0.0)[:dim], offset=-0.011)],
        initial_spin=(0.0, 0.0, 40.0),
        initial_velocity=(0.0, -0.3, 0.0)[:dim],
    )
    model = ImplicitModel(scene)
    for _ in march(model, model.initial_state(), until=12):
        pass
    assert max(record.iterations for record in model.newton_records) <= 25
    assert len(model.newton_records) <= 60  # parts of the twelve steps
