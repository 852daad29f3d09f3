"""Elastic forces of a body: rotations of its cells, the matrix, forces and their derivatives.

The force on node a of a cell with rotation R is, for a field w and a number s,

    f_a = R g_a,   g_a = sum_b K_ab y_b,   y_b = R^T w_b + s (R^T X_b - X_b).

With w = s u it is s times the corotated force K (R^T (X + u) - X) rotated back (seed 000, eq.
2.7.1); with R = I it is K w. Every integrator needs only this form (see dynamics.integrators), so
its tangent and adjoint are all the derivatives of elasticity there are.

Cell kernels write to their own cell, node kernels gather: no atomics, the same bits every time.
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

from dataclasses import dataclass

import numpy as np
import warp as wp

from pliant.core.launch import launch, to_device, zeros
from pliant.fem.body import Body
from pliant.fem.cells import GRID, gradient_products, mean_gradient
from pliant.fem.frames import qr_rotation, qr_rotation_adjoint, qr_rotation_derivative
from pliant.fem.polar import rotation, rotation_adjoint, rotation_derivative

POLAR_FRAME = wp.constant(0)
QR_FRAME = wp.constant(1)

FRAMES = {"corotated": POLAR_FRAME, "corotated-qr": QR_FRAME}
"""Models that take the cells' rotations out, and how: by the polar decomposition, or by the cheaper
frame of Gram and Schmidt (seed 003, section 4.1.3), which favours the first axis."""

HEAVY = 500
"""Cells or nodes per thread from which these kernels are worth splitting (a microsecond each)."""


@wp.struct
class CellData:
    """Device arrays of a body's cells and their material."""

    kind: wp.int32
    k: wp.int32
    frame: wp.int32
    centre_gradient: wp.vec3d
    cells: wp.array2d(dtype=wp.int32)
    row: wp.array(dtype=wp.int32)
    table: wp.array2d(dtype=wp.float64)
    positions: wp.array(dtype=wp.vec3d)
    lam: wp.array(dtype=wp.float64)
    mu: wp.array(dtype=wp.float64)
    rotations: wp.array(dtype=wp.mat33d)
    incident_start: wp.array(dtype=wp.int32)
    incident: wp.array(dtype=wp.int32)


@wp.func
def deformation_gradient(d: CellData, c: int, u: wp.array(dtype=wp.vec3d)) -> wp.mat33d:
    """F = I + sum_a u_a (x) grad N_a in the middle of the cell."""
    F = wp.identity(n=3, dtype=wp.float64)
    for a in range(d.k):
        g = mean_gradient(d.kind, d.table, d.row[c], a, d.centre_gradient)
        F += wp.outer(u[d.cells[c, a]], g)
    return F


@wp.func
def _frame(d: CellData, F: wp.mat33d) -> wp.mat33d:
    if d.frame == QR_FRAME:
        return qr_rotation(F)
    return rotation(F)


@wp.func
def _frame_derivative(d: CellData, R: wp.mat33d, F: wp.mat33d, dF: wp.mat33d) -> wp.mat33d:
    if d.frame == QR_FRAME:
        return qr_rotation_derivative(R, F, dF)
    return rotation_derivative(R, F, dF)


@wp.func
def _frame_adjoint(d: CellData, R: wp.mat33d, F: wp.mat33d, R_bar: wp.mat33d) -> wp.mat33d:
    if d.frame == QR_FRAME:
        return qr_rotation_adjoint(R, F, R_bar)
    return rotation_adjoint(R, F, R_bar)


@wp.kernel
def _rotations(first: wp.int32, d: CellData, u: wp.array(dtype=wp.vec3d)):
    c = first + wp.tid()
    d.rotations[c] = _frame(d, deformation_gradient(d, c, u))


@wp.kernel
def _assemble(
    first: wp.int32,
    d: CellData,
    slot: wp.array2d(dtype=wp.uint8),
    row_start: wp.array(dtype=wp.int32),
    diagonal: wp.array(dtype=wp.int32),
    mass: wp.array(dtype=wp.float64),
    mass_factor: wp.float64,
    stiffness_factor: wp.float64,
    values: wp.array(dtype=wp.mat33d),
):
    i = first + wp.tid()
    start = row_start[i]
    for j in range(start, row_start[i + 1]):
        values[j] = wp.mat33d()
    unit = wp.identity(n=3, dtype=wp.float64)
    for e in range(d.incident_start[i], d.incident_start[i + 1]):
        c = d.incident[e] / d.k
        a = d.incident[e] - c * d.k
        lam = stiffness_factor * d.lam[c]
        mu = stiffness_factor * d.mu[c]
        R = d.rotations[c]
        Rt = wp.transpose(R)
        row = d.row[c]
        for b in range(d.k):
            G = gradient_products(d.kind, d.table, row, a, b)
            T = R * G * Rt
            block = lam * T + mu * (wp.transpose(T) + wp.trace(G) * unit)
            j = start + int(slot[c, a * d.k + b])
            values[j] = values[j] + block
    values[diagonal[i]] = values[diagonal[i]] + (mass_factor * mass[i]) * unit


