"""The innermost loops of the package, written for the vector registers of a CPU.

A row of 3x3 blocks times a vector, in single and in double precision, or times several; R H R^T of
a cell's blocks, and their products with a cell's vectors; and the mirror image of a row.
Warp's own 3x3 products compile to scalar instructions: a third to a half of the speed here. Blocks
are row by row, nine numbers without a gap, so eight (or twice four) of them fill a register and one
is left over; the sum over the lanes is taken once, at the end of the row. On CUDA, where the
threads are the lanes, the same functions are plain loops.
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportReturnType=false

from functools import cache
from typing import Any

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

_ROW_WIDE = """
#ifdef __CUDACC__
    wp::mat_t<3, WIDTH, wp::SCALAR> out;
    for (wp::int32 k = 0; k < count; ++k)
        for (int p = 0; p < 3; ++p)
            for (int q = 0; q < 3; ++q)
                for (int l = 0; l < WIDTH; ++l)
                    out.data[p][l] += values.data[at + step * k].data[p][q]
                        * wp::SCALAR(x.data[columns.data[begin + step * k]].data[q][l]);
    return out;
#else
#pragma clang fp contract(fast)
    typedef wp::SCALAR lanes __attribute__((vector_size(WIDTH * sizeof(wp::SCALAR)), aligned(4)));
    typedef wp::VECTOR given __attribute__((vector_size(WIDTH * sizeof(wp::VECTOR)), aligned(4)));
    const wp::SCALAR *a = (const wp::SCALAR *)(values.data + at);
    const wp::int32 *c = columns.data + begin;
    lanes s[9] = {};  // a chain of sums each: one of three products would wait for its own result
    for (wp::int32 n = count; n > 0; --n, c += step, a += 9 * step) {
        const given *v = (const given *)(x.data + *c);
        const lanes v0 = __builtin_convertvector(v[0], lanes);
        const lanes v1 = __builtin_convertvector(v[1], lanes);
        const lanes v2 = __builtin_convertvector(v[2], lanes);
        for (int p = 0; p < 9; p += 3) {
            s[p] += a[p] * v0;
            s[p + CHAIN] += a[p + 1] * v1;
            s[p + 2 * CHAIN] += a[p + 2] * v2;
        }
    }
    wp::mat_t<3, WIDTH, wp::SCALAR> out;
    lanes *o = (lanes *)&out;
    for (int p = 0; p < 3; ++p) o[p] = s[3 * p] + s[3 * p + 1] + s[3 * p + 2];
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
        wp::mat33d E = G;
        if (averaged) E = wp::mul(volume, wp::outer(means.data[mean + low], means.data[mean + b]));
        if (averaged) G = wp::add(wp::mul(varying, G), wp::mul(1.0 - varying, E));
        wp::mat33d B = wp::add(wp::mul(lam, E), wp::mul(mu, wp::transpose(G)));
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
    const double *own = (const double *)(means.data + mean + low);
    const double l = lam * volume, m0 = l * own[0], m1 = l * own[1], m2 = l * own[2];
    const double v = mu * volume * (1.0 - varying), shear = averaged ? varying * mu : mu;
    const lanes own_turned = v * (own[0] * r0 + own[1] * r1 + own[2] * r2);
    for (wp::int32 b = low; b < k; ++b) {
        const wp::uint8 *place = places.data + 9 * (pair + b);
        const double *sign = signs.data + 9 * (pair + b);
        double g[9];
        for (int q = 0; q < 9; ++q) g[q] = sign[q] * integrals[place[q]];
        double *out = (double *)(values.data + start + slots.data[slot + b]);
        // rows of H R^T with H = lam E + mu G^T
        lanes e0, e1, e2;
        double shift = shear * (g[0] + g[4] + g[8]);
        if (averaged) {
            const double *n = (const double *)(means.data + mean + b);
            const lanes turned = n[0] * r0 + n[1] * r1 + n[2] * r2;
            e0 = m0 * turned + n[0] * own_turned, e1 = m1 * turned + n[1] * own_turned;
            e2 = m2 * turned + n[2] * own_turned;
            shift += v * (own[0] * n[0] + own[1] * n[1] + own[2] * n[2]);
        } else {
            e0 = lam * (g[0] * r0 + g[1] * r1 + g[2] * r2);
            e1 = lam * (g[3] * r0 + g[4] * r1 + g[5] * r2);
            e2 = lam * (g[6] * r0 + g[7] * r1 + g[8] * r2);
        }
        const lanes t0 = e0 + shear * (g[0] * r0 + g[3] * r1 + g[6] * r2);
        const lanes t1 = e1 + shear * (g[1] * r0 + g[4] * r1 + g[7] * r2);
        const lanes t2 = e2 + shear * (g[2] * r0 + g[5] * r1 + g[8] * r2);
        const lanes b0 = r[0] * t0 + r[1] * t1 + r[2] * t2;
        const lanes b1 = r[3] * t0 + r[4] * t1 + r[5] * t2;
        const lanes b2 = r[6] * t0 + r[7] * t1 + r[8] * t2;
        const lanes first = {shift, 0, 0, 0};
        *(lanes *)out += __builtin_shufflevector(b0, b1, 0, 1, 2, 4) + first;
        *(lanes *)(out + 4) += __builtin_shufflevector(b1, b2, 1, 2, 4, 5) + first;
        out[8] += b2[2] + shift;
    }
