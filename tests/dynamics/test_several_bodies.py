"""Several bodies in one scene: what their collisions keep, Hertz's theory, rest and friction."""

import hashlib
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import pliant as pl
from pliant.core.errors import BadInput
from pliant.dynamics.march import march

E, NU, RHO, R, G = 1e5, 0.3, 1000.0, 1.0, 9.81
SLIP = 1e-4
STUFF = pl.Material(E, NU, RHO)


class Hertz:
    """Two equal elastic balls that meet at `speed` each (Hertz 1882; Johnson 1985, chapter 11)."""

    def __init__(self, speed):
        modulus, radius, mass = E / (1.0 - NU**2) / 2.0, R / 2.0, RHO * 2.0 / 3.0 * np.pi * R**3
        k = 4.0 / 3.0 * modulus * np.sqrt(radius)
        run = solve_ivp(
            lambda t, y: [y[1], -k / mass * max(y[0], 0.0) ** 1.5],
            (0.0, 3.0), (0.0, 2.0 * speed), max_step=1e-3, rtol=1e-8,
        )  # fmt: skip
        force = k * np.maximum(run.y[0], 0.0) ** 1.5
        self.duration = run.t[force > 0.0][-1]
        self.largest, self.half = force.max(), width(run.t, force)


def width(t, force):
    """How long a force is more than half of its largest."""
    high, half = np.flatnonzero(force > 0.5 * force.max()), 0.5 * force.max()
    a, b = high[0], high[-1]
    start = np.interp(half, force[[a - 1, a]], t[[a - 1, a]])
    return np.interp(-half, -force[[b, b + 1]], t[[b, b + 1]]) - start


def balls(spacing, speed, dt, body=None):
    ball = body or pl.GridBody(pl.shapes.sphere(radius=R), spacing)
    away = R + 0.15 * spacing
    return pl.Scene(
        parts=[
            pl.Part("left", ball, STUFF, position=(-away, 0, 0), velocity=(speed, 0, 0)),
            pl.Part("right", ball, STUFF, position=(away, 0, 0), velocity=(-speed, 0, 0)),
        ],
        gravity=(0, 0, 0), integrator=pl.GeneralisedAlpha(dt), tolerance=1e-10,
    )  # fmt: skip


def meeting(spacing, speed, steps=40):
    """The run of a collision, the force between the balls over it, and what Hertz says."""
    theory = Hertz(speed)
    scene = balls(spacing, speed, theory.duration / steps)
    approach = 0.15 * spacing / speed / scene.dt
    model = scene.make_model()
    run = pl.simulate(scene, int(approach + 1.25 * steps), system=model)
    left = slice(0, model.starts[1])
    momentum = np.einsum("i,ti->t", model.masses[left], run.velocities[:, left, 0])
    force = -np.gradient(momentum, run.times)
    return run, model, momentum, force, theory


def test_balls_bounce_as_hertz_says():
    run, model, momentum, force, theory = meeting(R / 5, 0.05)
    size = momentum[0]
    total = np.einsum("i,tij->tj", model.masses, run.velocities)
    assert np.abs(total).max() < 1e-10 * size
    energy = run.energies
    assert energy.contact[-1] < 1e-6 * energy.total[0]  # they are apart
    assert np.abs(energy.total / energy.total[0] - 1.0).max() < 0.02
    assert -momentum[-1] / size == pytest.approx(1.0, abs=0.02)
    assert force.max() == pytest.approx(theory.largest, rel=0.05)
    assert width(run.times, force) == pytest.approx(theory.half, rel=0.05)
    assert not run.inverted.any()


