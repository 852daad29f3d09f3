"""Kernels over cells and their quadrature points, one set per law.

They are made inside a function because the law's own functions differ; a set is one Warp module and
is compiled once. Cell kernels write to their own cell only.
"""

# ruff: noqa: UP018 (int(0) is a variable in Warp's kernel language, 0 a constant)
# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false, reportOptionalCall=false

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import warp as wp

from pliant.fem.laws.compiled import law_functions, mat99d
from pliant.fem.laws.law import Energy
from pliant.fem.point_tangent import (
    CLAMP,
    CLOSE,
    PointTangent,
    Rows,
    completed,
    quotient_minus,
    quotient_plus,
    stress_change,
    tangent_rows,
)
from pliant.fem.svd import signed_svd


@wp.struct
class QuadratureData:
    """Cells with the points they are integrated at.

    weight: (rows, points) [m^dim]; gradient: (rows, points * k) of shape functions [1/m]; row: of
    each cell. Full grid cells share a row.
    """

    k: wp.int32
    points: wp.int32
    cells: wp.array2d(dtype=wp.int32)
    row: wp.array(dtype=wp.int32)
    weight: wp.array2d(dtype=wp.float64)
    gradient: wp.array2d(dtype=wp.vec3d)
    incident_start: wp.array(dtype=wp.int32)
    incident: wp.array(dtype=wp.int32)


@wp.func
def gradient_at(
    d: QuadratureData, c: int, q: int, u: wp.array(dtype=wp.vec3d)
) -> wp.mat33d:
    """sum_a u_a (x) grad N_a at point q of cell c."""
    G = wp.mat33d()
    r = d.row[c]
    for a in range(d.k):
        G += wp.outer(u[d.cells[c, a]], d.gradient[r, q * d.k + a])
    return G


@wp.func
def lower_block(a: int, b: int) -> int:
    """Place of block (a, b), b <= a, in a cell's lower triangle."""
    return a * (a + 1) / 2 + b


@dataclass(frozen=True)
class LawKernels:
    """Launchable kernels of one law; arguments after `first` are noted at each."""

    forces: Any
    energies: Any
    tangent: Any
    change: Any
    pull: Any
    points: Any
    exact: Any | None = None


