"""Factors of small dense matrices, written for the vector registers of a CPU.

A = L D L^T, m x m, scalar. L has ones on its diagonal; below it, column after column, lie the
numbers L_ij, i > j, so that both halves of a solve run along columns: the first subtracts a column
times a number, the second is a product of a column with what is solved already.
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportReturnType=false

from functools import cache
from typing import Any

import warp as wp

LANES = 8
"""Numbers of a register. Columns are stored from the last multiple of this up to the row below the
diagonal, and to the next beyond the matrix, with zeros where L has none: all vectors then lie at
the same places, and what one column has written the next can read at once (a solve of 81 unknowns
took 4.3 microseconds with columns that began anywhere)."""

_FACTORISE = """
#ifndef __CUDACC__
#pragma clang fp contract(fast)
    typedef float lanes __attribute__((vector_size(32), aligned(4)));
#endif
    const int M = (m + 7) & ~7;
    float *d = pivots.data + first;
    float *column = below.data + at;  // row i is column[i]
    for (int j = 0; j < m; ++j) {
        const float own = given.data[first + j];
        const float least = 1e-7f * (own > 0.0f ? own : -own);
        // no pivot: a held component, or one that rounding has eaten
        const float inverse = d[j] > least || d[j] < -least ? 1.0f / d[j] : 0.0f;
        for (int k = (j + 1) & ~7; k <= j; ++k) column[k] = 0.0f;
        float *other = column;
        for (int i = j + 1; i < m; ++i) {
            other += M - ((i + 1) & ~7);
            const float s = column[i] * inverse;
            d[i] -= s * column[i];
            int k = (i + 1) & ~7;
#ifndef __CUDACC__
            for (; k < M; k += 8) *(lanes *)(other + k) -= s * *(const lanes *)(column + k);
#endif
            for (; k < M; ++k) other[k] -= s * column[k];
        }
        for (int i = j + 1; i < m; ++i) column[i] *= inverse;
        d[j] = inverse;
        column += M - ((j + 2) & ~7);
    }
"""

_SOLVE_ONE = """
#ifndef __CUDACC__
#pragma clang fp contract(fast)
    typedef float lanes __attribute__((vector_size(32), aligned(4)));
#endif
    const int M = (m + 7) & ~7;
    const float *d = pivots.data + first;
    float *x = (float *)(y.data + begin);
    for (int k = m; k < M; ++k) x[k] = 0.0f;
    const float *column = below.data + at;
    for (int j = 0; j < m; ++j) {
        const float s = x[j];
        int k = (j + 1) & ~7;
#ifndef __CUDACC__
        for (; k < M; k += 8) *(lanes *)(x + k) -= s * *(const lanes *)(column + k);
#endif
        for (; k < M; ++k) x[k] -= s * column[k];
        column += M - ((j + 2) & ~7);
    }
    for (int j = m - 1; j >= 0; --j) {
        column -= M - ((j + 2) & ~7);
        float s = 0.0f;
        int k = (j + 1) & ~7;
#ifndef __CUDACC__
        lanes t = {0, 0, 0, 0, 0, 0, 0, 0};
        for (; k < M; k += 8) t += *(const lanes *)(x + k) * *(const lanes *)(column + k);
        s = ((t[0] + t[4]) + (t[1] + t[5])) + ((t[2] + t[6]) + (t[3] + t[7]));
#endif
        for (; k < M; ++k) s += x[k] * column[k];
        x[j] = d[j] * x[j] - s;
    }
"""

_SOLVE_WIDE = """
#ifndef __CUDACC__
#pragma clang fp contract(fast)
    typedef float lanes __attribute__((vector_size(4 * WIDTH), aligned(4)));
#else
    struct lanes {
        float v[WIDTH];
        __device__ void take(float s, const lanes &o) {
            for (int l = 0; l < WIDTH; ++l) v[l] -= s * o.v[l];
        }
        __device__ void scale(float s) { for (int l = 0; l < WIDTH; ++l) v[l] *= s; }
    };
#endif
    const int M = (m + 7) & ~7;
    const float *d = pivots.data + first;
    lanes *x = (lanes *)(y.data + begin);
    const float *column = below.data + at;
    for (int j = 0; j < m; ++j) {
        for (int k = j + 1; k < m; ++k) {
#ifndef __CUDACC__
            x[k] -= column[k] * x[j];
#else
            x[k].take(column[k], x[j]);
#endif
        }
        column += M - ((j + 2) & ~7);
    }
    for (int j = m - 1; j >= 0; --j) {
        column -= M - ((j + 2) & ~7);
#ifndef __CUDACC__
        lanes s = d[j] * x[j];
        for (int k = j + 1; k < m; ++k) s -= column[k] * x[k];
        x[j] = s;
#else
        x[j].scale(d[j]);
        for (int k = j + 1; k < m; ++k) x[j].take(column[k], x[k]);
#endif
    }
"""


def padded(m: Any) -> Any:
    """m up to the next multiple of LANES."""
    return (m + LANES - 1) // LANES * LANES


def packed_size(m: Any) -> Any:
    """Numbers that the columns of an m x m matrix take."""
    q, r = (m + 1) // LANES, (m + 1) % LANES
    return m * padded(m) - LANES * (LANES * q * (q - 1) // 2 + (r + 1) * q) + LANES * q


@wp.func
def column_of(j: int, m: int) -> int:
    """Where column j of an m x m matrix lies: the number in row i is at this plus i."""
    M = (m + 7) / 8 * 8
    q = (j + 1) / 8
    r = j + 1 - 8 * q
    return j * M - 8 * (4 * q * (q - 1) + (r + 1) * q)


@wp.func_native(_FACTORISE)
def factorise(
    below: wp.array(dtype=wp.float32),
    at: wp.int32,
    pivots: wp.array(dtype=wp.float32),
    given: wp.array(dtype=wp.float32),
    first: wp.int32,
    m: wp.int32,
):
    """Replace A, below its diagonal in `below` from `at` on, by L, and the diagonal by D^-1.

    pivots, given: the diagonal of A from `first` on, twice; zero pivots have the inverse zero.
    """
    ...


@cache
def solve_function(width: int) -> Any:
    """Native y := A^-1 y for the m numbers (times width) from y[begin] on; see `factorise`.

    There must be room for `padded(m)` numbers.
    """
    V: Any = wp.vec3f if width == 1 else wp.types.matrix((3, width), wp.float32)
    text = _SOLVE_ONE if width == 1 else _SOLVE_WIDE.replace("WIDTH", str(width))

    @wp.func_native(text)
    def solve(
        below: wp.array(dtype=wp.float32),
        at: wp.int32,
        pivots: wp.array(dtype=wp.float32),
        first: wp.int32,
        y: wp.array(dtype=V),
        begin: wp.int32,
        m: wp.int32,
    ): ...

    return solve
