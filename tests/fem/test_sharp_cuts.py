"""Edges and corners within cells: volumes, areas and moments against closed forms."""

import numpy as np
import pytest

import pliant as pl
from oblique import oblique_body
from pliant.fem.cutting.quadrature import covered_points
from pliant.fem.cutting.thin_layers import BEYOND
from pliant.geometry.mesh_shape import MeshShape, is_closed

FOUR_ACROSS = 0.25


def turn(rng):
    """A random rotation about a random axis, and a random shift, as arguments of a shape."""
    axis = rng.normal(size=3)
    return dict(axis=tuple(axis), angle=rng.uniform(0.0, np.pi)), tuple(rng.uniform(-1, 1, 3))


def placed(shape, rng):
    how, shift = turn(rng)
    return shape.rotated(**how).translated(shift)


def flux(body):
    """Volume from the facets, and how far they are from closing, in squared cell widths."""
    at = body.surface.positions(body.nodes)
    area = body.surface.area_vectors(at)
    middle = at[body.surface.facets].mean(axis=1) - at.mean(axis=0)
    gap = np.abs(area.sum(axis=0)).max() / body.spacing ** (body.dim - 1)
    return (middle * area).sum() / body.dim, gap


def surface_area(body):
    area = body.surface.area_vectors(body.surface.positions(body.nodes))
    return np.linalg.norm(area, axis=1).sum()


def first_moments(body):
    """Integral of x over the body: the shape functions reproduce x."""
    return np.einsum("ca,cad->d", body.node_volumes, body.nodes[body.cells])


def check_consistent(body):
    enclosed, gap = flux(body)
    assert enclosed == pytest.approx(body.volume, rel=1e-10)
    assert gap < 1e-10
    if body.dim == 3:
        assert is_closed(body.surface.facets)
    assert body.cell_volumes.min() > 0.0
    assert body.fill.max() < (1.0 + BEYOND) ** body.dim + 1e-12  # thin layers are part of others
    assert np.isfinite(body.geometry_table).all()


@pytest.mark.parametrize("seed", range(8))
def test_turned_boxes_are_exact(seed):
    rng = np.random.default_rng(seed)
    a, b, c = rng.uniform(1.0, 1.6, 3)
    how, shift = turn(rng)
    body = oblique_body(pl.shapes.box(size=(a, b, c)).rotated(**how).translated(shift), FOUR_ACROSS)
    check_consistent(body)
    assert body.volume == pytest.approx(a * b * c, rel=1e-12)
    assert surface_area(body) == pytest.approx(2 * (a * b + b * c + c * a), rel=1e-12)
    np.testing.assert_allclose(first_moments(body) / body.volume, shift, atol=1e-12)
    # held by its end face: the region reaches through a slice of the four sides too
    slice_ = 0.01
    end = pl.shapes.box(size=(2 * slice_, 2 * b, 2 * c), center=(-a / 2, 0, 0))
    held = covered_points(body, end.rotated(**how).translated(shift)).weight.sum()
    assert held == pytest.approx(b * c + 2 * (b + c) * slice_, rel=1e-10)


@pytest.mark.parametrize("seed", range(8))
def test_cylinders(seed):
    rng = np.random.default_rng(seed)
    r, height = 0.5, rng.uniform(1.0, 1.5)
    how, shift = turn(rng)
    shape = pl.shapes.cylinder(radius=r, height=height).rotated(**how).translated(shift)
    body = oblique_body(shape, FOUR_ACROSS)
    check_consistent(body)
    assert body.volume == pytest.approx(np.pi * r**2 * height, rel=2e-3)
    assert surface_area(body) == pytest.approx(2 * np.pi * r * (r + height), rel=1e-2)
    np.testing.assert_allclose(first_moments(body) / body.volume, shift, atol=2e-3 * r)
    end = pl.shapes.box(size=(2, 1e-7, 2), center=(0, height / 2, 0))
    held = covered_points(body, end.rotated(**how).translated(shift)).weight.sum()
    assert held == pytest.approx(np.pi * r**2, rel=1e-2)