@lru_cache(maxsize=256)
def law_kernels(energy: Energy, floor: float = 0.0) -> LawKernels:
    """The kernels of an energy; floor > 0: continued below that stretch."""
    functions = law_functions(energy, floor)
    name = functions.module
    if functions.isotropic:
        parts = _isotropic_parts(functions, name)
    else:
        parts = _general_parts(functions, name)
    energy_at, stress_at, rows_at, change_at, pull_at, Point, point_at = parts

    @wp.kernel(module=name)
    def forces(
        first: wp.int32,
        d: QuadratureData,
        u: wp.array(dtype=wp.vec3d),
        p: wp.array2d(dtype=wp.float64),
        out: wp.array2d(dtype=wp.vec3d),
    ):
        c = first + wp.tid()
        r = d.row[c]
        unit = wp.identity(n=3, dtype=wp.float64)
        for a in range(d.k):
            out[c, a] = wp.vec3d()
        for q in range(d.points):
            w = d.weight[r, q]
            if w != wp.float64(0.0):
                P = stress_at(unit + gradient_at(d, c, q, u), p, c)
                for a in range(d.k):
                    out[c, a] = out[c, a] + w * (P * d.gradient[r, q * d.k + a])

    @wp.kernel(module=name)
    def energies(
        first: wp.int32,
        d: QuadratureData,
        u: wp.array(dtype=wp.vec3d),
        p: wp.array2d(dtype=wp.float64),
        out: wp.array(dtype=wp.float64),
    ):
        c = first + wp.tid()
        r = d.row[c]
        unit = wp.identity(n=3, dtype=wp.float64)
        total = wp.float64(0.0)
        for q in range(d.points):
            w = d.weight[r, q]
            if w != wp.float64(0.0):
                total += w * energy_at(unit + gradient_at(d, c, q, u), p, c)
        out[c] = total

    @wp.kernel(module=name)
    def tangent(
        first: wp.int32,
        d: QuadratureData,
        u: wp.array(dtype=wp.vec3d),
        p: wp.array2d(dtype=wp.float64),
        factor: wp.float64,
        project: wp.int32,
        blocks: wp.array2d(dtype=wp.mat33d),
    ):
        """blocks[c, :] = factor * lower triangle of the cell's tangent."""
        c = first + wp.tid()
        r = d.row[c]
        unit = wp.identity(n=3, dtype=wp.float64)
        for j in range(lower_block(d.k, 0)):
            blocks[c, j] = wp.mat33d()
        for q in range(d.points):
            w = factor * d.weight[r, q]
            if w != wp.float64(0.0):
                t = point_at(unit + gradient_at(d, c, q, u), p, c, project)
                for a in range(d.k):
                    R = rows_at(t, w * d.gradient[r, q * d.k + a])
                    for b in range(a + 1):
                        g = d.gradient[r, q * d.k + b]
                        j = lower_block(a, b)
                        blocks[c, j] = blocks[c, j] + wp.matrix_from_rows(
                            R.r0 * g, R.r1 * g, R.r2 * g
                        )

    @wp.kernel(module=name)
    def change(
        first: wp.int32,
        d: QuadratureData,
        u: wp.array(dtype=wp.vec3d),
        p: wp.array2d(dtype=wp.float64),
        d_u: wp.array(dtype=wp.vec3d),
        d_p: wp.array2d(dtype=wp.float64),
        with_p: wp.int32,
        out: wp.array2d(dtype=wp.vec3d),
    ):
        """out[c, a] = change of the cell's forces by changes of u and (with_p = 1) of p."""
        c = first + wp.tid()
        r = d.row[c]
        unit = wp.identity(n=3, dtype=wp.float64)
        for a in range(d.k):
            out[c, a] = wp.vec3d()
        for q in range(d.points):
            w = d.weight[r, q]
            if w != wp.float64(0.0):
                F = unit + gradient_at(d, c, q, u)
                dF = gradient_at(d, c, q, d_u)
                dP = change_at(F, p, c, dF, d_p, with_p)
                for a in range(d.k):
                    out[c, a] = out[c, a] + w * (dP * d.gradient[r, q * d.k + a])

    @wp.kernel(module=name)
    def pull(
        first: wp.int32,
        d: QuadratureData,
        u: wp.array(dtype=wp.vec3d),
        p: wp.array2d(dtype=wp.float64),
        y: wp.array(dtype=wp.vec3d),
        factor: wp.float64,
        out: wp.array2d(dtype=wp.float64),
    ):
        """out[c, j] += factor * sum over the cell of y . d force / d p_j."""
        c = first + wp.tid()
        r = d.row[c]
        unit = wp.identity(n=3, dtype=wp.float64)
        for q in range(d.points):
            w = d.weight[r, q]
            if w != wp.float64(0.0):
                F = unit + gradient_at(d, c, q, u)
                pull_at(F, p, c, gradient_at(d, c, q, y), factor * w, out)

    @wp.kernel(module=name)
    def points(
        first: wp.int32,
        F: wp.array(dtype=wp.mat33d),
        p: wp.array2d(dtype=wp.float64),
        psi: wp.array(dtype=wp.float64),
        P: wp.array(dtype=wp.mat33d),
        dF: wp.array(dtype=wp.mat33d),
        dP: wp.array(dtype=wp.mat33d),
    ):
        """Energy, stress and the stress' change at single F: for curves and checks."""
        i = first + wp.tid()
        psi[i] = energy_at(F[i], p, i)
        P[i] = stress_at(F[i], p, i)
        dP[i] = change_at(F[i], p, i, dF[i], p, 0)

    exact = None
    if functions.invariant_slopes is not None:
        exact = _invariant_tangent(functions, name)
    return LawKernels(forces, energies, tangent, change, pull, points, exact)