@wp.func
def _second_difference(
    x: wp.array(dtype=wp.vec3d), i: int, minus: int, plus: int
) -> wp.vec3d:
    return x[plus] - wp.float64(2.0) * x[i] + x[minus]


@wp.func
def _node_modulus(d: CellData, i: int) -> wp.float64:
    """Mean of lambda + 2 mu over the cells around the node: the scale of the ghost penalty."""
    total = wp.float64(0.0)
    for e in range(d.incident_start[i], d.incident_start[i + 1]):
        c = d.incident[e] / d.k
        total += d.lam[c] + wp.float64(2.0) * d.mu[c]
    return total / wp.float64(d.incident_start[i + 1] - d.incident_start[i])


@wp.kernel
def _ghost_scale(
    first: wp.int32,
    d: CellData,
    weight: wp.array(dtype=wp.vec3d),
    scaled: wp.array(dtype=wp.vec3d),
):
    i = first + wp.tid()
    scaled[i] = _node_modulus(d, i) * weight[i]


@wp.func
def _add_ghost_block(
    values: wp.array(dtype=wp.mat33d),
    slot: wp.array2d(dtype=wp.uint8),
    start: int,
    i: int,
    place: int,
    amount: wp.float64,
):
    j = start + int(slot[i, place])
    values[j] = values[j] + amount * wp.identity(n=3, dtype=wp.float64)


@wp.kernel
def _assemble_ghost(
    first: wp.int32,
    factor: wp.float64,
    scaled: wp.array(dtype=wp.vec3d),
    neighbour: wp.array2d(dtype=wp.int32),
    slot: wp.array2d(dtype=wp.uint8),
    row_start: wp.array(dtype=wp.int32),
    values: wp.array(dtype=wp.mat33d),
):
    i = first + wp.tid()
    start = row_start[i]
    for axis in range(3):
        base = 5 * axis
        w = factor * scaled[i][axis]
        if w > wp.float64(0.0):  # i is the middle of the triple
            _add_ghost_block(values, slot, start, i, base + 1, wp.float64(-2.0) * w)
            _add_ghost_block(values, slot, start, i, base + 2, wp.float64(4.0) * w)
            _add_ghost_block(values, slot, start, i, base + 3, wp.float64(-2.0) * w)
        for side in range(2):  # i is an end of the triple around its neighbour m
            m = neighbour[i, 2 * axis + side]
            if m >= 0:
                v = factor * scaled[m][axis]
                if v > wp.float64(0.0):
                    step = 2 * side - 1
                    _add_ghost_block(values, slot, start, i, base + 2, v)
                    _add_ghost_block(values, slot, start, i, base + 2 + step, wp.float64(-2.0) * v)
                    _add_ghost_block(values, slot, start, i, base + 2 + 2 * step, v)


@wp.func
def _lame_product(
    G: wp.mat33d, y: wp.vec3d, lam: wp.float64, mu: wp.float64
) -> wp.vec3d:
    """(lambda G + mu (G^T + tr(G) I)) y."""
    return lam * (G * y) + mu * (y * G + wp.trace(G) * y)


@wp.func
def _local(
    d: CellData, c: int, b: int, R: wp.mat33d, w: wp.array(dtype=wp.vec3d), s: wp.float64
) -> wp.vec3d:
    """y_b; positions are taken relative to the cell's first node, which K cannot see."""
    X = d.positions[d.cells[c, b]] - d.positions[d.cells[c, 0]]
    # v * R is R^T v; X apart from w, or small displacements drown in its rounding
    return w[d.cells[c, b]] * R + s * (X * R - X)


