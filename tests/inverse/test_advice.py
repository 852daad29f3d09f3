"""What a fit says about what it cannot see, from covariances that are given."""

from dataclasses import replace

import numpy as np
import pytest

import pliant as pl
from pliant.inverse.fitting.identifiability import advise
from pliant.inverse.measuring.losses import Loss
from pliant.inverse.measuring.measures import FrameMisfit
from pliant.inverse.motion.evaluation import Evaluation
from pliant.inverse.motion.problem import Problem
from pliant.inverse.parameters.unknowns import UnknownSet, make_unknown

SCENE = pl.Scene(
    pl.GridBody(pl.shapes.box(center=(0, 0.5, 0), size=(0.5, 1, 0.5)), 0.25),
    pl.Material(2000.0, 0.3, 1.0, mass_damping=0.1, stiffness_damping=0.05),
    obstacles=[pl.Plane()],
    integrator=pl.Newmark2(0.02),
)
STARTS = {
    "youngs_modulus": 2000.0, "density": 1.0, "mass_damping": 0.1, "gravity": (0.0, -9.81, 0.0),
    "ground_offset": 0.0, "initial_velocity": (0.0, 0.0, 0.0),
}  # fmt: skip


@pytest.fixture(scope="module")
def problem():
    members = tuple(make_unknown(n, v, SCENE) for n, v in STARTS.items())
    return Problem(SCENE, pl.NodeMotions.of(pl.simulate(SCENE, 5)), UnknownSet(members))


def said(problem, noise=1e-3, r=None, kind="huber", **sigma) -> str:
    """Advice for standard deviations of the free coordinates by label, 0.1 % unless told."""
    labels = problem.unknowns.labels
    deviations = np.full(len(labels), 1e-3)
    for label, value in sigma.items():
        deviations[labels.index(label.replace("__", "."))] = value
    r = np.zeros(0) if r is None else r
    frames = {0: FrameMisfit(r, np.zeros((len(r), 0)), np.ones(len(r), bool))}
    q = problem.unknowns.start()
    e = Evaluation(q, Loss(noise, kind), frames, 1)
    return "\n".join(advise(problem, q, e, np.diag(deviations**2), noise))


def test_all_seen(problem):
    """Components that are zero are judged by the vector's length or the body's size."""
    assert said(problem) == ""
    assert said(problem, gravity__x=0.05, ground_offset=0.02) == ""


def test_roughly_and_hardly(problem):
    assert "roughly, to one sigma: mass_damping (8 %)" in said(problem, mass_damping=0.08)
    text = said(problem, gravity__x=0.5, initial_velocity__x=8.0)
    assert "gravity.x (5 %)" in text
    assert "hardly see initial_velocity.x: 0 +- 8" in text


def test_residuals_with_a_pattern(problem):
    """A third of the square is a wave over the picture; in another order the same is noise."""
    rng = np.random.default_rng(2)
    r = 1e-3 * (rng.standard_normal(4000) + np.sin(np.arange(4000) / 40.0))
    assert "not noise-like: neighbouring points are off together, by 0.7" in said(problem, r=r)
    assert said(problem, r=rng.permutation(r)) == ""
    assert said(problem, r=r[:40]) == ""  # too few to tell


@pytest.mark.slow
def test_wrong_gravity_is_noticed():
    """The recording does not tell its noise, so the size of the residuals tells nothing."""
    shape = pl.shapes.torus(major=1.0, minor=0.35)
    scene = pl.Scene(
        pl.GridBody(shape, 0.25), pl.Material(2000.0, 0.3, 3.0, mass_damping=0.1),
        gravity=(4.0, -9.0, 3.0), integrator=pl.Newmark1(dt=0.02, theta=0.6),
        fixed=[pl.Fixed(pl.shapes.box(center=(0, 1.35, 0), size=(1, 0.3, 1)))],
    )  # fmt: skip
    cameras = pl.ring_of_cameras(scene, 4, width=40, height=40)
    seen = pl.observe(pl.simulate(scene, 15), cameras, noise=0.0125, seed=3, frames=[5, 10, 15])
    seen = replace(seen, noise=None)
    start = {"youngs_modulus": 2200.0}
    quick = {"search": False, "discretisation": False}
    right = pl.reconstruct(scene, seen, start, **quick)
    wrong = pl.reconstruct(replace(scene, gravity=(2.0, -9.0, 5.0)), seen, start, **quick)
    assert not any("noise-like" in line for line in right.advice)
    assert any("noise-like" in line for line in wrong.advice)


def test_strangers_among_the_points(problem):
    rng = np.random.default_rng(1)
    r = 1e-3 * rng.standard_normal(1000)
    assert said(problem, r=r) == ""
    r[:50] = 0.03
    assert "5 % of the points" in said(problem, r=r)
    assert "left out." in said(problem, r=r, kind="tukey")
    r[:500] = 0.03
    assert "do not fit everywhere" in said(problem, r=r)


def test_a_modulus_is_as_right_as_the_density_given():
    """Gravity and inertia alone: what is seen is E / rho; a known force tells them apart."""
    seen = pl.NodeMotions.of(pl.simulate(SCENE, 5))

    def problem_of(scene, *names):
        members = tuple(make_unknown(n, STARTS[n], scene) for n in names)
        return Problem(scene, seen, UnknownSet(members))

    alone = said(problem_of(SCENE, "youngs_modulus"))
    assert "Only youngs_modulus / density is seen, 2000 per unit density" in alone
    assert said(problem_of(SCENE, "youngs_modulus", "density")) == ""
    assert said(problem_of(SCENE, "mass_damping")) == ""
    pushed = replace(SCENE, loads=[pl.PointLoad((0.0, 1.0, 0.0), (0.1, 0.0, 0.0))])
    assert said(problem_of(pushed, "youngs_modulus")) == ""
