"""The dragon hangs by its head for 3,000 steps, at any stiffness: no solve fails."""

import os
from pathlib import Path

import numpy as np
import pytest

import pliant as pl
from frozen_frames import frozen_model

DATA = Path(os.environ.get("PLIANT_DATA", Path(__file__).parents[3] / "shared" / "data"))


def dragon(youngs_modulus=2e4):
    if not DATA.is_dir():
        pytest.skip(f"no folder {DATA} (set PLIANT_DATA)")
    body = pl.GridBody(pl.load_shape(DATA / "sdf_dragon_56x54x28.npz"))
    low, high = body.nodes.min(axis=0), body.nodes.max(axis=0)
    top = high[1] - 0.15 * (high[1] - low[1])
    return pl.Scene(
        body, pl.Material(youngs_modulus, 0.3, 1.0, mass_damping=0.1, stiffness_damping=0.005),
        fixed=[pl.Fixed(pl.shapes.half_space(normal=(0, -1, 0), offset=-float(top)))],
        integrator=pl.Newmark1(0.01, theta=0.6), tolerance=1e-6,
    )  # fmt: skip


def run(steps, scene=None):
    scene = scene or dragon()
    system = frozen_model(scene)
    state = system.initial_state()
    for _ in range(steps):
        state, record = system.step(state)
        assert record.solution.outcome.ok, f"t = {state.t:g}: {record.solution.outcome}"
        u = state.u.numpy()
        assert np.isfinite(u).all()
    return scene, u, state.v.numpy()


def test_dragon_for_a_while():
    scene, u, _ = run(20)
    assert 0.0 < np.abs(u).max() < np.ptp(scene.body.nodes, axis=0).max()


@pytest.mark.slow
def test_dragon_for_3000_steps():
    scene, u, v = run(3000)
    assert np.abs(u).max() < np.ptp(scene.body.nodes, axis=0).max()
    assert np.abs(v).max() < 0.5  # it swung with 1.2 m/s at first, and damping leaves 20 % of that


STIFFNESSES = np.exp(np.random.default_rng(0).uniform(np.log(500.0), np.log(5e4), 10))


@pytest.mark.slow
@pytest.mark.parametrize("youngs_modulus", STIFFNESSES, ids="{:.0f}".format)
def test_dragon_of_random_stiffness(youngs_modulus):
    run(3000, dragon(youngs_modulus))