@wp.func
def cofactor(F: wp.mat33d) -> wp.mat33d:
    """d det F / d F."""
    r0 = wp.vec3d(F[0, 0], F[0, 1], F[0, 2])
    r1 = wp.vec3d(F[1, 0], F[1, 1], F[1, 2])
    r2 = wp.vec3d(F[2, 0], F[2, 1], F[2, 2])
    return wp.matrix_from_rows(wp.cross(r1, r2), wp.cross(r2, r0), wp.cross(r0, r1))


def _invariant_tangent(functions, name: str):
    """The exact tangent of psi(I1, I2, J): outer products, no decomposition of F.

    With f = F g, and d I1 = 2 F, d I2 = 2 (I1 F - F C), d J = cof F, the block of nodes a, b is
    sum psi_mn (dI_m g_a)(dI_n g_b)^T + 2 psi_1 (g_a . g_b) I - psi_J [F (g_a x g_b)]x
    + psi_2 (4 f_a f_b^T + 2 (I1 (g_a . g_b) - f_a . f_b) I - 2 f_b f_a^T - 2 (g_a . g_b) F F^T).
    """
    slopes, curvatures = functions.invariant_slopes, functions.invariant_curvatures
    has2, has11, has12, has1J, has22, has2J, hasJJ = functions.nonzero
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
                K = cofactor(F)
                i1 = wp.trace(C)
                i2 = wp.float64(0.5) * (i1 * i1 - wp.ddot(C, C))
                at = wp.vec3d(i1, i2, wp.ddot(F, K) / wp.float64(3.0))
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
                        T = wp.outer(qJ, K * gb)
                        if wp.static(has11 or has12 or has1J):
                            T += wp.outer(two * q1, fb)
                        if wp.static(has12 or has22 or has2J):
                            T += wp.outer(q2, D2 * gb)
                        if wp.static(has2):
                            diagonal += two * s[1] * (i1 * gg - wp.dot(fa, fb))
                            T += (two * s[1]) * (two * wp.outer(fa, fb) - wp.outer(fb, fa) - gg * B)
                        T -= s[2] * wp.skew(F * wp.cross(ga, gb))
                        j = lower_block(a, b)
                        for m in range(3):
                            T[m, m] = T[m, m] + diagonal
                        if q == 0:
                            blocks[c, j] = T
                        else:
                            blocks[c, j] = blocks[c, j] + T

    return exact


def _isotropic_parts(functions, name: str):
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
    else:

        @wp.func(module=name)
        def energy_at(
            F: wp.mat33d, p: wp.array2d(dtype=wp.float64), c: wp.int32
        ) -> wp.float64:
            d = signed_svd(F)
            return energy(d.s, p, c)

        @wp.func(module=name)
        def stress_at(
            F: wp.mat33d, p: wp.array2d(dtype=wp.float64), c: wp.int32
        ) -> wp.mat33d:
            d = signed_svd(F)
            return d.U * wp.diag(slopes(d.s, p, c)) * wp.transpose(d.V)

    return energy_at, stress_at, tangent_rows, change_at, pull_at, PointTangent, point_at


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


@wp.func
def full_rows(A: mat99d, g: wp.vec3d) -> Rows:
    """`tangent_rows` of a dense tangent, entry [3 i + j, 3 k + l]."""
    out = Rows()
    n = int(3)
    for k in range(n):
        for l in range(n):
            m = 3 * k + l
            out.r0[k, l] = g[0] * A[0, m] + g[1] * A[1, m] + g[2] * A[2, m]
            out.r1[k, l] = g[0] * A[3, m] + g[1] * A[4, m] + g[2] * A[5, m]
            out.r2[k, l] = g[0] * A[6, m] + g[1] * A[7, m] + g[2] * A[8, m]
    return out


def _general_parts(functions, name: str):
    slopes, curvatures = functions.slopes, functions.curvatures
    parameter_change, parameter_pull = functions.change, functions.pull

    @wp.func(module=name)
    def point_at(
        F: wp.mat33d, p: wp.array2d(dtype=wp.float64), c: wp.int32, project: wp.int32
    ) -> mat99d:
        A = curvatures(F, p, c)
        if project == 1:
            A = clamped9(A)
        return A

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

    return functions.energy, slopes, full_rows, change_at, pull_at, mat99d, point_at
