"""Cut cells against planes, complements, closed bodies and shapes of known volume."""

import itertools

import numpy as np
import pytest

import pliant as pl
from oblique import oblique_body
from plane_moments import plane_moments
from pliant.core.errors import BadInput
from pliant.fem.cutting.cutcells import CutCells, cut_cells, full_moments

DIMS = pytest.mark.parametrize("dim", [2, 3])


def corners(dim):
    return (np.arange(2**dim)[:, None] >> np.arange(dim)) & 1


def lattice(shape, *, spacing=1.0, origin=0.0):
    """Node positions (x fastest) and the nodes of every cell of a box of nodes."""
    axes = [np.arange(count) for count in shape]
    grid = np.stack([g.ravel(order="F") for g in np.meshgrid(*axes, indexing="ij")], axis=1)
    stride = np.cumprod([1, *shape[:-1]])
    low = (grid[(grid < np.array(shape) - 1).all(axis=1)] * stride).sum(axis=1)
    return origin + spacing * grid, low[:, None] + corners(len(shape)) @ stride


def cut_body(phi, cells) -> tuple[CutCells, np.ndarray]:
    active = cells[(phi[cells] < 0).any(axis=1)]
    return cut_cells(phi, active), active


def cut_separately(values):
    """Cells that share nothing: one set of nodes for each row of corner values."""
    return cut_cells(values.ravel(), np.arange(values.size).reshape(values.shape))


def surface_points(cut, x):
    w = cut.edge_weight[:, None]
    return (1 - w) * x[cut.edge_low] + w * x[cut.edge_high]


def facet_normals(ends):
    """Normals with the length of the facet's area (or length), (facets, dim)."""
    if ends.shape[2] == 2:
        along = ends[:, 1] - ends[:, 0]
        return np.stack([along[:, 1], -along[:, 0]], axis=1)
    return np.cross(ends[:, 1] - ends[:, 0], ends[:, 2] - ends[:, 0]) / 2


def area_and_enclosed_volume(cut, x):
    ends = surface_points(cut, x)[cut.facets]
    normals = facet_normals(ends)
    # the integral of x . n is dim times the volume
    flux = (ends.mean(axis=1) * normals).sum(axis=1)
    return np.linalg.norm(normals, axis=1).sum(), flux.sum() / x.shape[1]


def boundary_counts(cut):
    """How often each directed edge (or end point) of the surface occurs, and its opposite."""
    if cut.facets.shape[1] == 2:
        size = len(cut.edge_low)
        return [np.bincount(cut.facets[:, k], minlength=size) for k in (0, 1)]
    a, b = cut.facets.ravel(), np.roll(cut.facets, -1, axis=1).ravel()
    size = len(cut.edge_low)
    key, counts = np.unique(a * size + b, return_counts=True)
    opposite = key % size * size + key // size
    at = np.searchsorted(key, opposite).clip(max=len(key) - 1)
    return counts, np.where(key[at] == opposite, counts[at], 0)


@DIMS
def test_full_cell(dim):
    cut = cut_separately(-np.ones((1, 2**dim)))
    a = np.indices((3,) * dim)
    assert np.array_equal(cut.moments[0], full_moments(dim))
    np.testing.assert_allclose(full_moments(dim), 1 / np.prod(a + 1, axis=0), rtol=1e-15)
    assert len(cut.facets) == 0


@DIMS
def test_planes(dim):
    rng = np.random.default_rng(1)
    normals = rng.normal(size=(40, dim))
    offsets = (normals * rng.random((40, dim))).sum(axis=1)
    cut = cut_separately(normals @ corners(dim).T - offsets[:, None])
    expected = [plane_moments(n, d) for n, d in zip(normals, offsets, strict=True)]
    np.testing.assert_allclose(cut.moments, expected, rtol=0, atol=1e-13)
    # the normals of the facets are those of the planes
    x = np.tile(corners(dim), (40, 1))
    n = facet_normals(surface_points(cut, x)[cut.facets])
    expected = normals[cut.facet_cell]
    along = (n * expected).sum(axis=1) / np.linalg.norm(expected, axis=1)
    np.testing.assert_allclose(along, np.linalg.norm(n, axis=1), atol=1e-14)


