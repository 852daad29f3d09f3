"""A film that is off names what it is off by, and one that is not names nothing."""

from dataclasses import replace

import numpy as np
import pytest

import pliant as pl
from pliant.observe.calibration import SURFACE_NUMBERS, Pose

BODY = pl.GridBody(pl.shapes.box(center=(0.2, 0.0, 0.0), size=(0.4, 0.1, 0.1)), 0.05)


def held(reach):
    """A beam whose clamp holds it up to x = reach."""
    return pl.Scene(
        BODY,
        pl.Material(2e4, 0.3, 1000.0, stiffness_damping=0.002),
        gravity=(0.0, -9.81, 2.0),
        fixed=[pl.Fixed(pl.shapes.box(center=(reach - 0.1, 0, 0), size=(0.2, 0.3, 0.3)))],
        integrator=pl.GeneralisedAlpha(dt=0.01),
    )


SCENE = held(0.06)
QUICK = {"discretisation": False, "coarse_to_fine": False, "register": False, "search": False}


@pytest.fixture(scope="module")
def film():
    cameras = pl.ring_of_cameras(SCENE, 3, width=50, height=50)
    return pl.observe(pl.simulate(SCENE, 10), cameras, noise=5e-4, seed=2)


def said(seen, scene=SCENE):
    fit = pl.reconstruct(scene, seen, {"youngs_modulus": 2.2e4}, **QUICK)
    return "\n".join(fit.advice)


def accused(text):
    """What the advice names first as the culprit."""
    lines = [x for x in text.splitlines() if "would alone take" in x]
    return lines[0] if lines else ""


def turned(film, which, numbers):
    pose, cameras = Pose(np.array(numbers), np.zeros(3)), list(film.cameras)
    for k in which:
        c = cameras[k]
        eye, rotation = pose.apply(c.position[None])[0], c.rotation @ pose.rotation.T
        cameras[k] = replace(c, position=eye, rotation=rotation)
    return replace(film, cameras=cameras)


def test_a_good_film_accuses_nobody(film):
    assert "would alone take" not in said(film)
    assert "would alone take" not in said(replace(film, noise=None))


def test_the_clock(film):
    early = replace(film, frames=[replace(f, time=f.time - 0.008) for f in film.frames])
    line = accused(said(early))
    assert "time_offset" in line
    assert "--unknown time_offset" in line
    assert float(line.split("clock ")[1].split(" ")[0]) == pytest.approx(8.0, abs=2.5)


def test_the_poses(film):
    off = (0.002, -0.001, 0.001, 0.004, 0.008, -0.003)
    assert "(recording_pose)" in accused(said(turned(film, range(3), off)))
    assert "(camera_pose.2)" in accused(said(turned(film, [2], off)))


def test_the_shape(film):
    """The body is thicker in its middle and thinner at its ends than its shape, by 1.5 mm."""

    def swollen(frame):
        return frame.depth + 1.5e-3 * np.cos(2.0 * np.pi * frame.points[:, 0] / 0.4)

    wavy = replace(film, frames=[replace(f, depth=swollen(f)) for f in film.frames])
    assert "--unknown surface_offset" in accused(said(wavy))
    start = {"youngs_modulus": 2.2e4, "surface_offset": np.zeros(SURFACE_NUMBERS)}
    fit = pl.reconstruct(SCENE, wavy, start, **QUICK)
    assert fit.values["youngs_modulus"] == pytest.approx(2e4, rel=0.01)


def test_the_depths(film):
    deep = replace(film, frames=[replace(f, depth=f.depth + 0.002) for f in film.frames])
    line = accused(said(deep))
    assert "depth_offset" in line
    assert float(line.split("Depths ")[1].split(" ")[0]) == pytest.approx(-2.0, rel=0.1)


def test_the_clamp(film):
    """The film's clamp reaches 6 mm, an eighth of a cell, farther than the scene's."""
    line = accused(said(film, held(0.054)))
    assert "fixed[0]" in line
    assert float(line.split("(")[1].split(",")[0]) == pytest.approx(6.0, rel=0.5)


def test_tracked_points_and_their_clock():
    at = [[0.4, 0.05, 0.0], [0.35, 0.0, 0.05], [0.2, -0.05, 0.02]]
    seen = pl.TrackedPoints.of(pl.simulate(SCENE, 12), at, noise=1e-4, seed=1)
    assert "time_offset" not in said(seen)
    assert "time_offset" in accused(said(replace(seen, times=seen.times - 0.006)))


MARKERS = [[0.4, 0.05, 0.0], [0.38, 0.0, 0.05], [0.3, -0.05, 0.02], [0.2, 0.05, -0.02]]


def loaded(*masses):
    return replace(SCENE, attached=masses)


@pytest.mark.slow
def test_the_masses_of_markers():
    """Four of 40 g on a beam of 4 kg, which the fitted scene knows nothing of."""
    truth = loaded(*(pl.PointMass(0.04, tuple(p)) for p in MARKERS))
    seen = pl.TrackedPoints.of(pl.simulate(truth, 25), MARKERS, noise=2e-5, seed=1)
    line = accused(said(seen))
    assert "at each of the 4 tracked points (markers)" in line
    assert "Weigh one" in line
    assert float(line.split("asses of ")[1].split(" ")[0]) == pytest.approx(40.0, rel=0.3)
    told = accused(said(seen, truth))
    assert told == ""


def test_an_attached_mass_that_is_wrong():
    tip = (0.4, 0.0, 0.0)
    seen = pl.TrackedPoints.of(
        pl.simulate(loaded(pl.PointMass(0.5, tip)), 25), MARKERS, noise=2e-5, seed=1
    )
    line = accused(said(seen, loaded(pl.PointMass(0.35, tip))))
    assert "instead of 350 g (attached[0])" in line
    assert float(line.split("mass of ")[1].split(" ")[0]) == pytest.approx(500.0, rel=0.15)


@pytest.mark.parametrize("seen_by", [pytest.param("film", marks=pytest.mark.slow), "markers"])
def test_something_at_the_far_end(seen_by):
    """A plate of 200 g on the end of a beam of 4 kg."""
    cameras = pl.ring_of_cameras(SCENE, 3, width=50, height=50)
    end = pl.shapes.box(center=(0.4, 0.0, 0.0), size=(0.002, 0.2, 0.2))
    run = pl.simulate(loaded(pl.PointMass(0.2, region=end)), 25)
    if seen_by == "film":
        seen = pl.observe(run, cameras, noise=2e-4, seed=2)
    else:
        seen = pl.TrackedPoints.of(run, MARKERS, noise=2e-5, seed=1)
    line = accused(said(seen))
    assert "about (0.4, 0, 0) m" in line
    assert "Weigh it" in line
    assert float(line.split(" g +-")[0].split()[-1]) == pytest.approx(200.0, rel=0.3)
