"""Tangent and adjoint of a whole simulation: against each other and by Taylor's theorem."""

from dataclasses import replace

import numpy as np
import pytest
import warp as wp

import pliant as pl
from frozen_frames import frozen_model
from pliant.core.launch import launch, to_device, zeros
from pliant.dynamics.contact import Contact
from pliant.dynamics.contact_derivatives import turn
from pliant.dynamics.contact_points import ObstacleData, touch
from pliant.dynamics.model import State
from pliant.inverse.motion.sensitivity import run, run_adjoint, run_with_tangents
from pliant.inverse.parameters.unknowns import UnknownSet, make_unknown

STEPS = 4
RING = pl.GridBody(pl.shapes.torus(major=0.5, minor=0.25), 0.2)
PLATE = pl.GridBody(pl.shapes.box(center=(0, 0), size=(1.0, 0.6)).rotated(angle=0.2), 0.13)
BRICK = pl.TetBody(pl.shapes.box(center=(0, 0, 0), size=(1.0, 0.5, 0.5)), edge_length=0.4)
SOFT = pl.Material(500.0, 0.3, 1.0, mass_damping=0.1, stiffness_damping=0.01)
WOBBLE = pl.Motion((0.0, 0.05, 0.2), ((0, 0, 0), (0.02, 0.01, 0), (0, 0, 0.01)))
IMPLICIT = [
    pl.Newmark1(0.03, 0.6), pl.Newmark2(0.03), pl.Newmark3(0.02), pl.LinearAcceleration(0.02),
    pl.HHT(0.03), pl.ImplicitEuler(0.03),
]  # fmt: skip


def held(body=RING, **options):
    top = body.surface.positions(body.nodes)[:, 1].max()
    dim = body.dim
    centre, size = [0.0] * dim, [4.0] * dim
    centre[1], size[1] = top, 0.5 * body.spacing + 0.15
    region = pl.shapes.box(center=tuple(centre), size=tuple(size))
    moving = WOBBLE if dim == 3 else None
    return pl.Scene(
        body, SOFT, gravity=(2.0, -9.0, 3.0)[:dim], fixed=[pl.Fixed(region, moving)],
        tolerance=1e-13, **options,
    )  # fmt: skip


def falling(body=RING, friction=0.3, **options):
    normal = (0.1, 1.0, 0.05)[: body.dim]
    floor = float((body.nodes @ np.asarray(normal) / np.linalg.norm(normal)).min())
    return pl.Scene(
        body, SOFT, gravity=(1.0, -9.0, 2.0)[: body.dim], tolerance=1e-13,
        obstacles=[pl.Plane(normal, floor - 0.02)],
        contact=pl.ContactLaw(stiffness=300.0, friction=friction, slip_speed=0.1), **options,
    )  # fmt: skip


class Misfit:
    """Squares of displacements and velocities against random targets (eq. 5.4.1)."""

    def __init__(self, scene, unknowns, steps=STEPS):
        self.scene, self.steps = scene, steps
        self.set = UnknownSet(tuple(make_unknown(k, v, scene) for k, v in unknowns.items()))
        rng = np.random.default_rng(3)
        n, dim = len(scene.body.nodes), scene.dim
        self.u, self.v = (0.1 * rng.standard_normal((steps + 1, n, 3)) for _ in range(2))
        self.u[..., dim:] = self.v[..., dim:] = 0.0
        self.system = frozen_model(self.set.apply(scene, self.set.start()))

    def cost(self, q):
        self.system.update(self.set.apply(self.scene, q))
        states = run(self.system, self.steps)
        return sum(
            0.5 * np.sum((s.u.numpy() - self.u[k]) ** 2)
            + 0.005 * np.sum((s.v.numpy() - self.v[k]) ** 2)
            for k, s in enumerate(states)
        ), states

    def adjoint(self, q):
        _, states = self.cost(q)

        def seed(k, s):
            return State.of(
                to_device(s.u.numpy() - self.u[k], wp.vec3d),
                to_device(0.01 * (s.v.numpy() - self.v[k]), wp.vec3d),
                zeros(s.u.shape[0], wp.vec3d),
            )

        return self.set.pull(self.system, q, run_adjoint(self.system, states, seed))

    def tangent(self, q):
        self.system.update(self.set.apply(self.scene, q))
        g = np.zeros(len(q))

        def on_frame(k, s, tangents):
            for i, t in enumerate(tangents):
                g[i] += np.sum((s.u.numpy() - self.u[k]) * t.u.numpy())
                g[i] += 0.01 * np.sum((s.v.numpy() - self.v[k]) * t.v.numpy())

        run_with_tangents(self.system, self.steps, self.set.directions(self.system, q), on_frame)
        return g