@DIMS
def test_every_sign_case_and_its_complement(dim):
    rng = np.random.default_rng(2)
    cases = np.repeat(np.arange(1, 2**2**dim - 1), 20 if dim == 3 else 400)
    signs = 1.0 - 2.0 * (cases[:, None] >> np.arange(2**dim) & 1)
    values = signs * 10.0 ** rng.uniform(-2, 0, signs.shape)
    cut, rest = cut_separately(values), cut_separately(-values)
    whole = np.broadcast_to(full_moments(dim), cut.moments.shape)
    np.testing.assert_allclose(cut.moments + rest.moments, whole, rtol=0, atol=1e-13)
    volume = cut.moments.reshape(len(cases), -1)[:, 0]
    assert volume.min() > 0
    assert volume.max() < 1
    # products of the 2^dim multilinear functions make a mass matrix: no negative energy
    power = corners(dim)[:, None] + corners(dim)[None]
    mass = cut.moments[:, *np.moveaxis(power, 2, 0)]
    assert (np.linalg.eigvalsh(mass)[:, 0] > -1e-14).all()


def test_divergence_identities_of_each_polyhedron():
    """Facets and inside parts of the faces close, and enclose the volume M[0, 0, 0]."""
    rng = np.random.default_rng(3)
    cases = np.repeat(np.arange(1, 255), 20)
    signs = 1.0 - 2.0 * (cases[:, None] >> np.arange(8) & 1)
    values = signs * rng.random(signs.shape)
    cut = cut_separately(values)
    ends = surface_points(cut, np.tile(corners(3), (len(cases), 1)))[cut.facets]
    normals = facet_normals(ends)
    closing = np.zeros((len(cases), 3))
    np.add.at(closing, cut.facet_cell, normals)
    flux = np.zeros(len(cases))
    np.add.at(flux, cut.facet_cell, (ends.mean(axis=1) * normals).sum(axis=1))
    for axis in range(3):
        for side in (0, 1):
            # the faces are squares of the same field: the 2D code must agree with the 3D one
            face = values[:, np.flatnonzero(corners(3)[:, axis] == side)]
            area = cut_separately(face).moments[:, 0, 0]
            closing[:, axis] += (2 * side - 1) * area
            flux += side * area
    np.testing.assert_allclose(closing, 0, atol=1e-13)
    np.testing.assert_allclose(flux / 3, cut.moments[:, 0, 0, 0], rtol=0, atol=1e-13)


@DIMS
@pytest.mark.parametrize("legs", [1e-1, 1e-3, 1e-6, 1e-9])
def test_relative_accuracy_of_slivers(dim, legs):
    for corner, thin in itertools.product(range(2**dim), range(1, 2**dim)):
        # thin: the axes along which the sliver is short; it spans the cell along the others
        axes = [k for k in range(dim) if thin >> k & 1]
        inside = ((np.arange(2**dim) ^ corner) & thin) == 0
        values = np.where(inside, -legs, 1 - legs)[None]
        moments = cut_separately(values).moments.reshape(-1)
        expected = legs ** len(axes) / [1, 1, 2, 6][len(axes)]
        assert moments[0] == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("size", [1e-1, 1e-3, 1e-6, 1e-9])
def test_relative_accuracy_of_oblique_slivers(size):
    """A corner with unequal legs, a frustum along an edge and a tilted slab, any way round."""
    rng = np.random.default_rng(7)
    for _ in range(20):
        p, q, r = size * rng.uniform([0.01, 0.1, 0.1], [0.1, 0.5, 0.5])
        corner = np.ones(8)
        corner[[0, 1, 2, 4]] = -size, size * (1 / p - 1), size * (1 / q - 1), size * (1 / r - 1)
        frustum = np.array([-p, -q, *[1 - p, 1 - q] * 3])
        slab = np.array([value for h in (p, q, r, q + r - p) for value in (-h, 1 - h)])
        expected = [p * q * r / 6, (p * p + p * q + q * q) / 6, (q + r) / 2]
        values = np.stack([corner, frustum, slab])[:, np.arange(8) ^ rng.integers(8)]
        volume = cut_separately(values).moments[:, 0, 0, 0]
        np.testing.assert_allclose(volume, expected, rtol=1e-10)


