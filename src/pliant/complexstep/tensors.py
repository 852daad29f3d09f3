"""Tensor functions of complex-stepped matrices through their Cauchy-Riemann real form.

X = A + B i acts like the real matrix [[A, -B], [B, A]] (seed 004, eqs. 4.30 and 4.31), and so on
for every further unit: a routine for real matrices, unchanged, then returns the multicomplex result
in the same form. A matrix is a Multicomplex whose coefficients are (n, m) arrays.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from pliant.complexstep.multicomplex import Multicomplex, order_of


def real_form(z: Any) -> np.ndarray:
    """The Cauchy-Riemann form: (2^order n, 2^order m) real numbers."""
    if not isinstance(z, Multicomplex):
        return np.asarray(z, float)
    a, b = real_form(z.re), real_form(z.im)
    return np.block([[a, -b], [b, a]])


def from_real_form(M: np.ndarray, order: int) -> Any:
    """The number a real form stands for: its first block column."""
    if order == 0:
        return M
    n, m = M.shape[0] // 2, M.shape[1] // 2
    return Multicomplex(from_real_form(M[:n, :m], order - 1), from_real_form(M[n:, :m], order - 1))


def through(routine: Callable[[np.ndarray], np.ndarray], z: Any) -> Any:
    """routine(z) for a routine that maps real matrices to real matrices, analytically."""
    return from_real_form(routine(real_form(z)), order_of(z))


def inverse(z: Any) -> Any:
    """Z^-1, by LAPACK's real inverse.

    Tiny steps survive: the imaginary block is a product of blocks, never a difference with real
    ones, up to pivoting; see `solve` for how the block rows are kept apart.
    """
    return solve(z, np.eye(_rows(z)))


def solve(z: Any, right: Any) -> Any:
    """Z^-1 R with any real solver for the real part: unit by unit.

    (A + B i)(x + y i) = c + d i; with B infinitesimal x = A^-1 (c + B y) and y = A^-1 (d - B x):
    the block elimination of the real form, which never mixes numbers of size 1 and h.
    """
    if not isinstance(z, Multicomplex):
        if isinstance(right, Multicomplex):
            return Multicomplex(solve(z, right.re), solve(z, right.im))
        return np.linalg.solve(np.asarray(z, float), right)
    same = isinstance(right, Multicomplex) and right.order == z.order
    c, d = (right.re, right.im) if same else (right, None)
    A, B = z.re, z.im
    x = solve(A, c)
    y = solve(A, _minus(d, matmul(B, x)))
    # one correction by the square of the step: the exact solution to rounding for any h < 1e-8
    x = _plus(x, solve(A, matmul(B, y)))
    return Multicomplex(x, y)


def determinant(z: Any) -> Any:
    """det Z: det(A + B i) = det(A) prod(1 + i w) over the eigenvalues w of A^-1 B, to first order
    det(A) (1 + i tr(A^-1 B)); the second-order term keeps real parts exact.
    """
    if not isinstance(z, Multicomplex):
        return np.linalg.det(z)
    W = solve(z.re, z.im)
    d = determinant(z.re)
    t = trace(W)
    second = (t * t - trace(matmul(W, W))) * 0.5
    return Multicomplex(d * (1.0 - second), d * t)


def polar(z: Any, *, iterations: int = 30) -> Any:
    """R of Z = R S by Higham's iteration R <- (R + R^-T) / 2."""
    R = z
    for _ in range(iterations):
        R = (R + transpose(inverse(R))) * 0.5
    return R


def matmul(a: Any, b: Any) -> Any:
    """Matrix product of numbers of any order."""
    n, m = order_of(a), order_of(b)
    if n == 0 and m == 0:
        return np.asarray(a) @ np.asarray(b)
    if n < m:
        return Multicomplex(matmul(a, b.re), matmul(a, b.im))
    if m < n:
        return Multicomplex(matmul(a.re, b), matmul(a.im, b))
    re = _minus(matmul(a.re, b.re), matmul(a.im, b.im))
    return Multicomplex(re, _plus(matmul(a.re, b.im), matmul(a.im, b.re)))


def transpose(z: Any) -> Any:
    """Transposed coefficients."""
    if isinstance(z, Multicomplex):
        return Multicomplex(transpose(z.re), transpose(z.im))
    return np.swapaxes(np.asarray(z), -1, -2)


def trace(z: Any) -> Any:
    """Sum of the diagonal."""
    if isinstance(z, Multicomplex):
        return Multicomplex(trace(z.re), trace(z.im))
    return np.trace(z, axis1=-2, axis2=-1)


def _rows(z: Any) -> int:
    while isinstance(z, Multicomplex):
        z = z.re
    return np.asarray(z).shape[0]


def _plus(a: Any, b: Any) -> Any:
    return a + b


def _minus(a: Any, b: Any) -> Any:
    return -b if a is None else a - b
