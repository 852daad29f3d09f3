"""The exact tangent of an energy that is written in I1, I2 and J: no decomposition of F."""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false, reportOptionalCall=false

import warp as wp

from pliant.fem.quadrature_points import QuadratureData, gradient_at, lower_block


@wp.func
def cofactor(F: wp.mat33d) -> wp.mat33d:
    """d det F / d F."""
    r0 = wp.vec3d(F[0, 0], F[0, 1], F[0, 2])
    r1 = wp.vec3d(F[1, 0], F[1, 1], F[1, 2])
    r2 = wp.vec3d(F[2, 0], F[2, 1], F[2, 2])
    return wp.matrix_from_rows(wp.cross(r1, r2), wp.cross(r2, r0), wp.cross(r0, r1))


def invariant_tangent(functions, name: str):
    """The exact tangent of psi(I1, I2, J): outer products, no decomposition of F.

    With f = F g, and d I1 = 2 F, d I2 = 2 (I1 F - F C), d J = cof F, the block of nodes a, b is
    sum psi_mn (dI_m g_a)(dI_n g_b)^T + 2 psi_1 (g_a . g_b) I - psi_J [F (g_a x g_b)]x
    + psi_2 (4 f_a f_b^T + 2 (I1 (g_a . g_b) - f_a . f_b) I - 2 f_b f_a^T - 2 (g_a . g_b) F F^T).
    """
    slopes, curvatures = functions.invariant_slopes, functions.invariant_curvatures
    has2, has11, has12, has1J, has22, has2J, hasJJ, hasJ = functions.nonzero
    mixed = has1J or has2J or hasJJ  # outer products with the cofactors
    second = has2 or has12 or has22 or has2J

    @wp.kernel(module=name)
    def exact(
        first: wp.int32,
        d: QuadratureData,
        u: wp.array(dtype=wp.vec3d),
        p: wp.array2d(dtype=wp.float64),
        factor: wp.float64,
        blocks: wp.array2d(dtype=wp.mat33d),
    ):
        c = first + wp.tid()
        r = d.row[c]
        two = wp.float64(2.0)
        unit = wp.identity(n=3, dtype=wp.float64)
        if d.weight[r, 0] == wp.float64(0.0):
            for j in range(lower_block(d.k, 0)):
                blocks[c, j] = wp.mat33d()
        for q in range(d.points):
            w = factor * d.weight[r, q]
            if d.weight[r, q] != wp.float64(0.0):
                F = unit + gradient_at(d, c, q, u)
                C = wp.transpose(F) * F
                i1 = wp.trace(C)
                i2 = wp.float64(0.5) * (i1 * i1 - wp.ddot(C, C))
                K = wp.mat33d()
                J = wp.float64(1.0)
                if wp.static(mixed or hasJ):  # else nothing depends on J
                    K = cofactor(F)
                    J = wp.ddot(F, K) / wp.float64(3.0)
                at = wp.vec3d(i1, i2, J)
                s = w * slopes(at, p, c)
                H = w * curvatures(at, p, c)
                D2 = wp.mat33d()
                B = wp.mat33d()
                if wp.static(second):
                    D2 = two * (i1 * F - F * C)
                    B = F * wp.transpose(F)
                for a in range(d.k):
                    ga = d.gradient[r, q * d.k + a]
                    fa = F * ga
                    ka = wp.vec3d()
                    if wp.static(mixed):
                        ka = K * ga
                    q1 = wp.vec3d()
                    q2 = wp.vec3d()
                    qJ = wp.vec3d()
                    ha = wp.vec3d()
                    if wp.static(second):
                        ha = D2 * ga
                    if wp.static(has11):
                        q1 += (two * H[0, 0]) * fa
                    if wp.static(has12):
                        q1 += H[0, 1] * ha
                        q2 += (two * H[0, 1]) * fa
                    if wp.static(has1J):
                        q1 += H[0, 2] * ka
                        qJ += (two * H[0, 2]) * fa
                    if wp.static(has22):
                        q2 += H[1, 1] * ha
                    if wp.static(has2J):
                        q2 += H[1, 2] * ka
                        qJ += H[1, 2] * ha
                    if wp.static(hasJJ):
                        qJ += H[2, 2] * ka
                    for b in range(a + 1):
                        gb = d.gradient[r, q * d.k + b]
                        fb = F * gb
                        gg = wp.dot(ga, gb)
                        diagonal = two * s[0] * gg
                        T = wp.mat33d()
                        if wp.static(mixed):
                            T = wp.outer(qJ, K * gb)
                        if wp.static(has11 or has12 or has1J):
                            T += wp.outer(two * q1, fb)
                        if wp.static(has12 or has22 or has2J):
                            T += wp.outer(q2, D2 * gb)
                        if wp.static(has2):
                            diagonal += two * s[1] * (i1 * gg - wp.dot(fa, fb))
                            T += (two * s[1]) * (two * wp.outer(fa, fb) - wp.outer(fb, fa) - gg * B)
                        if wp.static(hasJ):
                            T -= s[2] * wp.skew(F * wp.cross(ga, gb))
                        j = lower_block(a, b)
                        for m in range(3):
                            T[m, m] = T[m, m] + diagonal
                        if q == 0:
                            blocks[c, j] = T
                        else:
                            blocks[c, j] = blocks[c, j] + T

    return exact
