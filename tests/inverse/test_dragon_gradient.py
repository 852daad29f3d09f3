"""The dragon over 300 steps: the gradient is right, and its states fit into a memory limit."""

import os
import resource
from pathlib import Path

import numpy as np
import pytest

import pliant as pl
from pliant.inverse.measuring.losses import Loss
from pliant.inverse.measuring.measures import NodeMotions
from pliant.inverse.motion.problem import Problem
from pliant.inverse.parameters.unknowns import UnknownSet, make_unknown

DATA = Path(os.environ.get("PLIANT_DATA", Path(__file__).parents[3] / "shared" / "data"))
STEPS = 300
LIMIT = 150e6
"""Bytes for states; the rest of the 540 MB is the linear solver's and the surface's."""

MODULUS = 5000.0
"""The scene's own [Pa]: soft enough that frozen frames turned cells of its thin parts inside out
after 50 steps, and left no derivative to be tested."""


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason=f"no folder {DATA} (set PLIANT_DATA)")
def test_gradient_over_300_steps(monkeypatch):
    from pliant.app.describing.scenes import load_builtin

    monkeypatch.setenv("PLIANT_DATA", str(DATA))
    scene = load_builtin("dragon")
    assert scene.material.youngs_modulus == MODULUS
    run = pl.simulate(scene, STEPS)
    frames = list(range(60, STEPS + 1, 60))
    cameras = pl.ring_of_cameras(scene, 4, width=60, height=60)
    filmed = pl.observe(run, cameras, frames=frames)
    times = np.asarray(run.times)[frames]
    followed = NodeMotions(times, np.asarray(run.displacements)[frames].copy())
    del run
    loaded = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    unknowns = UnknownSet((make_unknown("youngs_modulus", 1.05 * MODULUS, scene),))
    q, loss = unknowns.start(), Loss(scene.body.spacing, "squares")
    Problem(scene, filmed, unknowns, memory_limit=LIMIT).gradient(q, loss)
    # the film's cost jumps where pixels come and go at silhouettes; that of the nodes is smooth
    problem = Problem(scene, followed, unknowns, memory_limit=LIMIT)
    base, g = problem.gradient(q, loss)
    above = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - loaded) / 1024.0
    assert above < 540.0
    exact = Problem(scene, followed, unknowns, memory_limit=LIMIT, tangent_tolerance=1e-11)
    assert exact.gradient(q, loss)[1] == pytest.approx(exact.evaluate(q, loss).model[1], rel=1e-8)
    del exact
    rest, sizes = [], [0.004, 0.002, 0.001]
    for e in sizes:
        moved = problem.evaluate(q + e, loss, derivatives=False)
        rest.append(abs(moved.rise_from(base) - e * g[0]))
    assert rest[0] < 0.5 * abs(sizes[0] * g[0])
    assert np.polyfit(np.log(sizes), np.log(rest), 1)[0] > 1.9
