"""Parts behind a barrier: nothing passes, and what collisions keep."""

import hashlib
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import pliant as pl
from pliant.core.errors import BadInput, MissingExtra
from pliant.dynamics.march import march
from pliant.dynamics.parts import collision_surface

pytest.importorskip("ipctk")

E, RHO, G = 1e5, 1000.0, 9.81
STUFF = pl.Material(E, 0.3, RHO)
BARRIER = pl.ContactLaw(kind="barrier")


def block(size, spacing):
    return pl.GridBody(pl.shapes.box(size=size), spacing)


def ball(radius, spacing):
    return pl.GridBody(pl.shapes.sphere(radius=radius), spacing)


def crossings(model, run):
    """Frames in which the toolkit finds surfaces that cross."""
    return sum(model.barrier.surface.intersects(u) for u in run.displacements)


def simulated(scene, steps):
    model = scene.make_model()
    run = pl.simulate(scene, steps, system=model)
    assert crossings(model, run) == 0
    assert run.energies.contact.max() > 0.0
    return run, model


@pytest.mark.parametrize("scheme", [pl.GeneralisedAlpha, pl.ImplicitEuler])
def test_balls_that_meet_keep_their_momentum_and_gain_no_energy(scheme):
    body = ball(1.0, 0.33)
    scene = pl.Scene(
        parts=[
            pl.Part("left", body, STUFF, position=(-1.15, 0, 0), velocity=(0.3, 0, 0)),
            pl.Part("right", body, STUFF, position=(1.15, 0, 0), velocity=(-0.3, 0, 0)),
        ],
        gravity=(0, 0, 0), integrator=scheme(0.02), contact=BARRIER, tolerance=1e-12,
    )  # fmt: skip
    run, model = simulated(scene, 60)
    momentum = np.einsum("i,tij->tj", model.masses, run.velocities)
    left = slice(0, model.starts[1])
    size = model.masses[left].sum() * 0.3
    assert np.abs(momentum).max() < 1e-10 * size
    assert run.velocities[-1, left, 0].mean() < -0.2  # they bounced
    total = run.energies.total
    assert total.max() <= total[0] * (1 + 1e-9)
    assert run.energies.appeared.max() <= 1e-9 * total[0]
    if scheme is pl.GeneralisedAlpha:
        assert total[-1] == pytest.approx(total[0], rel=0.02)


def test_a_stack_rests_above_the_ground_and_each_other():
    scene = pl.Scene(
        parts=[
            pl.Part("low", block((1, 0.25, 1), 0.25), STUFF, position=(0, 0.14, 0)),
            pl.Part("high", block((0.5, 0.25, 0.5), 0.25), STUFF, position=(0.1, 0.41, 0.05)),
        ],
        obstacles=[pl.Plane()], integrator=pl.ImplicitEuler(0.02),
        contact=pl.ContactLaw(kind="barrier", friction=0.3, slip_speed=1e-2),
    )  # fmt: skip
    model = scene.make_model()
    *_, last = march(model, model.initial_state(), until=50)
    state = last.after
    u, surface = state.u.numpy(), model.barrier.surface
    force = model.between(state).forces(u, state.v.numpy())
    low, high = (force[a:b].sum(axis=0) for a, b in zip(model.starts, model.starts[1:]))  # noqa: B905
    assert high == pytest.approx([0.0, RHO * 0.0625 * G, 0.0], abs=0.02 * RHO * 0.0625 * G)
    assert (low + high)[1] == pytest.approx(RHO * 0.3125 * G, rel=1e-3)
    assert 0.0 < surface.before_planes(surface.at(u)) < model.barrier.gap
    assert not surface.intersects(u)