@pytest.mark.parametrize("seed", range(4))
def test_wedges_and_differences(seed):
    rng = np.random.default_rng(seed)
    a, b, c = rng.uniform(1.0, 1.5, 3)
    block = pl.shapes.box(size=(a, b, c))
    # half of it, below the diagonal plane
    half = block & pl.shapes.half_space(normal=(b, a, 0.0))
    body = oblique_body(placed(half, rng), FOUR_ACROSS)
    check_consistent(body)
    assert body.volume == pytest.approx(a * b * c / 2, rel=1e-12)
    assert surface_area(body) == pytest.approx(a * b + (a + b + np.hypot(a, b)) * c, rel=1e-12)
    # a notch, and a round hole through it
    notch = pl.shapes.box(size=(0.4, 2 * b, 0.6), center=(0.1, 0.0, c / 2))
    body = oblique_body(placed(block - notch, rng), FOUR_ACROSS)
    check_consistent(body)
    assert body.volume == pytest.approx(a * b * c - 0.4 * b * 0.3, rel=1e-12)
    hole = pl.shapes.cylinder(radius=0.3, height=2 * b, center=(0.05, 0.0, 0.0))
    body = oblique_body(placed(block - hole, rng), FOUR_ACROSS)
    check_consistent(body)
    assert body.volume == pytest.approx(a * b * c - np.pi * 0.09 * b, rel=2e-3)
    # a step of two boxes that share part of a face
    step = block | pl.shapes.box(size=(a / 2, b, c / 2), center=(a * 0.75, 0, c / 4))
    body = oblique_body(placed(step, rng), FOUR_ACROSS)
    check_consistent(body)
    assert body.volume == pytest.approx(1.25 * a * b * c, rel=1e-12)
    assert surface_area(body) == pytest.approx(2 * (a * b + b * c + c * a) + a * (b + c / 2))


@pytest.mark.parametrize("thickness", [0.3, 0.03, 0.003])
def test_plates_thinner_than_a_cell(thickness):
    rng = np.random.default_rng(3)
    body = oblique_body(placed(pl.shapes.box(size=(1.0, 1.0, thickness)), rng), FOUR_ACROSS)
    check_consistent(body)
    assert body.volume == pytest.approx(thickness, rel=1e-10)
    flat = oblique_body(pl.shapes.box(size=(1.0, thickness)).rotated(angle=0.3), FOUR_ACROSS)
    check_consistent(flat)
    assert flat.volume == pytest.approx(thickness, rel=1e-10)


def test_plane_shapes():
    rng = np.random.default_rng(4)
    for _ in range(5):
        a, b = rng.uniform(1.0, 1.5, 2)
        r, shift = rng.uniform(0.25, 0.4), tuple(rng.uniform(-1, 1, 2))
        plate = pl.shapes.box(size=(a, b)).rotated(angle=rng.uniform(0, 3)).translated(shift)
        body = oblique_body(plate, FOUR_ACROSS)
        check_consistent(body)
        assert body.volume == pytest.approx(a * b, rel=1e-12)
        assert surface_area(body) == pytest.approx(2 * (a + b), rel=1e-12)
        np.testing.assert_allclose(first_moments(body) / body.volume, shift, atol=1e-12)
        holed = oblique_body(plate - pl.shapes.circle(radius=r, center=shift), FOUR_ACROSS)
        check_consistent(holed)
        assert holed.volume == pytest.approx(a * b - np.pi * r**2, rel=2e-3)


