"""Elastic forces of a field on the corners of a grid cell, written for a CPU's vector registers.

In coordinates x, y, z from -1/2 to 1/2 a trilinear field is c0 + cx x + ... + cxy x y + ... +
cxyz x y z, and the columns of its gradient are

    cx + cxy y + cxz z + cxyz y z,   cy + cxy x + cyz z + cxyz x z,   cz + cxz x + cyz y + cxyz x y.

So the gradient is sum_m phi_m A_m over phi = 1, x, y, z, yz, xz, xy, and with the moments
M_mn = integral phi_m phi_n of the filled part the stress resultants are P_m = mu (B_m + B_m^T) +
lambda tr(B_m) I, B_m = sum_n M_mn A_n. Eight corners to seven modes and back are sums and
differences: a fifth of the work of the 64 blocks between the corners.
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportReturnType=false

import warp as wp

from pliant.core.point_products import LANES

_MODES = """
    lanes p[4], q[4];  // sums and differences along x, then y, then z
    for (int e = 0; e < 4; ++e) p[e] = y[2 * e] + y[2 * e + 1], q[e] = y[2 * e + 1] - y[2 * e];
    const lanes pp0 = p[0] + p[1], pm0 = p[1] - p[0], pp1 = p[2] + p[3], pm1 = p[3] - p[2];
    const lanes qp0 = q[0] + q[1], qm0 = q[1] - q[0], qp1 = q[2] + q[3], qm1 = q[3] - q[2];
    const bool solid = k == 8;
    const double s1 = solid ? 0.25 : 0.5, s2 = solid ? 0.5 : 1.0;
    const lanes cx = (qp0 + qp1) * s1, cy = (pm0 + pm1) * s1, cxy = (qm0 + qm1) * s2;
    const lanes cz = solid ? (pp1 - pp0) * s1 : zero;
    const lanes cxz = solid ? (qp1 - qp0) * s2 : zero, cyz = solid ? (pm1 - pm0) * s2 : zero;
    const lanes cxyz = solid ? qm1 - qm0 : zero;
    const lanes X[4] = {cx, cxy, cxz, cxyz}, Y[4] = {cy, cxy, cyz, cxyz};
    const lanes Z[4] = {cz, cxz, cyz, cxyz};
    lanes P[7][3];
    const wp::float64 *r = M;
    for (int m = 0; m < 7; ++m, r += 7) {
        const lanes b0 = X[0] * r[0] + X[1] * r[2] + X[2] * r[3] + X[3] * r[4];
        const lanes b1 = Y[0] * r[0] + Y[1] * r[1] + Y[2] * r[3] + Y[3] * r[5];
        const lanes b2 = Z[0] * r[0] + Z[1] * r[1] + Z[2] * r[2] + Z[3] * r[6];
        const wp::float64 *g0 = (const wp::float64 *)&b0, *g1 = (const wp::float64 *)&b1;
        const wp::float64 *g2 = (const wp::float64 *)&b2;
        const wp::float64 t = each * (g0[0] + g1[1] + g2[2]);
        P[m][0] = (b0 + lanes{g0[0], g1[0], g2[0], 0}) * mu + lanes{t, 0, 0, 0};
        P[m][1] = (b1 + lanes{g0[1], g1[1], g2[1], 0}) * mu + lanes{0, t, 0, 0};
        P[m][2] = (b2 + lanes{g0[2], g1[2], g2[2], 0}) * mu + lanes{0, 0, t, 0};
    }
    const lanes fx = P[0][0] * s1, fy = P[0][1] * s1, fxy = (P[1][1] + P[2][0]) * s2;
    const lanes fz = P[0][2] * s1, fxz = (P[1][2] + P[3][0]) * s2;
    const lanes fyz = (P[2][2] + P[3][1]) * s2, fxyz = P[4][0] + P[5][1] + P[6][2];
    lanes f[8];
    for (int z = 0; z < (solid ? 2 : 1); ++z) {
        const double w = solid ? 2.0 * z - 1.0 : 0.0;
        const lanes n = fz * w, nx = fx + fxz * w, ny = fy + fyz * w, nxy = fxy + fxyz * w;
        const lanes low = n - ny, high = n + ny, across = nx - nxy, along = nx + nxy;
        f[4 * z] = low - across, f[4 * z + 1] = low + across;
        f[4 * z + 2] = high - along, f[4 * z + 3] = high + along;
    }
