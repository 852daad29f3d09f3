"""Where a clamp sits, along an axis, as an unknown."""

from dataclasses import replace

import numpy as np
import pytest
import warp as wp

import pliant as pl
from pliant.core.launch import to_device, zeros
from pliant.dynamics.implicit import ImplicitModel
from pliant.dynamics.model import State
from pliant.inverse.motion.sensitivity import run, run_adjoint, run_with_tangents
from pliant.inverse.parameters.unknowns import UnknownSet, make_unknown

SHAPE = pl.shapes.box(center=(0.3, 0.1, 0.1), size=(0.6, 0.2, 0.2))


def sleeve(reach):
    """Holds what lies at x < reach."""
    return pl.shapes.half_space(normal=(1, 0, 0), offset=reach)


def beam(kind, **options):
    if kind == "tets":
        body = pl.TetBody(SHAPE, edge_length=0.2, order=1)
    else:
        body = pl.GridBody(SHAPE.translated((0.0, 0.03, 0.01)), 0.1)
    shake = pl.Motion((0.0, 0.2), ((0.0, 0.0, 0.0), (0.0, 0.1, 0.05)))
    clamp = pl.Fixed(sleeve(0.16), shake, stiffness=4e4 if kind in ("springs", "tets") else None)
    law = {"law": "neo-hookean"} if kind == "law" else {}
    made = {"model": "linear"} if kind == "linear" else law
    return pl.Scene(
        body, pl.Material(2e3, 0.3, 1.0, stiffness_damping=0.003), gravity=(0, -9.81, 1.0),
        fixed=[clamp], integrator=pl.GeneralisedAlpha(0.02), tolerance=1e-12, **made, **options,
    )  # fmt: skip


STARTS = {"wall_place.0.x": 0.013, "youngs_modulus": 2e3}
PLUCKED = pl.Start("state", modes=1, amplitudes=(0.01,), velocities=(0.05,))
CASES = [
    ("law", "rest"), ("tets", "rest"), ("corotated", PLUCKED),
    pytest.param("corotated", "rest", marks=pytest.mark.slow),
    pytest.param("corotated", "equilibrium", marks=pytest.mark.slow),
    pytest.param("linear", "rest", marks=pytest.mark.slow),
    pytest.param("springs", "rest", marks=pytest.mark.slow),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "start"), CASES)
def test_derivatives(kind, start):
    """Taylor rates of 2, and the adjoint is the tangents' transpose; the clamp moves."""
    scene = beam(kind, start=start)
    if start == "rest":
        scene = replace(scene, initial_velocity=(0.0, 0.3, 0.1))
    unknowns = UnknownSet(tuple(make_unknown(n, v, scene) for n, v in STARTS.items()))
    q = unknowns.start()
    system = ImplicitModel(unknowns.apply(scene, q))
    weight = np.random.default_rng(2).standard_normal((system.node_count, 3))
    # nodes inside the clamp move with whatever cell is cut there: what counts is the beam
    weight[scene.body.nodes[:, 0] < 0.25] = 0.0

    def cost(q):
        system.update(unknowns.apply(scene, q))
        return float(np.sum(weight * run(system, 3)[-1].u.numpy()))

    def tangents(q):
        system.update(unknowns.apply(scene, q))
        found = {}

        def keep(step, state, changes):
            found["last"] = [float(np.sum(weight * c.u.numpy())) for c in changes]

        directions = unknowns.directions(system, q)
        run_with_tangents(system, 3, directions, keep, tolerance=1e-12)
        return np.array(found["last"])

    def adjoint(q):
        system.update(unknowns.apply(scene, q))
        states = run(system, 3)

        def seed(k, state):
            if k < 3:
                return None
            zero = zeros(system.node_count, wp.vec3d)
            return State.of(to_device(weight, wp.vec3d), zero, wp.clone(zero))

        return unknowns.pull(system, q, run_adjoint(system, states, seed))

    slope, value = tangents(q), cost(q)
    np.testing.assert_allclose(adjoint(q), slope, rtol=1e-8, atol=1e-8 * np.abs(slope).max())
    rest = [abs(cost(q + e * np.eye(2)[0]) - value - e * slope[0]) for e in (0.08, 0.04)]
    assert np.log2(rest[0] / rest[1]) > 1.9
    assert abs(slope[0]) > 100.0 * rest[1]


