"""How pairs change with where they were found: the rest place Y of each follows the step's start.

Y is where the cell carries it to the point, so with S_0 the rows of q_0 and F_c = sum of x_j grad
N_j(Y) the cell's own gradient, at the start,

    dY = F_c^-1 S_0 du,    dS x = (-F_c[x], F_c[G_1 x], F_c[G_2 x], F_c[G_3 x]) dY,

F_c[x] the same of any nodal numbers x, G_k the matrices of the nodal gradients.
"""

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from pliant.dynamics.parts.pairs import Pairs, Run
from pliant.fem.bodies.cell_maps import shapes_at


class PairPlaces:
    """Of pairs that were found with the nodes at x (nodes, 3)."""

    def __init__(self, pairs: Pairs, x: np.ndarray):
        self.pairs = pairs
        self._slopes = [_slopes(pairs, run) for run in pairs.runs]
        F = self._gradient(x)
        near = np.concatenate([np.zeros((0, 3)), *(run.near for run in pairs.runs)])
        reach = np.concatenate([np.zeros(0), *(_spacings(run) for run in pairs.runs)])
        # a place that was stopped at the border of its cell's surroundings stays there
        kept = (np.abs(pairs.places - near) < (1.0 - 1e-9) * reach[:, None]).all(axis=1)
        usable = kept & (np.linalg.det(F) > 0.0)
        F = np.where(usable[:, None, None], F, np.eye(3))
        self._inverse = np.linalg.inv(F) * usable[:, None, None]

    def moved(self, du: np.ndarray) -> np.ndarray:
        """DY (n, 3) for a change du (nodes, 3) of the start."""
        n = len(self.pairs)
        return np.einsum("nij,nj->ni", self._inverse, self.pairs.S[:n] @ du)

    def pulled(self, Y_bar: np.ndarray) -> np.ndarray:
        """The transpose of `moved`, (nodes, 3)."""
        n = len(self.pairs)
        return self.pairs.S[:n].T @ np.einsum("nij,ni->nj", self._inverse, Y_bar)

    def shifts(self, x: np.ndarray) -> np.ndarray:
        """How q = S x changes with Y, (n, 4, 3, 3): the last index is that of Y."""
        out = np.zeros((len(self.pairs), 4, 3, 3))
        for run, D in zip(self.pairs.runs, self._slopes, strict=True):
            own = run.behind.own(x)
            out[run.rows, 0] = -_along(D, own)
            for k, G in enumerate(run.behind.gradients):
                out[run.rows, k + 1] = _along(D, G @ own)
        return out

    def spread(self, Q: np.ndarray, dY: np.ndarray, count: int) -> np.ndarray:
        """dS^T Q (count, 3), the change of forces on the nodes whose forces by q stay Q."""
        out = np.zeros((count, 3))
        for run, D in zip(self.pairs.runs, self._slopes, strict=True):
            own = run.behind.own(out)
            q, d = Q[run.rows], dY[run.rows]
            for i in range(3):
                own -= D[i].T @ (d[:, i, None] * q[:, 0])
            for k, G in enumerate(run.behind.gradients):
                own += G.T @ sum(D[i].T @ (d[:, i, None] * q[:, k + 1]) for i in range(3))
        return out

    def _gradient(self, x: np.ndarray) -> np.ndarray:
        out = np.zeros((len(self.pairs), 3, 3))
        for run, D in zip(self.pairs.runs, self._slopes, strict=True):
            out[run.rows] = _along(D, run.behind.own(x))
        return out


def _along(D: Sequence[sparse.csr_matrix], x: np.ndarray) -> np.ndarray:
    """F_c[x] (n, 3, 3)."""
    return np.stack([matrix @ x for matrix in D], axis=2)


def _slopes(pairs: Pairs, run: Run) -> list[sparse.csr_matrix]:
    """dN_j / dY_i as matrices (n, nodes of the part), one for each i."""
    body = run.behind.body
    slopes = shapes_at(body, run.cells, pairs.places[run.rows])[1]
    nodes = body.cells[run.cells]
    n, k = nodes.shape
    where = (np.repeat(np.arange(n), k), nodes.reshape(-1))
    shape = (n, len(body.nodes))
    return [sparse.csr_matrix((slopes[:, :, i].reshape(-1), where), shape) for i in range(3)]


def _spacings(run: Run) -> np.ndarray:
    return np.full(len(run.cells), run.behind.body.spacing)
