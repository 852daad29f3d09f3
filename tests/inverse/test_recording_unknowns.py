"""Unknowns of a recording: their derivatives, and that a fit finds them."""

from dataclasses import replace

import numpy as np
import pytest

import pliant as pl
from pliant.inverse.measuring.losses import Loss
from pliant.inverse.motion.linearised import Linearised
from pliant.inverse.motion.moment import Moment
from pliant.inverse.motion.problem import Problem
from pliant.inverse.parameters.unknowns import UnknownSet, make_unknown
from pliant.observe.calibration import SURFACE_NUMBERS, Pose, left_jacobian, rotation

BODY = pl.GridBody(pl.shapes.box(center=(0.2, 0.0, 0.0), size=(0.4, 0.1, 0.1)), 0.05)
SCENE = pl.Scene(
    BODY,
    pl.Material(2e4, 0.3, 1000.0, stiffness_damping=0.002),
    gravity=(0.0, -9.81, 2.0),
    fixed=[pl.Fixed(pl.shapes.box(center=(0, 0, 0), size=(0.02, 0.2, 0.2)))],
    integrator=pl.GeneralisedAlpha(dt=0.01),
    tolerance=1e-12,
)
STEPS = 4
AT = np.array([[0.4, 0.05, 0.0], [0.35, 0.0, 0.06], [0.2, -0.05, 0.02]])
"""One on the surface, one 10 mm off it, one on the other side."""

WRONG = {
    "time_offset": 0.0033,
    "recording_pose": (0.01, -0.006, 0.004, 0.05, -0.03, 0.04),
    "camera_pose.1": (-0.004, 0.003, 0.002, 0.02, 0.03, -0.01),
    "depth_scale": 1.01,
    "depth_offset": -0.004,
}
"""Where the derivatives are taken: nothing is zero."""


@pytest.fixture(scope="module")
def swing():
    return pl.simulate(SCENE, STEPS)


@pytest.fixture(scope="module")
def film(swing):
    cameras = pl.ring_of_cameras(SCENE, 3, width=40, height=40)
    return pl.observe(swing, cameras, noise=1e-3, seed=2, frames=[2, 4])


@pytest.fixture(scope="module")
def tracks(swing):
    seen = pl.TrackedPoints.of(swing, AT, noise=1e-3, seed=3)
    gaps = seen.positions.copy()
    gaps[2, 1], gaps[1] = np.nan, np.nan
    return replace(seen, positions=gaps, sigma=np.array([1e-3, 2e-3, 1e-3]))


def problem_of(seen, starts, scene=SCENE, **options):
    members = tuple(make_unknown(n, v, scene) for n, v in starts.items())
    return Problem(scene, seen, UnknownSet(members), tangent_tolerance=1e-11, **options)


def check(problem, rate=1.9):
    """Tangent = adjoint = matrix-free products; Taylor's rate for each component of q."""
    loss, q = Loss(1e-7, "squares"), problem.unknowns.start()
    base = problem.evaluate(q, loss)
    g = base.model[1]
    adjoint = problem.gradient(q, loss)[1]
    np.testing.assert_allclose(adjoint, g, rtol=1e-8, atol=1e-8 * np.abs(g).max())
    linear = Linearised(problem, q, loss)
    np.testing.assert_allclose(linear.gradient, g, rtol=1e-8, atol=1e-8 * np.abs(g).max())
    d = np.random.default_rng(1).standard_normal(len(q))
    for k, f in base.frames.items():
        np.testing.assert_allclose(linear.along(d)[k], f.J @ d, atol=1e-8 * np.abs(f.J).max())
    rng = np.random.default_rng(2)
    for member, own in zip(
        problem.unknowns.members, problem.unknowns.split(np.arange(len(q))), strict=True
    ):
        rest, d = [], rng.choice([-1.0, 1.0], len(own)) * rng.uniform(0.5, 1.0, len(own))
        for e in (0.02, 0.01):
            step = np.zeros(len(q))
            step[own] = e * d
            moved = problem.evaluate(q + step, loss, derivatives=False)
            parts = []
            for k, f in base.frames.items():
                m = moved.frames[k]
                near = f.usable & m.usable & (np.abs(m.r - f.r) < 0.02)
                parts.append(np.abs(m.r - f.r - f.J @ step)[near])
            size = np.sort(np.concatenate(parts))  # rays over an edge between facets have a kink
            rest.append(size[: int(np.ceil(0.97 * len(size)))].sum())
        assert rest[1] < 1e-12 or np.log2(rest[0] / rest[1]) > rate, (member.name, rest)


def test_interpolation_in_time_is_smooth_and_exact_for_cubics():
    """u = t^3: values, slopes, and the transpose of the mix."""

    def at(t):
        return np.full((1, 3), t**3), np.full((1, 3), 3 * t**2)

    m = Moment.at(0, 0.57, 0.2)
    assert (m.step, m.last, m.share) == (2, 3, pytest.approx(0.85))
    u, _ = m.mix(at(0.4), at(0.6))
    assert u == pytest.approx(0.57**3)
    assert m.rate(at(0.4), at(0.6))[0] == pytest.approx(3 * 0.57**2)
    rng = np.random.default_rng(0)
    before, after, bar = (tuple(rng.standard_normal((2, 4, 3))) for _ in range(3))
    mixed, (first, last) = m.mix(before, after), m.spread(bar)
    dot = lambda a, b: sum(np.vdot(x, y) for x, y in zip(a, b, strict=True))  # noqa: E731
    assert dot(bar, mixed) == pytest.approx(dot(first, before) + dot(last, after))
    early = Moment.at(0, -0.03, 0.2)  # before the start: as the first velocity says
    assert (early.step, early.last) == (0, 0)
    assert early.mix(at(0.5), None)[0] == pytest.approx(0.5**3 - 0.03 * 3 * 0.5**2)


