"""Noise by camera and depth: found where it is, not where it is not, and worth it."""

from dataclasses import replace

import numpy as np
import pytest

import pliant as pl
from pliant.inverse.measuring.losses import Loss
from pliant.inverse.motion.problem import Problem
from pliant.inverse.parameters.unknowns import UnknownSet, make_unknown
from pliant.observe.depth_noise import DepthNoise, depth_noise

COUNT = 3000


def drawn(sigma, cameras=3, seed=1):
    """Cameras, depths and residuals whose noise is sigma(camera, depth)."""
    rng = np.random.default_rng(seed)
    camera = rng.integers(0, cameras, COUNT)
    depth = rng.uniform(0.5, 2.5, COUNT)
    return camera, depth, sigma(camera, depth) * rng.standard_normal(COUNT)


def test_one_noise_stays_one():
    """Two hundred films with the same noise: chance is to make at most some of a thousand two."""
    wrong = sum(
        depth_noise(*drawn(lambda c, z: np.full(len(c), 2e-3), seed=k), 3) is not None
        for k in range(200)
    )
    assert wrong <= 2


def test_a_noisy_camera_is_found():
    found = depth_noise(*drawn(lambda c, z: np.where(c == 1, 6e-3, 2e-3)), 3)
    assert found is not None
    here = found.sigma(np.arange(3), np.full(3, 1.5))
    assert here == pytest.approx([2e-3, 6e-3, 2e-3], rel=0.12)  # three times 1 / sqrt(0.73 * 1000)


def test_noise_that_grows_with_depth_is_found():
    """The structured-light camera of Nguyen, Izadi and Lovell 2012."""

    def law(c, z):
        return 1.2e-3 + 1.9e-3 * (z - 0.4) ** 2

    found = depth_noise(*drawn(law), 3)
    assert found is not None
    z = np.array([0.8, 1.5, 2.2])
    for camera in range(3):
        assert found.sigma(np.full(3, camera), z) == pytest.approx(law(0, z), rel=0.2)


def test_outliers_are_not_noise():
    camera, depth, r = drawn(lambda c, z: np.full(len(c), 2e-3))
    r[(camera == 0) & (np.random.default_rng(7).random(COUNT) < 0.05)] += 0.5
    found = depth_noise(camera, depth, r, 3)
    assert found is None or found.weights(camera, depth).min() > 0.8


# --- in a fit


@pytest.fixture(scope="module")
def bent():
    """Sixteen cells that sag, seen by three cameras."""
    body = pl.GridBody(pl.shapes.box(center=(0.5, 0.0, 0.0), size=(1.0, 0.5, 0.5)), spacing=0.25)
    scene = pl.Scene(
        body, pl.Material(youngs_modulus=500.0, density=1.0, mass_damping=0.1),
        fixed=[pl.Fixed(pl.shapes.box(center=(0.0, 0.0, 0.0), size=(0.02, 0.6, 0.6)))],
        integrator=pl.Newmark1(dt=0.04, theta=0.6),
    )  # fmt: skip
    ring = pl.ring_of_cameras(scene, 3, width=40, height=40)
    return scene, pl.observe(pl.simulate(scene, 6), ring)


def noisy(clean, factors, seed, noise=4e-3):
    rng = np.random.default_rng(seed)
    frames = []
    for f in clean.frames:
        depth = f.depth + noise * np.asarray(factors)[f.camera] * rng.standard_normal(len(f))
        rays = np.concatenate([clean.cameras[c].rays(f.pixel[f.camera == c]) for c in range(3)])
        eyes = np.stack([clean.cameras[c].position for c in f.camera])
        frames.append(replace(f, depth=depth, points=eyes + depth[:, None] * rays))
    return replace(clean, frames=frames)


def fitted(scene, seen):
    return pl.reconstruct(
        scene, seen, {"youngs_modulus": 510.0}, register=False, search=False,
        discretisation=False, coarse_to_fine=False,
    )  # fmt: skip


