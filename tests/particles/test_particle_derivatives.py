"""Tangents of particles: differences of steps, against differences of whole runs."""

from dataclasses import replace

import numpy as np
import pytest

import pliant as pl
from particle_bars import bar
from pliant.inverse.motion.sensitivity import run_with_tangents

CASES = [
    ("position-based", {"substeps": 20}, "youngs_modulus"),
    ("shape-matching", {"substeps": 20}, "youngs_modulus"),
    ("shape-matching", {"alpha": 0.3, "beta": 0.2, "clusters": 6}, "numbers.alpha"),
    ("shape-matching", {"alpha": 0.3, "beta": 0.2, "clusters": 6}, "numbers.beta"),
    ("mass-spring", {"substeps": 20}, "youngs_modulus"),
]


@pytest.mark.parametrize(("model", "numbers", "name"), CASES)
def test_taylor(model, numbers, name):
    """What the tangent leaves of a run with another value falls with the square of the change."""
    scene = bar((4, 1, 1), model=model, numbers=numbers, dt=1.0 / 120.0)
    block = scene.block(name)
    value = float(block.get(scene))
    system, ends = scene.make_model(), []
    direction = block.push(system, np.array([value]))

    def frame(step, state, tangents):
        ends[:] = [state.u.numpy().copy(), tangents[0].u.numpy().copy()]

    run_with_tangents(system, 12, [direction], frame)
    u, du = ends
    left = []
    for share in (0.02, 0.01, 0.005):
        other = block.put(scene, np.array([value * (1.0 + share)]))
        moved = pl.simulate(other, 12).displacements[-1]
        left.append(float(np.abs(moved - u - share * du).max()))
    rates = np.log2(np.array(left[:-1]) / np.array(left[1:]))
    assert rates.min() > 1.9
    assert np.abs(du).max() > 1e-4


def test_a_modulus_is_found_through_position_based_dynamics():
    scene = bar((4, 1, 1), model="position-based", numbers={"substeps": 20}, dt=1.0 / 60.0)
    run = pl.simulate(scene, 20)
    frames = np.arange(2, 21, 3)
    ends = np.flatnonzero(scene.body.nodes[:, 0] > 0.99)
    at = scene.body.nodes[ends]
    seen = pl.TrackedPoints(
        run.times[frames], at + run.displacements[frames][:, ends], at=at, sigma=1e-3
    )
    start = replace(scene, material=replace(scene.material, youngs_modulus=2.4e6))
    fit = pl.reconstruct(start, seen, {"youngs_modulus": 2.4e6})
    assert fit.values["youngs_modulus"] == pytest.approx(2e6, rel=1e-4)
    assert any("differences of steps" in sentence for sentence in fit.advice)


def test_an_adjoint_is_refused_with_a_way_out():
    model = bar((2, 1, 1), model="position-based").make_model()
    assert not model.differentiable
    with pytest.raises(pl.BadInput, match="no adjoint"):
        model.derivatives.begin_adjoint()