def random_solid(rng, length):
    """A boolean of up to four primitives, some of them thin, some on the lattice."""

    def part():
        x = rng.uniform(0.2, 1.0, 3) * length
        kind = rng.integers(5)
        if kind == 0:
            shape = pl.shapes.box(size=tuple(x))
        elif kind == 1:
            shape = pl.shapes.cylinder(radius=0.5 * x[0], height=x[1])
        elif kind == 2:
            shape = pl.shapes.box(size=(x[0], 0.05 * x[1], length))
        elif kind == 3:
            shape = pl.shapes.sphere(radius=0.6 * x[0])
        else:
            shape = pl.shapes.box(size=(x[0], x[1])).revolved(offset=0.2 * length)
        if rng.random() < 0.7:
            shape = shape.rotated(axis=tuple(rng.normal(size=3)), angle=rng.uniform(0, 3))
        shift = rng.uniform(-0.3, 0.3, 3)
        return shape.translated(tuple((shift if rng.random() < 0.5 else shift.round(1)) * length))

    shape = part() | pl.shapes.box(size=(0.5 * length,) * 3)
    for _ in range(rng.integers(1, 4)):
        other = part()
        shape = (shape | other, shape - other)[rng.integers(2)]
    return shape


@pytest.mark.parametrize("seed", range(20))
def test_random_booleans_are_consistent(seed):
    """From a centimetre to ten metres; the inside is that of the distance at 20,000 points."""
    rng = np.random.default_rng(seed)
    length = 10.0 ** rng.uniform(-2, 1)
    shape = random_solid(rng, length)
    body = oblique_body(shape, length / rng.choice([4.0, 5.0, 7.3]))
    check_consistent(body)
    lo, hi = shape.bounds
    share = shape.contains(rng.uniform(lo, hi, (20_000, 3))).mean()
    error = np.sqrt(share * (1 - share) / 20_000)
    assert body.volume / np.prod(hi - lo) == pytest.approx(share, abs=4 * error + 0.01 * share)


@pytest.mark.parametrize("offset", [0.0, 3e-8, -3e-8])
def test_aligned_bodies_have_no_slivers(offset):
    """Rounding, also that of single precision, neither adds cells nor takes from them."""
    size = 1.0 + offset
    block = pl.shapes.box(size=(size, size, size))
    body = pl.GridBody(block - pl.shapes.box(size=(0.5, 0.5, 2.0)), 0.25)
    assert len(body.cells) == 64 - 16
    assert np.all(body.fill == 1.0)
    check_consistent(body)
    assert surface_area(body) == pytest.approx(6.0 - 0.5 + 2.0, rel=1e-12)
    flat = pl.GridBody(pl.shapes.box(size=(size, size)), 0.25)
    assert len(flat.cells) == 16
    assert surface_area(flat) == pytest.approx(4.0, rel=1e-12)


def test_meshes_keep_their_edges():
    import trimesh

    rng = np.random.default_rng(5)
    for mesh in (
        trimesh.creation.box(extents=(1.0, 0.8, 0.9)),
        trimesh.creation.icosahedron(),
        trimesh.creation.cylinder(radius=0.6, height=1.2, sections=40),
    ):
        shape = MeshShape(vertices=mesh.vertices, faces=mesh.faces)
        body = oblique_body(placed(shape, rng), FOUR_ACROSS)
        check_consistent(body)
        assert body.volume == pytest.approx(mesh.volume, rel=1e-10)
        assert surface_area(body) == pytest.approx(mesh.area, rel=1e-10)
    drilled = shape - pl.shapes.box(size=(0.3, 0.3, 4.0))
    body = oblique_body(placed(drilled, rng), FOUR_ACROSS)
    check_consistent(body)
    assert body.volume == pytest.approx(mesh.volume - 0.09 * 1.2, rel=1e-10)


def test_meshes_with_notches_and_open_edges():
    """The surface of a cut body is a mesh again; taken apart into triangles that share nothing."""
    rng = np.random.default_rng(6)
    block = pl.shapes.box(size=(1.0, 0.8, 0.6))
    notched = block - pl.shapes.box(size=(0.5, 0.5, 1.0), center=(0.4, 0.3, 0.0))
    post = pl.shapes.box(size=(0.3, 0.3, 1.0), center=(-0.3, -0.2, 0.1))
    first = pl.GridBody(notched | post, 0.25)
    corners = first.surface.positions(first.nodes)[first.surface.facets].reshape(-1, 3)
    soup = MeshShape(vertices=corners, faces=np.arange(len(corners)).reshape(-1, 3))
    body = oblique_body(placed(soup, rng), 0.13)
    check_consistent(body)
    assert body.volume == pytest.approx(first.volume, rel=1e-10)