def known_sigma(scene, clean, sigmas):
    """Error bar of Young's modulus by the noise that the cameras have: 1 / sqrt(sum J^2 / s^2)."""
    unknowns = UnknownSet((make_unknown("youngs_modulus", 500.0, scene),))
    q = unknowns.start()
    e = Problem(scene, clean, unknowns).evaluate(q, Loss(4e-3, "squares"))
    held = 0.0
    for k, f in e.frames.items():
        s = np.asarray(sigmas)[clean.frames[k].camera[f.usable]]
        held += float((f.J[f.usable, 0] ** 2 / s**2).sum())
    return float(np.abs(unknowns.slopes(q)[0])) / np.sqrt(held)


def test_one_noisy_camera(bent, monkeypatch):
    """Three times the noise in one camera: the error bar that its film has, not one sigma's."""
    scene, clean = bent
    seen = noisy(clean, (3.0, 1.0, 1.0), 0)
    fit = fitted(scene, seen)
    assert fit.noise_by is not None
    here = fit.noise_by.sigma(np.arange(3), fit.noise_by.near)
    assert here == pytest.approx([12e-3, 4e-3, 4e-3], rel=0.15)
    known = known_sigma(scene, clean, (12e-3, 4e-3, 4e-3))
    assert fit.sigma["youngs_modulus"] == pytest.approx(known, rel=0.15)
    assert abs(fit.values["youngs_modulus"] - 500.0) < 4.0 * known
    assert "camera 0" in " ".join(fit.advice)
    assert fit.timings["adjoint_ms"] > 0.0
    monkeypatch.setattr("pliant.inverse.fitting.noise_weights.film_noise", lambda *_: None)
    plain = fitted(scene, seen)
    assert plain.noise_by is None
    assert fit.sigma["youngs_modulus"] < 0.95 * plain.sigma["youngs_modulus"]


@pytest.mark.slow
def test_error_bars_are_those_of_a_study(bent):
    """Sixty films with one noisy camera; their scatter is known to 9 %."""
    scene, clean = bent
    fits = [fitted(scene, noisy(clean, (3.0, 1.0, 1.0), seed)) for seed in range(60)]
    assert all(f.noise_by is not None for f in fits)
    values = np.array([f.values["youngs_modulus"] for f in fits])
    sigma = np.median([f.sigma["youngs_modulus"] for f in fits])
    assert sigma == pytest.approx(values.std(ddof=1), rel=0.15)


def test_one_noise_is_fitted_as_before(bent):
    scene, clean = bent
    fit = fitted(scene, noisy(clean, (1.0, 1.0, 1.0), 3))
    assert fit.noise_by is None
    assert not any("noise is not one" in line for line in fit.advice)


def test_weighed_residuals_keep_their_derivatives(bent):
    """Adjoint and tangent gradients of a weighed film agree to 1e-8."""
    scene, clean = bent
    noise = DepthNoise(
        np.array([6e-3, 2e-3, 1e-3]), np.array([1e-3, 0.0, 2e-3]), np.ones(3), 4.0 * np.ones(3),
        3e-3,
    )  # fmt: skip
    seen = replace(noisy(clean, (3.0, 1.0, 1.0), 0), noise_by=noise)
    unknowns = UnknownSet((
        make_unknown("youngs_modulus", 520.0, scene), make_unknown("depth_offset", 1e-3, scene),
    ))  # fmt: skip
    problem = Problem(scene, seen, unknowns, tangent_tolerance=1e-12)
    q, loss = unknowns.start(), Loss(3e-3, "squares")
    e, adjoint = problem.gradient(q, loss)
    tangent = problem.evaluate(q, loss).model[1]
    assert tangent == pytest.approx(adjoint, rel=1e-8)
    frame = e.frames[2]
    own = Problem(scene, replace(seen, noise_by=None), unknowns).evaluate(q, loss).frames[2]
    f = seen.frames[2]
    assert frame.r == pytest.approx(noise.weights(f.camera, f.depth) * own.r, rel=1e-12)
