"""Elastic forces of a body: rotations of its cells, the matrix, forces and their derivatives.

The force on node a of a cell with rotation R is, for a field w and a number s,

    f_a = R g_a,   g_a = sum_b K_ab y_b,   y_b = R^T w_b + s (R^T X_b - Y_b),

Y the rest positions along the cells' own coordinates (X = axes Y, see fem.forces.cell_data).

With w = s u it is s times the corotated force K (R^T (X + u) - X) rotated back (seed 000, eq.
2.7.1); with R = axes it is K w. K is that of fem.forces.cell_forces. The linear model, the frozen
ones and damping need only this form; the corotated energy is fem.forces.corotation.

Cell kernels write to their own cell, node kernels gather: no atomics, the same bits every time.
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

import numpy as np
import warp as wp

from pliant.core.launch import column, launch, share, zeros
from pliant.fem.bodies.body import Body
from pliant.fem.forces.assembly import assemble
from pliant.fem.forces.cell_data import (
    FRAMES,
    HEAVY,
    CellData,
    cell_data,
    deformation_gradient,
    frame,
)
from pliant.fem.forces.cell_forces import place_forces, place_local, place_turned_lattice
from pliant.fem.forces.cells import GRID
from pliant.fem.forces.force_derivatives import add_force_adjoint, add_force_tangents
from pliant.fem.forces.ghost_operator import GhostOperator
from pliant.fem.forces.mass import MassMatrix


@wp.kernel
def _rotations(first: wp.int32, d: CellData, u: wp.array(dtype=wp.vec3d)):
    c = first + wp.tid()
    d.rotations[c] = frame(d, deformation_gradient(d, c, u))


@wp.kernel
def _cell_forces(
    first: wp.int32,
    d: CellData,
    w: wp.array(dtype=wp.vec3d),
    s: wp.float64,
    local: wp.array2d(dtype=wp.vec3d),
    out: wp.array2d(dtype=wp.vec3d),
):
    c = first + wp.tid()
    R = d.rotations[c]
    if d.kind == GRID:
        _energy = place_turned_lattice(d, c, R, wp.mat33d(), d.lam[c], d.mu[c], w, s, out)
    else:
        place_local(d, c, R, w, s, local)
        place_forces(d, c, d.lam[c], d.mu[c], local, out)
        for a in range(d.k):
            out[c, a] = R * out[c, a]


@wp.kernel
def _rest_forces(
    first: wp.int32,
    d: CellData,
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
        total += stress * d.volume[d.row[c]] * (d.rotations[c] * d.mean[d.row[c], a])
    out[i] = out[i] + factor * total


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


@wp.kernel
def _cell_energies(
    first: wp.int32,
    d: CellData,
    u: wp.array(dtype=wp.vec3d),
    local: wp.array2d(dtype=wp.vec3d),
    forces: wp.array2d(dtype=wp.vec3d),
    out: wp.array(dtype=wp.float64),
):
    """out[c] = 1/2 sum_a y_a . g_a."""
    c = first + wp.tid()
    place_local(d, c, d.rotations[c], u, wp.float64(1.0), local)
    place_forces(d, c, d.lam[c], d.mu[c], local, forces)
    total = wp.float64(0.0)
    for a in range(d.k):
        total += wp.dot(local[c, a], forces[c, a])
    out[c] = wp.float64(0.5) * total


def ghost_energy(ghost: GhostOperator | None, u: wp.array) -> float:
    """Energy [J] of the ghost penalty at u."""
    if ghost is None:
        return 0.0
    force = zeros(len(u), wp.vec3d)
    ghost.add_force(u, force)
    return 0.5 * float(np.sum(force.numpy() * u.numpy()))


@wp.kernel
def _stretches(
    first: wp.int32, d: CellData, u: wp.array(dtype=wp.vec3d), out: wp.array(dtype=wp.float64)
):
    c = first + wp.tid()
    out[c] = wp.determinant(deformation_gradient(d, c, u))


def gather(data: CellData, per_cell: wp.array, factor: float, out: wp.array) -> None:
    """out += factor * the cells' contributions (cells, k) to the nodes."""
    launch(_gather, len(out), [data, per_cell, factor, out], grain=HEAVY)


def add_scaled(w: wp.array, s: float, x: wp.array, out: wp.array) -> None:
    """out = w + s x."""
    launch(_add_scaled, len(out), [w, s, x, out])