@wp.kernel
def _cell_forces(
    first: wp.int32,
    d: CellData,
    w: wp.array(dtype=wp.vec3d),
    s: wp.float64,
    out: wp.array2d(dtype=wp.vec3d),
):
    c = first + wp.tid()
    R = d.rotations[c]
    for a in range(d.k):
        g = wp.vec3d()
        for b in range(d.k):
            G = gradient_products(d.kind, d.table, d.row[c], a, b)
            g += _lame_product(G, _local(d, c, b, R, w, s), d.lam[c], d.mu[c])
        out[c, a] = R * g


@wp.kernel
def _cell_forces_tangent(
    first: wp.int32,
    d: CellData,
    w: wp.array(dtype=wp.vec3d),
    s: wp.float64,
    d_w: wp.array(dtype=wp.vec3d),
    turned: wp.array(dtype=wp.vec3d),
    d_turned: wp.array(dtype=wp.vec3d),
    d_lam: wp.array(dtype=wp.float64),
    d_mu: wp.array(dtype=wp.float64),
    corotated: wp.int32,
    out: wp.array2d(dtype=wp.vec3d),
):
    """Change of the force by changes of w, of the rotations' displacement and of the moduli."""
    c = first + wp.tid()
    R = d.rotations[c]
    dR = wp.mat33d()
    if corotated == 1:
        F = deformation_gradient(d, c, turned)
        dF = deformation_gradient(d, c, d_turned) - wp.identity(n=3, dtype=wp.float64)
        dR = _frame_derivative(d, R, F, dF)
    for a in range(d.k):
        g = wp.vec3d()
        dg = wp.vec3d()
        for b in range(d.k):
            G = gradient_products(d.kind, d.table, d.row[c], a, b)
            X = d.positions[d.cells[c, b]] - d.positions[d.cells[c, 0]]
            q = w[d.cells[c, b]] + s * X
            y = q * R - s * X
            g += _lame_product(G, y, d.lam[c], d.mu[c])
            dg += _lame_product(G, y, d_lam[c], d_mu[c])
            dg += _lame_product(G, q * dR + d_w[d.cells[c, b]] * R, d.lam[c], d.mu[c])
        out[c, a] = dR * g + R * dg


@wp.kernel
def _cell_forces_adjoint(
    first: wp.int32,
    d: CellData,
    w: wp.array(dtype=wp.vec3d),
    s: wp.float64,
    turned: wp.array(dtype=wp.vec3d),
    f_bar: wp.array(dtype=wp.vec3d),
    corotated: wp.int32,
    lam_bar: wp.array(dtype=wp.float64),
    mu_bar: wp.array(dtype=wp.float64),
    turned_bar: wp.array2d(dtype=wp.vec3d),
    w_bar: wp.array2d(dtype=wp.vec3d),
):
    """Transpose of `_cell_forces_tangent`; adds to lam_bar and mu_bar."""
    c = first + wp.tid()
    R = d.rotations[c]
    R_bar = wp.mat33d()
    lam_sum = wp.float64(0.0)
    mu_sum = wp.float64(0.0)
    for b in range(d.k):
        X = d.positions[d.cells[c, b]] - d.positions[d.cells[c, 0]]
        q = w[d.cells[c, b]] + s * X
        y = q * R - s * X
        g = wp.vec3d()  # g_b, by symmetry of K the same pair of nodes serves z_b
        z = wp.vec3d()
        for a in range(d.k):
            G = gradient_products(d.kind, d.table, d.row[c], b, a)
            Xa = d.positions[d.cells[c, a]] - d.positions[d.cells[c, 0]]
            ya = (w[d.cells[c, a]] + s * Xa) * R - s * Xa
            ga = f_bar[d.cells[c, a]] * R
            g += _lame_product(G, ya, d.lam[c], d.mu[c])
            z += _lame_product(G, ga, d.lam[c], d.mu[c])
            lam_sum += wp.dot(y, G * ga)
            mu_sum += wp.dot(y, ga * G + wp.trace(G) * ga)
        R_bar += wp.outer(f_bar[d.cells[c, b]], g) + wp.outer(q, z)
        w_bar[c, b] = R * z
    lam_bar[c] = lam_bar[c] + lam_sum
    mu_bar[c] = mu_bar[c] + mu_sum
    if corotated == 1:
        F = deformation_gradient(d, c, turned)
        F_bar = _frame_adjoint(d, R, F, R_bar)
        for a in range(d.k):
            g_a = mean_gradient(d.kind, d.table, d.row[c], a, d.centre_gradient)
            turned_bar[c, a] = F_bar * g_a


