"""What elasticity needs to know of a cell: integrals of products of shape-function gradients.

With G_ab = integral of grad N_a (x) grad N_b over the filled part, the stiffness block of the nodes
a and b is lambda G + mu (G^T + tr(G) I). Three kinds of cells provide G:

grid     a partially filled cell of a regular grid. Its trilinear shape functions are products of
         l_0(t) = 1 - t and l_1(t) = t, so every entry of every G_ab is, up to sign, one of 63
         integrals. They follow from the cell's 27 moments; a full cell is nothing special. A 2D
         cell is the same with every z-derivative zero.
simplex  a tetrahedron or triangle: constant gradients g_a and the volume V; G_ab = V g_a g_b^T.
quadratic  the same with a node in the middle of every (straight) edge. In the c = dim + 1
         barycentric coordinates l_m, gradients are linear, grad N_a = sum_m l_m h_am, and the
         integral of l_m l_n is V (1 + [m = n]) / (c (c + 1)), so that
         G_ab = V / (c (c + 1)) ((sum_m h_am) (x) (sum_n h_bn) + sum_m h_am (x) h_bm):
         N_a = l_a (2 l_a - 1), h_am = (4 [m = a] - 1) g_a on corners; N_a = 4 l_i l_j,
         h_ai = 4 g_j, h_aj = 4 g_i in the middle of the edge ij. Corners come first, then the
         edges 01, 12, 20 and, of a tetrahedron, 03, 13, 23 (as VTK numbers them).

A row of the geometry table holds the 63, or the 12 components of g and V; quadratic cells add c.
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

import numpy as np
import warp as wp

GRID = wp.constant(0)
SIMPLEX = wp.constant(1)
QUADRATIC = wp.constant(2)

GRID_ROW = 63
SIMPLEX_ROW = 13
QUADRATIC_ROW = 14

FLUCTUATION = 0.8
"""Share of the energy of strains that vary within a grid cell: gradients are taken as the cell's
mean plus sqrt(FLUCTUATION) times what varies about it. A trilinear cell that is bent shears where
the body does not, and a twisted section warps more coarsely than it should; both make it too stiff,
by a share of its own bending and twisting, which is what varies. The mean is as it was, so that the
patch test holds. With the mass matrix of fem.forces.mass, in per cent of frequency, first bending
and torsion of a beam four cells across, modes of a free ball six across: 1.0: +0.6, +1.0, -0.7 to
+1.8; 0.8: -0.1, +0.1, -2.1 to +1.0; 0.6: -0.8, -0.8, -2.6 to +0.6. Plain cells (pointwise
dilatation) have 1."""

SIMPLEX_EDGES = ((0, 1), (1, 2), (2, 0), (0, 3), (1, 3), (2, 3))
"""Ends of the edges of a tetrahedron; the first three are those of a triangle."""


@wp.func
def _simplex_gradient(table: wp.array2d(dtype=wp.float64), row: int, i: int) -> wp.vec3d:
    """g_i: gradient of a barycentric coordinate."""
    return wp.vec3d(table[row, 3 * i], table[row, 3 * i + 1], table[row, 3 * i + 2])


@wp.func
def _edge_end(e: int) -> int:
    """The second end of edge e (the first is e modulo 3), see SIMPLEX_EDGES."""
    if e < 3:
        return (e + 1) % 3
    return 3


@wp.func
def quadratic_slope(
    table: wp.array2d(dtype=wp.float64), row: int, corners: int, a: int, m: int
) -> wp.vec3d:
    """h_am of a quadratic cell: grad N_a = sum over the corners m of l_m h_am."""
    if a < corners:
        if m == a:
            return wp.float64(3.0) * _simplex_gradient(table, row, a)
        return -_simplex_gradient(table, row, a)
    i = (a - corners) % 3
    j = _edge_end(a - corners)
    if m == i:
        return wp.float64(4.0) * _simplex_gradient(table, row, j)
    if m == j:
        return wp.float64(4.0) * _simplex_gradient(table, row, i)
    return wp.vec3d()


@wp.func
def _quadratic_products(table: wp.array2d(dtype=wp.float64), row: int, a: int, b: int) -> wp.mat33d:
    """G_ab of a quadratic cell."""
    corners = int(table[row, 13])
    total = wp.mat33d()
    ha = wp.vec3d()
    hb = wp.vec3d()
    for m in range(corners):
        ham = quadratic_slope(table, row, corners, a, m)
        hbm = quadratic_slope(table, row, corners, b, m)
        ha += ham
        hb += hbm
        total += wp.outer(ham, hbm)
    V = table[row, 12]
    return V / wp.float64(corners * (corners + 1)) * (total + wp.outer(ha, hb))


@wp.func
def _pair(a: int, b: int, axis: int) -> int:
    """0, 1 or 2: which of l0 l0, l0 l1, l1 l1 is l_a l_b along the axis."""
    return ((a >> axis) & 1) + ((b >> axis) & 1)


@wp.func
def _sign(a: int, axis: int) -> wp.float64:
    """Derivative of l_a along the axis: -1 or +1."""
    return wp.float64(2 * ((a >> axis) & 1) - 1)


@wp.func
def _bit(a: int, axis: int) -> int:
    return (a >> axis) & 1


@wp.func
def gradient_products(
    kind: int, table: wp.array2d(dtype=wp.float64), row: int, a: int, b: int
) -> wp.mat33d:
    """G_ab, entry [i, j] = integral of d_i N_a d_j N_b over the filled part of the cell."""
    if kind == SIMPLEX:
        g = _simplex_gradient(table, row, a)
        return wp.outer(table[row, 12] * g, _simplex_gradient(table, row, b))
    if kind == QUADRATIC:
        return _quadratic_products(table, row, a, b)
    tx = _pair(a, b, 0)
    ty = _pair(a, b, 1)
    tz = _pair(a, b, 2)
    ax = _sign(a, 0)
    ay = _sign(a, 1)
    az = _sign(a, 2)
    bx = _sign(b, 0)
    by = _sign(b, 1)
    bz = _sign(b, 2)
    return wp.mat33d(
        ax * bx * table[row, 3 * ty + tz],
        ax * by * table[row, 27 + 3 * (2 * _bit(b, 0) + _bit(a, 1)) + tz],
        ax * bz * table[row, 39 + 3 * (2 * _bit(b, 0) + _bit(a, 2)) + ty],
        ay * bx * table[row, 27 + 3 * (2 * _bit(a, 0) + _bit(b, 1)) + tz],
        ay * by * table[row, 9 + 3 * tx + tz],
        ay * bz * table[row, 51 + 3 * (2 * _bit(b, 1) + _bit(a, 2)) + tx],
        az * bx * table[row, 39 + 3 * (2 * _bit(a, 0) + _bit(b, 2)) + ty],
        az * by * table[row, 51 + 3 * (2 * _bit(a, 1) + _bit(b, 2)) + tx],
        az * bz * table[row, 18 + 3 * tx + ty],
    )


_PAIR_COEFFICIENTS = np.array([[1.0, -2.0, 1.0], [0.0, 1.0, -1.0], [0.0, 0.0, 1.0]])
"""l0 l0, l0 l1, l1 l1 as polynomials in t: row = pair, column = power."""

_SINGLE_COEFFICIENTS = np.array([[1.0, -1.0, 0.0], [0.0, 1.0, 0.0]])
"""l0, l1 as polynomials in t."""

_CONSTANT = np.array([[1.0, 0.0, 0.0]])


def grid_geometry_rows(moments: np.ndarray, spacing: float) -> np.ndarray:
    """The 63 integrals of each cell from its moments.

    moments: (cells, 3, 3, 3) or (cells, 3, 3), in unit-cell coordinates; spacing [m].
    Returns (cells, 63); in 3D [m], in 2D [1] (per unit of thickness).
    """
    dim = moments.ndim - 1
    pair, single = _PAIR_COEFFICIENTS, _SINGLE_COEFFICIENTS
    rows = np.zeros((len(moments), GRID_ROW))
    if dim == 2:
        m = moments
        P = np.einsum("ya,cxa->cyx", pair, m)[:, :, 0]  # over y, at x^0
        Q = np.einsum("xa,cay->cxy", pair, m)[:, :, 0]
        XY = np.einsum("xa,yb,cab->cxy", single, single, m)
        rows[:, [0, 3, 6]] = P
        rows[:, [9, 12, 15]] = Q
        rows[:, [27, 30, 33, 36]] = XY.reshape(-1, 4)
        return rows
    m = moments
    one = _CONSTANT[0]
    n = len(m)
    rows[:, 0:9] = np.einsum("x,yb,zc,nxbc->nyz", one, pair, pair, m, optimize=True).reshape(n, 9)
    rows[:, 9:18] = np.einsum("y,xa,zc,nayc->nxz", one, pair, pair, m, optimize=True).reshape(n, 9)
    rows[:, 18:27] = np.einsum("z,xa,yb,nabz->nxy", one, pair, pair, m, optimize=True).reshape(n, 9)
    rows[:, 27:39] = np.einsum(
        "xa,yb,zc,nabc->nxyz", single, single, pair, m, optimize=True
    ).reshape(n, 12)
    rows[:, 39:51] = np.einsum(
        "xa,zc,yb,nabc->nxzy", single, single, pair, m, optimize=True
    ).reshape(n, 12)
    rows[:, 51:63] = np.einsum(
        "yb,zc,xa,nabc->nyzx", single, single, pair, m, optimize=True
    ).reshape(n, 12)
    return rows * spacing


def grid_node_volumes(moments: np.ndarray, spacing: float) -> np.ndarray:
    """Integrals of the shape functions over the filled part, (cells, 8 or 4) [m^dim]."""
    s = _SINGLE_COEFFICIENTS
    if moments.ndim == 3:
        v = np.einsum("xa,yb,nab->nyx", s, s, moments, optimize=True)
        return v.reshape(len(moments), 4) * spacing**2
    v = np.einsum("xa,yb,zc,nabc->nzyx", s, s, s, moments, optimize=True)
    return v.reshape(len(moments), 8) * spacing**3


def grid_pair_integrals(moments: np.ndarray, spacing: float) -> np.ndarray:
    """Integrals of products N_a N_b over the filled part, (cells, 27 or 9); see `pair_places`."""
    p, n = _PAIR_COEFFICIENTS, len(moments)
    if moments.ndim == 3:
        return np.einsum("xa,yb,nab->nyx", p, p, moments).reshape(n, 9) * spacing**2
    pairs = np.einsum("xa,yb,zc,nabc->nzyx", p, p, p, moments, optimize=True)
    return pairs.reshape(n, 27) * spacing**3


def pair_places(k: int) -> np.ndarray:
    """Which of `grid_pair_integrals` is that of N_a N_b, (k, k)."""
    bits = (np.arange(k)[:, None] >> np.arange(3)) & 1
    return (bits[:, None] + bits[None, :]) @ np.array([1, 3, 9])


def simplex_geometry_rows(corners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Gradients and volumes of simplices.

    corners: (cells, dim + 1, dim) [m]. Returns rows (cells, 13) and volumes (cells,) (signed).
    """
    cells, count, dim = corners.shape
    edges = corners[:, 1:] - corners[:, :1]  # (cells, dim, dim), rows are edges
    volumes = np.linalg.det(edges) / (2.0 if dim == 2 else 6.0)
    safe = np.where(np.abs(volumes) > 0.0, 1.0, 0.0)
    inverse = np.linalg.inv(np.where(safe[:, None, None] > 0, edges, np.eye(dim)))
    gradients = np.zeros((cells, 4, 3))
    gradients[:, 1:count, :dim] = inverse.transpose(0, 2, 1)
    gradients[:, 0, :dim] = -gradients[:, 1:count, :dim].sum(axis=1)
    rows = np.zeros((cells, SIMPLEX_ROW))
    rows[:, :12] = gradients.reshape(cells, 12)
    rows[:, 12] = volumes
    return rows, volumes


