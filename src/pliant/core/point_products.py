"""What a cell's kernels do at every quadrature point, written for the vector registers of a CPU.

The gradient of a field, the forces of a stress on the corners, and the blocks of a tangent between
them: sums over corners of products with the gradients of shape functions, three lanes of four in
use. Warp's own loops over 3x3 products compile to scalar instructions, a third of the speed. On
CUDA, where the threads are the lanes, the same functions are plain loops.

A tangent A_ijkl = d P_ij / d F_kl is kept as `PointMatrix`, entry [3 i + j, 4 l + k], so that the
sums over j and l run over whole registers; entries with k = 3 are zero.
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportReturnType=false

from typing import Any

import warp as wp

PointMatrix: Any = wp.types.matrix((9, 12), wp.float64)

LANES = """
#ifdef __CUDACC__
    struct lanes {
        wp::float64 v[4];
        lanes operator*(wp::float64 s) const { return {v[0] * s, v[1] * s, v[2] * s, v[3] * s}; }
        lanes operator+(const lanes &o) const {
            return {v[0] + o.v[0], v[1] + o.v[1], v[2] + o.v[2], v[3] + o.v[3]};
        }
        lanes operator-(const lanes &o) const { return *this + o * -1.0; }
    };
#else
#pragma clang fp contract(fast)
    typedef double lanes __attribute__((vector_size(32), aligned(8)));
#endif
"""
"""Four numbers at once, on both kinds of device; a factor stands behind them."""

_GRADIENT = (
    """
#ifdef __CUDACC__
    wp::mat33d G;
    for (wp::int32 a = 0; a < k; ++a)
        for (int i = 0; i < 3; ++i)
            for (int j = 0; j < 3; ++j)
                G.data[i][j] += u.data[cells.data[corner + a]][i] * gradients.data[at + a][j];
    return G;
#else
"""
    + LANES
    + """
    lanes r0 = {0, 0, 0, 0}, r1 = r0, r2 = r0;
    const double *g = (const double *)(gradients.data + at);
    const wp::int32 *node = cells.data + corner;
    for (wp::int32 a = 0; a < k; ++a, g += 3) {
        const double *v = (const double *)(u.data + node[a]);
        const lanes h = *(const lanes *)g;
        r0 += v[0] * h;
        r1 += v[1] * h;
        r2 += v[2] * h;
    }
    return wp::mat33d(r0[0], r0[1], r0[2], r1[0], r1[1], r1[2], r2[0], r2[1], r2[2]);
#endif
"""
)

_FORCES = (
    """
#ifdef __CUDACC__
    for (wp::int32 a = 0; a < k; ++a)
        for (int i = 0; i < 3; ++i)
            for (int j = 0; j < 3; ++j)
                out.data[corner + a][i] += P.data[i][j] * gradients.data[at + a][j];
#else
"""
    + LANES
    + """
    const double *p = (const double *)&P;
    const lanes p0 = {p[0], p[3], p[6], 0}, p1 = {p[1], p[4], p[7], 0}, p2 = {p[2], p[5], p[8], 0};
    const double *g = (const double *)(gradients.data + at);
    lanes *o = (lanes *)(out.data + corner);
    for (wp::int32 a = 0; a < k; ++a, g += 3) o[a] += g[0] * p0 + g[1] * p1 + g[2] * p2;
#endif
"""
)

_BLOCKS = (
    """
#ifdef __CUDACC__
    for (wp::int32 a = 0; a < k; ++a)
        for (wp::int32 b = 0; b <= a; ++b)
            for (int e = 0; e < 9; ++e) {
                wp::float64 s = 0;
                for (int j = 0; j < 3; ++j)
                    for (int l = 0; l < 3; ++l)
                        s += gradients.data[at + a][j] * gradients.data[at + b][l]
                            * A.data[3 * (e / 3) + j][4 * l + e % 3];
                blocks.data[place + a * (a + 1) / 2 + b].data[e / 3][e % 3] += s;
            }
#else
"""
    + LANES
    + """
    const lanes *m = (const lanes *)&A;
    const double *g = (const double *)(gradients.data + at);
    double *out = (double *)(blocks.data + place);
    for (wp::int32 a = 0; a < k; ++a) {
        const double x = g[3 * a], y = g[3 * a + 1], z = g[3 * a + 2];
        const lanes t00 = x * m[0] + y * m[3] + z * m[6];
        const lanes t01 = x * m[1] + y * m[4] + z * m[7];
        const lanes t02 = x * m[2] + y * m[5] + z * m[8];
        const lanes t10 = x * m[9] + y * m[12] + z * m[15];
        const lanes t11 = x * m[10] + y * m[13] + z * m[16];
        const lanes t12 = x * m[11] + y * m[14] + z * m[17];
        const lanes t20 = x * m[18] + y * m[21] + z * m[24];
        const lanes t21 = x * m[19] + y * m[22] + z * m[25];
        const lanes t22 = x * m[20] + y * m[23] + z * m[26];
        for (wp::int32 b = 0; b <= a; ++b, out += 9) {
            const double p = g[3 * b], q = g[3 * b + 1], r = g[3 * b + 2];
            const lanes b0 = p * t00 + q * t01 + r * t02;
            const lanes b1 = p * t10 + q * t11 + r * t12;
            const lanes b2 = p * t20 + q * t21 + r * t22;
            *(lanes *)out += __builtin_shufflevector(b0, b1, 0, 1, 2, 4);
            *(lanes *)(out + 4) += __builtin_shufflevector(b1, b2, 1, 2, 4, 5);
            out[8] += b2[2];
        }
    }
#endif
"""
)


@wp.func_native(_GRADIENT)
def corner_gradient(
    gradients: wp.array2d(dtype=wp.vec3d),
    at: wp.int32,
    cells: wp.array2d(dtype=wp.int32),
    corner: wp.int32,
    k: wp.int32,
    u: wp.array(dtype=wp.vec3d),
) -> wp.mat33d:
    """Sum of u[cells[corner + a]] (x) gradients[at + a] over a < k, both tables seen as flat.

    Reads one number past the last gradient: the table must have a spare entry at its end.
    """
    ...


@wp.func_native(_FORCES)
def add_corner_forces(
    gradients: wp.array2d(dtype=wp.vec3d),
    at: wp.int32,
    P: wp.mat33d,
    corner: wp.int32,
    k: wp.int32,
    out: wp.array2d(dtype=wp.vec4d),
):
    """out[corner + a] += P gradients[at + a] for a < k; the fourth component stays as it is."""
    ...


@wp.func_native(_BLOCKS)
def add_corner_blocks(
    gradients: wp.array2d(dtype=wp.vec3d),
    at: wp.int32,
    A: PointMatrix,
    place: wp.int32,
    k: wp.int32,
    blocks: wp.array2d(dtype=wp.mat33d),
):
    """Lower triangle of a cell's blocks: [i, k] += sum over j, l of g_aj A_ijkl g_bl."""
    ...
