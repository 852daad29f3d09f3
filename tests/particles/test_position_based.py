"""Position based dynamics: what it converges to, what it keeps, and that it never explodes."""

from dataclasses import replace

import numpy as np
import pytest

import pliant as pl
from particle_bars import bar, cubes, tip
from pliant.core.launch import set_threads, thread_count
from pliant.particles.position_based import PositionBasedModel
from pliant.particles.simplices import simplices_of


def scene(counts=(8, 2, 2), *, substeps=0, iterations=1, **more):
    numbers = {"substeps": substeps, "iterations": iterations}
    return bar(counts, model="position-based", numbers=numbers, **more)


def test_a_body_at_rest_stays_to_rounding():
    made = scene(gravity=(0.0, 0.0, 0.0))
    assert np.abs(pl.simulate(made, 3).displacements).max() < 1e-15


def test_many_sweeps_are_a_step_of_implicit_euler_of_finite_elements():
    """Of the law whose energy the constraints have; both are converged to 1e-9 and below."""
    particles = scene((5, 2, 2), substeps=4, iterations=400)
    law = replace(
        particles, model="corotated", law="stable-neo-hookean", tolerance=1e-12,
        integrator=pl.ImplicitEuler(dt=particles.dt / 4.0),
    )  # fmt: skip
    system = particles.make_model()
    ours = pl.simulate(particles, 3, system=system)
    theirs = pl.simulate(law, 12)
    size = np.abs(theirs.displacements[-1]).max()
    assert np.abs(ours.displacements[-1] - theirs.displacements[-1]).max() < 1e-4 * size
    state = system.restored(ours.last_arrays(), 0.05)
    assert system.step(state)[1].solution.residual < 1e-9


def test_the_residual_falls_with_sweeps_and_with_substeps():
    def told(substeps, iterations):
        model = scene(substeps=substeps, iterations=iterations).make_model()
        state = model.initial_state()
        for _ in range(3):
            state, record = model.step(state)
        return record.solution.residual

    by_sweeps = [told(4, n) for n in (1, 8, 64)]
    by_substeps = [told(n, 1) for n in (4, 16, 64)]
    assert by_sweeps[0] > 2.0 * by_sweeps[1] > 20.0 * by_sweeps[2]
    assert by_substeps[0] > 2.0 * by_substeps[1] > 4.0 * by_substeps[2]


def test_the_bar_at_its_defaults_bends_as_finite_elements_do():
    ours = tip(pl.simulate(scene((12, 2, 2)), 60))
    theirs = tip(pl.simulate(bar((12, 2, 2), dt=1.0 / 240.0), 240))
    assert ours.mean() == pytest.approx(theirs.mean(), rel=0.05)
    assert ours.min() == pytest.approx(theirs.min(), rel=0.05)


@pytest.mark.slow
def test_the_fine_bar_at_its_defaults_bends_as_finite_elements_do():
    ours = tip(pl.simulate(scene((20, 4, 4)), 60))
    theirs = tip(pl.simulate(bar((20, 4, 4), dt=1.0 / 240.0), 240))
    assert ours.mean() == pytest.approx(theirs.mean(), rel=0.05)
    assert ours.min() == pytest.approx(theirs.min(), rel=0.05)


RANGE = [(E, dt) for E in (1e3, 2e6, 1e8) for dt in (1.0 / 30.0, 1.0 / 240.0)]


@pytest.mark.parametrize(("modulus", "dt"), RANGE)
def test_it_never_explodes_and_more_work_is_never_worse(modulus, dt):
    """No node falls faster than freely nor rises; each doubling of the work comes nearer."""

    def run(substeps, iterations):
        made = scene((6, 2, 2), modulus=modulus, dt=dt, substeps=substeps, iterations=iterations)
        found = pl.simulate(made, round(0.4 / dt)).displacements
        assert np.isfinite(found).all()
        assert found[..., 1].min() > -0.5 * 9.81 * (0.4 + dt) ** 2 - 0.05
        assert found[..., 1].max() < 0.05
        return found[:, -1, 1].mean()

    for work in ([(1, 1), (1, 8), (1, 64)], [(1, 1), (4, 1), (32, 1)], [(32, 1), (32, 4)]):
        means = np.array([run(*w) for w in work])
        away = np.abs(means - means[-1])
        assert (np.diff(away) <= 0.02 * abs(means[-1])).all()


