"""Free fall, momentum, energy and order in time (verification.md, 'Vibration and time')."""

from dataclasses import replace

import numpy as np
import pytest
import warp as wp

import pliant as pl
from frozen_frames import frozen_model
from pliant.core.launch import zeros
from pliant.dynamics.implicit import ImplicitModel
from pliant.dynamics.integrators import INTEGRATORS

ALL = sorted(INTEGRATORS)
G = 9.81


def ball():
    """Cut cells, with slivers."""
    body = pl.GridBody(pl.shapes.sphere(radius=0.5, center=(0.02, 0.01, 0.03)), 0.17)
    assert body.fill.min() < 1e-3
    return body


def brick(kind="grid", dim=3):
    size = (1.0, 0.5, 0.5)[:dim]
    shape = pl.shapes.box(center=tuple(s / 2 for s in size), size=size)
    return pl.GridBody(shape, 0.25) if kind == "grid" else pl.TetBody(shape, edge_length=0.3)


def started(scene, seed=0, size=1.0):
    """The rest shape with a random smooth velocity (so that no acceleration is due)."""
    rng = np.random.default_rng(seed)
    system = frozen_model(scene)
    state = system.initial_state()
    X = scene.body.nodes
    A, k = rng.normal(size=(3, 3)), rng.normal(size=(3, X.shape[1]))
    v = size * np.sin(X @ k.T) @ A.T
    v[:, scene.dim :] = 0.0
    state.v.assign(v)
    assert not state.a.numpy().any()
    return system, state


def momentum(system, state):
    return system.masses @ state.v.numpy()


def angular_momentum(system, state, deformed):
    X = np.zeros((system.node_count, 3))
    X[:, : system.scene.dim] = system.scene.body.nodes
    x = X + state.u.numpy() if deformed else X
    inertia = zeros(system.node_count, wp.vec3d)
    system.inertia.add(state.v, inertia, 1.0)
    return np.cross(x, inertia.numpy()).sum(axis=0)


# --- free fall


def fallen(name, n, dt, theta):
    """Height after n steps: x0 - g h^2 n (n - 1 + 2 theta) / 2; second-order schemes are exact."""
    share = {"ImplicitEuler": 1.0, "Newmark1": theta}.get(name, 0.5)
    return -G * dt**2 * n * (n - 1 + 2 * share) / 2


@pytest.mark.parametrize("kind", ["grid", "tets"])
@pytest.mark.parametrize("name", ALL)
def test_free_fall(name, kind):
    dt, steps, theta = 0.01, 20, 0.7
    extra = {"theta": theta} if name == "Newmark1" else {}
    # so soft that the explicit scheme is stable at this step
    scene = pl.Scene(
        brick(kind), pl.Material(20.0, 0.3, 1.0), tolerance=1e-13,
        integrator=INTEGRATORS[name](dt, **extra),
    )  # fmt: skip
    run = pl.simulate(scene, steps)
    for n in (1, 2, steps):
        exact = fallen(name, n, dt, theta)
        assert np.abs(run.displacements[n][:, 1] - exact).max() < 1e-11 * abs(exact)
        assert np.abs(run.displacements[n][:, [0, 2]]).max() < 1e-11 * abs(exact)
        assert run.velocities[n][:, 1] == pytest.approx(-G * dt * n, rel=1e-10)


@pytest.mark.parametrize("name", ALL)
def test_free_fall_of_cut_cells(name):
    """The same with slivers."""
    scene = pl.Scene(
        ball(), pl.Material(2e3, 0.3, 1.0), tolerance=1e-13, integrator=INTEGRATORS[name](0.001)
    )
    steps = 10
    run = pl.simulate(scene, steps)
    exact = fallen(name, steps, 0.001, 0.5)
    assert run.displacements[-1][:, 1] == pytest.approx(exact, rel=1e-9)


# --- momentum


@pytest.mark.parametrize("model", ["linear", "corotated"])
@pytest.mark.parametrize("make", [brick, lambda: brick("tets"), ball], ids=["grid", "tets", "cut"])
def test_linear_momentum(make, model):
    scene = pl.Scene(
        make(), pl.Material(2e3, 0.3, 1.0), gravity=(0, 0, 0), model=model, tolerance=1e-14,
        integrator=pl.Newmark2(0.01),
    )  # fmt: skip
    system, state = started(scene)
    scale = np.abs(system.masses[:, None] * state.v.numpy()).sum()
    for _ in range(20):
        before = momentum(system, state)
        state, _ = system.step(state)
        assert np.abs(momentum(system, state) - before).max() < 1e-12 * scale


