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

from pliant.core.point_products import PointMatrix
from pliant.fem.cutting.quadrature_points import (
    QuadratureData,
    add_stress,
    add_tangent,
    clear_blocks,
    clear_forces,
    deformation_at,
    gradient_at,
)
from pliant.fem.forces.invariant_tangent import invariant_tangent
from pliant.fem.forces.law_points import general_parts, isotropic_parts
from pliant.fem.forces.mean_dilatation import MeanParts, mean_parts
from pliant.fem.forces.viscous import viscous_stress, with_viscosity
from pliant.fem.laws.compiled import law_functions
from pliant.fem.laws.dilatation import MeanEnergy
from pliant.fem.laws.law import Energy

EXACT = wp.constant(0)
CLAMPED = wp.constant(1)
INVARIANT = wp.constant(2)
"""Ways to a point's tangent: through the stretches (or the entries of F), the same with its
eigenvalues clamped, and through I1, I2, J."""


@dataclass(frozen=True)
class LawKernels:
    """Launchable kernels of one law; arguments after `first` are noted at each.

    exact: the quicker way to the exact tangent, EXACT or INVARIANT.
    """

    forces: Any
    energies: Any
    tangent: Any
    change: Any
    pull: Any
    points: Any
    exact: int


def change_kernel(change_at: Any, mean: MeanParts, name: str) -> Any:
    """The kernel of the forces' change; change_at(F, p, c, dF, d_p, with_p) is the stress's."""
    pressure_change, add_change = mean.change, mean.add_change

    @wp.kernel(module=name)
    def change(
        first: wp.int32,
        d: QuadratureData,
        u: wp.array(dtype=wp.vec3d),
        p: wp.array2d(dtype=wp.float64),
        d_u: wp.array(dtype=wp.vec3d),
        d_p: wp.array2d(dtype=wp.float64),
        with_p: wp.int32,
        out: wp.array2d(dtype=wp.vec4d),
    ):
        """out[c, a] = change of the cell's forces by changes of u and (with_p = 1) of p."""
        c = first + wp.tid()
        r = d.row[c]
        d_pressure = pressure_change(d, c, u, d_u, p, d_p, with_p)
        clear_forces(d, c, out)
        for q in range(d.points):
            w = d.weight[r, q]
            if w != wp.float64(0.0):
                F = deformation_at(d, c, q, u)
                dF = gradient_at(d, c, q, d_u)
                dP = change_at(F, p, c, dF, d_p, with_p)
                add_stress(d, c, q, w * add_change(F, d_pressure, dP), out)

    return change


