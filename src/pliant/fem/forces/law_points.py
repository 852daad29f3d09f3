"""What a law's kernels call at one point: energy, stress, tangent, and changes by F and parameters.

Two ways to the same functions: through the stretches for isotropic energies, where the tangent's
nine eigenvalues are known and clamped one by one (fem.forces.point_tangent), through the nine
entries of F for all others, whose 9 x 9 tangent is clamped by Jacobi's method.
"""

# ruff: noqa: UP018 (int(0) is a variable in Warp's kernel language, 0 a constant)
# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false, reportOptionalCall=false

import warp as wp

from pliant.core.point_products import PointMatrix
from pliant.fem.forces.mean_dilatation import cofactor, volume_slope
from pliant.fem.forces.point_tangent import (
    CLAMP,
    CLOSE,
    PointTangent,
    completed,
    quotient_minus,
    quotient_plus,
    stress_change,
    tangent_matrix,
)
from pliant.fem.forces.svd import signed_svd
from pliant.fem.laws.compiled import mat99d


def isotropic_parts(functions, name: str):
    """(energy, stress, tangent, change, pull)."""
    energy, slopes, curvatures = functions.energy, functions.slopes, functions.curvatures
    parameter_change, parameter_pull = functions.change, functions.pull

    @wp.func(module=name)
    def minus(
        g: wp.vec3d,
        s: wp.vec3d,
        H0: wp.mat33d,
        i: int,
        j: int,
        p: wp.array2d(dtype=wp.float64),
        c: wp.int32,
        project: wp.int32,
    ) -> wp.float64:
        half = wp.float64(0.5)
        delta = s[i] - s[j]
        if wp.abs(delta) > CLOSE:
            return quotient_minus(g[i], g[j], s[i], s[j])
        if project == 1:  # a search direction only: the value at the end of the path is enough
            return half * (H0[i, i] + H0[j, j]) - H0[i, j]
        middle = half * (s[i] + s[j])
        total = wp.float64(0.0)
        for k in range(2):
            share = half * (wp.float64(1.0) + wp.float64(2 * k - 1) / wp.sqrt(wp.float64(3.0)))
            at = wp.vec3d(s[0], s[1], s[2])
            at[i] = middle + half * share * delta
            at[j] = middle - half * share * delta
            H = curvatures(at, p, c)
            total += half * half * (H[i, i] + H[j, j] - wp.float64(2.0) * H[i, j])
        return total

    @wp.func(module=name)
    def point_at(
        F: wp.mat33d, p: wp.array2d(dtype=wp.float64), c: wp.int32, project: wp.int32
    ) -> PointTangent:
        d = signed_svd(F)
        g = slopes(d.s, p, c)
        H = curvatures(d.s, p, c)
        m = wp.vec3d(
            minus(g, d.s, H, 0, 1, p, c, project),
            minus(g, d.s, H, 1, 2, p, c, project),
            minus(g, d.s, H, 2, 0, p, c, project),
        )
        q = wp.vec3d(
            quotient_plus(g[0], g[1], d.s[0], d.s[1]),
            quotient_plus(g[1], g[2], d.s[1], d.s[2]),
            quotient_plus(g[2], g[0], d.s[2], d.s[0]),
        )
        return completed(d.U, d.V, H, m, q, project)

    @wp.func(module=name)
    def matrix_at(
        F: wp.mat33d,
        p: wp.array2d(dtype=wp.float64),
        c: wp.int32,
        w: wp.float64,
        project: wp.int32,
    ) -> PointMatrix:
        t = point_at(F, p, c, project)
        return tangent_matrix(t, w)

    @wp.func(module=name)
    def change_at(
        F: wp.mat33d,
        p: wp.array2d(dtype=wp.float64),
        c: wp.int32,
        dF: wp.mat33d,
        d_p: wp.array2d(dtype=wp.float64),
        with_p: wp.int32,
    ) -> wp.mat33d:
        t = point_at(F, p, c, 0)
        dP = stress_change(t, dF)
        if with_p == 1:
            d = signed_svd(F)
            dP += d.U * wp.diag(parameter_change(d.s, p, c, d_p)) * wp.transpose(d.V)
        return dP

    @wp.func(module=name)
    def pull_at(
        F: wp.mat33d,
        p: wp.array2d(dtype=wp.float64),
        c: wp.int32,
        Y: wp.mat33d,
        weight: wp.float64,
        out: wp.array2d(dtype=wp.float64),
    ):
        d = signed_svd(F)
        Z = wp.transpose(d.U) * Y * d.V
        parameter_pull(d.s, p, c, wp.vec3d(Z[0, 0], Z[1, 1], Z[2, 2]), weight, out)

    if functions.stress is not None:
        energy_at, stress_at = functions.whole_energy, functions.stress
        if functions.averaged:
            stress_at = _with_pressure(functions, name)
    else:

        @wp.func(module=name)
        def energy_at(F: wp.mat33d, p: wp.array2d(dtype=wp.float64), c: wp.int32) -> wp.float64:
            d = signed_svd(F)
            return energy(d.s, p, c)

        @wp.func(module=name)
        def stress_at(F: wp.mat33d, p: wp.array2d(dtype=wp.float64), c: wp.int32) -> wp.mat33d:
            d = signed_svd(F)
            return d.U * wp.diag(slopes(d.s, p, c)) * wp.transpose(d.V)

    return energy_at, stress_at, matrix_at, change_at, pull_at


