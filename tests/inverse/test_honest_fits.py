"""A fit claims success only where it may, and its total error bar holds what noise does not."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

import pliant as pl
from pliant.app.terminal.application import app
from pliant.inverse.fitting import verdict
from pliant.inverse.fitting.fit_log import FitLog
from pliant.inverse.fitting.fitter import FitOptions, Fitter
from pliant.inverse.fitting.total_error import Repeat, error_budget
from pliant.inverse.joint.sharing import share
from pliant.inverse.measuring.losses import Loss
from pliant.inverse.measuring.measures import FrameMisfit
from pliant.inverse.motion.evaluation import Evaluation
from pliant.inverse.motion.problem import Problem
from pliant.inverse.parameters.unknowns import UnknownSet, make_unknown

BODY = pl.GridBody(pl.shapes.box(center=(0.06, 0, 0), size=(0.12, 0.03, 0.03)), 0.01)
SCENE = pl.Scene(
    BODY,
    pl.Material(60e3, 0.4, 1000.0),
    fixed=[pl.Fixed(pl.shapes.box(center=(-0.005, 0, 0), size=(0.0101, 0.05, 0.05)))],
    integrator=pl.GeneralisedAlpha(0.012),
)
START = {"youngs_modulus": 70e3}


@pytest.fixture(scope="module")
def film():
    """By the same scene with half the step: the fit's own step is wrong by a known order."""
    cameras = pl.ring_of_cameras(SCENE, 3, width=60, height=45)
    run = pl.simulate(SCENE.coarser(space=1.0, time=0.5), 32)
    return pl.observe(run, cameras, noise=5e-4, seed=1, frames=list(range(2, 33, 2)))


@pytest.fixture(scope="module")
def fit(film):
    return pl.reconstruct(SCENE, film, START, density_known_to=0.0)


def problem_of(scene, seen, start=START):
    members = tuple(make_unknown(n, v, scene) for n, v in start.items())
    return Problem(scene, seen, UnknownSet(members))


def test_orders_of_the_schemes():
    for scheme, order in (
        (pl.GeneralisedAlpha(0.01), 2), (pl.Newmark2(0.01), 2), (pl.HHT(0.01), 2),
        (pl.Newmark1(0.01, 0.6), 1), (pl.Newmark1(0.01, 0.5), 2), (pl.ImplicitEuler(0.01), 1),
    ):  # fmt: skip
        assert scheme.order == order, scheme.name


def test_a_budget_of_given_numbers():
    """Four residuals' worth of sums: Richardson by grid (r = 2, p = 2) and step (r = 2, p = 1)."""
    unknowns = UnknownSet((make_unknown("youngs_modulus", 100.0, SCENE),))
    q = np.log(np.array([100.0]))
    e = Evaluation(q, Loss(1.0), {0: FrameMisfit(np.zeros(16), np.ones((16, 1)), np.ones(16) > 0)})
    repeats = [
        Repeat("grid", 2.0, 2.0, np.log([88.0]), 0.0),
        Repeat("time step", 2.0, 1.0, np.log([103.0]), 0.0),
    ]
    b = error_budget(unknowns, q, e, np.array([0.5]), 1.0, repeats)
    assert b.causes["grid"] == pytest.approx([4.0])
    assert b.causes["time step"] == pytest.approx([3.0])
    assert b.total == pytest.approx([np.sqrt(0.25 + 16.0 + 9.0)])
    assert b.extrapolated == pytest.approx([100.0 * (100.0 / 88.0) ** (1.0 / 3.0) / 1.03])


def test_a_pattern_is_the_models_unless_repeats_explain_it():
    """A wave of mean square 0.5 under noise 1 in n residuals: sqrt(n / 2) standard deviations; a
    repeat with a pattern 1 + 15 / 2 times as large in square explains half of it.
    """
    unknowns = UnknownSet((make_unknown("youngs_modulus", 100.0, SCENE),))
    q, n = np.log(np.array([100.0])), 40_000
    rng = np.random.default_rng(0)
    r = rng.standard_normal(n) + np.sin(np.arange(n) / 50.0)
    e = Evaluation(q, Loss(1.0), {0: FrameMisfit(r, np.ones((n, 1)), np.ones(n, bool))})
    alone = error_budget(unknowns, q, e, np.array([0.5]), 1.0, [])
    assert alone.pattern == pytest.approx(0.5, rel=0.05)
    assert alone.causes["model"] == pytest.approx([0.5 * np.sqrt(n * 0.5)], rel=0.05)
    repeat = Repeat("grid", 2.0, 2.0, q, alone.pattern * (1.0 + 7.5))
    assert error_budget(unknowns, q, e, np.array([0.5]), 1.0, [repeat]).unexplained == (
        pytest.approx(0.5 * alone.pattern)
    )


