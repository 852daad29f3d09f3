"""Signed singular value decomposition F = U diag(s) V^T of a 3x3 matrix, for every F.

U and V are rotations (det = +1), s is sorted by size, and an inverted cell's last stretch is
negative (Irving, Teran and Fedkiw 2004). One-sided Jacobi turns make the columns of F V orthogonal,
so small stretches keep their relative accuracy.
"""

# ruff: noqa: UP018 (int(0) is a variable in Warp's kernel language, 0 a constant)
# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

import warp as wp

SWEEPS = 12
"""Most sweeps of three turns; four or five reach rounding, and each tests whether it is done."""


@wp.struct
class SignedSVD:
    """F = U diag(s) V^T, |s0| >= |s1| >= |s2|, s0, s1 >= 0."""

    U: wp.mat33d
    V: wp.mat33d
    s: wp.vec3d


@wp.func
def _column(A: wp.mat33d, j: int) -> wp.vec3d:
    return wp.vec3d(A[0, j], A[1, j], A[2, j])


@wp.func
def _turn(a: wp.vec3d, b: wp.vec3d) -> wp.vec2d:
    """(cos, sin) that makes the turned columns orthogonal; sin = 0 when they are."""
    zero = wp.float64(0.0)
    one = wp.float64(1.0)
    aa = wp.dot(a, a)
    bb = wp.dot(b, b)
    ab = wp.dot(a, b)
    if ab * ab <= wp.float64(1.0e-33) * aa * bb:
        return wp.vec2d(one, zero)
    zeta = (bb - aa) / (wp.float64(2.0) * ab)
    t = one / (wp.abs(zeta) + wp.sqrt(one + zeta * zeta))
    if zeta < zero:
        t = -t
    c = one / wp.sqrt(one + t * t)
    return wp.vec2d(c, c * t)


@wp.func
def _orthogonal_to(a: wp.vec3d) -> wp.vec3d:
    """A unit vector orthogonal to the unit vector a."""
    b = wp.vec3d(wp.float64(1.0), wp.float64(0.0), wp.float64(0.0))
    if wp.abs(a[0]) > wp.float64(0.7):
        b = wp.vec3d(wp.float64(0.0), wp.float64(1.0), wp.float64(0.0))
    return wp.normalize(b - wp.dot(a, b) * a)


@wp.func
def signed_svd(F: wp.mat33d) -> SignedSVD:
    """The decomposition; identity frames for F = 0."""
    zero = wp.float64(0.0)
    one = wp.float64(1.0)
    b0 = _column(F, 0)
    b1 = _column(F, 1)
    b2 = _column(F, 2)
    v0 = wp.vec3d(one, zero, zero)
    v1 = wp.vec3d(zero, one, zero)
    v2 = wp.vec3d(zero, zero, one)
    sweep = int(0)
    turned = int(1)
    while turned == 1 and sweep < SWEEPS:
        turned = 0
        r = _turn(b0, b1)
        if r[1] != zero:
            turned = 1
            t = r[0] * b0 - r[1] * b1
            b1 = r[1] * b0 + r[0] * b1
            b0 = t
            t = r[0] * v0 - r[1] * v1
            v1 = r[1] * v0 + r[0] * v1
            v0 = t
        r = _turn(b0, b2)
        if r[1] != zero:
            turned = 1
            t = r[0] * b0 - r[1] * b2
            b2 = r[1] * b0 + r[0] * b2
            b0 = t
            t = r[0] * v0 - r[1] * v2
            v2 = r[1] * v0 + r[0] * v2
            v0 = t
        r = _turn(b1, b2)
        if r[1] != zero:
            turned = 1
            t = r[0] * b1 - r[1] * b2
            b2 = r[1] * b1 + r[0] * b2
            b1 = t
            t = r[0] * v1 - r[1] * v2
            v2 = r[1] * v1 + r[0] * v2
            v1 = t
        sweep += 1
    # sort by size, keeping det V = +1
    if wp.dot(b0, b0) < wp.dot(b1, b1):
        t = b0
        b0 = b1
        b1 = -t
        t = v0
        v0 = v1
        v1 = -t
    if wp.dot(b1, b1) < wp.dot(b2, b2):
        t = b1
        b1 = b2
        b2 = -t
        t = v1
        v1 = v2
        v2 = -t
        if wp.dot(b0, b0) < wp.dot(b1, b1):
            t = b0
            b0 = b1
            b1 = -t
            t = v0
            v0 = v1
            v1 = -t
    s0 = wp.length(b0)
    u0 = wp.vec3d(one, zero, zero)
    if s0 > zero:
        u0 = b0 / s0
    s1 = wp.length(b1)
    u1 = _orthogonal_to(u0)
    if s1 > wp.float64(1.0e-14) * s0 and s1 > zero:
        u1 = b1 / s1
        u1 = wp.normalize(u1 - wp.dot(u0, u1) * u0)
    u2 = wp.cross(u0, u1)
    out = SignedSVD()
    out.U = wp.matrix_from_cols(u0, u1, u2)
    out.V = wp.matrix_from_cols(v0, v1, v2)
    out.s = wp.vec3d(s0, s1, wp.dot(u2, b2))
    return out
