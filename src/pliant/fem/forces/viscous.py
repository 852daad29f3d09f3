"""Kelvin-Voigt stress of a body with a material law, its tangent and its derivatives.

P_d = F (lambda tr(D) I + 2 mu D), D = sym(F^T W), for the gradient W of a rate and a fixed F. It is
linear in W: A_ijkl = lambda F_ij F_kl + mu (B_ik d_jl + F_il F_kj), B = F F^T.
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

import warp as wp

from pliant.core.point_products import LANES, PointMatrix
from pliant.fem.cutting.quadrature_points import (
    QuadratureData,
    add_stress,
    clear_forces,
    deformation_at,
    gradient_at,
)

_TANGENT = (
    LANES
    + """
    lanes f[3];
#pragma unroll
    for (int l = 0; l < 3; ++l) f[l] = lanes{F.data[0][l], F.data[1][l], F.data[2][l], 0};
    lanes *out = (lanes *)&A;
#pragma unroll
    for (int i = 0; i < 3; ++i) {
        const double x = F.data[i][0], y = F.data[i][1], z = F.data[i][2];
        const lanes b = f[0] * (mu * x) + f[1] * (mu * y) + f[2] * (mu * z);
#pragma unroll
        for (int j = 0; j < 3; ++j)
#pragma unroll
            for (int l = 0; l < 3; ++l) {
                lanes a = out[9 * i + 3 * j + l] + f[l] * (lam * F.data[i][j])
                    + f[j] * (mu * F.data[i][l]);
                out[9 * i + 3 * j + l] = l == j ? a + b : a;
            }
    }
    return A;
"""
)


@wp.func_native(_TANGENT)
def with_viscosity(A: PointMatrix, F: wp.mat33d, lam: wp.float64, mu: wp.float64) -> PointMatrix:
    """A plus the tangent of the viscous stress at F."""
    ...


@wp.func
def viscous_stress(F: wp.mat33d, dF: wp.mat33d, lam: wp.float64, mu: wp.float64) -> wp.mat33d:
    """F (lambda tr(D) I + 2 mu D), D = sym(F^T dF)."""
    S = wp.transpose(F) * dF
    D = wp.float64(0.5) * (S + wp.transpose(S))
    unit = wp.identity(n=3, dtype=wp.float64)
    return F * (lam * wp.trace(D) * unit + wp.float64(2.0) * mu * D)


@wp.kernel
def viscous_forces(
    first: wp.int32,
    d: QuadratureData,
    at: wp.array(dtype=wp.vec3d),
    lam: wp.array(dtype=wp.float64),
    mu: wp.array(dtype=wp.float64),
    w: wp.array(dtype=wp.vec3d),
    out: wp.array2d(dtype=wp.vec4d),
):
    """out[c, a] = viscous forces of the rate w about the displacement `at`."""
    c = first + wp.tid()
    r = d.row[c]
    clear_forces(d, c, out)
    for q in range(d.points):
        F = deformation_at(d, c, q, at)
        P = viscous_stress(F, gradient_at(d, c, q, w), lam[c], mu[c])
        add_stress(d, c, q, d.weight[r, q] * P, out)


@wp.kernel
def viscous_change(
    first: wp.int32,
    d: QuadratureData,
    at: wp.array(dtype=wp.vec3d),
    d_at: wp.array(dtype=wp.vec3d),
    w: wp.array(dtype=wp.vec3d),
    d_w: wp.array(dtype=wp.vec3d),
    lam: wp.array(dtype=wp.float64),
    mu: wp.array(dtype=wp.float64),
    d_lam: wp.array(dtype=wp.float64),
    d_mu: wp.array(dtype=wp.float64),
    out: wp.array2d(dtype=wp.vec4d),
):
    """Change of `viscous_forces` by changes of everything it depends on."""
    c = first + wp.tid()
    r = d.row[c]
    unit = wp.identity(n=3, dtype=wp.float64)
    half = wp.float64(0.5)
    two = wp.float64(2.0)
    clear_forces(d, c, out)
    for q in range(d.points):
        F = deformation_at(d, c, q, at)
        dF = gradient_at(d, c, q, d_at)
        W = gradient_at(d, c, q, w)
        S = wp.transpose(F) * W
        D = half * (S + wp.transpose(S))
        dS = wp.transpose(dF) * W
        dD = half * (dS + wp.transpose(dS))
        P = dF * (lam[c] * wp.trace(D) * unit + two * mu[c] * D)
        P += F * (lam[c] * wp.trace(dD) * unit + two * mu[c] * dD)
        P += viscous_stress(F, gradient_at(d, c, q, d_w), lam[c], mu[c])
        P += viscous_stress(F, W, d_lam[c], d_mu[c])
        add_stress(d, c, q, d.weight[r, q] * P, out)


@wp.kernel
def viscous_pull(
    first: wp.int32,
    d: QuadratureData,
    at: wp.array(dtype=wp.vec3d),
    w: wp.array(dtype=wp.vec3d),
    y: wp.array(dtype=wp.vec3d),
    lam: wp.array(dtype=wp.float64),
    mu: wp.array(dtype=wp.float64),
    factor: wp.float64,
    lam_bar: wp.array(dtype=wp.float64),
    mu_bar: wp.array(dtype=wp.float64),
    at_bar: wp.array2d(dtype=wp.vec4d),
):
    """Transpose of `viscous_change` by the moduli (added) and by F~ (one entry per corner)."""
    c = first + wp.tid()
    r = d.row[c]
    unit = wp.identity(n=3, dtype=wp.float64)
    half = wp.float64(0.5)
    two = wp.float64(2.0)
    clear_forces(d, c, at_bar)
    for q in range(d.points):
        weight = factor * d.weight[r, q]
        F = deformation_at(d, c, q, at)
        W = gradient_at(d, c, q, w)
        Y = gradient_at(d, c, q, y)
        S = wp.transpose(F) * W
        D = half * (S + wp.transpose(S))
        T = wp.transpose(F) * Y
        E = half * (T + wp.transpose(T))
        lam_bar[c] = lam_bar[c] + weight * wp.trace(D) * wp.trace(E)
        mu_bar[c] = mu_bar[c] + weight * two * wp.ddot(D, E)
        stress = lam[c] * wp.trace(D) * unit + two * mu[c] * D
        other = lam[c] * wp.trace(E) * unit + two * mu[c] * E
        F_bar = weight * (Y * stress + W * other)
        add_stress(d, c, q, F_bar, at_bar)
