"""Preconditioned conjugate gradients with an honest exit.

Stops when |b - A x| <= max(relative * |b|, absolute), norms over the free components. The residual
is recomputed from its definition before a result is called converged, because the recursively
updated one drifts; if they disagree the iteration restarts from the recomputed one.

One iteration is the preconditioner and two passes over the vectors (Chronopoulos and Gear 1989):
the product A z with both inner products, then all four updates with the norm; A p follows from the
recurrence of p.
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import warp as wp

from pliant.core.launch import Recorded, launch, zeros
from pliant.core.solution import Outcome, Solution
from pliant.fem.block_rows import BlockRows, row_product
from pliant.linalg.blocks import CHUNK, CHUNK_GRAIN, BlockMatrix, chunks, dot

SMALLEST_RELATIVE = 1e-14
"""Below this a residual in f64 is rounding; asking for less is clipped."""

LOST = 1e-10
"""A direction's p . A p below this share of z . A z is rounding: the direction is dropped."""

RESTARTS = 6
"""How often the iteration may start again from a recomputed residual before it has stagnated."""


class Preconditioner(Protocol):
    """Anything that can map a residual to a search direction, symmetrically."""

    def update(self, matrix: BlockMatrix, *, fresh: bool = False) -> None:
        """Called when the matrix has changed; fresh: it has changed much."""
        ...

    def apply(self, r: wp.array, z: wp.array) -> None:
        """z = approximately A^{-1} r, with held components zero."""
        ...

    def report(self, solution: Solution) -> None:
        """Told how a solve went; may decide when to recompute itself."""
        ...

    def forget(self) -> None:
        """Recompute itself at the next update, whatever came before."""
        ...


@wp.kernel
def _block_multiply(
    first: wp.int32,
    inverse: wp.array(dtype=wp.mat33d),
    r: wp.array(dtype=wp.vec3d),
    z: wp.array(dtype=wp.vec3d),
):
    i = first + wp.tid()
    z[i] = inverse[i] * r[i]


class BlockJacobi:
    """The inverse of each node's own 3x3 block."""

    def __init__(self, node_count: int):
        self._inverse = zeros(node_count, wp.mat33d)

    def update(self, matrix: BlockMatrix, *, fresh: bool = False) -> None:
        """Invert the diagonal blocks."""
        matrix.invert_diagonal(self._inverse)

    def apply(self, r: wp.array, z: wp.array) -> None:
        """z = D^{-1} r."""
        launch(_block_multiply, r.shape[0], [self._inverse, r, z])

    def report(self, solution: Solution) -> None:
        """Nothing to decide: the blocks are inverted anew for every matrix."""

    def forget(self) -> None:
        """Nothing to forget, for the same reason."""


@wp.kernel
def _curvature(
    first: wp.int32,
    A: BlockRows,
    free: wp.array(dtype=wp.vec3d),
    r: wp.array(dtype=wp.vec3d),
    z: wp.array(dtype=wp.vec3d),
    w: wp.array(dtype=wp.vec3d),
    n: wp.int32,
    partial: wp.array(dtype=wp.vec2d),
):
    """w = P A z, partial = (r . z, z . w)."""
    chunk = first + wp.tid()
    rz = wp.float64(0.0)
    zw = wp.float64(0.0)
    for i in range(chunk * CHUNK, wp.min(n, (chunk + 1) * CHUNK)):
        s = wp.cw_mul(free[i], row_product(A, i, z))
        w[i] = s
        rz += wp.dot(r[i], z[i])
        zw += wp.dot(z[i], s)
    partial[chunk] = wp.vec2d(rz, zw)


@wp.kernel
def _advance(
    first: wp.int32,
    alpha: wp.float64,
    beta: wp.float64,
    z: wp.array(dtype=wp.vec3d),
    w: wp.array(dtype=wp.vec3d),
    p: wp.array(dtype=wp.vec3d),
    q: wp.array(dtype=wp.vec3d),
    x: wp.array(dtype=wp.vec3d),
    r: wp.array(dtype=wp.vec3d),
    n: wp.int32,
    partial: wp.array(dtype=wp.float64),
):
    """p = z + beta p, q = w + beta q (= A p), x += alpha p, r -= alpha q, partial = r . r."""
    chunk = first + wp.tid()
    total = wp.float64(0.0)
    for i in range(chunk * CHUNK, wp.min(n, (chunk + 1) * CHUNK)):
        d = z[i] + beta * p[i]
        e = w[i] + beta * q[i]
        p[i] = d
        q[i] = e
        x[i] = x[i] + alpha * d
        s = r[i] - alpha * e
        r[i] = s
        total += wp.dot(s, s)
    partial[chunk] = total


