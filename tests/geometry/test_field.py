"""Sampled fields: interpolation, outside, border, sampling, specks."""

import logging

import numpy as np
import pytest

from pliant.core.errors import BadInput
from pliant.geometry import SampledField, load_field, sample, solid_field
from pliant.geometry import shapes as s


def test_linear_fields_are_reproduced(rng):
    """Trilinear interpolation is exact for phi = x - 2 y + 3 z - 1."""
    grid = np.stack(np.meshgrid(*[np.arange(5)] * 3, indexing="ij"), axis=-1) * 0.5 + (1, 2, 3)
    slope = np.array([1.0, -2.0, 3.0])
    field = SampledField(values=grid @ slope - 8.0, origin=(1, 2, 3), spacing=0.5)
    points = rng.uniform((1, 2, 3), (3, 4, 5), (100, 3))
    assert np.allclose(field._interpolated(points), points @ slope - 8.0, atol=1e-12)


def test_nodes_lie_on_multiples_of_the_spacing():
    field = sample(s.sphere(radius=1, center=(0.33, 0, 0)), spacing=0.25, margin=2)
    assert np.allclose(np.array(field.origin) / 0.25, np.round(np.array(field.origin) / 0.25))
    assert field.origin == (-1.25, -1.5, -1.5)
    assert field.values.shape == (14, 13, 13)
    assert np.allclose(
        field.values.ravel(), s.sphere(radius=1, center=(0.33, 0, 0)).distance(field.nodes())
    )


def test_outside_adds_the_distance_to_the_grid():
    field = sample(s.box(size=(2, 2)), spacing=0.5, margin=1)
    assert field.distance([(4.5, 0)])[0] == pytest.approx(3.5)
    assert field.distance([(0, -11)])[0] == pytest.approx(10)


def test_solid_that_reaches_the_border_ends_there(rng):
    values = np.full((5, 5), -3.0)
    values[:, -1] = 1.0
    field = SampledField(values=values, origin=(0, 0), spacing=1.0)
    assert field.reaches_border
    assert np.allclose(field.distance([(-2, 2), (0, 2), (0.5, 2)]), [2, 0, -0.5])
    points = rng.uniform(-2, 6, (2000, 2))
    outside = ((points < 0) | (points > 4)).any(axis=1)
    assert np.all(field.distance(points[outside]) > 0)


def test_gradient_and_bounds():
    field = sample(s.sphere(radius=1), spacing=0.1)
    points = np.array([(1.0, 0.3, 0.2), (0.0, -0.8, 0.1)])
    unit = points / np.linalg.norm(points, axis=1, keepdims=True)
    assert np.allclose(field.gradient(points), unit, atol=0.02)
    lo, hi = field.bounds
    assert np.all(lo <= -0.9)
    assert np.all(hi >= 0.9)
    assert np.all(hi <= 1.11)


def test_specks_are_dropped_and_parts_are_kept(caplog):
    ball = s.sphere(radius=1)
    speck = s.sphere(radius=0.08, center=(1.5, 0, 0))
    with caplog.at_level(logging.INFO, logger="pliant.geometry"):
        clean = solid_field(ball | speck, spacing=0.1)
    assert "speck" in caplog.text
    assert not clean.contains([(1.5, 0, 0)])[0]
    assert clean.distance([(1.5, 0, 0)])[0] == pytest.approx(0.5, abs=0.02)
    assert clean.volume() == pytest.approx(4 / 3 * np.pi, rel=0.01)
    both = solid_field(ball | ball.translated((3, 0, 0)), spacing=0.1)
    assert both.contains([(0, 0, 0), (3, 0, 0)]).all()


def test_save_and_load(tmp_path):
    field = sample(s.torus(major=1, minor=0.3), spacing=0.1)
    field.save(tmp_path / "ring.npz")
    again = load_field(tmp_path / "ring.npz")
    assert np.array_equal(again.values, field.values)
    assert again.origin == field.origin
    assert again.spacing == field.spacing


@pytest.mark.parametrize(
    ("values", "origin", "spacing", "message"),
    [
        (np.ones((4, 4)), (0, 0), 1, "no inside"),
        (-np.ones(4), (0,), 1, "axes"),
        (-np.ones((1, 4)), (0, 0), 1, "at least 2"),
        (np.full((3, 3), np.nan), (0, 0), 1, "not finite"),
        (-np.ones((3, 3)), (0, 0, 0), 1, "origin"),
        (-np.ones((3, 3)), (0, 0), 0, "spacing"),
        (-np.ones((3, 3)) * 1j, (0, 0), 1, "real"),
    ],
)
def test_wrong_fields_are_refused(values, origin, spacing, message):
    with pytest.raises(BadInput, match=message):
        SampledField(values=values, origin=origin, spacing=spacing)


@pytest.mark.parametrize(
    ("shape", "spacing", "message"),
    [
        (s.half_space(normal=(0, 1, 0)), 0.1, "no end"),
        (s.sphere(radius=1), 1e-5, "limit"),
        (s.sphere(radius=1), 1e-320, "at least 1e-30"),
        (s.sphere(radius=0.01, center=(0.5, 0.5, 0.5)), 1.0, "no grid node"),
        (s.sphere(radius=1), -1, "spacing"),
    ],
)
def test_wrong_sampling_is_refused(shape, spacing, message):
    with pytest.raises(BadInput, match=message):
        sample(shape, spacing=spacing)
