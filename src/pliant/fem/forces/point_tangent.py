"""The tangent of an isotropic energy at one point, in the frame of its singular vectors.

With F = U diag(s) V^T, g = d psi / d s and H its derivative, a change dF seen in the frame,
D = U^T dF V, changes the stress by

    dP_ii = sum_k H_ik D_kk,    dP_ij = c_ij D_ij + e_ij D_ji,
    c + e = (g_i - g_j) / (s_i - s_j),   c - e = (g_i + g_j) / (s_i + s_j),

so the nine eigenvalues are those of H and the six quotients; clamping them makes the tangent
positive definite (Stomakhin et al. 2012; Smith, de Goes and Kim 2019).
"""

# ruff: noqa: UP018 (int(3) is a variable in Warp's kernel language, 3 a constant)
# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

import warp as wp

from pliant.core.point_products import PointMatrix

CLOSE = wp.constant(wp.float64(5.0e-3))
"""Stretches closer than this take the quotient as an integral of H (two Gauss points, error below
1e-15); further apart the plain quotient loses at most rounding / 5e-3."""

SMALLEST_SUM = wp.constant(wp.float64(1.0e-6))
"""Sum of two stretches below which the second quotient is cut off: a cell inverted through two
equal stretches has no single tangent."""

CLAMP = wp.constant(wp.float64(1.0e-8))
"""Eigenvalues are raised to this share of the largest."""


@wp.struct
class PointTangent:
    """Frames, H, and the matrices c and e (diagonals unused)."""

    U: wp.mat33d
    V: wp.mat33d
    H: wp.mat33d
    c: wp.mat33d
    e: wp.mat33d


@wp.func
def quotient_minus(gi: wp.float64, gj: wp.float64, si: wp.float64, sj: wp.float64) -> wp.float64:
    """(g_i - g_j) / (s_i - s_j) of stretches that are not close."""
    return (gi - gj) / (si - sj)


@wp.func
def quotient_plus(gi: wp.float64, gj: wp.float64, si: wp.float64, sj: wp.float64) -> wp.float64:
    """(g_i + g_j) / (s_i + s_j), its denominator kept away from zero."""
    t = si + sj
    if wp.abs(t) < SMALLEST_SUM:
        if t < wp.float64(0.0):
            t = -SMALLEST_SUM
        else:
            t = SMALLEST_SUM
    return (gi + gj) / t


@wp.func
def _turned(A: wp.mat33d, p: int, q: int) -> wp.mat33d:
    """The Jacobi rotation that zeroes A[p, q]."""
    J = wp.identity(n=3, dtype=wp.float64)
    if wp.abs(A[p, q]) > wp.float64(1.0e-300):
        theta = (A[q, q] - A[p, p]) / (wp.float64(2.0) * A[p, q])
        t = wp.float64(1.0) / (wp.abs(theta) + wp.sqrt(theta * theta + wp.float64(1.0)))
        if theta < wp.float64(0.0):
            t = -t
        co = wp.float64(1.0) / wp.sqrt(t * t + wp.float64(1.0))
        J[p, p] = co
        J[q, q] = co
        J[p, q] = t * co
        J[q, p] = -t * co
    return J


@wp.func
def clamped3(A: wp.mat33d, floor: wp.float64) -> wp.mat33d:
    """Symmetric A with its eigenvalues raised to `floor`; itself where they are above."""
    zero = wp.float64(0.0)
    minor = A[0, 0] * A[1, 1] - A[0, 1] * A[0, 1]
    if A[0, 0] > floor and minor > floor * floor and wp.determinant(A) > floor * floor * floor:
        return A
    B = A
    Q = wp.identity(n=3, dtype=wp.float64)
    for _sweep in range(6):
        J = _turned(B, 0, 1)
        B = wp.transpose(J) * B * J
        Q = Q * J
        J = _turned(B, 0, 2)
        B = wp.transpose(J) * B * J
        Q = Q * J
        J = _turned(B, 1, 2)
        B = wp.transpose(J) * B * J
        Q = Q * J
    d = wp.vec3d(wp.max(B[0, 0], floor), wp.max(B[1, 1], floor), wp.max(B[2, 2], floor))
    if zero > floor:
        return A
    return Q * wp.diag(d) * wp.transpose(Q)


