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


FEW = {"jelly.youngs_modulus": 2e4, "ball.density": 1000.0, "ground_offset": -0.01}
MORE = {
    "jelly.poisson_ratio": 0.3, "ball.youngs_modulus": 5e4, "jelly.stiffness_damping": 2e-3,
    "gravity": (0.5, -9.0, 0.2), "ball.initial_velocity": (0.6, -2.0, 0.2),
}  # fmt: skip


def test_through_a_collision():
    scene = colliding()
    misfit = Misfit(scene, {"jelly.youngs_modulus": 2e4})
    state = misfit.cost(np.log([2e4]))[1][-1]
    assert misfit.system.between(state).energy(state.u.numpy()) > 1e-3  # they touch
    check(scene, FEW)


@pytest.mark.slow
@pytest.mark.parametrize(
    "scene",
    [
        colliding(), colliding(friction=0.0), colliding(law="neo-hookean"),
        colliding(scheme=pl.ImplicitEuler(5e-3)), colliding(scheme=pl.Newmark1(5e-3, 0.6)),
        colliding(stiffness=1e6, sharpness=200.0),
    ],
)  # fmt: skip
def test_through_collisions_of_every_kind(scene):
    check(scene, FEW | MORE)


def hit(modulus=2e4):
    """A ball of 6 cm hits a block of 10 x 5 x 10 cm at 1 m/s."""
    block = pl.GridBody(pl.shapes.box(size=(0.1, 0.05, 0.1)), 0.025)
    ball = pl.GridBody(pl.shapes.sphere(radius=0.03), 0.02)
    jelly = pl.Material(modulus, 0.4, 1000.0, stiffness_damping=2e-3)
    return pl.Scene(
        parts=[
            pl.Part("jelly", block, jelly, position=(0, 0.025, 0)),
            pl.Part(
                "ball", ball, pl.Material(2e5, 0.3, 1000.0), position=(0.004, 0.0805, 0.002),
                velocity=(0, -1, 0),
            ),
        ],
        obstacles=[pl.Plane()], integrator=pl.GeneralisedAlpha(2e-3),
        contact=pl.ContactLaw(friction=0.2, slip_speed=1e-2),
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("start", [1e4, 4e4])
def test_a_block_is_known_by_a_ball_that_hits_it(start):
    scene = hit()
    run = pl.simulate(scene, 12)
    cameras = pl.ring_of_cameras(scene, 3, width=40, height=40)
    seen = pl.observe(run, cameras=cameras, noise=5e-4, seed=1)
    fit = pl.reconstruct(scene, seen, unknowns={"jelly.youngs_modulus": start})
    assert fit.values["jelly.youngs_modulus"] == pytest.approx(2e4, rel=0.02)
    assert fit.sigma["jelly.youngs_modulus"] < 0.01 * 2e4
