"""Contact between parts through one step that was taken: how its forces change, and transposed.

The forces on the nodes (dynamics.parts.between) are S^T Q with Q by q' = S x', its rate S v', the
old q = S x and the rest places Y of the pairs, which follow the start as S does
(dynamics.parts.pair_places).
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from pliant.dynamics.parts.between import Between
from pliant.dynamics.parts.pair_places import PairPlaces
from pliant.dynamics.parts.pair_slopes import PairSlopes


@dataclass(frozen=True)
class Pulled:
    """By displacement and velocity of the end, displacement of the start, and stiffness (n,)."""

    next_u: np.ndarray
    next_v: np.ndarray
    u: np.ndarray
    stiffness: np.ndarray


class BetweenDerivatives:
    """At displacement u and velocity v (nodes, 3) of the step's end."""

    def __init__(self, between: Between, u: np.ndarray, v: np.ndarray):
        pairs, law, rest = between.pairs, between.law, between.rest
        self.pairs = pairs
        x, was = rest + u, rest + between.u
        f_new, f_old = between.force
        q, rate = pairs.coordinates(x), pairs.coordinates(v)
        new = PairSlopes(pairs, law, q, rate, f_new, f_new + f_old)
        self.J_q, self.J_r, self.J_Y, self.J_k = new.matrices
        self.J_old = np.zeros_like(self.J_q)
        if f_old != 0.0:
            q = pairs.coordinates(was)
            old = PairSlopes(pairs, law, q, np.zeros_like(q), f_old, 0.0)
            self.J_old = old.matrices[0]
            self.J_Y, self.J_k = self.J_Y + old.matrices[2], self.J_k + old.matrices[3]
        self.Q = between.pair_forces(u, v)
        self.places = PairPlaces(pairs, was)
        n = len(pairs)
        shifts = (self.places.shifts(z).reshape(n, 12, 3) for z in (x, v, was))
        weights = zip((self.J_q, self.J_r, self.J_old), shifts, strict=True)
        self.J_Y = self.J_Y + sum(np.einsum("nij,njk->nik", J, shift) for J, shift in weights)

    def change(
        self, next_u: np.ndarray, next_v: np.ndarray, u: np.ndarray, stiffness: np.ndarray
    ) -> np.ndarray:
        """Of the forces on the nodes (nodes, 3)."""
        pairs, n = self.pairs, len(self.pairs)
        dY = self.places.moved(u)
        dQ = self.J_k * stiffness[:, None] + np.einsum("nij,nj->ni", self.J_Y, dY)
        for J, d in ((self.J_q, next_u), (self.J_r, next_v), (self.J_old, u)):
            dQ += np.einsum("nij,nj->ni", J, pairs.coordinates(d).reshape(n, 12))
        return pairs.spread(dQ.reshape(n, 4, 3)) + self.places.spread(self.Q, dY, len(u))

    def pull(self, y: np.ndarray) -> Pulled:
        """The transpose of `change` for y (nodes, 3)."""
        pairs, n = self.pairs, len(self.pairs)
        own = pairs.coordinates(y).reshape(n, 12)
        by_q, by_r, by_old = (
            pairs.spread(np.einsum("nij,ni->nj", J, own).reshape(n, 4, 3))
            for J in (self.J_q, self.J_r, self.J_old)
        )
        shift = self.places.shifts(y).reshape(n, 12, 3)
        Y = np.einsum("nij,ni->nj", self.J_Y, own)
        Y += np.einsum("nij,ni->nj", shift, self.Q.reshape(n, 12))
        stiffness = np.einsum("ni,ni->n", self.J_k, own)
        return Pulled(by_q, by_r, by_old + self.places.pulled(Y), stiffness)

    def matrix(self, u_per_x: float, v_per_x: float) -> sparse.csr_matrix:
        """Of minus the forces by the step's unknown, (3 nodes, 3 nodes)."""
        n, S = len(self.pairs), sparse.kron(self.pairs.S, sparse.identity(3), format="csr")
        J = (u_per_x * self.J_q + v_per_x * self.J_r).reshape(n, 4, 3, 4, 3)
        # S has the rows of q_0 first, then those of q_1 and so on
        pair, k, i, other, j = np.ogrid[:n, :4, :3, :4, :3]
        row = np.broadcast_to((k * n + pair) * 3 + i, J.shape).reshape(-1)
        column = np.broadcast_to((other * n + pair) * 3 + j, J.shape).reshape(-1)
        middle = sparse.csr_matrix((J.reshape(-1), (row, column)), (12 * n, 12 * n))
        return -(S.T @ middle @ S).tocsr()