def check(scene, unknowns, agreement=1e-8):
    misfit = Misfit(scene, unknowns)
    q = misfit.set.start()
    a, t = misfit.adjoint(q), misfit.tangent(q)
    assert np.abs(a - t).max() <= agreement * np.abs(t).max()
    base = misfit.cost(q)[0]
    for i, label in enumerate(misfit.set.labels):
        size = 0.02 / max(1.0, abs(t[i]) / max(base, 1e-12))
        rest = []
        for k in range(4):
            step = np.zeros(len(q))
            step[i] = size / 2**k
            rest.append(abs(misfit.cost(q + step)[0] - base - step[i] * t[i]))
        rest = np.array(rest)
        if rest.max() < 1e-11 * base:
            continue  # linear in this unknown to rounding
        rate = np.log2(rest[:-1] / np.maximum(rest[1:], 1e-300)).max()
        assert rate > 1.9, (label, rest)


MATERIAL = {
    "youngs_modulus": 500.0, "poisson_ratio": 0.3, "density": 1.0, "mass_damping": 0.1,
    "stiffness_damping": 0.01,
}  # fmt: skip


@pytest.mark.parametrize("scheme", IMPLICIT, ids=lambda s: s.name)
def test_held_corotated(scheme):
    check(held(integrator=scheme), MATERIAL | {"gravity": (2.0, -9.0, 3.0)})


@pytest.mark.parametrize("scheme", IMPLICIT, ids=lambda s: s.name)
def test_falling_on_the_ground(scheme):
    unknowns = {"youngs_modulus": 500.0, "ground_normal": (0.1, 1.0, 0.05)}
    scene = falling(integrator=scheme)
    unknowns["ground_offset"] = scene.obstacles[0].offset
    check(scene, unknowns | {"contact_stiffness": 300.0})


def test_contact_that_follows_the_modulus():
    """The default law: its stiffness and its margin change with Young's modulus."""
    scene = replace(falling(integrator=pl.GeneralisedAlpha(0.01)), contact=pl.ContactLaw())
    check(scene, {"youngs_modulus": 500.0, "ground_offset": scene.obstacles[0].offset})


def test_numbers_of_regions():
    """Of the body outside of a region and of the region itself, with the contact that follows."""
    region = pl.MaterialRegion(
        pl.shapes.half_space(normal=(1, 0, 0), offset=0.1), youngs_modulus=900.0, poisson_ratio=0.2
    )
    scene = replace(
        falling(integrator=pl.GeneralisedAlpha(0.01)), contact=pl.ContactLaw(),
        material=replace(SOFT, regions=[region]),
    )  # fmt: skip
    check(
        scene,
        {
            "youngs_modulus": 500.0, "poisson_ratio": 0.3, "regions.0.youngs_modulus": 900.0,
            "regions.0.poisson_ratio": 0.2,
        },
    )  # fmt: skip


