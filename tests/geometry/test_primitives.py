"""Distances of the analytic shapes against values computed by hand."""

import numpy as np
import pytest

from pliant.core.errors import BadInput
from pliant.geometry.shapes import (
    box,
    capsule,
    circle,
    cylinder,
    ellipsoid,
    half_space,
    sample,
    sphere,
    torus,
)

R2, R3 = np.sqrt(2.0), np.sqrt(3.0)

EXACT = [
    (sphere(radius=2, center=(1, 0, 0)), [(1, 0, 0), (4, 0, 0), (1, 1, 0)], [-2, 1, -1]),
    (circle(radius=2, center=(0, 1)), [(0, 1), (3, 5), (0, 0)], [-2, 3, -1]),
    (
        box(center=(0, 0, 0), size=(2, 4, 6)),
        [(0, 0, 0), (2, 0, 0), (2, 3, 4), (0.5, 1.75, 0)],
        [-1, 1, R3, -0.25],
    ),
    (box(size=(2, 2)), [(0, 0), (4, 5), (0, 0.75)], [-1, 5, -0.25]),
    (
        torus(major=1, minor=0.25),
        [(1, 0, 0), (0, 1, 0), (0, 0, 0), (1, 0, 1), (0, 2, 0)],
        [-0.25, -0.25, 0.75, 0.75, 0.75],
    ),
    (torus(major=1, minor=0.25, axis=(0, 2, 0)), [(0, 0, 1), (0, 1, 0)], [-0.25, R2 - 0.25]),
    (
        cylinder(radius=1, height=4),
        [(0, 0, 0), (0, 3, 0), (2, 3, 0), (0.5, 1.75, 0), (0, 0, 5)],
        [-1, 1, R2, -0.25, 4],
    ),
    (cylinder(radius=1, height=4, axis=(1, 0, 0)), [(3, 2, 0), (0, 3, 0)], [R2, 2]),
    (
        capsule(start=(0, 0, 0), end=(4, 0, 0), radius=1),
        [(2, 0, 0), (2, 3, 0), (7, 4, 0), (-2, 0, 0)],
        [-1, 2, 4, 1],
    ),
    (capsule(start=(0, 0), end=(0, 2), radius=0.5), [(3, 1), (0, 4), (0, 1)], [2.5, 1.5, -0.5]),
    (capsule(start=(1, 1), end=(1, 1), radius=0.5), [(1, 3)], [1.5]),
    (half_space(normal=(0, 3, 0), offset=1), [(9, 0, 9), (0, 3, 0)], [-1, 2]),
    (half_space(normal=(1, 1), offset=0), [(1, 1), (-1, 1)], [R2, 0]),
    (
        ellipsoid(radii=(3, 2, 1)),
        [(5, 0, 0), (0, 5, 0), (0, 0, -5), (0, 0, 0), (0, 0, 0.5)],
        [2, 3, 4, -1, -0.5],
    ),
    (ellipsoid(radii=(2, 1), center=(1, 1)), [(1, 1), (4, 1), (1, 3)], [-1, 1, 1]),
]

SHAPES = [shape for shape, _, _ in EXACT]


def name(value):
    return f"{value.kind}{value.dim}" if hasattr(value, "kind") else ""


@pytest.mark.parametrize(("shape", "points", "expected"), EXACT, ids=name)
def test_distance_by_hand(shape, points, expected):
    assert np.allclose(shape.distance(points), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES, ids=name)
def test_gradient_has_length_one(shape, rng):
    points = rng.uniform(-4, 4, (2000, shape.dim))
    length = np.linalg.norm(shape.gradient(points), axis=1)
    # Kinks of the distance (medial axis) have measure zero, but a difference may straddle one.
    assert np.quantile(np.abs(length - 1), 0.995) < 1e-6
    assert length.max() < 1 + 1e-6


@pytest.mark.parametrize("shape", SHAPES, ids=name)
def test_distance_never_exceeds_step(shape, rng):
    a, b = rng.uniform(-4, 4, (2, 2000, shape.dim))
    change = np.abs(shape.distance(a) - shape.distance(b))
    assert np.all(change <= np.linalg.norm(a - b, axis=1) + 1e-12)