def quadratic_geometry_rows(simplex_rows: np.ndarray, corners: int) -> np.ndarray:
    """Rows (cells, 14) of quadratic cells from those of the simplices of their corners."""
    return np.column_stack([simplex_rows, np.full(len(simplex_rows), float(corners))])


def gradient_product_blocks(kind: int, rows: np.ndarray, k: int) -> np.ndarray:
    """All G_ab of some cells on the host, (cells, k, k, 3, 3): `gradient_products` in NumPy."""
    if kind == SIMPLEX:
        g = rows[:, :12].reshape(-1, 4, 3)[:, :k]
        return np.einsum("c,cai,cbj->cabij", rows[:, 12], g, g)
    if kind == QUADRATIC:
        h = quadratic_slopes(rows, k)
        mean, c = h.sum(axis=2), h.shape[2]
        products = np.einsum("rami,rbmj->rabij", h, h, optimize=True)
        products += mean[:, :, None, :, None] * mean[:, None, :, None, :]
        return products * (rows[:, 12] / (c * (c + 1)))[:, None, None, None, None]
    places, signs = grid_places(k)
    return rows[:, places] * signs


def quadratic_slopes(rows: np.ndarray, k: int) -> np.ndarray:
    """h_am of some quadratic cells of k nodes, (rows, k, corners, 3) [1/m]."""
    corners = {6: 3, 10: 4}[k]
    g = rows[:, :12].reshape(-1, 4, 3)
    h = np.zeros((len(rows), k, corners, 3))
    for a in range(corners):
        h[:, a] = -g[:, a, None]
        h[:, a, a] = 3.0 * g[:, a]
    for a, (i, j) in enumerate(SIMPLEX_EDGES[: k - corners], corners):
        h[:, a, i], h[:, a, j] = 4.0 * g[:, j], 4.0 * g[:, i]
    return h