#endif
"""

_PAIRS = """
#ifdef __CUDACC__
    const wp::mat33d turn = wp::mul(factor, wp::transpose(left.data[at + low]));
    const wp::mat33d curve = wp::mul(factor, wp::transpose(right.data[at + low]));
    for (wp::int32 b = low; b < k; ++b) {
        const wp::int32 e = start + slots.data[slot + b];
        values.data[e] = wp::sub(values.data[e], wp::add(wp::mul(turn, right.data[at + b]),
            wp::mul(curve, left.data[at + b])));
    }
#else
#pragma clang fp contract(fast)
    typedef double lanes __attribute__((vector_size(32), aligned(8)));
    const double *w = (const double *)(left.data + at + low);
    const double *v = (const double *)(right.data + at + low);
    double x[9], y[9];
    for (int q = 0; q < 9; ++q) x[q] = -factor * w[q], y[q] = -factor * v[q];
    for (wp::int32 b = low; b < k; ++b) {
        const double *l = (const double *)(left.data + at + b);
        const double *r = (const double *)(right.data + at + b);
        double *out = (double *)(values.data + start + slots.data[slot + b]);
        const lanes l0 = {l[0], l[1], l[2], 0}, l1 = {l[3], l[4], l[5], 0};
        const lanes l2 = {l[6], l[7], l[8], 0};
        const lanes r0 = {r[0], r[1], r[2], 0}, r1 = {r[3], r[4], r[5], 0};
        const lanes r2 = {r[6], r[7], r[8], 0};
        const lanes b0 = x[0] * r0 + x[3] * r1 + x[6] * r2 + y[0] * l0 + y[3] * l1 + y[6] * l2;
        const lanes b1 = x[1] * r0 + x[4] * r1 + x[7] * r2 + y[1] * l0 + y[4] * l1 + y[7] * l2;
        const lanes b2 = x[2] * r0 + x[5] * r1 + x[8] * r2 + y[2] * l0 + y[5] * l1 + y[8] * l2;
        *(lanes *)out += __builtin_shufflevector(b0, b1, 0, 1, 2, 4);
        *(lanes *)(out + 4) += __builtin_shufflevector(b1, b2, 1, 2, 4, 5);
        out[8] += b2[2];
    }
#endif
"""

_OUTER = """
#ifdef __CUDACC__
    wp::mat_t<9, 3, wp::float64> out;
    for (wp::int32 b = 0; b < k; ++b)
        for (int q = 0; q < 9; ++q) {
            const wp::int32 e = 9 * (pair + b) + q;
            const wp::float64 g = signs.data[e] * table.data[row + places.data[e]];
            for (int p = 0; p < 3; ++p) out.data[q][p] += g * local.data[at + b][p];
        }
    return out;
