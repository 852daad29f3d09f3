"""Priors, bounds, optimisers, costs on nodes, checkpoints, fields: small cases, known numbers."""

from dataclasses import replace

import numpy as np
import pytest

import pliant as pl
from pliant.dynamics.material_blocks import damping_frequencies
from pliant.inverse.fields.field_penalty import neighbours
from pliant.inverse.measuring.losses import Loss
from pliant.inverse.motion.checkpoints import Checkpoints, cut, state_bytes
from pliant.inverse.motion.problem import Problem
from pliant.inverse.motion.pullback import pull_back
from pliant.inverse.motion.sensitivity import run
from pliant.inverse.parameters.unknowns import UnknownSet, make_unknown
from pliant.observe.curved_surface import seen_surface

BODY = pl.GridBody(pl.shapes.torus(major=1.0, minor=0.35), 0.25)
SCENE = pl.Scene(
    BODY,
    pl.Material(2000.0, 0.3, 3.0, mass_damping=0.1, stiffness_damping=0.01),
    gravity=(4.0, -9.0, 3.0),
    fixed=[pl.Fixed(pl.shapes.box(center=(0, 1.35, 0), size=(1, 0.3, 1)))],
    integrator=pl.Newmark1(0.02, 0.6),
)
STEPS = 10
H = BODY.spacing


@pytest.fixture(scope="module")
def swing():
    return pl.simulate(SCENE, STEPS)


@pytest.fixture(scope="module")
def seen(swing):
    cameras = pl.ring_of_cameras(SCENE, 4, width=40, height=40)
    return pl.observe(swing, cameras, noise=0.2 * H, seed=1)


def test_a_prior_weighs_like_one_more_observation(swing):
    """With data of precision 1/s^2 about x and a prior 1/s^2 about m the optimum is their mean."""
    seen = pl.NodeMotions.of(swing, noise=0.2 * H, seed=3)
    free = pl.reconstruct(SCENE, seen, {"youngs_modulus": 2100.0}, discretisation=False)
    s = free.sigma["youngs_modulus"]
    centre = free.values["youngs_modulus"] + 2.0 * s
    held = pl.reconstruct(
        SCENE, seen, {"youngs_modulus": 2100.0}, priors={"youngs_modulus": pl.Prior(centre, s)},
        discretisation=False,
    )  # fmt: skip
    assert held.values["youngs_modulus"] - free.values["youngs_modulus"] == pytest.approx(
        s, rel=0.05
    )
    assert held.sigma["youngs_modulus"] == pytest.approx(s / np.sqrt(2.0), rel=0.05)


def test_log_normal_prior():
    prior = pl.Prior.parse("2000*/1.1")
    assert prior.residual(2200.0)[0] == pytest.approx(1.0)
    assert pl.Prior.parse("3+-0.5").residual(4.0) == pytest.approx((2.0, 2.0))
    for bad in ("3", "3*/0.9", "x+-1", "3+-0"):
        with pytest.raises(pl.BadInput):
            pl.Prior.parse(bad)


def test_an_active_bound_holds_and_is_named(seen):
    fit = pl.reconstruct(
        SCENE, seen, {"youngs_modulus": 2400.0}, bounds={"youngs_modulus": (2300.0, 2600.0)},
        discretisation=False,
    )  # fmt: skip
    assert fit.values["youngs_modulus"] == pytest.approx(2300.0, rel=1e-9)
    assert any("lower bound" in line for line in fit.advice)
    with pytest.raises(pl.BadInput, match="enclose"):
        pl.reconstruct(
            SCENE, seen, {"youngs_modulus": 2400.0}, bounds={"youngs_modulus": (2500.0, 2600.0)}
        )
    with pytest.raises(pl.BadInput, match="not unknown here"):
        pl.reconstruct(SCENE, seen, {"youngs_modulus": 2400.0}, priors={"density": pl.Prior(1, 1)})


@pytest.mark.parametrize("optimiser", ["lbfgs", "bb"])
def test_gradient_optimisers_find_the_same_minimum(swing, optimiser):
    seen = pl.NodeMotions.of(swing, noise=0.2 * H, seed=4)
    starts = {"youngs_modulus": 2300.0, "poisson_ratio": 0.25}
    best = pl.reconstruct(SCENE, seen, starts, discretisation=False)
    steps = []
    fit = pl.reconstruct(
        SCENE, seen, starts, optimiser=optimiser, on_step=steps.append, discretisation=False
    )
    assert fit.optimiser == optimiser
    assert len(steps) == len(fit.history) >= 3
    for name in starts:
        assert abs(fit.values[name] - best.values[name]) < 0.2 * best.sigma[name]
        assert fit.sigma[name] == pytest.approx(best.sigma[name], rel=0.1)