def test_a_free_body_keeps_momentum_and_angular_momentum():
    made = scene(fixed=[], gravity=(0.0, 0.0, 0.0), initial_spin=(1.0, 2.0, 10.0), substeps=6)
    model = made.make_model()
    state = model.initial_state()

    def momenta(state):
        x, v, m = state.u.numpy() + made.body.nodes, state.v.numpy(), model.masses
        return m @ v, m @ np.cross(x, v)

    first, spin = momenta(state)
    for _ in range(20):
        state, _ = model.step(state)
    last, turned = momenta(state)
    assert np.abs(last - first).max() < 1e-11 * np.linalg.norm(spin)
    assert np.abs(turned - spin).max() < 1e-11 * np.linalg.norm(spin)


def test_bits_do_not_depend_on_threads():
    body = pl.TetBody(cubes((9, 9, 9), (1.0, 1.0, 1.0)), order=1)
    made = pl.Scene(
        body, pl.Material(1e4, 0.3, 100.0), obstacles=[pl.Plane(offset=-0.01)],
        model="position-based", numbers={"substeps": 8},
    )  # fmt: skip
    before, found = thread_count(), []
    try:
        for count in (1, 2, 1):
            set_threads(count)
            found.append(pl.simulate(made, 6).displacements)
    finally:
        set_threads(before)
    assert (found[0] == found[1]).all()
    assert (found[0] == found[2]).all()


def test_damping_follows_rayleigh():
    """A free oscillation of a mode of ratio beta w / 2 decays by e^(-pi beta w) a half period."""
    beta = 0.01
    heights = []
    for damping in (0.0, beta):
        material = pl.Material(2e6, 0.3, 1000.0, stiffness_damping=damping)
        heights.append(tip(pl.simulate(scene((12, 2, 2), material=material), 60)))
    free, damped = heights
    sag = free.min() / 2.0
    first = np.argmin(free)
    w = np.pi / (first / 60.0)
    share = (damped.min() - sag) / (free.min() - sag)
    assert share == pytest.approx(np.exp(-0.5 * np.pi * beta * w), rel=0.06)


def test_a_ball_lands_on_the_floor_and_stays_above_it():
    ball = pl.GridBody(pl.shapes.sphere(radius=0.3, center=(0.0, 0.5, 0.0)), 0.1)
    made = pl.Scene(
        ball, pl.Material(3e4, 0.3, 1000.0, mass_damping=10.0), obstacles=[pl.Plane()],
        contact=pl.ContactLaw(friction=0.5), integrator=pl.GeneralisedAlpha(dt=0.01),
        model="position-based",
    )  # fmt: skip
    run = pl.simulate(made, 150)
    surface = ball.surface.positions(ball.nodes + run.displacements[-1])
    assert -1e-3 < surface[:, 1].min() < 1e-6
    assert np.abs(run.velocities[-1]).max() < 0.02


GRID = pl.GridBody(pl.shapes.box(center=(0.5, 0.1, 0.1), size=(1.0, 0.2, 0.2)), 0.1)