def test_two_slivers_in_one_cell():
    """Parts are measured separately, so the far one does not spoil the near one."""
    values = np.full((1, 8), 1 - 1e-6)
    values[0, [0, 7]] = -1e-6
    volume = cut_separately(values).moments[0, 0, 0, 0]
    assert volume == pytest.approx(2 * 1e-18 / 6, rel=1e-10)


def sphere(x, centre, radius):
    return np.linalg.norm(x - centre, axis=1) - radius


def closed_bodies(dim):
    rng = np.random.default_rng(4)
    x, cells = lattice((14,) * dim, spacing=1 / 13)
    for _ in range(5):
        centre = 0.5 + 0.1 * rng.random(dim)
        yield "sphere", x, cells, sphere(x, centre, 0.31)
        gap = 0.02 * rng.random()
        yield (
            "two",
            x,
            cells,
            np.minimum(
                sphere(x, centre - 0.16 - gap, 0.16 * dim**0.5),
                sphere(x, centre + 0.16 + gap, 0.16 * dim**0.5),
            ),
        )
        if dim == 3:
            ring = np.hypot(x[:, 0] - centre[0], x[:, 1] - centre[1]) - 0.28
            yield "torus", x, cells, np.hypot(ring, x[:, 2] - centre[2]) - 0.1


@DIMS
def test_closed_bodies_are_watertight(dim):
    for name, x, cells, phi in closed_bodies(dim):
        border = ((x < 1e-9) | (x > 1 - 1e-9)).any(axis=1)
        phi = np.where(border, np.abs(phi) + 0.01, phi)
        cut, _ = cut_body(phi, cells)
        there, back = boundary_counts(cut)
        assert np.array_equal(there, back), name
        assert there.max() == 1, name
        _, enclosed = area_and_enclosed_volume(cut, x)
        volume = cut.moments.reshape(len(cut.moments), -1)[:, 0].sum() / 13**dim
        assert volume == pytest.approx(enclosed, rel=1e-12)


@DIMS
@pytest.mark.parametrize("kind", ["continuous", "signs", "zeros"])
def test_noise_is_watertight(dim, kind):
    rng = np.random.default_rng(5)
    shape = (15,) * 3 if dim == 3 else (60, 60)
    x, cells = lattice(shape)
    phi = rng.uniform(-1, 1, len(x))
    if kind != "continuous":
        phi = np.sign(phi)
    if kind == "zeros":
        phi[rng.random(len(x)) < 0.4] = 0
    phi[((x == 0) | (x == np.array(shape) - 1)).any(axis=1)] = 0.7
    cut, active = cut_body(phi, cells)
    there, back = boundary_counts(cut)
    assert np.array_equal(there, back)
    _, enclosed = area_and_enclosed_volume(cut, x)
    volume = cut.moments.reshape(len(active), -1)[:, 0]
    assert volume.sum() == pytest.approx(enclosed, rel=1e-12)
    assert volume.min() > 0
    # vertices are unique, on lattice edges, and facets have distinct ones
    pairs = np.stack([cut.edge_low, cut.edge_high], axis=1)
    assert len(np.unique(pairs, axis=0)) == len(pairs)
    assert np.abs(x[pairs[:, 0]] - x[pairs[:, 1]]).sum(axis=1).max() == 1
    on_node = cut.edge_low == cut.edge_high
    assert np.array_equal(phi[cut.edge_low] == 0, on_node)
    assert np.all(cut.edge_weight[on_node] == 0)
    assert np.all(np.diff(np.sort(cut.facets, axis=1), axis=1) > 0)
    assert set(cut.facets.ravel()) == set(range(len(pairs)))


@pytest.mark.parametrize(
    ("dim", "radius", "volume", "area"),
    [
        (2, 0.6, np.pi * 0.6**2, 2 * np.pi * 0.6),
        (3, 0.7234436998, 4 / 3 * np.pi * 0.7234436998**3, 4 * np.pi * 0.7234436998**2),
    ],
)
def test_second_order_volume_and_area(dim, radius, volume, area):
    rng = np.random.default_rng(6)
    spacings = np.array([0.2, 0.1, 0.05, 0.025])
    errors = np.zeros((len(spacings), 2))
    for offset in rng.random((3, dim)):
        for row, h in enumerate(spacings):
            count = int(np.ceil(2 * radius / h)) + 4
            x, cells = lattice((count,) * dim, spacing=h, origin=h * offset - count * h / 2)
            cut, _ = cut_body(np.linalg.norm(x, axis=1) - radius, cells)
            measured, _ = area_and_enclosed_volume(cut, x)
            inside = cut.moments.reshape(len(cut.moments), -1)[:, 0].sum() * h**dim
            errors[row] += np.abs([inside - volume, measured - area])
    orders = np.polyfit(np.log(spacings), np.log(errors), 1)[0]
    assert orders.min() >= 1.75


