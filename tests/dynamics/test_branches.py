"""Viscoelastic branches: relaxation, storage and loss, an oscillator by closed forms; energy."""

from dataclasses import replace

import numpy as np
import pytest
import warp as wp
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

import pliant as pl
from pliant.core.launch import to_device, zeros
from pliant.dynamics.implicit import ImplicitModel
from pliant.dynamics.march import march
from pliant.dynamics.model import State

LONG_TERM = 1000.0
BRANCHES = (pl.Branch(modulus=300.0, time=0.2), pl.Branch(modulus=500.0, time=0.03))
MATERIAL = pl.Material(LONG_TERM, 0.3, 1.0, branches=BRANCHES)
CUBE = pl.shapes.box(center=(0.5, 0.5, 0.5), size=(1.0, 1.0, 1.0))
BODIES = {
    "tets": lambda: pl.TetBody(CUBE, edge_length=1.0, order=1),
    "quadratic tets": lambda: pl.TetBody(CUBE, edge_length=1.0, order=2),
    "grid": lambda: pl.GridBody(CUBE, 0.5),
}
MODELS = {
    "linear": {"model": "linear"}, "corotated": {}, "neo-hookean": {"law": "neo-hookean"},
    "own law": {"law": pl.laws.NeoHookean(mu=400.0, lam=600.0)},
}  # fmt: skip


def vectors(array: np.ndarray) -> wp.array:
    return to_device(np.ascontiguousarray(array, float), wp.vec3d)


def internal_force(model: ImplicitModel, state: State) -> np.ndarray:
    """Of the cells and of the branches, (nodes, 3)."""
    out, branches = zeros(model.node_count, wp.vec3d), model.branches
    if model.elastic.linear:
        model.elastic.operator.add_force(state.u, 1.0, out)
    else:
        model.elastic.operator.add_force(state.u, out, ghost=False)
    assert branches is not None
    for modulus, strain in zip(branches.moduli, state.history, strict=True):
        stress = branches.operator.stress(strain)
        branches.operator.add_strain_pull(state.u, stress, out, factor=modulus)
    return out.numpy()


def pulled(model: ImplicitModel, stretch: float) -> wp.array:
    """Every node moved as a pull along x moves it."""
    return vectors(model.scene.body.nodes * np.array([stretch, 0.0, 0.0]))


def driven(model: ImplicitModel, state: State, stretch: float, dt: float) -> State:
    """The state after a step that moves every node as told."""
    still = zeros(model.node_count, wp.vec3d)
    bare = State.of(pulled(model, stretch), still, still, state.t + dt)
    stage = model.stage_between(state, bare, pl.ImplicitEuler(dt))
    return State.of(*bare.fields(), bare.t, history=model.branches.advance(stage))


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("body", BODIES)
def test_held_at_a_strain_a_body_relaxes_by_the_prony_series(body, kind):
    model = ImplicitModel(pl.Scene(BODIES[body](), MATERIAL, **MODELS[kind]))
    E = float(model.mu[0] * (3 * model.lam[0] + 2 * model.mu[0]) / (model.lam[0] + model.mu[0]))
    assert E == pytest.approx(LONG_TERM) or kind == "own law"
    still, stretch, ramp, dt = zeros(model.node_count, wp.vec3d), 1e-7, 1e-8, 0.013
    state = State.of(still, still, still, history=model.relaxed())
    state = driven(model, state, stretch, ramp)
    alone = State.of(*state.fields(), history=model.relaxed())
    elastic = internal_force(model, alone)
    for k in range(8):
        t = k * dt
        expected = 1.0 + sum(b.modulus / E * np.exp(-t / b.time) for b in BRANCHES)
        share = np.sum(internal_force(model, state) * elastic) / np.sum(elastic**2)
        assert share == pytest.approx(expected, rel=1e-6)
        state = driven(model, state, stretch, dt)


SLOW = pytest.mark.slow
TURNS = [pytest.param(0.1, marks=SLOW), 1.0, pytest.param(10.0, marks=SLOW)]


