"""Kernels over cells and their quadrature points, one set per law.

They are made inside a function because the law's own functions differ; a set is one Warp module and
is compiled once. Cell kernels write to their own cell only.
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false, reportOptionalCall=false

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import warp as wp

from pliant.fem.invariant_tangent import invariant_tangent
from pliant.fem.law_points import general_parts, isotropic_parts
from pliant.fem.laws.compiled import law_functions
from pliant.fem.laws.law import Energy
from pliant.fem.quadrature_points import QuadratureData, gradient_at, lower_block


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
        parts = isotropic_parts(functions, name)
    else:
        parts = general_parts(functions, name)
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
        exact = invariant_tangent(functions, name)
    return LawKernels(forces, energies, tangent, change, pull, points, exact)