@wp.func
def _gradient_integral(d: CellData, c: int, a: int) -> wp.vec3d:
    """Integral of grad N_a over the filled part: G_ab summed over b against a linear field."""
    total = wp.vec3d()
    for b in range(d.k):
        G = gradient_products(d.kind, d.table, d.row[c], a, b)
        X = d.positions[d.cells[c, b]] - d.positions[d.cells[c, 0]]
        total += wp.vec3d(G[0, 0] * X[0], G[1, 0] * X[0], G[2, 0] * X[0])
    return total


@wp.kernel
def _rest_forces(
    first: wp.int32,
    d: CellData,
    gradient_integral: wp.array2d(dtype=wp.vec3d),
    dim: wp.float64,
    factor: wp.float64,
    out: wp.array(dtype=wp.vec3d),
):
    """out += factor * R K X, the force of the rest shape taken as a displacement.

    K X is the stress (dim lambda + 2 mu) I of a unit stretch, so it needs no pairs of nodes.
    """
    i = first + wp.tid()
    total = wp.vec3d()
    for e in range(d.incident_start[i], d.incident_start[i + 1]):
        c = d.incident[e] / d.k
        stress = dim * d.lam[c] + wp.float64(2.0) * d.mu[c]
        a = d.incident[e] - c * d.k
        total += stress * (d.rotations[c] * gradient_integral[d.row[c], a])
    out[i] = out[i] + factor * total


@wp.kernel
def _gradient_integrals(
    first: wp.int32, d: CellData, cell: wp.array(dtype=wp.int32), out: wp.array2d(dtype=wp.vec3d)
):
    r = first + wp.tid()
    for a in range(d.k):
        out[r, a] = _gradient_integral(d, cell[r], a)


@wp.kernel
def _add_scaled(
    first: wp.int32,
    w: wp.array(dtype=wp.vec3d),
    s: wp.float64,
    x: wp.array(dtype=wp.vec3d),
    out: wp.array(dtype=wp.vec3d),
):
    i = first + wp.tid()
    out[i] = w[i] + s * x[i]


@wp.kernel
def _add_scaled_difference(
    first: wp.int32,
    c0: wp.float64,
    x: wp.array(dtype=wp.vec3d),
    c1: wp.float64,
    mass: wp.array(dtype=wp.float64),
    y: wp.array(dtype=wp.vec3d),
    out: wp.array(dtype=wp.vec3d),
):
    i = first + wp.tid()
    out[i] = out[i] + c0 * x[i] + (c1 * mass[i]) * y[i]


@wp.kernel
def _gather(
    first: wp.int32,
    d: CellData,
    per_cell: wp.array2d(dtype=wp.vec3d),
    factor: wp.float64,
    out: wp.array(dtype=wp.vec3d),
):
    """out[i] += factor * sum of the cells' contributions to node i."""
    i = first + wp.tid()
    total = wp.vec3d()
    for e in range(d.incident_start[i], d.incident_start[i + 1]):
        c = d.incident[e] / d.k
        total += per_cell[c, d.incident[e] - c * d.k]
    out[i] = out[i] + factor * total


@wp.func
def _ghost_force(
    scaled: wp.array(dtype=wp.vec3d),
    neighbour: wp.array2d(dtype=wp.int32),
    w: wp.array(dtype=wp.vec3d),
    i: int,
) -> wp.vec3d:
    total = wp.vec3d()
    for axis in range(3):
        v = scaled[i][axis]
        if v != wp.float64(0.0):
            minus = neighbour[i, 2 * axis]
            plus = neighbour[i, 2 * axis + 1]
            total -= (wp.float64(2.0) * v) * _second_difference(w, i, minus, plus)
        for side in range(2):
            m = neighbour[i, 2 * axis + side]
            if m >= 0:
                v = scaled[m][axis]
                if v != wp.float64(0.0):
                    minus = neighbour[m, 2 * axis]
                    plus = neighbour[m, 2 * axis + 1]
                    total += v * _second_difference(w, m, minus, plus)
    return total


@wp.kernel
def _ghost_forces(
    first: wp.int32,
    scaled: wp.array(dtype=wp.vec3d),
    neighbour: wp.array2d(dtype=wp.int32),
    w: wp.array(dtype=wp.vec3d),
    factor: wp.float64,
    out: wp.array(dtype=wp.vec3d),
):
    i = first + wp.tid()
    out[i] = out[i] + factor * _ghost_force(scaled, neighbour, w, i)