def test_the_step_is_in_the_total(fit):
    """The film's step is half the fit's: second order leaves 3/4 of the error by the fit's step."""
    off = fit.values["youngs_modulus"] - 60e3
    assert fit.converged, fit.reasons
    assert abs(off) > 3.0 * fit.sigma["youngs_modulus"]
    assert abs(off) < 2.0 * fit.total_sigma["youngs_modulus"]
    assert fit.errors["time step"]["youngs_modulus"] == pytest.approx(abs(off) / 0.75, rel=0.2)
    assert "total sigma" in str(fit)


@pytest.mark.slow
def test_no_repeats_if_told(film):
    fit = pl.reconstruct(SCENE, film, START, discretisation=False, max_iterations=1)
    assert set(fit.errors) == {"noise", "model", "density"}
    assert not fit.extrapolated
    assert fit.discretisation == {}


def test_a_density_that_is_held_is_in_the_total(film):
    """A fifth too heavy: the modulus is a fifth too large; the residuals do not tell."""
    heavy = replace(SCENE, material=replace(SCENE.material, density=1200.0))
    start = {"youngs_modulus": 72e3, "poisson_ratio": 0.4}
    fit = pl.reconstruct(heavy, film, start, discretisation=False)
    E = fit.values["youngs_modulus"]
    assert pytest.approx(72e3, rel=0.02) == E
    assert fit.errors["density"]["youngs_modulus"] == pytest.approx(0.1 * E, rel=0.01)
    assert fit.errors["density"]["poisson_ratio"] < 1e-4
    assert abs(E - 60e3) < 2.0 * fit.total_sigma["youngs_modulus"]
    with pytest.raises(pl.BadInput, match="density_known_to"):
        pl.reconstruct(heavy, film, start, density_known_to=-0.1)


@pytest.mark.slow
def test_a_far_start_comes_home(fit, film):
    """Three times too stiff and 0.12 off in Poisson's ratio, through the coarser grid."""
    start = {"youngs_modulus": 180e3, "poisson_ratio": 0.28}
    far = pl.reconstruct(SCENE, film, start, discretisation=False)
    near = pl.reconstruct(
        SCENE, film, {"youngs_modulus": 60e3, "poisson_ratio": 0.4}, discretisation=False
    )
    for name in start:
        assert far.values[name] == pytest.approx(near.values[name], abs=near.sigma[name])


def test_too_few_iterations_are_no_success(film):
    fit = pl.reconstruct(
        SCENE, film, {"youngs_modulus": 100e3}, max_iterations=1, search=False,
        discretisation=False,
    )  # fmt: skip
    assert not fit.converged
    assert fit.reasons[0] == verdict.UNFINISHED
    assert "NOT A SUCCESS" in str(fit)


def test_a_wrong_model_is_no_success(film):
    """Gravity two thirds aside moves the beam where no modulus does."""
    wrong = replace(SCENE, gravity=(0.0, -6.54, 6.54))
    fit = pl.reconstruct(wrong, film, START, max_iterations=6, search=False, discretisation=False)
    assert not fit.converged
    assert any("far above the noise" in reason for reason in fit.reasons)


def test_tangents_that_lie_are_found_out(film):
    """Tangents 50 times too large: a step back leaves 1 - 1/50 of the way, error bars vanish."""
    problem = problem_of(SCENE, film)
    q = np.log(np.array([60e3]))
    e = problem.evaluate(q, Loss(5e-4))
    sound = verdict.way_back(problem, e)
    assert sound is not None
    assert sound.left < 0.05
    assert sound.growth == pytest.approx(1.0, abs=0.05)
    frames = {k: FrameMisfit(f.r, 50.0 * f.J, f.usable) for k, f in e.frames.items()}
    lying = verdict.way_back(problem, replace(e, frames=frames))
    assert lying is not None
    assert lying.left == pytest.approx(0.98, abs=0.01)
    assert lying.growth == pytest.approx(50.0, rel=0.05)
    budget = error_budget(problem.unknowns, q, e, np.array([1.0]), 5e-4, [])
    found = verdict.reasons_against(problem, replace(e, frames=frames), True, 5e-4, budget)
    assert "as large as the motion's own change" in found[0]


