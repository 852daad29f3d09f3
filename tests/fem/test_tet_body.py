"""Bodies of tetrahedra and triangles: volumes, surfaces, location and refusals."""

import logging
import os
import sys
from pathlib import Path

import numpy as np
import pytest
import trimesh
import warp as wp
from scipy.spatial import Delaunay

from pliant.core.errors import BadInput, MissingExtra
from pliant.core.launch import to_device, zeros
from pliant.fem.bodies.tet_body import TetBody as AnyTetBody
from pliant.fem.cutting.triangulate import triangulate
from pliant.fem.forces.elasticity import Elasticity
from pliant.geometry import MeshShape, load_mesh, shapes
from simplex_bodies import NODES, TETS, require_sound


def TetBody(*source):  # noqa: N802
    """Linear cells; quadratic ones have tests of their own."""
    return AnyTetBody(*source, order=1)


DATA = Path(os.environ.get("PLIANT_DATA", Path(__file__).parents[3] / "shared" / "data"))
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason=f"the scans' folder {DATA} is missing")

SQUARE = np.array([[0.0, 0], [1, 0], [1, 1], [0, 1]])


def graded(seed=0, dim=3):
    """Delaunay cells from points crowded into one corner: cells of very different sizes."""
    rng = np.random.default_rng(seed)
    points = np.concatenate([rng.random((60, dim)), 0.02 * rng.random((60, dim))])
    cells = Delaunay(points).simplices
    edges = points[cells[:, 1:]] - points[cells[:, :1]]
    longest = np.linalg.norm(edges, axis=2).max(axis=1)
    return points, cells[np.abs(np.linalg.det(edges)) > 1e-3 * longest**dim]


# --- volumes and surfaces


def test_sphere(ball):
    require_sound(ball)
    assert ball.volume == pytest.approx(4.0 / 3.0 * np.pi, rel=0.02)
    assert ball.volume < 4.0 / 3.0 * np.pi  # its surface nodes lie on the sphere
    radius = np.linalg.norm(ball.surface.positions(ball.nodes), axis=1)
    assert np.median(np.abs(radius - 1.0)) < 1e-9
    assert 0.7 < ball.spacing / 0.25 < 1.2


def test_box_is_exact(brick):
    require_sound(brick)
    assert brick.volume == pytest.approx(6.0, rel=1e-12)
    area = np.linalg.norm(brick.surface.area_vectors(brick.surface.positions(brick.nodes)), axis=1)
    assert area.sum() == pytest.approx(22.0, rel=1e-12)
    assert brick.spacing == pytest.approx(0.4, rel=0.1)


def test_moved_box_is_exact():
    shape = shapes.box(size=(1.0, 1.0, 2.0)).rotated(angle=0.4, axis=(1, 2, 0)).scaled(2.0)
    shape = shape.mirrored(normal=(1, 1, 0)).translated((5.0, 0.0, 0.0))
    body = TetBody(shape, 1.0)
    require_sound(body)
    assert body.volume == pytest.approx(16.0, rel=1e-12)
    assert np.abs(shape.distance(body.surface.positions(body.nodes))).max() < 1e-12


def test_torus():
    body = TetBody(shapes.torus(major=1.0, minor=0.4), 0.25)
    require_sound(body)
    assert body.volume == pytest.approx(2.0 * np.pi**2 * 0.16, rel=0.04)
    sides = np.sort(
        np.concatenate([body.surface.facets[:, [a, (a + 1) % 3]] for a in range(3)]), axis=1
    )
    edges = len(np.unique(sides, axis=0))
    assert len(body.surface.points) - edges + len(body.surface.facets) == 0  # Euler number


def test_triangle_soup_from_trimesh():
    solid = trimesh.creation.box((1.0, 1.0, 1.0))
    soup = trimesh.Trimesh(
        solid.vertices[solid.faces].reshape(-1, 3), np.arange(36).reshape(-1, 3), process=False
    )
    body = TetBody(soup, 0.4)
    require_sound(body)
    assert body.volume == pytest.approx(1.0, rel=1e-3)


