"""A better first guess from what earlier guesses missed.

In a simulation the error of the first guess changes smoothly from step to step, so it lies almost
in the span of the errors of the last few steps (Fischer 1998, for a right-hand side that changes in
time; here the matrix changes too). With D those errors as columns the start x + D c has the
smallest residual |b - A (x + D c)|; one product of the matrix with all columns finds c. It never
harms: c = 0 is the guess itself.
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

from collections.abc import Sequence
from typing import Any

import numpy as np
import warp as wp

from pliant.core.launch import launch, zeros
from pliant.linalg.blocks import BlockMatrix

DEPTH = 6
"""Errors remembered. On the benchmark torus the start's residual falls 2, 3, 8, 12, 20-fold with 1,
2, 4, 6, 8; an iteration gains 3-fold, and each error costs 12 bytes a node and half a product."""

SAME = 1e-11
"""Directions whose products differ by less than this share (of a square) are one direction."""

ROWS = 128
"""Nodes per chunk of a sum."""

ROWS_GRAIN = 2
"""Chunks per thread from which kernels are split."""

Columns: Any = wp.types.matrix((3, DEPTH), wp.float32)
Products: Any = wp.types.matrix((3, DEPTH), wp.float64)
Gram: Any = wp.types.matrix((DEPTH, DEPTH), wp.float64)
Coefficients: Any = wp.types.vector(DEPTH, wp.float64)


@wp.kernel
def _gram(
    first: wp.int32,
    row_start: wp.array(dtype=wp.int32),
    columns: wp.array(dtype=wp.int32),
    values: wp.array(dtype=wp.mat33d),
    free: wp.array(dtype=wp.vec3d),
    errors: wp.array(dtype=Columns),
    b: wp.array(dtype=wp.vec3d),
    x: wp.array(dtype=wp.vec3d),
    gram: wp.array(dtype=Gram),
    side: wp.array(dtype=Coefficients),
):
    """gram = W^T W and side = W^T r with W = P A D, r = P (b - A x), in chunks."""
    chunk = first + wp.tid()
    G = Gram()
    g = Coefficients()
    for i in range(chunk * ROWS, wp.min(b.shape[0], (chunk + 1) * ROWS)):
        W = Products()
        r = b[i]
        for e in range(row_start[i], row_start[i + 1]):
            j = columns[e]
            r -= values[e] * x[j]
            W += values[e] * Products(errors[j])
        W = wp.diag(free[i]) * W
        G += wp.transpose(W) * W
        g += wp.transpose(W) * wp.cw_mul(free[i], r)
    gram[chunk] = G
    side[chunk] = g


@wp.kernel
def _correct(
    first: wp.int32,
    errors: wp.array(dtype=Columns),
    c: Coefficients,
    x: wp.array(dtype=wp.vec3d),
):
    """x += D c."""
    i = first + wp.tid()
    x[i] = x[i] + Products(errors[i]) * c


@wp.kernel
def _remember(
    first: wp.int32,
    place: wp.int32,
    weights: wp.vec3d,
    u: wp.array(dtype=wp.vec3d),
    v: wp.array(dtype=wp.vec3d),
    a: wp.array(dtype=wp.vec3d),
    free: wp.array(dtype=wp.vec3d),
    x: wp.array(dtype=wp.vec3d),
    errors: wp.array(dtype=Columns),
):
    """Column `place` of D = P (x - guess), the guess being the weighted sum of u, v and a."""
    i = first + wp.tid()
    guess = weights[0] * u[i] + weights[1] * v[i] + weights[2] * a[i]
    d = wp.cw_mul(free[i], x[i] - guess)
    D = errors[i]
    for p in range(3):
        D[p, place] = wp.float32(d[p])
    errors[i] = D


class RecentErrors:
    """What the last first guesses missed, in single precision."""

    def __init__(self, node_count: int):
        self._count = 0
        self._errors = zeros(node_count, Columns)
        chunks = (node_count + ROWS - 1) // ROWS
        self._gram, self._side = zeros(chunks, Gram), zeros(chunks, Coefficients)

    def forget(self) -> None:
        """Start anew: what follows does not depend on what came before."""
        self._count = 0
        self._errors.zero_()

    def improve(self, matrix: BlockMatrix, b: wp.array, x: wp.array) -> None:
        """Add to the guess x the combination of errors that leaves the smallest residual."""
        if self._count == 0:
            return
        launch(
            _gram,
            self._gram.shape[0],
            [
                matrix.row_start, matrix.columns, matrix.values, matrix.free, self._errors,
                b, x, self._gram, self._side,
            ],
            grain=ROWS_GRAIN,
        )  # fmt: skip
        c = _least_squares(self._gram.numpy().sum(axis=0), self._side.numpy().sum(axis=0))
        launch(_correct, x.shape[0], [self._errors, Coefficients(*c), x])

    def remember(
        self, matrix: BlockMatrix, x: wp.array, weights: Sequence[float], state: Sequence[wp.array]
    ) -> None:
        """Note the error of the guess that was the sum of `weights` times (u, v, a)."""
        place = self._count % DEPTH
        launch(
            _remember,
            x.shape[0],
            [place, wp.vec3d(*weights), *state, matrix.free, x, self._errors],
        )
        self._count += 1


def _least_squares(G: np.ndarray, g: np.ndarray) -> np.ndarray:
    """c with G c = g, without the directions that rounding has made one."""
    size = np.sqrt(np.diag(G))
    if not (np.isfinite(G).all() and np.isfinite(g).all()):
        return np.zeros_like(g)  # the solver will say what is wrong
    scale = np.where(size > 0.0, 1.0 / np.where(size > 0.0, size, 1.0), 0.0)
    values, vectors = np.linalg.eigh(scale[:, None] * G * scale)
    keep = values > SAME * values[-1] if values[-1] > 0.0 else np.zeros(len(values), bool)
    V = vectors[:, keep]
    return scale * (V @ ((V.T @ (scale * g)) / values[keep]))