@DIMS
def test_aligned_box(dim):
    """Zeros on the box: it is exact up to its edges and corners, which are not chamfered."""
    x, cells = lattice((7, 8, 9)[:dim])
    low, high = np.array([1, 2, 2])[:dim], np.array([5, 5, 6])[:dim]
    outside = np.maximum(low - x, x - high)
    phi = np.where(
        (outside > 0).any(axis=1),
        np.linalg.norm(outside.clip(min=0), axis=1),
        outside.max(axis=1),
    )
    cut, active = cut_body(phi, cells)
    area, enclosed = area_and_enclosed_volume(cut, x)
    sides = high - low
    assert np.array_equal(cut.moments, np.broadcast_to(full_moments(dim), cut.moments.shape))
    assert len(active) == sides.prod()
    assert enclosed == pytest.approx(sides.prod(), rel=1e-14)
    assert area == pytest.approx(2 * sum(sides.prod() / side for side in sides), rel=1e-14)
    there, back = boundary_counts(cut)
    assert np.array_equal(there, back)
    assert there.max() == 1


@DIMS
def test_sheet_of_zeros_within_a_body_leaves_no_crack(dim):
    x, cells = lattice((9,) * dim)
    phi = np.abs(x - 4).max(axis=1) - 3.3
    whole, active = cut_body(phi, cells)
    sheet = (x[:, 0] == 4) & (np.abs(x - 4).max(axis=1) <= 2)
    cut = cut_cells(np.where(sheet, 0.0, phi), active)
    assert np.array_equal(cut.moments, whole.moments)
    assert np.array_equal(cut.facets, whole.facets)
    assert np.array_equal(cut.edge_low, whole.edge_low)


def test_bad_shape_is_refused():
    with pytest.raises(BadInput, match="4 or 8"):
        cut_cells(np.zeros(6), np.arange(6)[None])


def test_no_cells():
    cut = cut_cells(np.ones(8), np.zeros((0, 8), dtype=int))
    assert cut.moments.shape == (0, 3, 3, 3)
    assert cut.facets.shape == (0, 3)


def test_subdivided_cells_add_up():
    """Volumes of a turned box and of a ball gain a factor of four with each halving, the cells stay
    the same few, and the surface stays closed and bounds the volume.
    """
    turned = pl.shapes.box(center=(0, 0, 0), size=(1, 0.7, 0.6)).rotated(axis=(1, 2, 3), angle=0.5)
    ball = pl.shapes.sphere(radius=0.5)
    for shape, exact in ((turned, 0.42), (ball, np.pi / 6.0)):
        bodies = [oblique_body(shape, 0.1, subdivisions=s) for s in (1, 2, 4)]
        errors = [abs(b.volume / exact - 1.0) for b in bodies]
        assert errors[0] / errors[1] > 3.4
        assert errors[1] / errors[2] > 3.4
        assert len(bodies[2].cells) < 1.02 * len(bodies[0].cells)
        for body in bodies:
            at = body.surface.positions(body.nodes)
            area = body.surface.area_vectors(at)
            assert np.abs(area.sum(axis=0)).max() < 1e-12
            inside = (at[body.surface.facets].mean(axis=1) * area).sum() / 3.0
            assert inside == pytest.approx(body.volume, rel=1e-12)
            assert body.fill.max() < 1.0 + 1e-12


@pytest.mark.parametrize("count", [0, 9, 1.5])
def test_bad_subdivisions(count):
    with pytest.raises(pl.BadInput, match="whole number from 1 to 8"):
        pl.GridBody(pl.shapes.sphere(radius=0.5), 0.2, subdivisions=count)
