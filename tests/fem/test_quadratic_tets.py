"""Quadratic tetrahedra and triangles: interpolation, energy, masses, surface, convergence."""

from itertools import pairwise

import numpy as np
import pytest
import warp as wp

from host_elasticity import clamped_motion, held_solution, lame, lumped, stiffness
from pliant.app.describing.scene_building import build_scene
from pliant.app.describing.scene_description import describe_scene
from pliant.core.errors import BadInput
from pliant.core.launch import to_device, zeros
from pliant.fem.bodies.quadratic_simplices import LUMPED, quadratic_gradients, quadratic_shapes
from pliant.fem.bodies.simplex_files import load_simplices, save_simplices
from pliant.fem.bodies.tet_body import TetBody
from pliant.fem.cutting.cell_quadrature import cell_quadrature
from pliant.fem.forces.cells import QUADRATIC, SIMPLEX_EDGES, gradient_product_blocks
from pliant.fem.forces.hyperelastic import Hyperelasticity
from pliant.fem.laws import NeoHookean
from pliant.geometry import shapes
from simplex_bodies import NODES, TETS, require_sound


def regular(dim, edge):
    """(nodes, cells) of a unit box."""
    plain = TetBody(shapes.box(center=(0.5,) * dim, size=(1.0,) * dim), edge, order=1)
    return plain.nodes, plain.cells


def crooked(dim):
    """A unit box whose inner corners are moved: (nodes, cells) with no two cells alike."""
    nodes, cells = regular(dim, 0.45 if dim == 3 else 0.25)
    inner = ((nodes > 1e-9) & (nodes < 1.0 - 1e-9)).all(axis=1)
    assert inner.sum() >= 4
    nodes[inner] += np.random.default_rng(3).uniform(-0.06, 0.06, (inner.sum(), dim))
    return nodes, cells


@pytest.fixture(scope="module", params=[2, 3])
def body(request):
    return TetBody(crooked(request.param), order=2)


def quadratic_field(x):
    """A vector field with every monomial up to second order."""
    rng = np.random.default_rng(7)
    dim = x.shape[1]
    A, b = rng.normal(size=(dim, dim, dim)), rng.normal(size=(dim, dim))
    A = A + A.transpose(0, 2, 1)  # the gradient is then 2 A x + b
    return np.einsum("ijk,nj,nk->ni", A, x, x) + x @ b.T + 1.0, lambda y: 2.0 * A @ y + b


def inside(body, count=2000):
    rng = np.random.default_rng(5)
    cell = rng.integers(len(body.cells), size=count)
    weights = rng.dirichlet(np.ones(body.dim + 1), size=count)
    corners = body.nodes[body.cells[cell, : body.dim + 1]]
    return cell, weights, np.einsum("nk,nki->ni", weights, corners)


# --- shape functions


@pytest.mark.parametrize("corners", [3, 4])
def test_one_at_the_own_node_and_a_sum_of_one(corners):
    pairs = [p for p in SIMPLEX_EDGES if max(p) < corners]
    at = np.concatenate([np.eye(corners), [0.5 * (np.eye(corners)[list(p)].sum(0)) for p in pairs]])
    assert np.array_equal(quadratic_shapes(at), np.eye(len(at)))
    anywhere = np.random.default_rng(1).dirichlet(np.ones(corners), size=50)
    assert quadratic_shapes(anywhere).sum(axis=1) == pytest.approx(1.0, abs=1e-14)


def test_quadratic_fields_are_exact(body):
    cell, weights, x = inside(body)
    values, gradient = quadratic_field(body.nodes)
    assert np.abs(body.displacement_at(x, values) - quadratic_field(x)[0]).max() < 1e-12
    assert np.array_equal(body.locate.cells_of(x), cell)
    rows = body.geometry_table[body.geometry_row[cell]]
    g = quadratic_gradients(rows, weights)
    assert np.abs(g.sum(axis=1)).max() < 1e-11
    found = np.einsum("nai,naj->nij", values[body.cells[cell]], g)[..., : body.dim]
    expected = np.array([gradient(p) for p in x])
    assert np.abs(found - expected).max() < 1e-11


def test_outside_goes_on_linearly(body):
    dim = body.dim
    away = np.random.default_rng(2).normal(size=(300, dim))
    away /= np.abs(away).max(axis=1, keepdims=True)
    border, far = 0.5 + 0.5 * away, 0.5 + 1.5 * away
    turn = np.random.default_rng(4).normal(size=(dim, dim))
    assert np.abs(body.displacement_at(far, body.nodes @ turn.T) - far @ turn.T).max() < 1e-11
    values = quadratic_field(body.nodes)[0]
    step = 1e-7 * away
    ahead = body.displacement_at(border + step, values) - body.displacement_at(border, values)
    behind = body.displacement_at(border, values) - body.displacement_at(border - step, values)
    assert np.abs(ahead - behind).max() < 1e-3 * np.abs(ahead).max()  # value and slope go on
    assert body.locate(far).weights.sum(axis=1) == pytest.approx(1.0, abs=1e-10)


