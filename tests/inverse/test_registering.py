"""A film that lies beside the shape is laid onto it first; one in place is left there."""

from dataclasses import replace

import numpy as np
import pytest

import pliant as pl
from pliant.inverse.fitting.registering import register
from pliant.inverse.parameters.unknowns import UnknownSet, make_unknown
from pliant.observe.calibration import Pose

BODY = pl.GridBody(pl.shapes.box(center=(0.2, 0.0, 0.0), size=(0.4, 0.1, 0.1)), 0.05)
SCENE = pl.Scene(
    BODY,
    pl.Material(2e4, 0.3, 1000.0, stiffness_damping=0.002),
    gravity=(0.0, -9.81, 2.0),
    fixed=[pl.Fixed(pl.shapes.box(center=(0, 0, 0), size=(0.02, 0.2, 0.2)))],
    integrator=pl.GeneralisedAlpha(dt=0.01),
)
QUICK = {"discretisation": False, "coarse_to_fine": False}
OFF = np.array([0.015, -0.01, 0.008, 0.03, -0.05, 0.02])


def unknowns(scene=SCENE, **starts):
    return UnknownSet(tuple(make_unknown(n, v, scene) for n, v in starts.items()))


@pytest.fixture(scope="module")
def film():
    cameras = pl.ring_of_cameras(SCENE, 3, width=50, height=50)
    return pl.observe(pl.simulate(SCENE, 10), cameras, noise=5e-4, seed=2, outliers=0.05)


def beside(film, numbers=OFF):
    """The film as if its cameras had been measured wrongly: all moved by a pose."""
    pose, cameras = Pose(np.array(numbers), np.array([0.2, 0.0, 0.0])), []
    for c in film.cameras:
        eye, turned = pose.apply(c.position[None])[0], c.rotation @ pose.rotation.T
        cameras.append(replace(c, position=eye, rotation=turned))
    frames = [replace(f, points=pose.apply(f.points)) for f in film.frames]
    return replace(film, cameras=cameras, frames=frames)


def test_a_film_in_place_is_left_there(film):
    assert register(SCENE, film, unknowns(youngs_modulus=3e4)) is None
    clean = pl.observe(pl.simulate(SCENE, 2), film.cameras)
    assert register(SCENE, clean, unknowns(youngs_modulus=3e4)) is None


def test_a_film_beside_the_shape_is_laid_onto_it(film):
    """With a twentieth of the points wild; what is left of 20 mm and 3 degrees is noise."""
    off = beside(film)
    found = register(SCENE, off, unknowns(youngs_modulus=3e4))
    assert found is not None
    points = found.apply(off).frames[5].points - film.frames[5].points
    assert np.abs(np.median(points, axis=0)).max() < 3e-4
    assert np.linalg.norm(found.numbers[3:]) == pytest.approx(np.linalg.norm(OFF[3:]), abs=3e-3)
    assert found.before > 5 * found.after
    camera = found.apply(off).cameras[1]
    assert camera.rotation == pytest.approx(film.cameras[1].rotation, abs=4e-3)


def test_a_fit_tells_what_it_moved(film):
    start = {"youngs_modulus": 2.3e4}
    few = replace(film, frames=film.frames[::3])
    fit = pl.reconstruct(SCENE, beside(few), start, loss="tukey", **QUICK)
    assert "laid onto the shape" in fit.advice[0]
    assert fit.values["youngs_modulus"] == pytest.approx(2e4, rel=0.03)
    left = pl.reconstruct(SCENE, beside(few), start, register=False, max_iterations=1, **QUICK)
    assert left.registration is None
    assert "laid onto" not in "".join(left.advice)


def test_what_an_unknown_can_do_is_left_to_it():
    """A thrown body is 5 mm on at the first frame: with its velocity unknown nothing is moved."""
    scene = replace(SCENE, fixed=(), initial_velocity=(0.5, 0.0, 0.0))
    cameras = pl.ring_of_cameras(scene, 3, width=50, height=50)
    film = pl.observe(pl.simulate(scene, 2), cameras, noise=5e-4, seed=1)
    still = replace(scene, initial_velocity=(0.0, 0.0, 0.0))
    thrown = unknowns(still, initial_velocity=(0.0, 0.0, 0.0))
    assert register(still, film, thrown) is None
    assert register(still, film, unknowns(still, youngs_modulus=2e4)) is not None


def test_what_a_pose_does_not_explain_is_left(film):
    """Depths that are a per cent too long are no pose."""
    deep = replace(film, frames=[replace(f, depth=1.02 * f.depth) for f in film.frames])
    assert register(SCENE, deep, unknowns(youngs_modulus=3e4)) is None
    assert register(SCENE, deep, unknowns(youngs_modulus=3e4, depth_scale=1.0)) is None
    both = register(SCENE, beside(deep), unknowns(youngs_modulus=3e4, depth_scale=1 / 1.02))
    assert both is not None


def test_late_frames_and_other_recordings_are_left(film):
    late = replace(film, frames=film.frames[8:])
    assert register(SCENE, beside(late), unknowns(youngs_modulus=3e4)) is None
    tracks = pl.TrackedPoints([0.0], [[[0.4, 0.0, 0.0]]])
    assert register(SCENE, tracks, unknowns(youngs_modulus=3e4)) is None
    free = unknowns(youngs_modulus=3e4, recording_pose=np.zeros(6))
    assert register(SCENE, beside(film), free) is None


def test_a_ball_has_no_turn():
    ball = pl.GridBody(pl.shapes.sphere(center=(0, 0, 0), radius=0.1), 0.04)
    scene = pl.Scene(ball, SCENE.material, gravity=(0, 0, 0))
    cameras = pl.ring_of_cameras(scene, 3, width=40, height=40)
    film = pl.observe(pl.simulate(scene, 1), cameras, noise=5e-4, seed=1)
    moved = beside(film, (0.01, 0.02, -0.01, 0, 0, 0))
    found = register(scene, moved, unknowns(scene, youngs_modulus=2e4))
    assert found is not None
    assert found.numbers[:3] == pytest.approx([-0.01, -0.02, 0.01], abs=5e-4)
    assert np.abs(found.numbers[3:]).max() < 0.02