@pytest.mark.slow
def test_multi_start_and_coarse_to_fine(seen):
    fit = pl.reconstruct(
        SCENE, seen, {"youngs_modulus": 300.0}, multi_start=3, coarse_to_fine=True, seed=2
    )
    assert abs(fit.values["youngs_modulus"] - 2000.0) < 3.5 * fit.sigma["youngs_modulus"]
    assert {s.stage for s in fit.history} == {"starts", "coarse", ""}


def test_the_coarser_scene():
    scene = SCENE.coarser()
    assert scene.body.spacing == pytest.approx(2 * H)
    assert scene.dt == pytest.approx(2 * SCENE.dt)
    assert scene.integrator.parameters == SCENE.integrator.parameters


@pytest.mark.slow
def test_node_motions(swing):
    """Displacements and velocities of all nodes, without and with noise (eq. 5.4.1)."""
    exact = pl.NodeMotions.of(swing)
    starts = {"youngs_modulus": 2300.0, "poisson_ratio": 0.25}
    fit = pl.reconstruct(SCENE, exact, starts, discretisation=False)
    assert fit.values["youngs_modulus"] == pytest.approx(2000.0, rel=1e-5)
    assert fit.values["poisson_ratio"] == pytest.approx(0.3, rel=1e-4)
    noisy = pl.NodeMotions.of(swing, noise=0.1 * H, seed=1)
    fit = pl.reconstruct(SCENE, noisy, {"youngs_modulus": 2300.0}, discretisation=False)
    assert abs(fit.values["youngs_modulus"] - 2000.0) < 3.5 * fit.sigma["youngs_modulus"]
    bad = replace(exact, displacements=exact.displacements[:, :5])
    with pytest.raises(pl.BadInput, match="shape"):
        pl.reconstruct(SCENE, bad, {"youngs_modulus": 2300.0})


@pytest.mark.slow
def test_damping_ratios_and_gravity_direction(swing):
    exact = pl.NodeMotions.of(swing)
    w = 2.0 * np.pi * np.array(damping_frequencies(SCENE))
    truth = 0.5 * (0.1 / w + 0.01 * w)
    fit = pl.reconstruct(SCENE, exact, {"damping_ratios": tuple(1.1 * truth)}, discretisation=False)
    assert list(fit.values.values()) == pytest.approx(truth, rel=1e-3)
    down = np.array(SCENE.gravity) / np.linalg.norm(SCENE.gravity)
    start = down + [0.05, 0.0, -0.05]
    tilted = replace(SCENE, gravity=(0.0, -float(np.linalg.norm(SCENE.gravity)), 0.0))
    fit = pl.reconstruct(tilted, exact, {"gravity_direction": tuple(start)}, discretisation=False)
    member = make_unknown("gravity_direction", tuple(start), tilted)
    found = member.chart.setting(np.array(list(fit.values.values())))
    assert found == pytest.approx(down, abs=1e-5)


