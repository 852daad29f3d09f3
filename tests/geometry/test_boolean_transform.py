"""Truth tables of the booleans, equivariance of the transforms."""

import numpy as np
import pytest

from pliant.core.errors import BadInput
from pliant.geometry import shapes as s

A = s.sphere(radius=1)
B = s.box(center=(0.8, 0, 0), size=(1, 1, 1))


def test_sign_truth_table(rng):
    points = rng.uniform(-2, 2, (5000, 3))
    a, b = A.contains(points), B.contains(points)
    assert np.array_equal((A | B).contains(points), a | b)
    assert np.array_equal((A & B).contains(points), a & b)
    assert np.array_equal((A - B).contains(points), a & ~b)
    assert (a & b).any()
    assert (a & ~b).any()
    assert (b & ~a).any()


def test_many_shapes_union(rng):
    parts = [s.circle(radius=0.5, center=(i, 0)) for i in range(4)]
    points = rng.uniform(-1, 4, (1000, 2))
    expected = np.min([p.distance(points) for p in parts], axis=0)
    assert np.array_equal(s.union(*parts).distance(points), expected)


def test_smooth_union_fills_by_a_quarter_blend():
    """Where both distances are equal the polynomial minimum lies blend / 4 below them."""
    left, right = s.half_space(normal=(1, 0)), s.half_space(normal=(0, 1))
    for blend in (0.1, 0.5):
        joined = s.smooth_union(left, right, blend=blend)
        assert joined.distance([(0.3, 0.3)])[0] == pytest.approx(0.3 - blend / 4, abs=1e-14)
        assert joined.distance([(0.3, 0.3 + blend)])[0] == pytest.approx(0.3, abs=1e-14)
        cut = s.smooth_intersection(left, right, blend=blend)
        assert cut.distance([(0.3, 0.3)])[0] == pytest.approx(0.3 + blend / 4, abs=1e-14)
        rest = s.smooth_difference(left, right, blend=blend)
        assert rest.distance([(-0.2, 0.2)])[0] == pytest.approx(-0.2 + blend / 4, abs=1e-14)


def test_smooth_union_bounds_hold_it(rng):
    joined = s.smooth_union(A, B, blend=0.6)
    points = rng.uniform(-2, 2, (20000, 3))
    lo, hi = joined.bounds
    inside = points[joined.contains(points)]
    assert np.all((inside >= lo) & (inside <= hi))
    assert joined.contains(points).sum() > (A | B).contains(points).sum()


def test_apart_intersection_has_no_inside():
    apart = s.sphere(radius=1) & s.sphere(radius=1, center=(5, 0, 0))
    with pytest.raises(BadInput, match="inside"):
        s.sample(apart, spacing=0.1)


def test_dimensions_must_agree():
    with pytest.raises(BadInput, match="2D"):
        _ = s.circle(radius=1) | s.sphere(radius=1)
    with pytest.raises(BadInput):
        s.union()
    with pytest.raises(TypeError):
        _ = A | 3
    with pytest.raises(BadInput):
        s.union(A, B, blend=-1)


MOVES = {
    "translated": (lambda t: t.translated((1, 2, 3)), lambda p: p + (1, 2, 3), 1),
    "rotated": (
        lambda t: t.rotated(axis=(0, 0, 2), angle=np.pi / 2),
        lambda p: np.stack([-p[:, 1], p[:, 0], p[:, 2]], axis=1),
        1,
    ),
    "scaled": (lambda t: t.scaled(2.5), lambda p: 2.5 * p, 2.5),
    "mirrored": (lambda t: t.mirrored(normal=(3, 0, 0)), lambda p: p * (-1, 1, 1), 1),
}


@pytest.mark.parametrize("move", MOVES)
def test_moving_the_shape_moves_the_distance(move, rng):
    act, image, factor = MOVES[move]
    shape = s.ellipsoid(radii=(1, 0.7, 0.4), center=(0.3, 0.2, -0.1)) | B
    points = rng.uniform(-3, 3, (1000, 3))
    expected = factor * shape.distance(points)
    assert np.allclose(act(shape).distance(image(points)), expected, atol=1e-12)
    lo, hi = act(shape).bounds
    corners = image(np.array(shape.bounds))
    assert np.allclose(lo, corners.min(axis=0), atol=1e-12)
    assert np.allclose(hi, corners.max(axis=0), atol=1e-12)


def test_turn_in_the_plane():
    bar = s.box(size=(4, 1)).rotated(angle=np.pi / 2)
    assert np.allclose(bar.distance([(0, 2), (2, 0)]), [0, 1.5], atol=1e-12)
    with pytest.raises(BadInput, match="axis"):
        s.circle(radius=1).rotated(angle=1, axis=(0, 0, 1))
    with pytest.raises(BadInput, match="axis"):
        A.rotated(angle=1)


def test_turned_half_space_stays_bounded():
    floor = s.half_space(normal=(0, 1, 0), offset=2).rotated(axis=(0, 0, 1), angle=np.pi / 2)
    lo, _ = floor.bounds  # the normal now points along -x: x >= -2
    assert lo[0] == pytest.approx(-2)
    assert not np.isnan(np.array(floor.bounds)).any()


def test_extruded_circle_is_a_cylinder(rng):
    points = rng.uniform(-3, 3, (1000, 3))
    made = s.circle(radius=0.7).extruded(2)
    known = s.cylinder(radius=0.7, height=2, axis=(0, 0, 1))
    assert np.allclose(made.distance(points), known.distance(points), atol=1e-12)
    assert np.allclose(made.bounds, known.bounds)


def test_revolved_circle_is_a_torus(rng):
    points = rng.uniform(-3, 3, (1000, 3))
    made = s.circle(radius=0.3).revolved(1.1)
    known = s.torus(major=1.1, minor=0.3, axis=(0, 1, 0))
    assert np.allclose(made.distance(points), known.distance(points), atol=1e-12)
    assert np.allclose(made.bounds, known.bounds)


@pytest.mark.parametrize(
    "make",
    [
        lambda: A.extruded(1),
        lambda: A.revolved(1),
        lambda: A.scaled(0),
        lambda: A.scaled(-1),
        lambda: A.translated((1, 2)),
        lambda: A.mirrored(normal=(0, 0, 0)),
        lambda: s.circle(radius=1).extruded(-1),
        lambda: s.translated("ball", offset=(1, 2, 3)),
    ],
)
def test_wrong_transforms_are_refused(make):
    with pytest.raises(BadInput):
        make()
