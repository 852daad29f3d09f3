"""Distorted fields become distances again: slope within 2 %, surface within 0.05 cells."""

import numpy as np
import pytest

from pliant.core.errors import BadInput
from pliant.geometry import SampledField, load_field, redistance
from pliant.geometry import shapes as s
from pliant.geometry.redistance import edge_crossings

CASES = {
    "sphere": (s.sphere(radius=1), 0.08),
    "torus": (s.torus(major=1, minor=0.35), 0.05),
    "circle": (s.circle(radius=1), 0.08),
    "ellipse": (s.ellipsoid(radii=(1.2, 0.9)), 0.05),
}


def distorted(shape, h, shift=0.0123):
    """phi = distance * (1 + sin(3 x) / 2) on a grid in general position, and the distance."""
    lo, hi = shape.bounds
    origin = lo - 5.3 * h + shift
    counts = np.ceil((hi - origin) / h).astype(int) + 5
    axes = [o + h * np.arange(n) for o, n in zip(origin, counts, strict=True)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    exact = shape.distance(grid.reshape(-1, shape.dim)).reshape(counts)
    return exact * (1 + 0.5 * np.sin(3 * grid[..., 0])), exact, origin


@pytest.mark.parametrize("case", CASES)
def test_distorted_field(case):
    shape, h = CASES[case]
    phi, exact, origin = distorted(shape, h)
    band = np.abs(exact) < 3 * h
    before = np.linalg.norm(np.stack(np.gradient(phi, h)), axis=0)[band]
    assert np.abs(before - 1).max() > 0.4  # the test would mean nothing on a distance
    found = redistance(phi, spacing=h)
    slope = np.linalg.norm(np.stack(np.gradient(found, h)), axis=0)[band]
    assert np.abs(slope - 1).max() < 0.02
    surface = origin + h * edge_crossings(found)
    assert np.abs(shape.distance(surface)).max() < 0.05 * h
    moved = edge_crossings(found) - edge_crossings(phi)
    assert np.linalg.norm(moved, axis=1).max() < 0.05
    assert np.abs(found - exact)[band].max() < 0.01 * h
    assert np.array_equal(found < 0, phi < 0)


def test_error_falls_with_the_spacing():
    """The band's error is of third order or better in h (cubic interpolation of the field)."""
    errors = []
    for h in (0.1, 0.05):
        phi, exact, _ = distorted(s.circle(radius=1), h)
        band = np.abs(exact) < 0.2
        errors.append(np.abs(redistance(phi, spacing=h) - exact)[band].max())
    assert np.log2(errors[0] / errors[1]) > 2.7


def test_far_values():
    phi, exact, _ = distorted(s.sphere(radius=1), 0.1)
    assert np.abs(redistance(phi, spacing=0.1) - exact).max() < 0.1 * 0.1


def test_sharp_box_keeps_its_faces():
    phi, exact, _ = distorted(s.box(size=(1, 1.3, 0.7)), 0.1)
    found = redistance(phi, spacing=0.1)
    moved = np.linalg.norm(edge_crossings(found) - edge_crossings(phi), axis=1)
    assert np.median(moved) < 0.05
    assert moved.max() < 0.1  # next to the edges, where no interpolant is smooth
    assert np.array_equal(found < 0, exact < 0)


def test_field_method_closes_an_open_border():
    """A solid cut off by its grid ends there: a half ball of radius 1 and height 1."""
    phi, _, origin = distorted(s.sphere(radius=1), 0.1)
    first = int(np.floor(-origin[2] / 0.1))
    half = SampledField(values=phi[:, :, first:], origin=(*origin[:2], 0.0), spacing=0.1)
    assert half.reaches_border
    again = half.redistanced()
    assert not again.reaches_border
    assert again.distance([(0, 0, 0.3), (0, 0, -0.3)]) == pytest.approx([-0.3, 0.3], abs=1e-6)


def test_no_surface_is_refused():
    with pytest.raises(BadInput, match="surface"):
        redistance(np.ones((4, 4)), spacing=1.0)


def test_result_is_lipschitz_even_on_a_scan(data):
    """Neighbours differ by at most one cell, as distances do, also beside thin features."""
    for name in ("sdf_dragon_56x54x28.npz", "sdf_bunny_27x31x22.npz"):
        field = load_field(data / name)
        found = field.redistanced()
        for axis in range(3):
            assert np.abs(np.diff(found.values, axis=axis)).max() < 1.01 * field.spacing
        assert np.array_equal(found.values < 0, field.values < 0)
        assert found.volume() == pytest.approx(field.volume(), rel=0.005)
