"""Flat sides a little beyond the lattice: no thin cells, the same body wherever it lies."""

import numpy as np
import pytest
from test_patch import check

import pliant as pl
from pliant.fem.cutting.thin_layers import layer_roots

H = 0.005


def beam(beyond, shift=0.0):
    """0.1 x 0.03 x 0.03 m in cells of 5 mm, sides `beyond` cells outside, all of it shifted."""
    place = np.array([0.05, 0.0, 0.0]) + shift * H
    size = np.array([0.1, 0.03, 0.03]) + 2.0 * beyond * H
    end = pl.shapes.box(center=tuple(place - [0.065, 0.0, 0.0]), size=(0.034, 0.1, 0.1))
    return pl.GridBody(pl.shapes.box(center=tuple(place), size=tuple(size)), H), end


@pytest.mark.parametrize(
    ("beyond", "shift"), [(1e-3, 0.0), (1e-2, 0.0), (0.0, 1e-3), (0.0, -1e-2), (0.04, 0.05)]
)
def test_the_clamped_beam_is_the_same_wherever_it_lies(beyond, shift):
    """Finite elements of order 3, in a clamp that wraps 2 mm: 6.784, 19.38, 31.26 Hz; thin cells
    under the clamp made the first one 7.08 Hz."""
    body, end = beam(beyond, shift)
    assert len(body.cells) == 720
    assert body.fill.min() > 0.8
    assert body.volume == pytest.approx(np.prod(np.array([20, 6, 6]) + 2.0 * beyond) * H**3)
    material = pl.Material(2e5, 0.45, 1000.0)
    found = pl.modes(pl.Scene(body, material, fixed=[pl.Fixed(end)]), 4).frequencies
    assert found == pytest.approx([6.784, 6.784, 19.38, 31.26], rel=0.013)


@pytest.mark.parametrize("beyond", [2e-3, 0.07])
def test_patch(beyond):
    check(pl.GridBody(pl.shapes.box(size=tuple(np.array([1.0, 0.6, 0.4]) + 2 * beyond * 0.1)), 0.1))


def test_patch_in_the_plane_and_beside_a_hole():
    plate = pl.shapes.box(center=(0.0, 0.0), size=(1.01, 0.606))
    assert pl.GridBody(plate, 0.1).fill.min() > 0.9
    check(pl.GridBody(plate, 0.1))
    box = pl.shapes.box(size=(1.01, 0.606, 0.404))
    check(pl.GridBody(box - pl.shapes.cylinder(radius=0.14, height=3.0), 0.1))


def test_moments_of_mass_are_kept():
    """Volume, first and second moments of a box, by the consistent mass of linear fields."""
    size = np.array([1.0, 0.6, 0.4]) + 0.012
    body = pl.GridBody(pl.shapes.box(center=(0.003, -0.002, 0.001), size=tuple(size)), 0.1)
    assert len(body.cells) == 10 * 6 * 4
    weights = np.bincount(body.cells.ravel(), body.node_volumes.ravel(), len(body.nodes))
    assert weights.sum() == pytest.approx(np.prod(size))
    assert weights @ body.nodes / weights.sum() == pytest.approx([0.003, -0.002, 0.001], abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_round_and_tilted_bodies_keep_their_thin_cells(seed):
    """Layers there end at thicker cells; what is smooth is not asked."""
    place = tuple(np.random.default_rng(seed).uniform(0.0, 0.1, 3))
    box = pl.shapes.box(size=(1.0, 0.6, 0.4)).rotated(axis=(1, 2, 3), angle=0.3)
    tilted = pl.GridBody(box.translated(place), 0.1, axes="world")
    ball = pl.GridBody(pl.shapes.sphere(radius=0.5).translated(place), 0.1)
    assert ball.fill.max() == 1.0
    lattice = tilted.lattice[tilted.cells[:, 0]].astype(int)
    points = tilted.surface.positions(tilted.nodes) / tilted.spacing
    found = layer_roots(
        lattice, tilted.fill, points, tilted.surface.facets, tilted.surface.facet_cell
    )
    assert np.array_equal(found, np.arange(len(found)))
    assert min(ball.fill.min(), tilted.fill.min()) < 0.05


def test_a_surface_is_where_the_shape_is():
    body, _ = beam(0.01)
    points = body.surface.positions(body.nodes)
    assert np.abs(body.shape.distance(points)).max() < 1e-12
    u = np.stack([points[:, 0], 0.0 * points[:, 0], 0.0 * points[:, 0]], axis=1)
    assert body.displacement_at(points, body.nodes * [1.0, 0.0, 0.0]) == pytest.approx(u, abs=1e-12)