def mean_gradients(kind: int, rows: np.ndarray, k: int, *, spacing: float = 1.0) -> np.ndarray:
    """Mean of grad N_a over the filled part of some cells, (rows, k, 3) [1/m].

    spacing: of a grid [m]; its rows alone give the means in units of 1/spacing. With the unit-cell
    coordinate t_i = sum of the N_b with bit i set, sum_b G_ab[i, i] = integral of d_i N_a / h.
    """
    if kind == SIMPLEX:
        return rows[:, :12].reshape(-1, 4, 3)[:, :k].copy()
    if kind == QUADRATIC:
        return quadratic_slopes(rows, k).mean(axis=2)
    G = np.einsum("rabii->rabi", gradient_product_blocks(kind, rows, k))
    volume = row_volumes(kind, rows, k)
    return (
        np.einsum("rabi,bi->rai", G, _bits(k)) / np.maximum(volume, 1e-300)[:, None, None] / spacing
    )


def row_volumes(kind: int, rows: np.ndarray, k: int, *, spacing: float = 1.0) -> np.ndarray:
    """Filled volume of some cells, (rows,) [m^dim]; of a grid in units of spacing^2 [m^2] alone."""
    if kind in (SIMPLEX, QUADRATIC):
        return rows[:, 12].copy()
    t = _bits(k)[:, 0]
    along_x = gradient_product_blocks(kind, rows, k)[..., 0, 0]
    return np.einsum("a,rab,b->r", t, along_x, t) * spacing**2