def test_pose_turns_and_its_slopes():
    w = np.array([0.3, -0.7, 0.4])
    assert rotation(w) @ rotation(w).T == pytest.approx(np.eye(3))
    assert rotation(np.array([0, 0, np.pi / 2])) @ [1, 0, 0] == pytest.approx([0, 1, 0])
    for scale in (1.0, 1e-3):
        dw = np.array([0.2, 0.1, -0.5]) * 1e-6
        turned = rotation(left_jacobian(scale * w) @ dw) @ rotation(scale * w)
        assert rotation(scale * w + dw) == pytest.approx(turned, abs=1e-11)
    pose = Pose(np.array([0.1, 0.2, 0.3, *w]), np.array([1.0, 0.0, -1.0]))
    x = np.random.default_rng(0).standard_normal((5, 3))
    assert pose.back(pose.apply(x)) == pytest.approx(x)


@pytest.mark.parametrize("cost", ["depth", "foot"])
def test_derivatives_of_a_depth_film(film, cost):
    film = replace(film, noise=None)  # the foot points' curvature shift has no derivative
    check(problem_of(film, {"youngs_modulus": 2.2e4, **WRONG}, cost=cost))
    bumps = {"surface_offset": np.zeros(SURFACE_NUMBERS)}
    check(problem_of(film, {"youngs_modulus": 2.2e4, "time_offset": 0.0033, **bumps}, cost=cost))


def test_derivatives_of_tracked_points(tracks):
    both = {k: WRONG[k] for k in ("time_offset", "recording_pose")}
    places = 1e-3 * np.arange(1.0, 10.0)
    check(problem_of(tracks, {"youngs_modulus": 2.2e4, **both, "tracked_places": places}))


def test_derivatives_at_the_steps_themselves(tracks):
    """The frames lie on time steps, where a linear interpolation has a kink."""
    check(problem_of(tracks, {"time_offset": 0.0, "youngs_modulus": 2.2e4}))


def test_derivatives_of_a_plucked_body(tracks):
    """The start is unknown as well, and a frame lies before it."""
    start = pl.Start("state", modes=2, amplitudes=(0.01, 0.004), velocities=(0.1, 0.0))
    scene = replace(SCENE, start=start)
    early = replace(tracks, times=tracks.times - 0.012)
    unknowns = {"youngs_modulus": 2.2e4, "start_velocities": (0.1, 0.02), "time_offset": 0.001}
    check(problem_of(early, unknowns, scene))


def test_a_recording_that_has_no_such_unknown_says_so(tracks, film):
    with pytest.raises(pl.BadInput, match="depth_scale.*time_offset, recording_pose"):
        problem_of(tracks, {"depth_scale": 1.0})
    with pytest.raises(pl.BadInput, match=r"camera_pose\.7"):
        problem_of(film, {"camera_pose.7": np.zeros(6)})
    with pytest.raises(pl.BadInput, match="6 number"):
        problem_of(film, {"recording_pose": 0.0})
    with pytest.raises(pl.BadInput, match="named by its number"):
        problem_of(film, {"camera_pose.left": np.zeros(6)})


@pytest.fixture(scope="module")
def long_film():
    cameras = pl.ring_of_cameras(SCENE, 3, width=60, height=60)
    return pl.observe(pl.simulate(SCENE, 10), cameras, noise=5e-4, seed=2)


QUICK = {"discretisation": False, "coarse_to_fine": False}


@pytest.mark.parametrize("flaw", ["clock", "pose", "camera", "depth"])
def test_a_film_that_is_off_is_put_right(long_film, flaw):
    """The unknown that matches the flaw finds it, and the modulus with it."""
    film, unknowns, truth = long_film, {"youngs_modulus": 2.3e4}, {"youngs_modulus": 2e4}
    if flaw == "clock":  # stamped 8 ms early
        frames = [replace(f, time=f.time - 0.008) for f in film.frames]
        film, unknowns["time_offset"], truth["time_offset"] = (
            replace(film, frames=frames),
            0.0,
            8e-3,
        )
    elif flaw == "depth":
        frames = [replace(f, depth=1.01 * f.depth + 0.003) for f in film.frames]
        film = replace(film, frames=frames)
        unknowns |= {"depth_scale": 1.0, "depth_offset": 0.0}
        truth |= {"depth_scale": 1 / 1.01, "depth_offset": -0.003 / 1.01}
    else:
        which = range(3) if flaw == "pose" else [1]
        pose = Pose(np.array([0.004, -0.003, 0.002, 0.01, -0.02, 0.01]), np.zeros(3))
        cameras = list(film.cameras)
        for k in which:
            c = cameras[k]
            eye, turned = pose.apply(c.position[None])[0], c.rotation @ pose.rotation.T
            cameras[k] = replace(c, position=eye, rotation=turned)
        film = replace(film, cameras=cameras)
        name = "recording_pose" if flaw == "pose" else "camera_pose.1"
        unknowns[name] = np.zeros(6)
        truth |= {f"{name}.turn_x": -0.01, f"{name}.turn_y": 0.02, f"{name}.turn_z": -0.01}
    fit = pl.reconstruct(SCENE, film, unknowns, **QUICK)
    off = {k: (fit.values[k] - v) / fit.sigma[k] for k, v in truth.items()}
    slack = {k: 2e-4 / fit.sigma[k] for k in truth if "turn" in k}  # turns about other axes mix
    assert all(abs(v) < 4.0 + slack.get(k, 0.0) for k, v in off.items()), (off, fit)
