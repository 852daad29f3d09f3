"""Contact: Hertz's force, weight carried by the floor, and friction on a slope."""

import numpy as np
import pytest

import pliant as pl
from pliant.dynamics.implicit import ImplicitModel
from pliant.dynamics.statics import solve_static_recorded

NU = 0.3
E = 1.0 - NU**2
"""So that E* = E / (1 - nu^2) = 1; the radius is 1 too."""


def contact_force(scene, u, obstacle, law):
    """Sum of the contact forces, from the law in ContactLaw's docstring.

    obstacle: a Plane, or the sampled field of a solid, as the engine samples it.
    """
    body = scene.body
    x = body.surface.positions(body.nodes + u)
    area = body.surface.point_areas(body.surface.positions(body.nodes))
    if isinstance(obstacle, pl.Plane):
        normal = np.broadcast_to(obstacle.normal[: body.dim], x.shape)
        d = x @ normal[0] - obstacle.offset
    else:
        d, normal = obstacle.distance(x), obstacle.gradient(x)
        normal = normal / np.linalg.norm(normal, axis=1, keepdims=True)
    pressure = law.stiffness * np.logaddexp(0.0, -law.sharpness * d) / law.sharpness
    return (area * pressure) @ normal


def hertz(depth):
    return 4.0 / 3.0 * depth**1.5


def half_space(normal, offset):
    return pl.shapes.half_space(normal=normal, offset=offset)


def sphere_into_block(cells, depth, size=0.4):
    """A rigid ball pressed into a quarter of an elastic half space; the force over Hertz's.

    Far from the contact the half space moves as under a point force (Boussinesq), which the outer
    faces of the block are given; so the approach is Hertz's, without a finite body's own yielding.
    """
    h, mu, F = size / cells, E / (2 * (1 + NU)), hertz(depth)

    def far(x, t):
        z, r = -x[:, 1], np.hypot(x[:, 0], x[:, 2])
        rho = np.hypot(r, z)
        down = F / (4 * np.pi * mu) * (2 * (1 - NU) / rho + z**2 / rho**3)
        out = F / (4 * np.pi * mu) * (z / rho**3 - (1 - 2 * NU) / (rho * (rho + z)))
        return np.stack([out * x[:, 0], -down, out * x[:, 2]], axis=1)

    body = pl.GridBody(pl.shapes.box(center=(size / 2, -size / 2, size / 2), size=(size,) * 3), h)
    end = -size + 1e-9
    ball = pl.shapes.sphere(radius=1.0, center=(0, 1 - depth, 0))
    law = pl.ContactLaw(stiffness=400 * E / h, sharpness=500 / h)
    scene = pl.Scene(
        body, pl.Material(E, NU), gravity=(0, 0, 0), model="linear",
        fixed=[
            pl.Fixed(half_space((1, 0, 0), 1e-9), axes="x"),
            pl.Fixed(half_space((0, 0, 1), 1e-9), axes="z"),
            pl.Fixed(half_space((-1, 0, 0), end), far),
            pl.Fixed(half_space((0, 0, -1), end), far),
            pl.Fixed(half_space((0, 1, 0), end), far),
        ],
        obstacles=[pl.Obstacle(ball, spacing=0.02)], contact=law,
    )  # fmt: skip
    u, record = solve_static_recorded(scene, tolerance=1e-5)
    sampled = pl.shapes.sample(ball, spacing=0.02)
    return -4.0 * contact_force(scene, u, sampled, law)[1] / F, record


def test_hertz():
    ratio, record = sphere_into_block(12, 0.02)
    assert ratio == pytest.approx(1.0, abs=0.05)
    assert record.rotation_updates < 30


@pytest.mark.slow
def test_hertz_converges():
    """Cells half as large change the force by less than 1 %.

    What remains of the 2.5 % is the far field: that of a point force, given 0.4 m away from a
    contact 0.14 m wide.
    """
    coarse, fine = (sphere_into_block(n, 0.02)[0] for n in (8, 16))
    assert fine == pytest.approx(1.0, abs=0.05)
    assert fine == pytest.approx(coarse, abs=0.01)


