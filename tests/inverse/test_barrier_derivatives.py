"""Derivatives through a collision that a barrier keeps from being a passage."""

from dataclasses import replace

import numpy as np
import pytest
from test_derivatives import Misfit, check

import pliant as pl
from pliant.core.errors import BadInput

SOFT = pl.Material(2e4, 0.3, 1000.0, stiffness_damping=2e-3)


def colliding(friction=0.3, scheme=None, law=None, **contact):
    """A ball that hits a block on a floor, both of a few cells, within the gap at once."""
    block = pl.GridBody(pl.shapes.box(size=(0.8, 0.4, 0.8)), 0.2)
    ball = pl.GridBody(pl.shapes.sphere(radius=0.3), 0.2)
    return pl.Scene(
        parts=[
            pl.Part("jelly", block, SOFT, position=(0.0, 0.215, 0.0)),
            pl.Part(
                "ball", ball, replace(SOFT, youngs_modulus=5e4), position=(0.07, 0.76, 0.03),
                velocity=(0.6, -2.0, 0.2), spin=(0.0, 1.0, 2.0), law=law,
            ),
        ],
        obstacles=[pl.Plane()], tolerance=1e-12,
        contact=pl.ContactLaw(
            kind="barrier", gap=0.04, friction=friction, slip_speed=0.1, **contact
        ),
        integrator=scheme or pl.GeneralisedAlpha(5e-3),
    )  # fmt: skip


FEW = {"jelly.youngs_modulus": 2e4, "ball.density": 1000.0}
MORE = {
    "jelly.poisson_ratio": 0.3, "ball.youngs_modulus": 5e4, "jelly.stiffness_damping": 2e-3,
    "gravity": (0.5, -9.0, 0.2), "ball.initial_velocity": (0.6, -2.0, 0.2),
}  # fmt: skip


def test_through_a_collision():
    scene = colliding()
    misfit = Misfit(scene, {"jelly.youngs_modulus": 2e4})
    states = misfit.cost(np.log([2e4]))[1]
    between = misfit.system.between(states[-2])
    assert between.energy(states[-1].u.numpy()) > 1e-2  # they touch
    assert len(between.contacts) > 5  # and rub
    check(scene, FEW)


@pytest.mark.slow
@pytest.mark.parametrize(
    "scene",
    [
        colliding(), colliding(friction=0.0), colliding(law="neo-hookean"),
        colliding(scheme=pl.ImplicitEuler(5e-3)), colliding(scheme=pl.Newmark1(5e-3, 0.6)),
        colliding(stiffness=5e3), colliding(self_contact=True),
    ],
)  # fmt: skip
def test_through_collisions_of_every_kind(scene):
    check(scene, FEW | MORE)


def test_the_ground_of_a_barrier_is_known():
    with pytest.raises(BadInput, match="no unknown called 'ground_offset'"):
        colliding().block("ground_offset")
