"""A body that is held on less than a region covers, or on more, says so."""

import numpy as np
import pytest

import pliant as pl
from pliant.dynamics.mesh_walls import mesh_wall_warnings
from pliant.dynamics.thin_walls import thin_wall_warnings


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


@pytest.mark.parametrize(
    ("sticks_out", "told"), [(0.0, False), (0.001, True), (0.01, True), (0.15, False)]
)
def test_a_clamp_that_ends_in_thin_layers_says_so(sticks_out, told):
    """In cells; 0.001 is 4.5 % too stiff in its first frequency, 0.15 and 0 are right to 1.1 %."""
    h = 0.005
    sides = np.array([0.1, 0.03, 0.03]) + 2.0 * sticks_out * h
    body = pl.GridBody(pl.shapes.box(center=(0.05, 0.0, 0.0), size=tuple(sides)), h)
    end = pl.Fixed(pl.shapes.box(center=(-0.015, 0.0, 0.0), size=(0.034, 0.1, 0.1)))
    scene = pl.Scene(body, pl.Material(2e5, 0.45, 1000.0), fixed=[end])
    words = thin_wall_warnings(scene)
    assert len(words) == told
    if told:
        assert "less than 2 % is filled" in words[0]
        assert "Use a spacing of 0.00475" in words[0]


@pytest.mark.parametrize("seed", range(3))
def test_clamps_of_round_bodies_have_nothing_to_say(seed):
    place = tuple(np.random.default_rng(seed).uniform(0.0, 0.1, 3))
    body = pl.GridBody(pl.shapes.torus(major=1.0, minor=0.35).translated(place), 0.1)
    top = pl.Fixed(pl.shapes.box(center=(0.0, 1.35, 0.0), size=(1.0, 0.3, 1.0)))
    assert thin_wall_warnings(pl.Scene(body, pl.Material(2e3, 0.3, 1.0), fixed=[top])) == []