def test_meshes_and_grids_bounce():
    mesh = pl.TetBody(pl.shapes.sphere(radius=R), edge_length=0.8)
    scene = balls(0.25, 0.2, 0.05, body=mesh)
    grid = replace(scene.parts[1], body=pl.GridBody(pl.shapes.sphere(radius=R), 0.25))
    scene = replace(scene, parts=[replace(scene.parts[0], position=(-1.05, 0.2, 0)), grid])
    model = scene.make_model()
    run = pl.simulate(scene, 30, system=model)
    momentum = np.einsum("i,tij->tj", model.masses, run.velocities)
    size = model.masses[: model.starts[1]].sum() * 0.2
    assert np.abs(momentum - momentum[0]).max() < 1e-10 * size
    assert run.velocities[-1, : model.starts[1], 0].mean() < -0.15
    assert run.energies.total[-1] == pytest.approx(run.energies.total[0], rel=0.02)


def block(size, spacing=0.25):
    return pl.GridBody(pl.shapes.box(size=size), spacing)


def stacked(gravity, law, speed=0.0):
    """A block of 1 x 0.25 x 0.5 on one of 2 x 0.25 x 1 whose lower face is held."""
    low = pl.shapes.half_space(normal=(0, 1, 0), offset=-0.124)
    stuff = replace(STUFF, youngs_modulus=4e6, stiffness_damping=0.01)
    return pl.Scene(
        parts=[
            pl.Part("table", block((2, 0.25, 1)), stuff, fixed=[pl.Fixed(low)]),
            pl.Part(
                "load", block((1, 0.25, 0.5)), stuff, position=(-0.35, 0.25, 0.03),
                velocity=(speed, 0, 0),
            ),
        ],
        gravity=gravity, integrator=pl.ImplicitEuler(0.02), contact=law,
    )  # fmt: skip


def test_a_block_rests_on_another():
    scene = stacked((0, -G, 0), pl.ContactLaw(friction=0.4))
    model = scene.make_model()
    *_, last = march(model, model.initial_state(), until=40)
    state = last.after
    force = model.between(state).forces(state.u.numpy(), state.v.numpy())
    weight = RHO * 0.125 * G
    starts = model.starts
    table, load = force[: starts[1]].sum(axis=0), force[starts[1] :].sum(axis=0)
    assert load == pytest.approx([0.0, weight, 0.0], abs=1e-3 * weight)
    assert table == pytest.approx(-load, abs=1e-9 * weight)


def sliding(angle, mu, speed, steps):
    """Mean velocity (frames, 3) of the upper block of a pair that stands on a slope."""
    gravity = (G * np.sin(angle), -G * np.cos(angle), 0.0)
    scene = stacked(gravity, pl.ContactLaw(friction=mu, slip_speed=SLIP), speed)
    model = scene.make_model()
    run = pl.simulate(scene, steps, system=model)
    masses = model.masses[model.starts[1] :]
    v = run.velocities[:, model.starts[1] :]
    return run.times, np.einsum("i,tij->tj", masses / masses.sum(), v)


def test_friction_is_its_coefficient_times_the_pressure():
    mu, angle = 0.4, np.arctan(0.6)
    t, v = sliding(angle, mu, 0.3, 30)
    rubbed = G * np.sin(angle) * t[-1] - (v[-1, 0] - v[0, 0])
    pressed = G * np.cos(angle) * t[-1] + (v[-1, 1] - v[0, 1])
    assert rubbed / pressed == pytest.approx(mu, rel=0.01)


def test_a_block_slips_at_the_angle_of_friction():
    mu = 0.4
    rate = {}
    for share in (0.99, 1.01):  # of the angle's tangent
        t, v = sliding(np.arctan(share * mu), mu, 0.0, 30)
        rate[share] = np.polyfit(t[-10:], v[-10:, 0], 1)[0]
    angle = np.arctan(1.01 * mu)
    whole = G * (np.sin(angle) - mu * np.cos(angle))
    assert rate[1.01] > 0.5 * whole
    assert rate[0.99] < 0.01 * whole  # it creeps, as smoothed friction does


BITS = """
import hashlib, numpy as np, pliant as pl
from tests.dynamics.test_several_bodies import dropped
run = pl.simulate(dropped(), 8)
print(hashlib.sha256(run.displacements.tobytes() + run.velocities.tobytes()).hexdigest())
"""


