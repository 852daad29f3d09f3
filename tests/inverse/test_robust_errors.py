"""Error bars with outliers, against the scatter of many fits."""

import numpy as np
import pytest

from pliant.inverse.fitting.robust_error import information, robust_growth
from pliant.inverse.measuring.losses import Loss
from pliant.inverse.measuring.measures import FrameMisfit
from pliant.inverse.motion.evaluation import Evaluation

COUNT, NOISE, FITS = 600, 2e-3, 300


def fitted(kind, outliers, seed):
    """A line with two unknowns, (0, 0) in truth, fitted robustly to noise with outliers."""
    rng = np.random.default_rng(seed)
    J = np.stack([np.ones(COUNT), rng.uniform(-1.0, 1.0, COUNT)], axis=1)
    r = -NOISE * rng.standard_normal(COUNT)
    wild = rng.random(COUNT) < outliers
    r[wild] = rng.uniform(-40.0, 40.0, int(wild.sum())) * NOISE
    e = Evaluation(np.zeros(2), Loss(NOISE, kind), {0: FrameMisfit(r, J, np.ones(COUNT, bool))}, 1)
    for _ in range(12):
        _, g, H = e.model
        e = e.predicted(-np.linalg.solve(H, g))
    return e


@pytest.mark.parametrize("kind", ["huber", "tukey", "squares"])
@pytest.mark.parametrize("outliers", [0.0, 0.05])
def test_scatter_is_what_the_error_bars_say(kind, outliers):
    """The scatter of 300 fits in error bars is 1 to within three of its own sigmas, 12 %."""
    if kind == "squares" and outliers:
        return  # squares do not know outliers
    fits = [fitted(kind, outliers, seed) for seed in range(FITS)]
    z = np.array([e.q / np.sqrt(np.diag(np.linalg.inv(information(e)))) for e in fits])
    assert np.sqrt(np.mean(z**2, axis=0)) == pytest.approx(1.0, abs=0.12)
    assert np.mean(np.abs(z) < 1.0) == pytest.approx(0.683, abs=0.06)


def test_the_hessian_alone_is_too_sure():
    """What Huber's weights say without it: a quarter too small with 5 % of outliers."""
    fits = [fitted("huber", 0.05, seed) for seed in range(FITS)]
    z = np.array([e.q / np.sqrt(np.diag(np.linalg.inv(e.model[2]))) for e in fits])
    assert np.sqrt(np.mean(z**2)) > 1.15
    assert np.mean([robust_growth(e) for e in fits]) == pytest.approx(np.mean(z**2), rel=0.12)


def test_priors_are_no_outliers():
    """They count as they are."""
    e = fitted("huber", 0.05, 1)
    prior = (0.0, np.zeros(2), np.array([1e12, 0.0]))
    sure = Evaluation(e.q, e.loss, e.frames, 1, prior)
    assert np.linalg.inv(information(sure))[0, 0] == pytest.approx(1e-12, rel=1e-3)
