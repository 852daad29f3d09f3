"""Rotation of a deformation gradient by a geometric frame, F = Q U, and its derivative.

The first axis of the frame follows the first column of F, the third is orthogonal to its first two
columns, the second completes them (seed 003, section 4.1.3): Gram-Schmidt, or the QR decomposition
with a positive diagonal. It needs no iteration, unlike the polar decomposition (fem.forces.polar),
and turns exactly with rigid motions, but depends on which directions come first. With B the frame
of two edges at rest, qr_rotation(F B) B^T follows those edges, as the seed does, instead of x and
y.

det Q = +1 always: the third column of F has no say, so an inverted cell is not reflected.
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

import warp as wp

FRAME_DEGENERATE = wp.constant(wp.float64(1.0e-12))
"""Lengths below this part of F's largest entry give no direction: rounding has destroyed it. The
frame is then completed from what is left of F, or from the axes."""

FRAME_FLOOR = wp.constant(wp.float64(1.0e-6))
"""Smallest length, relative to F's largest entry, that the derivative divides by; the frame spins
ever faster as a column vanishes, and without the floor one collapsed cell overflows a gradient."""


@wp.func
def _column(F: wp.mat33d, j: int) -> wp.vec3d:
    return wp.vec3d(F[0, j], F[1, j], F[2, j])


@wp.func
def _size(F: wp.mat33d) -> wp.float64:
    """Largest absolute entry; its square may overflow where F is still fine."""
    size = wp.float64(0.0)
    for i in range(3):
        for j in range(3):
            size = wp.max(size, wp.abs(F[i, j]))
    return size


@wp.func
def _rejection(v: wp.vec3d, unit: wp.vec3d) -> wp.vec3d:
    """The part of v orthogonal to a unit vector; twice, because once leaves a rounding error."""
    w = v - wp.dot(unit, v) * unit
    return w - wp.dot(unit, w) * unit


@wp.func
def _axis_beside(unit: wp.vec3d, axis: int) -> wp.vec3d:
    """A unit vector orthogonal to `unit`, near the given axis or else near the next one."""
    e = wp.vec3d()
    e[axis] = wp.float64(1.0)
    if wp.abs(unit[axis]) > wp.float64(0.9):
        e = wp.vec3d()
        e[(axis + 1) % 3] = wp.float64(1.0)
    return wp.normalize(_rejection(e, unit))


@wp.func
def _first_axis(a: wp.vec3d, b: wp.vec3d, c: wp.vec3d) -> wp.vec3d:
    """Direction of a; where a vanishes, what completes b and c to a right-handed basis."""
    if wp.length(a) > FRAME_DEGENERATE:
        return wp.normalize(a)
    across = wp.cross(b, c)
    if wp.length(across) > FRAME_DEGENERATE:
        return wp.normalize(across)
    longer = b
    if wp.length(c) > wp.length(b):
        longer = c
    return _axis_beside(wp.normalize(longer), 0)


@wp.func
def _second_axis(q1: wp.vec3d, b: wp.vec3d, c: wp.vec3d) -> wp.vec3d:
    """Direction of b beside q1; where there is none, of c x q1, so that c still has its say."""
    w = _rejection(b, q1)
    if wp.length(w) > FRAME_DEGENERATE:
        return wp.normalize(_rejection(wp.normalize(w), q1))
    w = wp.cross(_rejection(c, q1), q1)
    if wp.length(w) > FRAME_DEGENERATE:
        return wp.normalize(_rejection(wp.normalize(w), q1))
    return _axis_beside(q1, 1)


@wp.func
def qr_rotation(F: wp.mat33d) -> wp.mat33d:
    """Q of F = Q U with U upper triangular, U[0, 0] and U[1, 1] >= 0, det Q = +1; I for F = 0."""
    Q = wp.identity(n=3, dtype=wp.float64)
    size = _size(F)
    if size > wp.float64(0.0):
        a = _column(F, 0) / size
        b = _column(F, 1) / size
        c = _column(F, 2) / size
        q1 = _first_axis(a, b, c)
        q2 = _second_axis(q1, b, c)
        Q = wp.matrix_from_cols(q1, q2, wp.cross(q1, q2))
    return Q


@wp.func
def _triangle(Q: wp.mat33d, F: wp.mat33d) -> wp.vec3d:
    """U[0, 0], U[0, 1], U[1, 1] of U = Q^T F, the diagonal kept away from zero."""
    floor = FRAME_FLOOR * _size(F)
    if floor == wp.float64(0.0):
        floor = wp.float64(1.0)  # F = 0 has no frame to differentiate: anything finite
    q1 = _column(Q, 0)
    b = _column(F, 1)
    return wp.vec3d(
        wp.max(wp.dot(q1, _column(F, 0)), floor),
        wp.dot(q1, b),
        wp.max(wp.dot(_column(Q, 1), b), floor),
    )


@wp.func
def qr_rotation_derivative(Q: wp.mat33d, F: wp.mat33d, dF: wp.mat33d) -> wp.mat33d:
    """Change dQ = Q W of the frame by dF; W is skew and equals Q^T dF U^{-1} below the diagonal.

    From dF = dQ U + Q dU: there dU U^{-1}, upper triangular, has nothing to add.
    """
    u = _triangle(Q, F)
    A = wp.transpose(Q) * dF
    w10 = A[1, 0] / u[0]
    w20 = A[2, 0] / u[0]
    w21 = (A[2, 1] - w20 * u[1]) / u[2]
    return Q * wp.skew(wp.vec3d(w21, -w20, w10))


@wp.func
def qr_rotation_adjoint(Q: wp.mat33d, F: wp.mat33d, Q_bar: wp.mat33d) -> wp.mat33d:
    """F_bar with <F_bar, dF> = <Q_bar, dQ(dF)>: the transpose of `qr_rotation_derivative`."""
    u = _triangle(Q, F)
    B = wp.transpose(Q) * Q_bar
    w10 = B[1, 0] - B[0, 1]
    w20 = B[2, 0] - B[0, 2]
    w21 = B[2, 1] - B[1, 2]
    A = wp.mat33d()
    A[1, 0] = w10 / u[0]
    A[2, 0] = (w20 - w21 * u[1] / u[2]) / u[0]
    A[2, 1] = w21 / u[2]
    return Q * A