@pytest.mark.parametrize("make", [brick, lambda: brick("tets"), ball], ids=["grid", "tets", "cut"])
def test_angular_momentum_of_the_linear_model(make):
    """Infinitesimal rotations about the rest shape cost no energy, so X x p is conserved."""
    scene = pl.Scene(
        make(), pl.Material(2e3, 0.3, 1.0), gravity=(0, 0, 0), model="linear", tolerance=1e-14,
        integrator=pl.Newmark2(0.01),
    )  # fmt: skip
    system, state = started(scene)
    scale = np.abs(angular_momentum(system, state, False)).max()
    for _ in range(20):
        before = angular_momentum(system, state, False)
        state, _ = system.step(state)
        assert np.abs(angular_momentum(system, state, False) - before).max() < 1e-12 * scale


def spin_drift(dt, time=0.5):
    scene = pl.Scene(
        brick(), pl.Material(2e3, 0.3, 1.0), gravity=(0, 0, 0), tolerance=1e-12,
        integrator=pl.Newmark2(dt), initial_spin=(0.0, 0.0, 6.0),
    )  # fmt: skip
    system = frozen_model(scene)
    state = system.initial_state()
    start = angular_momentum(system, state, True)
    for _ in range(round(time / dt)):
        state, _ = system.step(state)
    change = angular_momentum(system, state, True) - start
    return np.linalg.norm(change) / np.linalg.norm(start)


def test_free_spin_of_the_corotated_model():
    """Half a turn: the rotations are those of the predicted shape, so the spin is kept to
    O(dt^2)."""
    coarse, fine = spin_drift(0.01), spin_drift(0.005)
    assert coarse < 0.01
    assert np.log2(coarse / fine) > 1.8


# --- energy


@pytest.mark.parametrize("make", [brick, lambda: brick("tets"), ball], ids=["grid", "tets", "cut"])
@pytest.mark.parametrize("scheme", [pl.Newmark2, pl.Newmark1])
def test_trapezoidal_rule_keeps_the_energy(scheme, make):
    scene = pl.Scene(
        make(), pl.Material(2e3, 0.3, 1.0), gravity=(0, 0, 0), model="linear", tolerance=1e-14,
        integrator=scheme(0.01),
    )  # fmt: skip
    system, state = started(scene)
    system.assemble_rest()
    K, M = system.matrix.to_scipy().tocsr(), system.inertia.mass.to_scipy()

    def energy():
        u, v = state.u.numpy(), state.v.numpy()
        return 0.5 * (u.ravel() @ (K @ u.ravel()) + np.sum(v * (M @ v)))

    start = energy()
    for _ in range(50):
        state, _ = system.step(state)
        assert abs(energy() - start) < 1e-10 * start


# --- order in time of the corotated model


def swing(make, steps, kind, time=0.2):
    """A clamped plane bar that bends by a sixth of its length under a load that grows smoothly."""
    shape = pl.shapes.box(center=(0.25, 0.0625), size=(0.5, 0.125))
    body = pl.GridBody(shape, 0.0625) if kind == "grid" else pl.TetBody(shape, edge_length=0.08)

    def force(x, t):
        return np.broadcast_to([0.0, -60.0 * np.sin(np.pi * t / (2 * time)) ** 4], x.shape)

    scene = pl.Scene(
        body, pl.Material(400.0, 0.3, 1.0), gravity=(0, 0), tolerance=1e-12,
        fixed=[pl.Fixed(pl.shapes.half_space(normal=(1, 0), offset=1e-9))],
        loads=[pl.BodyForce(force)], integrator=make(time / steps),
    )  # fmt: skip
    # schemes for short steps hold walls by Nitsche's method, so all do here
    u = pl.simulate(scene, steps, system=ImplicitModel(scene)).displacements[-1]
    return u[body.nodes[:, 0] > 0.499].mean(axis=0) / 0.5


FINE = 1200


@pytest.fixture(scope="module", params=["grid", pytest.param("triangles", marks=pytest.mark.slow)])
def fine_swing(request):
    return request.param, swing(pl.Newmark2, FINE, request.param)


