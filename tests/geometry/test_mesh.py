"""Shapes from triangles: distance, sign with holes and flips, scans, files."""

import logging

import numpy as np
import pytest
import trimesh
from scipy import ndimage

from pliant.core.errors import BadInput
from pliant.geometry import MeshShape, load_mesh, load_shape, sample, solid_field
from pliant.geometry import shapes as s

CUBE = trimesh.creation.box(extents=(2, 2, 2))


def test_cube_mesh_equals_box(rng):
    points = rng.uniform(-3, 3, (5000, 3))
    found = MeshShape(vertices=CUBE.vertices, faces=CUBE.faces)
    assert np.abs(found.distance(points) - s.box(size=(2, 2, 2)).distance(points)).max() < 2e-6
    assert found.volume() == pytest.approx(8)
    assert np.allclose(found.bounds, [(-1, -1, -1), (1, 1, 1)])


def test_far_from_the_origin_and_in_any_unit(rng):
    """Accuracy is relative to the mesh, not to its coordinates: 1e-6 of its size."""
    for scale, shift in ((1e-6, 0.0), (1e6, 0.0), (1.0, 1e5)):
        points = rng.uniform(-3, 3, (500, 3))
        found = MeshShape(vertices=CUBE.vertices * scale + shift, faces=CUBE.faces)
        expected = scale * s.box(size=(2, 2, 2)).distance(points)
        assert np.abs(found.distance(points * scale + shift) - expected).max() < 4e-6 * scale


def test_very_far_points():
    found = MeshShape(vertices=CUBE.vertices, faces=CUBE.faces)
    assert found.distance([(1e9, 0, 0)])[0] == pytest.approx(1e9, rel=1e-6)


def test_gradient_is_a_unit_vector_away_from_the_solid(rng):
    points = rng.uniform(-3, 3, (500, 3))
    found = MeshShape(vertices=CUBE.vertices, faces=CUBE.faces)
    gradient = found.gradient(points)
    assert np.allclose(np.linalg.norm(gradient, axis=1), 1)
    exact = s.box(size=(2, 2, 2)).gradient(points)
    close = np.linalg.norm(gradient - exact, axis=1) < 1e-4
    assert close.mean() > 0.99  # the rest straddles the medial axis
    assert found.gradient([(1, 0.3, 0.2)]) == pytest.approx(np.array([(1.0, 0, 0)]), abs=1e-6)


@pytest.mark.parametrize("missing", range(12))
def test_one_triangle_missing_keeps_the_sign(missing, rng):
    faces = np.delete(CUBE.faces, missing, axis=0)
    holed = MeshShape(vertices=CUBE.vertices, faces=faces)
    points = rng.uniform(-2, 2, (3000, 3))
    exact = s.box(size=(2, 2, 2)).distance(points)
    # Near the hole the surface is a bulge over it, so only points away from it are certain.
    hole = CUBE.triangles_center[missing]
    certain = np.linalg.norm(points - hole, axis=1) > 1.5
    assert np.array_equal(holed.contains(points)[certain], exact[certain] < 0)


def test_inverted_mesh_is_turned(caplog, rng):
    ball = trimesh.creation.icosphere(subdivisions=3, radius=1)
    with caplog.at_level(logging.INFO, logger="pliant.geometry"):
        found = MeshShape(vertices=ball.vertices, faces=ball.faces[:, ::-1])
    assert "inside out" in caplog.text
    points = rng.uniform(-2, 2, (2000, 3))
    radius = np.linalg.norm(points, axis=1)
    certain = np.abs(radius - 1) > 0.02
    assert np.array_equal(found.contains(points)[certain], radius[certain] < 1)
    assert found.volume() > 0


def test_overlapping_parts_are_one_solid():
    a = trimesh.creation.icosphere(subdivisions=2, radius=1)
    both = trimesh.util.concatenate([a, a.copy().apply_translation((0.5, 0, 0))])
    found = MeshShape(vertices=both.vertices, faces=both.faces)
    assert found.contains([(0.25, 0, 0), (-0.8, 0, 0), (1.3, 0, 0)]).all()


def test_thin_closed_plate_is_accepted():
    plate = trimesh.creation.box(extents=(1, 1, 1e-4))
    found = MeshShape(vertices=plate.vertices, faces=plate.faces)
    assert found.contains([(0, 0, 0)])[0]


