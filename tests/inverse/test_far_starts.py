"""Fits that start where a user is: a hundred times too stiff, or too soft."""

from types import SimpleNamespace

import numpy as np
import pytest
from test_joint_fits import HANGING, SWING, static, tracked

import pliant as pl
from pliant.inverse.fitting.far_starts import other_minima
from pliant.inverse.fitting.search import ladder
from pliant.inverse.measuring.losses import Loss
from pliant.inverse.motion.problem import Problem
from pliant.inverse.parameters.unknowns import UnknownSet, make_unknown

NEAR = {"youngs_modulus": 6.3e4, "poisson_ratio": 0.33}
SCENES = {"swing": (SWING, 16), "sag": (static(HANGING), 0)}


@pytest.fixture(scope="module", params=SCENES)
def case(request):
    scene, steps = SCENES[request.param]
    seen = tracked(scene, steps, noise=2e-4)
    near = pl.reconstruct(scene, seen, NEAR, discretisation=False)
    return scene, seen, near


def same(case, factor, ratio):
    """Whether a far start has the answer of a near one."""
    scene, seen, near = case
    far = {"youngs_modulus": 6e4 * factor, "poisson_ratio": ratio}
    fit = pl.reconstruct(scene, seen, far, discretisation=False)
    assert fit.converged, fit.reasons
    return all(abs(fit.values[n] - near.values[n]) < 0.1 * near.sigma[n] for n in NEAR)


def test_a_hundred_times_too_stiff(case):
    assert same(case, 100.0, 0.15)


@pytest.mark.slow  # a body that falls out of sight takes its time
def test_a_hundred_times_too_soft(case):
    assert same(case, 0.01, 0.47)


def test_without_the_search():
    """What the search is for: so soft a body finds no rest, and nothing can be fitted."""
    scene, steps = SCENES["sag"]
    seen = tracked(scene, steps, noise=2e-4)
    with pytest.raises(pl.SolverFailure):
        pl.reconstruct(scene, seen, {"youngs_modulus": 600.0}, search=False)


def test_a_near_start_is_left_alone(case):
    scene, seen, near = case
    alone = pl.reconstruct(scene, seen, NEAR, discretisation=False, search=False)
    assert near.values == alone.values
    assert [s.values for s in near.history] == [s.values for s in alone.history]


def test_the_ladder_finds_the_modulus():
    """From 100 times too stiff, within an eighth of a decade; two decades down is rung -2."""
    seen = tracked(SWING, 16, noise=2e-4)
    unknowns = UnknownSet((make_unknown("youngs_modulus", 6e6, SWING),))
    problem = Problem(SWING, seen, unknowns)
    found = ladder(problem, unknowns.start(), Loss(problem.spacing), (0.25, 0.5, 1.0))
    assert found[0].decades == pytest.approx(-2.0, abs=0.13)
    still = problem.at_rest(unknowns.start(), Loss(problem.spacing))
    assert found[0].spreads[-1] < 0.2 * still.spread


def test_other_minima_are_told():
    unknowns = UnknownSet((make_unknown("youngs_modulus", 1e4, SWING),))
    problem = SimpleNamespace(unknowns=unknowns)

    def end(start, value, spread):
        return np.log([start]), SimpleNamespace(q=np.log([value])), spread

    best = end(1e4, 2e4, 1e-3)
    same, worse, rival = end(3e4, 2.02e4, 1e-3), end(5e4, 6e4, 5e-3), end(5e4, 6e4, 1.1e-3)
    assert other_minima(problem, best, [same]) == []
    (text,) = other_minima(problem, best, [worse])
    assert "A start at youngs_modulus 5e+04 ends in another minimum, at 6e+04" in text
    assert "left aside" in text
    assert "hardly tells" in other_minima(problem, best, [rival])[0]
