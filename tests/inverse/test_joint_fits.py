"""Several recordings in one fit: error bars shrink as they must, and one that lies is named."""

from dataclasses import replace

import numpy as np
import pytest

import pliant as pl
from pliant.inverse.joint.experiment import Experiment
from pliant.inverse.joint.joint_problem import JointProblem
from pliant.inverse.joint.sharing import share
from pliant.inverse.measuring.losses import Loss
from pliant.inverse.motion.problem import Problem

BODY = pl.GridBody(pl.shapes.box(center=(0.2, 0.0, 0.0), size=(0.4, 0.1, 0.1)), 0.05)
AT = [[0.4, 0.05, 0.0], [0.4, 0.0, 0.05], [0.3, -0.05, 0.0], [0.2, 0.05, 0.02]]
TRUTH = {"youngs_modulus": 6e4, "poisson_ratio": 0.35}
START = {"youngs_modulus": 7e4, "poisson_ratio": 0.3}
QUICK = {"discretisation": False, "coarse_to_fine": False}


def beam(gravity, **changes):
    scene = pl.Scene(
        BODY,
        pl.Material(6e4, 0.35, 1000.0, stiffness_damping=0.002),
        gravity=gravity,
        fixed=[pl.Fixed(pl.shapes.box(center=(-0.05, 0, 0), size=(0.2, 0.3, 0.3)))],
        integrator=pl.GeneralisedAlpha(dt=0.01),
    )
    return replace(scene, **changes)


def static(scene):
    return replace(scene, start="equilibrium")


SWING, ACROSS, HANGING = beam((0.0, -9.81, 0.0)), beam((3.0, 0.0, 7.0)), beam((0.0, -8.0, 2.0))


def tracked(scene, steps=12, noise=2e-4, seed=1, known=True):
    run = pl.simulate(scene, max(steps, 1))
    seen = pl.TrackedPoints.of(run, AT, noise=noise, seed=seed, frames=None if steps else [0])
    return seen if known else replace(seen, sigma=None)


@pytest.fixture(scope="module")
def three():
    """Two swings and a sag, each with its own noise; the second does not say how large it is."""
    return [
        pl.Experiment(SWING, tracked(SWING), "swing"),
        pl.Experiment(ACROSS, tracked(ACROSS, noise=6e-4, seed=2, known=False), "across"),
        pl.Experiment(static(HANGING), tracked(static(HANGING), 0, noise=1e-4, seed=3), "sag"),
    ]


@pytest.fixture(scope="module")
def joint(three):
    return pl.reconstruct(three, unknowns=START, **QUICK)


def test_joint_error_bars(three, joint):
    """Information adds up: 1 / sigma^2 of one unknown is the sum of those of all."""
    assert joint.converged, joint.reasons
    for name, value in TRUTH.items():
        assert abs(joint.values[name] - value) < 3.0 * joint.sigma[name]
    one = [
        pl.reconstruct(x.scene, x.seen, {"youngs_modulus": 7e4}, **QUICK).sigma["youngs_modulus"]
        for x in three
    ]
    all_three = pl.reconstruct(three, unknowns={"youngs_modulus": 7e4}, **QUICK)
    sigma = all_three.sigma["youngs_modulus"]
    assert sigma < min(one)
    assert sigma == pytest.approx(sum(s**-2 for s in one) ** -0.5, rel=0.05)


def test_opinions_are_the_single_fits(three, joint):
    """What an experiment says alone is what a fit of it alone says."""
    assert [o.name for o in joint.opinions] == ["swing", "across", "sag"]
    assert [o.noise for o in joint.opinions] == pytest.approx([2e-4, 6e-4, 1e-4], rel=0.25)
    for x, o in zip(three[:2], joint.opinions, strict=False):
        alone = pl.reconstruct(x.scene, x.seen, START, **QUICK)
        for name in TRUTH:
            assert abs(o.values[name] - alone.values[name]) < 0.3 * alone.sigma[name]
            assert o.sigma[name] == pytest.approx(alone.sigma[name], rel=0.15)
            assert joint.sigma[name] < o.sigma[name]
    assert all(o.agrees for o in joint.opinions)
    assert "alone: across" in str(joint)


