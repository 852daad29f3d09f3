"""Tracked points: gaps, offsets that turn, unknown places, and fits of them."""

from dataclasses import replace

import numpy as np
import pytest

import pliant as pl
from pliant.inverse.measuring.losses import Loss
from pliant.inverse.measuring.track_cost import TrackMeasure
from pliant.observe.calibration import rotation
from pliant.observe.tracks import rigid_fit

BODY = pl.GridBody(pl.shapes.box(center=(0.2, 0.0, 0.0), size=(0.4, 0.1, 0.1)), 0.05)
SCENE = pl.Scene(
    BODY,
    pl.Material(2e4, 0.3, 1000.0, stiffness_damping=0.002),
    gravity=(0.0, -9.81, 2.0),
    fixed=[pl.Fixed(pl.shapes.box(center=(0, 0, 0), size=(0.02, 0.2, 0.2)))],
    integrator=pl.GeneralisedAlpha(dt=0.01),
)
AT = np.array([[0.4, 0.05, 0.0], [0.35, 0.0, 0.05], [0.2, -0.05, 0.02], [0.4, -0.02, -0.05]])
QUICK = {"discretisation": False, "coarse_to_fine": False}


@pytest.fixture(scope="module")
def swing():
    return pl.simulate(SCENE, 12)


def in_sigmas(fit, **truth):
    return {k: (fit.values[k] - v) / fit.sigma[k] for k, v in truth.items()}


def test_a_marker_beside_the_body_turns_with_it():
    """A rigid turn of all nodes turns the marker with them, however far off it sits."""
    R, shift = rotation(np.array([0.4, -1.0, 2.2])), np.array([0.1, -0.2, 0.3])
    at = np.array([[0.4, 0.09, 0.0], [0.3, 0.0, 0.0]])
    seen = pl.TrackedPoints([0.0], at[None], at)
    u = BODY.nodes @ R.T + shift - BODY.nodes
    found = TrackMeasure(SCENE, seen).positions(u)
    np.testing.assert_allclose(found, at @ R.T + shift, atol=1e-12)


def test_stated_offsets_add_to_the_material_point():
    at, post = np.array([[0.4, 0.05, 0.0]]), np.array([[0.0, 0.02, 0.0]])
    seen = pl.TrackedPoints([0.0], (at + post)[None], at, offset=post)
    still = np.zeros((len(BODY.nodes), 3))
    assert TrackMeasure(SCENE, seen).positions(still) == pytest.approx(at + post)


def test_gaps_count_nothing_and_noise_weighs(swing):
    clean = pl.TrackedPoints.of(swing, AT)
    gaps = clean.positions.copy()
    gaps[3, 1:3] = np.nan
    gaps[5] = np.nan
    gaps[:, 0] += 2e-3  # a point that is as far off as its sigma says
    seen = replace(clean, positions=gaps, sigma=np.array([2e-3, 1e-3, 1e-3, 1e-3]))
    measure = TrackMeasure(SCENE, seen)
    assert [k for k, _ in measure.times] == [0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11]
    u = swing.displacements[4]
    r = measure.linear(3, (u, 0 * u), Loss(1e-3)).r
    assert r.reshape(3, 2) == pytest.approx(np.array([[-1e-3, 0.0]] * 3), abs=1e-12)


def test_places_to_within_their_sigma(swing):
    """Markers 3 mm from where they are said to be: found, and the modulus with them."""
    rng = np.random.default_rng(5)
    wrong = 3e-3 * rng.standard_normal(AT.shape)
    seen = replace(pl.TrackedPoints.of(swing, AT, noise=5e-5), at=AT - wrong, at_sigma=3e-3)
    fit = pl.reconstruct(SCENE, seen, {"youngs_modulus": 2.4e4}, **QUICK)
    found = np.array([fit.values[f"tracked_places[{i}]"] for i in range(AT.size)])
    assert np.abs(found - wrong.reshape(-1)).max() < 1e-3
    assert fit.values["youngs_modulus"] == pytest.approx(2e4, rel=0.01)
    blind = pl.reconstruct(SCENE, replace(seen, at_sigma=None), {"youngs_modulus": 2.4e4}, **QUICK)
    off = abs(blind.values["youngs_modulus"] - 2e4)
    assert off > 3.0 * abs(fit.values["youngs_modulus"] - 2e4)