def on_a_slope(tangent, steps=50):
    """Speed (frames,) of a block that is pushed down a slope with a coefficient of 0.4."""
    angle = np.arctan(tangent)
    body = block((1, 0.25, 0.5), 0.25)
    scene = pl.Scene(
        parts=[pl.Part("block", body, STUFF, position=(0, 0.13, 0), velocity=(0.3, 0, 0))],
        gravity=(G * np.sin(angle), -G * np.cos(angle), 0.0), obstacles=[pl.Plane()],
        contact=pl.ContactLaw(kind="barrier", friction=0.4, slip_speed=1e-3),
        integrator=pl.ImplicitEuler(0.02),
    )  # fmt: skip
    run, model = simulated(scene, steps)
    momentum = np.einsum("i,ti->t", model.masses, run.velocities[:, :, 0])
    return run.times, momentum / model.masses.sum()


def test_friction_is_its_coefficient_times_the_pressure():
    t, v = on_a_slope(0.5)
    angle = np.arctan(0.5)
    rate = np.polyfit(t[-30:], v[-30:], 1)[0]
    assert (G * np.sin(angle) - rate) / (G * np.cos(angle)) == pytest.approx(0.4, rel=0.01)


def test_a_block_stops_on_a_slope_below_its_angle_of_friction():
    _, v = on_a_slope(0.3)
    assert v[0] == pytest.approx(0.3)
    assert abs(v[-1]) < 1e-3  # it creeps below the slip speed


def thrown(**law):
    """A ball and a ring of tetrahedra, which spin, on a block on ground of given heights."""
    nodes = np.array([(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1)], float)
    cells = [(0, 4, 6, 7), (0, 6, 2, 7), (0, 2, 3, 7), (0, 3, 1, 7), (0, 1, 5, 7), (0, 5, 4, 7)]
    cube = pl.TetBody((0.4 * nodes - 0.2, np.array(cells)))
    i, j = np.meshgrid(np.arange(6), np.arange(6), indexing="ij")
    ground = pl.shapes.height_field(0.05 * np.cos(2 * i) * np.sin(j), 0.5, origin=(-1.2, 0, -1.3))
    return pl.Scene(
        parts=[
            pl.Part("block", block((1, 0.4, 1), 0.2), STUFF, position=(0, 0.29, 0)),
            pl.Part(
                "ball", ball(0.3, 0.15), STUFF, position=(0.1, 0.87, 0.03),
                velocity=(0.3, -2, 0), spin=(0, 0, 4),
            ),
            pl.Part("cube", cube, STUFF, position=(-0.4, 0.79, 0.3), velocity=(0, -1, 0)),
        ],
        obstacles=[pl.Obstacle(ground)], integrator=pl.ImplicitEuler(0.01),
        contact=pl.ContactLaw(kind="barrier", friction=0.3, slip_speed=1e-2, **law),
    )  # fmt: skip


def test_a_block_rests_on_a_step_that_stands_on_the_ground():
    step = pl.Obstacle(pl.shapes.box(center=(0, 0.1, 0), size=(0.5, 0.2, 2)), 0.25)
    scene = pl.Scene(
        parts=[pl.Part("block", block((1, 0.25, 0.5), 0.25), STUFF, position=(0.05, 0.345, 0))],
        obstacles=[pl.Plane(), step], integrator=pl.ImplicitEuler(0.02), contact=BARRIER,
    )  # fmt: skip
    run, model = simulated(scene, 20)
    assert model.barrier.gap == pytest.approx(0.02)
    low = model.barrier.surface.at(run.displacements[-1])[: model.barrier.surface.moving, 1].min()
    assert 0.1 < low < 0.22


def test_grids_and_meshes_fall_on_ground_of_given_heights():
    run, _ = simulated(thrown(), 30)
    assert run.energies.appeared.max() <= 1e-3 * run.energies.total[0]
    assert run.energies.rubbing[-1] > 0.0


BITS = """
import hashlib, numpy as np, pliant as pl
from tests.dynamics.test_barrier import thrown
run = pl.simulate(thrown(), 8)
print(hashlib.sha256(run.displacements.tobytes() + run.velocities.tobytes()).hexdigest())
"""


def test_the_same_bits_for_one_thread_and_two_and_again():
    run = pl.simulate(thrown(), 8)
    assert run.energies.contact.max() > 0.0
    here = hashlib.sha256(run.displacements.tobytes() + run.velocities.tobytes()).hexdigest()
    for threads in ("1", "2"):
        there = subprocess.run(
            [sys.executable, "-c", BITS], capture_output=True, text=True, check=True,
            env={**os.environ, "PLIANT_THREADS": threads},
        )  # fmt: skip
        assert there.stdout.split()[-1] == here


