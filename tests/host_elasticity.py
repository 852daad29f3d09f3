"""Linear elasticity of a body assembled with SciPy: what tests compare with, free of kernels."""

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, eigsh, splu

from pliant.fem.forces.cells import (
    gradient_product_blocks,
    mean_gradients,
    row_volumes,
    softened_products,
    stiffness_blocks,
)


def lame(youngs_modulus, poisson_ratio):
    lam = youngs_modulus * poisson_ratio / ((1 + poisson_ratio) * (1 - 2 * poisson_ratio))
    return lam, youngs_modulus / (2 * (1 + poisson_ratio))


def stiffness(body, lam, mu, *, mean_dilatation):
    """K (dim nodes, dim nodes), components of a node together."""
    k, dim, n = body.cells.shape[1], body.dim, len(body.nodes)
    rows = body.geometry_table[body.geometry_row]
    one = np.ones(len(rows))
    G = gradient_product_blocks(body.kind, rows, k)
    if mean_dilatation:
        m = mean_gradients(body.kind, rows, k, spacing=body.spacing)
        V = row_volumes(body.kind, rows, k, spacing=body.spacing)
        G = softened_products(body.kind, rows, k, spacing=body.spacing)
        blocks = stiffness_blocks(G, 0.0 * one, mu * one)
        blocks = blocks + lam * np.einsum("c,cai,cbj->cabij", V, m, m)
    else:
        blocks = stiffness_blocks(G, lam * one, mu * one)
    flat = blocks[..., :dim, :dim].transpose(0, 1, 3, 2, 4).reshape(len(rows), k * dim, k * dim)
    at = (dim * body.cells[:, :, None] + np.arange(dim)).reshape(len(rows), -1)
    i, j = np.repeat(at, k * dim, axis=1), np.tile(at, (1, k * dim))
    shape = (dim * n, dim * n)
    return sparse.csr_matrix((flat.ravel(), (i.ravel(), j.ravel())), shape=shape)


def lumped(body):
    """Integrals over the body that each node stands for, (nodes,)."""
    return np.bincount(body.cells.ravel(), body.node_volumes.ravel(), len(body.nodes))


def factored(K):
    """LU factors of a symmetric positive definite matrix, in an order that suits such."""
    return splu(
        K.tocsc(), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )  # fmt: skip


def held_solution(K, load, held, given):
    """u (nodes, dim) with K u = load at free nodes and u = given at `held` (nodes,) of bool."""
    dim = given.shape[1]
    fixed = np.repeat(held, dim)
    u = given.reshape(-1).copy()
    rest = load.reshape(-1) - K[:, fixed] @ u[fixed]
    u[~fixed] = factored(K[~fixed][:, ~fixed]).solve(rest[~fixed])
    return u.reshape(-1, dim)


def clamped_motion(K, mass, weight, held, count):
    """The lowest `count` frequencies [Hz] and the displacement under nodal forces `weight`."""
    dim = weight.shape[1]
    free = np.flatnonzero(np.repeat(~held, dim))
    inner = K[free][:, free].tocsc()
    factors = factored(inner)
    M = sparse.diags(np.repeat(mass, dim)[free])
    inverse = LinearOperator(inner.shape, matvec=factors.solve)
    start = np.random.default_rng(0).normal(size=len(free))
    squares = eigsh(
        inner, count, M, sigma=0.0, OPinv=inverse, return_eigenvectors=False, tol=1e-8, v0=start
    )
    u = np.zeros(weight.size)
    u[free] = factors.solve(weight.reshape(-1)[free])
    return np.sqrt(np.sort(squares)) / (2.0 * np.pi), u.reshape(-1, dim)