def test_open_bowl_is_filled_and_open_sheet_is_refused():
    """At the bottom of a half sphere without lid the winding number is 1 - (1 - 1/sqrt 2) / 2."""
    ball = trimesh.creation.icosphere(subdivisions=4, radius=1)
    bowl = MeshShape(vertices=ball.vertices, faces=ball.faces[ball.triangles_center[:, 2] < 0])
    assert bowl.contains([(0, 0, -0.9)])[0]
    assert not bowl.contains([(0, 0, 0.3)])[0]
    with pytest.raises(BadInput, match="no volume"):
        MeshShape(vertices=ball.vertices, faces=ball.faces[ball.triangles_center[:, 2] < -0.8])


def test_bunny_volume(data):
    bunny = load_mesh(data / "bunny.ply")
    known = trimesh.load(data / "bunny.ply").volume
    field = solid_field(bunny, spacing=np.ptp(bunny.bounds, axis=0).max() / 50)
    assert field.volume() == pytest.approx(known, rel=0.02)
    assert ndimage.label(field.values < 0)[1] == 1


def test_dragon_is_one_solid(data):
    """A scan with holes: one connected solid at 1/50 of its length."""
    dragon = load_mesh(data / "dragon_res4.ply")
    field = solid_field(dragon, spacing=np.ptp(dragon.bounds, axis=0).max() / 50)
    assert ndimage.label(field.values < 0)[1] == 1
    assert field.volume() == pytest.approx(dragon.volume(), rel=0.02)


def test_sign_agrees_with_the_exact_winding_number(data, rng):
    dragon = load_mesh(data / "dragon_res4.ply")
    lo, hi = dragon.bounds
    points = rng.uniform(lo, hi, (300, 3))
    a, b, c = np.moveaxis(dragon.vertices[dragon.faces], 1, 0)
    winding = np.empty(len(points))
    for i, p in enumerate(points):
        u, v, w = a - p, b - p, c - p
        lu, lv, lw = (np.linalg.norm(x, axis=1) for x in (u, v, w))
        over = np.einsum("ni,ni->n", u, np.cross(v, w))
        under = lu * lv * lw + lw * (u * v).sum(1) + lu * (v * w).sum(1) + lv * (w * u).sum(1)
        winding[i] = np.arctan2(over, under).sum() / (2 * np.pi)
    certain = np.abs(winding - 0.5) > 0.05
    assert np.array_equal(dragon.contains(points)[certain], winding[certain] > 0.5)


@pytest.mark.parametrize("suffix", [".ply", ".obj", ".stl", ".off", ".glb"])
def test_file_round_trip(suffix, tmp_path, rng):
    ring = trimesh.creation.torus(major_radius=1, minor_radius=0.3)
    shape = MeshShape(vertices=ring.vertices, faces=ring.faces).save(tmp_path / f"ring{suffix}")
    again = load_shape(tmp_path / f"ring{suffix}")
    points = rng.uniform(-2, 2, (500, 3))
    assert np.allclose(again.distance(points), shape.distance(points), atol=1e-5)
    assert again.to_dict() == {"type": "mesh", "file": str(tmp_path / f"ring{suffix}")}
    assert again.to_dict() == shape.to_dict()


def test_mesh_in_memory_has_no_description():
    with pytest.raises(BadInput, match="save"):
        MeshShape(vertices=CUBE.vertices, faces=CUBE.faces).to_dict()


def test_sampled_mesh_matches_its_shape(rng):
    found = sample(MeshShape(vertices=CUBE.vertices, faces=CUBE.faces), spacing=0.25)
    exact = sample(s.box(size=(2, 2, 2)), spacing=0.25)
    assert np.allclose(np.abs(found.values), np.abs(exact.values), atol=1e-6)


@pytest.mark.parametrize(
    ("vertices", "faces", "message"),
    [
        (np.zeros((3, 2)), [[0, 1, 2]], "vertices"),
        (CUBE.vertices, np.zeros((0, 3), int), "no faces"),
        (CUBE.vertices, [[0, 1, 99]], "does not exist"),
        (CUBE.vertices, [[0, 1, -1]], "does not exist"),
        (CUBE.vertices, [[0, 0, 1]], "degenerate"),
        (CUBE.vertices, [[0.0, 1.0, 2.0]], "integers"),
        (CUBE.vertices * np.inf, CUBE.faces, "not finite"),
        (CUBE.vertices * (1, 1, 0), CUBE.faces, "flat"),
        (CUBE.vertices * 1e200, CUBE.faces, "units"),
        ("cube", [[0, 1, 2]], "numbers"),
    ],
)
def test_wrong_triangles_are_refused(vertices, faces, message):
    with pytest.raises(BadInput, match=message):
        MeshShape(vertices=vertices, faces=faces)
