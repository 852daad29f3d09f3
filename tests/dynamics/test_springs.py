"""Clamps that give: beds of springs with a stiffness that may be unknown."""

from dataclasses import replace

import numpy as np
import pytest
import warp as wp
from scipy.optimize import brentq

import pliant as pl
from pliant.core.launch import to_device, zeros
from pliant.dynamics.implicit import ImplicitModel
from pliant.dynamics.model import State
from pliant.inverse.motion.sensitivity import run, run_adjoint, run_with_tangents
from pliant.inverse.parameters.unknowns import UnknownSet, make_unknown

G = 9.81
BLOCK = pl.shapes.box(center=(0.0, 0.05, 0.0), size=(0.1, 0.1, 0.1))
BOTTOM = pl.shapes.half_space(normal=(0, 1, 0), offset=1e-6)
BODIES = {
    "grid": lambda: pl.GridBody(BLOCK.translated((0.004, 0.0, 0.007)), 0.03),
    "tets": lambda: pl.TetBody(BLOCK, 0.06),
}


def standing(body, **options):
    """A hard block of 1,000 kg/m^3 on a bed of 1e5 Pa/m: 981 Pa press it 9.81 mm down."""
    return pl.Scene(
        body, pl.Material(1e9, 0.3, 1000.0), gravity=(0, -G, 0),
        fixed=[pl.Fixed(BOTTOM, stiffness=1e5)], **options,
    )  # fmt: skip


@pytest.mark.parametrize("kind", BODIES)
def test_a_block_sinks_by_its_weight_over_the_stiffness(kind):
    body = BODIES[kind]()
    u = pl.solve_static(standing(body))
    middle = body.displacement_at(np.array([[0.004, 0.05, 0.007]]), u)[0]
    assert middle[1] == pytest.approx(-1000.0 * G * 0.1 / 1e5, rel=1e-4)


@pytest.mark.parametrize("kind", BODIES)
def test_a_block_bounces_on_it(kind):
    """y = -d (1 - cos w t) with w^2 = k / (density height); nothing is lost."""
    body = BODIES[kind]()
    w = np.sqrt(1e5 / (1000.0 * 0.1))
    half = np.pi / w
    done = pl.simulate(standing(body, integrator=pl.Newmark2(half / 50)), 100)
    y = done.at([[0.004, 0.05, 0.007]])[:, 0, 1] - 0.05
    d = 1000.0 * G * 0.1 / 1e5
    assert y[50] == pytest.approx(-2.0 * d, rel=2e-3)
    assert abs(y[100]) < 0.01 * d
    assert (
        np.abs(done.energies.total - done.energies.total[0]).max()
        < 1e-3 * np.abs(done.energies.gravity).max()
    )


def test_a_stiff_bed_is_a_clamp():
    beam = pl.GridBody(pl.shapes.box(center=(0.06, 0, 0), size=(0.12, 0.03, 0.03)), 0.01)
    end = pl.shapes.half_space(normal=(1, 0, 0), offset=1e-6)
    clamped = pl.Scene(beam, pl.Material(6e4, 0.3, 1070.0), fixed=[pl.Fixed(end)])
    gives = replace(clamped, fixed=[pl.Fixed(end, stiffness=1e4 * 6e4 / 0.01)])
    soft = replace(clamped, fixed=[pl.Fixed(end, stiffness=3e6)])
    f, firm, loose = (pl.modes(s, 1).frequencies[0] for s in (clamped, gives, soft))
    assert firm == pytest.approx(f, rel=0.02)
    # a beam on a joint that resists with k I, c = k L / E: c (1 + cos b cosh b) = b (sin b cosh b -
    # cos b sinh b), b^2 in proportion to the frequency; 1.8751 in a clamp
    c = 3e6 * 0.12 / 6e4

    def balance(b):
        turning = np.sin(b) * np.cosh(b) - np.cos(b) * np.sinh(b)
        return c * (1.0 + np.cos(b) * np.cosh(b)) - b * turning

    b = brentq(balance, 0.5, 1.8)
    assert loose / f == pytest.approx((b / 1.8751) ** 2, rel=0.01)


def test_the_hand_that_shakes_it_is_booked():
    """A bed that rises by 2 cm: what the block has gained in height the hand has given."""
    rise = pl.Motion((0.0, 0.2), ((0.0, 0.0, 0.0), (0.0, 0.02, 0.0)))
    scene = standing(BODIES["grid"](), integrator=pl.Newmark2(0.002))
    scene = replace(scene, fixed=[pl.Fixed(BOTTOM, rise, stiffness=1e5)])
    e = pl.simulate(scene, 150).energies
    assert np.abs(e.appeared).max() < 2e-3 * np.abs(e.gravity).max()


STARTS = {"wall_stiffness": 4e4, "youngs_modulus": 2e3, "stiffness_damping": 0.003}


