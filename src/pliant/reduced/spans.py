"""Linear maps from a few numbers q to fields of many rows: displacements of points, or gradients.

A row is a vector of `dim` components. Two kinds: a `ScalarSpan` has scalar functions b_s that each
component takes for itself,

    field[m, i] = sum_s b_s[m] q[s, i],    q = (s, i) in one vector,

so that whatever it can do along one axis it can do along all, turns of the whole body included; a
`VectorSpan` has fields of its own, field[m, i] = sum_r B[m, i, r] q[r]. Scalar functions that live
in a part of the body only are kept part by part (`Piece`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np


class Span(Protocol):
    """What reduced forces ask of a map."""

    size: int
    """Numbers in q."""
    dim: int

    def apply(self, q: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """The field (rows, dim), in `out` where that is given."""
        ...

    def apply_many(self, q: np.ndarray) -> np.ndarray:
        """The fields (rows, k, dim) of several q (k, size)."""
        ...

    def pull(self, field: np.ndarray) -> np.ndarray:
        """Transpose of `apply`."""
        ...

    def gram(self, blocks: np.ndarray) -> np.ndarray:
        """B^T A B, (size, size); symmetric blocks (groups, w, dim, w, dim) couple w rows each."""
        ...

    def carried(self, matrix: Any) -> "Span":
        """The map to the rows matrix @ field; matrix: (new rows, rows), sparse or dense."""
        ...

    def weighted(self, matrix: Any) -> np.ndarray:
        """B^T (M x I) B, (size, size); M (rows, rows), sparse, acts on each component alike."""
        ...

    def columns(self, rows: np.ndarray) -> np.ndarray:
        """The map at some rows, (len(rows), dim, size)."""
        ...


@dataclass(frozen=True)
class Piece:
    """Rows [first, last) depend on the functions `columns` (k,) only: rows (last - first, k)."""

    first: int
    last: int
    columns: np.ndarray
    rows: np.ndarray


class ScalarSpan:
    """Scalar functions, taken by each component."""

    def __init__(self, pieces: Sequence[Piece], functions: int, dim: int):
        self.pieces, self.functions, self.dim = list(pieces), functions, dim
        self.count = max((p.last for p in self.pieces), default=0)
        self.size = functions * dim

    @classmethod
    def of(cls, rows: np.ndarray, dim: int) -> "ScalarSpan":
        """One piece: rows (m, s)."""
        m, s = rows.shape
        return cls([Piece(0, m, np.arange(s), np.ascontiguousarray(rows))], s, dim)

    def dense(self) -> np.ndarray:
        """All functions at all rows, (rows, functions)."""
        out = np.zeros((self.count, self.functions))
        for p in self.pieces:
            out[p.first : p.last, p.columns] = p.rows
        return out

    def apply(self, q: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """See Span."""
        wide = q.reshape(self.functions, self.dim)
        out = np.empty((self.count, self.dim)) if out is None else out
        if len(self.pieces) == 1 and len(self.pieces[0].columns) == self.functions:
            return np.matmul(self.pieces[0].rows, wide, out=out)
        for p in self.pieces:
            np.matmul(p.rows, wide[p.columns], out=out[p.first : p.last])
        return out

    def apply_many(self, q: np.ndarray) -> np.ndarray:
        """See Span."""
        k, d = len(q), self.dim
        wide = q.reshape(k, self.functions, d).transpose(1, 0, 2).reshape(self.functions, k * d)
        out = np.empty((self.count, k * d))
        for p in self.pieces:
            np.matmul(p.rows, wide[p.columns], out=out[p.first : p.last])
        return out.reshape(self.count, k, d)

    def pull(self, field: np.ndarray) -> np.ndarray:
        """See Span."""
        if len(self.pieces) == 1 and len(self.pieces[0].columns) == self.functions:
            return (self.pieces[0].rows.T @ field).reshape(-1)
        out = np.zeros((self.functions, self.dim))
        for p in self.pieces:
            out[p.columns] += p.rows.T @ field[p.first : p.last]
        return out.reshape(-1)

    def gram(self, blocks: np.ndarray) -> np.ndarray:
        """See Span: for each pair of components a product of the functions."""
        d, w = self.dim, blocks.shape[1]
        pairs = [(i, j) for i in range(d) for j in range(i, d)]
        left_of, right_of = (np.array(ends) for ends in zip(*pairs, strict=True))
        out = np.zeros((self.functions, d, self.functions, d))
        for p in self.pieces:
            groups, k = (p.last - p.first) // w, len(p.columns)
            own = blocks[p.first // w : p.last // w]
            rows = p.rows.reshape(groups, w, k)
            # T[g, a, (i, j), :] = sum_b own[g, a, i, b, j] rows[g, b, :], i <= j
            left = np.moveaxis(own[:, :, left_of, :, right_of], 0, 2)
            T = np.matmul(left.reshape(groups, w * len(pairs), w), rows)
            part = (p.rows.T @ T.reshape(groups * w, -1)).reshape(k, len(pairs), k)
            whole = len(self.pieces) == 1 and k == self.functions
            for n, (i, j) in enumerate(pairs):
                at = (slice(None), i, slice(None), j)
                to = (slice(None), j, slice(None), i)
                if not whole:
                    at, to = (
                        (p.columns[:, None], i, p.columns, j),
                        (p.columns[:, None], j, p.columns, i),
                    )
                out[at] += part[:, n]
                if i != j:
                    out[to] += part[:, n].T
        return out.reshape(self.size, self.size)

    def carried(self, matrix: Any) -> "ScalarSpan":
        """See Span."""
        return ScalarSpan.of(np.asarray(matrix @ self.dense()), self.dim)

    def weighted(self, matrix: Any) -> np.ndarray:
        """See Span."""
        b = self.dense()
        return np.kron(b.T @ (matrix @ b), np.eye(self.dim))

    def columns(self, rows: np.ndarray) -> np.ndarray:
        """See Span."""
        b = self.dense()[rows]
        out = np.einsum("ms,ij->misj", b, np.eye(self.dim))
        return out.reshape(len(rows), self.dim, self.size)


class VectorSpan:
    """Fields of their own: basis (rows, dim, size)."""

    def __init__(self, basis: np.ndarray):
        self.basis = np.ascontiguousarray(basis)
        self.count, self.dim, self.size = basis.shape
        self._flat = self.basis.reshape(self.count * self.dim, self.size)

    def apply(self, q: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """See Span."""
        if out is None:
            return (self._flat @ q).reshape(self.count, self.dim)
        np.matmul(self._flat, q, out=out.reshape(-1))
        return out

    def apply_many(self, q: np.ndarray) -> np.ndarray:
        """See Span."""
        return (self._flat @ q.T).reshape(self.count, self.dim, len(q)).transpose(0, 2, 1)

    def pull(self, field: np.ndarray) -> np.ndarray:
        """See Span."""
        return self._flat.T @ field.reshape(-1)

    def gram(self, blocks: np.ndarray) -> np.ndarray:
        """See Span."""
        groups, w = blocks.shape[:2]
        wide = w * self.dim
        own = self._flat.reshape(groups, wide, self.size)
        T = np.matmul(blocks.reshape(groups, wide, wide), own).reshape(-1, self.size)
        return self._flat.T @ T

    def carried(self, matrix: Any) -> "VectorSpan":
        """See Span."""
        rows = np.asarray(matrix @ self.basis.reshape(self.count, -1))
        return VectorSpan(rows.reshape(-1, self.dim, self.size))

    def weighted(self, matrix: Any) -> np.ndarray:
        """See Span."""
        heavy = matrix @ self.basis.reshape(self.count, -1)
        return self._flat.T @ np.asarray(heavy).reshape(-1, self.size)

    def columns(self, rows: np.ndarray) -> np.ndarray:
        """See Span."""
        return self.basis[rows]
