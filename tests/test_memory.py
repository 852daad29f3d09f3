"""At most 3 kB a node for a grid body ready to step with f64."""

import subprocess
import sys

CODE = """
import resource
import numpy as np
import pliant as pl
from pliant.dynamics.system import System

def scene(spacing):
    body = pl.GridBody(pl.shapes.torus(major=1.0, minor=0.35), spacing)
    return pl.Scene(body, fixed=[pl.Fixed(pl.shapes.half_space(normal=(-1, 0, 0), offset=-1.2))])

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()

def ready(spacing):
    world = scene(spacing)
    system = System(world)
    state = system.initial_state()
    system.step(state)
    return world, system, state

ready(0.1)  # kernels loaded, libraries warm
before = resident()
kept = ready({spacing})
print(len(kept[0].body.nodes), resident() - before)
"""


def test_three_kilobytes_a_node():
    answer = subprocess.run(
        [sys.executable, "-c", CODE.replace("{spacing}", "0.028")],
        capture_output=True, text=True, timeout=200, check=True,
    )  # fmt: skip
    nodes, used = (int(word) for word in answer.stdout.split()[-2:])
    assert nodes > 100_000
    assert 500 < used / nodes < 3000, f"{used / nodes:.0f} bytes a node"
