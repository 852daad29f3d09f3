"""What the kernels of a law do once a cell for its mean dilatation (fem.laws.dilatation).

With Jbar = sum_q w_q det F_q / V of the cell, P = U'(Jbar) goes to the last column of the cell's
parameters, where the functions of a point find it. The rest is the cell's own:

    energy  V (U(Jbar) - P Jbar),
    tangent V U''(Jbar) b b^T,   b_a = d Jbar / d x_a = (1/V) sum_q w_q cof(F_q) grad N_a,
    change  dP cof(F_q) at every point, dP = U''(Jbar) dJbar + its change by the parameters.

A law without a mean dilatation gets functions that do nothing.
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false, reportOptionalCall=false

from dataclasses import dataclass
from typing import Any

import warp as wp

from pliant.fem.cutting.quadrature_points import (
    QuadratureData,
    add_stress,
    clear_forces,
    deformation_at,
    gradient_at,
    lower_block,
)
from pliant.fem.laws.dilatation import RANGE


@wp.func
def cofactor(F: wp.mat33d) -> wp.mat33d:
    """d det F / d F."""
    r0 = wp.vec3d(F[0, 0], F[0, 1], F[0, 2])
    r1 = wp.vec3d(F[1, 0], F[1, 1], F[1, 2])
    r2 = wp.vec3d(F[2, 0], F[2, 1], F[2, 2])
    return wp.matrix_from_rows(wp.cross(r1, r2), wp.cross(r2, r0), wp.cross(r0, r1))


@wp.func
def _levelled(J: wp.float64) -> wp.vec3d:
    """z(J) and its first two slopes."""
    one = wp.float64(1.0)
    x = wp.clamp((J - one) * wp.static(wp.float64(1.0 / RANGE)), -one, one)
    x2 = x * x
    x4 = x2 * x2
    rest = one - x4
    z = (
        wp.static(wp.float64(RANGE))
        * x
        * (one + x4 * (x4 * wp.static(wp.float64(1.0 / 9.0)) - wp.float64(0.4)))
    )
    return wp.vec3d(z, rest * rest, wp.static(wp.float64(-8.0 / RANGE)) * x * x2 * rest)


@wp.func
def volume_energy(J: wp.float64, a: wp.vec3d) -> wp.float64:
    """U(J) of the slopes a = (lambda, D3, D4)."""
    z = _levelled(J)[0]
    return z * z * (a[0] / wp.float64(2.0) + z * (a[1] / wp.float64(6.0)
                                                  + z * a[2] / wp.float64(24.0)))  # fmt: skip


@wp.func
def volume_slope(J: wp.float64, a: wp.vec3d) -> wp.float64:
    """U'(J), linear in a."""
    l = _levelled(J)
    z = l[0]
    return l[1] * z * (a[0] + z * (a[1] * wp.float64(0.5) + z * a[2] * wp.float64(1.0 / 6.0)))


@wp.func
def volume_slope_weights(J: wp.float64) -> wp.vec3d:
    """d U'(J) / d a."""
    l = _levelled(J)
    z = l[0]
    return l[1] * z * wp.vec3d(wp.float64(1.0), z / wp.float64(2.0), z * z / wp.float64(6.0))


@wp.func
def volume_curvature(J: wp.float64, a: wp.vec3d) -> wp.float64:
    """U''(J)."""
    half = wp.float64(0.5)
    l = _levelled(J)
    z = l[0]
    first = z * (a[0] + z * (a[1] * half + z * a[2] / wp.float64(6.0)))
    return l[1] * l[1] * (a[0] + z * (a[1] + z * a[2] * half)) + l[2] * first


@wp.func
def _mean(total: wp.float64, volume: wp.float64) -> wp.float64:
    """Jbar from sum_q w_q J_q; one where a cell has no volume."""
    if volume == wp.float64(0.0):
        return wp.float64(1.0)
    return total / volume


@wp.func
def mean_volume(d: QuadratureData, c: int, u: wp.array(dtype=wp.vec3d)) -> wp.vec2d:
    """Jbar of cell c and its rest volume V."""
    r = d.row[c]
    total = wp.float64(0.0)
    volume = wp.float64(0.0)
    for q in range(d.points):
        w = d.weight[r, q]
        if w != wp.float64(0.0):
            total += w * wp.determinant(deformation_at(d, c, q, u))
            volume += w
    return wp.vec2d(_mean(total, volume), volume)


@wp.func
def collect(
    d: QuadratureData,
    c: int,
    q: int,
    w: wp.float64,
    F: wp.mat33d,
    by_corner: wp.array2d(dtype=wp.vec4d),
) -> wp.vec2d:
    """by_corner[c, a] += w cof(F) grad N_a; returns (w J, w)."""
    K = cofactor(F)
    add_stress(d, c, q, w * K, by_corner)
    return w * wp.vec2d(F[0, 0] * K[0, 0] + F[0, 1] * K[0, 1] + F[0, 2] * K[0, 2],
                        wp.float64(1.0))  # fmt: skip


