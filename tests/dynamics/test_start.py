"""Starts in balance and out of it, and masses that a body carries, against statics and modes."""

from dataclasses import replace

import numpy as np
import pytest

import pliant as pl
from pliant.app.describing.scene_building import build_scene
from pliant.app.describing.scene_description import describe_scene
from pliant.dynamics.start import StartFields

MATERIAL = pl.Material(youngs_modulus=2e5, poisson_ratio=0.45, density=1000.0)
CLAMP = pl.Fixed(pl.shapes.box(center=(0.0, 0.0, 0.0), size=(2e-4, 1.0, 1.0)))


def beam(spacing=0.0125, **options):
    box = pl.shapes.box(center=(0.05, 0.0, 0.0), size=(0.1, 0.025, 0.025))
    options = {"material": MATERIAL, "fixed": [CLAMP]} | options
    return pl.Scene(pl.GridBody(box, spacing=spacing), **options)


def tip(scene, run):
    return run.displacements[:, np.argmax(scene.body.nodes[:, 0]), 1]


BODIES = {
    "grid": beam,
    "cut grid": lambda **options: beam(0.011, **options),
    "tets": lambda **options: pl.Scene(
        pl.TetBody(pl.shapes.box(center=(0.05, 0.0, 0.0), size=(0.1, 0.025, 0.025)), 0.03),
        **({"material": MATERIAL, "fixed": [CLAMP]} | options),
    ),
    "law": lambda **options: beam(law="neo-hookean", **options),
    "linear": lambda **options: beam(model="linear", **options),
    "plane": lambda **options: pl.Scene(
        pl.GridBody(pl.shapes.box(center=(0.05, 0.0), size=(0.1, 0.025)), spacing=0.0125),
        material=MATERIAL, gravity=(0.0, -9.81),
        fixed=[pl.Fixed(pl.shapes.box(center=(0.0, 0.0), size=(2e-4, 1.0)))], **options,
    ),
}  # fmt: skip


@pytest.mark.parametrize("body", BODIES)
def test_what_hangs_in_balance_stays_there(body):
    scene = BODIES[body](start="equilibrium")
    run = pl.simulate(scene, 20)
    drop = tip(scene, run)
    assert drop[0] < -1e-4
    assert np.abs(run.displacements - run.displacements[0]).max() < 1e-5 * -drop[0]


def test_balance_is_that_of_statics():
    scene = beam(0.00625)
    rest = pl.solve_static(scene)
    start = pl.simulate(replace(scene, start="equilibrium"), 1).displacements[0]
    # statics hold walls exactly, steps by penalties
    assert np.abs(start - rest).max() < 0.02 * np.abs(rest).max()


def test_plucked_body_swings_in_its_mode():
    """One period of the first mode later it is back; the amplitude is the largest displacement."""
    plain = beam(0.00625, gravity=(0.0, 0.0, 0.0))
    f = pl.modes(plain, 3).frequencies
    slow = int(np.argmin(f))
    dt = 1.0 / (f[slow] * 80)
    amplitudes = [0.0, 0.0, 0.0]
    amplitudes[slow] = 1e-4
    start = pl.Start("state", modes=3, amplitudes=amplitudes)
    scene = beam(0.00625, gravity=(0.0, 0.0, 0.0), start=start, integrator=pl.Newmark2(dt))
    run = pl.simulate(scene, 80)
    first = run.displacements[0]
    # modes have exact walls, and steps slightly stiffer ones
    assert np.linalg.norm(first, axis=1).max() == pytest.approx(1e-4, rel=0.03)
    assert run.displacements[40] == pytest.approx(-first, abs=0.06e-4)
    assert run.displacements[80] == pytest.approx(first, abs=0.06e-4)


@pytest.mark.parametrize("body", ["grid", "cut grid", "tets"])
def test_amplitudes_mean_the_same_on_every_mesh(body):
    """A square beam's first modes: one bends along y, the other along z, by an amplitude each."""
    scene = BODIES[body](start=pl.Start("state", modes=2))
    if body == "tets":  # coarser ones may prefer a diagonal by more than two modes of a pair differ
        box = pl.shapes.box(center=(0.05, 0.0, 0.0), size=(0.1, 0.025, 0.025))
        scene = replace(scene, body=pl.TetBody(box, 0.015))
    shapes = StartFields(scene).shapes
    tip = [scene.body.displacement_at([[0.1, 0.0, 0.0]], shape)[0] for shape in shapes]
    assert tip[0] == pytest.approx([0.0, 1.0, 0.0], abs=0.03)
    assert tip[1] == pytest.approx([0.0, 0.0, 1.0], abs=0.03)