@pytest.mark.parametrize("model", ["corotated", "linear"])
@pytest.mark.parametrize("kind", ["grid", "tets"])
def test_derivatives(kind, model):
    """Taylor rates of 2, and the adjoint is the tangents' transpose; the clamp moves."""
    shape = pl.shapes.box(center=(0.3, 0.1, 0.1), size=(0.6, 0.2, 0.2))
    grid = pl.GridBody(shape.translated((0.0, 0.03, 0.01)), 0.15)
    body = grid if kind == "grid" else pl.TetBody(shape, edge_length=0.2, order=1)
    shake = pl.Motion((0.0, 0.2), ((0.0, 0.0, 0.0), (0.0, 0.1, 0.05)))
    end = pl.shapes.half_space(normal=(1, 0, 0), offset=1e-6)
    scene = pl.Scene(
        body, pl.Material(2e3, 0.3, 1.0, stiffness_damping=0.003), gravity=(0, -G, 1.0),
        fixed=[pl.Fixed(end, shake, stiffness=4e4)], integrator=pl.GeneralisedAlpha(0.02),
        tolerance=1e-12, model=model,
    )  # fmt: skip
    unknowns = UnknownSet(tuple(make_unknown(n, v, scene) for n, v in STARTS.items()))
    q = unknowns.start()
    system = ImplicitModel(unknowns.apply(scene, q))
    weight = np.random.default_rng(2).standard_normal((system.node_count, 3))
    weight[:, scene.dim :] = 0.0

    def cost(q):
        system.update(unknowns.apply(scene, q))
        return float(np.sum(weight * run(system, 4)[-1].u.numpy()))

    def tangents(q):
        system.update(unknowns.apply(scene, q))
        found = {}

        def keep(step, state, changes):
            found["last"] = [float(np.sum(weight * c.u.numpy())) for c in changes]

        directions = unknowns.directions(system, q)
        run_with_tangents(system, 4, directions, keep, tolerance=1e-12)
        return np.array(found["last"])

    def adjoint(q):
        system.update(unknowns.apply(scene, q))
        states = run(system, 4)

        def seed(k, state):
            if k < 4:
                return None
            zero = zeros(system.node_count, wp.vec3d)
            return State.of(to_device(weight, wp.vec3d), zero, wp.clone(zero))

        return unknowns.pull(system, q, run_adjoint(system, states, seed))

    slope, value = tangents(q), cost(q)
    np.testing.assert_allclose(adjoint(q), slope, rtol=1e-8, atol=1e-8 * np.abs(slope).max())
    for k, unit in enumerate(np.eye(len(q))):
        rest = [abs(cost(q + e * unit) - value - e * slope[k]) for e in (0.02, 0.01)]
        assert np.log2(rest[0] / rest[1]) > 1.9


def test_it_is_found_from_markers():
    """A beam in a clamp that gives, markers with 0.1 mm of noise: modulus and stiffness."""
    body = pl.GridBody(pl.shapes.box(center=(0.06, 0, 0), size=(0.12, 0.03, 0.03)), 0.015)
    end = pl.shapes.half_space(normal=(1, 0, 0), offset=1e-6)
    scene = pl.Scene(
        body, pl.Material(6e4, 0.3, 1070.0), gravity=(0, -G, 0),
        fixed=[pl.Fixed(end, stiffness=2e7)], integrator=pl.GeneralisedAlpha(0.01),
    )  # fmt: skip
    done = pl.simulate(scene, 30)
    at = np.array([[x, 0.01, 0.01] for x in (0.003, 0.03, 0.07, 0.115)])
    seen = done.at(at) + 1e-4 * np.random.default_rng(0).standard_normal((31, 4, 3))
    tracks = pl.TrackedPoints(done.times, seen, at=at, sigma=1e-4)
    fit = pl.reconstruct(scene, tracks, {"youngs_modulus": 8e4, "wall_stiffness": 1e7})
    for name, truth in (("youngs_modulus", 6e4), ("wall_stiffness", 2e7)):
        assert fit.values[name] == pytest.approx(truth, abs=4.0 * fit.sigma[name])
        assert fit.sigma[name] < 0.2 * truth


def test_files_keep_it_and_bad_ones_are_refused(tmp_path):
    scene = replace(standing(BODIES["grid"]()), integrator=pl.Newmark2(0.01))
    scene.save(tmp_path / "bed.toml")
    assert pl.load_scene(tmp_path / "bed.toml").fixed[0].stiffness == 1e5
    with pytest.raises(pl.BadInput, match="positive number of Pa/m"):
        pl.Fixed(BOTTOM, stiffness=-1.0)
    with pytest.raises(pl.BadInput, match="particles know firm clamps only"):
        pl.simulate(replace(scene, model="position-based"), 1)
    rigid = replace(scene, fixed=[pl.Fixed(BOTTOM)])
    with pytest.raises(pl.BadInput, match="no clamp gives"):
        make_unknown("wall_stiffness", 1e5, rigid)