@pytest.mark.parametrize("shape", SHAPES, ids=name)
def test_bounds_hold_the_inside_tightly(shape, rng):
    lo, hi = shape.bounds
    points = rng.uniform(-7, 7, (20000, shape.dim))
    inside = points[shape.contains(points)]
    assert np.all(inside >= lo)
    assert np.all(inside <= hi)
    for axis in range(shape.dim):
        if np.isfinite(hi[axis]) and np.isfinite(lo).all():
            # A surface point with the largest coordinate exists within the bounds' face.
            face = rng.uniform(lo, hi, (200000 // shape.dim, shape.dim))
            face[:, axis] = hi[axis]
            assert abs(shape.distance(face).min()) < 0.02 * np.max(hi - lo)


def test_ellipsoid_against_brute_force(rng):
    radii = np.array([2.0, 1.2, 0.3])
    theta, z = np.meshgrid(np.linspace(0, 2 * np.pi, 801), np.linspace(-1, 1, 801))
    rho = np.sqrt(1 - z**2)
    surface = np.stack([rho * np.cos(theta), rho * np.sin(theta), z], axis=-1).reshape(-1, 3)
    from scipy.spatial import KDTree

    points = rng.uniform(-2.5, 2.5, (300, 3))
    brute, _ = KDTree(surface * radii).query(points)
    found = ellipsoid(radii=radii).distance(points)
    assert np.all(np.abs(found) <= brute + 1e-12)
    assert np.allclose(np.abs(found), brute, atol=5e-3)
    assert np.array_equal(found < 0, np.sum((points / radii) ** 2, axis=1) < 1)


def test_ellipsoid_on_its_planes_of_symmetry():
    """Inside the focal region the foot of (x, 0, 0) is at f = 9 x / 8, z = sqrt(1 - f^2 / 9)."""
    x = np.array([0.0, 1e-200, 1.0, 2.6])
    foot = 9 * x / 8
    expected = -np.hypot(foot - x, np.sqrt(1 - foot**2 / 9))
    points = np.stack([x, 0 * x, 0 * x], axis=1)
    found = ellipsoid(radii=(3, 2, 1)).distance(points)
    assert np.allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("radii", [(3.0, 2.0, 1.0), (1.0, 1.0, 1e-3), (5.0, 0.1), (1.0, 1.0, 1.0)])
def test_ellipsoid_offset_along_normal(radii, rng):
    """A surface point moved outwards by s along its normal has the distance s to 1e-9."""
    e = np.array(radii)
    unit = rng.normal(size=(500, len(e)))
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    normal = unit / e
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    for s in (1e-6, 0.3, 100.0):
        found = ellipsoid(radii=radii).distance(unit * e + s * normal)
        assert np.abs(found - s).max() < 1e-9 * max(e.max(), s)
    # Inwards, less than the smallest radius of curvature min(e)^2 / max(e).
    depth = 0.9 * e.min() ** 2 / e.max()
    found = ellipsoid(radii=radii).distance(unit * e - depth * normal)
    assert np.abs(found + depth).max() < 1e-9 * e.max()


@pytest.mark.parametrize(
    ("shape", "content", "spacing"),
    [
        (sphere(radius=1), 4 / 3 * np.pi, 0.05),
        (box(size=(1, 2, 0.5)), 1.0, 0.025),
        (torus(major=1, minor=0.4), 2 * np.pi**2 * 0.16, 0.05),
        (cylinder(radius=0.5, height=2, axis=(1, 1, 0)), 0.5 * np.pi, 0.05),
        (capsule(start=(0, 0, 0), end=(1, 0, 0), radius=0.4), np.pi * (0.16 + 0.256 / 3), 0.04),
        (ellipsoid(radii=(1, 0.8, 0.5)), 4 / 3 * np.pi * 0.4, 0.04),
        (circle(radius=1), np.pi, 0.02),
        (ellipsoid(radii=(1, 0.5)), 0.5 * np.pi, 0.02),
    ],
    ids=lambda v: v.kind if hasattr(v, "kind") else "",
)
def test_volume(shape, content, spacing):
    assert sample(shape, spacing=spacing).volume() == pytest.approx(content, rel=5e-3)


@pytest.mark.parametrize(
    "make",
    [
        lambda: sphere(radius=0),
        lambda: sphere(radius=float("nan")),
        lambda: sphere(radius="big"),
        lambda: sphere(radius=True),
        lambda: sphere(radius=1, center=(0, 0)),
        lambda: circle(radius=-1),
        lambda: box(size=(1, 0, 1)),
        lambda: box(size=(1, 1), center=(0, 0, 0)),
        lambda: box(size=5),
        lambda: box(size=(1, 1, 1, 1)),
        lambda: torus(major=1, minor=2),
        lambda: torus(major=1, minor=0.2, axis=(0, 0, 0)),
        lambda: cylinder(radius=1, height=float("inf")),
        lambda: capsule(start=(0, 0), end=(0, 0, 1), radius=1),
        lambda: ellipsoid(radii=(1, -2, 1)),
        lambda: half_space(normal=(0, 0, 0)),
        lambda: half_space(normal="up"),
        lambda: sphere(radius=1).distance(np.zeros(3)),
        lambda: sphere(radius=1).distance(np.zeros((4, 2))),
        lambda: sphere(radius=1).distance("here"),
    ],
)
def test_wrong_arguments_are_refused(make):
    with pytest.raises(BadInput):
        make()