@lru_cache(maxsize=256)
def law_kernels(energy: Energy | MeanEnergy, floor: float = 0.0) -> LawKernels:
    """The kernels of an energy; floor > 0: continued below that stretch.

    Those of a `MeanEnergy` (fem.laws.dilatation) keep P in the last column of the parameters.
    """
    functions = law_functions(energy, floor)
    name = functions.module
    if functions.isotropic:
        parts = isotropic_parts(functions, name)
    else:
        parts = general_parts(functions, name)
    energy_at, stress_at, matrix_at, change_at, pull_at = parts
    mean = mean_parts(functions.averaged, functions.parameter_count, name)
    no_pressure, gather, mean_energy = mean.no_pressure, mean.gather, mean.energy
    begin, add_mean_forces = mean.begin, mean.add_forces
    settle, add_mean_tangent, mean_pull = mean.settle, mean.add_tangent, mean.pull
    exact, exact_at = EXACT, matrix_at
    if functions.invariant_slopes is not None:
        exact, exact_at = INVARIANT, invariant_tangent(functions, name)

    @wp.func(module=name)
    def tangent_at(
        F: wp.mat33d, p: wp.array2d(dtype=wp.float64), c: wp.int32, w: wp.float64, way: wp.int32
    ) -> PointMatrix:
        """w times the tangent."""
        if wp.static(exact == INVARIANT):
            if way == INVARIANT:
                return exact_at(F, p, c, w)
        return matrix_at(F, p, c, w, way)

    @wp.kernel(module=name)
    def forces(
        first: wp.int32,
        d: QuadratureData,
        u: wp.array(dtype=wp.vec3d),
        p: wp.array2d(dtype=wp.float64),
        at: wp.array(dtype=wp.vec3d),
        rate: wp.array(dtype=wp.vec3d),
        lam: wp.array(dtype=wp.float64),
        mu: wp.array(dtype=wp.float64),
        viscous: wp.float64,
        scratch: wp.array2d(dtype=wp.vec4d),
        out: wp.array2d(dtype=wp.vec4d),
    ):
        """out[c, a] = the cell's forces at u + viscous * its forces of the rate about `at`.

        scratch: like out, for the mean dilatation.
        """
        c = first + wp.tid()
        r = d.row[c]
        begin(d, c, p, scratch)
        sums = wp.vec2d()
        clear_forces(d, c, out)
        for q in range(d.points):
            w = d.weight[r, q]
            if w != wp.float64(0.0):
                F = deformation_at(d, c, q, u)
                P = stress_at(F, p, c)
                sums += gather(d, c, q, w, F, scratch)
                if viscous != wp.float64(0.0):
                    W = gradient_at(d, c, q, rate)
                    before = deformation_at(d, c, q, at)
                    P += viscous_stress(before, W, viscous * lam[c], viscous * mu[c])
                add_stress(d, c, q, w * P, out)
        add_mean_forces(d, c, p, sums, scratch, out)

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
        no_pressure(p, c)
        sums = wp.vec2d()
        total = wp.float64(0.0)
        for q in range(d.points):
            w = d.weight[r, q]
            if w != wp.float64(0.0):
                F = deformation_at(d, c, q, u)
                total += w * energy_at(F, p, c)
                sums += w * wp.vec2d(wp.determinant(F), wp.float64(1.0))
        out[c] = total + mean_energy(p, c, sums)

    @wp.kernel(module=name)
    def tangent(
        first: wp.int32,
        d: QuadratureData,
        u: wp.array(dtype=wp.vec3d),
        p: wp.array2d(dtype=wp.float64),
        factor: wp.float64,
        way: wp.int32,
        at: wp.array(dtype=wp.vec3d),
        lam: wp.array(dtype=wp.float64),
        mu: wp.array(dtype=wp.float64),
        viscous: wp.float64,
        scratch: wp.array2d(dtype=wp.vec4d),
        blocks: wp.array2d(dtype=wp.mat33d),
    ):
        """blocks[c, :] = lower triangle of factor * the cell's tangent at u + viscous * that of its
        viscous forces about `at`; scratch: (cells, k).
        """
        c = first + wp.tid()
        r = d.row[c]
        sums = settle(d, c, u, p, scratch)
        clear_blocks(d, c, blocks)
        for q in range(d.points):
            w = d.weight[r, q]
            if w != wp.float64(0.0):
                A = PointMatrix()
                if factor != wp.float64(0.0):
                    A = tangent_at(deformation_at(d, c, q, u), p, c, w * factor, way)
                if viscous != wp.float64(0.0):
                    v = viscous * w
                    A = with_viscosity(A, deformation_at(d, c, q, at), v * lam[c], v * mu[c])
                add_tangent(d, c, q, A, blocks)
        clamped = wp.where(way == CLAMPED, 1, 0)
        add_mean_tangent(d, c, p, sums, factor, clamped, scratch, blocks)

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
        mean_pull(d, c, u, y, factor, out)
        for q in range(d.points):
            w = d.weight[r, q]
            if w != wp.float64(0.0):
                F = deformation_at(d, c, q, u)
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

    change = change_kernel(change_at, mean, name)
    return LawKernels(forces, energies, tangent, change, pull, points, int(exact))