"""
"""From the corners' values y[8] to their forces f[8]; M: moments, each: lambda of every point."""

_FORCES = (
    LANES
    + """
    const wp::float64 *v = (const wp::float64 *)(local.data + at);
    const wp::float64 *M = (const wp::float64 *)(moments.data) + 49 * row;
    const wp::float64 each = lam;
    const lanes zero = {0, 0, 0, 0};
    lanes y[8];
    for (int a = 0; a < 8; ++a)
        y[a] = a < k ? lanes{v[3 * a], v[3 * a + 1], v[3 * a + 2], 0} : zero;
"""
    + _MODES
    + """
    wp::float64 *o = (wp::float64 *)(out.data + at);
    for (int a = 0; a < k; ++a) {
        const wp::float64 *g = (const wp::float64 *)&f[a];
        for (int i = 0; i < 3; ++i) o[3 * a + i] = g[i];
    }
"""
)

_TURNED = (
    LANES
    + """
    const wp::float64 *t = (const wp::float64 *)&R;
    const wp::float64 *M = (const wp::float64 *)(moments.data) + 49 * row;
    const lanes zero = {0, 0, 0, 0};
    const lanes r0 = {t[0], t[1], t[2], 0}, r1 = {t[3], t[4], t[5], 0}, r2 = {t[6], t[7], t[8], 0};
    // what the rest shape adds along each axis of the lattice: R^T X - Y of an edge X = axes Y
    const wp::float64 *A = (const wp::float64 *)&axes;
    const lanes x0 = r0 * A[0] + r1 * A[3] + r2 * A[6];
    const lanes x1 = r0 * A[1] + r1 * A[4] + r2 * A[7];
    const lanes x2 = r0 * A[2] + r1 * A[5] + r2 * A[8];
    const lanes e0 = (x0 - lanes{1, 0, 0, 0}) * (s * spacing);
    const lanes e1 = (x1 - lanes{0, 1, 0, 0}) * (s * spacing);
    const lanes e2 = (x2 - lanes{0, 0, 1, 0}) * (s * spacing);
    const wp::int32 *node = cells.data + at;
    const wp::float64 *mean = (const wp::float64 *)(means.data) + 3 * k * row;
    const wp::float64 *o0 = (const wp::float64 *)(field.data + node[0]);
    lanes y[8];
    wp::float64 theta = 0;
    for (int a = 0; a < 8; ++a) {
        if (a >= k) {
            y[a] = zero;
            continue;
        }
        const wp::float64 *u = (const wp::float64 *)(field.data + node[a]);
        y[a] = r0 * (u[0] - o0[0]) + r1 * (u[1] - o0[1]) + r2 * (u[2] - o0[2])
            + e0 * double(a & 1) + e1 * double((a >> 1) & 1) + e2 * double(a >> 2);
        const wp::float64 *g = (const wp::float64 *)&y[a];
        theta += g[0] * mean[3 * a] + g[1] * mean[3 * a + 1] + g[2] * mean[3 * a + 2];
    }
    const wp::float64 each = averaged ? 0.0 : lam;
"""
    + _MODES
    + """
    const wp::float64 push = averaged ? lam * volume * theta : 0.0;
    wp::float64 energy = 0;
    lanes n0 = zero, n1 = zero, n2 = zero;  // columns of sum_a f_a (x) x_a
    for (int a = 0; a < k; ++a) {
        f[a] = f[a] + lanes{mean[3 * a], mean[3 * a + 1], mean[3 * a + 2], 0} * push;
        const wp::float64 *g = (const wp::float64 *)&y[a], *h = (const wp::float64 *)&f[a];
        energy += g[0] * h[0] + g[1] * h[1] + g[2] * h[2];
        n0 = n0 + f[a] * (g[0] + spacing * double(a & 1));
        n1 = n1 + f[a] * (g[1] + spacing * double((a >> 1) & 1));
        n2 = n2 + f[a] * (g[2] + spacing * double(a >> 2));
    }
    const wp::float64 *p0 = (const wp::float64 *)&n0, *p1 = (const wp::float64 *)&n1;
    const wp::float64 *p2 = (const wp::float64 *)&n2;
    const wp::float64 *b = (const wp::float64 *)&L;
    const wp::float64 tx = p1[2] - p2[1], ty = p2[0] - p0[2], tz = p0[1] - p1[0];
    const wp::float64 lx = b[0] * tx + b[1] * ty + b[2] * tz;
    const wp::float64 ly = b[3] * tx + b[4] * ty + b[5] * tz;
    const wp::float64 lz = b[6] * tx + b[7] * ty + b[8] * tz;
    const lanes l0 = {0, lz, -ly, 0}, l1 = {-lz, 0, lx, 0}, l2 = {ly, -lx, 0, 0};  // of [l]x
    const lanes c0 = {t[0], t[3], t[6], 0}, c1 = {t[1], t[4], t[7], 0}, c2 = {t[2], t[5], t[8], 0};
    wp::float64 *o = (wp::float64 *)(out.data + at);
    for (int a = 0; a < k; ++a) {
        const lanes own = f[a]
            - (l0 * mean[3 * a] + l1 * mean[3 * a + 1] + l2 * mean[3 * a + 2]);
        const wp::float64 *h = (const wp::float64 *)&own;
        const lanes back = c0 * h[0] + c1 * h[1] + c2 * h[2];
        const wp::float64 *g = (const wp::float64 *)&back;
        for (int i = 0; i < 3; ++i) o[3 * a + i] = g[i];
    }
    return 0.5 * energy;
"""
)


