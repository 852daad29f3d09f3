"""Conjugate gradients (linalg.conjugate_gradients) for one right-hand side, and preconditioners.

The operator is a matrix of blocks or known by its products (linalg.operators).
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import warp as wp

from pliant.core.launch import Recorded, launch, zeros
from pliant.core.solution import Outcome, Solution
from pliant.linalg.blocks import CHUNK, CHUNK_GRAIN, BlockMatrix, chunks, dot
from pliant.linalg.conjugate_gradients import Column, Tolerance, iterate
from pliant.linalg.operators import Operator


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


class ConjugateGradients:
    """Solves A x = b on the free components; held components of x are left as they are."""

    def __init__(self, operator: Operator, preconditioner: Preconditioner):
        self.operator = operator
        self.preconditioner = preconditioner
        n = operator.node_count
        self.residual, self._z, self._w, self._p, self._q = (zeros(n, wp.vec3d) for _ in range(5))
        self._partial = zeros(chunks(n), wp.float64)
        self._curvature = operator.curvature(self.residual, self._z, self._w)
        self._x: wp.array | None = None
        self._advance: Recorded | None = None

    def taking(self, operator: Operator, preconditioner: Preconditioner) -> "ConjugateGradients":
        """The same vectors for another operator on the same nodes."""
        self.operator, self.preconditioner = operator, preconditioner
        self._curvature = operator.curvature(self.residual, self._z, self._w)
        return self

    def _bind(self, x: wp.array) -> Recorded:
        if self._advance is None or self._x is not x:
            self._x = x
            n = self.operator.node_count
            vectors = [self._z, self._w, self._p, self._q, x, self.residual]
            self._advance = Recorded(
                _advance, chunks(n), [0.0, 0.0, *vectors, n, self._partial], grain=CHUNK_GRAIN
            )
        return self._advance

    def solve(
        self,
        b: wp.array,
        x: wp.array,
        tolerance: Tolerance | None = None,
        *,
        square: float | None = None,
        check: bool = True,
    ) -> Solution:
        """Improve x (the start, changed in place) until A x = b within the tolerance.

        square: r . r, if `residual` already holds r = P (b - A x) for the start. check: recompute
        the residual before it counts; False where the caller will compute one of his own.
        """  # fmt: skip
        tol = tolerance or Tolerance()
        target = tol.absolute
        if tol.relative > 0.0 or target == 0.0:
            target = tol.target(float(np.sqrt(dot(b, b, self.operator.free))))
        column = Column(target, tol.max_iterations)
        squares = None if square is None else (square,)
        iterate([column], _Passes(self, self._bind(x), b, x), squares=squares, check=check)
        outcome = column.outcome or Outcome.STAGNATED
        return Solution(x, outcome, column.iterations, column.norm, target, column.history)


@dataclass(frozen=True)
class _Passes:
    """The passes of one solve."""

    solver: ConjugateGradients
    step: Recorded
    b: wp.array
    x: wp.array

    def residual(self) -> tuple[float]:
        return (self.solver.operator.residual(self.b, self.x, self.solver.residual),)

    def curvature(self) -> tuple[tuple[float], tuple[float]]:
        s = self.solver
        s.preconditioner.apply(s.residual, s._z)
        rz, zw = s._curvature()
        return (rz,), (zw,)

    def advance(self, alpha: Sequence[float], beta: Sequence[float]) -> tuple[float]:
        self.step.set(0, alpha[0])
        self.step.set(1, beta[0])
        self.step.run()
        return (float(self.solver._partial.numpy().sum()),)
