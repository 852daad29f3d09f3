"""Manufactured solution u_i = a_i sin(w x) sin(w y) sin(w z): second order in L2, first in H1.

Held at the exact values all around and driven by the exact body force, on an aligned box, a turned
box and a ball cut from a grid, and on tetrahedra. Errors are integrated over the body itself.
"""

import numpy as np
import pytest

import pliant as pl
from oblique import oblique_body
from pliant.fem.cutting.quadrature import shape_functions

W = 2.2
MATERIAL = pl.Material(1.0, 0.3)
LAM, MU = (float(m[0]) for m in MATERIAL.lame(1))
EVERYWHERE = {d: pl.shapes.box(center=(0,) * d, size=(9,) * d) for d in (2, 3)}


def amplitude(dim):
    return np.array([1.0, -0.7, 0.5])[:dim]


def exact(x, t=0.0):
    return np.prod(np.sin(W * x + 0.3), axis=1)[:, None] * amplitude(x.shape[1])


def exact_gradient(x):
    """(points, i, j) = d_j u_i."""
    s, c = np.sin(W * x + 0.3), W * np.cos(W * x + 0.3)
    dim = x.shape[1]
    slope = np.stack(
        [np.prod(np.delete(s, j, axis=1), axis=1) * c[:, j] for j in range(dim)], axis=1
    )
    return amplitude(dim)[None, :, None] * slope[:, None, :]


def force(x, t=0.0):
    """-(lambda + mu) grad div u - mu laplace u."""
    s, c = np.sin(W * x + 0.3), np.cos(W * x + 0.3)
    dim, a = x.shape[1], amplitude(x.shape[1])
    product = np.prod(s, axis=1)
    second = np.empty((len(x), dim, dim))  # d_i d_j of the product of sines
    for i in range(dim):
        for j in range(dim):
            if i == j:
                second[:, i, j] = -(W**2) * product
            else:
                rest = np.prod(np.delete(s, [i, j], axis=1), axis=1)
                second[:, i, j] = W**2 * c[:, i] * c[:, j] * rest
    return -(LAM + MU) * second @ a + MU * dim * W**2 * product[:, None] * a


def quadrature(shape, body):
    """(cell, position, weight): midpoints of 3 parts a side of each cell, those inside the shape.

    The points of a cell share its filled volume; a sliver without any takes its filled centroid.
    """
    dim, corner = body.dim, body.nodes[body.cells]
    g = (np.arange(3) + 0.5) / 3
    t = np.stack(np.meshgrid(*[g] * dim, indexing="ij"), axis=-1).reshape(-1, dim)
    if not body.is_grid:
        t = t[t.sum(axis=1) < 0.99]
        shape_values = np.concatenate([1 - t.sum(axis=1, keepdims=True), t], axis=1)
        x = np.einsum("qa,cad->cqd", shape_values, corner)
        inside = np.ones(x.shape[:2], bool)
    else:
        x = corner[:, :1] + body.spacing * t
        inside = (shape.distance(x.reshape(-1, dim)) < 0.0).reshape(x.shape[:2])
    empty = ~inside.any(axis=1)
    middle = np.einsum("ca,cad->cd", body.node_volumes, corner)
    x[empty, 0] = (middle / np.maximum(body.cell_volumes, 1e-300)[:, None])[empty]
    inside[empty, 0] = True
    share = body.cell_volumes / inside.sum(axis=1)
    cell = np.broadcast_to(np.arange(len(corner))[:, None], inside.shape)[inside]
    return cell, x[inside], share[cell]


def errors(shape, body):
    """(L2, H1) norms of the error."""
    dim = body.dim
    scene = pl.Scene(
        body, MATERIAL, gravity=(0,) * dim, model="linear",
        fixed=[pl.Fixed(EVERYWHERE[dim], displacement=exact)], loads=[pl.BodyForce(force)],
    )  # fmt: skip
    u = pl.solve_static(scene, tolerance=1e-8)
    cell, x, weight = quadrature(shape, body)
    N, dN = shape_functions(body, cell, x)
    value = np.einsum("qa,qai->qi", N, u[body.cells[cell]])
    slope = np.einsum("qaj,qai->qij", dN[..., :dim], u[body.cells[cell]])
    l2 = weight @ ((value - exact(x)) ** 2).sum(axis=1)
    h1 = weight @ ((slope - exact_gradient(x)) ** 2).sum(axis=(1, 2))
    return np.sqrt(l2), np.sqrt(h1)


CUBE = pl.shapes.box(center=(0, 0, 0), size=(1, 1, 1))
UNIT = pl.shapes.box(center=(0.5, 0.5, 0.5), size=(1, 1, 1))
TURNED = CUBE.rotated(axis=(1, 2, 3), angle=0.6).translated((0.03, 0.02, 0.01))
BALL = pl.shapes.sphere(radius=0.6, center=(0.03, 0.02, 0.01))
SQUARE = pl.shapes.box(center=(0, 0), size=(1, 1)).rotated(angle=0.6).translated((0.03, 0.02))
DISC = pl.shapes.circle(radius=0.6, center=(0.03, 0.02))


def tets(shape, h):
    return pl.TetBody(shape, edge_length=1.28 * h, order=1)


def triangles(shape, h):
    return pl.TetBody(shape, edge_length=h, order=1)


CASES = {
    "aligned box": (UNIT, pl.GridBody, (1 / 5, 1 / 8, 1 / 12)),
    "turned square": (SQUARE, oblique_body, (1 / 10, 1 / 20, 1 / 40)),
    "ball": (BALL, pl.GridBody, (1 / 11, 1 / 14, 1 / 18)),
    "disc": (DISC, pl.GridBody, (1 / 10, 1 / 20, 1 / 40)),
    "tetrahedra": (UNIT, tets, (1 / 6, 1 / 9, 1 / 14)),
    "triangles": (DISC, triangles, (1 / 10, 1 / 20, 1 / 40)),
}


def check(shape, make, spacings):
    l2, h1 = np.transpose([errors(shape, make(shape, h)) for h in spacings])
    orders = [np.polyfit(np.log(spacings), np.log(e), 1)[0] for e in (l2, h1)]
    assert orders[0] >= 1.9
    assert orders[1] >= 0.9
    assert l2[-1] < 0.02


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n == "ball" else n for n in CASES]
)
def test_manufactured_solution(name):
    check(*CASES[name])


@pytest.mark.slow
def test_turned_box():
    """With more spacings than the rest: a box's rounded edges are felt on coarse grids."""
    check(TURNED, oblique_body, (1 / 10, 1 / 14, 1 / 20))
