"""The three innermost loops of the package, written for the vector registers of a CPU.

A row of 3x3 blocks times a vector in single and in double precision, and R H R^T of a cell's block.
Warp's own 3x3 products compile to scalar instructions: a third to a half of the speed here. Blocks
are row by row, nine numbers without a gap, so eight (or twice four) of them fill a register and one
is left over; the sum over the lanes is taken once, at the end of the row. On CUDA, where the
threads are the lanes, the same functions are plain loops.
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportReturnType=false

import warp as wp

_ROW_PLAIN = """
#ifdef __CUDACC__
    wp::vec_t<3, wp::SCALAR> s;
    for (wp::int32 k = 0; k < count; ++k)
        s = wp::add(s, wp::mul(values.data[at + step * k], x.data[columns.data[begin + step * k]]));
    return s;
#else
#pragma clang fp contract(fast)
    const wp::SCALAR *a = (const wp::SCALAR *)(values.data + at);
    const wp::int32 *c = columns.data + begin;
"""

_ROW_SINGLE = (
    _ROW_PLAIN.replace("SCALAR", "float32")
    + """
    typedef float lanes __attribute__((vector_size(32), aligned(4)));
    lanes s = {0, 0, 0, 0, 0, 0, 0, 0};
    float rest = 0;
    for (wp::int32 n = count; n > 0; --n, c += step, a += 9 * step) {
        const float *v = (const float *)(x.data + *c);
        const lanes w = {v[0], v[1], v[2], v[0], v[1], v[2], v[0], v[1]};
        s += *(const lanes *)a * w;
        rest += a[8] * v[2];
    }
    return wp::vec3f(s[0] + s[1] + s[2], s[3] + s[4] + s[5], s[6] + s[7] + rest);
#endif
"""
)

_ROW_DOUBLE = (
    _ROW_PLAIN.replace("SCALAR", "float64")
    + """
    typedef double lanes __attribute__((vector_size(32), aligned(8)));
    lanes s = {0, 0, 0, 0}, t = {0, 0, 0, 0};
    double rest = 0;
    for (wp::int32 n = count; n > 0; --n, c += step, a += 9 * step) {
        const double *v = (const double *)(x.data + *c);
        const lanes w = {v[0], v[1], v[2], v[0]}, z = {v[1], v[2], v[0], v[1]};
        s += *(const lanes *)a * w;
        t += *(const lanes *)(a + 4) * z;
        rest += a[8] * v[2];
    }
    return wp::vec3d(s[0] + s[1] + s[2], s[3] + t[0] + t[1], t[2] + t[3] + rest);
#endif
"""
)

_ROTATED = """
#ifdef __CUDACC__
    wp::mat33d B = wp::mul(wp::mul(R, H), wp::transpose(R));
    for (int p = 0; p < 3; ++p) B.data[p][p] += shift;
    values.data[at] = wp::add(values.data[at], B);
#else
#pragma clang fp contract(fast)
    typedef double lanes __attribute__((vector_size(32), aligned(8)));
    const double *r = (const double *)&R, *h = (const double *)&H;
    const lanes r0 = {r[0], r[3], r[6], 0}, r1 = {r[1], r[4], r[7], 0}, r2 = {r[2], r[5], r[8], 0};
    const lanes t0 = h[0] * r0 + h[1] * r1 + h[2] * r2;  // rows of H R^T
    const lanes t1 = h[3] * r0 + h[4] * r1 + h[5] * r2;
    const lanes t2 = h[6] * r0 + h[7] * r1 + h[8] * r2;
    const lanes b0 = r[0] * t0 + r[1] * t1 + r[2] * t2;
    const lanes b1 = r[3] * t0 + r[4] * t1 + r[5] * t2;
    const lanes b2 = r[6] * t0 + r[7] * t1 + r[8] * t2;
    double *out = (double *)(values.data + at);
    const lanes zero = {0, 0, 0, 0}, one = {shift, 0, 0, 0};
    *(lanes *)out += __builtin_shufflevector(b0, b1, 0, 1, 2, 4) + one;
    *(lanes *)(out + 4) += __builtin_shufflevector(b1, b2, 1, 2, 4, 5) + one;
    out[8] += b2[2] + shift;
#endif
"""


@wp.func_native(_ROW_SINGLE)
def row_sum_single(
    values: wp.array(dtype=wp.mat33f),
    at: wp.int32,
    columns: wp.array(dtype=wp.int32),
    begin: wp.int32,
    count: wp.int32,
    step: wp.int32,
    x: wp.array(dtype=wp.vec3f),
) -> wp.vec3f:
    """Sum of values[at + step k] x[columns[begin + step k]] over k < count; step 1 or -1."""
    ...


@wp.func_native(_ROW_DOUBLE)
def row_sum_double(
    values: wp.array(dtype=wp.mat33d),
    at: wp.int32,
    columns: wp.array(dtype=wp.int32),
    begin: wp.int32,
    count: wp.int32,
    step: wp.int32,
    x: wp.array(dtype=wp.vec3d),
) -> wp.vec3d:
    """`row_sum_single` in double precision."""
    ...


@wp.func_native(_ROTATED)
def add_rotated(
    values: wp.array(dtype=wp.mat33d),
    at: wp.int32,
    R: wp.mat33d,
    H: wp.mat33d,
    shift: wp.float64,
):
    """values[at] += R H R^T + shift I."""
    ...
