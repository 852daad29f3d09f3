"""The main job on a small torus: what is recovered, how sure, and what is said of the rest."""

from dataclasses import replace

import numpy as np
import pytest

import pliant as pl
from pliant.inverse.measuring.costs import depth_residuals, foot_residuals, mean_curvature
from pliant.inverse.motion.problem import Problem
from pliant.inverse.parameters.unknowns import UnknownSet
from pliant.observe.calibration import Sight
from pliant.observe.observations import Frame
from pliant.observe.raycast import SurfaceQueries

BODY = pl.GridBody(pl.shapes.torus(major=1.0, minor=0.35), 0.2)
SCENE = pl.Scene(
    BODY,
    pl.Material(2000.0, 0.3, 3.0, mass_damping=0.1, stiffness_damping=0.01),
    gravity=(4.0, -9.0, 3.0),
    fixed=[pl.Fixed(pl.shapes.box(center=(0, 1.35, 0), size=(1, 0.3, 1)))],
    integrator=pl.Newmark1(0.02, 0.6),
)
STEPS = 20
START = {"youngs_modulus": 2200.0, "poisson_ratio": 0.32}
TRUTH = {"youngs_modulus": 2000.0, "poisson_ratio": 0.3}


@pytest.fixture(scope="module")
def swing():
    return pl.simulate(SCENE, STEPS)


@pytest.fixture(scope="module")
def cameras():
    return pl.ring_of_cameras(SCENE, 6, width=60, height=60)


@pytest.mark.slow
def test_exact_without_noise(swing, cameras):
    seen = pl.observe(swing, cameras)
    fit = pl.reconstruct(SCENE, seen, START, discretisation=False)
    assert fit.converged
    for name, value in TRUTH.items():
        assert fit.values[name] == pytest.approx(value, rel=1e-3)


def test_noisy_depth_within_three_sigma(swing, cameras):
    seen = pl.observe(swing, cameras, noise=0.5 * BODY.spacing, seed=1)
    fit = pl.reconstruct(SCENE, seen, START)
    for name, value in TRUTH.items():
        assert abs(fit.values[name] - value) < 3.0 * fit.sigma[name]
        assert 0.0 < fit.sigma[name] < 0.15 * value
    assert fit.rms == pytest.approx(0.5 * BODY.spacing, rel=0.05)


@pytest.mark.slow  # test_honest_fits has one from farther away
def test_far_start(swing, cameras):
    seen = pl.observe(swing, cameras, noise=0.1 * BODY.spacing, seed=2)
    fit = pl.reconstruct(SCENE, seen, {"youngs_modulus": 500.0, "poisson_ratio": 0.45})
    assert fit.iterations <= 12
    for name, value in TRUTH.items():
        assert abs(fit.values[name] - value) < 3.0 * fit.sigma[name]


@pytest.mark.slow
def test_points_without_cameras(swing, cameras):
    seen = pl.observe(swing, cameras, noise=0.1 * BODY.spacing, seed=3, kind="points")
    fit = pl.reconstruct(SCENE, seen, {"youngs_modulus": 2200.0})
    assert fit.values["youngs_modulus"] == pytest.approx(2000.0, rel=0.01)


@pytest.mark.slow
def test_frames_between_the_steps(swing, cameras):
    """Observed at twice the step of the simulation: every other frame is interpolated."""
    fine = pl.simulate(replace(SCENE, integrator=pl.Newmark1(0.01, 0.6)), 2 * STEPS - 1)
    seen = pl.observe(fine, cameras)
    fit = pl.reconstruct(SCENE, seen, {"youngs_modulus": 2200.0})
    assert fit.values["youngs_modulus"] == pytest.approx(2000.0, rel=0.03)


@pytest.mark.slow
def test_modulus_and_density_are_seen_as_a_ratio(swing, cameras):
    seen = pl.observe(swing, cameras, noise=0.1 * BODY.spacing, seed=4)
    fit = pl.reconstruct(SCENE, seen, {"youngs_modulus": 2200.0, "density": 3.0})
    assert any("ratio" in line and "density" in line for line in fit.advice)
    ratio = fit.values["youngs_modulus"] / fit.values["density"]
    assert ratio == pytest.approx(2000.0 / 3.0, rel=0.02)


@pytest.mark.slow
def test_gravity(swing, cameras):
    seen = pl.observe(swing, cameras, noise=0.1 * BODY.spacing, seed=5)
    fit = pl.reconstruct(SCENE, seen, {"gravity": (3.0, -9.5, 2.5)})
    for axis, value in zip("xyz", SCENE.gravity, strict=True):
        sigma = fit.sigma[f"gravity.{axis}"]
        assert abs(fit.values[f"gravity.{axis}"] - value) < max(3.5 * sigma, 1e-3)