@wp.kernel
def _ghost_adjoint(
    first: wp.int32,
    d: CellData,
    weight: wp.array(dtype=wp.vec3d),
    neighbour: wp.array2d(dtype=wp.int32),
    w: wp.array(dtype=wp.vec3d),
    f_bar: wp.array(dtype=wp.vec3d),
    lam_bar: wp.array(dtype=wp.float64),
    mu_bar: wp.array(dtype=wp.float64),
):
    """Moduli's share of the ghost force: node energies handed to the cells around the node."""
    c = first + wp.tid()
    total = wp.float64(0.0)
    for a in range(d.k):
        i = d.cells[c, a]
        for axis in range(3):
            v = weight[i][axis]
            if v > wp.float64(0.0):
                minus = neighbour[i, 2 * axis]
                plus = neighbour[i, 2 * axis + 1]
                product = wp.dot(
                    _second_difference(w, i, minus, plus),
                    _second_difference(f_bar, i, minus, plus),
                )
                total += v * product / wp.float64(d.incident_start[i + 1] - d.incident_start[i])
    lam_bar[c] = lam_bar[c] + total
    mu_bar[c] = mu_bar[c] + wp.float64(2.0) * total


@dataclass(frozen=True)
class _Ghost:
    weight: wp.array
    neighbour: wp.array
    slot: wp.array
    scaled: wp.array


