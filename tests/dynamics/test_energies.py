"""Energies of a run, the monitor, inverted cells, stable steps, and words on the time step."""

import numpy as np
import pytest

import pliant as pl
from pliant.dynamics.energies import NAMES
from pliant.dynamics.own_weight import weight_warning
from pliant.dynamics.step_quality import motion_frequency

BLOCK = pl.shapes.box(center=(0.06, 0.015, 0.015), size=(0.12, 0.03, 0.03))
SILICONE = pl.Material(youngs_modulus=6e4, poisson_ratio=0.45, density=1070.0)
CLAMP = pl.Fixed(pl.shapes.box(center=(-0.01, 0.015, 0.015), size=(0.0202, 0.1, 0.1)))


def silicone(body, integrator, material=SILICONE, **options):
    """The block of docs/reconstruct.md, let go."""
    return pl.Scene(body, material, fixed=[CLAMP], integrator=integrator, **options)


def cut_block():
    return pl.GridBody(BLOCK.translated((0.0001, 0.0021, 0.0012)), 0.006)


BODIES = {
    "aligned": lambda: pl.GridBody(BLOCK, 0.0075),
    "cut": cut_block,
    "tets": lambda: pl.TetBody(BLOCK, 0.018),
}
SCHEMES = {
    "trapezoidal": lambda dt: pl.Newmark1(dt, theta=0.5),
    "theta": lambda dt: pl.Newmark1(dt, theta=0.6),
    "Newmark2": pl.Newmark2,
    "HHT": pl.HHT,
    "generalised-alpha": pl.GeneralisedAlpha,
}


def largest_gain(run) -> float:
    """How far the total energy rose above its start, as a share of the energy exchanged."""
    e = run.energies
    return float(np.max(e.total - e.total[0]) / np.abs(e.gravity).max())


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("scheme", ["trapezoidal", "generalised-alpha"])
def test_a_clamped_silicone_block_swings_without_gaining_energy(body, scheme):
    run = pl.simulate(silicone(BODIES[body](), SCHEMES[scheme](0.005)), 60)
    assert largest_gain(run) < 0.01
    assert np.abs(run.velocities).max() < 1.5  # a free fall over its length: 1.5 m/s


def test_a_trapezoidal_rule_forgets_how_slivers_tremble():
    """Light nodes of small cuts; kept, such a motion grows over thousands of steps."""
    import warp as wp

    from pliant.core.launch import to_device
    from pliant.dynamics.implicit import ImplicitModel
    from pliant.dynamics.model import State

    def trembling(viscous: bool) -> tuple[float, float]:
        """The part of the velocities that changes sign with every step, early and late."""
        model = ImplicitModel(silicone(cut_block(), pl.Newmark2(0.005)))
        if not viscous:
            model.beside.remove(model.slivers)
        state = model.initial_state()
        noise = 0.05 * np.random.default_rng(0).standard_normal((model.node_count, 3))
        state = State.of(state.u, to_device(noise * model.boundary.free, wp.vec3d), state.a, 0.0)
        speeds = []
        for _ in range(60):
            state, _ = model.step(state)
            speeds.append(state.v.numpy())
        sign = np.diff(speeds, 2, axis=0)
        size = np.sqrt(np.square(sign).mean(axis=(1, 2)))
        return float(size[:10].mean()), float(size[-10:].mean())

    kept, forgotten = trembling(viscous=False), trembling(viscous=True)
    assert kept[1] > 1.2 * kept[0]
    assert forgotten[1] < 0.95 * forgotten[0]
    assert forgotten[1] < 0.5 * kept[1]


@pytest.mark.slow
@pytest.mark.parametrize("dt", [0.005, 0.0025])
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("body", BODIES)
def test_ten_thousand_steps_without_damping(body, scheme, dt):
    from pliant.dynamics.energies import EnergyBook
    from pliant.dynamics.implicit import ImplicitModel

    system = ImplicitModel(silicone(BODIES[body](), SCHEMES[scheme](dt)))
    state, book = system.initial_state(), EnergyBook(system)
    rows = [book.open(state).row()]
    for _ in range(10_000):
        before = state
        state, _ = system.step(state)
        rows.append(book.add(before, state).row())
    e = pl.Energies.of(np.array(rows))
    assert np.max(e.total - e.total[0]) < 0.01 * np.abs(e.gravity).max()


