"""Manufactured solution u_i = a_i sin(w x) sin(w y) sin(w z): second order in L2, first in H1.

Held at the exact values all around and driven by the exact body force, on an aligned box, a turned
box and a ball cut from a grid, and on tetrahedra. Errors are integrated over the body itself.
"""

import numpy as np
import pytest

import pliant as pl
from pliant.fem.quadrature import shape_functions

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


def quadrature(body):
    """(cell, position, weight): the filled centroid of cut cells, Gauss points elsewhere.

    One point in a cut cell is enough: these are a layer, and the error there is a smooth function.
    """
    dim = body.dim
    corner = body.nodes[body.cells]
    if not body.is_grid:
        return np.arange(len(body.cells)), corner.mean(axis=1), body.cell_volumes
    full = body.fill > 1.0 - 1e-9
    cut = np.flatnonzero(~full & (body.cell_volumes > 0.0))
    middle = np.einsum("ca,cad->cd", body.node_volumes[cut], corner[cut])
    middle /= body.cell_volumes[cut, None]
    g = 0.5 + np.array([-0.5, 0.5]) / np.sqrt(3.0)
    t = np.stack(np.meshgrid(*[g] * dim, indexing="ij"), axis=-1).reshape(-1, dim)
    inner = corner[full][:, 0][:, None, :] + body.spacing * t
    cells = np.concatenate([np.repeat(np.flatnonzero(full), len(t)), cut])
    weight = np.full(full.sum() * len(t), body.spacing**dim / len(t))
    return (
        cells, np.concatenate([inner.reshape(-1, dim), middle]),
        np.concatenate([weight, body.cell_volumes[cut]]),
    )  # fmt: skip


def errors(body):
    """(L2, H1) norms of the error."""
    dim = body.dim
    scene = pl.Scene(
        body, MATERIAL, gravity=(0,) * dim, model="linear",
        fixed=[pl.Fixed(EVERYWHERE[dim], displacement=exact)], loads=[pl.BodyForce(force)],
    )  # fmt: skip
    u = pl.solve_static(scene, tolerance=1e-8)
    cell, x, weight = quadrature(body)
    N, dN = shape_functions(body, cell, x)
    value = np.einsum("qa,qai->qi", N, u[body.cells[cell]])
    slope = np.einsum("qaj,qai->qij", dN[..., :dim], u[body.cells[cell]])
    if not body.is_grid:
        # at its centroid a linear simplex has the error of its nodes, not of its middle: add theirs
        node = np.abs(u - exact(body.nodes)) ** 2
        inner = ((value - exact(x)) ** 2).sum(axis=1)
        l2 = weight @ (0.8 * inner + 0.2 * node.sum(axis=1)[body.cells].mean(axis=1))
    else:
        l2 = weight @ ((value - exact(x)) ** 2).sum(axis=1)
    h1 = weight @ ((slope - exact_gradient(x)) ** 2).sum(axis=(1, 2))
    return np.sqrt(l2), np.sqrt(h1)


def aligned(h):
    return pl.GridBody(pl.shapes.box(center=(0.5,) * 3, size=(1,) * 3), h)


def turned(h):
    box = pl.shapes.box(center=(0, 0, 0), size=(1, 1, 1))
    return pl.GridBody(box.rotated(axis=(1, 2, 3), angle=0.6).translated((0.03, 0.02, 0.01)), h)


def ball(h):
    return pl.GridBody(pl.shapes.sphere(radius=0.6, center=(0.03, 0.02, 0.01)), h)


def disc(h):
    return pl.GridBody(pl.shapes.circle(radius=0.6, center=(0.03, 0.02)), h)


def tets(h):
    return pl.TetBody(pl.shapes.box(center=(0.5,) * 3, size=(1,) * 3), edge_length=1.28 * h)


def triangles(h):
    return pl.TetBody(pl.shapes.circle(radius=0.6, center=(0.03, 0.02)), edge_length=h)


CASES = {
    "aligned box": (aligned, (1 / 6, 1 / 9, 1 / 14)),
    "turned box": (turned, (1 / 7, 1 / 10, 1 / 14)),
    "ball": (ball, (1 / 7, 1 / 10, 1 / 15)),
    "disc": (disc, (1 / 10, 1 / 20, 1 / 40)),
    "tetrahedra": (tets, (1 / 6, 1 / 9, 1 / 14)),
    "triangles": (triangles, (1 / 10, 1 / 20, 1 / 40)),
}


@pytest.mark.parametrize("name", CASES)
def test_manufactured_solution(name):
    make, spacings = CASES[name]
    l2, h1 = np.transpose([errors(make(h)) for h in spacings])
    orders = [np.polyfit(np.log(spacings), np.log(e), 1)[0] for e in (l2, h1)]
    assert orders[0] >= 1.9
    assert orders[1] >= 0.9
    assert l2[-1] < 0.02
