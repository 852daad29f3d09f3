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

import numpy as np
import warp as wp

from pliant.core.launch import column, launch, share, to_device, zeros
from pliant.fem.assembly import assemble
from pliant.fem.body import Body
from pliant.fem.cell_data import (
    FRAMES,
    HEAVY,
    CellData,
    cell_data,
    deformation_gradient,
    frame,
    products,
)
from pliant.fem.force_derivatives import add_force_adjoint, add_force_tangents
from pliant.fem.ghost_operator import GhostOperator


@wp.kernel
def _rotations(first: wp.int32, d: CellData, u: wp.array(dtype=wp.vec3d)):
    c = first + wp.tid()
    d.rotations[c] = frame(d, deformation_gradient(d, c, u))


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
            G = products(d, d.row[c], a, b)
            g += _lame_product(G, _local(d, c, b, R, w, s), d.lam[c], d.mu[c])
        out[c, a] = R * g


@wp.func
def _gradient_integral(d: CellData, c: int, a: int) -> wp.vec3d:
    """Integral of grad N_a over the filled part: G_ab summed over b against a linear field."""
    total = wp.vec3d()
    for b in range(d.k):
        G = products(d, d.row[c], a, b)
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


class Elasticity:
    """A body's elastic operator on the device. Fields are wp.array(dtype=vec3d), one per node."""

    def __init__(self, body: Body, *, model: str = "corotated"):
        self.body = body
        self.corotated = model in FRAMES
        m, k = len(body.cells), body.cells.shape[1]
        self.node_count, self.cell_count = len(body.nodes), m
        self.data = data = cell_data(body, model=model)
        self._slot = share(body.pattern.slot, wp.uint8)
        rows = len(body.geometry_table)
        example = np.zeros(rows, np.int32)  # any cell with that row
        example[body.geometry_row] = np.arange(m)
        self._gradient_integrals = zeros((rows, k), wp.vec3d)
        launch(
            _gradient_integrals,
            rows,
            [data, to_device(example, wp.int32), self._gradient_integrals],
        )
        self._per_cell: wp.array | None = None
        self._product = zeros(self.node_count, wp.vec3d)
        self._ghost = None if body.ghost is None else GhostOperator(body.ghost, data)

    def set_material(self, lam: np.ndarray, mu: np.ndarray) -> None:
        """Lame coefficients of every cell [Pa]."""
        self.data.lam.assign(np.ascontiguousarray(lam, float))
        self.data.mu.assign(np.ascontiguousarray(mu, float))
        if self._ghost is not None:
            self._ghost.set_material()

    def rotate(self, u: wp.array) -> None:
        """Take the cells' rotations from the displacement u (identity in the linear model)."""
        if self.corotated:
            launch(_rotations, self.cell_count, [self.data, u], grain=HEAVY)

    def assemble(
        self, matrix, mass: wp.array, *, mass_factor: float, stiffness_factor: float
    ) -> None:
        """matrix := mass_factor M + stiffness_factor K, at the current rotations."""
        self._assemble_half(matrix, mass, mass_factor, stiffness_factor)
        matrix.mirror()

    def _assemble_half(
        self, matrix, mass: wp.array, mass_factor: float, stiffness_factor: float
    ) -> None:
        """The blocks on and right of the diagonal."""
        factors = {"mass_factor": mass_factor, "stiffness_factor": stiffness_factor}
        assemble(self.data, self._slot, matrix, mass, **factors)
        if self._ghost is not None and stiffness_factor != 0.0:
            self._ghost.assemble(matrix, stiffness_factor, mirrored=False)

    def add_force(self, w: wp.array, s: float, out: wp.array, *, factor: float = 1.0) -> None:
        """out += factor * f(w, s), at the current rotations."""
        cells = self._scratch()
        launch(_cell_forces, self.cell_count, [self.data, w, s, cells], grain=HEAVY)
        launch(_gather, self.node_count, [self.data, cells, factor, out])
        if self._ghost is not None:
            self._ghost.add_force(w, out, factor=factor)

    def assemble_and_add_force(
        self, matrix, mass: wp.array, w: wp.array, s: float, out: wp.array, scratch: wp.array,
        *, mass_factor: float, stiffness_factor: float, factor: float = 1.0,
    ) -> None:
        """`assemble`, and `add_force` as K_R (w + s X) - s R K X; stiffness_factor is not zero.

        The product with the matrix, while that is mirrored, costs a tenth of the cell kernel.
        scratch may be w.
        """
        self._assemble_half(matrix, mass, mass_factor, stiffness_factor)
        launch(_add_scaled, self.node_count, [w, s, self.data.positions, scratch])
        product = self._product
        matrix.mirror_and_multiply(scratch, product)
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
                grain=HEAVY,
            )

    def add_force_tangents(
        self, w: wp.array, s: float, turned: wp.array, d_turned: wp.array, d_lam: wp.array,
        d_mu: wp.array, out: wp.array, *, factor: float = 1.0,
    ) -> None:
        """out += factor * df for changes of the rotations' displacement and of the moduli.

        d_turned, out: (nodes, directions); d_lam, d_mu: (cells, directions). A change of w is not
        among them, for f is linear in it: add_force(d_w, 0).
        """
        at = turned if self.corotated else None
        add_force_tangents(self.data, w, s, at, d_turned, d_lam, d_mu, out, factor)
        if self._ghost is None:
            return
        for j in range(out.shape[1]):
            self._ghost.add_force_by_moduli(
                w, column(d_lam, j), column(d_mu, j), column(out, j), factor=factor
            )

    def add_force_adjoint(
        self, w: wp.array, s: float, turned: wp.array, f_bar: wp.array, lam_bar: wp.array,
        mu_bar: wp.array, turned_bar: wp.array,
    ) -> None:
        """Transpose of `add_force_tangents`: adds to lam_bar, mu_bar and turned_bar."""
        cells = self._scratch()
        at = turned if self.corotated else None
        add_force_adjoint(self.data, w, s, at, f_bar, lam_bar, mu_bar, cells)
        if self.corotated:
            launch(_gather, self.node_count, [self.data, cells, 1.0, turned_bar])
        if self._ghost is not None:
            self._ghost.add_moduli_adjoint(w, f_bar, lam_bar, mu_bar)

    def release(self) -> None:
        """Give back the scratch memory of `add_force` and its derivatives; they take it anew."""
        self._per_cell = None

    def _scratch(self) -> wp.array:
        if self._per_cell is None:
            self._per_cell = zeros((self.cell_count, int(self.data.k)), wp.vec3d)
        return self._per_cell