def test_a_fine_mesh_is_cut_by_its_distance():
    import trimesh

    mesh = trimesh.creation.icosphere(subdivisions=4)
    shape = MeshShape(vertices=mesh.vertices, faces=mesh.faces)
    body, plain = oblique_body(shape, 0.4), oblique_body(shape, 0.4, subdivisions=1)
    assert len(body.surface.facets) < 1.3 * len(plain.surface.facets)
    assert body.volume == pytest.approx(mesh.volume, rel=0.005)


def test_the_same_bits_each_time():
    rng = np.random.default_rng(6)
    shape = random_solid(rng, 1.0)
    one, two = pl.GridBody(shape, 0.2), pl.GridBody(shape, 0.2)
    for a, b in (
        (one.geometry_table, two.geometry_table),
        (one.surface.facets, two.surface.facets),
        (one.surface.points.weights, two.surface.points.weights),
    ):
        assert np.array_equal(a, b)


def test_regions_cover_parts_of_facets():
    block = pl.GridBody(pl.shapes.box(size=(1.0, 1.0, 1.0)), 0.25)
    rng = np.random.default_rng(7)
    for _ in range(5):
        x, y = rng.uniform(0.05, 0.9, 2)
        region = pl.shapes.box(size=(x, y, 0.5), center=(0.01, -0.02, 0.5))
        held = covered_points(block, region)
        assert held.weight.sum() == pytest.approx(x * y, rel=1e-12)
        middle = held.weight @ held.position / held.weight.sum()
        np.testing.assert_allclose(middle, (0.01, -0.02, 0.5), atol=1e-12)
    disc = pl.shapes.cylinder(radius=0.3, height=0.1, center=(0.03, 0.02, 0.5), axis=(0, 0, 1))
    assert covered_points(block, disc).weight.sum() == pytest.approx(np.pi * 0.09, rel=5e-3)
    plate = pl.GridBody(pl.shapes.box(size=(1.0, 1.0)), 0.25)
    region = pl.shapes.box(size=(0.37, 0.5), center=(0.1, 0.5))
    assert covered_points(plate, region).weight.sum() == pytest.approx(0.37, rel=1e-12)
    ring = pl.shapes.circle(radius=0.31, center=(0.0, 0.5))
    assert covered_points(plate, ring).weight.sum() == pytest.approx(0.62, rel=1e-3)


def test_a_region_that_ends_on_a_face_covers_it():
    block = pl.GridBody(pl.shapes.box(size=(1.0, 1.0, 1.0)).translated((0.1, 0.03, 0.7)), 0.3)
    below = pl.shapes.box(size=(2.0, 1.0, 2.0), center=(0.1, -0.97, 0.7))
    assert covered_points(block, below).weight.sum() == pytest.approx(1.0, rel=1e-12)


def test_where_the_grid_lies_hardly_matters():
    """A clamped beam, four cells across: the drop of its end, at random shifts of the grid, against
    fifth order tetrahedra. With edges and clamp shaved off it was up to 27 % too large.
    """
    length, width = 0.1, 0.03
    spacing = width / 4
    rng = np.random.default_rng(8)
    for shift in (np.zeros(3), *(spacing * rng.random((3, 3)))):
        beam = pl.shapes.box(size=(length, width, width), center=(length / 2, 0, 0))
        body = pl.GridBody(beam.translated(tuple(shift)), spacing)
        clamp = pl.shapes.box(size=(1e-6, 2 * width, 2 * width)).translated(tuple(shift))
        scene = pl.Scene(
            body, pl.Material(263824.0, 0.3, 1070.0), gravity=(0, -9.80709, 0),
            fixed=[pl.Fixed(clamp)], model="linear",
        )  # fmt: skip
        tip = body.displacement_at(np.array([[length, 0, 0]]) + shift, pl.solve_static(scene))
        assert tip[0, 1] == pytest.approx(-7.065e-3, rel=0.03)