def test_wrong_gradients_are_refused(swing, cameras, monkeypatch):
    """A fit compares tangent and adjoint over the first frame before it starts."""
    seen = pl.observe(swing, cameras, noise=0.0, frames=[5])
    right = Problem.gradient

    def wrong(self, *arguments, **options):
        cost, g, *rest = right(self, *arguments, **options)
        return (cost, 1.01 * g, *rest)

    monkeypatch.setattr(Problem, "gradient", wrong)
    with pytest.raises(pl.PliantError, match="a fit would go astray"):
        pl.reconstruct(SCENE, seen, START)


def test_gradients_wrong_alike_are_refused(swing, cameras, monkeypatch):
    """Tangent and adjoint may share a mistake; the difference of two runs does not."""
    seen = pl.observe(swing, cameras, noise=0.0, frames=[5])
    right = UnknownSet.apply

    def farther(self, scene, q):
        return right(self, scene, self.start() + 1.5 * (q - self.start()))

    monkeypatch.setattr(UnknownSet, "apply", farther)
    with pytest.raises(pl.PliantError, match=r"difference of two runs differ by 3\.3e-01"):
        pl.reconstruct(SCENE, seen, START)


def test_what_nothing_shows_is_said(cameras, monkeypatch):
    """A body in free fall: the gradients are rounding, however they differ no reason to refuse."""
    right = Problem.gradient

    def doubled(self, *arguments, **options):
        cost, g, *rest = right(self, *arguments, **options)
        return (cost, 2.0 * g, *rest)

    monkeypatch.setattr(Problem, "gradient", doubled)
    scene = pl.Scene(BODY, SCENE.material, integrator=SCENE.integrator)
    seen = pl.observe(pl.simulate(scene, 4), cameras[:2], noise=0.01, seed=1)
    fit = pl.reconstruct(scene, seen, {"youngs_modulus": 2200.0})
    assert "do not see youngs_modulus at all" in fit.advice[0]


def test_points_of_a_plane_body_are_refused():
    disc = pl.GridBody(pl.shapes.circle(radius=1.0), 0.25)
    none = np.zeros(0)
    seen = pl.Observations([Frame(0.1, np.zeros((3, 2)), none, none, none)])
    with pytest.raises(pl.PliantError, match="NodeMotions or LevelSets"):
        pl.reconstruct(pl.Scene(disc, gravity=(0, -9)), seen, {"youngs_modulus": 1e3})


def test_empty_observations_are_refused(swing):
    nothing = pl.Observations([])
    with pytest.raises(pl.BadInput, match="no points"):
        pl.reconstruct(SCENE, nothing, START)
    with pytest.raises(pl.BadInput, match="youngs_modulus"):
        pl.reconstruct(SCENE, nothing, {"young_modulus": 1.0})


@pytest.mark.parametrize("kind", ["depth", "foot"])
def test_derivative_of_the_residuals(swing, cameras, kind):
    """r along a smooth motion: the remainder falls with the square of the step."""
    seen = pl.observe(swing, cameras, noise=0.02, seed=6, frames=[STEPS])
    frame = seen.frames[0]
    points = swing.surface(STEPS)
    queries = SurfaceQueries(points, BODY.surface.facets)
    motion = np.stack(
        [np.sin(points[:, 1]), np.cos(2 * points[:, 0]), np.sin(points[:, 2] + 1)], axis=1
    )

    def residuals(e):
        queries.move(points + e * motion)
        if kind == "depth":
            return depth_residuals(queries, Sight.of(frame, seen.cameras), 0.2)
        return foot_residuals(queries, frame.points, None, 0.0)

    base = residuals(0.0)
    slope = base.along(motion)
    rest = []
    for e in (4e-4, 2e-4):
        moved = residuals(e)
        same = (moved.corners == base.corners).all(axis=1) & base.usable & moved.usable
        rest.append(np.median(np.abs(moved.r - base.r - e * slope)[same]))
    assert np.log2(rest[0] / rest[1]) > 1.8


def test_mean_curvature_of_a_torus():
    """Its integral over the surface is 2 pi^2 times the major radius."""
    body = pl.GridBody(pl.shapes.torus(major=1.0, minor=0.35), 0.07)
    x = body.surface.positions(body.nodes)
    found = mean_curvature(x, body.surface.facets)
    total = found @ body.surface.point_areas(x)
    assert total == pytest.approx(2 * np.pi**2, rel=0.02)
    c = (np.hypot(x[:, 0], x[:, 1]) - 1.0) / 0.35
    exact = (1 + 0.7 * c) / (0.7 * (1 + 0.35 * c))
    assert np.abs(found / exact - 1.0).max() < 0.2