def test_nothing_is_printed_or_left_behind(capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    TetBody(trimesh.creation.icosphere(subdivisions=1), 1.0)
    out, err = capfd.readouterr()
    assert out == ""
    assert err == ""
    assert list(tmp_path.iterdir()) == []  # fTetWild writes __tracked_surface.stl where it runs


def test_a_mesher_that_dies_is_reported(monkeypatch):
    monkeypatch.setattr("pliant.fem.bodies.meshing._TETWILD", "import os; os.abort()")
    with pytest.raises(BadInput, match="cannot mesh this surface"):
        TetBody(shapes.sphere(radius=1.0), 0.5)
    monkeypatch.setattr("pliant.fem.bodies.meshing._TETWILD", "import pytetwild_of_old")
    with pytest.raises(MissingExtra, match="pytetwild"):
        TetBody(shapes.sphere(radius=1.0), 0.5)


@needs_data
@pytest.mark.parametrize("name", ["bunny.ply", "dragon_res4.ply"])
def test_scans(name):
    scan = load_mesh(DATA / name)
    lo, hi = scan.bounds
    body = TetBody(DATA / name, float(np.linalg.norm(hi - lo)) / 8.0)
    require_sound(body)
    assert body.volume == pytest.approx(scan.volume(), rel=0.08)


# --- the plane


def test_disc(disc):
    require_sound(disc)
    # an inscribed polygon of n sides has the area (n / 2) sin(2 pi / n)
    n = len(disc.surface.points)
    assert disc.volume == pytest.approx(0.5 * n * np.sin(2.0 * np.pi / n), rel=1e-6)
    assert disc.volume == pytest.approx(np.pi, rel=0.01)
    assert disc.spacing == pytest.approx(0.1, rel=0.1)


RING = shapes.circle(radius=1.0) - shapes.circle(radius=0.5)
PLANE = {
    "rectangle": (shapes.box(size=(2.0, 1.0)), 0.1, 2.0, 1e-12),
    "turned rectangle": (shapes.box(size=(2.0, 1.0)).rotated(angle=0.3), 0.1, 2.0, 1e-12),
    "ring": (RING, 0.1, 0.75 * np.pi, 0.01),
    "angle": (
        shapes.box(size=(2.0, 2.0)) - shapes.box(size=(2.0, 2.0), center=(1.0, 1.0)),
        0.1, 3.0, 1e-9,
    ),
    "cut corner": (
        shapes.box(size=(2.0, 2.0)) & shapes.half_space(normal=(1.0, 1.0), offset=0.7),
        0.1, 4.0 - (2.0 - 0.7 * np.sqrt(2.0)) ** 2 / 2.0, 1e-3,
    ),
    "two discs": (
        shapes.circle(radius=0.5) | shapes.circle(radius=0.5, center=(1.2, 0.0)),
        0.1, 0.5 * np.pi, 0.01,
    ),
    "small hole": (
        shapes.circle(radius=1.0) - shapes.circle(radius=0.06), 0.1, 0.9964 * np.pi, 0.01,
    ),
    "strip": (shapes.box(size=(2.0, 0.03)), 0.1, 0.06, 1e-9),
    "egg": (shapes.circle(radius=1.0) | shapes.box(size=(1.0, 3.0)), 0.15, None, None),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANE)
def test_triangulated_areas(name):
    shape, edge, area, tolerance = PLANE[name]
    body = TetBody(shape, edge)
    require_sound(body)
    if area is not None:
        assert body.volume == pytest.approx(area, rel=tolerance)
    corners = body.nodes[body.cells]
    ahead, behind = (np.roll(corners, shift, axis=1) - corners for shift in (-1, 1))
    cross = ahead[..., 0] * behind[..., 1] - ahead[..., 1] * behind[..., 0]
    angle = np.degrees(np.arctan2(cross, np.einsum("tki,tki->tk", ahead, behind)))
    # Delaunay refinement promises 20.7 degrees; the strip's height over its edges allows 16.7
    assert angle.min() > (16.6 if name == "strip" else 20.7)


def test_triangulation_repeats():
    first, again = triangulate(RING, 0.15), triangulate(RING, 0.15)
    assert np.array_equal(first[0], again[0])
    assert np.array_equal(first[1], again[1])


# --- arrays


def test_arrays_keep_their_order_and_are_turned(caplog):
    tets = TETS.copy()
    tets[0] = tets[0, [1, 0, 2, 3]]
    body = TetBody((NODES, tets))
    require_sound(body)
    assert np.array_equal(body.nodes, NODES)
    assert [set(c) for c in body.cells.tolist()] == [set(c) for c in TETS.tolist()]
    assert body.cell_volumes == pytest.approx([1.0 / 6.0, 1.0 / 3.0], rel=1e-14)
    assert len(body.surface.facets) == 6

    apart = np.concatenate([NODES, [[9.0, 9.0, 9.0]], NODES[:4] + 5.0])
    with caplog.at_level(logging.INFO):
        body = TetBody((apart, [*TETS.tolist(), [6, 7, 8, 9]]))
    require_sound(body)
    assert len(body.nodes) == 9
    assert "1 nodes belong to no cell" in caplog.text
    assert "2 disconnected pieces" in caplog.text

    body = TetBody((SQUARE, [[0, 1, 2], [0, 3, 2]]))
    require_sound(body)
    assert body.volume == pytest.approx(1.0, rel=1e-14)
    assert body.geometry_table.shape == (2, 13)


def test_arrays_are_not_shared():
    nodes = NODES.copy()
    body = TetBody((nodes, TETS))
    nodes[:] = 7.0
    assert np.array_equal(body.nodes, NODES)


BAD_ARRAYS = {
    "nan node": ((np.where(NODES == 1, np.nan, NODES), TETS), "node 1"),
    "infinite node": ((np.where(NODES == 1, np.inf, NODES), TETS), "node 1"),
    "index too large": ((NODES, [[0, 1, 2, 3], [1, 2, 3, 5]]), "cell 1"),
    "negative index": ((NODES, [[0, 1, 2, -1]]), "cell 0"),
    "flat cell": ((NODES * [1, 1, 0], TETS), "cell 0"),
    "repeated node": ((NODES, [[0, 1, 2, 3], [1, 1, 2, 3]]), "cell 1"),
    "sliver": ((np.append(NODES, [[0.3, 0.3, 1e-14]], axis=0), [[0, 1, 2, 5]]), "cell 0"),
    "same cell twice": ((NODES, [[0, 1, 2, 3], [1, 2, 3, 4], [3, 2, 1, 0]]), "cell 0"),
    "overlapping cells": ((NODES, [[0, 1, 2, 3], [0, 1, 2, 4]]), "cell 0"),
    "no cells": ((NODES, np.zeros((0, 4), int)), "no cells"),
    "no nodes": ((np.zeros((0, 3)), TETS), "cell 0"),
    "fractional cells": ((NODES, TETS + 0.5), "integers"),
    "hexahedra": ((NODES, np.zeros((1, 8), int)), "8 nodes"),
    "surface in space": ((NODES, TETS[:, :3]), "MeshShape"),
    "one coordinate": ((NODES[:, :1], TETS), "shape"),
    "words": ((NODES, "tets"), "integers"),
    "ragged": (([[0, 0, 0], [1, 0]], TETS), "arrays"),
    "number": (3.0, "float"),
    "none": (None, "NoneType"),
}


@pytest.mark.parametrize("name", BAD_ARRAYS)
def test_bad_arrays(name):
    source, words = BAD_ARRAYS[name]
    with pytest.raises(BadInput, match=words):
        TetBody(source)


@pytest.mark.parametrize("edge", [0.0, -1.0, np.nan, np.inf, "long", 1e-9])
def test_bad_edge_lengths(edge):
    for shape in (shapes.box(size=(1, 1, 1)), shapes.sphere(radius=1.0), shapes.circle(radius=1.0)):
        with pytest.raises(BadInput):
            TetBody(shape, edge)


def test_bad_shapes():
    with pytest.raises(BadInput, match="unbounded"):
        TetBody(shapes.half_space(normal=(0, 0, 1)), 0.1)
    with pytest.raises(BadInput, match="no inside"):
        TetBody(shapes.sphere(radius=1.0) - shapes.sphere(radius=2.0), 0.3)
    flat = trimesh.Trimesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]])
    with pytest.raises(BadInput, match="volume"):
        TetBody(flat)