def test_a_run_goes_on_as_if_it_had_not_stopped():
    whole = pl.simulate(thrown(), 8)
    again = pl.simulate(thrown(), 8, resume=pl.simulate(thrown(), 5))
    assert np.array_equal(again.displacements, whole.displacements)


def twisted(turns, cells, *, self_contact=True, seconds=2.0):
    """A bar five times as long as wide whose ends are turned against each other."""

    def turn(side):
        def motion(points, t):
            angle = side * np.pi * turns * min(t / seconds, 1.0)
            c, s = np.cos(angle), np.sin(angle)
            _, y, z = points.T
            return np.stack([0 * y, c * y - s * z - y, s * y + c * z - z], axis=1)

        return motion

    ends = [
        pl.Fixed(pl.shapes.box(center=(0.5 * k, 0, 0), size=(0.01, 1, 1)), turn(k)) for k in (-1, 1)
    ]
    stuff = pl.Material(E, 0.4, RHO, stiffness_damping=2e-3)
    bar = pl.Part("bar", block((1, 0.2, 0.2), 0.2 / cells), stuff, fixed=ends, law="neo-hookean")
    return pl.Scene(
        parts=[bar], gravity=(0, 0, 0), integrator=pl.ImplicitEuler(0.02), tolerance=1e-6,
        contact=pl.ContactLaw(kind="barrier", self_contact=self_contact),
    )  # fmt: skip


def test_a_twisted_bar_does_not_pass_through_itself():
    run, model = simulated(twisted(3.0, 2, seconds=1.0), 60)
    assert not run.inverted.any()
    free = pl.simulate(twisted(3.0, 2, self_contact=False, seconds=1.0), 60)
    assert crossings(model, free) > 0  # it would


@pytest.mark.slow
def test_a_bar_of_four_turns_does_not_pass_through_itself():
    run, _ = simulated(twisted(4.0, 4), 110)
    assert not run.inverted.any()


def folded(*, self_contact=True):
    """A hollow tube of tetrahedra whose ends are turned towards each other until it kinks."""
    outer, inner = (
        pl.shapes.cylinder(height=h, radius=r, axis=(1, 0, 0))
        for h, r in ((1.2, 0.12), (2.0, 0.07))
    )
    body = pl.TetBody(pl.shapes.difference(outer, inner), 0.06, order=1)

    def turn(side):
        def motion(points, t):
            angle = side * np.radians(76.5) * min(t, 1.0)
            c, s = np.cos(angle), np.sin(angle)
            x, y, _ = points.T
            return np.stack([c * x - s * y - x, s * x + c * y - y, 0 * x], axis=1)

        return motion

    ends = [
        pl.Fixed(pl.shapes.box(center=(0.6 * k, 0, 0), size=(0.01, 1, 1)), turn(k)) for k in (-1, 1)
    ]
    stuff = pl.Material(E, 0.4, RHO, stiffness_damping=2e-3)
    tube = pl.Part("tube", body, stuff, fixed=ends, law="neo-hookean")
    return pl.Scene(
        parts=[tube], gravity=(0, 0, 0), integrator=pl.ImplicitEuler(0.02), tolerance=1e-6,
        contact=pl.ContactLaw(kind="barrier", self_contact=self_contact),
    )  # fmt: skip


@pytest.mark.slow
def test_a_tube_that_is_folded_does_not_pass_through_itself():
    scene = folded()
    run, model = simulated(scene, 70)
    assert not run.inverted.any()
    law = replace(scene.contact, self_contact=False)
    assert crossings(model, pl.simulate(replace(scene, contact=law), 70)) > 0  # it would