#else
#pragma clang fp contract(fast)
    typedef double lanes __attribute__((vector_size(32), aligned(8)));
    const double *integrals = table.data + row;
    lanes s[9] = {};
    for (wp::int32 b = 0; b < k; ++b) {
        const wp::uint8 *place = places.data + 9 * (pair + b);
        const double *sign = signs.data + 9 * (pair + b);
        const double *v = (const double *)(local.data + at + b);
        const lanes w = {v[0], v[1], v[2], 0};
        for (int q = 0; q < 9; ++q) s[q] += (sign[q] * integrals[place[q]]) * w;
    }
    wp::mat_t<9, 3, wp::float64> out;
    for (int q = 0; q < 9; ++q)
        for (int p = 0; p < 3; ++p) out.data[q][p] = s[q][p];
    return out;
#endif
"""

NineByThree: Any = wp.types.matrix((9, 3), wp.float64)


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


@cache
def row_sum_wide(width: int, matrix: Any = wp.float32, vector: Any = wp.float32) -> Any:
    """`row_sum_single` for `width` vectors at once, 3 x width matrices of type `vector`.

    The sum has the matrix' type. Where the vectors leave room in the sixteen registers, the nine
    products of a block are summed apart.
    """
    block = wp.types.matrix((3, 3), matrix)
    given, total = (wp.types.matrix((3, width), s) for s in (vector, matrix))
    fits = width * wp.types.type_size_in_bytes(matrix) <= 32
    text = _ROW_WIDE.replace("WIDTH", str(width)).replace("CHAIN", "1" if fits else "0")
    text = text.replace("SCALAR", matrix.__name__).replace("VECTOR", vector.__name__)

    @wp.func_native(text)
    def row_sum(
        values: wp.array(dtype=block),
        at: wp.int32,
        columns: wp.array(dtype=wp.int32),
        begin: wp.int32,
        count: wp.int32,
        step: wp.int32,
        x: wp.array(dtype=given),
    ) -> total: ...

    return row_sum


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
    means: wp.array2d(dtype=wp.vec3d),
    mean: wp.int32,
    volume: wp.float64,
    averaged: wp.bool,
    varying: wp.float64,
):
    """values[start + slots[slot + b]] += R (lam E + mu G^T) R^T + mu tr(G) I for low <= b < k.

    G_q = signs[9 (pair + b) + q] table[row + places[9 (pair + b) + q]], both tables seen as flat,
    and E = G. If averaged, E = volume means[mean + low] (x) means[mean + b] and varying G +
    (1 - varying) E instead of G.
    """
    ...


@wp.func_native(_PAIRS)
def add_pairs(
    values: wp.array(dtype=wp.mat33d),
    start: wp.int32,
    slots: wp.array2d(dtype=wp.uint8),
    slot: wp.int32,
    left: wp.array2d(dtype=wp.mat33d),
    right: wp.array2d(dtype=wp.mat33d),
    at: wp.int32,
    low: wp.int32,
    k: wp.int32,
    factor: wp.float64,
):
    """values[start + slots[slot + b]] -= factor (L_low^T R_b + R_low^T L_b) for low <= b < k.

    L_b = left[at + b], R_b = right[at + b], the arrays seen as flat.
    """
    ...


@wp.func_native(_OUTER)
def outer_sum(
    table: wp.array2d(dtype=wp.float64),
    row: wp.int32,
    places: wp.array(dtype=wp.uint8),
    signs: wp.array(dtype=wp.float64),
    pair: wp.int32,
    k: wp.int32,
    local: wp.array2d(dtype=wp.vec3d),
    at: wp.int32,
) -> NineByThree:
    """Sum over b < k of G_q (x) local[at + b], G as in `add_rotated`, the arrays seen as flat."""
    ...
