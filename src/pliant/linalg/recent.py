"""A better first guess from what earlier guesses missed.

In a simulation the error of the first guess changes smoothly from step to step, so it lies almost
in the span of the errors of the last few steps (Fischer 1998, for a right-hand side that changes in
time; here the matrix changes too). With D those errors as columns the start x + D c has the
smallest residual |b - A (x + D c)|; one product of the matrix with all columns finds c. It never
harms: c = 0 is the guess itself.

`predict` does without a residual: the combination of older errors that gave the newest one, moved
on by one step (linear prediction), gives the next. The combination is fitted to the images A D, not
to D itself: what the steps' own tolerance leaves is small as a displacement and large as a force,
and a fit that does not see it magnifies it tenfold (torus: the residual of the guess halves).
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

from collections.abc import Sequence
from typing import Any

import numpy as np
import warp as wp

from pliant.core.block_products import row_sum_wide
from pliant.core.launch import launch, zeros
from pliant.linalg.block_rows import BlockRows, row_product
from pliant.linalg.blocks import BlockMatrix, dot

DEPTH = 8
"""Errors remembered: what fills two vector registers. On the benchmark torus the start's residual
falls 2, 3, 8, 12, 20-fold with 1, 2, 4, 6, 8; an iteration gains 3-fold."""

WILDEST = 20.0
"""Sum of the weights of earlier errors beyond which a prediction is none: errors that grow tenfold
a step, as those of a body that lands do, are blown up ones of before. A smooth motion's sum is 1 to
15; the landing bunny's was up to 1,700 and cost it 16 iterations instead of 3."""

SAME = 1e-11
"""Directions whose products differ by less than this share (of a square) are one direction."""

ROWS = 128
"""Nodes per chunk of a sum."""

ROWS_GRAIN = 2
"""Chunks per thread from which kernels are split."""

Eight: Any = wp.types.matrix((3, DEPTH), wp.float32)
EightSums: Any = wp.types.matrix((3, DEPTH), wp.float64)
Gram: Any = wp.types.matrix((DEPTH, DEPTH), wp.float64)
Coefficients: Any = wp.types.vector(DEPTH, wp.float64)

row_sum_eight = row_sum_wide(DEPTH, wp.float64)


@wp.kernel
def _gram(
    first: wp.int32,
    A: BlockRows,
    free: wp.array(dtype=wp.vec3d),
    errors: wp.array(dtype=Eight),
    b: wp.array(dtype=wp.vec3d),
    x: wp.array(dtype=wp.vec3d),
    r: wp.array(dtype=wp.vec3d),
    products: wp.array(dtype=EightSums),
    gram: wp.array(dtype=Gram),
    side: wp.array(dtype=Coefficients),
):
    """W = P A D, r = P (b - A x), and in chunks gram = W^T W, side = W^T r."""
    chunk = first + wp.tid()
    G = Gram()
    g = Coefficients()
    for i in range(chunk * ROWS, wp.min(b.shape[0], (chunk + 1) * ROWS)):
        begin = A.row_start[i]
        count = A.row_start[i + 1] - begin
        W = row_sum_eight(A.values, begin, A.columns, begin, count, 1, errors)
        W = wp.diag(free[i]) * W
        s = wp.cw_mul(free[i], b[i] - row_product(A, i, x))
        r[i] = s
        products[i] = W
        G += wp.transpose(W) * W
        g += wp.transpose(W) * s
    gram[chunk] = G
    side[chunk] = g


@wp.kernel
def _correct(
    first: wp.int32,
    errors: wp.array(dtype=Eight),
    products: wp.array(dtype=EightSums),
    c: Coefficients,
    x: wp.array(dtype=wp.vec3d),
    r: wp.array(dtype=wp.vec3d),
    partial: wp.array(dtype=wp.float64),
):
    """x += D c, r -= W c, partial = r . r in chunks."""
    chunk = first + wp.tid()
    total = wp.float64(0.0)
    for i in range(chunk * ROWS, wp.min(x.shape[0], (chunk + 1) * ROWS)):
        x[i] = x[i] + EightSums(errors[i]) * c
        s = r[i] - products[i] * c
        r[i] = s
        total += wp.dot(s, s)
    partial[chunk] = total


