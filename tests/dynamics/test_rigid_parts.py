"""Rigid parts: their inertia, how they spin, and that files and fits know them."""

from dataclasses import replace

import numpy as np
import pytest

import pliant as pl
from pliant.dynamics.march import march
from pliant.fem.bodies.affine_body import affine_body

STIFF = pl.Material(1e7, 0.3, 2000.0)
SIZE = np.array([1.0, 0.3, 0.6])
BRICK = pl.GridBody(pl.shapes.box(size=tuple(SIZE)), 0.1)


def test_a_brick_has_the_mass_and_the_moments_of_a_brick():
    body, filled = affine_body(BRICK)
    share = filled * body.node_volumes.reshape(-1)
    at = body.nodes[body.cells[0]]
    assert share.sum() == pytest.approx(SIZE.prod())
    assert share @ at == pytest.approx(np.zeros(3), abs=1e-12)
    second = np.einsum("n,ni,nj->ij", share, at, at)
    assert second == pytest.approx(SIZE.prod() * np.diag(SIZE**2) / 12.0, abs=1e-12)
    assert (
        np.abs(body.surface.positions(body.nodes) - BRICK.surface.positions(BRICK.nodes)).max()
        < 1e-12
    )


def test_it_spins_as_euler_says():
    spin, speed = np.array([0.1, 5.0, 0.0]), 2.0
    part = pl.Part("brick", BRICK, STIFF, rigid=True, spin=tuple(spin), velocity=(speed, 0, 0))
    scene = pl.Scene(
        parts=[part], gravity=(0, 0, 0), integrator=pl.GeneralisedAlpha(2.5e-3, 1.0)
    )  # fmt: skip
    model = scene.make_model()
    run = pl.simulate(scene, 400, system=model)
    mass = 2000.0 * SIZE.prod()
    inertia = mass / 12.0 * (np.square(SIZE).sum() - SIZE**2)
    energy = 0.5 * mass * speed**2 + 0.5 * inertia @ spin**2
    assert run.energies.kinetic[0] == pytest.approx(energy, rel=1e-9)
    assert run.energies.total == pytest.approx(energy, rel=1e-3)
    x = model.rest + run.displacements
    about = x - x.mean(axis=1, keepdims=True)
    turning = np.einsum("n,tni->ti", model.masses, np.cross(about, run.velocities))
    assert np.abs(turning - turning[0]).max() < 1e-3 * np.abs(turning[0]).max()
    edges = np.linalg.norm(x[:, 1:] - x[:, :1], axis=2)
    assert np.abs(edges / edges[0] - 1.0).max() < 1e-3  # the spin stretches it


def dropped(kind="springs"):
    ball = pl.GridBody(pl.shapes.sphere(radius=0.3), 0.15)
    jelly = pl.GridBody(pl.shapes.box(size=(1, 0.4, 1)), 0.2)
    soft = pl.Material(3e4, 0.4, 1000.0, stiffness_damping=1e-3)
    return pl.Scene(
        parts=[
            pl.Part("jelly", jelly, soft, position=(0, 0.23, 0)),
            pl.Part("ball", ball, STIFF, rigid=True, position=(0.1, 0.78, 0), velocity=(0, -1, 0)),
        ],
        obstacles=[pl.Plane()], integrator=pl.ImplicitEuler(0.01),
        contact=pl.ContactLaw(kind=kind, friction=0.2, slip_speed=1e-2),
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["springs", "barrier"])
def test_it_falls_on_something_soft(kind):
    if kind == "barrier":
        pytest.importorskip("ipctk")
    scene = dropped(kind)
    run = pl.simulate(scene, 25)
    centre, top = run.at([(0.1, 0.78, 0.0), (0.1, 0.42, 0.0)])[-1]
    assert centre[1] < 0.7
    assert top[1] == pytest.approx(centre[1] - 0.3, abs=0.05)  # of the jelly, beneath it
    assert run.energies.total[-1] < run.energies.total[0]
    x = scene.body.nodes[-4:] + run.displacements[:, -4:]
    edges = np.linalg.norm(x[:, 1:] - x[:, :1], axis=2)
    assert np.abs(edges / edges[0] - 1.0).max() < 0.01


def test_it_is_held_and_driven_as_a_whole():
    def turn(points, t):
        c, s = np.cos(t), np.sin(t)
        x, y, _ = points.T
        return np.stack([c * x - s * y - x, s * x + c * y - y, 0 * x], axis=1)

    corner = pl.shapes.sphere(center=(0.5, 0.15, 0.3), radius=0.1)
    part = pl.Part("brick", BRICK, STIFF, rigid=True, fixed=[pl.Fixed(corner, turn)])
    scene = pl.Scene(parts=[part], integrator=pl.ImplicitEuler(0.05))
    model = scene.make_model()
    *_, last = march(model, model.initial_state(), until=4)
    at = model.surfaces[0].points.at(model.rest + last.after.u.numpy())
    start = model.surfaces[0].points.at(model.rest)
    assert at == pytest.approx(start + turn(start, 0.2), abs=1e-9)


def test_files_and_fits_know_it(tmp_path):
    scene = dropped("barrier")
    scene.save(tmp_path / "scene.toml")
    again = pl.load_scene(tmp_path / "scene.toml")
    assert [part.rigid for part in again.parts] == [False, True]
    assert again.contact == scene.contact
    names = [name for name in scene.blocks if name.startswith("ball.")]
    assert names == ["ball.initial_velocity", "ball.initial_spin"]
    faster = scene.block("ball.initial_velocity").put(scene, np.array([0.0, -2.0, 0.0]))
    assert faster.parts[1] == replace(scene.parts[1], velocity=faster.parts[1].velocity)
    assert faster.parts[1].velocity == pytest.approx((0.0, -2.0, 0.0))