def ball_on_plane(cells, depth):
    """Half a ball pressed on the floor by its flat side: the force over Hertz's."""
    h = 1.0 / cells
    ball = pl.shapes.sphere(radius=1.0, center=(0, 1, 0))
    body = pl.GridBody(pl.shapes.intersection(ball, half_space((0, 1, 0), 1.0)), h)
    floor, law = pl.Plane(), pl.ContactLaw(stiffness=200 * E / h, sharpness=500 / h)
    scene = pl.Scene(
        body, pl.Material(E, NU), gravity=(0, 0, 0), model="linear",
        fixed=[pl.Fixed(half_space((0, -1, 0), -1.0 + 1e-9), (0, -depth, 0))],
        obstacles=[floor], contact=law,
    )  # fmt: skip
    u = pl.solve_static(scene, tolerance=1e-5)
    return contact_force(scene, u, floor, law)[1] / hertz(depth)


@pytest.mark.slow
def test_hertz_of_an_elastic_ball():
    """Half a ball is stiffer than Hertz's half space by its finite size (Tatara 1991).

    The approach to its middle is d = F^(2/3) (3/4)^(2/3) - F f / (pi E), f = (1 + nu)/4 + (1 -
    nu^2)/2 for a contact much smaller than the ball: 7.7 % more force at d = 0.02.
    """
    depth = 0.02
    f = (1 + NU) / 4 + (1 - NU**2) / 2
    F = hertz(depth)
    for _ in range(50):
        F = hertz(depth + F * f / (np.pi * E))
    assert F / hertz(depth) == pytest.approx(1.08, abs=0.02)
    assert ball_on_plane(12, depth) == pytest.approx(F / hertz(depth), rel=0.05)


@pytest.mark.parametrize("kind", ["grid", "triangles"])
def test_the_floor_carries_the_weight(kind):
    """A disc dropped on the floor comes to rest; the floor's push is its weight."""
    disc = pl.shapes.circle(radius=0.5, center=(0.0, 0.52))
    body = pl.GridBody(disc, 0.1) if kind == "grid" else pl.TetBody(disc, edge_length=0.12, order=1)
    floor, law = pl.Plane((0, 1)), pl.ContactLaw(stiffness=2e5, sharpness=200.0)
    scene = pl.Scene(
        body, pl.Material(2e3, 0.3, 10.0, mass_damping=8.0), gravity=(0, -9.81),
        obstacles=[floor], contact=law, integrator=pl.Newmark1(0.01, theta=0.6),
    )  # fmt: skip
    run = pl.simulate(scene, 600)
    weight = 10.0 * 9.81 * body.volume
    assert np.abs(run.velocities[-1]).max() < 1e-3
    push = contact_force(scene, run.displacements[-1], floor, law)
    assert push == pytest.approx([0.0, weight], abs=2e-3 * weight)
    low = (body.surface.positions(body.nodes + run.displacements[-1]))[:, 1].min()
    assert abs(low) < 0.02


def test_friction_on_a_slope():
    """Coulomb: it slides with g (sin a - c cos a) when tan a > c, and stays when tan a < c."""
    angle, time, law = np.radians(20.0), 0.6, {"stiffness": 1e5, "sharpness": 2000.0}
    # gravity is turned instead of the slope; the block starts where the floor carries it
    gravity = (9.81 * np.sin(angle), -9.81 * np.cos(angle))
    need = 10.0 * 0.2 * -gravity[1] * law["sharpness"] / law["stiffness"]
    height = -np.log(np.expm1(need)) / law["sharpness"]
    body = pl.GridBody(pl.shapes.box(center=(0, 0.1), size=(0.4, 0.2)), 0.1)
    moved = {}
    for friction in (0.0, 0.1, 0.8):
        scene = pl.Scene(
            body, pl.Material(2e4, 0.3, 10.0, stiffness_damping=1e-3), gravity=gravity,
            obstacles=[pl.Plane((0, 1), -height)],
            contact=pl.ContactLaw(**law, friction=friction, slip_speed=1e-2),
            integrator=pl.Newmark1(0.002, theta=0.6),
        )  # fmt: skip
        run = pl.simulate(scene, round(time / 0.002))
        moved[friction] = run.displacements[-1][:, 0].mean()
        assert np.abs(run.displacements[-1][:, 1]).max() < 0.01
    free = 0.5 * 9.81 * np.sin(angle) * time**2
    slowed = 0.5 * 9.81 * (np.sin(angle) - 0.1 * np.cos(angle)) * time**2
    assert moved[0.0] == pytest.approx(free, rel=0.01)
    assert moved[0.1] == pytest.approx(slowed, rel=0.05)
    assert abs(moved[0.8]) < 0.02 * free


