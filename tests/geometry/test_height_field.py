"""Ground of given heights."""

import numpy as np
import pytest

import pliant as pl
from pliant.core.errors import BadInput


def test_a_slope_is_a_half_space_above_its_middle():
    i, j = np.meshgrid(np.arange(9), np.arange(7), indexing="ij")
    slope = pl.shapes.height_field(0.25 * (0.3 * i - 0.1 * j), 0.25, origin=(-1.0, 0.5, -0.75))
    rng = np.random.default_rng(0)
    points = rng.uniform((-0.3, 0.6, -0.2), (0.3, 0.9, 0.2), (50, 3))
    above = points[:, 1] - (0.5 + 0.3 * (points[:, 0] + 1.0) - 0.1 * (points[:, 2] + 0.75))
    assert slope.distance(points) == pytest.approx(above / np.sqrt(1.0 + 0.09 + 0.01), abs=1e-6)


def test_it_is_solid_down_to_its_floor():
    ground = pl.shapes.height_field([[0.0, 1.0], [0.0, 1.0], [0.0, 1.0]], 1.0, depth=2.0)
    a, b, c = np.moveaxis(ground.vertices[ground.faces], 1, 0)
    volume = np.einsum("ni,ni->n", a, np.cross(b, c)).sum() / 6.0
    assert volume == pytest.approx(2.0 * 1.0 * 2.5)
    edges = np.sort(ground.faces[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1)
    assert (np.unique(edges, axis=0, return_counts=True)[1] == 2).all()
    again = pl.shapes.shape_from_dict(ground.to_dict())
    assert np.array_equal(again.vertices, ground.vertices)


@pytest.mark.parametrize("heights", [[1.0, 2.0], [[1.0]], [[1.0, 2.0], [3.0]], [[0.0, np.nan]] * 2])
def test_heights_are_rows_of_numbers(heights):
    with pytest.raises(BadInput, match="heights are finite numbers"):
        pl.shapes.height_field(heights, 1.0)
