"""Conjugate gradients for several right-hand sides at once: the matrix is read once for all.

The k vectors of a node form one 3 x k block, so a matrix block is loaded once and multiplied with k
vectors side by side, which also fills the vector units. The iteration is that of one right-hand
side (linalg.conjugate_gradients).
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

from collections.abc import Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import warp as wp

from pliant.core.block_products import row_sum_wide
from pliant.core.errors import BadInput
from pliant.core.launch import Recorded, launch, to_device, zeros
from pliant.core.solution import Outcome, Solution
from pliant.linalg.blocks import BlockMatrix
from pliant.linalg.conjugate_gradients import Column, Tolerance, iterate
from pliant.linalg.multigrid import Cycle, Multigrid

WIDTHS = (4, 8, 16)
"""Numbers of columns there are kernels for; fewer are padded with zeros."""

ROWS = 64
"""Nodes per chunk of a sum."""

ROWS_GRAIN = 2
"""Chunks per thread from which kernels are split."""


@cache
def batch_kernels(width: int) -> SimpleNamespace:
    """Kernels on 3 x width blocks in double precision."""
    V: Any = wp.types.matrix((3, width), wp.float64)
    F: Any = wp.types.matrix((3, width), wp.float32)
    row_sum_doubles = row_sum_wide(width, wp.float64, wp.float64)
    row_sum_singles = row_sum_wide(width, wp.float64, wp.float32)

    @wp.kernel(module="unique")
    def gather(
        first: wp.int32,
        free: wp.array(dtype=wp.vec3d),
        b: wp.array2d(dtype=wp.vec3d),
        x: wp.array(dtype=V),
    ):
        """x = P b, padded with zeros."""
        i = first + wp.tid()
        v = V()
        for c in range(b.shape[1]):
            s = wp.cw_mul(free[i], b[i, c])
            for p in range(3):
                v[p, c] = s[p]
        x[i] = v

    @wp.kernel(module="unique")
    def scatter(first: wp.int32, x: wp.array(dtype=V), b: wp.array2d(dtype=wp.vec3d)):
        """b += x."""
        i = first + wp.tid()
        v = x[i]
        for c in range(b.shape[1]):
            b[i, c] = b[i, c] + wp.vec3d(v[0, c], v[1, c], v[2, c])

    @wp.kernel(module="unique")
    def residual(
        first: wp.int32,
        row_start: wp.array(dtype=wp.int32),
        columns: wp.array(dtype=wp.int32),
        values: wp.array(dtype=wp.mat33d),
        free: wp.array(dtype=wp.vec3d),
        b: wp.array(dtype=V),
        x: wp.array(dtype=V),
        r: wp.array(dtype=V),
        single: wp.array(dtype=F),
        partial: wp.array(dtype=V),
    ):
        """r = P (b - A x), partial = r r (by component)."""
        chunk = first + wp.tid()
        total = V()
        for i in range(chunk * ROWS, wp.min(b.shape[0], (chunk + 1) * ROWS)):
            begin = row_start[i]
            Ax = row_sum_doubles(values, begin, columns, begin, row_start[i + 1] - begin, 1, x)
            s = wp.diag(free[i]) * (b[i] - Ax)
            r[i] = s
            single[i] = F(s)
            total += wp.cw_mul(s, s)
        partial[chunk] = total

    @wp.kernel(module="unique")
    def curvature(
        first: wp.int32,
        row_start: wp.array(dtype=wp.int32),
        columns: wp.array(dtype=wp.int32),
        values: wp.array(dtype=wp.mat33d),
        free: wp.array(dtype=wp.vec3d),
        r: wp.array(dtype=V),
        z: wp.array(dtype=F),
        w: wp.array(dtype=V),
        rz: wp.array(dtype=V),
        zw: wp.array(dtype=V),
    ):
        """w = P A z, and the products r z and z w."""
        chunk = first + wp.tid()
        total_rz = V()
        total_zw = V()
        for i in range(chunk * ROWS, wp.min(r.shape[0], (chunk + 1) * ROWS)):
            begin = row_start[i]
            Az = row_sum_singles(values, begin, columns, begin, row_start[i + 1] - begin, 1, z)
            s = wp.diag(free[i]) * Az
            w[i] = s
            own = V(z[i])
            total_rz += wp.cw_mul(r[i], own)
            total_zw += wp.cw_mul(s, own)
        rz[chunk] = total_rz
        zw[chunk] = total_zw

    @wp.kernel(module="unique")
    def advance(
        first: wp.int32,
        coefficients: wp.array(dtype=V),
        z: wp.array(dtype=F),
        w: wp.array(dtype=V),
        p: wp.array(dtype=V),
        q: wp.array(dtype=V),
        x: wp.array(dtype=V),
        r: wp.array(dtype=V),
        single: wp.array(dtype=F),
        partial: wp.array(dtype=V),
    ):
        """p = z + beta p, q = w + beta q, x += alpha p, r -= alpha q, partial = r r."""
        chunk = first + wp.tid()
        alpha = coefficients[0]
        beta = coefficients[1]
        total = V()
        for i in range(chunk * ROWS, wp.min(x.shape[0], (chunk + 1) * ROWS)):
            d = V(z[i]) + wp.cw_mul(beta, p[i])
            e = w[i] + wp.cw_mul(beta, q[i])
            p[i] = d
            q[i] = e
            x[i] = x[i] + wp.cw_mul(alpha, d)
            s = r[i] - wp.cw_mul(alpha, e)
            r[i] = s
            single[i] = F(s)
            total += wp.cw_mul(s, s)
        partial[chunk] = total

    return SimpleNamespace(
        gather=gather, scatter=scatter, residual=residual, curvature=curvature, advance=advance,
        double=V, single=F,
    )  # fmt: skip


class BatchedConjugateGradients:
    """Solves A X = B for up to 16 columns with a Multigrid, each column to its own tolerance."""

    def __init__(self, matrix: BlockMatrix, multigrid: Multigrid, columns: int):
        if not 1 <= columns <= WIDTHS[-1]:
            raise BadInput(f"A batch has 1 to {WIDTHS[-1]} columns, not {columns}.")
        self.matrix, self.multigrid, self.columns = matrix, multigrid, columns
        self.width = next(w for w in WIDTHS if w >= columns)
        self._K = batch_kernels(self.width)
        n, V = matrix.node_count, self._K.double
        self._chunks = (n + ROWS - 1) // ROWS
        self._b, self._x, self._r, self._w, self._p, self._q = (zeros(n, V) for _ in range(6))
        self._sums = [zeros(self._chunks, V) for _ in range(3)]
        self._coefficients = zeros(2, V)
        self._all = to_device(np.ones((n, 3)), wp.vec3d)
        self._cycle: Cycle | None = None

    def _bind(self) -> None:
        """Record the launches, once the multigrid knows its matrix."""
        A, K = self.matrix, self._K
        if self.multigrid.bound_to is not A:
            self.multigrid.update(A)
        if self._cycle is not None and self._cycle.multigrid_grids is self.multigrid.grids:
            return
        self._cycle = c = Cycle(self.multigrid, self.width)
        rows = [A.row_start, A.columns, A.values, A.free]
        rr, rz, zw = self._sums

        def record(kernel, *arguments) -> Recorded:
            return Recorded(kernel, self._chunks, [*arguments], grain=ROWS_GRAIN)

        self._residual = record(K.residual, *rows, self._b, self._x, self._r, c.b, rr)
        self._curvature = record(K.curvature, *rows, self._r, c.z, self._w, rz, zw)
        self._advance = record(
            K.advance, self._coefficients, c.z, self._w, self._p, self._q, self._x, self._r,
            c.b, rr,
        )  # fmt: skip

    def solve(self, b: wp.array, x: wp.array, tolerance: Tolerance | None = None) -> list[Solution]:
        """b, x: (nodes, columns) of vec3d; x is the start and changed in place.

        Returns a Solution per column, its value the whole of x.
        """
        tol = tolerance or Tolerance()
        if b.shape != (self.matrix.node_count, self.columns) or b.shape != x.shape:
            raise BadInput(
                f"The batch was made for {self.matrix.node_count} nodes and {self.columns} "
                f"columns; b has shape {b.shape} and x {x.shape}."
            )
        self._bind()
        n, K, free = self.matrix.node_count, self._K, self.matrix.free
        launch(K.gather, n, [free, b, self._b])
        norms = np.sqrt(self._square_norms(self._b))
        # correction form: b := P (b - A x) with all of x, then solve for the change of x
        launch(K.gather, n, [self._all, x, self._x])
        self._residual.run()
        wp.copy(self._b, self._r)
        self._x.zero_()
        columns = [Column(tol.target(float(norm)), tol.max_iterations) for norm in norms]
        iterate(columns, self)
        launch(K.scatter, n, [self._x, x])
        return [
            Solution(x, c.outcome or Outcome.STAGNATED, c.iterations, c.norm, c.target, c.history)
            for c in columns
        ]

    # --- the passes of an iteration (linalg.conjugate_gradients)

    def residual(self) -> list[float]:
        """r = P (b - A x); r . r of each column."""
        self._residual.run()
        return self._sum(0)

    def curvature(self) -> tuple[list[float], list[float]]:
        """z by a multigrid cycle, w = P A z; r . z and z . w of each column."""
        assert self._cycle is not None
        self._cycle.run()
        self._curvature.run()
        return self._sum(1), self._sum(2)

    def advance(self, alpha: Sequence[float], beta: Sequence[float]) -> list[float]:
        """A step of each column with its own lengths; r . r."""
        lengths = np.zeros((2, 3, self.width))
        lengths[0, :, : self.columns] = alpha
        lengths[1, :, : self.columns] = beta
        self._coefficients.assign(lengths)
        self._advance.run()
        return self._sum(0)

    def _sum(self, which: int) -> list[float]:
        return self._sums[which].numpy().sum(axis=(0, 1))[: self.columns].tolist()

    def _square_norms(self, v: wp.array) -> np.ndarray:
        values = v.numpy()
        return np.einsum("npk,npk->k", values, values)[: self.columns]
