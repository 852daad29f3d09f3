"""Springs of a body, with constants from its moduli.

A lattice of central forces has Poisson's ratio 1/4 (Cauchy's relation, lambda = mu), in the plane
1/3 (lambda over lambda + 2 mu), whatever the material asks for; only Young's modulus goes in.
Cubes of side a: edges and diagonals of faces with the same constant k have C11 = 3 k / a and
C12 = C44 = k / a, so k = mu a with mu = 2 E / 5; an edge gets a quarter from each of its cells, a
diagonal a half. Squares, per thickness: edges 2 mu, diagonals mu. A partially filled cell gives its
share. Tetrahedra (triangles): the constants k >= 0 of the edges of each whose tensor

    sum k_e l_e^2 n_e n_e n_e n_e / V   (n the direction, l the length)

is nearest to that of lambda = mu, times one number for the whole body that makes its modulus in
stretch, the mean over the axes, the one that was asked for.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy import sparse
from scipy.optimize import nnls

from pliant.fem.bodies.body import Body
from pliant.particles.simplices import LEAST_FILL, simplices_of


@dataclass(frozen=True)
class Springs:
    """ends: (e, 2) nodes; length: (e,) at rest [m]."""

    ends: np.ndarray
    length: np.ndarray
    table: sparse.csr_array
    """(e, cells): what every cell gives a spring per Young's modulus [m]."""

    def constants(self, modulus: np.ndarray) -> np.ndarray:
        """(e,) [N/m] for Young's modulus of the cells [Pa]."""
        return self.table @ modulus


def springs_of(body: Body) -> Springs:
    """Edges and diagonals of grid cells, or edges of simplices."""
    ends, cell, share = _of_grid(body) if body.is_grid else _of_simplices(body)
    ends = np.sort(ends, axis=1)
    keys, row = np.unique(ends[:, 0] * len(body.nodes) + ends[:, 1], return_inverse=True)
    pairs = np.stack([keys // len(body.nodes), keys % len(body.nodes)], axis=1)
    table = sparse.csr_array((share, (row, cell)), shape=(len(keys), len(body.cells)))
    used = np.asarray(table.sum(axis=1)).reshape(-1) > 0.0
    pairs, table = pairs[used], table[used]
    length = np.linalg.norm(body.nodes[pairs[:, 1]] - body.nodes[pairs[:, 0]], axis=1)
    return Springs(pairs.astype(np.int32), length, table)


def _of_grid(body: Body) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    corners = range(2**body.dim)
    fill = np.maximum(np.minimum(body.fill, 1.0), LEAST_FILL)
    ends, cell, share = [], [], []
    for i, j in combinations(corners, 2):
        apart = (i ^ j).bit_count()
        if apart > 2:
            continue
        if body.dim == 3:
            per = 0.4 * body.spacing * (0.25 if apart == 1 else 0.5)
        else:
            per = 0.8 * 0.5 if apart == 1 else 0.4
        ends.append(body.cells[:, [i, j]].astype(np.int64))
        cell.append(np.arange(len(body.cells)))
        share.append(per * fill)
    return np.concatenate(ends), np.concatenate(cell), np.concatenate(share)


def _of_simplices(body: Body) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    parts, dim = simplices_of(body), body.dim
    pairs = list(combinations(range(parts.corners), 2))
    nodes = parts.nodes
    ways = np.stack([body.nodes[nodes[:, j]] - body.nodes[nodes[:, i]] for i, j in pairs], axis=1)
    # e_i e_j of a strain in (xx, yy, zz, yz, zx, xy): what a spring sees of it, l^2 n . e n
    if dim == 3:
        x, y, z = np.moveaxis(ways, 2, 0)
        seen = np.stack([x * x, y * y, z * z, 2 * y * z, 2 * z * x, 2 * x * y], axis=2)
        target = np.diag([3.0, 3.0, 3.0, 4.0, 4.0, 4.0])
        target[:3, :3] += 1.0 - np.eye(3)
    else:
        x, y = np.moveaxis(ways, 2, 0)
        seen = np.stack([x * x, y * y, 2 * x * y], axis=2)
        target = np.array([[3.0, 1.0, 0.0], [1.0, 3.0, 0.0], [0.0, 0.0, 4.0]])
    target = 0.4 * target  # mu over E; shear strains count twice
    length = np.linalg.norm(ways, axis=2)
    tensors = (
        np.einsum("cea,ceb->ceab", seen, seen)
        / (length**2 * parts.volumes[:, None])[..., None, None]
    )
    flat = tensors.reshape(len(nodes), len(pairs), -1)
    k = np.array([nnls(one.T, target.reshape(-1))[0] for one in flat])
    whole = np.einsum("ce,ceab,c->ab", k, tensors, parts.volumes) / parts.volumes.sum()
    k *= _stretching(target, dim) / _stretching(whole, dim)
    ends = np.stack([nodes[:, [i, j]] for i, j in pairs], axis=1).reshape(-1, 2)
    cell = np.repeat(parts.cell, len(pairs))
    return ends.astype(np.int64), cell, k.reshape(-1)


def _stretching(tensor: np.ndarray, dim: int) -> float:
    """Young's modulus, the mean over the axes, of a stiffness."""
    return float(np.mean(1.0 / np.diag(np.linalg.pinv(tensor))[:dim]))