@pytest.mark.slow
def test_a_first_frame_beyond_the_first_horizon(film):
    """Frames in the last half only: horizons without a frame are passed over."""
    late = replace(film, frames=film.frames[7:])
    fit = pl.reconstruct(
        SCENE, late, {"youngs_modulus": 66e3}, horizons=(0.25, 0.5, 1.0), discretisation=False
    )
    assert fit.converged, fit.reasons
    alone = [pl.Experiment(SCENE, late, "1")]
    asked = FitOptions(horizons=(0.25,))
    fitter = Fitter(alone, share(alone, {"youngs_modulus": 66e3}, {}, {}), asked, FitLog(), None)
    problem = fitter.problem()
    with pytest.raises(pl.BadInput, match="end them with 1"):
        fitter.minimise(problem, problem.unknowns.start(), FitLog())


def test_the_command_says_so(tmp_path):
    """Exit code 3 and the reason, with the table and the result all the same."""
    path, out = tmp_path / "beam.toml", tmp_path / "fit"
    replace(SCENE, integrator=pl.GeneralisedAlpha(0.02)).save(path)
    asked = [
        "reconstruct", path, "--out", out, "--unknown", "youngs_modulus=200e3", "--steps", 6,
        "--cameras", 2, "--pixels", 30, "--noise", "0.0005", "--max-iterations", 1, "--no-report",
        "--no-coarse-to-fine",
    ]  # fmt: skip
    found = CliRunner().invoke(app, [str(a) for a in asked])
    assert found.exit_code == 3, found.output
    assert "total sigma" in found.output
    result = json.loads((out / "result.json").read_text())
    assert result["converged"] is False
    assert verdict.UNFINISHED in result["reasons"]
    row = result["unknowns"]["youngs_modulus"]
    squares = sum(value**2 for value in row["errors"].values())
    assert row["total_sigma"] == pytest.approx(np.sqrt(squares))
    assert row["total_sigma"] >= row["sigma"] > 0.0


def test_a_ratio_that_the_data_do_not_tell_is_no_success():
    """Noise of half a cell on a body that hardly moves: the ratio drifts to its lower end."""
    unknowns = UnknownSet((make_unknown("poisson_ratio", 0.3, SCENE),))
    problem = SimpleNamespace(unknowns=unknowns)
    assert verdict._impossible(problem, unknowns.start()) == []
    (reason,) = verdict._impossible(problem, np.array([-12.0]))
    assert "do not tell" in reason


def test_a_ratio_that_a_wrong_model_drives_to_its_top_is_no_success():
    """Rubber may be there; where neighbouring residuals are off together it need not be rubber."""
    unknowns = UnknownSet((make_unknown("poisson_ratio", 0.4, SCENE),))
    problem, top = SimpleNamespace(unknowns=unknowns), np.array([12.0])
    assert verdict._impossible(problem, top) == []
    assert verdict._impossible(problem, unknowns.start(), driven=True) == []
    (reason,) = verdict._impossible(problem, top, driven=True)
    assert "has driven it there" in reason


def test_extrapolated_values_stay_possible():
    unknowns = UnknownSet((make_unknown("poisson_ratio", 0.45, SCENE),))
    q = unknowns.start()
    coarse = Repeat("grid", 2.0, 1.0, q - 3.0, 0.0)
    seen = FrameMisfit(np.zeros(16), np.ones((16, 1)), np.ones(16) > 0)
    nothing = Evaluation(q, Loss(1.0), {0: seen})
    budget = error_budget(unknowns, q, nothing, np.ones(1), 1.0, [coarse])
    assert 0.45 < budget.extrapolated[0] < 0.5


def test_a_grid_of_first_order_is_covered_too():
    """From 88 at twice the spacing to 100: the limit is 104, or 112 if the order is one."""
    unknowns = UnknownSet((make_unknown("youngs_modulus", 100.0, SCENE),))
    q = unknowns.start()
    seen = FrameMisfit(np.zeros(16), np.ones((16, 1)), np.ones(16) > 0)
    nothing = Evaluation(q, Loss(1.0), {0: seen})
    coarse = Repeat("grid", 2.0, 2.0, np.log([88.0]), 0.0, sure=1.0)
    budget = error_budget(unknowns, q, nothing, np.zeros(1), 1.0, [coarse])
    assert budget.causes["grid"] == pytest.approx([6.0])  # 12 within two of them, 4 within one
    assert budget.extrapolated is not None
    assert budget.extrapolated[0] == pytest.approx(100.0 * (100.0 / 88.0) ** (1.0 / 3.0))