@wp.func_native(_TURNED)
def turned_lattice_forces(
    moments: wp.array2d(dtype=wp.float64),
    means: wp.array2d(dtype=wp.vec3d),
    row: wp.int32,
    k: wp.int32,
    spacing: wp.float64,
    volume: wp.float64,
    averaged: wp.bool,
    lam: wp.float64,
    mu: wp.float64,
    R: wp.mat33d,
    L: wp.mat33d,
    axes: wp.mat33d,
    s: wp.float64,
    cells: wp.array2d(dtype=wp.int32),
    at: wp.int32,
    field: wp.array(dtype=wp.vec3d),
    out: wp.array2d(dtype=wp.vec3d),
) -> wp.float64:
    """out[at + a] = R (g_a - l x m_a), l = L sum_a (Y_a + y_a) x g_a.

    y = R^T w + s (R^T X - Y), X = axes Y. The whole of a cell's corotated force
    (fem.forces.corotation_kernels) without a detour through memory; w is `field` at the corners
    cells[at + a], Y those of a cube, and averaged says whether lam sees
    the mean dilatation. With L = 0 the frame does not turn. Returns 1/2 sum_a y_a . g_a.
    """
    ...


@wp.func_native(_FORCES)
def lattice_forces(
    moments: wp.array2d(dtype=wp.float64),
    row: wp.int32,
    k: wp.int32,
    lam: wp.float64,
    mu: wp.float64,
    local: wp.array2d(dtype=wp.vec3d),
    at: wp.int32,
    out: wp.array2d(dtype=wp.vec3d),
):
    """out[at + a] = sum_b (lam G_ab + mu (G_ab^T + tr(G_ab) I)) local[at + b], a < k = 8 or 4.

    moments: (rows, 49), see fem.forces.cells.gradient_moments; local and out are seen as flat.
    """
    ...