@pytest.mark.parametrize("body", [None, GRID], ids=["mesh", "grid"])
def test_a_wall_that_moves_does_its_work(body):
    """Shaken gently along the bar without weight: what the hand gives is what the body holds."""
    t = np.linspace(0.0, 0.4, 25)
    way = tuple((0.05 * (1.0 - np.cos(np.pi * s / 0.4)), 0.0, 0.0) for s in t)
    region = pl.shapes.box(center=(0.0, 0.1, 0.1), size=(1e-3, 1.0, 1.0))
    held = [pl.Fixed(region, pl.Motion(tuple(t), way))]
    made = scene(gravity=(0.0, 0.0, 0.0), fixed=held, substeps=40)
    made = made if body is None else replace(made, body=body)
    e = pl.simulate(made, 12).energies
    assert e.loads[-1] == pytest.approx(e.total[-1], rel=0.05)


def test_grid_cells_bend_as_finite_elements_do():
    """Of the grid's own hexahedra, four across, which lock less than six tetrahedra each."""
    body = pl.GridBody(pl.shapes.box(center=(0.5, 0.1, 0.1), size=(1.0, 0.2, 0.2)), 0.05)
    ours = tip(pl.simulate(replace(scene(), body=body), 23))
    theirs = tip(pl.simulate(replace(bar(), body=body), 23))
    assert ours.min() == pytest.approx(theirs.min(), rel=0.15)


def test_plane_strain_bends_as_finite_elements_do():
    strip = pl.TetBody(pl.shapes.box(size=(1.0, 0.2)), 0.05, order=1)
    wall = pl.Fixed(pl.shapes.box(center=(-0.5, 0.0), size=(1e-3, 1.0)))
    made = pl.Scene(
        strip, pl.Material(2e6, 0.3, 1000.0), gravity=(0.0, -9.81), fixed=[wall],
        integrator=pl.GeneralisedAlpha(dt=1.0 / 60.0),
    )  # fmt: skip
    ours = pl.simulate(replace(made, model="position-based"), 30).displacements[..., 1].min()
    theirs = pl.simulate(made, 30).displacements[..., 1].min()
    assert ours == pytest.approx(theirs, rel=0.03)


@pytest.mark.parametrize("size", [(1.0, 0.2), (1.0, 0.2, 0.2)])
def test_quadratic_cells_are_cut_at_their_edges(size):
    whole = pl.TetBody(pl.shapes.box(size=size), 0.2)
    parts = simplices_of(whole)
    assert len(parts.nodes) == len(whole.cells) * (8 if len(size) == 3 else 4)
    assert parts.volumes.sum() == pytest.approx(whole.volume, rel=1e-12)
    masses = parts.lumped(np.ones(len(parts.cell)), len(whole.nodes))
    assert masses.min() > 0.0
    assert masses @ whole.nodes == pytest.approx(np.zeros(len(size)), abs=1e-3 * whole.volume)
    field = whole.nodes @ np.diag([0.1, -0.2, 0.3])[: len(size), : len(size)]
    found = np.einsum("cai,caj->cij", field[parts.nodes], parts.gradients[..., : len(size)])
    expected = np.diag([0.1, -0.2, 0.3])[: len(size), : len(size)]
    assert np.abs(found - expected).max() < 1e-12


def test_it_survives_what_no_mesh_survives():
    """Squeezed flat, turned inside out and let go, again and again: it comes back to its rest."""
    made = scene((3, 2, 2), gravity=(0.0, 0.0, 0.0), fixed=[], substeps=4,
                 material=pl.Material(1e5, 0.3, 1000.0, stiffness_damping=0.01))  # fmt: skip
    model = made.make_model()
    assert isinstance(model, PositionBasedModel)
    X = np.array(made.body.nodes)
    state = model.initial_state()
    rng = np.random.default_rng(3)
    for scale in ((1.0, 0.0, 1.0), (-1.0, 1.0, 1.0), None):
        x = X * scale if scale else rng.uniform(0.0, 1.0, X.shape)
        arrays = {"u": x - X, "v": np.zeros_like(X)}
        state = model.restored(arrays, 0.0)
        for _ in range(600):
            state, _ = model.step(state)
        assert np.isfinite(state.u.numpy()).all()
        assert model.elastic_energy(state) < 1e-6 * 1e5 * made.body.volume