@pytest.mark.parametrize("make", [held, falling])
def test_tangent_and_adjoint_over_thirty_steps(make):
    misfit = Misfit(make(integrator=pl.Newmark1(0.02, 0.6)), MATERIAL, steps=30)
    q = misfit.set.start()
    a, t = misfit.adjoint(q), misfit.tangent(q)
    assert np.abs(a - t).max() <= 1e-8 * np.abs(t).max()


def test_initial_motion():
    scene = held(integrator=pl.Newmark2(0.03))
    check(scene, {"initial_velocity": (0.3, 0.0, 0.1), "initial_spin": (0.0, 0.2, 0.1)})


def test_linear_model():
    check(held(integrator=pl.Newmark1(0.03, 0.6), model="linear"), MATERIAL)


def test_plane_strain():
    check(held(PLATE, integrator=pl.Newmark1(0.03, 0.6)), MATERIAL)
    check(falling(PLATE, integrator=pl.HHT(0.03)), {"youngs_modulus": 500.0, "density": 1.0})


def test_tetrahedra():
    check(held(BRICK, integrator=pl.Newmark1(0.03, 0.6)), MATERIAL)
    check(falling(BRICK, integrator=pl.Newmark2(0.03)), {"poisson_ratio": 0.3, "density": 1.0})


def test_contact_stiffness_that_follows_the_modulus():
    scene = falling(integrator=pl.Newmark1(0.03, 0.6))
    law = pl.ContactLaw(sharpness=20.0)
    scene = pl.Scene(
        scene.body, SOFT, gravity=scene.gravity, obstacles=[pl.Plane((0.1, 1.0, 0.05), -0.85)],
        contact=law, tolerance=1e-13, integrator=scene.integrator,
    )  # fmt: skip
    check(scene, {"youngs_modulus": 500.0})


def test_a_stiffness_field():
    """The adjoint's gradient by every cell's modulus, along a random direction."""
    scene = held(integrator=pl.Newmark1(0.03, 0.6))
    cells = len(scene.body.cells)
    misfit = Misfit(scene, {"youngs_modulus": np.full(cells, 500.0)})
    q = misfit.set.start()
    direction = np.random.default_rng(0).standard_normal(cells)
    g = misfit.adjoint(q) @ direction
    base = misfit.cost(q)[0]
    rest = [
        abs(misfit.cost(q + e * direction)[0] - base - e * g) for e in 0.05 / 2.0 ** np.arange(4)
    ]
    assert np.log2(rest[0] / rest[1]) > 1.9
    assert np.log2(rest[1] / rest[2]) > 1.9


def test_gradient_through_free_fall_is_exact():
    """u(t) = g t^2 / 2 for the trapezoidal rule: du/dg is t^2 / 2 everywhere."""
    scene = pl.Scene(
        BRICK,
        pl.Material(500.0, 0.3),
        gravity=(0.0, -9.0, 0.0),
        integrator=pl.Newmark1(0.03),
        tolerance=1e-13,
    )
    system = frozen_model(scene)
    unknowns = UnknownSet((make_unknown("gravity", (0.0, -9.0, 0.0), scene),))
    last = {}

    def on_frame(k, state, tangents):
        last["u"] = tangents[1].u.numpy()

    run_with_tangents(system, STEPS, unknowns.directions(system, unknowns.start()), on_frame)
    t = 0.03 * STEPS
    assert last["u"][:, 1] == pytest.approx(0.5 * t**2, rel=1e-10)
    assert np.abs(last["u"][:, [0, 2]]).max() < 1e-12


def test_qr_frame():
    check(held(BRICK, integrator=pl.Newmark1(0.03, 0.6), model="corotated-qr"), MATERIAL)


