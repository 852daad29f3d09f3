"""Preconditioned conjugate gradients with an honest exit.

Stops when |b - A x| <= max(relative * |b|, absolute), norms over the free components. The residual
is recomputed from its definition before a result is called converged, because the recursively
updated one drifts; if they disagree the iteration restarts from the recomputed one.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import warp as wp

from pliant.core.launch import Recorded, launch, zeros
from pliant.core.solution import Outcome, Solution
from pliant.linalg.blocks import CHUNK, CHUNK_GRAIN, BlockMatrix, chunks, dot, keep_free

SMALLEST_RELATIVE = 1e-14
"""Below this a residual in f64 is rounding; asking for less is clipped."""

RESTARTS = 6
"""How often the iteration may start again from a recomputed residual before it has stagnated."""


class Preconditioner(Protocol):
    """Anything that can map a residual to a search direction, symmetrically."""

    def update(self, matrix: BlockMatrix) -> None:
        """Called when the matrix has changed."""
        ...

    def apply(self, r: wp.array, z: wp.array) -> None:
        """z = approximately A^{-1} r, with held components zero."""
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

    def update(self, matrix: BlockMatrix) -> None:
        """Invert the diagonal blocks."""
        matrix.invert_diagonal(self._inverse)

    def apply(self, r: wp.array, z: wp.array) -> None:
        """z = D^{-1} r."""
        launch(_block_multiply, r.shape[0], [self._inverse, r, z])


@wp.kernel
def _advance(
    first: wp.int32,
    alpha: wp.float64,
    p: wp.array(dtype=wp.vec3d),
    q: wp.array(dtype=wp.vec3d),
    x: wp.array(dtype=wp.vec3d),
    r: wp.array(dtype=wp.vec3d),
    n: wp.int32,
    partial: wp.array(dtype=wp.float64),
):
    """x += alpha p, r -= alpha q, partial = r . r."""
    chunk = first + wp.tid()
    total = wp.float64(0.0)
    for i in range(chunk * CHUNK, wp.min(n, (chunk + 1) * CHUNK)):
        x[i] = x[i] + alpha * p[i]
        s = r[i] - alpha * q[i]
        r[i] = s
        total += wp.dot(s, s)
    partial[chunk] = total


@wp.kernel
def _redirect(
    first: wp.int32,
    beta: wp.float64,
    z: wp.array(dtype=wp.vec3d),
    p: wp.array(dtype=wp.vec3d),
):
    """p = z + beta p."""
    i = first + wp.tid()
    p[i] = z[i] + beta * p[i]


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
        self._r, self._z, self._p, self._q = (zeros(n, wp.vec3d) for _ in range(4))
        self._partial = zeros(chunks(n), wp.float64)
        self._x: wp.array | None = None
        self._advance: Recorded | None = None
        self._redirect = Recorded(_redirect, n, [0.0, self._z, self._p])

    def solve(self, b: wp.array, x: wp.array, tolerance: Tolerance | None = None) -> Solution:
        """Improve x (the start, changed in place) until A x = b within the tolerance."""
        tol = tolerance or Tolerance()
        A, n = self.matrix, self.matrix.node_count
        r, z, p, q = self._r, self._z, self._p, self._q
        if self._advance is None or self._x is not x:
            self._x = x
            self._advance = Recorded(
                _advance, chunks(n), [0.0, p, q, x, r, n, self._partial], grain=CHUNK_GRAIN
            )
        b_norm = np.sqrt(_free_square_norm(b, A))
        target = max(max(tol.relative, SMALLEST_RELATIVE) * b_norm, tol.absolute)
        norm = np.sqrt(A.residual(b, x, r))
        history = [norm]
        iterations, restarts = 0, 0
        best_restart = np.inf

        def ended(outcome: Outcome) -> Solution:
            return Solution(x, outcome, iterations, norm, target, history)

        if b_norm == 0.0 and norm == 0.0:
            return ended(Outcome.CONVERGED)
        while True:
            if not np.isfinite(norm):
                return ended(Outcome.NOT_FINITE)
            if norm <= target:
                return ended(Outcome.CONVERGED)
            if norm > 0.9 * best_restart or restarts > RESTARTS:
                return ended(Outcome.STAGNATED)
            best_restart = norm
            self.preconditioner.apply(r, z)
            rz = dot(r, z)
            wp.copy(p, z)
            recursive = norm
            while recursive > target:
                if iterations >= tol.max_iterations:
                    norm = np.sqrt(A.residual(b, x, r))
                    done = norm <= target
                    return ended(Outcome.CONVERGED if done else Outcome.ITERATION_LIMIT)
                pq = A.multiply(p, q)
                if not np.isfinite(pq):
                    return ended(Outcome.NOT_FINITE)
                if pq <= 0.0 or rz <= 0.0:
                    norm = np.sqrt(A.residual(b, x, r))
                    if pq == 0.0 or norm <= 1e-12 * b_norm:  # a zero direction: nothing left
                        return ended(Outcome.STAGNATED)
                    return ended(Outcome.INDEFINITE)
                iterations += 1
                self._advance.set(0, rz / pq)
                self._advance.run()
                recursive = float(np.sqrt(self._partial.numpy().sum()))
                history.append(recursive)
                if not np.isfinite(recursive):
                    norm = recursive
                    return ended(Outcome.NOT_FINITE)
                if recursive <= target:
                    break
                self.preconditioner.apply(r, z)
                rz_new = dot(r, z)
                self._redirect.set(0, rz_new / rz)
                self._redirect.run()
                rz = rz_new
            norm = np.sqrt(A.residual(b, x, r))
            restarts += 1


def _free_square_norm(b: wp.array, matrix: BlockMatrix) -> float:
    masked = wp.clone(b)
    keep_free(masked, matrix.free)
    return dot(masked, masked)