@wp.func
def mean_volume_change(
    d: QuadratureData, c: int, u: wp.array(dtype=wp.vec3d), d_u: wp.array(dtype=wp.vec3d)
) -> wp.vec3d:
    """Jbar, V, and V times the change of Jbar by d_u."""
    r = d.row[c]
    total = wp.float64(0.0)
    volume = wp.float64(0.0)
    change = wp.float64(0.0)
    for q in range(d.points):
        w = d.weight[r, q]
        if w != wp.float64(0.0):
            F = deformation_at(d, c, q, u)
            K = cofactor(F)
            total += w * (F[0, 0] * K[0, 0] + F[0, 1] * K[0, 1] + F[0, 2] * K[0, 2])
            change += w * wp.ddot(K, gradient_at(d, c, q, d_u))
            volume += w
    return wp.vec3d(_mean(total, volume), volume, change)


@dataclass(frozen=True)
class MeanParts:
    """Functions of a cell, for kernels. sums: (sum_q w_q J_q, V).

    no_pressure(p, c): P = 0; begin(d, c, p, b): V b = 0 as well; gather(d, c, q, w, F, b): a
    point's share of the sums and of V b; energy(p, c, sums) and add_forces(d, c, p, sums, b, out)
    of the cell's own part.
    settle(d, c, u, p, b): the sums, V b and P in one pass; add_tangent(...) of the cell.
    change(d, c, u, d_u, p, d_p, with_p): sets P, returns dP; add_change(F, dP, stress's change).
    pull(d, c, u, y, factor, out): by U's slopes.
    """

    no_pressure: Any
    begin: Any
    gather: Any
    energy: Any
    add_forces: Any
    settle: Any
    add_tangent: Any
    change: Any
    add_change: Any
    pull: Any


def mean_parts(averaged: bool, columns: int, name: str) -> MeanParts:
    """The functions of a law whose table has this many columns: the last four are a and P."""
    return _averaged(columns, name) if averaged else _POINTWISE


def _averaged(columns: int, name: str) -> MeanParts:
    first, last = columns - 4, columns - 1

    @wp.func(module=name)
    def slopes(p: wp.array2d(dtype=wp.float64), c: wp.int32) -> wp.vec3d:
        return wp.vec3d(p[c, first], p[c, first + 1], p[c, first + 2])

    @wp.func(module=name)
    def no_pressure(p: wp.array2d(dtype=wp.float64), c: wp.int32):
        p[c, last] = wp.float64(0.0)

    @wp.func(module=name)
    def begin(
        d: QuadratureData,
        c: wp.int32,
        p: wp.array2d(dtype=wp.float64),
        b: wp.array2d(dtype=wp.vec4d),
    ):
        p[c, last] = wp.float64(0.0)
        clear_forces(d, c, b)

    @wp.func(module=name)
    def energy(p: wp.array2d(dtype=wp.float64), c: wp.int32, sums: wp.vec2d) -> wp.float64:
        return sums[1] * volume_energy(_mean(sums[0], sums[1]), slopes(p, c))

    @wp.func(module=name)
    def add_forces(
        d: QuadratureData,
        c: wp.int32,
        p: wp.array2d(dtype=wp.float64),
        sums: wp.vec2d,
        b: wp.array2d(dtype=wp.vec4d),
        out: wp.array2d(dtype=wp.vec4d),
    ):
        pressure = volume_slope(_mean(sums[0], sums[1]), slopes(p, c))
        for a in range(d.k):
            out[c, a] = out[c, a] + pressure * b[c, a]

    @wp.func(module=name)
    def settle(
        d: QuadratureData,
        c: wp.int32,
        u: wp.array(dtype=wp.vec3d),
        p: wp.array2d(dtype=wp.float64),
        b: wp.array2d(dtype=wp.vec4d),
    ) -> wp.vec2d:
        r = d.row[c]
        clear_forces(d, c, b)
        sums = wp.vec2d()
        for q in range(d.points):
            w = d.weight[r, q]
            if w != wp.float64(0.0):
                sums += collect(d, c, q, w, deformation_at(d, c, q, u), b)
        p[c, last] = volume_slope(_mean(sums[0], sums[1]), slopes(p, c))
        return sums

    @wp.func(module=name)
    def add_mean_tangent(
        d: QuadratureData,
        c: wp.int32,
        p: wp.array2d(dtype=wp.float64),
        sums: wp.vec2d,
        factor: wp.float64,
        clamped: wp.int32,
        b: wp.array2d(dtype=wp.vec4d),
        blocks: wp.array2d(dtype=wp.mat33d),
    ):
        """blocks[c, :] += factor V U'' b b^T; clamped = 1: nothing where U'' is negative."""
        stiff = factor * volume_curvature(_mean(sums[0], sums[1]), slopes(p, c))
        if sums[1] != wp.float64(0.0) and (clamped == 0 or stiff > wp.float64(0.0)):
            scale = stiff / sums[1]
            for i in range(d.k):
                x = b[c, i]
                by = scale * wp.vec3d(x[0], x[1], x[2])
                for j in range(i + 1):
                    y = b[c, j]
                    at = lower_block(i, j)
                    blocks[c, at] = blocks[c, at] + wp.outer(by, wp.vec3d(y[0], y[1], y[2]))

    @wp.func(module=name)
    def change(
        d: QuadratureData,
        c: wp.int32,
        u: wp.array(dtype=wp.vec3d),
        d_u: wp.array(dtype=wp.vec3d),
        p: wp.array2d(dtype=wp.float64),
        d_p: wp.array2d(dtype=wp.float64),
        with_p: wp.int32,
    ) -> wp.float64:
        found = mean_volume_change(d, c, u, d_u)
        J = found[0]
        p[c, last] = volume_slope(J, slopes(p, c))
        out = wp.float64(0.0)
        if found[1] != wp.float64(0.0):
            out = volume_curvature(J, slopes(p, c)) * found[2] / found[1]
        if with_p == 1:
            out += wp.dot(volume_slope_weights(J), slopes(d_p, c))
        return out

    @wp.func(module=name)
    def add_change(F: wp.mat33d, d_pressure: wp.float64, dP: wp.mat33d) -> wp.mat33d:
        return dP + d_pressure * cofactor(F)

    @wp.func(module=name)
    def pull(
        d: QuadratureData,
        c: wp.int32,
        u: wp.array(dtype=wp.vec3d),
        y: wp.array(dtype=wp.vec3d),
        factor: wp.float64,
        out: wp.array2d(dtype=wp.float64),
    ):
        found = mean_volume_change(d, c, u, y)
        by = factor * found[2] * volume_slope_weights(found[0])
        for j in range(3):
            out[c, first + j] = out[c, first + j] + by[j]

    return MeanParts(
        no_pressure, begin, collect, energy, add_forces, settle, add_mean_tangent, change,
        add_change, pull,
    )  # fmt: skip