def plate(name, way, side):
    """Rigid, above (1) or below (-1) a block of one metre, driven by `way` towards it in 0.3 s."""
    y = side * (0.5 + 0.01 + 0.125)
    last = (0.0, -side * way, 0.0)
    motion = pl.Motion((0.0, 0.3, 9.0), ((0, 0, 0), last, last))
    whole = pl.Fixed(pl.shapes.sphere(center=(0, y, 0), radius=0.5), motion)
    stiff = pl.Material(1e9, 0.0, RHO)
    body = block((1.6, 0.25, 1.6), 0.25)
    return pl.Part(name, body, stiff, position=(0, y, 0), fixed=[whole], rigid=True)


def squeezed(squeeze, spacing, gap):
    soft = replace(STUFF, stiffness_damping=0.02)
    way = 0.01 + 0.5 * squeeze
    middle = pl.Part("block", block((1, 1, 1), spacing), soft)
    return pl.Scene(
        parts=[middle, plate("top", way, 1), plate("foot", way, -1)], gravity=(0, 0, 0),
        contact=pl.ContactLaw(kind="barrier", gap=gap), integrator=pl.ImplicitEuler(0.05),
    )  # fmt: skip


def test_what_is_driven_arrives_and_pushes():
    scene = squeezed(0.02, 0.5, 0.01)
    model = scene.make_model()
    *_, last = march(model, model.initial_state(), until=6)
    u = last.after.u.numpy()
    assert u[model.starts[1] : model.starts[2], 1] == pytest.approx(-0.02, abs=1e-12)
    assert u[: model.starts[1], 1].min() < -1e-3
    assert not model.barrier.surface.intersects(u)


@pytest.mark.slow
def test_driven_plates_squeeze_a_block():
    squeeze = 0.3
    model = squeezed(squeeze, 0.25, 0.004).make_model()
    for step in march(model, model.initial_state(), until=16):
        assert not model.barrier.surface.intersects(step.after.u.numpy())
    state, at = step.after, model.starts
    force = model.between(state).forces(state.u.numpy(), state.v.numpy())[:, 1]
    for pushed in (force[at[1] : at[2]].sum(), -force[at[2] :].sum()):
        assert pushed == pytest.approx(squeeze * E, rel=0.02)  # per area at rest: no cell turns


def test_what_cannot_be_asked_is_told(monkeypatch):
    body = block((1, 1, 1), 0.5)
    one = pl.Part("one", body, STUFF)

    def scene(*parts, **options):
        return pl.Scene(parts=parts, contact=options.pop("contact", BARRIER), **options)

    wall = pl.Fixed(pl.shapes.sphere(center=(9, 0, 0), radius=1.0))
    for ask, words in (
        (lambda: pl.ContactLaw(kind="glue"), "springs, barrier"),
        (lambda: pl.ContactLaw(kind="barrier", margin=0.1), "sharpness and margin"),
        (lambda: pl.ContactLaw(gap=0.1), "a gap is that of a barrier"),
        (lambda: pl.ContactLaw(self_contact=True), "needs kind = 'barrier'"),
        (lambda: pl.Scene(body, contact=BARRIER), "as its one part"),
        (lambda: scene(one, replace(one, name="two", position=(1, 0, 0))).make_model(), "touch"),
        (lambda: scene(one, replace(one, name="two", position=(0.9, 0, 0))).make_model(), "touch"),
        (lambda: scene(one, obstacles=[pl.Plane(offset=-0.4)]).make_model(), "touch"),
        (lambda: scene(one, obstacles=[pl.Plane(offset=-0.5001)]).make_model(), "leave 0.005 m"),
        (lambda: replace(one, rigid=True, loads=[pl.BodyForce((0, 1, 0))]), "'one' is rigid"),
        (lambda: scene(replace(one, rigid=True, fixed=[wall])), r"fixed\[0\]: the region touches"),
        (lambda: scene(replace(one, rigid=True)).block("one.density"), "no unknown called"),
    ):
        with pytest.raises(BadInput, match=words) as told:
            ask()
        assert str(told.value).count(". ") <= 1
    monkeypatch.setitem(sys.modules, "ipctk", None)
    with pytest.raises(MissingExtra, match=r"pip install 'pliant\[barrier\]'"):
        collision_surface.toolkit()