@wp.kernel
def _images(
    first: wp.int32,
    A: BlockRows,
    free: wp.array(dtype=wp.vec3d),
    errors: wp.array(dtype=Eight),
    products: wp.array(dtype=EightSums),
    gram: wp.array(dtype=Gram),
):
    """W = P A D, and in chunks gram = W^T W."""
    chunk = first + wp.tid()
    G = Gram()
    for i in range(chunk * ROWS, wp.min(errors.shape[0], (chunk + 1) * ROWS)):
        begin = A.row_start[i]
        count = A.row_start[i + 1] - begin
        W = row_sum_eight(A.values, begin, A.columns, begin, count, 1, errors)
        W = wp.diag(free[i]) * W
        products[i] = W
        G += wp.transpose(W) * W
    gram[chunk] = G


@wp.kernel
def _along(
    first: wp.int32,
    products: wp.array(dtype=EightSums),
    r: wp.array(dtype=wp.vec3d),
    side: wp.array(dtype=Coefficients),
):
    """W^T r in chunks."""
    chunk = first + wp.tid()
    g = Coefficients()
    for i in range(chunk * ROWS, wp.min(r.shape[0], (chunk + 1) * ROWS)):
        g += wp.transpose(products[i]) * r[i]
    side[chunk] = g


@wp.kernel
def _add_errors(
    first: wp.int32,
    errors: wp.array(dtype=Eight),
    c: Coefficients,
    x: wp.array(dtype=wp.vec3d),
):
    """x += D c."""
    i = first + wp.tid()
    x[i] = x[i] + EightSums(errors[i]) * c


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
    errors: wp.array(dtype=Eight),
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
        self._errors = zeros(node_count, Eight)
        self._products = zeros(node_count, EightSums)  # in f64, or the residual would drift
        chunks = (node_count + ROWS - 1) // ROWS
        self._gram, self._side = zeros(chunks, Gram), zeros(chunks, Coefficients)
        self._partial = zeros(chunks, wp.float64)
        self._images_gram = np.zeros((DEPTH, DEPTH))

    def forget(self) -> None:
        """Start anew: what follows does not depend on what came before."""
        self._count = 0
        self._errors.zero_()

    def improve(self, matrix: BlockMatrix, b: wp.array, x: wp.array, r: wp.array) -> float:
        """Add to the guess x the combination of errors that leaves the smallest residual.

        r becomes that residual, P (b - A x); returns r . r.
        """
        if self._count == 0:
            return matrix.residual(b, x, r)
        chunks = self._gram.shape[0]
        launch(
            _gram,
            chunks,
            [
                matrix.rows, matrix.free, self._errors, b, x, r, self._products, self._gram,
                self._side,
            ],
            grain=ROWS_GRAIN,
        )  # fmt: skip
        return self._add_best(self._gram.numpy().sum(axis=0), x, r)

    def predict(self, matrix: BlockMatrix, x: wp.array) -> None:
        """Add to the guess x the error that the earlier ones foretell.

        matrix: any that is like the step's; `improve_correction` may follow if it is the step's.
        """
        known = min(self._count, DEPTH)
        if known == 0:
            return
        chunks = self._gram.shape[0]
        launch(
            _images, chunks,
            [matrix.rows, matrix.free, self._errors, self._products, self._gram], grain=ROWS_GRAIN,
        )  # fmt: skip
        self._images_gram = G = self._gram.numpy().sum(axis=0)
        if known == 1:
            return
        newest_first = [(self._count - 1 - k) % DEPTH for k in range(known)]
        newest, older = newest_first[0], newest_first[1:]
        c = np.zeros(DEPTH)
        c[newest_first[:-1]] = _least_squares(G[np.ix_(older, older)], G[older, newest])
        if np.abs(c).sum() > WILDEST:
            return
        launch(_add_errors, len(x), [self._errors, Coefficients(*c), x])

    def improve_correction(self, dx: wp.array, r: wp.array) -> float:
        """`improve` of A dx = r with the matrix of `predict`, dx being zero: r becomes r - A dx."""
        if self._count == 0:
            return dot(r, r)
        launch(_along, self._side.shape[0], [self._products, r, self._side], grain=ROWS_GRAIN)
        return self._add_best(self._images_gram, dx, r)

    def _add_best(self, G: np.ndarray, x: wp.array, r: wp.array) -> float:
        """x += D c and r -= W c with the c that leaves the smallest r; returns r . r."""
        c = _least_squares(G, self._side.numpy().sum(axis=0))
        launch(
            _correct,
            self._gram.shape[0],
            [self._errors, self._products, Coefficients(*c), x, r, self._partial],
            grain=ROWS_GRAIN,
        )
        return float(self._partial.numpy().sum())

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