@pytest.mark.parametrize("turn", TURNS)
def test_storage_and_loss_moduli_are_the_closed_forms(turn):
    """turn: omega times the first branch's time. Chords of a sine err by (omega dt)^2 / 12."""
    model = ImplicitModel(pl.Scene(BODIES["tets"](), MATERIAL))
    omega, amplitude, steps = turn / BRANCHES[0].time, 1e-7, 2048
    dt, still = 2.0 * np.pi / omega / steps, zeros(model.node_count, wp.vec3d)
    unit = model.branches.operator.strain(pulled(model, amplitude)).numpy()
    x = np.array([omega * b.time for b in BRANCHES])
    history = [vectors(unit * r) for r in x / (1.0 + x**2)]  # of a motion that has gone on for long
    state = State.of(still, still, still, history=history)
    sums, elastic = np.zeros(2), _unit_force(model, amplitude)
    for k in range(1, steps // 2 + 1):  # the other half is the same with the sign turned
        phase = 2.0 * np.pi * k / steps
        state = driven(model, state, amplitude * np.sin(phase), dt)
        if k % 64 == 0:
            force = np.sum(internal_force(model, state) * elastic)
            sums += 4.0 * 64 / steps * force * np.array([np.sin(phase), np.cos(phase)])
    moduli = LONG_TERM * sums / np.sum(elastic**2)
    shares = np.array([b.modulus for b in BRANCHES])
    storage = LONG_TERM + np.sum(shares * x**2 / (1.0 + x**2))
    loss = np.sum(shares * x / (1.0 + x**2))
    assert moduli == pytest.approx([storage, loss], abs=1e-6 * storage)


def _unit_force(model: ImplicitModel, amplitude: float) -> np.ndarray:
    still = zeros(model.node_count, wp.vec3d)
    at = State.of(pulled(model, amplitude), still, still, history=model.relaxed())
    return internal_force(model, at)


# a mode that oscillates ---------------------------------------------------------------------------

BAR = pl.TetBody(
    pl.shapes.box(center=(0.3, 0.1, 0.1), size=(0.6, 0.2, 0.2)), edge_length=0.2, order=1
)


def error_of_an_oscillation(scheme, steps: int, **kind) -> float:
    """Of a bar's first mode, a period after a push, as a share of its amplitude."""
    scene = pl.Scene(
        BAR, MATERIAL, gravity=(0.0, 0.0, 0.0), tolerance=1e-12, **kind,
        fixed=[pl.Fixed(pl.shapes.half_space(normal=(1, 0, 0), offset=0.01))],
    )  # fmt: skip
    found = pl.modes(scene, 1)
    omega, shape = 2.0 * np.pi * found.frequencies[0], found.shapes[0]
    time, size = 2.0 * np.pi / omega, 1e-7
    model = ImplicitModel(replace(scene, integrator=scheme(time / steps)))
    zero = zeros(model.node_count, wp.vec3d)
    state = State.of(zero, vectors(size * shape), zero, history=model.relaxed())
    for step in march(model, state, until=steps):
        state = step.after
    weight = model.inertia.mass.to_scipy() @ shape / size
    q, v = (float(np.sum(weight * field.numpy())) for field in (state.u, state.v))
    exact = _maxwell(omega, time)
    return float(np.hypot(omega * (q - exact[0]), v - exact[1]))


def _maxwell(omega: float, time: float) -> np.ndarray:
    """q'' = -omega^2 (q + sum g d), d' = q' - d / t, from a unit velocity."""
    count = len(BRANCHES)
    A = np.zeros((2 + count, 2 + count))
    A[0, 1] = 1.0
    A[1, 0] = -(omega**2)
    A[1, 2:] = [-(omega**2) * b.modulus / LONG_TERM for b in BRANCHES]
    A[2:, 1] = 1.0
    A[2:, 2:] = -np.diag([1.0 / b.time for b in BRANCHES])
    return expm(A * time)[:, 1]


@pytest.mark.parametrize(
    ("scheme", "kind"),
    [(f, {"model": "linear"}) for f in (pl.Newmark1, pl.Newmark2, pl.HHT, pl.GeneralisedAlpha)]
    + [(pl.GeneralisedAlpha, {}), (pl.HHT, {"law": "neo-hookean"})],
)
def test_an_oscillator_with_maxwell_elements_is_right_to_second_order(scheme, kind):
    errors = [error_of_an_oscillation(scheme, steps, **kind) for steps in (24, 48)]
    assert errors[1] < 0.02
    assert np.log2(errors[0] / errors[1]) > 1.9


# turning ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("body", BODIES)
def test_strains_do_not_see_a_turn_and_their_forces_turn_with_the_body(body):
    model = ImplicitModel(pl.Scene(BODIES[body](), MATERIAL))
    rng = np.random.default_rng(3)
    R = Rotation.from_rotvec((0.4, -1.7, 0.9)).as_matrix()
    X = model.scene.body.nodes
    u = 0.1 * rng.standard_normal(X.shape)
    turned = (X + u) @ R.T - X + np.array([3.0, -2.0, 1.0])
    operator = model.branches.operator
    strains = [operator.strain(vectors(field)).numpy() for field in (u, turned)]
    np.testing.assert_allclose(strains[1], strains[0], atol=1e-13)
    stress, forces = operator.stress(vectors(rng.standard_normal((operator.size, 3)))), []
    for field in (u, turned):
        out = zeros(model.node_count, wp.vec3d)
        operator.add_strain_pull(vectors(field), stress, out)
        forces.append(out.numpy())
    np.testing.assert_allclose(forces[1], forces[0] @ R.T, atol=1e-11)
    torque = np.cross(X + u, forces[0]).sum(axis=0)
    assert np.abs(torque).max() < 1e-12 * np.abs(forces[0]).sum()


def test_a_stretched_body_that_spins_relaxes_as_one_that_does_not():
    """Turned by a radian a step, as fast as its branches forget."""
    model = ImplicitModel(pl.Scene(BODIES["tets"](), MATERIAL))
    X, still = model.scene.body.nodes, zeros(model.node_count, wp.vec3d)
    stretched = X * np.array([1.3, 0.9, 1.0])
    histories = []
    for speed in (0.0, 1.0):
        state = State.of(still, still, still, history=model.relaxed())
        for k in range(6):
            R = Rotation.from_rotvec((0.0, 0.2 * speed * k, speed * k)).as_matrix()
            after = State.of(vectors(stretched @ R.T - X), still, still)
            stage = model.stage_between(state, after, pl.ImplicitEuler(0.03))
            state = State.of(*after.fields(), history=model.branches.advance(stage))
        histories.append([field.numpy() for field in state.history])
    np.testing.assert_allclose(histories[1], histories[0], atol=1e-13)
    assert np.abs(histories[0]).max() > 1e-3


# energy -------------------------------------------------------------------------------------------

BLOCK = pl.shapes.box(center=(0.06, 0.015, 0.015), size=(0.12, 0.03, 0.03))
CLAMP = pl.Fixed(pl.shapes.box(center=(-0.01, 0.015, 0.015), size=(0.0202, 0.1, 0.1)))
SILICONE = pl.Material(
    6e4, 0.45, 1070.0, branches=(pl.Branch(3e4, 0.02), pl.Branch(1.8e4, 0.002))
)  # fmt: skip
BLOCKS = {"tets": pl.TetBody(BLOCK, 0.018, order=1), "cut": pl.GridBody(BLOCK, 0.011)}
SCHEMES = (pl.Newmark1, pl.Newmark2, pl.HHT, pl.GeneralisedAlpha, pl.ImplicitEuler)


def plucked(body: str, integrator, **options) -> pl.Scene:
    return pl.Scene(
        BLOCKS[body], SILICONE, gravity=(0.0, 0.0, 0.0), fixed=[CLAMP], integrator=integrator,
        initial_velocity=(0.0, 1.0, 0.3), initial_spin=(5.0, 0.0, 20.0), **options,
    )  # fmt: skip


@pytest.mark.parametrize("dt", [1e-3, 0.05, 3.0])
@pytest.mark.parametrize("scheme", SCHEMES, ids=lambda f: f.__name__)
def test_energy_never_rises_above_its_start_whatever_the_step(scheme, dt):
    for body in BLOCKS:
        e = pl.simulate(plucked(body, scheme(dt), model="linear", tolerance=1e-11), 10).energies
        assert np.all(e.total[1:] < e.total[0])
        assert np.all(e.damping[1:] > 0.0)
        if scheme in (pl.Newmark1, pl.Newmark2):  # which take nothing themselves
            np.testing.assert_allclose(e.total + e.damping, e.total[0], rtol=1e-7)


@pytest.mark.parametrize("options", [{}, {"law": "neo-hookean"}], ids=["corotated", "law"])
@pytest.mark.parametrize("dt", [2e-3, 0.05, 1.0])
def test_energy_of_bodies_that_bend_far_decays_with_every_long_step(dt, options):
    e = pl.simulate(plucked("tets", pl.ImplicitEuler(dt), **options), 12).energies
    assert np.all(np.diff(e.total) < 1e-9 * e.total[0])
    assert np.all(e.damping[1:] > 0.0)


@pytest.mark.parametrize("options", [{}, {"law": "neo-hookean"}], ids=["corotated", "law"])
def test_the_account_is_whole_to_second_order(options):
    """What the branches took is what is missing: nothing else damps here."""
    left = []
    for steps in (10, 20):
        e = pl.simulate(plucked("tets", pl.Newmark2(0.02 / steps), **options), steps).energies
        left.append(abs(e.scheme[-1]) / e.total[0])
        assert e.damping[-1] > 0.05 * e.total[0]
    assert left[1] < 1e-3
    assert np.log2(left[0] / left[1]) > 1.7


def test_a_clamp_that_moves_gives_what_the_body_takes():
    moved = pl.Motion((0.0, 0.01), ((0.0, 0.0, 0.0), (0.0, 0.004, 0.0)))
    for body in BLOCKS:
        scene = plucked(body, pl.Newmark1(0.001))
        scene = replace(
            scene, fixed=[replace(CLAMP, displacement=moved)], initial_velocity=(0.0, 0.0, 0.0),
            initial_spin=(0.0, 0.0, 0.0),
        )  # fmt: skip
        e = pl.simulate(scene, 16).energies
        assert abs(e.scheme[-1]) < 1e-3 * e.loads[-1]
        assert e.damping[-1] > 0.1 * e.loads[-1]


# what a run keeps ---------------------------------------------------------------------------------


def test_a_snapshot_and_a_resumed_run_come_back_to_the_bit(tmp_path):
    scene = plucked("tets", pl.GeneralisedAlpha(0.004))
    whole = pl.simulate(scene, 9)
    again = pl.simulate(scene, 9, resume=pl.simulate(scene, 4))
    assert np.array_equal(again.displacements, whole.displacements)
    sim = pl.Simulation(scene)
    for k in range(9):
        if k == 4:
            sim.snapshot().save(tmp_path / "moment.npz")
        sim.step()
    other = pl.Simulation(scene)
    other.restore(pl.Snapshot.load(tmp_path / "moment.npz"))
    for _ in range(5):
        other.step()
    for name, field in sim.state.arrays.items():
        assert np.array_equal(field.numpy(), other.state.arrays[name].numpy())
    assert len(sim.state.history) == 2
    assert np.array_equal(sim.state.u.numpy(), whole.displacements[-1])


def test_a_snapshot_of_an_elastic_body_does_not_fit():
    elastic = replace(plucked("tets", pl.HHT(0.004)), material=replace(SILICONE, branches=()))
    with pytest.raises(pl.BadInput, match="of another scene"):
        pl.Simulation(plucked("tets", pl.HHT(0.004))).restore(pl.Simulation(elastic).snapshot())


def test_a_state_without_a_past_is_taken_as_relaxed():
    model = ImplicitModel(plucked("tets", pl.HHT(0.004)))
    arrays = {name: np.zeros((model.node_count, 3)) for name in ("u", "v", "a")}
    state = model.restored(arrays, 0.5)
    assert [field.numpy().any() for field in state.history] == [False, False]
    model.step(state)


def test_rest_and_modes_are_those_of_the_long_term_modulus():
    scene = replace(plucked("tets", pl.HHT(0.004)), gravity=(0.0, -9.81, 0.0))
    elastic = replace(scene, material=replace(SILICONE, branches=()))
    assert np.array_equal(pl.solve_static(scene), pl.solve_static(elastic))
    assert np.array_equal(pl.modes(scene, 2).frequencies, pl.modes(elastic, 2).frequencies)


def test_a_loaded_body_creeps_to_its_rest():
    """Sudden weight: the strain grows from E / (E + sum E_i) to all of that of E."""
    slow = replace(SILICONE, density=1.0, branches=(pl.Branch(6e4, 0.5),))
    scene = replace(
        plucked("tets", pl.ImplicitEuler(0.05), model="linear"), material=slow,
        gravity=(0.0, -2e3, 0.0), initial_velocity=(0.0, 0.0, 0.0), initial_spin=(0.0, 0.0, 0.0),
    )  # fmt: skip
    run = pl.simulate(scene, 60)
    rest = pl.solve_static(scene)
    share = np.sum(run.displacements * rest, axis=(1, 2)) / np.sum(rest**2)
    # a standard linear solid creeps in the time t (E + E_1) / E; the first step strains evenly, so
    # that the jump lies in its middle
    expected = 1.0 - 0.5 * np.exp(-(run.times - 0.025) / 1.0)
    assert np.abs(share[1:] - expected[1:]).max() < 1e-3


def test_explicit_steps_know_how_stiff_a_body_is_to_something_sudden():
    scene = plucked("tets", pl.CentralDifferences(1.0))
    elastic = replace(scene, material=replace(SILICONE, branches=()))
    limits = []
    for s in (scene, elastic):
        with pytest.raises(pl.SolverFailure) as told:
            pl.simulate(s, 1)
        limits.append(float(str(told.value).split("dt = ")[1].split(" ")[0]))
    assert limits[0] / limits[1] == pytest.approx(1.8**-0.5, rel=0.05)
    pl.simulate(replace(scene, integrator=pl.CentralDifferences(limits[0])), 20)


@pytest.mark.parametrize(
    ("values", "words"),
    [((0.0, 1.0), "modulus = 0 must be positive"), ((1.0, -1.0), "time = -1 must be positive")],
)
def test_wrong_numbers_are_refused(values, words):
    with pytest.raises(pl.BadInput, match=words):
        pl.Branch(*values)


def test_a_plane_body_has_branches_too():
    square = pl.GridBody(pl.shapes.box(center=(0.5, 0.25), size=(1.0, 0.5)), 0.25)
    scene = pl.Scene(
        square, MATERIAL, gravity=(0.0, -9.81), integrator=pl.Newmark1(0.01),
        fixed=[pl.Fixed(pl.shapes.box(center=(0.0, 0.25), size=(0.02, 2.0)))],
    )  # fmt: skip
    run = pl.simulate(scene, 8)
    again = pl.simulate(scene, 8, resume=pl.simulate(scene, 3))
    assert np.array_equal(again.displacements, run.displacements)
    e = run.energies
    assert e.damping[-1] > 1e-3 * abs(e.gravity[-1])
    assert abs(e.scheme[-1]) < 0.02 * abs(e.gravity[-1])


def test_a_body_that_begins_in_balance_stays_there():
    """Its branches have relaxed: the long-term modulus bears the weight."""
    scene = replace(
        plucked("tets", pl.GeneralisedAlpha(0.004)), gravity=(0.0, -9.81, 0.0), start="equilibrium",
        initial_velocity=(0.0, 0.0, 0.0), initial_spin=(0.0, 0.0, 0.0), tolerance=1e-10,
    )  # fmt: skip
    run = pl.simulate(scene, 5)
    moved = np.abs(run.displacements - run.displacements[0]).max()
    assert moved < 1e-6 * np.abs(run.displacements[0]).max()
    assert np.abs(run.displacements[0]).max() > 1e-3