# --- integrals


def test_products_are_exact(body):
    """The closed form of G against the cells' quadrature, which is exact for squares."""
    k, rule = body.cells.shape[1], cell_quadrature(body)
    assert rule.weight.shape[1] == body.dim + 1
    found = gradient_product_blocks(body.kind, body.geometry_table, k)
    expected = np.einsum("rq,rqai,rqbj->rabij", rule.weight, rule.gradient, rule.gradient)
    assert np.abs(found - expected).max() < 1e-13 * np.abs(expected).max()


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("mean_dilatation", [True, False])
def test_rigid_motions_alone_cost_nothing(dim, mean_dilatation):
    corners = (
        np.concatenate([np.zeros((1, dim)), np.eye(dim)]) + 0.1 * NODES[: dim + 1, ::-1][:, :dim]
    )
    cell = TetBody((corners, np.arange(dim + 1)[None]), order=2)
    K = stiffness(cell, 3.0, 1.0, mean_dilatation=mean_dilatation).toarray()
    assert np.abs(K - K.T).max() < 1e-14 * np.abs(K).max()
    values = np.linalg.eigvalsh(K)
    rigid = dim * (dim + 1) // 2
    assert np.abs(values[:rigid]).max() < 1e-13 * values[-1]
    assert values[rigid] > 1e-4 * values[-1]


def test_masses_are_positive_and_complete(body):
    m = lumped(body)
    assert m.min() > 0.0
    assert m.sum() == pytest.approx(1.0, rel=1e-12)
    corners = body.nodes[body.cells[:, : body.dim + 1]].mean(axis=1)
    assert m @ body.nodes == pytest.approx(body.cell_volumes @ corners, rel=1e-12)
    for k, (corner, edge) in LUMPED.items():
        count = 3 if k == 6 else 4
        assert count * corner + (k - count) * edge == pytest.approx(1.0, rel=1e-15)


@pytest.mark.parametrize("mean_dilatation", [True, False])
def test_patch(body, mean_dilatation):
    """MacNeal and Harder's patch (plane strain in 2D): displacements and stresses are exact."""
    dim = body.dim
    lam, mu = lame(1e6, 0.25)
    exact = 0.5e-3 * (body.nodes + body.nodes.sum(axis=1, keepdims=True))
    K = stiffness(body, lam, mu, mean_dilatation=mean_dilatation)
    held = ((body.nodes < 1e-9) | (body.nodes > 1.0 - 1e-9)).any(axis=1)
    u = held_solution(K, np.zeros_like(exact), held, np.where(held[:, None], exact, 0.0))
    assert np.abs(u - exact).max() < 1e-10 * np.abs(exact).max()
    rule = cell_quadrature(body)
    grad = np.einsum("cai,cqaj->cqij", u[body.cells], rule.gradient)[..., :dim]
    theta = np.trace(grad, axis1=-2, axis2=-1)[..., None, None]
    stress = lam * theta * np.eye(dim) + mu * (grad + np.swapaxes(grad, -1, -2))
    expected = 400.0 * (np.ones((dim, dim)) + (dim + 1) * np.eye(dim))
    assert np.abs(stress - expected).max() < 1e-10 * 2000.0


def test_finite_stretch_under_a_law(body):
    """A homogeneous stretch: inner nodes in balance, the energy that of the closed form."""
    dim = body.dim
    lam, mu = lame(1000.0, 0.4)
    law = NeoHookean(lam=lam, mu=mu)
    F = np.eye(3)
    F[:dim, :dim] += np.array([[0.2, 0.1, -0.05], [0.03, -0.1, 0.2], [0.1, 0.0, 0.15]])[:dim, :dim]
    u = np.zeros((len(body.nodes), 3))
    u[:, :dim] = body.nodes @ (F - np.eye(3))[:dim, :dim].T
    elastic = Hyperelasticity(body, law)
    at, force = to_device(u, wp.vec3d), zeros(len(body.nodes), wp.vec3d)
    J = np.linalg.det(F)
    psi = 0.5 * mu * ((F * F).sum() - 3.0) - mu * np.log(J) + 0.5 * lam * np.log(J) ** 2
    assert elastic.energy(at) == pytest.approx(psi, rel=1e-12)
    elastic.add_force(at, force)
    force = force.numpy()
    border = np.unique(body.surface.points.nodes)
    inner = np.setdiff1d(np.arange(len(body.nodes)), border)
    assert np.abs(force[inner]).max() < 1e-12 * np.abs(force).max()
    # the forces on the surface are those of P n: their moment is integral P n (x) x = P V
    P = mu * (F - np.linalg.inv(F).T) + lam * np.log(J) * np.linalg.inv(F).T
    total = sum(np.outer(force[i], body.nodes[i]) for i in border)
    assert np.abs(total - P[:, :dim]).max() < 1e-12 * np.abs(P).max()