def dropped():
    """A ball that falls on a block on a floor, with friction."""
    return pl.Scene(
        parts=[
            pl.Part("block", block((1, 0.5, 1)), STUFF, position=(0, 0.25, 0)),
            pl.Part(
                "ball", pl.GridBody(pl.shapes.sphere(radius=0.4), 0.2), STUFF,
                position=(0.1, 0.92, 0), velocity=(0.3, -1, 0), spin=(0, 0, 2),
            ),
        ],
        obstacles=[pl.Plane()], contact=pl.ContactLaw(friction=0.3),
    )  # fmt: skip


def test_the_same_bits_for_one_thread_and_two_and_again():
    run = pl.simulate(dropped(), 8)
    assert run.energies.contact.max() > 0.0
    here = hashlib.sha256(run.displacements.tobytes() + run.velocities.tobytes()).hexdigest()
    for threads in ("1", "2"):
        there = subprocess.run(
            [sys.executable, "-c", BITS], capture_output=True, text=True, check=True,
            env={**os.environ, "PLIANT_THREADS": threads},
        )  # fmt: skip
        assert there.stdout.split()[-1] == here


def test_a_run_goes_on_as_if_it_had_not_stopped():
    whole = pl.simulate(dropped(), 8)
    half = pl.simulate(dropped(), 5)
    again = pl.simulate(dropped(), 8, resume=half)
    assert np.array_equal(again.displacements, whole.displacements)
    assert again.energies.row() == pytest.approx(whole.energies.row())


def test_what_cannot_be_asked_is_told():
    body = block((1, 1, 1), 0.5)
    one = pl.Part("one", body, STUFF)
    flat = pl.GridBody(pl.shapes.circle(radius=1.0), 0.5)

    def scene(*parts, **options):
        return pl.Scene(parts=parts, **options)

    for ask, words in (
        (lambda: pl.Part("flat", flat), "plane"),
        (lambda: pl.Part("two words", body), "letters and digits"),
        (lambda: pl.Part("shape", pl.shapes.sphere(radius=1.0)), "needs a body"),
        (lambda: scene(), "1 to 1000 parts"),
        (lambda: scene(body), "each is a Part"),
        (lambda: scene(one, one), "two are called 'one'"),
        (lambda: scene(one, material=STUFF), "'material' belongs to each Part"),
        (lambda: pl.Scene(body, parts=[one]), "not both"),
        (lambda: scene(one, integrator=pl.CentralDifferences(1e-3)), "GeneralisedAlpha"),
        (lambda: scene(replace(one, model="linear")).make_model(), "one: model = 'linear'"),
        (lambda: scene(replace(one, model="position-based")).make_model(), "cannot touch"),
        (
            lambda: scene(one, replace(one, name="two", position=(0.5, 0, 0))).make_model(),
            "'one' and 'two' overlap by",
        ),
        (lambda: scene(one).block("youngs_modulus"), "no unknown called .*one.youngs_modulus"),
        (lambda: pl.solve_static(scene(one)), "statics and modes"),
        (lambda: pl.modes(scene(one)), "statics and modes"),
    ):
        with pytest.raises(BadInput, match=words) as told:
            ask()
        assert str(told.value).count(". ") <= 1


def test_parts_are_drawn_and_told():
    scene = dropped()
    run = pl.simulate(scene, 1)
    assert "2 parts" in repr(scene)
    assert "block" in scene._repr_html_()
    assert "ball" in scene._repr_html_()
    for record in (scene, run):
        assert record.plot().axes
    picked = [(0.0, 0.2, 0.0), (0.1, 0.92, 0.0)]  # in the block and in the ball
    way = run.at(picked)[1] - run.at(picked)[0]
    assert abs(way[0, 1]) < 1e-3
    assert way[1] == pytest.approx([0.003, -0.01, 0.0], abs=1e-3)


def test_parts_that_touch_may_begin_so():
    touching = stacked((0, -G, 0), pl.ContactLaw())
    assert touching.make_model().node_count == len(touching.body.nodes)