class Elasticity:
    """A body's elastic operator on the device. Fields are wp.array(dtype=vec3d), one per node."""

    def __init__(self, body: Body, *, model: str = "corotated"):
        self.body = body
        self.corotated = model in FRAMES
        n, m, k = len(body.nodes), len(body.cells), body.cells.shape[1]
        self.node_count, self.cell_count = n, m
        positions = np.zeros((n, 3))
        positions[:, : body.dim] = body.nodes
        data = CellData()
        data.kind = body.kind
        data.k = k
        data.frame = FRAMES.get(model, POLAR_FRAME)
        centre = np.zeros(3)
        if body.kind == GRID:
            centre[: body.dim] = 1.0 / (2 ** (body.dim - 1) * body.spacing)
        data.centre_gradient = wp.vec3d(*centre)
        data.cells = to_device(body.cells, wp.int32)
        data.row = to_device(body.geometry_row, wp.int32)
        data.table = to_device(body.geometry_table, wp.float64)
        data.positions = to_device(positions, wp.vec3d)
        data.lam = zeros(m, wp.float64)
        data.mu = zeros(m, wp.float64)
        data.rotations = to_device(np.broadcast_to(np.eye(3), (m, 3, 3)), wp.mat33d)
        data.incident_start = to_device(body.pattern.incident_start, wp.int32)
        data.incident = to_device(body.pattern.incident, wp.int32)
        self.data = data
        self._slot = to_device(body.pattern.slot, wp.uint8)
        rows = len(body.geometry_table)
        example = np.zeros(rows, np.int32)  # any cell with that row
        example[body.geometry_row] = np.arange(m)
        self._gradient_integrals = zeros((rows, k), wp.vec3d)
        launch(
            _gradient_integrals,
            rows,
            [data, to_device(example, wp.int32), self._gradient_integrals],
        )
        self._per_cell: dict[int, wp.array] = {}
        self._product = zeros(n, wp.vec3d)
        self._ghost: _Ghost | None = None
        if body.ghost is not None:
            self._ghost = _Ghost(
                to_device(body.ghost.weight, wp.vec3d),
                to_device(body.ghost.neighbour, wp.int32),
                to_device(body.ghost.slot, wp.uint8),
                zeros(n, wp.vec3d),
            )

    def set_material(self, lam: np.ndarray, mu: np.ndarray) -> None:
        """Lame coefficients of every cell [Pa]."""
        self.data.lam.assign(np.ascontiguousarray(lam, float))
        self.data.mu.assign(np.ascontiguousarray(mu, float))
        if self._ghost is not None:
            launch(
                _ghost_scale, self.node_count, [self.data, self._ghost.weight, self._ghost.scaled]
            )

    def rotate(self, u: wp.array) -> None:
        """Take the cells' rotations from the displacement u (identity in the linear model)."""
        if self.corotated:
            launch(_rotations, self.cell_count, [self.data, u], grain=HEAVY)

    def assemble(
        self, matrix, mass: wp.array, *, mass_factor: float, stiffness_factor: float
    ) -> None:
        """matrix := mass_factor M + stiffness_factor K, at the current rotations."""
        launch(
            _assemble,
            self.node_count,
            [
                self.data, self._slot, matrix.row_start, matrix.diagonal, mass,
                mass_factor, stiffness_factor, matrix.values,
            ],
            grain=HEAVY,
        )  # fmt: skip
        if self._ghost is not None and stiffness_factor != 0.0:
            g = self._ghost
            launch(
                _assemble_ghost,
                self.node_count,
                [stiffness_factor, g.scaled, g.neighbour, g.slot, matrix.row_start, matrix.values],
            )

    def add_force(self, w: wp.array, s: float, out: wp.array, *, factor: float = 1.0) -> None:
        """out += factor * f(w, s), at the current rotations."""
        cells = self._scratch()
        launch(_cell_forces, self.cell_count, [self.data, w, s, cells], grain=HEAVY)
        launch(_gather, self.node_count, [self.data, cells, factor, out])
        if self._ghost is not None:
            g = self._ghost
            launch(_ghost_forces, self.node_count, [g.scaled, g.neighbour, w, factor, out])

    def add_force_by_matrix(
        self, matrix, mass: wp.array, w: wp.array, s: float, out: wp.array, scratch: wp.array,
        *, mass_factor: float, stiffness_factor: float, factor: float = 1.0,
    ) -> None:
        """`add_force` from a matrix just assembled: K_R (w + s X) - s R K X.

        One product with the matrix costs a sixth of the cell kernel. scratch may be w.
        """
        launch(_add_scaled, self.node_count, [w, s, self.data.positions, scratch])
        product = self._product
        matrix.multiply(scratch, product, masked=False)
        launch(
            _add_scaled_difference,
            self.node_count,
            [factor / stiffness_factor, product, -factor * mass_factor / stiffness_factor, mass,
             scratch, out],
        )
        if self.corotated or s != 0.0:
            launch(
                _rest_forces,
                self.node_count,
                [self.data, self._gradient_integrals, float(self.body.dim), -factor * s, out],
                grain=4000,
            )

    def add_force_tangent(
        self, w, s, d_w, turned, d_turned, d_lam, d_mu, out: wp.array, *, factor: float = 1.0
    ) -> None:
        """out += factor * df for changes of w, of the rotations' displacement and of the moduli."""
        cells = self._scratch()
        launch(
            _cell_forces_tangent,
            self.cell_count,
            [self.data, w, s, d_w, turned, d_turned, d_lam, d_mu, int(self.corotated), cells],
            grain=HEAVY,
        )
        launch(_gather, self.node_count, [self.data, cells, factor, out])
        if self._ghost is not None:
            g = self._ghost
            launch(_ghost_forces, self.node_count, [g.scaled, g.neighbour, d_w, factor, out])
            change = zeros(self.node_count, wp.vec3d)
            probe = CellData()
            for name in ("k", "incident_start", "incident"):
                setattr(probe, name, getattr(self.data, name))
            probe.lam, probe.mu = d_lam, d_mu
            launch(_ghost_scale, self.node_count, [probe, g.weight, change])
            launch(_ghost_forces, self.node_count, [change, g.neighbour, w, factor, out])

    def add_force_adjoint(
        self, w, s, turned, f_bar, lam_bar, mu_bar, turned_bar: wp.array, w_bar: wp.array
    ) -> None:
        """Transpose of `add_force_tangent`: adds to lam_bar, mu_bar, turned_bar and w_bar."""
        cells, second = self._scratch(), self._scratch(1)
        launch(
            _cell_forces_adjoint,
            self.cell_count,
            [self.data, w, s, turned, f_bar, int(self.corotated), lam_bar, mu_bar, cells, second],
            grain=HEAVY,
        )
        launch(_gather, self.node_count, [self.data, second, 1.0, w_bar])
        if self.corotated:
            launch(_gather, self.node_count, [self.data, cells, 1.0, turned_bar])
        if self._ghost is not None:
            g = self._ghost
            launch(_ghost_forces, self.node_count, [g.scaled, g.neighbour, f_bar, 1.0, w_bar])
            launch(
                _ghost_adjoint,
                self.cell_count,
                [self.data, g.weight, g.neighbour, w, f_bar, lam_bar, mu_bar],
            )

    def _scratch(self, number: int = 0) -> wp.array:
        if number not in self._per_cell:
            self._per_cell[number] = zeros((self.cell_count, int(self.data.k)), wp.vec3d)
        return self._per_cell[number]
