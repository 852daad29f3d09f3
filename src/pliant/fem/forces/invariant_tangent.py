"""The exact tangent of an energy that is written in I1, I2 and J: no decomposition of F.

With d I1 = 2 F, d I2 = 2 (I1 F - F C), d J = cof F =: K, C = F^T F, B = F F^T,

    A_ijkl = sum over m, n of psi_mn dI_m,ij dI_n,kl + 2 psi_1 d_ik d_jl + psi_J e_ikm e_jln F_mn
             + psi_2 (4 F_ij F_kl + 2 I1 d_ik d_jl - 2 (d_ik C_jl + F_il F_kj + B_ik d_jl)).
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false, reportOptionalCall=false

import warp as wp

from pliant.core.point_products import LANES, PointMatrix
from pliant.fem.forces.mean_dilatation import cofactor

_SUM = (
    LANES
    + """
    lanes f[3], k[3], d[3], b[3];  // columns of F, K, D and B
    lanes turned[3][3], own[3];  // s_J e_ikm F_mn, and d_ik
#pragma unroll
    for (int l = 0; l < 3; ++l) {
        f[l] = lanes{F.data[0][l], F.data[1][l], F.data[2][l], 0};
        k[l] = lanes{K.data[0][l], K.data[1][l], K.data[2][l], 0};
        d[l] = lanes{D.data[0][l], D.data[1][l], D.data[2][l], 0};
        b[l] = lanes{B.data[0][l], B.data[1][l], B.data[2][l], 0};
        const double x = s[2] * F.data[0][l], y = s[2] * F.data[1][l], z = s[2] * F.data[2][l];
        turned[0][l] = lanes{0, z, -y, 0};
        turned[1][l] = lanes{-z, 0, x, 0};
        turned[2][l] = lanes{y, -x, 0, 0};
        own[l] = lanes{l == 0 ? 1.0 : 0.0, l == 1 ? 1.0 : 0.0, l == 2 ? 1.0 : 0.0, 0};
    }
    const double h11 = 4 * H.data[0][0], h12 = 2 * H.data[0][1], h1J = 2 * H.data[0][2];
    const double h22 = H.data[1][1], h2J = H.data[1][2], hJJ = H.data[2][2];
    const double twice = 2 * s[1];
    const double same = 2 * s[0] + (second ? twice * i1 : 0.0);
    wp::mat_t<9, 12, wp::float64> A;
    lanes *out = (lanes *)&A;
#pragma unroll
    for (int i = 0; i < 3; ++i)
#pragma unroll
        for (int j = 0; j < 3; ++j) {
            const double x = F.data[i][j], y = K.data[i][j];
            double by1 = h11 * x + h1J * y, byJ = h1J * x + hJJ * y;
            lanes a[3];
            if (second) {
                const double z = D.data[i][j];
                by1 += h12 * z + 2 * twice * x;
                byJ += h2J * z;
                const double by2 = h12 * x + h2J * y + h22 * z;
#pragma unroll
                for (int l = 0; l < 3; ++l)
                    a[l] = f[l] * by1 + k[l] * byJ + d[l] * by2 - f[j] * (twice * F.data[i][l])
                        - own[i] * (twice * C.data[j][l]);
                a[j] = a[j] - b[i] * twice;
            } else {
#pragma unroll
                for (int l = 0; l < 3; ++l) a[l] = f[l] * by1 + k[l] * byJ;
            }
            a[j] = a[j] + own[i] * same;
            a[(j + 1) % 3] = a[(j + 1) % 3] + turned[i][(j + 2) % 3];
            a[(j + 2) % 3] = a[(j + 2) % 3] - turned[i][(j + 1) % 3];
#pragma unroll
            for (int l = 0; l < 3; ++l) out[9 * i + 3 * j + l] = a[l];
        }
    return A;
"""
)


@wp.func_native(_SUM)
def _sum_of_products(
    F: wp.mat33d,
    C: wp.mat33d,
    B: wp.mat33d,
    K: wp.mat33d,
    D: wp.mat33d,
    i1: wp.float64,
    s: wp.vec3d,
    H: wp.mat33d,
    second: wp.bool,
) -> PointMatrix:
    """A from the slopes s and the second slopes H; D = d I2, B and D read if `second`."""
    ...


def invariant_tangent(functions, name: str):
    """The function (F, p, c, w) -> w A of an energy's functions by invariants."""
    slopes, curvatures = functions.invariant_slopes, functions.invariant_curvatures
    has2, _, has12, _, has22, has2J, _, _ = functions.nonzero
    second = has2 or has12 or has22 or has2J

    @wp.func(module=name)
    def exact_at(
        F: wp.mat33d, p: wp.array2d(dtype=wp.float64), c: wp.int32, w: wp.float64
    ) -> PointMatrix:
        C = wp.transpose(F) * F
        i1 = wp.trace(C)
        i2 = wp.float64(0.5) * (i1 * i1 - wp.ddot(C, C))
        K = cofactor(F)
        J = wp.ddot(F, K) / wp.float64(3.0)
        at = wp.vec3d(i1, i2, J)
        B = wp.mat33d()
        D = wp.mat33d()
        if wp.static(second):
            B = F * wp.transpose(F)
            D = wp.float64(2.0) * (i1 * F - F * C)
        s = w * slopes(at, p, c)
        H = w * curvatures(at, p, c)
        return _sum_of_products(F, C, B, K, D, i1, s, H, wp.static(second))

    return exact_at
