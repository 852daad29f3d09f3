"""Surfaces that move with a body: marching cubes as embeddings, and fine meshes carried along."""

import numpy as np
import pytest
import trimesh

import pliant as pl
from pliant.core.errors import BadInput
from pliant.fem.bodies.render_mesh import carried_mesh, fitted, load_render_mesh
from pliant.geometry.field import SampledField


def random_field(seed):
    """Noise of either sign at every node: all cases of marching cubes, also the ambiguous ones."""
    rng = np.random.default_rng(seed)
    values = np.pad(rng.standard_normal((7, 7, 7)), 1, constant_values=1.0)
    return SampledField(values=values, origin=(0.0, 0.0, 0.0), spacing=0.5)


def directed_edges(facets):
    edges = np.concatenate([facets[:, [0, 1]], facets[:, [1, 2]], facets[:, [2, 0]]])
    count = edges.max() + 1
    return edges[:, 0] * count + edges[:, 1], edges[:, 1] * count + edges[:, 0]


@pytest.mark.parametrize("shape", ["torus", 0, 1, 2])
def test_the_surface_is_watertight_and_oriented(shape):
    """Every edge is met as often one way as the other, and the enclosed volume is the body's."""
    if shape == "torus":
        body = pl.GridBody(pl.shapes.torus(major=1.0, minor=0.35), 0.13)
    else:
        body = pl.GridBody(random_field(shape))
    surface = body.surface
    forth, back = directed_edges(surface.facets)
    assert np.array_equal(np.sort(forth), np.sort(back))
    positions = surface.positions(body.nodes)
    vectors = surface.area_vectors(positions)
    assert np.abs(vectors.sum(axis=0)).max() < 1e-12
    corner = positions[surface.facets]
    volume = np.einsum("fi,fi->", corner.mean(axis=1), vectors) / 3.0
    assert volume == pytest.approx(body.volume, rel=1e-10)


def test_vertices_are_two_nodes_and_a_weight():
    """On edges of the lattice, or of its tetrahedra: so they move without any advection."""
    body = pl.GridBody(pl.shapes.torus(major=1.0, minor=0.35), 0.13)
    points = body.surface.points
    assert points.nodes.shape[1] == 2
    assert np.allclose(points.weights.sum(axis=1), 1.0)
    assert (points.weights >= 0.0).all()
    ends = body.nodes[points.nodes]
    assert np.abs(ends[:, 1] - ends[:, 0]).max() <= 0.13 * (1 + 1e-9)
    assert np.abs(body.shape.distance(body.surface.positions(body.nodes))).max() < 0.05 * 0.13
    A = np.array([[1.1, 0.2, 0.0], [0.0, 0.9, -0.3], [0.1, 0.0, 1.0]])
    moved = body.surface.positions(body.nodes @ A.T)
    assert np.allclose(moved, body.surface.positions(body.nodes) @ A.T)


def test_planar_surfaces_close_too():
    body = pl.GridBody(pl.shapes.circle(radius=1.0), 0.17)
    facets = body.surface.facets
    assert np.array_equal(np.sort(facets[:, 0]), np.sort(facets[:, 1]))


@pytest.fixture(scope="module")
def fine():
    return trimesh.creation.icosphere(subdivisions=5, radius=1.0)  # 20,480 triangles


def tets():
    return pl.TetBody(_cube_tets())


def _cube_tets():
    """A cube of edge 2.4 around the ball, 6 x 8^3 tetrahedra."""
    grid = pl.GridBody(pl.shapes.box(size=(2.4, 2.4, 2.4)), 0.3)
    paths = [(0, 1, 3, 7), (0, 5, 1, 7), (0, 3, 2, 7), (0, 2, 6, 7), (0, 4, 5, 7), (0, 6, 4, 7)]
    cells = np.concatenate([grid.cells[:, p] for p in paths])
    corner = grid.nodes[cells]
    flipped = np.linalg.det(corner[:, 1:] - corner[:, :1]) < 0
    cells[flipped] = cells[flipped][:, [1, 0, 2, 3]]
    return grid.nodes, cells


@pytest.mark.parametrize("kind", ["grid", "tets"])
def test_a_fine_mesh_follows_linear_motions_exactly(kind, fine):
    """x -> A x: vertices to rounding, normals to the mesh's own coarseness (A^-T n)."""
    body = pl.GridBody(pl.shapes.sphere(radius=1.0), 0.3) if kind == "grid" else tets()
    mesh = carried_mesh(body, fine.vertices, fine.faces)
    A = np.array([[1.2, 0.3, 0.0], [0.0, 0.8, -0.2], [0.1, 0.0, 1.1]])
    x = mesh.positions(body.nodes @ A.T)
    assert np.abs(x - fine.vertices @ A.T).max() < 1e-12
    true = fine.vertices @ np.linalg.inv(A)
    true /= np.linalg.norm(true, axis=1, keepdims=True)
    cosine = np.einsum("vi,vi->v", mesh.normals(x), true)
    assert cosine.min() > np.cos(np.radians(1.0))


def test_vertices_outside_the_cells_go_on_linearly(fine):
    """A mesh larger than the body: the nearest cell's field, exact for linear ones."""
    body = pl.GridBody(pl.shapes.sphere(radius=0.8), 0.4)
    mesh = carried_mesh(body, fine.vertices, fine.faces)
    A = np.eye(3) + 0.2
    assert np.abs(mesh.positions(body.nodes @ A.T) - fine.vertices @ A.T).max() < 1e-12


def test_bad_meshes_are_refused(fine, tmp_path):
    body = pl.GridBody(pl.shapes.sphere(radius=1.0), 0.4)
    with pytest.raises(BadInput, match="does not exist"):
        carried_mesh(body, fine.vertices[:10], fine.faces)
    for elsewhere in (fine.vertices + 100.0, 1000.0 * fine.vertices):
        with pytest.raises(BadInput, match="not where the body is"):
            carried_mesh(body, elsewhere, fine.faces)
    path = tmp_path / "ball.ply"
    fine.export(path)
    assert len(load_render_mesh(body, path).triangles) == 20480


def test_a_mesh_in_millimetres_is_fitted(fine):
    """Its box becomes that of the surface; the cut surface is up to h^2 / 8 within the ball."""
    body = pl.GridBody(pl.shapes.sphere(radius=1.0), 0.2, subdivisions=1)
    placed = fitted(body, 1000.0 * fine.vertices + [7.0, 8.0, 9.0])
    assert np.abs(placed - fine.vertices).max() < 0.2**2 / 8.0
