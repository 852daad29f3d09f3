"""Cook's membrane in plane strain against Taylor-Hood values (benchmarks/reference_values.json).

A tapered panel, clamped on its left and sheared on its right: bending and volume lock plain
elements. Its sides cut the grid wherever they like.
"""

import json
from pathlib import Path

import numpy as np
import pytest

import pliant as pl

VALUES = json.loads((Path(__file__).parents[2] / "benchmarks/reference_values.json").read_text())
REFERENCE = {row["poisson_ratio"]: row for row in VALUES["cook"]["values"]}


def membrane():
    sides = [
        ((-1.0, 0.0), 0.0), ((1.0, 0.0), 48.0),
        ((-1.0 / 3.0, 1.0), 44.0 / np.hypot(1.0, 1.0 / 3.0)), ((44.0 / 48.0, -1.0), 0.0),
    ]  # fmt: skip
    planes = [pl.shapes.half_space(normal=n, offset=float(o)) for n, o in sides]
    panel = pl.shapes.box(center=(24.0, 30.0), size=(60.0, 70.0))
    for plane in planes:
        panel = pl.shapes.intersection(panel, plane)
    return panel


def mid_edge(body, ratio):
    """Rise of the middle of the loaded edge."""
    scene = pl.Scene(
        body, pl.Material(1.0, ratio, 1.0), gravity=(0, 0), model="linear",
        fixed=[pl.Fixed(pl.shapes.half_space(normal=(1, 0), offset=1e-7))],
        loads=[pl.Traction(pl.shapes.half_space(normal=(-1, 0), offset=-48.0 + 1e-7), (0, 1 / 16))],
    )  # fmt: skip
    u = pl.solve_static(scene)
    return float(body.displacement_at(np.array([[48.0, 52.0]]), u)[0, 1])


@pytest.mark.parametrize(("n", "bound"), [(8, 0.03), (16, 0.01)])
@pytest.mark.parametrize("kind", ["grid", "triangles"])
def test_nearly_incompressible(kind, n, bound):
    h = np.sqrt(1440.0) / n  # about as many cells as a mesh of n x n
    body = pl.GridBody(membrane(), h) if kind == "grid" else pl.TetBody(membrane(), edge_length=h)
    exact = REFERENCE[0.4999]["mid_edge"]["value"]
    assert mid_edge(body, 0.4999) == pytest.approx(exact, rel=bound)