def test_a_clamp_that_is_moved_is_the_clamp_there():
    """shift says the same as another region; frequencies fall as the free length grows."""
    body = pl.GridBody(pl.shapes.box(center=(0.06, 0, 0), size=(0.12, 0.03, 0.03)), 0.01)
    scene = pl.Scene(body, pl.Material(6e4, 0.3, 1070.0), fixed=[pl.Fixed(sleeve(0.02))])
    there = replace(scene, fixed=[pl.Fixed(sleeve(0.023))])
    moved = replace(scene, fixed=[pl.Fixed(sleeve(0.02), shift=(0.003, 0.0, 0.0))])
    f, g = (pl.modes(s, 1).frequencies[0] for s in (there, moved))
    assert g == pytest.approx(f, rel=1e-9)
    # a slender beam's frequency goes as 1 / L^2; a stout one's less, its clamp gives in shear
    f0 = pl.modes(scene, 1).frequencies[0]
    assert 1.5 < np.log(g / f0) / np.log(0.100 / 0.097) < 2.0


def test_it_is_found_from_markers():
    """A clamp that reaches 3 mm farther than the scene says, markers with 0.1 mm of noise."""
    body = pl.GridBody(pl.shapes.box(center=(0.06, 0, 0), size=(0.12, 0.03, 0.03)), 0.015)
    scene = pl.Scene(
        body, pl.Material(6e4, 0.3, 1070.0), gravity=(0, -9.81, 0),
        fixed=[pl.Fixed(sleeve(0.02))], integrator=pl.GeneralisedAlpha(0.01),
    )  # fmt: skip
    truth = replace(scene, fixed=[pl.Fixed(sleeve(0.023))])
    at = np.array([[x, 0.01, 0.01] for x in (0.03, 0.05, 0.08, 0.115)])
    tracks = pl.TrackedPoints.of(pl.simulate(truth, 14), at, noise=1e-4, seed=0)
    quick = {"discretisation": False, "coarse_to_fine": False}
    off = pl.reconstruct(scene, tracks, {"youngs_modulus": 7e4}, **quick)
    assert abs(off.values["youngs_modulus"] / 6e4 - 1.0) > 0.05
    told = [x for x in off.advice if "would alone take" in x]
    assert "--unknown wall_place.0.x" in told[0]
    starts = {"youngs_modulus": 7e4, "wall_place.0.x": 0.0}
    fit = pl.reconstruct(scene, tracks, starts, **quick)
    for name, value in (("youngs_modulus", 6e4), ("wall_place.0.x", 0.003)):
        assert fit.values[name] == pytest.approx(value, abs=4.0 * fit.sigma[name])
    assert fit.sigma["wall_place.0.x"] < 5e-4
    assert fit.sigma["youngs_modulus"] < 0.03 * 6e4


def test_files_keep_it_and_bad_ones_are_refused(tmp_path):
    scene = replace(beam("corotated"), integrator=pl.Newmark2(0.01))
    moved = [replace(scene.fixed[0], shift=(0.01, 0.0, -0.02))]
    replace(scene, fixed=moved).save(tmp_path / "beam.toml")
    assert pl.load_scene(tmp_path / "beam.toml").fixed[0].shift == (0.01, 0.0, -0.02)
    with pytest.raises(pl.BadInput, match="3 finite numbers"):
        pl.Fixed(sleeve(0.1), shift=(1.0,))
    tets = replace(beam("tets"), fixed=[pl.Fixed(sleeve(0.16))])
    with pytest.raises(pl.BadInput, match="take a grid"):
        make_unknown("wall_place.0.x", 0.0, tets)
    away = UnknownSet((make_unknown("wall_place.0.x", 0.0, scene),))
    system = ImplicitModel(away.apply(scene, away.start()))
    with pytest.raises(pl.SolverFailure, match="moved off the body"):
        system.update(away.apply(scene, np.array([-10.0])))
