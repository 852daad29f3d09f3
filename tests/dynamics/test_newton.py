"""Newton's method: recovery from collapse and inversion, contact, damping, halving, determinism."""

import numpy as np
import pytest
import warp as wp

import pliant as pl
from pliant.core.launch import set_threads, thread_count, to_device, zeros
from pliant.dynamics.implicit import ImplicitModel
from pliant.dynamics.model import State
from pliant.fem.laws import LAWS


def block(kind):
    if kind == "tets":
        return pl.TetBody(
            pl.shapes.box(center=(0, 0, 0), size=(0.4, 0.4, 0.4)), edge_length=0.2, order=1
        )
    return pl.GridBody(pl.shapes.sphere(radius=0.25, center=(0.01, 0, 0.02)), 0.15)


def shape_error(body, u):
    """Largest distance to the rest shape, rigid motion taken out."""
    a = body.nodes + u
    a, b = a - a.mean(axis=0), body.nodes - body.nodes.mean(axis=0)
    U, _, Vt = np.linalg.svd(a.T @ b)
    R = U @ np.diag([1, 1, np.sign(np.linalg.det(U @ Vt))]) @ Vt
    return np.abs(a - b @ R.T).max()


@pytest.mark.parametrize("kind", ["tets", "grid"])
@pytest.mark.parametrize(("name", "invertible"), [
    ("stable-neo-hookean", False), ("neo-hookean", 0.8),
    pytest.param("corotated", False, marks=pytest.mark.slow),
])  # fmt: skip
@pytest.mark.parametrize("start", ["flat", "random"])
def test_bodies_recover(kind, name, invertible, start):
    """Squashed into a sheet, or every node at random: back to rest.

    The logarithm is continued from a stretch of 0.8 on; from 0.3 on, random tetrahedra may stop at
    another equilibrium, where no cell is inverted any more but the body overlaps itself.
    """
    body = block(kind)
    law = LAWS[name].from_moduli(1e3, 0.3, invertible=invertible)
    scene = pl.Scene(
        body, pl.Material(mass_damping=1.0), gravity=(0, 0, 0), law=law, tolerance=1e-6,
        integrator=pl.ImplicitEuler(dt=0.02),
    )  # fmt: skip
    X = body.nodes
    x = X * [1.0, 0.0, 1.0]
    if start == "random":
        x = np.random.default_rng(0).uniform(X.min(axis=0), X.max(axis=0), X.shape)
    n = len(X)
    state = State.of(to_device(x - X, wp.vec3d), zeros(n, wp.vec3d), zeros(n, wp.vec3d))
    system = ImplicitModel(scene)
    for _ in range(40):
        state, _ = system.step(state)
    assert shape_error(body, state.u.numpy()) < 1e-3 * 0.4


@pytest.mark.slow
def test_corotated_energy_equals_the_corotated_model_where_nothing_turns():
    """Small motions: both are linear elasticity (on tetrahedra: the same quadrature)."""
    body = block("tets")
    held = [pl.Fixed(pl.shapes.half_space(normal=(0, -1, 0), offset=-0.19))]
    options = {"fixed": held, "gravity": (0, -1e-3, 0), "tolerance": 1e-11}
    material = pl.Material(1e3, 0.3, mass_damping=0.1, stiffness_damping=0.01)
    runs = [
        pl.simulate(pl.Scene(body, material, law=law, **options), 5).displacements
        for law in (None, "corotated", "neo-hookean", "yeoh")
    ]
    size = np.abs(runs[0]).max()
    for other in runs[1:]:
        assert np.abs(other - runs[0]).max() < 1e-5 * size


def test_momentum_and_spin_damping():
    """A free spinning body: momentum kept to rounding, and damping does not brake a rigid spin."""
    body = block("tets")
    scene = pl.Scene(
        body, pl.Material(1e6, 0.3, stiffness_damping=0.05), gravity=(0, 0, 0),
        law="stable-neo-hookean", integrator=pl.Newmark2(dt=0.005), tolerance=1e-10,
        initial_velocity=(0.3, 0, 0.1), initial_spin=(0, 2.0, 0),
    )  # fmt: skip
    run = pl.simulate(scene, 10)
    m = ImplicitModel(scene).masses[:, None]
    p = (m * run.velocities).sum(axis=1)
    assert np.abs(p - p[0]).max() < 1e-9 * np.abs(p[0]).max()
    spin = [np.cross(body.nodes + u, m * v).sum(axis=0)[1]
            for u, v in zip(run.displacements, run.velocities, strict=True)]  # fmt: skip
    assert spin[-1] == pytest.approx(spin[0], rel=2e-3)