@pytest.mark.parametrize("name", [
    pytest.param(n, marks=pytest.mark.slow) if n in ("LinearAcceleration", "Newmark3") else n
    for n in ALL
])  # fmt: skip
def test_order_of_the_corotated_model(name, fine_swing):
    kind, exact = fine_swing
    assert np.abs(exact).max() > 0.15
    n = 400 if name in ("CentralDifferences", "LinearAcceleration", "Newmark3") else 80
    errors = [np.abs(swing(INTEGRATORS[name], m, kind) - exact).max() for m in (n, 2 * n)]
    order = np.log2(errors[0] / errors[1])
    assert errors[1] < 0.01
    if name == "Newmark2":
        assert order == pytest.approx(2.0, abs=0.2)
    assert order > 0.9


@pytest.fixture(scope="module")
def held_torus():
    """A cut, held torus at 0.2 spacings over the speed of sound, and its end after 450 steps."""
    body = pl.GridBody(pl.shapes.torus(major=1.0, minor=0.35), 0.15)
    material = pl.Material(2e3, 0.3, 1.0)
    lam, mu = (float(a[0]) for a in material.lame(1))
    dt = 0.2 * body.spacing / np.sqrt(lam + 2.0 * mu)
    held = [pl.Fixed(pl.shapes.half_space(normal=(-1, 0, 0), offset=-1.2))]
    assert body.fill.min() < 1e-3
    scene = pl.Scene(body, material, fixed=held, integrator=pl.Newmark2(dt), tolerance=1e-9)
    system = ImplicitModel(scene)  # as schemes for short steps hold their walls
    return scene, pl.simulate(scene, 450, system=system).displacements[-1]


@pytest.mark.parametrize(
    "name", ["CentralDifferences", pytest.param("Newmark3", marks=pytest.mark.slow)]
)  # linear acceleration, too
def test_slivers_do_not_bound_the_step(name, held_torus):
    """Schemes for short steps follow the trapezoidal rule.

    By its lumped masses alone the torus would be stable up to 0.0002 spacings over the speed.
    """
    scene, exact = held_torus
    run = pl.simulate(replace(scene, integrator=INTEGRATORS[name](scene.dt)), 450)
    size = np.abs(exact).max()
    assert size > 2.0 * scene.body.spacing
    assert np.abs(run.displacements[-1] - exact).max() < 0.02 * size


# --- everything at once


def tip_path(name, kind, *, dt, time=0.24):
    """Corotation, damping, contact with friction and a moving wall; the path of the free end."""
    shape = pl.shapes.box(center=(0.25, 0.1), size=(0.5, 0.2))
    body = pl.GridBody(shape, 0.05) if kind == "grid" else pl.TetBody(shape, edge_length=0.09)
    shake = pl.Motion((0.0, 0.12, 0.24), ((0, 0), (0.02, 0.03), (0.02, 0.0)))
    scene = pl.Scene(
        body, pl.Material(1e3, 0.3, 1.0, mass_damping=0.5, stiffness_damping=1e-4),
        gravity=(0, -G),
        fixed=[pl.Fixed(pl.shapes.half_space(normal=(1, 0), offset=1e-9), shake)],
        obstacles=[pl.Plane((0.1, 1.0), -0.02)],
        contact=pl.ContactLaw(stiffness=2e5, sharpness=500.0, friction=0.3),
        integrator=INTEGRATORS[name](dt), tolerance=1e-9,
    )  # fmt: skip
    run = pl.simulate(scene, round(time / dt))
    assert np.isfinite(run.displacements).all()
    assert np.isfinite(run.velocities).all()
    wall = run.displacements[:, body.nodes[:, 0] < 1e-9]
    assert wall[-1] == pytest.approx(np.broadcast_to([0.02, 0.0], wall[-1].shape), abs=2e-3)
    every = run.displacements[:: round(0.012 / dt)]
    return every[:, body.nodes[:, 0] > 0.499].mean(axis=1)


@pytest.fixture(scope="module", params=[pytest.param("grid", marks=pytest.mark.slow), "triangles"])
def reference_path(request):
    return request.param, tip_path("Newmark2", request.param, dt=1e-3)


@pytest.mark.parametrize("name", ALL)
def test_everything_together(name, reference_path):
    """Every scheme follows the same path; explicit ones with steps below their limit."""
    kind, exact = reference_path
    short = name in ("CentralDifferences", "LinearAcceleration", "Newmark3")
    path = tip_path(name, kind, dt=3e-4 if short else 2e-3)
    size = np.abs(exact).max()
    assert size > 0.02
    allowed = 0.2 if name == "ImplicitEuler" else 0.1  # it damps by itself
    assert np.abs(path - exact).max() < allowed * size
