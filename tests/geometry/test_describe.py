"""Shapes to dictionaries, through JSON, and back."""

import json

import numpy as np
import pytest

from pliant.core.errors import BadInput
from pliant.geometry import shape_from_dict, shape_types
from pliant.geometry import shapes as s

BALL = s.sphere(radius=1)
DISC = s.circle(radius=0.5)

EVERY = [
    BALL,
    DISC,
    s.box(size=(1, 2, 3), center=(1, 0, 0)),
    s.box(size=(1, 2)),
    s.torus(major=1, minor=0.3),
    s.cylinder(radius=1, height=2, axis=(1, 1, 0)),
    s.capsule(start=(0, 0), end=(1, 0), radius=0.2),
    s.ellipsoid(radii=(1, 2, 3)),
    s.half_space(normal=(0, 1, 0), offset=-1),
    BALL | s.box(size=(1, 1, 1)),
    BALL - s.sphere(radius=0.5),
    s.smooth_intersection(BALL, s.box(size=(1, 1, 1)), blend=0.1),
    (BALL - s.sphere(radius=0.5)).translated((1, 0, 0)),
    BALL.rotated(axis=(1, 0, 0), angle=0.3),
    DISC.rotated(angle=0.3),
    BALL.scaled(2),
    BALL.mirrored(normal=(1, 1, 0)),
    DISC.extruded(2),
    DISC.revolved(1),
]


@pytest.mark.parametrize("shape", EVERY, ids=lambda v: v.kind)
def test_round_trip(shape, rng):
    text = json.dumps(shape.to_dict())
    again = shape_from_dict(json.loads(text))
    points = rng.uniform(-3, 3, (200, shape.dim))
    # Unit vectors are normalised once more on the way, which may cost the last bit.
    assert np.allclose(again.distance(points), shape.distance(points), rtol=0, atol=1e-14)
    assert again.to_dict().keys() == shape.to_dict().keys()


def test_every_type_is_covered():
    assert {shape.kind for shape in EVERY} | {"field", "mesh", "height_field"} == set(shape_types())


def test_files_round_trip(tmp_path, rng):
    field = s.sample(BALL, spacing=0.2).save(tmp_path / "ball.npz")
    points = rng.uniform(-2, 2, (100, 3))
    moved = field.translated((1, 0, 0))
    again = shape_from_dict(json.loads(json.dumps(moved.to_dict())))
    assert np.array_equal(again.distance(points), moved.distance(points))
    relative = shape_from_dict({"type": "field", "file": "ball.npz"}, folder=tmp_path)
    assert np.array_equal(relative.distance(points), field.distance(points))
    with pytest.raises(BadInput, match="save"):
        s.sample(BALL, spacing=0.2).to_dict()


@pytest.mark.parametrize(
    ("description", "message"),
    [
        ({"type": "spere", "radius": 1}, "did you mean 'sphere'"),
        ({"type": "sphere", "radus": 1}, "did you mean 'radius'"),
        ({"type": "qqq"}, "known"),
        ({"radius": 1}, "type"),
        ({"type": "sphere"}, "needs the key 'radius'"),
        ({"type": "sphere", "radius": -1}, "radius"),
        ({"type": ["sphere"]}, "unknown type"),
        ("sphere", "table"),
        ({"type": "union", "shapes": {"type": "sphere", "radius": 1}}, "list"),
        ({"type": "union", "shapes": []}, "at least one"),
        (
            {"type": "union", "shapes": [{"type": "sphere", "radius": 1}, {"type": "bx"}]},
            r"shape.shapes\[1\].*'box'",
        ),
        ({"type": "scaled", "factor": 2, "shape": 3}, "shape.shape"),
        ({"type": "mesh", "file": 3}, "shape.file"),
        ({"type": "mesh", "file": "nowhere.ply"}, "nowhere.ply"),
    ],
)
def test_wrong_descriptions_name_the_place(description, message):
    with pytest.raises(BadInput, match=message):
        shape_from_dict(description)


def test_endless_nesting_is_refused():
    description = {"type": "sphere", "radius": 1}
    for _ in range(2000):
        description = {"type": "scaled", "factor": 1, "shape": description}
    with pytest.raises(BadInput, match="nested"):
        shape_from_dict(description)