def test_frozen_frames_explode_and_the_monitor_says_so():
    """The step of seed 000 on the same block: stopped, with the last good state kept."""
    scene = silicone(BODIES["tets"](), pl.HHT(0.005), model="corotated-frozen")
    with pytest.raises(pl.SimulationStopped, match="Energy appears from nowhere") as stop:
        pl.simulate(scene, 400)
    run = stop.value.trajectory
    assert 0 < run.steps < 400
    assert np.abs(run.velocities[-1]).max() < 10.0
    assert pl.simulate(scene, run.steps + 1, energy_check=False).steps == run.steps + 1


def test_energies_add_up_with_damping_and_loads():
    """What damping takes is what is missing: the account is closed to the scheme's own error."""
    material = pl.Material(6e4, 0.3, 1070.0, mass_damping=1.0, stiffness_damping=0.002)
    load = pl.Traction(pl.shapes.box(center=(0.12, 0.015, 0.015), size=(0.001, 1, 1)), (0, 0, 50.0))
    errors = []
    for dt in (0.004, 0.002):
        scene = silicone(BODIES["aligned"](), pl.Newmark2(dt), material, loads=[load])
        e = pl.simulate(scene, round(0.2 / dt)).energies
        assert e.damping[-1] > 0.05 * np.abs(e.gravity).max()
        assert abs(e.loads[-1]) > 1e-4
        assert np.all(np.diff(e.damping) > -1e-12)
        errors.append(np.abs(e.scheme).max() / np.abs(e.gravity).max())
    assert errors[0] < 0.05
    assert errors[1] < 0.6 * errors[0]


def test_free_fall_turns_height_into_speed():
    body = pl.GridBody(pl.shapes.sphere(radius=0.1), 0.05)
    run = pl.simulate(pl.Scene(body, SILICONE, integrator=pl.Newmark2(0.01)), 20)
    e, m = run.energies, 1070.0 * body.volume
    fallen = 0.5 * 9.81 * run.times**2
    assert e.gravity == pytest.approx(-m * 9.81 * fallen, rel=1e-9)
    assert e.kinetic == pytest.approx(m * 9.81 * fallen, rel=1e-9, abs=1e-12)
    assert np.abs(e.elastic).max() < 1e-12


def test_a_bounce_stores_its_energy_in_body_and_contact():
    """Frictionless, in short steps: what is lost is small, and said."""
    body = pl.GridBody(pl.shapes.sphere(radius=0.05, center=(0.0, 0.07, 0.0)), 0.025)
    scene = pl.Scene(
        body, pl.Material(1e5, 0.3, 1000.0), obstacles=[pl.Plane(normal=(0, 1, 0), offset=0.0)],
        initial_velocity=(0.0, -1.0, 0.0), integrator=pl.Newmark2(5e-4),
    )  # fmt: skip
    e = pl.simulate(scene, 160).energies
    assert e.contact.max() > 0.02 * e.kinetic[0]
    assert e.kinetic[-1] > 0.5 * e.kinetic[0]  # it flies again
    assert np.abs(e.scheme + e.rubbing).max() < 0.03 * e.kinetic[0]


@pytest.mark.parametrize("body", ["aligned", "tets"])
def test_resumed_energies_go_on_where_they_were(body):
    scene = silicone(BODIES[body](), pl.GeneralisedAlpha(0.005))
    whole = pl.simulate(scene, 12)
    half = pl.simulate(scene, 6)
    again = pl.simulate(scene, 12, resume=half)
    for name in NAMES:
        assert getattr(again.energies, name) == pytest.approx(
            getattr(whole.energies, name), rel=1e-6, abs=1e-9
        )


def test_a_step_beyond_the_limit_of_an_explicit_scheme_is_refused():
    body = pl.GridBody(pl.shapes.sphere(radius=0.1), 0.05)
    with pytest.raises(pl.SolverFailure, match="is stable for this body up to dt = "):
        pl.simulate(pl.Scene(body, SILICONE, integrator=pl.CentralDifferences(0.01)), 5)
    short = pl.Scene(body, SILICONE, integrator=pl.CentralDifferences(2e-4))
    assert largest_gain(pl.simulate(short, 100)) < 0.01


def test_the_frequency_of_a_motion_is_read_from_its_velocities():
    t = 0.01 * np.arange(200)
    swing = np.cos(2 * np.pi * 3.0 * t)[:, None, None] * np.ones((1, 5, 3))
    assert motion_frequency(swing, 0.01) == pytest.approx(2 * np.pi * 3.0, rel=0.01)
    falling = -9.81 * t[:, None, None] * np.ones((1, 5, 3))
    assert motion_frequency(falling, 0.01) == pytest.approx(0.0, abs=1e-6)