def _bits(k: int) -> np.ndarray:
    """Unit-cell coordinates of a grid cell's corners, (k, 3)."""
    return ((np.arange(k)[:, None] >> np.arange(3)) & 1).astype(float)


def grid_places(k: int) -> tuple[np.ndarray, np.ndarray]:
    """Where each entry of G_ab is in a grid cell's row of integrals, and its sign: (k, k, 3, 3)."""
    places, signs = np.empty((k, k, 3, 3), np.uint8), np.empty((k, k, 3, 3))

    def bit(a, axis):
        return (a >> axis) & 1

    for a in range(k):
        for b in range(k):
            s = [2 * bit(a, d) - 1 for d in range(3)]
            t = [2 * bit(b, d) - 1 for d in range(3)]
            pair = [bit(a, d) + bit(b, d) for d in range(3)]
            place = places[a, b]
            place[0, 0] = 3 * pair[1] + pair[2]
            place[1, 1] = 9 + 3 * pair[0] + pair[2]
            place[2, 2] = 18 + 3 * pair[0] + pair[1]
            for i, j, base, other in ((0, 1, 27, 2), (0, 2, 39, 1), (1, 2, 51, 0)):
                place[i, j] = base + 3 * (2 * bit(b, i) + bit(a, j)) + pair[other]
                place[j, i] = base + 3 * (2 * bit(a, i) + bit(b, j)) + pair[other]
            signs[a, b] = np.outer(s, t)
    return places, signs