@dataclass(frozen=True)
class Tolerance:
    """When a linear solve is good enough."""

    relative: float = 1e-6
    absolute: float = 0.0
    max_iterations: int = 2000


class ConjugateGradients:
    """Solves A x = b on the free components; held components of x are left as they are."""

    def __init__(self, matrix: BlockMatrix, preconditioner: Preconditioner):
        self.matrix = matrix
        self.preconditioner = preconditioner
        n = matrix.node_count
        self.residual, self._z, self._w, self._p, self._q = (zeros(n, wp.vec3d) for _ in range(5))
        self._partial = zeros(chunks(n), wp.float64)
        self._pairs = zeros(chunks(n), wp.vec2d)
        self._x: wp.array | None = None
        self._advance: Recorded | None = None
        A = matrix
        self._curvature = Recorded(
            _curvature,
            chunks(n),
            [A.rows, A.free, self.residual, self._z, self._w, n, self._pairs],
            grain=CHUNK_GRAIN,
        )

    def _bind(self, x: wp.array) -> Recorded:
        if self._advance is None or self._x is not x:
            self._x = x
            n = self.matrix.node_count
            vectors = [self._z, self._w, self._p, self._q, x, self.residual]
            self._advance = Recorded(
                _advance, chunks(n), [0.0, 0.0, *vectors, n, self._partial], grain=CHUNK_GRAIN
            )
        return self._advance

    def solve(
        self, b: wp.array, x: wp.array, tolerance: Tolerance | None = None,
        *, square: float | None = None, check: bool = True,
    ) -> Solution:
        """Improve x (the start, changed in place) until A x = b within the tolerance.

        square: r . r, if `residual` already holds r = P (b - A x) for the start. check: recompute
        the residual before it counts; False where the caller will compute one of his own.
        """  # fmt: skip
        tol = tolerance or Tolerance()
        A, r = self.matrix, self.residual
        advance = self._bind(x)
        target = tol.absolute
        if tol.relative > 0.0 or target == 0.0:
            b_norm = float(np.sqrt(dot(b, b, A.free)))
            target = max(max(tol.relative, SMALLEST_RELATIVE) * b_norm, target)
        norm = float(np.sqrt(A.residual(b, x, r) if square is None else square))
        history = [norm]
        iterations, restarts = 0, 0
        best_restart = np.inf

        def ended(outcome: Outcome) -> Solution:
            return Solution(x, outcome, iterations, norm, target, history)

        while True:
            if not np.isfinite(norm):
                return ended(Outcome.NOT_FINITE)
            if norm <= target:
                return ended(Outcome.CONVERGED)
            if norm > 0.9 * best_restart or restarts > RESTARTS:
                return ended(Outcome.STAGNATED)
            best_restart = norm
            recursive, beta = norm, 0.0
            rz, pq = 0.0, 0.0
            while recursive > target:
                if iterations >= tol.max_iterations:
                    norm = float(np.sqrt(A.residual(b, x, r)))
                    done = norm <= target
                    return ended(Outcome.CONVERGED if done else Outcome.ITERATION_LIMIT)
                self.preconditioner.apply(r, self._z)
                self._curvature.run()
                rz_new, zw = (float(v) for v in self._pairs.numpy().sum(axis=0))
                if not (np.isfinite(rz_new) and np.isfinite(zw)):
                    norm = float("nan")
                    return ended(Outcome.NOT_FINITE)
                beta = rz_new / rz if rz > 0.0 else 0.0
                pq_new = zw - beta * beta * pq  # p . A p, by the conjugacy of successive p
                if zw > 0.0 and pq_new <= LOST * zw:
                    beta, pq_new = 0.0, zw  # rounding has eaten the direction: start from z
                if rz_new <= 0.0 or pq_new <= 0.0:
                    norm = float(np.sqrt(A.residual(b, x, r)))
                    if rz_new == 0.0 or zw == 0.0:  # a zero direction: nothing left to do
                        done = norm <= target
                        return ended(Outcome.CONVERGED if done else Outcome.STAGNATED)
                    return ended(Outcome.INDEFINITE)
                rz, pq = rz_new, pq_new
                iterations += 1
                advance.set(0, rz / pq)
                advance.set(1, beta)
                advance.run()
                recursive = float(np.sqrt(self._partial.numpy().sum()))
                history.append(recursive)
                if not np.isfinite(recursive):
                    norm = recursive
                    return ended(Outcome.NOT_FINITE)
            norm = recursive if not check else float(np.sqrt(A.residual(b, x, r)))
            restarts += 1
