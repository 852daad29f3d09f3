"""A modulus for every cell: Gauss-Newton products, their optimiser and its error bars."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

import pliant as pl
from pliant.inverse.fields.field_errors import standard_deviations
from pliant.inverse.fields.field_parts import cut
from pliant.inverse.measuring.losses import Loss
from pliant.inverse.motion.linearised import Linearised
from pliant.inverse.motion.problem import Problem
from pliant.inverse.parameters.charts import PositiveParts
from pliant.inverse.parameters.unknown import Unknown
from pliant.inverse.parameters.unknowns import UnknownSet, make_unknown

BODY = pl.GridBody(pl.shapes.box(center=(0.5, 0.3, 0.3), size=(1.0, 0.6, 0.6)), 0.2)
CELLS = len(BODY.cells)
STIFF = 27
TRUTH = np.where(np.arange(CELLS) == STIFF, 4000.0, 2000.0)
SCENE = pl.Scene(
    BODY,
    pl.Material(TRUTH, 0.3, 8.0, mass_damping=0.1, stiffness_damping=0.01),
    gravity=(3.0, -9.0, 4.0),
    fixed=[pl.Fixed(pl.shapes.box(center=(0, 0.3, 0.3), size=(0.02, 1, 1)))],
    integrator=pl.Newmark1(0.02, 0.6),
    tolerance=1e-11,
)
LOSS = Loss(1e-3, "squares")


@pytest.fixture(scope="module")
def seen():
    return pl.NodeMotions.of(pl.simulate(SCENE, 5), noise=1e-4, seed=1)


def uniform(seen, **options) -> Problem:
    field = make_unknown("youngs_modulus", np.full(CELLS, 2000.0), SCENE)
    return Problem(SCENE, seen, UnknownSet((field,)), **options)


@pytest.fixture(scope="module")
def hessian(seen):
    """J^T W J from the tangent along every cell."""
    labels = tuple(f"E{k}" for k in range(CELLS))
    start = np.full(CELLS, 2000.0)
    chart = PositiveParts("youngs_modulus", start, CELLS, np.arange(CELLS))
    every = Unknown(SCENE.block("youngs_modulus"), chart, labels)
    problem = Problem(SCENE, seen, UnknownSet((every,)))
    return problem.evaluate(problem.unknowns.start(), LOSS).model


def test_products_are_those_of_the_tangents(seen, hessian):
    _, g, H = hessian
    assert CELLS == 45
    problem = uniform(seen)
    at = Linearised(problem, problem.unknowns.start(), LOSS)
    assert at.gradient == pytest.approx(g, rel=1e-6, abs=1e-7 * np.abs(g).max())
    d = np.random.default_rng(1).standard_normal(CELLS)
    expected = H @ d
    assert at.product(d) == pytest.approx(expected, abs=1e-7 * np.abs(expected).max())
    problem.evaluate(problem.unknowns.start() + 0.3, LOSS, derivatives=False)  # moves the system
    assert at.product(d) == pytest.approx(expected, abs=1e-7 * np.abs(expected).max())


def test_products_with_other_unknowns_and_frames_between_steps(seen):
    late = replace(seen, times=seen.times - 0.3 * SCENE.dt)
    scene = replace(SCENE, material=replace(SCENE.material, youngs_modulus=2000.0))
    names = {"youngs_modulus": 2000.0, "poisson_ratio": 0.3, "gravity": (3.0, -9.0, 4.0)}
    members = tuple(make_unknown(n, v, scene) for n, v in names.items())
    problem = Problem(scene, late, UnknownSet(members))
    q = problem.unknowns.start()
    H = problem.evaluate(q, LOSS).model[2]
    at = Linearised(problem, q, LOSS)
    for d in np.eye(len(q)):
        assert at.product(d) == pytest.approx(H @ d, rel=1e-6, abs=1e-8 * np.abs(H @ d).max())


def test_error_bars_of_a_field(hessian):
    """With products along as many directions as there are cells nothing is approximated."""
    H = hessian[2]
    L = pl.FieldPenalty("smooth", 3.0).on(BODY, slice(0, CELLS)).hessian(np.zeros(CELLS))
    d = np.linalg.qr(np.random.default_rng(2).standard_normal((CELLS, CELLS)))[0].T
    found = standard_deviations([(v, H @ v) for v in d], L)
    exact = np.sqrt(np.diag(np.linalg.inv(H + L.toarray())))
    assert found == pytest.approx(exact, rel=1e-3)
    few = standard_deviations([(v, H @ v) for v in d[:20]], L)
    assert (few > 0.999 * exact).all()
    assert np.isnan(standard_deviations([], L)).all()


@pytest.mark.parametrize("kind", ["tv", "smooth"])
def test_hessian_of_the_penalty(kind):
    """Exact for smoothness; for total variation its gradient is the lagged matrix times q."""
    penalty = pl.FieldPenalty(kind, 2.0).on(BODY, slice(0, CELLS))
    q = np.random.default_rng(1).standard_normal(CELLS)
    L = penalty.hessian(q)
    assert isinstance(L, sparse.csr_array)
    assert L @ q == pytest.approx(penalty(q)[1], rel=1e-12)


def test_a_stiff_cell_is_found(seen):
    scene = replace(SCENE, tolerance=1e-8)
    fit = pl.reconstruct(
        scene, seen, {"youngs_modulus": np.full(CELLS, 1500.0)}, loss="squares",
        field_penalty=pl.FieldPenalty("tv", 10.0), field_parts=True, optimiser="gncg",
    )  # fmt: skip
    assert fit.converged
    values, sigma = (np.array(list(d.values())) for d in (fit.values, fit.sigma))
    body, stiff = fit.parts
    assert list(stiff.cells) == [STIFF]
    assert np.abs(values - TRUTH).max() < 4000.0 * 0.05
    assert (np.abs(values - TRUTH) < 3.0 * sigma).all()
    assert stiff.place == pytest.approx(BODY.nodes[BODY.cells[STIFF]].mean(axis=0))
    assert "Part 1: 1 cells" in fit.advice[1]


def test_cuts_of_a_field():
    """Two parts and their rims on a line of cells."""
    pairs = np.stack([np.arange(19), np.arange(1, 20)], axis=1)
    field = np.zeros(20)
    field[3:6] = (0.5, 2.0, 1.2)
    field[12:16] = (-0.3, -0.9, -0.8, -0.2)
    expected = np.zeros(20, int)
    expected[4:6], expected[13:15] = 1, 2
    assert list(cut(field + 7.0, pairs)) == list(expected)
    assert not cut(0.05 * field, pairs).any()
