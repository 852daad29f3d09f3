"""Between rest places and where the cells carry them, beyond the cells as well.

In a cell of nodes x_j with shape functions N_j, x = sum over j of N_j(X) x_j. Its gradient jumps
from cell to cell; averaged at the nodes and interpolated between them it does not.
"""

import numpy as np
from scipy import sparse

from pliant.fem.bodies.body import Body
from pliant.fem.bodies.quadratic_simplices import quadratic_shapes
from pliant.fem.forces.cells import GRID, QUADRATIC

CORRECTIONS = 4
"""Newton steps to a rest place; in a cell that is not bent one is exact."""


def shapes_at(body: Body, cells: np.ndarray, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """N_j (n, k) and G_j (n, k, 3) [1/m] of cells (n,) of a body in space, at Y (n, 3)."""
    nodes = body.nodes[body.cells[cells]]
    if body.kind == GRID:
        return _trilinear(nodes[:, 0], Y, body)
    return _of_simplices(nodes[:, :4], Y, body.kind == QUADRATIC)


def rest_places(
    body: Body, cells: np.ndarray, x: np.ndarray, points: np.ndarray, near: np.ndarray
) -> np.ndarray:
    """Y (n, 3) that cells (n,) carry to points (n, 3), no further from `near` than a spacing.

    x: (nodes, 3) where the nodes are.
    """
    moved, Y = x[body.cells[cells]], near
    for _ in range(CORRECTIONS):
        weights, slopes = shapes_at(body, cells, Y)
        missed = points - np.einsum("nk,nki->ni", weights, moved)
        F = np.einsum("nki,nkj->nij", moved, slopes)
        F = np.where((np.linalg.det(F) > 0.0)[:, None, None], F, np.eye(3))  # inside out: anywhere
        Y = Y + np.linalg.solve(F, missed[:, :, None])[:, :, 0]
        Y = np.clip(Y, near - body.spacing, near + body.spacing)
    return Y


def nodal_gradients(body: Body) -> list[sparse.csr_matrix]:
    """Three matrices (nodes, nodes) [1/m]: the columns of F at the nodes from where they are.

    The mean over the cells around each, weighted by what of them is filled.
    """
    count, every = len(body.nodes), np.arange(len(body.cells))
    volume = body.cell_volumes
    total = np.bincount(body.cells.reshape(-1), np.repeat(volume, body.cells.shape[1]), count)
    out = [sparse.csr_matrix((count, count)) for _ in range(3)]
    for node in body.cells.T:
        _, slopes = shapes_at(body, every, body.nodes[node])
        share = (volume / total[node])[:, None]
        rows = np.broadcast_to(node[:, None], body.cells.shape).reshape(-1)
        for k in range(3):
            entries = (share * slopes[:, :, k]).reshape(-1)
            out[k] = out[k] + sparse.csr_matrix(
                (entries, (rows, body.cells.reshape(-1))), shape=(count, count)
            )
    return out


def _trilinear(corner: np.ndarray, points: np.ndarray, body: Body):
    """Weights and slopes of the eight nodes of a lattice cell, x fastest."""
    frame, h = body.frame, body.spacing
    t = (points - corner) @ frame / h
    weights, slopes = np.ones((len(points), 8)), np.ones((len(points), 8, 3))
    for a in range(8):
        for axis in range(3):
            high = bool((a >> axis) & 1)
            own = t[:, axis] if high else 1.0 - t[:, axis]
            weights[:, a] *= own
            for other in range(3):
                slopes[:, a, other] *= (1.0 if high else -1.0) / h if other == axis else own
    return weights, slopes @ frame.T


def _of_simplices(corners: np.ndarray, points: np.ndarray, quadratic: bool):
    """The same of tetrahedra with 4 or 10 nodes."""
    edges = (corners[:, :3] - corners[:, 3:]).transpose(0, 2, 1)
    inverse = np.linalg.inv(edges)
    head = np.einsum("nij,nj->ni", inverse, points - corners[:, 3])
    barycentric = np.column_stack([head, 1.0 - head.sum(axis=1)])
    slopes = np.concatenate([inverse, -inverse.sum(axis=1, keepdims=True)], axis=1)
    if not quadratic:
        return barycentric, slopes
    ahead, behind = (  # N is quadratic: this difference is its derivative
        np.stack([quadratic_shapes(barycentric + s * slopes[:, :, k]) for k in range(3)], axis=2)
        for s in (1.0, -1.0)
    )
    return quadratic_shapes(barycentric), 0.5 * (ahead - behind)