def stiffness_blocks(G: np.ndarray, lam: np.ndarray, mu: np.ndarray) -> np.ndarray:
    """lambda G + mu (G^T + tr(G) I) for blocks (cells, k, k, 3, 3) and moduli (cells,)."""
    trace = np.trace(G, axis1=-2, axis2=-1)[..., None, None] * np.eye(3)
    shape = (-1, 1, 1, 1, 1)
    return lam.reshape(shape) * G + mu.reshape(shape) * (np.swapaxes(G, -1, -2) + trace)


_GRADIENT_POWERS = np.array(
    [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 1, 1], [1, 0, 1], [1, 1, 0]]
)
"""Exponents of x, y, z in the monomials 1, x, y, z, yz, xz, xy of a trilinear field's gradient."""


def softened_products(kind: int, rows: np.ndarray, k: int, *, spacing: float = 1.0) -> np.ndarray:
    """G_ab (cells, k, k, 3, 3) with the strains that vary within grid cells at FLUCTUATION."""
    G = gradient_product_blocks(kind, rows, k)
    if kind != GRID:
        return G
    m = mean_gradients(kind, rows, k, spacing=spacing)
    V = row_volumes(kind, rows, k, spacing=spacing)
    return FLUCTUATION * G + (1.0 - FLUCTUATION) * np.einsum("c,cai,cbj->cabij", V, m, m)


def softened_moments(moments: np.ndarray) -> np.ndarray:
    """`gradient_moments` (rows, 49) with what varies about the mean at FLUCTUATION."""
    M = moments.reshape(-1, 7, 7)
    mean = M[:, :, :1] * M[:, :1, :] / np.maximum(M[:, :1, :1], 1e-300)
    return (FLUCTUATION * M + (1.0 - FLUCTUATION) * mean).reshape(-1, 49)


def gradient_moments(rows: np.ndarray, dim: int) -> np.ndarray:
    """Moments of the monomials of a grid cell's gradients, (rows, 49), see core.lattice_products.

    Entry 7 m + n is the integral of phi_m phi_n in coordinates from -1/2 to 1/2, in the units of
    the rows: spacing^(dim - 2).
    """
    n = len(rows)
    power = np.linalg.inv(_PAIR_COEFFICIENTS)
    single = np.linalg.inv(_SINGLE_COEFFICIENTS[:, :2])
    m = np.zeros((n, 3, 3, 3))
    if dim == 2:
        m[:, 0, :, 0] = rows[:, [0, 3, 6]] @ power.T
        m[:, :, 0, 0] = rows[:, [9, 12, 15]] @ power.T
        corner = rows[:, [27, 30, 33, 36]].reshape(n, 2, 2)
        m[:, :2, :2, 0] = np.einsum("ap,bq,rpq->rab", single, single, corner)
    else:
        pairs = [rows[:, 9 * i : 9 * i + 9].reshape(n, 3, 3) for i in range(3)]
        flat = [np.einsum("ap,bq,rpq->rab", power, power, p, optimize=True) for p in pairs]
        m[:, 0], m[:, :, 0], m[:, :, :, 0] = flat
        mixed = [rows[:, 27 + 12 * i : 39 + 12 * i].reshape(n, 2, 2, 3) for i in range(3)]
        mixed = [
            np.einsum("ap,bq,cs,rpqs->rabc", single, single, power, p, optimize=True)[:, 1, 1]
            for p in mixed
        ]
        m[:, 1, 1], m[:, 1, :, 1], m[:, :, 1, 1] = mixed
    # (t - 1/2)^a in powers of t; what the table does not hold, x^2 y^2 z and the like, is not asked
    shift = np.array([[1.0, 0.0, 0.0], [-0.5, 1.0, 0.0], [0.25, -1.0, 1.0]])
    third = shift if dim == 3 else np.eye(3)
    m = np.einsum("ap,bq,cs,rpqs->rabc", shift, shift, third, m, optimize=True)
    total = _GRADIENT_POWERS[:, None] + _GRADIENT_POWERS[None]
    x, y, z = np.moveaxis(total, 2, 0)
    out = m[:, x, y, z]
    if dim == 2:
        flat_only = (_GRADIENT_POWERS[:, 2] == 0) & (_GRADIENT_POWERS[:, :2].sum(axis=1) < 2)
        out *= flat_only[:, None] & flat_only[None, :]
    return out.reshape(n, 49)
