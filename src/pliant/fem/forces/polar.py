"""Rotation of a deformation gradient, F = R S, and its derivative; safe for every F.

R maximises tr(R^T F) over the proper rotations (det R = +1), so an inverted cell is turned by the
smallest stretch instead of being reflected. Regular F take Higham's Newton iteration; inverted and
degenerate ones take an eigendecomposition of F^T F.
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

import warp as wp

NEWTON_MIN_DETERMINANT = wp.constant(wp.float64(1.0e-3))
"""det(F) / (|F| / sqrt 3)^3 above which the Newton iteration is used: it needs about 9 steps at
this bound and 4 near a rotation; below it the number of steps grows without limit."""

FAR = wp.constant(wp.float64(1.0e-2))
"""Square of a Newton step above which the next one is scaled."""

NEAR = wp.constant(wp.float64(1.0e-16))
"""Square of a Newton step below which it was the last: the error is half the square of the step."""


@wp.func
def _cofactor(F: wp.mat33d) -> wp.mat33d:
    """Cofactor matrix: F^{-T} det(F), defined for singular F too."""
    r0 = wp.vec3d(F[0, 0], F[0, 1], F[0, 2])
    r1 = wp.vec3d(F[1, 0], F[1, 1], F[1, 2])
    r2 = wp.vec3d(F[2, 0], F[2, 1], F[2, 2])
    return wp.matrix_from_rows(wp.cross(r1, r2), wp.cross(r2, r0), wp.cross(r0, r1))


@wp.func
def _square_norm(F: wp.mat33d) -> wp.float64:
    return wp.ddot(F, F)


@wp.func
def _jacobi_turn(A: wp.mat33d, V: wp.mat33d, p: int, q: int) -> wp.mat33d:
    """Rotation J of the Jacobi method that zeroes A[p, q]."""
    J = wp.identity(n=3, dtype=wp.float64)
    if wp.abs(A[p, q]) > wp.float64(1.0e-300):
        theta = (A[q, q] - A[p, p]) / (wp.float64(2.0) * A[p, q])
        t = wp.float64(1.0) / (wp.abs(theta) + wp.sqrt(theta * theta + wp.float64(1.0)))
        if theta < wp.float64(0.0):
            t = -t
        c = wp.float64(1.0) / wp.sqrt(t * t + wp.float64(1.0))
        s = t * c
        J[p, p] = c
        J[q, q] = c
        J[p, q] = s
        J[q, p] = -s
    return J


@wp.func
def _any_orthogonal(a: wp.vec3d) -> wp.vec3d:
    """A unit vector orthogonal to the unit vector a."""
    b = wp.vec3d(wp.float64(1.0), wp.float64(0.0), wp.float64(0.0))
    if wp.abs(a[0]) > wp.float64(0.7):
        b = wp.vec3d(wp.float64(0.0), wp.float64(1.0), wp.float64(0.0))
    return wp.normalize(b - wp.dot(a, b) * a)


@wp.func
def _rotation_by_eigenvectors(F: wp.mat33d) -> wp.mat33d:
    scale = wp.sqrt(_square_norm(F))
    R = wp.identity(n=3, dtype=wp.float64)
    if scale > wp.float64(0.0):
        B = F / scale
        A = wp.transpose(B) * B
        V = wp.identity(n=3, dtype=wp.float64)
        for _sweep in range(8):
            J = _jacobi_turn(A, V, 0, 1)
            A = wp.transpose(J) * A * J
            V = V * J
            J = _jacobi_turn(A, V, 0, 2)
            A = wp.transpose(J) * A * J
            V = V * J
            J = _jacobi_turn(A, V, 1, 2)
            A = wp.transpose(J) * A * J
            V = V * J
        # the two largest stretches decide; the third direction follows from det = +1
        largest = 0
        smallest = 0
        for i in range(3):
            if A[i, i] > A[largest, largest]:
                largest = i
            if A[i, i] <= A[smallest, smallest]:
                smallest = i
        if largest == smallest:
            largest = 0
            smallest = 2
        middle = 3 - largest - smallest
        v1 = wp.vec3d(V[0, largest], V[1, largest], V[2, largest])
        v2 = wp.vec3d(V[0, middle], V[1, middle], V[2, middle])
        v3 = wp.cross(v1, v2)
        u1 = wp.normalize(B * v1)
        w2 = B * v2
        w2 = w2 - wp.dot(u1, w2) * u1
        u2 = v2 - wp.dot(u1, v2) * u1
        if wp.length(w2) > wp.float64(1.0e-12):
            u2 = wp.normalize(w2)
        elif wp.length(u2) > wp.float64(1.0e-3):
            u2 = wp.normalize(u2)
        else:
            u2 = _any_orthogonal(u1)
        u2 = wp.normalize(u2 - wp.dot(u1, u2) * u1)
        u3 = wp.cross(u1, u2)
        R = wp.outer(u1, v1) + wp.outer(u2, v2) + wp.outer(u3, v3)
    return R


@wp.func
def rotation(F: wp.mat33d) -> wp.mat33d:
    """R of F = R S, det R = +1, for every finite F (identity for F = 0)."""
    n2 = _square_norm(F) / wp.float64(3.0)
    det = wp.determinant(F)
    if det > NEWTON_MIN_DETERMINANT * n2 * wp.sqrt(n2):
        X = F
        change = wp.float64(1.0)
        for _i in range(20):
            C = _cofactor(X)
            d = wp.ddot(X, C) / wp.float64(3.0)  # det X
            g = wp.float64(1.0)
            if change > FAR:  # Frobenius scaling (Higham 1986) makes the first steps count
                g = wp.sqrt(wp.sqrt(_square_norm(C) / (d * d * _square_norm(X))))
            Y = wp.float64(0.5) * (g * X + C * (wp.float64(1.0) / (g * d)))
            change = _square_norm(Y - X)
            X = Y
            if change < NEAR:
                break
        return X
    return _rotation_by_eigenvectors(F)


ROTATION_STIFFNESS_FLOOR = wp.constant(wp.float64(1.0e-6))
"""Smallest eigenvalue of tr(S) I - S used in the derivative, relative to |F|. It is s_i + s_j, zero
only where R itself jumps (a cell inverted through two equal stretches); the floor keeps the
derivative finite there."""


@wp.func
def axial(W: wp.mat33d) -> wp.vec3d:
    """Vector a of the skew matrix (W - W^T) / 2 = [a]x."""
    half = wp.float64(0.5)
    return wp.vec3d(
        half * (W[2, 1] - W[1, 2]), half * (W[0, 2] - W[2, 0]), half * (W[1, 0] - W[0, 1])
    )


@wp.func
def spin_matrix(R: wp.mat33d, F: wp.mat33d) -> wp.mat33d:
    """(tr(S) I - S)^{-1}, symmetrised and kept away from singular."""
    S = wp.transpose(R) * F
    S = wp.float64(0.5) * (S + wp.transpose(S))
    T = wp.trace(S) * wp.identity(n=3, dtype=wp.float64) - S
    size = wp.sqrt(_square_norm(F)) + wp.float64(1.0e-300)
    C = _cofactor(T)
    d = wp.ddot(T, C) / wp.float64(3.0)
    floor = wp.max(ROTATION_STIFFNESS_FLOOR * size * size * size, wp.float64(1.0e-300))
    if wp.abs(d) < floor:
        if d < wp.float64(0.0):
            d = -floor
        else:
            d = floor
    return C / d


@wp.func
def rotation_derivative(R: wp.mat33d, F: wp.mat33d, dF: wp.mat33d) -> wp.mat33d:
    """dR = R [ (tr(S) I - S)^{-1} axl(2 skew(R^T dF)) ]x."""
    w = spin_matrix(R, F) * (wp.float64(2.0) * axial(wp.transpose(R) * dF))
    return R * wp.skew(w)


@wp.func
def rotation_adjoint(R: wp.mat33d, F: wp.mat33d, R_bar: wp.mat33d) -> wp.mat33d:
    """F_bar with <F_bar, dF> = <R_bar, dR(dF)>: the transpose of `rotation_derivative`."""
    # <R_bar, R [w]x> = 2 axl(R^T R_bar) . w, and w = T 2 axl(R^T dF); 2 axl(W) . a = <W, [a]x>
    a = wp.float64(2.0) * (spin_matrix(R, F) * axial(wp.transpose(R) * R_bar))
    return R * wp.skew(a)
