"""Displacements beyond the body."""

import numpy as np
import pytest
from moved_bodies import corner_nodes, ellipsoid

import pliant as pl
from pliant.levelset.extension import Extension


@pytest.mark.parametrize("dim", [2, 3])
def test_linear_fields_are_continued_exactly(dim):
    """Second differences of A x + b vanish, so it is the minimum, also around corners."""
    box = pl.shapes.box(size=(0.5,) * dim, center=(0.03,) * dim)
    shape = pl.shapes.difference(box, pl.shapes.box(size=(0.3,) * dim, center=(0.2,) * dim))
    band = Extension(corner_nodes(shape, 0.1))
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((dim, dim)), rng.standard_normal(dim)
    u = band.extend(band.active @ A.T + b)
    assert np.abs(u - (band.lattice @ A.T + b)).max() < 1e-10


def test_the_band_has_five_nodes():
    _, band, _ = ellipsoid(2, 0.2)
    rest = band.lattice[band.active_count :]
    way = np.abs(rest[:, None] - band.active[None]).sum(axis=2).min(axis=1)
    assert way.min() == 1
    assert way.max() == 5
    assert len(np.unique(band.lattice, axis=0)) == len(band.lattice)


def test_laplace_keeps_constants_and_the_maximum_principle():
    _, band, _ = ellipsoid(3, 0.25, method="laplace")
    u = band.extend(np.column_stack([np.ones(band.active_count), band.active[:, 0]]))
    assert np.abs(u[:, 0] - 1.0).max() < 1e-12
    assert u[:, 1].max() <= band.active[:, 0].max() + 1e-12
    assert u[:, 1].min() >= band.active[:, 0].min() - 1e-12


@pytest.mark.parametrize("method", ["second_differences", "laplace"])
def test_spread_is_the_transpose(method):
    _, band, _ = ellipsoid(3, 0.25, method=method)
    rng = np.random.default_rng(1)
    a = rng.standard_normal((band.active_count, 3))
    b = rng.standard_normal((len(band.lattice), 3))
    left, right = np.vdot(band.extend(a), b), np.vdot(a, band.spread(b))
    assert abs(left - right) < 1e-10 * np.linalg.norm(a) * np.linalg.norm(b)


def test_unknown_methods_are_refused():
    with pytest.raises(pl.BadInput, match="second_differences, laplace"):
        ellipsoid(2, 0.2, method="magic")
