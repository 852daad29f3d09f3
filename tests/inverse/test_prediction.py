"""What a fit foretells of a recording that it never saw."""

from dataclasses import replace

import numpy as np
import pytest
from test_joint_fits import ACROSS, AT, QUICK, SWING, beam, static, tracked

import pliant as pl
from pliant.inverse.fitting.known_material import KnownMaterial
from pliant.inverse.measuring.losses import Loss
from pliant.inverse.motion.problem import Problem
from pliant.inverse.parameters.unknowns import UnknownSet, make_unknown

NOISE = 4e-4


@pytest.fixture(scope="module")
def fit():
    """Of the swing: its modulus and the tilt of gravity, which is not the material's."""
    seen = tracked(SWING, noise=2e-4)
    return pl.reconstruct(
        SWING, seen, {"youngs_modulus": 7e4, "time_offset": 0.0}, discretisation=False
    )


def test_a_true_material_foretells(fit):
    """Residuals are the noise; the band is what the error bar moves."""
    other = tracked(ACROSS, noise=NOISE, seed=4)
    found = pl.predict(fit, ACROSS, other)
    assert list(found.values) == ["youngs_modulus"]
    assert found.covered
    assert found.agrees
    assert found.rms == pytest.approx(NOISE, rel=0.15)
    assert 0.9 < found.within <= 1.0
    sigma = fit.body_sigma("youngs_modulus")
    value = fit.values["youngs_modulus"]
    up, down = (
        Problem(ACROSS, other, UnknownSet((make_unknown("youngs_modulus", v, ACROSS),)))
        .evaluate(np.log([v]), Loss(1.0), derivatives=False)
        .usable
        for v in (value + sigma, value - sigma)
    )
    assert found.band == pytest.approx(np.sqrt(np.mean((up - down) ** 2)) / 2.0, rel=0.02)
    assert found.expected == pytest.approx(np.hypot(NOISE, found.band))
    own, error = found.alone["youngs_modulus"]
    assert abs(own - 6e4) < 3.5 * error
    assert found.courses is not None
    shape = (len(other.times), len(AT), 3)
    assert found.courses.foretold.shape == found.courses.band.shape == shape
    assert "They lie within" in str(found)


def test_another_material_is_told(fit):
    """A body a third stiffer: far outside the band, and its own modulus is told."""
    stiff = beam(ACROSS.gravity, material=replace(ACROSS.material, youngs_modulus=8e4))
    found = pl.predict(fit, ACROSS, tracked(stiff, noise=NOISE, seed=4))
    assert not found.covered
    assert not found.agrees
    assert found.alone["youngs_modulus"][0] == pytest.approx(8e4, rel=0.1)
    assert "do NOT lie within" in str(found)


def test_statics_and_wide_error_bars(fit):
    """The same sag with a material known to a third only: the band covers it."""
    scene = static(beam((0.0, -9.81, 0.0)))
    soft = replace(scene, material=replace(scene.material, youngs_modulus=7.5e4))
    seen = tracked(soft, 0, noise=1e-4, seed=2)
    assert not pl.predict(fit, scene, seen).covered
    wide = KnownMaterial({"youngs_modulus": 6e4}, np.array([[2e4**2]]), 1e-4)
    found = pl.predict(wide, scene, seen)
    assert found.covered
    assert found.agrees
    assert found.band > 10.0 * found.noise


def test_what_is_not_known_of_the_recording_is_fitted(fit):
    late = tracked(ACROSS, noise=NOISE, seed=4)
    late = replace(late, times=late.times - 0.005)
    assert not pl.predict(fit, ACROSS, late).covered
    found = pl.predict(fit, ACROSS, late, unknowns={"time_offset": 0.0})
    assert found.covered
    assert found.own["time_offset"] == pytest.approx(0.005, abs=5e-4)


def test_nothing_to_predict_with():
    seen = tracked(SWING, noise=2e-4)
    fit = pl.reconstruct(SWING, seen, {"time_offset": 0.0}, **QUICK)
    with pytest.raises(pl.BadInput, match="nothing of the material"):
        pl.predict(fit, SWING, seen)
    law = KnownMaterial({"law.c1": 1.0}, np.eye(1), 1e-4)
    with pytest.raises(pl.BadInput, match="law"):
        pl.predict(law, SWING, seen)