@wp.func
def _nothing(p: wp.array2d(dtype=wp.float64), c: wp.int32):
    pass


@wp.func
def _no_begin(
    d: QuadratureData,
    c: wp.int32,
    p: wp.array2d(dtype=wp.float64),
    b: wp.array2d(dtype=wp.vec4d),
):
    pass


@wp.func
def _no_gather(
    d: QuadratureData,
    c: int,
    q: int,
    w: wp.float64,
    F: wp.mat33d,
    by_corner: wp.array2d(dtype=wp.vec4d),
) -> wp.vec2d:
    return wp.vec2d()


@wp.func
def _no_energy(p: wp.array2d(dtype=wp.float64), c: wp.int32, sums: wp.vec2d) -> wp.float64:
    return wp.float64(0.0)


@wp.func
def _no_forces(
    d: QuadratureData,
    c: wp.int32,
    p: wp.array2d(dtype=wp.float64),
    sums: wp.vec2d,
    b: wp.array2d(dtype=wp.vec4d),
    out: wp.array2d(dtype=wp.vec4d),
):
    pass


@wp.func
def _no_settle(
    d: QuadratureData,
    c: wp.int32,
    u: wp.array(dtype=wp.vec3d),
    p: wp.array2d(dtype=wp.float64),
    b: wp.array2d(dtype=wp.vec4d),
) -> wp.vec2d:
    return wp.vec2d()


@wp.func
def _no_tangent(
    d: QuadratureData,
    c: wp.int32,
    p: wp.array2d(dtype=wp.float64),
    sums: wp.vec2d,
    factor: wp.float64,
    clamped: wp.int32,
    b: wp.array2d(dtype=wp.vec4d),
    blocks: wp.array2d(dtype=wp.mat33d),
):
    pass


@wp.func
def _no_change(
    d: QuadratureData,
    c: wp.int32,
    u: wp.array(dtype=wp.vec3d),
    d_u: wp.array(dtype=wp.vec3d),
    p: wp.array2d(dtype=wp.float64),
    d_p: wp.array2d(dtype=wp.float64),
    with_p: wp.int32,
) -> wp.float64:
    return wp.float64(0.0)


@wp.func
def _unchanged(F: wp.mat33d, d_pressure: wp.float64, dP: wp.mat33d) -> wp.mat33d:
    return dP


@wp.func
def _no_pull(
    d: QuadratureData,
    c: wp.int32,
    u: wp.array(dtype=wp.vec3d),
    y: wp.array(dtype=wp.vec3d),
    factor: wp.float64,
    out: wp.array2d(dtype=wp.float64),
):
    pass


_POINTWISE = MeanParts(
    _nothing, _no_begin, _no_gather, _no_energy, _no_forces, _no_settle, _no_tangent, _no_change,
    _unchanged, _no_pull,
)  # fmt: skip
