"""The innermost loops of the package, written for the vector registers of a CPU.

A row of 3x3 blocks times a vector, in single and in double precision, or times eight of them; R H
R^T of a cell's blocks; and the mirror image of a row.
Warp's own 3x3 products compile to scalar instructions: a third to a half of the speed here. Blocks
are row by row, nine numbers without a gap, so eight (or twice four) of them fill a register and one
is left over; the sum over the lanes is taken once, at the end of the row. On CUDA, where the
threads are the lanes, the same functions are plain loops.
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportReturnType=false

from typing import Any

import warp as wp

Eight: Any = wp.types.matrix((3, 8), wp.float32)
EightSums: Any = wp.types.matrix((3, 8), wp.float64)

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

_ROW_EIGHT = """
#ifdef __CUDACC__
    wp::mat_t<3, 8, wp::float64> out;
    for (wp::int32 k = begin; k < begin + count; ++k)
        for (int p = 0; p < 3; ++p)
            for (int q = 0; q < 3; ++q)
                for (int l = 0; l < 8; ++l)
                    out.data[p][l] += values.data[k].data[p][q]
                        * wp::float64(x.data[columns.data[k]].data[q][l]);
    return out;
#else
#pragma clang fp contract(fast)
    typedef float four __attribute__((vector_size(16), aligned(4)));
    typedef double lanes __attribute__((vector_size(32), aligned(8)));
    const lanes zero = {0, 0, 0, 0};
    lanes s0 = zero, s1 = zero, s2 = zero, t0 = zero, t1 = zero, t2 = zero;
    for (wp::int32 k = begin; k < begin + count; ++k) {
        const double *a = (const double *)(values.data + k);
        const float *v = (const float *)(x.data + columns.data[k]);
        for (int q = 0; q < 3; ++q, v += 8) {
            const lanes w = __builtin_convertvector(*(const four *)v, lanes);
            const lanes z = __builtin_convertvector(*(const four *)(v + 4), lanes);
            s0 += a[q] * w;
            t0 += a[q] * z;
            s1 += a[3 + q] * w;
            t1 += a[3 + q] * z;
            s2 += a[6 + q] * w;
            t2 += a[6 + q] * z;
        }
    }
    wp::mat_t<3, 8, wp::float64> out;
    double *o = (double *)&out;
    *(lanes *)o = s0;
    *(lanes *)(o + 4) = t0;
    *(lanes *)(o + 8) = s1;
    *(lanes *)(o + 12) = t1;
    *(lanes *)(o + 16) = s2;
    *(lanes *)(o + 20) = t2;
    return out;
#endif
"""

_MIRROR = """
    for (wp::int32 e = begin; e < end; ++e) {
#ifndef __CUDACC__
        if (e + 6 < end)  // the places are scattered: fetch them ahead
            __builtin_prefetch(values.data + diagonal.data[columns.data[e + 6]] + twin.data[e + 6]);
#endif
        if (twin.data[e] == 255) {
            values.data[e] = wp::mat33d();
            continue;
        }
        const wp::float64 *a =
            (const wp::float64 *)(values.data + diagonal.data[columns.data[e]] + twin.data[e]);
        wp::float64 *o = (wp::float64 *)(values.data + e);
        for (int p = 0; p < 3; ++p)
            for (int q = 0; q < 3; ++q) o[3 * p + q] = a[3 * q + p];
    }
"""

_ROTATED = """
#ifdef __CUDACC__
    for (wp::int32 b = low; b < k; ++b) {
        wp::mat33d G;
        for (int q = 0; q < 9; ++q) {
            const wp::int32 e = 9 * (pair + b) + q;
            G.data[q / 3][q % 3] = signs.data[e] * table.data[row + places.data[e]];
        }
        wp::mat33d B = wp::add(wp::mul(lam, G), wp::mul(mu, wp::transpose(G)));
        B = wp::mul(wp::mul(R, B), wp::transpose(R));
        for (int p = 0; p < 3; ++p) B.data[p][p] += mu * wp::trace(G);
        const wp::int32 at = start + slots.data[slot + b];
        values.data[at] = wp::add(values.data[at], B);
    }
