"""Cells as they are cut: their volume is that of the body, and nothing sticks out of the shape."""

import numpy as np
import pytest

import pliant as pl
from pliant.fem.bodies.clipped_cells import clipped_cells

TURNED = pl.shapes.box(center=(0.1, 0, 0), size=(1.0, 0.53, 0.37)).rotated(
    axis=(1, 2, 3), angle=0.6
)
PIPE = pl.shapes.cylinder(radius=0.4, height=1.0) - pl.shapes.cylinder(radius=0.2, height=2.0)
SHAPES = {
    "box": (pl.shapes.box(center=(0, 0, 0), size=(1.03, 0.47, 0.31)), {}, 1e-9),
    "turned box": (TURNED, {}, 1e-9),
    "box across the lattice": (TURNED, {"axes": "world"}, 1e-9),
    "pipe": (PIPE, {}, 1e-9),
    "ball": (pl.shapes.sphere(radius=0.5), {}, 5e-3),
    "subdivided": (pl.shapes.sphere(radius=0.5), {"subdivisions": 3}, 3e-3),
    "disc": (pl.shapes.circle(radius=0.5), {}, 5e-3),
    "rectangle": (pl.shapes.box(center=(0.0, 0.0), size=(1.03, 0.47)).rotated(angle=0.3), {}, 1e-9),
}


def contents(points, simplices):
    edges = points[simplices[:, 1:]] - points[simplices[:, :1]]
    return np.linalg.det(edges) / (2.0 if points.shape[1] == 2 else 6.0)


@pytest.mark.parametrize("name", SHAPES)
def test_volumes(name):
    shape, options, share = SHAPES[name]
    body = pl.GridBody(shape, 0.1, **options)
    found = clipped_cells(body)
    points = found.points.at(body.nodes)
    content = contents(points, found.simplices)
    assert (content > 0.0).all()
    total = content.sum() + len(found.whole) * 0.1**body.dim
    assert total == pytest.approx(body.volume, rel=share)
    if share < 1e-6:  # cell by cell
        own = np.bincount(found.cell, content, len(body.cells))
        cut = np.setdiff1d(np.arange(len(body.cells)), found.whole)
        assert own[cut] == pytest.approx(body.cell_volumes[cut], abs=1e-10 * 0.1**body.dim)
        assert shape.distance(points).max() < (1e-6 if name != "pipe" else 1e-3)
    else:
        assert shape.distance(points).max() < 0.02


def test_a_field_on_its_own_lattice():
    axes = np.meshgrid(*[np.linspace(-0.7, 0.7, 15)] * 3, indexing="ij")
    values = np.sqrt(sum(a**2 for a in axes)) - 0.5
    from pliant.geometry.field import SampledField

    body = pl.GridBody(SampledField(values, (-0.7,) * 3, 0.1))
    found = clipped_cells(body)
    total = contents(found.points.at(body.nodes), found.simplices).sum() + len(found.whole) * 1e-3
    assert total == pytest.approx(body.volume, rel=5e-3)


def test_meshes_have_whole_cells():
    assert clipped_cells(pl.TetBody(pl.shapes.sphere(radius=0.5), 0.4)) is None
