"""The dragon over 300 steps: the gradient is right, and its states fit into a memory limit."""

import os
import resource

import numpy as np
import pytest

import pliant as pl
from pliant.inverse.losses import Loss
from pliant.inverse.problem import Problem
from pliant.inverse.unknowns import UnknownSet, make_unknown

STEPS = 300
LIMIT = 150e6
"""Bytes for states; the rest of the 540 MB is the linear solver's and the surface's."""


@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("PLIANT_DATA"), reason="needs the dragon's grid")
def test_gradient_over_300_steps():
    from pliant.app.scenes import load_builtin

    scene = load_builtin("dragon")
    run = pl.simulate(scene, STEPS)
    frames = list(range(60, STEPS + 1, 60))
    seen = pl.observe(run, pl.ring_of_cameras(scene, 4, width=60, height=60), frames=frames)
    del run
    loaded = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    unknowns = UnknownSet((make_unknown("youngs_modulus", 5500.0, scene),))
    problem = Problem(scene, seen, unknowns, memory_limit=LIMIT)
    q, loss = unknowns.start(), Loss(scene.body.spacing, "squares")
    base, g = problem.gradient(q, loss)
    above = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - loaded) / 1024.0
    assert above < 540.0
    rest, sizes = [], [0.004, 0.002, 0.001]
    for e in sizes:
        moved = problem.evaluate(q + e, loss, derivatives=False)
        rest.append(abs(moved.rise_from(base) - e * g[0]))
    assert np.polyfit(np.log(sizes), np.log(rest), 1)[0] > 1.9