def test_outliers_do_not_move_a_fit(swing):
    """Two labels swapped in a frame, and a point that jumps away."""
    seen = pl.TrackedPoints.of(swing, AT, noise=2e-4, seed=1)
    x = seen.positions.copy()
    x[6, [0, 1]] = x[6, [1, 0]]
    x[9, 2] += 0.2
    fit = pl.reconstruct(SCENE, replace(seen, positions=x), {"youngs_modulus": 2.4e4},
                         loss="tukey", **QUICK)  # fmt: skip
    assert abs(in_sigmas(fit, youngs_modulus=2e4)["youngs_modulus"]) < 3.0


def test_clock_and_pose_are_found(swing):
    """A recording stamped 4 ms early, shifted and turned; priors are the calibration's."""
    seen = pl.TrackedPoints.of(swing, AT, noise=1e-4, seed=2)
    turn, shift = rotation(np.array([0.0, 0.01, -0.02])), np.array([0.002, -0.001, 0.003])
    off = replace(seen.moved(turn, shift), times=seen.times - 0.004)
    unknowns = {"youngs_modulus": 2.4e4, "time_offset": 0.0, "recording_pose": np.zeros(6)}
    priors = {f"recording_pose.{a}": pl.Prior(0.0, 0.005) for a in "xyz"}
    fit = pl.reconstruct(SCENE, off, unknowns, priors=priors, **QUICK)
    assert fit.converged, fit.reasons
    found = in_sigmas(fit, youngs_modulus=2e4, time_offset=0.004)
    assert max(map(abs, found.values())) < 3.0
    assert fit.sigma["time_offset"] < 1e-3
    turned = [fit.values[f"recording_pose.turn_{a}"] for a in "xyz"]
    assert turned == pytest.approx([0.0, -0.01, 0.02], abs=2e-3)


def test_a_plane_body_is_tracked_too():
    body = pl.GridBody(pl.shapes.box(center=(0.2, 0.0), size=(0.4, 0.1)), 0.05)
    held = pl.shapes.box(center=(0, 0), size=(0.02, 0.2))
    scene = pl.Scene(body, SCENE.material, gravity=(0, -9.81), fixed=[pl.Fixed(held)])
    seen = pl.TrackedPoints.of(pl.simulate(scene, 6), [[0.4, 0.0], [0.3, 0.05]], noise=1e-5)
    fit = pl.reconstruct(scene, seen, {"youngs_modulus": 2.4e4, "time_offset": 0.0}, **QUICK)
    assert abs(in_sigmas(fit, youngs_modulus=2e4)["youngs_modulus"]) < 3.0
    with pytest.raises(pl.BadInput, match="recording_pose"):
        pl.reconstruct(scene, seen, {"recording_pose": np.zeros(6)})


def test_rigid_fit_and_parts():
    x = np.random.default_rng(0).standard_normal((6, 3))
    R, t = rotation(np.array([2.0, 0.5, -1.0])), np.array([1.0, 2.0, 3.0])
    turn, shift = rigid_fit(x, x @ R.T + t)
    assert turn == pytest.approx(R)
    assert shift == pytest.approx(t)
    seen = pl.TrackedPoints(np.arange(5.0), np.zeros((5, 2, 3)), names=("a", "b"), sigma=[1, 2])
    part = seen.only("b").between(2.0, 3.0)
    assert part.names == ("b",)
    assert part.times.tolist() == [0.0, 1.0]
    assert part.noise == 2.0


def test_bad_tracks_are_one_sentence():
    x = np.zeros((3, 2, 3))
    for wrong, match in [
        ({"times": [0, 2, 1], "positions": x}, "ascend"),
        ({"times": [0, 1], "positions": x}, "times"),
        ({"times": [0, 1, 2], "positions": x, "names": ("a", "a")}, "different names"),
        ({"times": [0, 1, 2], "positions": x, "at": np.zeros((3, 3))}, "`at`"),
        ({"times": [0, 1, 2], "positions": x, "sigma": -1.0}, "sigma"),
        ({"times": [0, 1, 2], "positions": np.nan * x}, "without one position"),
    ]:
        with pytest.raises(pl.BadInput, match=match):
            pl.TrackedPoints(**wrong)
    far = pl.TrackedPoints([0.0], np.full((1, 1, 3), 50.0))
    with pytest.raises(pl.BadInput, match="units"):
        TrackMeasure(SCENE, far)