def test_contact_holds_a_falling_body():
    """It comes to rest where the corotated body does: the same contact, small strains."""
    ends = []
    for law in ("neo-hookean", None):
        scene = pl.Scene(
            block("tets"), pl.Material(1e4, 0.3, density=20.0, mass_damping=5.0), law=law,
            obstacles=[pl.Plane(offset=-0.21)], integrator=pl.ImplicitEuler(dt=0.04),
        )  # fmt: skip
        run = pl.simulate(scene, 40)
        assert np.abs(run.velocities[-1]).max() < 1e-3
        ends.append((scene.body.nodes + run.displacements[-1])[:, 1])
    assert np.abs(ends[0] - ends[1]).max() < 1e-4
    assert -0.22 < ends[0].min() < -0.18


def test_steps_are_halved_when_newton_fails():
    """A wall that jumps through the body's own height in one step is followed in parts."""
    body = block("tets")
    jump = pl.Motion(times=(0.0, 0.2), values=((0, 0, 0), (0, -0.3, 0)))
    held = [
        pl.Fixed(pl.shapes.half_space(normal=(0, 1, 0), offset=-0.19)),
        pl.Fixed(pl.shapes.half_space(normal=(0, -1, 0), offset=-0.19), jump),
    ]
    scene = pl.Scene(
        body, pl.Material(1e3, 0.4, density=1.0), law="neo-hookean", fixed=held,
        integrator=pl.ImplicitEuler(dt=0.2),
    )  # fmt: skip
    run = pl.simulate(scene, 1)
    assert run.parts[0] >= 2
    top = body.nodes[:, 1] > 0.19
    assert run.displacements[-1][top, 1] == pytest.approx(-0.3, abs=1e-12)


def test_same_bits_for_one_and_two_threads():
    scene = pl.Scene(
        pl.GridBody(pl.shapes.sphere(radius=0.5, center=(0.01, 0, 0.02)), 0.09),
        pl.Material(1e3, 0.3, stiffness_damping=0.01), law="mooney-rivlin",
        initial_spin=(0, 3, 0), obstacles=[pl.Plane(offset=-0.51)],
    )  # fmt: skip
    before = thread_count()
    runs = []
    try:
        for threads in (1, 2):
            set_threads(threads)
            runs.append(pl.simulate(scene, 2).displacements)
    finally:
        set_threads(before)
    assert np.array_equal(*runs)


def test_a_piece_that_falls_far_is_known_to_its_rounding(caplog):
    """Half of a bar that is cut in two is held; the other falls for 2 s and stops no step.

    4 cm of 2 MPa, 8 m away: its strains are differences of displacements of 8 m.
    """
    halves = [pl.shapes.box(center=(0.02 * s, 0, 0), size=(0.03, 0.02, 0.02)) for s in (-1, 1)]
    with caplog.at_level("WARNING"):
        body = pl.TetBody(halves[0] | halves[1], 0.015)
    assert "2 disconnected pieces" in caplog.text
    held = pl.Fixed(pl.shapes.box(center=(-0.035, 0, 0), size=(0.0101, 1, 1)))
    run = pl.simulate(pl.Scene(body, pl.Material(2e6, 0.12, 936.0), fixed=[held]), 130)
    x = body.nodes[:, 0]
    fallen = 0.5 * 9.81 * run.times[-1] ** 2
    assert -run.displacements[-1][x > 0.0, 1] == pytest.approx(fallen, rel=1e-6)
    assert np.abs(run.displacements[-1][x < 0.0]).max() < 1e-3


def test_falling_is_no_motion_to_judge_a_step_by():
    """Velocities that grow evenly have no period; rounding gave one of 1e14 s."""
    scene = pl.Scene(pl.GridBody(pl.shapes.sphere(radius=0.01), 0.005), pl.Material(1e8, 0.3, 1e3))
    assert pl.simulate(scene, 30).warnings() == []
