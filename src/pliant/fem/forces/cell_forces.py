"""A cell's elastic forces on its nodes, in the cell's own frame.

For a field y of the cell's nodes, g_a = sum_b K_ab y_b with

    K_ab = lambda V m_a (x) m_b + mu (G_ab^T + tr(G_ab) I),

m_a the mean of grad N_a over the filled part and V its volume: lambda sees the mean dilatation of
the cell (B-bar, Hughes 1980), so that a cell which keeps its volume on the whole may bend however
large lambda is. With dilatation = "pointwise" it is lambda G_ab instead, the plain element. Both
are blind to translations and small rotations of the rest shape.
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

import warp as wp

from pliant.core.lattice_products import lattice_forces, turned_lattice_forces
from pliant.fem.forces.cell_data import MEAN, CellData, products
from pliant.fem.forces.cells import GRID


@wp.func
def place_local(
    d: CellData,
    c: int,
    R: wp.mat33d,
    w: wp.array(dtype=wp.vec3d),
    s: wp.float64,
    local: wp.array2d(dtype=wp.vec3d),
):
    """local[c, b] = y_b = R^T w_b + s (R^T X_b - Y_b), w and X from the cell's first node on, Y
    their X along the cell's own coordinates.

    K sees no translation; far from the origin its rounding would drown small strains.
    """
    first = d.cells[c, 0]
    for b in range(d.k):
        i = d.cells[c, b]
        X = d.positions[i] - d.positions[first]
        # v * R is R^T v; X apart from w, for the same reason
        local[c, b] = (w[i] - w[first]) * R + s * (X * R - X * d.axes)


@wp.func
def mean_dilatation(d: CellData, c: int, local: wp.array2d(dtype=wp.vec3d)) -> wp.float64:
    """sum_b m_b . y_b."""
    theta = wp.float64(0.0)
    for b in range(d.k):
        theta += wp.dot(d.mean[d.row[c], b], local[c, b])
    return theta


@wp.func
def place_forces(
    d: CellData,
    c: int,
    lam: wp.float64,
    mu: wp.float64,
    local: wp.array2d(dtype=wp.vec3d),
    out: wp.array2d(dtype=wp.vec3d),
):
    """out[c, a] = g_a of the field in row c of `local`, for the moduli lam and mu."""
    row = d.row[c]
    averaged = d.dilatation == MEAN
    pointwise = lam
    if averaged:
        pointwise = wp.float64(0.0)
    if d.kind == GRID:
        lattice_forces(d.moments, row, d.k, pointwise, mu, local, c * d.k, out)
    else:
        for a in range(d.k):
            g = wp.vec3d()
            for b in range(d.k):
                G = products(d, row, a, b)
                y = local[c, b]
                g += pointwise * (G * y) + mu * (y * G + wp.trace(G) * y)
            out[c, a] = g
    if averaged:
        pressure = lam * d.volume[row] * mean_dilatation(d, c, local)
        for a in range(d.k):
            out[c, a] = out[c, a] + pressure * d.mean[row, a]


@wp.func
def place_turned_lattice(
    d: CellData,
    c: int,
    R: wp.mat33d,
    L: wp.mat33d,
    lam: wp.float64,
    mu: wp.float64,
    w: wp.array(dtype=wp.vec3d),
    s: wp.float64,
    out: wp.array2d(dtype=wp.vec3d),
) -> wp.float64:
    """`turned_lattice_forces` of a grid's cell."""
    row = d.row[c]
    return turned_lattice_forces(
        d.moments, d.mean, row, d.k, d.spacing, d.volume[row], d.dilatation == MEAN, lam, mu, R, L,
        d.axes, s, d.cells, c * d.k, w, out,
    )  # fmt: skip


@wp.func
def place_spun(
    d: CellData,
    c: int,
    axis: int,
    local: wp.array2d(dtype=wp.vec3d),
    spun: wp.array2d(dtype=wp.vec3d),
):
    """spun[c, b] = y_b x e, e along an axis: the change of y for a unit spin of the frame."""
    e = wp.vec3d()
    e[axis] = wp.float64(1.0)
    for b in range(d.k):
        spun[c, b] = wp.cross(local[c, b], e)