@wp.func
def completed(
    U: wp.mat33d, V: wp.mat33d, H: wp.mat33d, minus: wp.vec3d, plus: wp.vec3d, project: wp.int32
) -> PointTangent:
    """From the quotients of the pairs (0, 1), (1, 2), (2, 0); project = 1: clamped."""
    half = wp.float64(0.5)
    t = PointTangent()
    t.U = U
    t.V = V
    if project == 1:
        size = wp.abs(H[0, 0]) + wp.abs(H[1, 1]) + wp.abs(H[2, 2])
        floor = CLAMP * size
        t.H = clamped3(H, floor)
        for k in range(3):
            minus[k] = wp.max(minus[k], floor)
            plus[k] = wp.max(plus[k], floor)
    else:
        t.H = H
    for k in range(3):
        i = k
        j = (k + 1) % 3
        c = half * (minus[k] + plus[k])
        e = half * (minus[k] - plus[k])
        t.c[i, j] = c
        t.c[j, i] = c
        t.e[i, j] = e
        t.e[j, i] = e
    return t


@wp.struct
class Rows:
    """d(P g) / dF of the three components: each entry [k, l] belongs to F[k, l]."""

    r0: wp.mat33d
    r1: wp.mat33d
    r2: wp.mat33d


@wp.func
def _frame_row(t: PointTangent, h: wp.vec3d, m: int) -> wp.mat33d:
    """Row m in the frame, for the turned gradient h = V^T g."""
    out = wp.mat33d()
    for k in range(3):
        out[k, k] = h[m] * t.H[m, k]
    for k in range(2):
        j = (m + 1 + k) % 3
        out[m, j] = t.c[m, j] * h[j]
        out[j, m] = t.e[m, j] * h[j]
    return t.U * out * wp.transpose(t.V)


@wp.func
def tangent_rows(t: PointTangent, g: wp.vec3d) -> Rows:
    """Rows for a shape function with gradient g."""
    h = g * t.V
    a = _frame_row(t, h, 0)
    b = _frame_row(t, h, 1)
    c = _frame_row(t, h, 2)
    out = Rows()
    out.r0 = t.U[0, 0] * a + t.U[0, 1] * b + t.U[0, 2] * c
    out.r1 = t.U[1, 0] * a + t.U[1, 1] * b + t.U[1, 2] * c
    out.r2 = t.U[2, 0] * a + t.U[2, 1] * b + t.U[2, 2] * c
    return out


@wp.func
def tangent_matrix(t: PointTangent, w: wp.float64) -> PointMatrix:
    """w times the tangent, all entries."""
    out = PointMatrix()
    n = int(3)
    for j in range(n):
        g = wp.vec3d()
        g[j] = w
        R = tangent_rows(t, g)
        for k in range(n):
            for l in range(n):
                out[j, 4 * l + k] = R.r0[k, l]
                out[3 + j, 4 * l + k] = R.r1[k, l]
                out[6 + j, 4 * l + k] = R.r2[k, l]
    return out


@wp.func
def stress_change(t: PointTangent, dF: wp.mat33d) -> wp.mat33d:
    """dP of a change dF."""
    D = wp.transpose(t.U) * dF * t.V
    dP = wp.mat33d()
    for i in range(3):
        total = wp.float64(0.0)
        for k in range(3):
            total += t.H[i, k] * D[k, k]
        dP[i, i] = total
        for k in range(2):
            j = (i + 1 + k) % 3
            dP[i, j] = t.c[i, j] * D[i, j] + t.e[i, j] * D[j, i]
    return t.U * dP * wp.transpose(t.V)