def test_a_run_that_gains_energy_says_so_before_it_is_stopped():
    """Silicone tets in undamped steps of 0.01 s gain 15 % in four seconds, and are not stopped."""
    told = pl.Energies(
        kinetic=np.array([0.0, 1.0]), gravity=np.array([0.0, -1.0]), scheme=np.array([0.0, -0.1])
    ).warnings()
    assert len(told) == 1
    assert told[0].startswith("5.0% of the energy exchanged has appeared from nowhere")
    fine = pl.simulate(silicone(BODIES["tets"](), pl.Newmark2(0.005)), 5)
    assert not any("from nowhere" in words for words in fine.warnings())
    assert pl.Energies().warnings() == []


def test_a_run_says_when_its_step_is_too_long():
    scene = silicone(BODIES["aligned"](), pl.Newmark1(0.03, theta=0.6))
    words = " ".join(pl.simulate(scene, 60).warnings())
    assert "period" in words
    assert "damps this motion by itself" in words
    fine = silicone(BODIES["aligned"](), pl.GeneralisedAlpha(0.004))
    assert pl.simulate(fine, 120).warnings() == []


def test_inverted_cells_are_counted_and_told():
    body = pl.GridBody(pl.shapes.box(center=(0.2, 0.2, 0.2), size=(0.4, 0.4, 0.4)), 0.1)
    scene = pl.Scene(body, pl.Material(1e3, 0.3, 1000.0), gravity=(0, 0, 0))
    run = pl.simulate(scene, 1)
    u = run.displacements.copy()
    u[-1] = -1.5 * (body.nodes - body.nodes.mean(axis=0))  # the whole body inside out
    start = pl.Trajectory(scene, run.times, u, 0 * u, 0 * u[-1], run.iterations)
    again = pl.simulate(scene, 2, resume=start, energy_check=False)
    from pliant.dynamics.implicit import ImplicitModel

    model = ImplicitModel(scene)
    assert model.inverted(model.restored(start.last_arrays(), 0.0)) == len(body.cells)
    assert again.steps == 2


def test_a_body_that_cannot_bear_its_weight_is_told():
    """1 m of rubber given in kilopascals: rho g L = 10.5 kPa against 0.06."""
    body = pl.GridBody(pl.shapes.box(center=(0, 0.5, 0), size=(1.0, 1.0, 1.0)), 0.5)
    floor = {"obstacles": [pl.Plane(normal=(0, 1, 0), offset=0.0)]}
    wrong = pl.Scene(body, pl.Material(60.0, 0.3, 1070.0), **floor)
    (words,) = weight_warning(wrong)
    assert "1.05e+04 Pa, 175 times its Young's modulus" in words
    assert weight_warning(pl.Scene(body, pl.Material(6e4, 0.3, 1070.0), **floor)) == []
    assert weight_warning(pl.Scene(body, pl.Material(60.0, 0.3, 1070.0))) == []  # it falls freely


@pytest.mark.parametrize("scheme", ["Newmark2", "generalised-alpha"])
def test_the_hand_that_turns_a_clamp_gives_what_the_body_has(scheme):
    """A clamp on a cut grid turns by 2.6 rad in half a second: its work is all there is."""
    from scipy.spatial.transform import Rotation

    def turn(points, t):
        s = np.clip(t / 0.5, 0.0, 1.0)
        R = Rotation.from_rotvec([0.0, 0.0, 2.6 * s * s * (3.0 - 2.0 * s)]).as_matrix()
        middle = np.array([0.0, 0.015, 0.015])
        return (points - middle) @ R.T + middle - points

    body = pl.GridBody(BLOCK.translated((0.0, 0.0021, 0.0012)), 0.011)
    hold = pl.Fixed(CLAMP.region, displacement=turn)
    material = pl.Material(2e5, 0.45, 1070.0)
    scene = pl.Scene(body, material, gravity=(0, -9.81, 0), fixed=[hold],
                     integrator=SCHEMES[scheme](0.005))  # fmt: skip
    e = pl.simulate(scene, 100).energies
    assert e.kinetic.max() > 0.02  # [J], thrown by the hand
    assert np.abs(e.appeared).max() < 0.01 * e.kinetic.max()