@pytest.mark.parametrize("scheme", [pl.Newmark1(0.03, 0.6), pl.HHT(0.03)], ids=lambda s: s.name)
def test_falling_on_a_ball(scheme):
    """An obstacle of sampled distance: its normal turns with the point that touches it."""
    low = float(RING.nodes[:, 1].min())
    ball = pl.Obstacle(pl.shapes.sphere(radius=0.6, center=(0.05, low - 0.57, 0.03)), spacing=0.15)
    scene = replace(falling(integrator=scheme), obstacles=(ball,))
    check(scene, {"youngs_modulus": 500.0, "density": 1.0, "contact_stiffness": 300.0,
                  "gravity": (1.0, -9.0, 2.0)})  # fmt: skip


def test_slope_of_sampled_distances():
    """Between the faces of the samples' cells the derivatives are those of differences."""
    body = pl.GridBody(pl.shapes.box(center=(0, 0, 0), size=(0.4, 0.4, 0.4)), 0.1)
    ball = pl.Obstacle(pl.shapes.sphere(radius=0.6), spacing=0.2)
    data = Contact(body, (ball,), pl.ContactLaw(stiffness=1.0)).obstacles[0]
    rng = np.random.default_rng(1)
    x = rng.uniform(-1.4, 1.4, (300, 3))  # the samples end at about 0.9
    d, n, slope, turning = touched(data, x)
    e = 1e-7
    for axis in range(3):
        step = e * np.eye(3)[axis]
        later, earlier = touched(data, x + step), touched(data, x - step)
        by_d = (later[0] - earlier[0]) / (2 * e)
        by_n = (later[1] - earlier[1]) / (2 * e)
        assert slope[:, axis] == pytest.approx(by_d, abs=1e-6)
        assert turning[:, :, axis] == pytest.approx(by_n, abs=1e-5)


@wp.kernel
def _touched(
    first: wp.int32,
    o: ObstacleData,
    x: wp.array(dtype=wp.vec3d),
    d: wp.array(dtype=wp.float64),
    n: wp.array(dtype=wp.vec3d),
    slope: wp.array(dtype=wp.vec3d),
    turning: wp.array(dtype=wp.mat33d),
):
    i = first + wp.tid()
    t = touch(o, x[i])
    by = turn(o, x[i])
    d[i] = t.d
    n[i] = t.n
    slope[i] = by.slope
    turning[i] = by.turning


def touched(data, x):
    kinds = (wp.float64, wp.vec3d, wp.vec3d, wp.mat33d)
    out = [zeros(len(x), kind) for kind in kinds]
    launch(_touched, len(x), [data, to_device(x, wp.vec3d), *out])
    return [a.numpy() for a in out]


PLUCKED = pl.Start("state", modes=2, amplitudes=(0.02, -0.01), velocities=(0.1, 0.2))


def test_start_in_balance():
    """What moves the balance moves the start; a mass hangs there as well."""
    points = RING.surface.positions(RING.nodes)
    low = points[np.argmin(points[:, 1])]
    scene = held(
        integrator=pl.GeneralisedAlpha(0.02), start="equilibrium", model="linear",
        attached=[pl.PointMass(0.02, tuple(low))],
    )  # fmt: skip
    check(scene, {"youngs_modulus": 500.0, "density": 1.0, "gravity": (2.0, -9.0, 3.0)})


def test_start_plucked_out_of_balance():
    scene = held(BRICK, integrator=pl.GeneralisedAlpha(0.02), start=PLUCKED, law="neo-hookean")
    starts = {"start_amplitudes": (0.02, -0.01), "start_velocities": (0.1, 0.2)}
    check(scene, MATERIAL | starts)


def test_start_in_balance_on_the_ground():
    """Contact carries the body before it begins."""
    scene = falling(
        BRICK, friction=0.0, integrator=pl.GeneralisedAlpha(0.01), start="equilibrium",
        law="neo-hookean", fixed=[pl.Fixed(pl.shapes.box(center=(-0.5, 0, 0), size=(0.1, 2, 2)))],
    )  # fmt: skip
    unknowns = {"youngs_modulus": 500.0, "ground_offset": scene.obstacles[0].offset}
    check(scene, unknowns | {"contact_stiffness": 300.0})
