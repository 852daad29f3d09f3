"""Resident memory of a grid body ready to step with f64, everything the process holds included.

At most 3 kB a node with block Jacobi, which keeps half of the symmetric matrix (measured: 2.4);
with multigrid the whole matrix, the hierarchy in single precision and the mass matrix take 5.7 (5.9
at this size, where large pages round up). Freed memory goes to the system at once here: what the
allocator would keep for reuse (some 60 MB) is not the body's.
"""

import os
import subprocess
import sys

import pytest

CODE = """
import resource
import numpy as np
import pliant as pl
from pliant.dynamics.implicit import ImplicitModel

def scene(spacing):
    body = pl.GridBody(pl.shapes.torus(major=1.0, minor=0.35), spacing)
    held = pl.Fixed(pl.shapes.half_space(normal=(-1, 0, 0), offset=-1.2))
    return pl.Scene(body, fixed=[held], preconditioner="{preconditioner}", tolerance=0.1,
                    model="corotated-frozen")

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()

def ready(spacing):
    world = scene(spacing)
    system = ImplicitModel(world)
    state = system.initial_state()
    system.step(state)
    return world, system, state

ready(0.1)  # kernels loaded, libraries warm
before = resident()
kept = ready({spacing})
print(len(kept[0].body.nodes), resident() - before)
"""


@pytest.mark.parametrize(
    ("preconditioner", "bound"),
    [
        pytest.param("jacobi", 3000, marks=pytest.mark.slow),
        pytest.param("multigrid", 6200, marks=pytest.mark.slow),
    ],
)
def test_bytes_a_node(preconditioner, bound):
    code = CODE.replace("{spacing}", "0.034").replace("{preconditioner}", preconditioner)
    returning = {"MALLOC_MMAP_THRESHOLD_": "131072", "MALLOC_TRIM_THRESHOLD_": "131072"}
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True,
        env=os.environ | returning,
    )  # fmt: skip
    nodes, used = (int(word) for word in answer.stdout.split()[-2:])
    assert nodes > 60_000
    assert 500 < used / nodes < bound, f"{used / nodes:.0f} bytes a node"