def test_velocities_of_modes_are_velocities():
    start = pl.Start("state", modes=2, velocities=(0.01, 0.0))
    scene = beam(gravity=(0.0, 0.0, 0.0), start=start)
    run = pl.simulate(scene, 1)
    assert np.abs(run.displacements[0]).max() < 1e-12
    assert np.abs(run.velocities[0]).max() == pytest.approx(0.01, rel=0.05)


def test_far_plucked_body_is_bent_and_not_stretched():
    """A third of its length to the side: the middle line keeps its length."""
    start = pl.Start("state", modes=1, amplitudes=(0.03,))
    scene = beam(gravity=(0.0, 0.0, 0.0), start=start)
    u = pl.simulate(scene, 1).displacements[0]
    line = np.stack([np.linspace(0.0, 0.1, 41), np.zeros(41), np.zeros(41)], axis=1)
    there = line + scene.body.displacement_at(line, u)
    assert np.abs(there[-1] - line[-1]).max() > 0.02
    length = np.linalg.norm(np.diff(there, axis=0), axis=1).sum()
    assert length == pytest.approx(0.1, rel=0.005)


def test_attached_mass_slows_the_beam_and_pulls_it_down():
    """A heavy mass at the tip: the frequency and sag of a spring with a mass."""
    heavy = beam(attached=[pl.PointMass(0.5, (0.1, 0.0, 0.0))])
    f = pl.modes(heavy, 2).frequencies.min()
    sag = -scene_sag(heavy)
    weightless = -scene_sag(beam(material=pl.Material(2e5, 0.45, 1e-6), attached=heavy.attached))
    assert sag == pytest.approx(weightless, rel=0.05)
    # f = sqrt(g / sag of the mass alone) / 2 pi, small sags (linear)
    linear = beam(material=pl.Material(2e5, 0.45, 1e-6), attached=heavy.attached, model="linear")
    assert f == pytest.approx(np.sqrt(9.81 / -scene_sag(linear)) / (2 * np.pi), rel=0.02)


def test_mass_on_a_region_keeps_its_moment():
    face = pl.shapes.box(center=(0.1, 0.0, 0.0), size=(1e-4, 1.0, 1.0))
    body = beam(0.011).body
    shares = pl.PointMass(0.3, region=face).shares(body)
    assert shares.sum() == pytest.approx(0.3)
    assert shares @ body.nodes / 0.3 == pytest.approx([0.1, 0.0, 0.0], abs=1e-5)


def scene_sag(scene):
    return scene.body.displacement_at([[0.1, 0.0, 0.0]], pl.solve_static(scene))[0, 1]


def test_start_and_masses_survive_a_file():
    start = pl.Start("state", modes=2, amplitudes=(0.01, 0.0), velocities=(0.0, 0.1))
    patch = pl.PointMass(0.01, region=pl.shapes.box(center=(0.1, 0.0, 0.0), size=(0.01, 1, 1)))
    scene = beam(start=start, attached=[pl.PointMass(0.05, (0.1, 0.0, 0.01)), patch])
    again = build_scene(describe_scene(scene))
    assert again.start == scene.start
    assert again.attached[0] == scene.attached[0]
    assert again.attached[1].region.to_dict() == patch.region.to_dict()
    assert build_scene(describe_scene(beam(start="equilibrium"))).begin.kind == "equilibrium"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: beam(start="later"), "one of rest, equilibrium, state"),
        (lambda: pl.Start("state"), "one or more"),
        (lambda: pl.Start("state", modes=2, amplitudes=(1.0,)), "2 finite numbers"),
        (lambda: beam(start="equilibrium", initial_velocity=(1.0, 0.0, 0.0)), "leave initial_vel"),
        (lambda: beam(start="equilibrium", model="corotated-frozen"), 'model = "corotated"'),
        (lambda: beam(attached=[pl.PointMass(1.0, (0.5, 0.0, 0.0))]), "not on the body"),
        (lambda: pl.PointMass(1.0), "a point or on a region"),
        (lambda: pl.PointMass(-1.0, (0.1, 0.0, 0.0)), "positive"),
    ],
)
def test_bad_starts_are_refused(make, words):
    with pytest.raises(pl.BadInput, match=words):
        make()
