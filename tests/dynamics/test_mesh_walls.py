"""A mesh that is held on less than a region covers says so."""

import numpy as np
import pytest

import pliant as pl
from pliant.dynamics.mesh_walls import mesh_wall_warnings


def bar():
    """Four by one by one cubes of 1 cm along x, six tetrahedra each."""
    x, y = np.arange(5) * 0.01, np.arange(2) * 0.01
    nodes = np.array([(a, b, c) for a in x for b in y for c in y])
    cells, around = [], (1, 3, 2, 6, 4, 5, 1)
    for i in range(4):
        corner = [4 * (i + a) + 2 * b + c for a, b, c in np.ndindex(2, 2, 2)]
        for a, b in zip(around[:-1], around[1:], strict=True):
            cells.append([corner[0], corner[a], corner[b], corner[7]])
    return nodes, np.array(cells)


def scene(reach, order=1, **options):
    """The bar held from its end up to x = reach."""
    end = pl.shapes.box(center=(reach - 0.05, 0, 0), size=(0.1, 0.2, 0.2))
    return pl.Scene(
        pl.TetBody(bar(), order=order), pl.Material(6e4, 0.3, 1070.0),
        fixed=[pl.Fixed(end, **options)],
    )  # fmt: skip


@pytest.mark.parametrize("order", [1, 2])
def test_a_region_that_ends_between_nodes_is_told(order):
    """Four mantle strips of 9 of 10 mm go free: 4.6 cm2 covered, the end face's 1 cm2 held."""
    reach = 0.009 if order == 1 else 0.0045
    (told,) = mesh_wall_warnings(scene(reach, order))
    covered = 1e-4 + 4 * 0.01 * reach
    assert told.startswith(f"fixed[0] covers {covered:.3g} of the surface, but the nodes")
    assert "hold 0.0001: a mesh is held at its nodes." in told


def test_a_region_that_ends_at_nodes_is_not():
    assert mesh_wall_warnings(scene(0.01)) == []
    assert mesh_wall_warnings(scene(0.0)) == []
    assert mesh_wall_warnings(scene(0.009, stiffness=1e6)) == []


def test_runs_say_it():
    run = pl.simulate(scene(0.009), 2)
    assert any("a mesh is held at its nodes" in w for w in run.warnings())