# --- the body


def test_numbering_of_arrays():
    body = TetBody((NODES, TETS), order=2)
    require_sound(body)
    assert body.kind == QUADRATIC
    assert body.order == 2
    assert np.array_equal(body.nodes[:5], NODES)
    assert len(body.nodes) == 5 + 9  # edges of two tetrahedra that share a face
    for a, (i, j) in enumerate(SIMPLEX_EDGES, 4):
        middle = 0.5 * (body.nodes[body.cells[:, i]] + body.nodes[body.cells[:, j]])
        assert np.array_equal(body.nodes[body.cells[:, a]], middle)
    assert body.cell_volumes == pytest.approx([1.0 / 6.0, 1.0 / 3.0], rel=1e-14)
    assert len(body.surface.facets) == 6 * 4
    assert body.spacing == TetBody((NODES, TETS), order=1).spacing


@pytest.mark.parametrize("shape", [shapes.box(size=(1.0, 2.0, 1.0)), shapes.circle(radius=1.0)])
def test_same_surface_and_volume_as_linear(shape):
    linear, body = (TetBody(shape, 0.5, order=order) for order in (1, 2))
    require_sound(body)
    assert body.volume == pytest.approx(linear.volume, rel=1e-13)
    area = [
        np.linalg.norm(b.surface.area_vectors(b.surface.positions(b.nodes)), axis=1).sum()
        for b in (linear, body)
    ]
    assert area[1] == pytest.approx(area[0], rel=1e-12)
    assert len(body.surface.facets) == 2 ** (body.dim - 1) * len(linear.surface.facets)
    # numbered so that a cell's nodes stay as near in memory as those of linear cells
    growth = len(body.nodes) / len(linear.nodes)
    assert np.ptp(body.cells, axis=1).max() < 1.5 * growth * np.ptp(linear.cells, axis=1).max()


def test_disconnected_orders_are_refused():
    for order in (0, 3, 1.5, "2", True, None):
        with pytest.raises(BadInput, match="order"):
            TetBody((NODES, TETS), order=order)


@pytest.mark.parametrize("ending", [".vtu", ".vtk", ".msh"])
def test_files_keep_quadratic_cells(ending, tmp_path):
    body = TetBody((NODES, TETS), order=2)
    path = tmp_path / f"mesh{ending}"
    save_simplices(path, body.nodes, body.cells)
    nodes, cells = load_simplices(path)
    assert np.array_equal(nodes, body.nodes)
    assert np.array_equal(cells, body.cells[:, :4])
    assert TetBody(path, order=2).volume == pytest.approx(0.5, rel=1e-14)


def test_medit_files_refuse_them(tmp_path):
    body = TetBody((NODES, TETS), order=2)
    with pytest.raises(BadInput, match="vtu"):
        save_simplices(tmp_path / "mesh.mesh", body.nodes, body.cells)


def test_scene_files_remember_the_order():
    table = {
        "shape": {"type": "box", "size": [1.0, 1.0, 1.0]},
        "body": {"kind": "tets", "edge_length": 0.6, "order": 1},
    }
    scene = build_scene(table)
    assert scene.body.order == 1
    assert describe_scene(scene)["body"]["order"] == 1
    assert scene.body.origin_of["body"] == table["body"]
    with pytest.raises(BadInput, match="order"):
        build_scene({"shape": table["shape"], "body": {"kind": "grid", "order": 2}})
    with pytest.raises(BadInput, match="order"):
        build_scene({"shape": table["shape"], "body": {"kind": "tets", "order": 3}})


# --- convergence


def smooth(x):
    """u_i = a_i times the product of sin(w x_j), its body force for lambda = 1.5, mu = 1."""
    dim, w = x.shape[1], 2.0
    a = np.array([1.0, -0.5, 0.7])[:dim]
    s, c = np.sin(w * x), np.cos(w * x)
    product = s.prod(axis=1)
    u = product[:, None] * a
    mixed = np.empty((len(x), dim, dim))
    for i in range(dim):
        for j in range(dim):
            rest = np.delete(s, [i, j], axis=1).prod(axis=1)
            mixed[:, i, j] = -(w**2) * product if i == j else w**2 * c[:, i] * c[:, j] * rest
    # div sigma = (lambda + mu) grad div u + mu laplace u
    force = -(2.5 * mixed @ a - dim * w**2 * product[:, None] * a)
    return u, force


