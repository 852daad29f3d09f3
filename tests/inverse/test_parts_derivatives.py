"""Derivatives through a collision of two bodies, and a fit of one that another hits."""

from dataclasses import replace

import numpy as np
import pytest
from test_derivatives import Misfit, check

import pliant as pl

SOFT = pl.Material(2e4, 0.3, 1000.0, stiffness_damping=2e-3)


def colliding(friction=0.3, scheme=None, law=None, **contact):
    """A ball that hits a block on a floor, both of a few cells, touching at once."""
    block = pl.GridBody(pl.shapes.box(size=(0.8, 0.4, 0.8)), 0.2)
    ball = pl.GridBody(pl.shapes.sphere(radius=0.3), 0.2)
    return pl.Scene(
        parts=[
            pl.Part("jelly", block, SOFT, position=(0.0, 0.2, 0.0)),
            pl.Part(
                "ball", ball, replace(SOFT, youngs_modulus=5e4), position=(0.07, 0.72, 0.03),
                velocity=(0.6, -2.0, 0.2), spin=(0.0, 1.0, 2.0), law=law,
            ),
        ],
        obstacles=[pl.Plane((0.03, 1.0, 0.02), -0.01)], tolerance=1e-12,
        contact=pl.ContactLaw(friction=friction, slip_speed=0.1, **contact),
        integrator=scheme or pl.GeneralisedAlpha(5e-3),
    )  # fmt: skip


UNKNOWNS = {
    "jelly.youngs_modulus": 2e4, "jelly.poisson_ratio": 0.3, "ball.youngs_modulus": 5e4,
    "ball.density": 1000.0, "jelly.stiffness_damping": 2e-3, "gravity": (0.5, -9.0, 0.2),
    "ball.initial_velocity": (0.6, -2.0, 0.2), "ground_offset": -0.01,
}  # fmt: skip


@pytest.mark.parametrize("friction", [0.0, 0.3])
def test_through_a_collision(friction):
    scene = colliding(friction)
    model = Misfit(scene, {"jelly.youngs_modulus": 2e4}).system
    states = Misfit(scene, {"jelly.youngs_modulus": 2e4}).cost(np.log([2e4]))[1]
    assert len(model.between(states[-1]).pairs) > 10  # they touch
    check(scene, UNKNOWNS)