def test_pulled_back_points_return():
    """x = X + u(X) for a smooth u: X is found in the cell, and in the band outside."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.3, 1.3, (400, 3)) * [1, 1, 0.25]
    X = X[BODY.shape.distance(X) < 0.3 * H]
    A = np.array([[0.1, 0.2, 0.0], [-0.1, 0.05, 0.1], [0.0, -0.2, 0.1]])
    u = BODY.nodes @ A.T + 0.3
    found = pull_back(BODY, u, X + X @ A.T + 0.3)
    assert found.rest == pytest.approx(X, abs=1e-10)
    assert found.stretch == pytest.approx(np.broadcast_to(np.eye(3) + A, found.stretch.shape))
    far = pull_back(BODY, u, np.array([[9.0, 0.0, 0.0]]))
    assert np.linalg.norm(far.beyond) > 1.0


@pytest.mark.parametrize("cost", ["depth", "foot", "pullback", "nodes"])
def test_gradient_of_every_cost(seen, swing, cost):
    """Adjoint and tangent agree; frames between the steps included."""
    observed = seen
    if cost == "nodes":
        observed = pl.NodeMotions.of(swing)
        observed = replace(observed, times=observed.times - 0.4 * SCENE.dt)
    else:
        late = [replace(f, time=f.time - 0.4 * SCENE.dt) for f in seen.frames[::3]]
        observed = replace(seen, frames=late)
    scene = replace(SCENE, tolerance=1e-12)
    members = (make_unknown("youngs_modulus", 2300.0, scene), make_unknown("density", 2.5, scene))
    cost = "auto" if cost == "nodes" else cost
    problem = Problem(scene, observed, UnknownSet(members), cost=cost)
    q = problem.unknowns.start()
    loss = Loss(0.1 * H)
    tangent = problem.evaluate(q, loss)
    e, adjoint = problem.gradient(q, loss)
    assert e.cost == pytest.approx(tangent.cost, rel=1e-9)
    assert adjoint == pytest.approx(tangent.model[1], rel=1e-7)


@pytest.mark.parametrize("slots", [2, 3, 5])
def test_checkpoints(slots):
    """The states of the full run, from last to first, with no more than the binomial work."""
    from frozen_frames import frozen_model

    scene = replace(SCENE, tolerance=1e-13)
    system = frozen_model(scene)
    whole = run(system, 12)
    few = Checkpoints(system, 12, slots)
    assert len(few) == 13
    for k in range(12, -1, -1):
        assert few[k].u.numpy() == pytest.approx(whole[k].u.numpy(), abs=1e-12)
    assert few.advanced <= {2: 12 * 13 // 2, 3: 40, 5: 24}[slots]


def test_cuts_follow_the_binomial_rule():
    """With s slots and r repetitions C(s + r, s) steps can be reversed, at work r l - C(..)."""

    def work(length, slots):
        if length <= 1:
            return 0
        m = cut(length, slots)
        if m == 0:
            return length * (length - 1) // 2
        return m + work(length - m, slots - 1) + work(m, slots)

    # optimal numbers of forward steps (Griewank and Walther 2000): l r - C(s + r, s + 1)
    assert work(10, 3) == 10 * 2 - 5
    assert work(20, 3) == 20 * 3 - 15


def test_gradient_within_a_memory_limit(seen):
    scene = replace(SCENE, tolerance=1e-13)
    member = (make_unknown("youngs_modulus", 2300.0, scene),)
    loss = Loss(0.1 * H)
    gradients = []
    for states in (100, 3):
        p = Problem(scene, seen, UnknownSet(member))
        p = Problem(scene, seen, UnknownSet(member), memory_limit=states * state_bytes(p.system))
        gradients.append(p.gradient(p.unknowns.start(), loss)[1])
    assert gradients[1] == pytest.approx(gradients[0], rel=1e-10)


def test_neighbours_of_a_block():
    block = pl.GridBody(pl.shapes.box(center=(0.5, 0.5, 0.5), size=(1, 1, 1)), 0.25)
    assert len(neighbours(block)) == 3 * 4 * 4 * 3


@pytest.mark.parametrize("kind", ["tv", "smooth"])
def test_field_penalty_gradient(kind):
    penalty = pl.FieldPenalty(kind, 2.0).on(BODY, slice(0, len(BODY.cells)))
    rng = np.random.default_rng(1)
    q, d = rng.standard_normal((2, len(BODY.cells)))
    _, g = penalty(q)
    e = 1e-6
    difference = (penalty(q + e * d)[0] - penalty(q - e * d)[0]) / (2 * e)
    assert g @ d == pytest.approx(difference, rel=1e-7)
    assert penalty(np.full(len(q), 3.0))[0] == 0.0


def test_the_seen_surface_is_the_true_one():
    """Its points lie on the shape, its chords err by a sixteenth of the cut cells' facets."""
    shape = pl.shapes.torus(major=1.0, minor=0.35)
    body = pl.GridBody(shape, 0.1, subdivisions=1)  # whose facets are chords
    errors = []
    for surface in (body.surface, seen_surface(body).surface):
        x = surface.positions(body.nodes)
        errors.append(np.abs(shape.distance(x[surface.facets].mean(axis=1))).mean())
    assert np.abs(shape.distance(x)).max() < 1e-5
    assert errors[1] < errors[0] / 14.0
