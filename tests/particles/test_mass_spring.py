"""Mass-spring systems: which material they are, the order and the limits of their schemes."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse.linalg import eigsh

import pliant as pl
from particle_bars import bar, cubes, tip

QUARTER = pl.Material(2e6, 0.25, 1000.0)
LATTICE = pl.GridBody(pl.shapes.box(center=(0.5, 0.1, 0.1), size=(1.0, 0.2, 0.2)), 0.05)
SQUARES = pl.GridBody(pl.shapes.box(size=(1.0, 0.5)), 0.1)


def scene(body=LATTICE, *, material=QUARTER, **numbers):
    return pl.Scene(
        body, material, gravity=(0.0, 0.0, 0.0)[: body.dim], model="mass-spring",
        integrator=pl.GeneralisedAlpha(dt=1e-3), numbers=numbers,
    )  # fmt: skip


def energy(made, strain):
    """Of a uniform small strain, over the volume."""
    model = made.make_model()
    state = model.initial_state()
    u = made.body.nodes @ np.asarray(strain)
    state = model.restored({"u": u, "v": 0.0 * u}, 0.0)
    return model.elastic_energy(state) / made.body.volume


@pytest.mark.parametrize("body", [LATTICE, SQUARES], ids=["cubes", "squares"])
def test_a_lattice_is_isotropic_with_a_ratio_of_a_quarter(body):
    """psi = mu e : e + lambda tr(e)^2 / 2 with lambda = mu = 2 E / 5, for every strain."""
    mu, rng = 0.4 * 2e6, np.random.default_rng(2)
    for _ in range(5):
        e = rng.normal(0.0, 1e-5, (body.dim, body.dim))
        e = 0.5 * (e + e.T)
        expected = mu * np.sum(e * e) + 0.5 * mu * np.trace(e) ** 2
        assert energy(scene(body), e) == pytest.approx(expected, rel=1e-3)


def young(made):
    """Moduli in stretch along the axes, the sides free to shrink, over the one asked for."""
    e = 1e-6
    units = [np.diag(row) for row in np.eye(3)]
    units += [np.array(m, float) for m in ([[0, 0, 0], [0, 0, 1], [0, 1, 0]],
                                           [[0, 0, 1], [0, 0, 0], [1, 0, 0]],
                                           [[0, 1, 0], [1, 0, 0], [0, 0, 0]])]  # fmt: skip
    own = [energy(made, e * a) for a in units]
    C = np.array([[energy(made, e * (a + b)) - own[i] - own[j] for j, b in enumerate(units)]
                  for i, a in enumerate(units)]) / e**2  # fmt: skip
    return 1.0 / np.diag(np.linalg.inv(C))[:3] / 2e6


def test_static_stretch_gives_the_modulus_asked_for():
    assert young(scene()) == pytest.approx(np.ones(3), rel=0.001)
    tets = young(scene(pl.TetBody(cubes((3, 3, 3), (0.5, 0.5, 0.5)), order=1)))
    assert np.mean(tets) == pytest.approx(1.0, rel=0.03)
    assert np.ptp(tets) < 0.2


def test_waves_run_as_fast_as_the_modulus_says():
    """P and S waves, standing half a wave along the bar: w = c pi / L."""
    model = scene().make_model()
    K, m = model.stiffness(np.zeros((model.node_count, 3))), np.repeat(model.masses, 3)
    for axis, modulus in ((0, 1.2 * 2e6), (1, 0.4 * 2e6)):
        own = np.arange(axis, 3 * model.node_count, 3)
        A = K[own][:, own].multiply(1.0 / np.sqrt(np.outer(m[own], m[own])))
        low = eigsh(A.tocsc(), 2, sigma=-1.0, which="LM", return_eigenvectors=False)
        w = np.sqrt(np.sort(low)[1])
        assert w == pytest.approx(np.sqrt(modulus / 1000.0) * np.pi, rel=0.03)


@pytest.mark.parametrize(
    ("scheme", "order"), [("explicit-euler", 1), ("runge-kutta-2", 2), ("runge-kutta-4", 4)]
)
def test_schemes_have_their_order(scheme, order):
    body = pl.TetBody(cubes((1, 1, 1), (0.2, 0.2, 0.2)), order=1)
    made = scene(body, material=pl.Material(1e4, 0.25, 1000.0))
    X = body.nodes

    def end(substeps, name=scheme):
        model = replace(made, numbers={"scheme": name, "substeps": substeps}).make_model()
        state = model.restored({"u": 0.1 * X @ np.diag([1.0, -0.5, 0.3]), "v": 0.0 * X}, 0.0)
        for _ in range(20):
            state, _ = model.step(state)
        return state.u.numpy()

    exact = end(40, "runge-kutta-4")
    first = {1: 16, 2: 4, 4: 1}[order]
    errors = [np.abs(end(n) - exact).max() for n in (first, 2 * first)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.2)


@pytest.mark.parametrize(
    ("scheme", "beta"),
    [("runge-kutta-4", 0.0), ("runge-kutta-4", 2e-4), ("explicit-euler", 1e-3),
     ("runge-kutta-2", 2e-4)],
)  # fmt: skip
def test_the_largest_stable_step_is_known(scheme, beta):
    body = pl.TetBody(cubes((3, 2, 2), (0.3, 0.2, 0.2)), order=1)
    made = scene(body, material=replace(QUARTER, stiffness_damping=beta), scheme=scheme, substeps=1)
    limit = made.make_model().largest_step
    assert limit > 0.0
    sizes = []
    for share in (0.95, 1.05):
        timed = replace(made, integrator=pl.GeneralisedAlpha(dt=share * limit))
        model = timed.make_model()
        v = 1e-9 * np.random.default_rng(1).normal(size=body.nodes.shape)
        state = model.restored({"u": 0.0 * v, "v": v}, 0.0)
        for _ in range(600):
            state, _ = model.step(state)
        sizes.append(np.abs(state.v.numpy()).max() / np.abs(v).max())
    assert sizes[0] < 3.0
    assert not sizes[1] < 1e3
    with pytest.raises(pl.SolverFailure, match="unstable beyond"):
        pl.simulate(replace(made, integrator=pl.GeneralisedAlpha(dt=1.05 * limit)), 1)


def test_implicit_euler_takes_long_steps_and_both_forms_agree():
    runs = {}
    for scheme in ("implicit-euler", "implicit-euler-linear", "runge-kutta-4"):
        made = bar((6, 2, 2), model="mass-spring", numbers={"scheme": scheme}, dt=1.0 / 120.0,
                   gravity=(0.0, -1.0, 0.0))  # fmt: skip
        runs[scheme] = tip(pl.simulate(made, 30))
    exact = runs["runge-kutta-4"]
    assert np.abs(runs["implicit-euler"] - exact).max() < 0.15 * np.abs(exact).max()
    full = runs["implicit-euler"]
    assert np.abs(runs["implicit-euler-linear"] - full).max() < 0.03 * np.abs(full).max()


def test_a_free_body_keeps_its_energy_and_momenta():
    made = replace(scene(), initial_spin=(1.0, 2.0, 3.0))
    run = pl.simulate(made, 20)
    total = run.energies.total
    assert np.abs(total - total[0]).max() < 1e-3 * total[0]


def test_the_ratio_that_springs_cannot_have_is_told():
    still = np.zeros((2, 1, 3))
    told = bar((2, 1, 1), model="mass-spring").run_warnings(np.zeros(2), np.zeros(2, int), still)
    assert any("Poisson's ratio 1/4" in sentence for sentence in told)
