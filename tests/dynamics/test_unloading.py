"""The shape without loads, from a scan under them: a known beam's own sag undone."""

import logging

import numpy as np
import pytest

import pliant as pl
from pliant.geometry.displaced import Displaced
from pliant.geometry.mesh_shape import MeshShape

BOX = pl.shapes.box(center=(0.2, 0.0, 0.0), size=(0.4, 0.1, 0.1))
CLAMP = pl.Fixed(pl.shapes.box(center=(-0.05, 0, 0), size=(0.14, 0.3, 0.3)))


def beam(body, modulus=6e5):
    return pl.Scene(
        body, pl.Material(modulus, 0.3, 1000.0), gravity=(0.0, -9.81, 0.0), fixed=[CLAMP]
    )


def test_the_sag_of_a_mesh_is_undone():
    """To 1 % of the sag at every node, and its rest is what was scanned; not so the scan's own."""
    true = beam(pl.TetBody(BOX, 0.05, order=1))
    u = pl.solve_static(true)
    sag = np.abs(u).max()
    assert sag > 0.03
    scan = beam(pl.TetBody((true.body.nodes + u, true.body.cells), order=1))
    found = pl.unloaded(scan)
    assert np.abs(found.body.nodes - true.body.nodes).max() < 0.01 * sag
    rest = found.body.nodes + pl.solve_static(found)
    assert np.abs(rest - scan.body.nodes).max() < 0.01 * sag
    twice = scan.body.nodes + pl.solve_static(scan)
    assert np.abs(twice - scan.body.nodes).max() > 0.9 * sag
    assert found.begin.kind == "equilibrium"


@pytest.mark.slow
def test_the_sag_on_a_grid(caplog):
    """Four cells across, cut anew in every round: 5 % of the sag at worst, and that is told."""
    true = beam(pl.GridBody(BOX, 0.025), 2e6)
    u = pl.solve_static(true)
    surface = true.body.surface
    scanned = MeshShape(surface.positions(true.body.nodes + u), surface.facets)
    with caplog.at_level(logging.WARNING):
        found = pl.unloaded(beam(pl.GridBody(scanned, 0.025, axes="world"), 2e6))
    assert found.body.shape is not None
    off = found.body.shape.distance(surface.positions(true.body.nodes))
    sag = np.abs(u).max()
    assert np.abs(off).max() < 0.07 * sag
    assert np.sqrt(np.mean(off**2)) < 0.03 * sag
    assert "still" in caplog.text


def test_a_displaced_shape_is_exact_for_quadratics():
    """u = (0, -x^2 / 4, 0) at scattered nodes: the box is read where it went."""
    rng = np.random.default_rng(1)
    axes = [np.arange(a, b, 0.05) for a, b in ((-0.1, 0.5), (-0.1, 0.11), (-0.1, 0.11))]
    nodes = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    nodes += 0.005 * rng.standard_normal(nodes.shape)
    bent = np.zeros_like(nodes)
    bent[:, 1] = -0.25 * nodes[:, 0] ** 2
    shape = Displaced(BOX, nodes, bent, 0.05)
    points = rng.uniform((0.0, -0.06, -0.06), (0.4, 0.06, 0.06), (200, 3))
    moved = points - np.array([0.0, 0.25, 0.0]) * points[:, :1] ** 2
    assert np.abs(shape.moved(points) - moved).max() < 2e-5
    assert np.abs(shape.distance(points) - BOX.distance(moved)).max() < 2e-5
    assert (shape.distance([[0.2, 5.0, 0.0], [3.0, 0.0, 0.0]]) > 1.0).all()
    with pytest.raises(pl.BadInput, match="no description"):
        shape.to_dict()


def test_what_cannot_be_unloaded():
    plucked = pl.Scene(
        pl.GridBody(BOX, 0.05), pl.Material(6e5, 0.3, 1000.0), fixed=[CLAMP],
        start=pl.Start("state", modes=1),
    )  # fmt: skip
    with pytest.raises(pl.BadInput, match="can be unloaded"):
        pl.unloaded(plucked)
