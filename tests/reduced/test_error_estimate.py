"""The estimate against the truth, in ten cases and in closed form."""

import numpy as np
import pytest

import pliant as pl
from pliant.reduced.error_estimate import ErrorEstimator, estimated_error

WALL = [pl.Fixed(pl.shapes.box(center=(-0.5, 0, 0), size=(1e-3, 1, 1)))]
CASES = [
    # domains, weights, Young's modulus, damping, steps, dt
    (1, "elastic", 1.6e6, 2.0, 30, 0.02), (2, "elastic", 1.6e6, 2.0, 40, 0.02),
    (3, "elastic", 1.6e6, 2.0, 40, 0.02), (5, "elastic", 1.6e6, 2.0, 30, 0.02),
    (3, "harmonic", 1.6e6, 2.0, 40, 0.02), (3, "elastic", 1.6e6, 8.0, 40, 0.02),
    (3, "elastic", 1.6e6, 0.0, 40, 0.02), (2, "elastic", 1.6e7, 2.0, 60, 0.01),
    (2, "elastic", 5e6, 1.0, 60, 0.01), (3, "harmonic", 1e7, 3.0, 60, 0.01),
]  # fmt: skip


@pytest.fixture(scope="module")
def beam():
    return pl.TetBody(pl.shapes.box(size=(1.0, 0.15, 0.15)), edge_length=0.075, order=1)


def test_the_estimate_is_within_a_factor_of_two_in_eight_of_ten(beam):
    ratios = []
    for domains, weights, E, damping, steps, dt in CASES:
        base = {"fixed": WALL, "law": "neo-hookean", "integrator": pl.GeneralisedAlpha(dt),
                "material": pl.Material(E, 0.3, 1000.0, mass_damping=damping)}  # fmt: skip
        numbers = {"domains": domains, "weights": weights, "cubature": 0.0}
        run = pl.simulate(pl.Scene(beam, model="reduced", numbers=numbers, **base), steps)
        full = pl.simulate(pl.Scene(beam, **base), steps)
        found = estimated_error(run)
        off = run.displacements[found.frames] - full.displacements[found.frames]
        truth = np.linalg.norm(off) / np.linalg.norm(run.displacements[found.frames])
        ratios.append(found.relative / truth)
    assert np.count_nonzero(np.abs(np.log2(ratios)) <= 1.0) >= 8, np.round(ratios, 2)
    assert len(found.frames) <= 10


def test_the_full_body_is_in_balance(beam):
    """Its own run has an imbalance of the differences' error only."""
    scene = pl.Scene(beam, pl.Material(1.6e6, 0.3, 1000.0, mass_damping=2.0), fixed=WALL,
                     integrator=pl.GeneralisedAlpha(0.005))  # fmt: skip
    run = pl.simulate(scene, 30)
    assert estimated_error(run).relative < 0.02


def test_a_push_without_resistance_is_half_its_acceleration_times_the_square_of_time(beam):
    scene = pl.Scene(beam, pl.Material(1e-3, 0.3, 1000.0), gravity=(0.0, -2.0, 0.0))
    judge, none = ErrorEstimator(scene), np.zeros((len(beam.nodes), 3))
    t = 0.3
    r = judge.imbalance(none, none, none, t)
    assert r.sum(axis=0) == pytest.approx([0.0, -2.0 * 1000.0 * beam.volume, 0.0], abs=1e-6)
    y = judge.response(none, r, t)
    assert y[:, 1] == pytest.approx(np.full(len(y), -0.5 * 2.0 * t * t), rel=1e-3)