def _with_pressure(functions, name: str):
    """The stress of psi - U(J) + P J from that of psi."""
    stress, first = functions.stress, functions.parameter_count - 4

    @wp.func(module=name)
    def stress_at(F: wp.mat33d, p: wp.array2d(dtype=wp.float64), c: wp.int32) -> wp.mat33d:
        a = wp.vec3d(p[c, first], p[c, first + 1], p[c, first + 2])
        K = cofactor(F)
        J = F[0, 0] * K[0, 0] + F[0, 1] * K[0, 1] + F[0, 2] * K[0, 2]
        return stress(F, p, c) + (p[c, first + 3] - volume_slope(J, a)) * K

    return stress_at


@wp.func
def clamped9(A: mat99d) -> mat99d:
    """Symmetric A with its eigenvalues raised to CLAMP times the largest (cyclic Jacobi)."""
    B = mat99d()
    Q = mat99d()
    for i in range(9):
        for j in range(9):
            B[i, j] = A[i, j]
        Q[i, i] = wp.float64(1.0)
    sweep = int(0)
    off = wp.float64(1.0)
    while sweep < 12 and off > wp.float64(0.0):
        off = wp.float64(0.0)
        size = wp.float64(0.0)
        n = int(9)
        for i in range(n):
            size = wp.max(size, wp.abs(B[i, i]))
        for i in range(n):
            for j in range(i):
                if wp.abs(B[i, j]) > wp.float64(1.0e-14) * size:
                    off = wp.float64(1.0)
                    theta = (B[i, i] - B[j, j]) / (wp.float64(2.0) * B[j, i])
                    t = wp.float64(1.0) / (wp.abs(theta) + wp.sqrt(theta * theta + wp.float64(1.0)))
                    if theta < wp.float64(0.0):
                        t = -t
                    co = wp.float64(1.0) / wp.sqrt(t * t + wp.float64(1.0))
                    si = t * co
                    for m in range(n):
                        x = B[m, j]
                        y = B[m, i]
                        B[m, j] = co * x - si * y
                        B[m, i] = si * x + co * y
                    for m in range(n):
                        x = B[j, m]
                        y = B[i, m]
                        B[j, m] = co * x - si * y
                        B[i, m] = si * x + co * y
                        x = Q[m, j]
                        y = Q[m, i]
                        Q[m, j] = co * x - si * y
                        Q[m, i] = si * x + co * y
        sweep += 1
    largest = wp.float64(0.0)
    for i in range(9):
        largest = wp.max(largest, wp.abs(B[i, i]))
    out = mat99d()
    k = int(9)
    for m in range(k):
        value = wp.max(B[m, m], CLAMP * largest)
        for i in range(k):
            for j in range(k):
                out[i, j] = out[i, j] + value * Q[i, m] * Q[j, m]
    return out


def general_parts(functions, name: str):
    """The same as `isotropic_parts` for energies of the nine entries of F."""
    slopes, curvatures = functions.slopes, functions.curvatures
    parameter_change, parameter_pull = functions.change, functions.pull

    @wp.func(module=name)
    def matrix_at(
        F: wp.mat33d,
        p: wp.array2d(dtype=wp.float64),
        c: wp.int32,
        w: wp.float64,
        project: wp.int32,
    ) -> PointMatrix:
        A = curvatures(F, p, c)
        if project == 1:
            A = clamped9(A)
        out = PointMatrix()
        n = int(3)
        for m in range(9):
            for k in range(n):
                for l in range(n):
                    out[m, 4 * l + k] = w * A[m, 3 * k + l]
        return out

    @wp.func(module=name)
    def change_at(
        F: wp.mat33d,
        p: wp.array2d(dtype=wp.float64),
        c: wp.int32,
        dF: wp.mat33d,
        d_p: wp.array2d(dtype=wp.float64),
        with_p: wp.int32,
    ) -> wp.mat33d:
        A = curvatures(F, p, c)
        dP = wp.mat33d()
        n = int(3)
        for i in range(n):
            for j in range(n):
                total = wp.float64(0.0)
                for k in range(n):
                    for l in range(n):
                        total += A[3 * i + j, 3 * k + l] * dF[k, l]
                dP[i, j] = total
        if with_p == 1:
            dP += parameter_change(F, p, c, d_p)
        return dP

    @wp.func(module=name)
    def pull_at(
        F: wp.mat33d,
        p: wp.array2d(dtype=wp.float64),
        c: wp.int32,
        Y: wp.mat33d,
        weight: wp.float64,
        out: wp.array2d(dtype=wp.float64),
    ):
        parameter_pull(F, p, c, Y, weight, out)

    return functions.energy, slopes, matrix_at, change_at, pull_at