def test_a_box_set_down_on_the_floor_stays():
    """With its face exactly on the plane it is not thrown off, and comes to rest where the default
    law carries its weight: at a distance of zero.
    """
    h, E, weight = 0.25, 2000.0, 9.81
    body = pl.GridBody(pl.shapes.box(center=(0.5, 0.5, 0.5), size=(1, 1, 1)), h)
    scene = pl.Scene(
        body, pl.Material(E, 0.0, 1.0, mass_damping=10.0, stiffness_damping=0.01),
        gravity=(0.0, -weight, 0.0), obstacles=[pl.Plane()], integrator=pl.ImplicitEuler(0.02),
    )  # fmt: skip
    run = pl.simulate(scene, 150).displacements[:, :, 1]
    foot = run[:, body.nodes[:, 1] < 1e-9].mean(axis=1)
    assert np.abs(foot).max() < 0.25 * h
    # points on the edges count the area of the side faces too, which lifts it a little
    assert 0.0 < foot[-1] < 0.05 * h


@pytest.mark.parametrize("modulus", [1e4, 1e6, 1e8])
def test_what_lies_on_the_floor_stays_there(modulus):
    """A cube placed on the floor: no jump, no hovering, whatever it is made of."""
    h = 0.01
    body = pl.GridBody(pl.shapes.box(center=(0.0, 0.02, 0.0), size=(0.04, 0.04, 0.04)), h)
    floor = pl.Plane(normal=(0, 1, 0), offset=0.0)
    run = pl.simulate(pl.Scene(body, pl.Material(modulus, 0.3, 1000.0), obstacles=[floor]), 60)
    low = np.array([run.surface(k)[:, 1].min() for k in range(run.steps + 1)])
    assert np.abs(low).max() < 0.15 * h
    sag = 1000.0 * 9.81 * 0.04 / modulus * 0.04
    assert np.abs(run.displacements[-1]).max() < sag + 0.15 * h


def test_the_default_law_presses_with_the_weight_where_a_body_touches():
    body = pl.GridBody(pl.shapes.box(center=(0.0, 0.5, 0.0), size=(1.0, 1.0, 1.0)), 0.25)
    floor = [pl.Plane(normal=(0, 1, 0), offset=0.0)]
    scene = pl.Scene(body, pl.Material(1e6, 0.3, 1000.0), obstacles=floor)
    contact = ImplicitModel(scene).contact
    p = contact.points
    touching = p.stiffness * np.log1p(np.exp(-p.sharpness * p.margin)) / p.sharpness
    assert touching == pytest.approx(1000.0 * 9.81 * 1.0, rel=1e-12)
    k, step = p.stiffness, 1e-6 * p.stiffness
    slope = (contact.margin_at(k + step) - contact.margin_at(k - step)) / (2 * step)
    assert p.margin_slope == pytest.approx(slope, rel=1e-6)
    imaginary = np.imag(contact.margin_at(k + 1e-30j)) / 1e-30
    assert p.margin_slope == pytest.approx(imaginary, rel=1e-12)
    law = pl.ContactLaw(stiffness=1e7)
    told = ImplicitModel(pl.Scene(body, pl.Material(1e6), obstacles=floor, contact=law)).contact
    assert (told.points.margin, told.points.margin_slope) == (0.125, 0.0)