def _gauss(dim):
    """Barycentric points and weights of a collapsed rule of degree 7."""
    x, w = np.polynomial.legendre.leggauss(5)
    t, w = 0.5 * (x + 1.0), 0.5 * w
    mesh = np.meshgrid(*[t] * dim, indexing="ij")
    weight = np.ones((5,) * dim)
    left, coordinates = np.ones((5,) * dim), []
    for d, s in enumerate(mesh):
        coordinates.append(left * s)
        weight = weight * w.reshape([5 if e == d else 1 for e in range(dim)])
        weight = weight * (dim - d) * (1.0 - s) ** (dim - d - 1)
        left = left * (1.0 - s)
    return np.stack([*coordinates, left], axis=-1).reshape(-1, dim + 1), weight.reshape(-1)


def _error(dim, edge, order, mean_dilatation):
    """Distance in L2 of the discrete solution from the exact one, and the mesh size."""
    body = TetBody(regular(dim, edge), order=order)
    K = stiffness(body, 1.5, 1.0, mean_dilatation=mean_dilatation)
    at, weight = _gauss(dim)
    N = quadratic_shapes(at) if order == 2 else at
    corners = body.nodes[body.cells[:, : dim + 1]]
    x = np.einsum("qm,cmi->cqi", at, corners)
    exact, force = (v.reshape(x.shape) for v in smooth(x.reshape(-1, dim)))
    load = np.zeros_like(body.nodes)
    np.add.at(load, body.cells, np.einsum("c,q,qa,cqi->cai", body.cell_volumes, weight, N, force))
    held = ((body.nodes < 1e-9) | (body.nodes > 1.0 - 1e-9)).any(axis=1)
    u = held_solution(K, load, held, smooth(body.nodes)[0])
    found = np.einsum("qa,cai->cqi", N, u[body.cells])
    square = np.einsum("c,q,cqi->", body.cell_volumes, weight, (found - exact) ** 2)
    return np.sqrt(square), body.spacing


@pytest.mark.parametrize(
    ("dim", "order", "mean_dilatation", "slope", "edges"),
    [
        (2, 2, False, 2.9, (0.2, 0.1, 0.05)),
        (3, 2, False, 2.9, (0.64, 0.32, 0.21)),
        (2, 1, False, 1.9, (0.1, 0.05, 0.025)),
        (2, 2, True, 1.9, (0.2, 0.1, 0.05)),
    ],
)
def test_order_of_convergence(dim, order, mean_dilatation, slope, edges):
    """Third order in L2, where linear cells have second; a mean dilatation costs one order."""
    found = [_error(dim, edge, order, mean_dilatation) for edge in edges]
    assert all(np.log(a[0] / b[0]) / np.log(a[1] / b[1]) > slope for a, b in pairwise(found))


# --- the silicone beam

BEAM = {
    0.3: (7.218, 22.47, 34.29, 39.55, 7.065),
    0.45: (7.308, 21.29, 33.91, 40.01, 6.884),
    0.499: (7.358, 20.95, 33.84, 40.24, 6.787),
    0.4999: (7.360, 20.94, 33.84, 40.25, 6.785),
}
"""Bending, torsion, second bending, axial [Hz] and drop [mm] by fifth order tetrahedra."""


@pytest.mark.parametrize(
    "poisson_ratio",
    [0.3, pytest.param(0.45, marks=pytest.mark.slow), pytest.param(0.499, marks=pytest.mark.slow),
     0.4999],
)  # fmt: skip
def test_silicone_beam(poisson_ratio):
    """Four edges across, clamped: 1 % in every frequency, lumped masses and all."""
    density, gravity = 1070.0, 9.80709
    body = TetBody(shapes.box(center=(0.05, 0.0, 0.0), size=(0.1, 0.03, 0.03)), 0.0075, order=2)
    K = stiffness(body, *lame(263824.0, poisson_ratio), mean_dilatation=True)
    mass = density * lumped(body)
    weight = np.zeros_like(body.nodes)
    weight[:, 1] = -gravity * mass
    f, u = clamped_motion(K, mass, weight, body.nodes[:, 0] < 1e-9, 6)
    drop = -1e3 * body.displacement_at([[0.1, 0.0, 0.0]], u)[0, 1]
    found = (f[:2].mean(), f[2], f[3:5].mean(), f[5], drop)
    assert found == pytest.approx(BEAM[poisson_ratio], rel=0.01)