def test_without_pytetwild(monkeypatch, tmp_path):
    monkeypatch.setenv("PLIANT_CACHE", str(tmp_path))  # where no mesh was kept
    monkeypatch.setitem(sys.modules, "pytetwild", None)
    with pytest.raises(MissingExtra, match=r"pliant\[mesh\]"):
        TetBody(shapes.sphere(radius=1.0), 0.5)
    assert TetBody(shapes.box(size=(1, 1, 1)), 0.5).volume == pytest.approx(1.0)


# --- location


def field(x):
    """A linear vector field, exact for linear elements."""
    A = np.array([[1.0, 2.0, -3.0], [0.5, -1.0, 4.0], [2.0, 0.3, 0.7]])[:, : x.shape[1]]
    return x @ A.T + [3.0, -2.0, 1.0]


@pytest.mark.parametrize("name", ["ball", "brick", "disc", "graded", "graded in the plane"])
def test_linear_fields_at_points_inside(name, request):
    if name.startswith("graded"):
        body = TetBody(graded(dim=2 if "plane" in name else 3))
    else:
        body = request.getfixturevalue(name)
    rng = np.random.default_rng(5)
    cell = rng.integers(len(body.cells), size=3000)
    weights = rng.dirichlet(np.ones(body.dim + 1), size=3000)
    x = np.einsum("nk,nki->ni", weights, body.nodes[body.cells[cell]])
    found = body.locate(x)
    assert np.array_equal(body.locate.cells_of(x), cell)
    assert np.abs(found.weights - weights).max() < 1e-9
    assert np.abs(found.at(field(body.nodes)) - field(x)).max() < 1e-12
    assert np.abs(body.displacement_at(x, field(body.nodes)) - field(x)).max() < 1e-12


