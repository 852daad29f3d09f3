"""Mean gradients and volumes of cells of every kind, from their geometry rows alone."""

import numpy as np
import pytest
import warp as wp

from pliant.core.launch import launch, to_device, zeros
from pliant.fem.bodies.grid_body import GridBody
from pliant.fem.bodies.tet_body import TetBody
from pliant.fem.cutting.cell_quadrature import cell_quadrature
from pliant.fem.forces.cells import (
    gradient_product_blocks,
    gradient_products,
    mean_gradients,
    row_volumes,
)
from pliant.geometry import shapes
from simplex_bodies import NODES, TETS

BODIES = {
    "cut grid": lambda: GridBody(shapes.sphere(radius=1.0), 0.31),
    "cut grid in the plane": lambda: GridBody(shapes.circle(radius=1.0), 0.23),
    "tetrahedra": lambda: TetBody((NODES, TETS), order=1),
    "triangles": lambda: TetBody(shapes.box(size=(2.0, 1.0)).rotated(angle=0.3), 0.5, order=1),
    "quadratic tetrahedra": lambda: TetBody((NODES, TETS), order=2),
    "quadratic triangles": lambda: TetBody(
        shapes.box(size=(2.0, 1.0)).rotated(angle=0.3), 0.5, order=2
    ),
}


@pytest.fixture(scope="module", params=BODIES)
def body(request):
    return BODIES[request.param]()


def test_volumes(body):
    rows, k = body.geometry_table[body.geometry_row], body.cells.shape[1]
    found = row_volumes(body.kind, rows, k, spacing=body.spacing)
    assert np.abs(found - body.cell_volumes).max() < 1e-13 * body.spacing**body.dim


def test_mean_gradients_are_those_of_the_quadrature(body):
    """The rule is exact for gradients on every cut, and knows nothing of the products G."""
    rows, k = body.geometry_table, body.cells.shape[1]
    V = row_volumes(body.kind, rows, k, spacing=body.spacing)
    found = mean_gradients(body.kind, rows, k, spacing=body.spacing)
    rule = cell_quadrature(body)
    expected = np.einsum("rq,rqai->rai", rule.weight, rule.gradient)
    error = np.abs(V[:, None, None] * found - expected).max()
    assert error < 1e-13 * body.spacing ** (body.dim - 1)
    assert rule.weight.sum(axis=1) == pytest.approx(V, rel=1e-9)


def test_linear_field_has_its_own_gradient(body):
    A = np.array([[1.0, 2.0, -3.0], [0.5, -1.0, 4.0], [2.0, 0.3, 0.7]])[:, : body.dim]
    rows, k = body.geometry_table[body.geometry_row], body.cells.shape[1]
    means = mean_gradients(body.kind, rows, k, spacing=body.spacing)
    found = np.einsum("cai,caj->cij", (body.nodes @ A.T)[body.cells], means)
    whole = row_volumes(body.kind, rows, k, spacing=body.spacing) > 1e-6 * body.spacing**body.dim
    assert whole.sum() > 0.9 * len(whole)
    assert np.abs(found[whole][..., : body.dim] - A).max() < 1e-9
    assert np.abs(found[whole][..., body.dim :]).max(initial=0.0) == 0.0


@wp.kernel
def _on_device(
    first: wp.int32,
    kind: wp.int32,
    k: wp.int32,
    table: wp.array2d(dtype=wp.float64),
    products: wp.array2d(dtype=wp.mat33d),
):
    row = first + wp.tid()
    for a in range(k):
        for b in range(k):
            products[row, a * k + b] = gradient_products(kind, table, row, a, b)


def test_device_and_host_agree(body):
    rows, k = body.geometry_table, body.cells.shape[1]
    products = zeros((len(rows), k * k), wp.mat33d)
    table = to_device(rows, wp.float64)
    launch(_on_device, len(rows), [int(body.kind), k, table, products])
    G = gradient_product_blocks(body.kind, rows, k)
    found = products.numpy().reshape(G.shape)
    assert np.abs(found - G).max() < 1e-14 * np.abs(G).max()