#else
#pragma clang fp contract(fast)
    typedef double lanes __attribute__((vector_size(32), aligned(8)));
    const double *r = (const double *)&R;
    const lanes r0 = {r[0], r[3], r[6], 0}, r1 = {r[1], r[4], r[7], 0}, r2 = {r[2], r[5], r[8], 0};
    const double *integrals = table.data + row;
    for (wp::int32 b = low; b < k; ++b) {
        const wp::uint8 *place = places.data + 9 * (pair + b);
        const double *sign = signs.data + 9 * (pair + b);
        double g[9];
        for (int q = 0; q < 9; ++q) g[q] = sign[q] * integrals[place[q]];
        double *out = (double *)(values.data + start + slots.data[slot + b]);
        // rows of H R^T with H = lam G + mu G^T
        const lanes t0 = (lam + mu) * g[0] * r0 + (lam * g[1] + mu * g[3]) * r1
            + (lam * g[2] + mu * g[6]) * r2;
        const lanes t1 = (lam * g[3] + mu * g[1]) * r0 + (lam + mu) * g[4] * r1
            + (lam * g[5] + mu * g[7]) * r2;
        const lanes t2 = (lam * g[6] + mu * g[2]) * r0 + (lam * g[7] + mu * g[5]) * r1
            + (lam + mu) * g[8] * r2;
        const lanes b0 = r[0] * t0 + r[1] * t1 + r[2] * t2;
        const lanes b1 = r[3] * t0 + r[4] * t1 + r[5] * t2;
        const lanes b2 = r[6] * t0 + r[7] * t1 + r[8] * t2;
        const double shift = mu * (g[0] + g[4] + g[8]);
        const lanes first = {shift, 0, 0, 0};
        *(lanes *)out += __builtin_shufflevector(b0, b1, 0, 1, 2, 4) + first;
        *(lanes *)(out + 4) += __builtin_shufflevector(b1, b2, 1, 2, 4, 5) + first;
        out[8] += b2[2] + shift;
    }
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


@wp.func_native(_ROW_EIGHT)
def row_sum_eight(
    values: wp.array(dtype=wp.mat33d),
    columns: wp.array(dtype=wp.int32),
    begin: wp.int32,
    count: wp.int32,
    x: wp.array(dtype=Eight),
) -> EightSums:
    """Sum of values[k] x[columns[k]] over begin <= k < begin + count, for eight vectors at once."""
    ...


@wp.func_native(_MIRROR)
def mirror_row(
    values: wp.array(dtype=wp.mat33d),
    columns: wp.array(dtype=wp.int32),
    diagonal: wp.array(dtype=wp.int32),
    twin: wp.array(dtype=wp.uint8),
    begin: wp.int32,
    end: wp.int32,
):
    """values[e] = transpose of its twin at diagonal[columns[e]] + twin[e]; zero for twin 255."""
    ...


@wp.func_native(_ROTATED)
def add_rotated(
    values: wp.array(dtype=wp.mat33d),
    start: wp.int32,
    slots: wp.array2d(dtype=wp.uint8),
    slot: wp.int32,
    R: wp.mat33d,
    table: wp.array2d(dtype=wp.float64),
    row: wp.int32,
    places: wp.array(dtype=wp.uint8),
    signs: wp.array(dtype=wp.float64),
    pair: wp.int32,
    low: wp.int32,
    k: wp.int32,
    lam: wp.float64,
    mu: wp.float64,
):
    """values[start + slots[slot + b]] += R (lam G + mu G^T) R^T + mu tr(G) I for low <= b < k.

    G_q = signs[9 (pair + b) + q] table[row + places[9 (pair + b) + q]], both tables seen as flat.
    """
    ...
