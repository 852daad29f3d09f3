"""The same bits from run to run and for one or two threads."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pliant as pl
from pliant.core import launch
from pliant.core.crew import Call
from pliant.core.launch import thread_count
from pliant.dynamics.implicit import ImplicitModel

SMALL = 0.15
LARGE = 0.1
"""About 6,000 nodes, in several grids."""


@pytest.fixture(autouse=True)
def _threads():
    before = thread_count()
    yield
    pl.set_threads(before)


def scene(spacing):
    """A held ball whose wall moves, pressed on a floor and a stone, with friction and damping."""
    ball = pl.shapes.sphere(radius=1.0, center=(0.01, 0.02, 0.03))
    return pl.Scene(
        pl.GridBody(ball, spacing),
        pl.Material(2e3, 0.3, 1.0, mass_damping=0.1, stiffness_damping=0.002),
        fixed=[pl.Fixed(
            pl.shapes.half_space(normal=(0, -1, 0), offset=-0.8),
            pl.Motion((0.0, 0.02), ((0, 0, 0), (0.02, -0.02, 0.01))),
        )],
        obstacles=[
            pl.Plane((0.1, 1, 0), -0.99),
            pl.Obstacle(pl.shapes.sphere(radius=0.3, center=(0, -1.29, 0))),
        ],
        contact=pl.ContactLaw(friction=0.3, slip_speed=0.1),
        integrator=pl.Newmark1(0.01, theta=0.6),
        tolerance=1e-5,
    )  # fmt: skip


def bits(run):
    state = [run.displacements, run.velocities, run.last_acceleration]
    return hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in state)).hexdigest()


def test_one_thread_two_threads_and_again(monkeypatch):
    parts = {}
    made, told = Call.__init__, Call.words

    def make(self, kernel, *arguments):
        made(self, kernel, *arguments)
        self.name = kernel.key

    def counting(self, pieces):
        parts[self.name] = max(parts.get(self.name, 0), pieces)
        return told(self, pieces)

    monkeypatch.setattr(Call, "__init__", make)
    monkeypatch.setattr(Call, "words", counting)
    # every launch is shared, as those of a body of 50,000 nodes are
    monkeypatch.setattr(launch, "_pieces", lambda n, grain: min(n, 4) if thread_count() > 1 else 1)
    world = scene(LARGE)
    assert len(world.body.nodes) > 5_000
    pl.set_threads(2)
    system = ImplicitModel(world)
    first = pl.simulate(world, 2, system=system)
    again = pl.simulate(world, 2, system=system)
    split = {name for name, count in parts.items() if count >= 2}
    pl.set_threads(1)
    parts.clear()
    alone = pl.simulate(world, 2)
    assert set(parts.values()) == {1}
    assert np.abs(first.displacements).max() > 1e-3
    assert bits(first) == bits(again) == bits(alone)
    # it only means something if the work really was shared
    for kernel in ("_assemble_corotation", "_rotations", "_cell_forces", "_gather",
                   "corotated_forces", "corotated_tangents", "_curvature", "_advance", "_dot",
                   "_combine", "_point_forces", "_assemble_ghost"):  # fmt: skip
        assert any(name.endswith(kernel) for name in split), f"{kernel} was not split"


def test_statics_and_modes_for_one_and_two_threads():
    world = scene(SMALL)
    results = []
    for count in (1, 2):
        pl.set_threads(count)
        u = pl.solve_static(world, tolerance=1e-6)
        f = pl.modes(world, 3)
        results.append(u.tobytes() + f.frequencies.tobytes() + f.shapes.tobytes())
    assert results[0] == results[1]


@pytest.mark.slow
def test_another_process_gives_the_same_bits():
    here = bits(pl.simulate(scene(SMALL), 3))
    code = (
        "import test_determinism as t, pliant as pl; "
        "print(t.bits(pl.simulate(t.scene(t.SMALL), 3)))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True,
        cwd=Path(__file__).parent, env={**os.environ, "PLIANT_THREADS": "1"},
    )  # fmt: skip
    assert answer.stdout.split()[-1] == here