def test_a_wrong_density_is_named(three):
    """The second body is 25 % lighter than its scene says: its modulus looks larger by a third.

    Two cells across leave all of them 20 % off together: that is no quarrel.
    """
    light = beam(ACROSS.gravity, material=replace(ACROSS.material, density=750.0))
    wrong = [
        three[0],
        pl.Experiment(ACROSS, tracked(light, noise=6e-4, seed=2), "across"),
        three[2],
    ]
    fit = pl.reconstruct(wrong, unknowns={"youngs_modulus": 7e4}, coarse_to_fine=False)
    assert [o.agrees for o in fit.opinions] == [True, False, True]
    assert fit.opinions[1].values["youngs_modulus"] == pytest.approx(8e4, rel=0.05)
    assert not fit.converged
    assert any(r.startswith("Experiment across disagrees") for r in fit.reasons)
    assert "DISAGREES" in str(fit)


def test_own_unknowns(three):
    """A clock of one experiment, and a density that two of them share with nobody."""
    late = replace(three[1].seen, times=three[1].seen.times - 0.004)
    fit = pl.reconstruct(
        [three[0], replace(three[1], seen=late)],
        unknowns={"youngs_modulus": 7e4, "time_offset@across": 0.0},
        **QUICK,
    )
    assert fit.labels == ["youngs_modulus", "time_offset@across"]
    assert fit.values["time_offset@across"] == pytest.approx(0.004, abs=5e-4)
    assert fit.values["youngs_modulus"] == pytest.approx(6e4, rel=0.01)
    assert fit.converged, fit.reasons


def test_residuals_and_gradients_of_the_sum(three):
    """Tangents, adjoint and differences of the joint cost are one."""
    starts = {"youngs_modulus": 7e4, "poisson_ratio": 0.3, "density@swing": 900.0}
    sharing = share(three, starts, {"poisson_ratio": pl.Prior(0.4, 0.1)}, {})
    parts = [Problem(x.scene, x.seen, own, tangent_tolerance=1e-12)
             for x, own in zip(three, sharing.own, strict=True)]  # fmt: skip
    problem = JointProblem(three, parts, sharing)
    q, loss = sharing.unknowns.start(), Loss(0.01, "squares")
    e = problem.reweighed(problem.evaluate(q, loss, tolerance=1e-12))
    assert problem.weights[1] != 1.0
    e = problem.evaluate(q, loss, tolerance=1e-12)
    found, adjoint = problem.gradient(q, loss)
    assert found.cost == pytest.approx(e.cost, rel=1e-12)
    np.testing.assert_allclose(e.model[1], adjoint, rtol=1e-8)
    d, slope = np.array([0.3, -0.5, 0.4]), []
    for h in (1e-2, 5e-3):
        cost = problem.evaluate(q + h * d, loss, derivatives=False).cost
        slope.append(abs(cost - e.cost - h * adjoint @ d))
    assert np.log2(slope[0] / slope[1]) > 1.9


@pytest.mark.parametrize(
    ("experiments", "unknowns", "words"),
    [
        ([], {"youngs_modulus": 1.0}, "at least one experiment"),
        ([1], {"youngs_modulus": 1.0}, "no pl.Experiment"),
        (["a", "a"], {"youngs_modulus": 1.0}, "called 'a'"),
        (["a", "b"], {"youngs_modulus@c": 1.0}, "no experiment 'c'"),
        (["a", "b"], {"youngs_modulus@a": 1.0}, "Nothing of experiment b"),
        (["a", "b"], {"density": 1.0, "density@a": 1.0, "density@b": 1.0}, "one of its own"),
        (["a", "b"], {"youngs_modulus": np.full(32, 1e4)}, "one experiment at a time"),
    ],
)
def test_bad_lists(three, experiments, unknowns, words):
    seen = three[0].seen
    made = [x if x == 1 else Experiment(SWING, seen, x) for x in experiments]
    with pytest.raises(pl.BadInput, match=words):
        pl.reconstruct(made, unknowns=unknowns, **QUICK)