class Elasticity:
    """A body's elastic operator on the device. Fields are wp.array(dtype=vec3d), one per node."""

    def __init__(self, body: Body, *, model: str = "corotated", dilatation: str = "mean"):
        self.body = body
        self.corotated = model in FRAMES
        self.node_count, self.cell_count = len(body.nodes), len(body.cells)
        self.data = data = cell_data(body, model=model, dilatation=dilatation)
        self._slot = share(body.pattern.slot, wp.uint8)
        self._per_cell: tuple[wp.array, wp.array] | None = None
        self._product = zeros(self.node_count, wp.vec3d)
        self.ghost = None if body.ghost is None else GhostOperator(body.ghost, data)

    def set_material(self, lam: np.ndarray, mu: np.ndarray) -> None:
        """Lame coefficients of every cell [Pa]."""
        self.data.lam.assign(np.ascontiguousarray(lam, float))
        self.data.mu.assign(np.ascontiguousarray(mu, float))
        if self.ghost is not None:
            self.ghost.set_material()

    def rotate(self, u: wp.array) -> None:
        """Take the cells' rotations from the displacement u (identity in the linear model)."""
        if self.corotated:
            launch(_rotations, self.cell_count, [self.data, u], grain=HEAVY)

    def assemble(
        self, matrix, mass: MassMatrix, *, mass_factor: float, stiffness_factor: float
    ) -> None:
        """matrix := mass_factor M + stiffness_factor K, at the current rotations."""
        self._assemble_half(matrix, mass, mass_factor, stiffness_factor)
        matrix.mirror()

    def _assemble_half(
        self, matrix, mass: MassMatrix, mass_factor: float, stiffness_factor: float
    ) -> None:
        """The blocks on and right of the diagonal."""
        factors = {"mass_factor": mass_factor, "stiffness_factor": stiffness_factor}
        assemble(self.data, self._slot, matrix, mass, **factors)
        if self.ghost is not None and stiffness_factor != 0.0:
            self.ghost.assemble(matrix, stiffness_factor, mirrored=False)

    def add_force(self, w: wp.array, s: float, out: wp.array, *, factor: float = 1.0) -> None:
        """out += factor * f(w, s), at the current rotations."""
        gather(self.data, self.cell_forces(w, s), factor, out)
        if self.ghost is not None:
            self.ghost.add_force(w, out, factor=factor)

    def cell_forces(self, w: wp.array, s: float) -> wp.array:
        """The cells' shares (cells, k) of f(w, s), without the ghost penalty's; a scratch array."""
        local, cells = self._scratch()
        launch(_cell_forces, self.cell_count, [self.data, w, s, local, cells], grain=HEAVY)
        return cells

    def stretches(self, u: wp.array) -> np.ndarray:
        """det F of the cells' mean deformation gradients, (cells,); negative: inside out."""
        out = zeros(self.cell_count, wp.float64)
        launch(_stretches, self.cell_count, [self.data, u, out], grain=HEAVY)
        return out.numpy()

    def energy(self, u: wp.array) -> float:
        """Energy [J] at the displacement u, the ghost penalty's included."""
        self.rotate(u)
        local, cells = self._scratch()
        energies = zeros(self.cell_count, wp.float64)
        launch(_cell_energies, self.cell_count, [self.data, u, local, cells, energies], grain=HEAVY)
        return float(energies.numpy().sum()) + ghost_energy(self.ghost, u)

    def assemble_and_add_force(
        self,
        matrix,
        mass: MassMatrix,
        w: wp.array,
        s: float,
        out: wp.array,
        scratch: wp.array,
        *,
        mass_factor: float,
        stiffness_factor: float,
        factor: float = 1.0,
    ) -> None:
        """`assemble`, and `add_force` as K_R (w + s X) - s R K X; stiffness_factor is not zero.

        The product with the matrix, while that is mirrored, costs a tenth of the cell kernel.
        scratch may be w.
        """
        self._assemble_half(matrix, mass, mass_factor, stiffness_factor)
        add_scaled(w, s, self.data.positions, scratch)
        product = self._product
        matrix.mirror_and_multiply(scratch, product)
        scale = factor / stiffness_factor
        add_scaled(out, scale, product, out)
        mass.add(scratch, out, -mass_factor * scale)
        if self.corotated or s != 0.0:
            launch(
                _rest_forces,
                self.node_count,
                [self.data, float(self.body.dim), -factor * s, out],
                grain=HEAVY,
            )

    def add_force_tangents(
        self,
        w: wp.array,
        s: float,
        turned: wp.array,
        d_turned: wp.array,
        d_lam: wp.array,
        d_mu: wp.array,
        out: wp.array,
        *,
        factor: float = 1.0,
    ) -> None:
        """out += factor * df for changes of the rotations' displacement and of the moduli.

        d_turned, out: (nodes, directions); d_lam, d_mu: (cells, directions). A change of w is not
        among them, for f is linear in it: add_force(d_w, 0).
        """
        at = turned if self.corotated else None
        add_force_tangents(self.data, w, s, at, d_turned, d_lam, d_mu, out, factor)
        if self.ghost is None:
            return
        for j in range(out.shape[1]):
            self.ghost.add_force_by_shear(w, column(d_mu, j), column(out, j), factor=factor)

    def add_force_adjoint(
        self,
        w: wp.array,
        s: float,
        turned: wp.array,
        f_bar: wp.array,
        lam_bar: wp.array,
        mu_bar: wp.array,
        turned_bar: wp.array,
    ) -> None:
        """Transpose of `add_force_tangents`: adds to lam_bar, mu_bar and turned_bar."""
        _, cells = self._scratch()
        at = turned if self.corotated else None
        add_force_adjoint(self.data, w, s, at, f_bar, lam_bar, mu_bar, cells)
        if self.corotated:
            gather(self.data, cells, 1.0, turned_bar)
        if self.ghost is not None:
            self.ghost.add_shear_adjoint(w, f_bar, mu_bar)

    def release(self) -> None:
        """Give back the scratch memory of `add_force` and its derivatives; they take it anew."""
        self._per_cell = None

    def _scratch(self) -> tuple[wp.array, wp.array]:
        if self._per_cell is None:
            shape = (self.cell_count, int(self.data.k))
            self._per_cell = (zeros(shape, wp.vec3d), zeros(shape, wp.vec3d))
        return self._per_cell
