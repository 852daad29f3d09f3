"""Round bodies on coarse grids: volume, and the modes of a free ball (Lamb 1882)."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import spherical_jn

import pliant as pl
from pliant.geometry.field import SampledField

BALL = 4.0 / 3.0 * np.pi * 0.5**3
ROUND = {
    "ball": (lambda c: pl.shapes.sphere(radius=0.5, center=c), BALL, 3),
    "torus": (
        lambda c: pl.shapes.torus(major=1.5, minor=0.5, center=c, axis=(0.3, 0.5, 0.9)),
        2.0 * np.pi**2 * 1.5 * 0.25,
        3,
    ),
    "capsule": (
        lambda c: pl.shapes.capsule(start=c, end=c + [0.6, 0.8, 0.0], radius=0.5),
        np.pi * 0.25 + BALL,
        3,
    ),
    "disc": (lambda c: pl.shapes.circle(radius=0.5, center=c), np.pi * 0.25, 2),
}


@pytest.mark.parametrize("axes", ["shape", "world"])
@pytest.mark.parametrize("name", ROUND)
def test_volume_anywhere_in_the_grid(name, axes):
    make, volume, dim = ROUND[name]
    rng = np.random.default_rng(8)
    for across, bound in ((4, 0.01), (8, 0.002)):
        h = 1.0 / across
        for _ in range(3):
            body = pl.GridBody(make(rng.uniform(0.0, h, dim)), h, axes=axes)
            assert body.volume == pytest.approx(volume, rel=bound)


def sampled(shape, h, offset):
    low, high = shape.bounds
    first = low - (3.0 + offset) * h
    count = np.ceil((high - low) / h).astype(int) + 7
    axes = [f + h * np.arange(n) for f, n in zip(first, count, strict=True)]
    at = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    values = shape.distance(at.reshape(-1, 3)).reshape(at.shape[:-1])
    return SampledField(values=values, origin=tuple(first), spacing=h)


@pytest.mark.parametrize("name", ["ball", "torus"])
def test_a_scan_of_it_has_the_same_volume(name):
    make, volume, _ = ROUND[name]
    for across, bound in ((4, 0.01), (8, 0.002)):
        field = sampled(make(np.zeros(3)), 1.0 / across, 0.37)
        assert pl.GridBody(field).volume == pytest.approx(volume, rel=bound)
        assert pl.GridBody(field, subdivisions=1).volume < 0.99 * volume  # cut as it is


def test_a_thin_plate_of_samples_keeps_its_thickness():
    plate = pl.shapes.box(size=(3.0, 3.0, 0.3))
    for across in (4, 6):
        body = pl.GridBody(sampled(plate, 0.5 / across, 0.37))
        assert body.volume == pytest.approx(2.7, rel=0.01)


def test_a_free_ball_rings_as_lamb_says():
    """Twice the degree 2: torsional, and spheroidal for a Poisson's ratio of 1/4."""
    twist = brentq(lambda x: spherical_jn(2, x) - x * spherical_jn(3, x), 2.0, 3.0)
    assert twist == pytest.approx(2.501, abs=1e-3)
    stretch = 0.840 * np.pi  # Lamb's table
    body = pl.GridBody(pl.shapes.sphere(radius=0.5, center=(0.013, 0.021, 0.03)), 1.0 / 8.0)
    material = pl.Material(6e4, 0.25, 1000.0)
    _, mu = material.lame(1)
    found = pl.modes(pl.Scene(body, material), 16).frequencies[6:]
    found = 2.0 * np.pi * found * 0.5 * np.sqrt(1000.0 / mu[0])
    assert found[:5] == pytest.approx(np.full(5, twist), rel=0.015)
    assert found[5:] == pytest.approx(np.full(5, stretch), rel=0.01)
    assert np.mean(found[:5]) == pytest.approx(twist, rel=0.006)
    assert np.mean(found[5:]) == pytest.approx(stretch, rel=0.006)
