"""Cells that nobody has asked for suit the shape, whatever its size."""

import numpy as np
import pytest

import pliant as pl
from pliant.core.errors import BadInput
from pliant.geometry.field import SampledField


@pytest.mark.parametrize("size", [1e-6, 1e-3, 1.0, 1e4])
def test_eight_cells_across_whatever_the_size(size):
    body = pl.GridBody(pl.shapes.box(center=(0, 0, 0), size=(2 * size, size, size)))
    assert np.isclose(body.spacing, size / 8, rtol=1e-9)
    assert np.isclose(body.volume, 2 * size**3, rtol=1e-6)
    flat = pl.GridBody(pl.shapes.box(center=(0, 0), size=(2 * size, size)))
    assert np.isclose(flat.spacing, size / 8, rtol=1e-9)


def test_a_long_body_has_fewer_across():
    """40 x 1 x 1: 8 across would be 20,480 cells."""
    body = pl.GridBody(pl.shapes.box(center=(0, 0, 0), size=(40.0, 1.0, 1.0)))
    assert np.isclose(body.spacing, (40.0 / 20_000.0) ** (1.0 / 3.0))
    assert len(body.cells) < 30_000


def test_a_sheet_is_asked_about():
    with pytest.raises(BadInput, match=r"thin, 0.001 m of 1 m: .* spacing = 0.0005"):
        pl.GridBody(pl.shapes.box(center=(0, 0, 0), size=(1.0, 1.0, 0.001)))
    with pytest.raises(BadInput, match="unbounded"):
        pl.GridBody(pl.shapes.half_space(normal=(0, 1, 0)))


def test_a_field_keeps_its_own():
    axis = 0.25 * np.arange(-6, 7)
    grid = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1)
    values = np.linalg.norm(grid, axis=-1) - 1.0
    field = SampledField(values, origin=(-1.5, -1.5, -1.5), spacing=0.25)
    assert pl.GridBody(field).spacing == 0.25