def test_points_on_nodes_and_outside(ball):
    at_nodes = ball.locate(ball.nodes).at(field(ball.nodes))
    assert np.abs(at_nodes - field(ball.nodes)).max() < 1e-12
    direction = np.random.default_rng(6).normal(size=(500, 3))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    for radius in (1.01, 1.5, 10.0):
        out = ball.locate(radius * direction)
        assert np.abs(out.at(field(ball.nodes)) - field(radius * direction)).max() < 1e-10 * radius
        assert out.weights.sum(axis=1) == pytest.approx(1.0)
    near = ball.locate(1.01 * direction)
    assert near.weights.min() > -0.5  # of the cells around, not one that has to reach far
    # of all cells, the one whose smallest coordinate is largest, or (few are looked at) nearly
    corners = ball.nodes[ball.cells]
    T = np.linalg.inv(np.swapaxes(corners[:, :3] - corners[:, 3:], 1, 2))
    head = np.einsum("cij,ncj->nci", T, 1.01 * direction[:50, None] - corners[:, 3])
    lowest = np.minimum(head.min(axis=2), 1.0 - head.sum(axis=2)).max(axis=1)
    missed = lowest - near.weights[:50].min(axis=1)
    assert (missed > -1e-12).all()
    assert (missed < 1e-12).mean() > 0.9
    assert missed.max() < 0.02
    assert len(ball.locate(np.zeros((0, 3)))) == 0
    with pytest.raises(BadInput, match="Point 1"):
        ball.locate(np.array([[0.0, 0, 0], [np.nan, 0, 0]]))


# --- elasticity


@pytest.mark.parametrize("name", ["ball", "brick", "disc", "graded"])
def test_constant_strain_needs_no_inner_forces(name, request):
    body = TetBody(graded()) if name == "graded" else request.getfixturevalue(name)
    elasticity = Elasticity(body, model="linear")
    elasticity.set_material(np.full(len(body.cells), 2.0), np.full(len(body.cells), 1.0))
    w = np.zeros((len(body.nodes), 3))
    w[:, : body.dim] = field(body.nodes)[:, : body.dim]
    force = zeros(len(body.nodes), wp.vec3d)
    elasticity.add_force(to_device(w, wp.vec3d), 0.0, force)
    force = force.numpy()
    border = body.surface.points.nodes[:, 0]
    inner = np.setdiff1d(np.arange(len(body.nodes)), border)
    assert len(inner) > 0
    assert np.abs(force[inner]).max() < 1e-10 * np.abs(force).max()
    # on the surface they are the stress times the outward area, shared out to the corners
    grad = (field(np.eye(body.dim)) - field(np.zeros((1, body.dim))))[:, : body.dim].T
    stress = 2.0 * np.trace(grad) * np.eye(body.dim) + grad + grad.T
    area = body.surface.area_vectors(body.surface.positions(body.nodes)) / body.dim
    share = np.zeros((len(body.surface.points), body.dim))
    for corner in body.surface.facets.T:
        np.add.at(share, corner, area @ stress.T)
    assert np.abs(force[border, : body.dim] - share).max() < 1e-10 * np.abs(force).max()


def test_numbering_is_local(brick):
    """Reverse Cuthill-McKee: neighbours' numbers differ by about one layer of nodes."""
    spread = np.ptp(brick.cells, axis=1)
    layer = len(brick.nodes) / (3.0 / 0.3)
    assert spread.max() < 4.0 * layer


def test_mesh_shape_goes_in_directly():
    solid = trimesh.creation.icosphere(subdivisions=2)
    body = TetBody(MeshShape(vertices=solid.vertices, faces=solid.faces[:, ::-1]), 0.6)
    require_sound(body)
    assert body.volume == pytest.approx(solid.volume, rel=0.05)
