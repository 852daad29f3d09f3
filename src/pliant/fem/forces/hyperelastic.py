"""Forces, energy and tangent of a body that follows a material law (see fem.laws).

f_a = sum over the quadrature points of w P(F) grad N_a, P = d psi / d F. The tangent goes into the
same 3x3 block rows as that of fem.forces.elasticity, so the same solvers serve. Stiffness damping
is the Kelvin-Voigt stress of the small-strain moduli on the rate of the Green strain,

    P_d = F~ (lambda tr(D) I + 2 mu D),   D = sym(F~^T grad w),

F~ at the predicted displacement: blind to rigid spins, symmetric, never negative, and equal to the
Rayleigh damping beta K about the rest. Ghost penalties of cut grids are those of
fem.forces.elasticity.
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

import numpy as np
import warp as wp

from pliant.core.launch import launch, to_device, zeros
from pliant.fem.bodies.body import Body
from pliant.fem.cutting.quadrature_points import (
    QuadratureData,
    gather_forces,
    lower_block,
    quadrature_data,
)
from pliant.fem.forces.cell_data import CellData
from pliant.fem.forces.elasticity import add_scaled
from pliant.fem.forces.ghost_operator import GhostOperator
from pliant.fem.forces.law_kernels import CLAMPED, law_kernels
from pliant.fem.forces.mass import MassMatrix, MassRows
from pliant.fem.forces.viscous import viscous_change, viscous_forces, viscous_pull
from pliant.fem.laws.dilatation import MeanEnergy, mean_energy
from pliant.fem.laws.law import Law

HEAVY = 200
"""Cells per thread from which these kernels are worth splitting (a few microseconds each)."""


@wp.kernel
def _assemble_cells(
    first: wp.int32,
    d: QuadratureData,
    slot: wp.array2d(dtype=wp.uint8),
    row_start: wp.array(dtype=wp.int32),
    diagonal: wp.array(dtype=wp.int32),
    mass: MassRows,
    mass_factor: wp.float64,
    blocks: wp.array2d(dtype=wp.mat33d),
    values: wp.array(dtype=wp.mat33d),
):
    """values := mass_factor M + the cells' blocks."""
    i = first + wp.tid()
    start = row_start[i]
    unit = wp.identity(n=3, dtype=wp.float64)
    for j in range(start, row_start[i + 1]):
        values[j] = wp.mat33d()
        if mass.beside.shape[0] > 0:
            values[j] = (mass_factor * mass.scale * wp.float64(mass.beside[j])) * unit
    for e in range(d.incident_start[i], d.incident_start[i + 1]):
        c = d.incident[e] / d.k
        a = d.incident[e] - c * d.k
        for b in range(d.k):
            j = start + int(slot[c, a * d.k + b])
            if b <= a:
                values[j] = values[j] + blocks[c, lower_block(a, b)]
            else:
                values[j] = values[j] + wp.transpose(blocks[c, lower_block(b, a)])
    values[diagonal[i]] = values[diagonal[i]] + (mass_factor * mass.own[i]) * unit


class Hyperelasticity:
    """A body's law on the device. Fields are wp.array(dtype=vec3d), one per node."""

    clamped_converges = False

    def __init__(self, body: Body, law: Law, *, dilatation: str = "mean"):
        self.body = body
        n, m, k = len(body.nodes), len(body.cells), body.cells.shape[1]
        self.node_count, self.cell_count = n, m
        self.data = d = quadrature_data(body, dilatation=dilatation)
        # one point is its own mean
        self.averaged = dilatation == "mean" and d.points > 1
        self._slot = to_device(body.pattern.slot, wp.uint8)
        self._cells = zeros((m, k), wp.vec4d)
        self._last = zeros(self.node_count, wp.vec3d)
        self._by_corner = zeros((m, k) if self.averaged else (1, k), wp.vec4d)
        self._blocks: wp.array | None = None
        self._energy = zeros(m, wp.float64)
        self.lam, self.mu = (zeros(m, wp.float64) for _ in range(2))
        self.ghost: GhostOperator | None = None
        if body.ghost is not None:
            moduli = CellData()
            moduli.k, moduli.cells = d.k, d.cells
            moduli.incident_start, moduli.incident = d.incident_start, d.incident
            moduli.lam, moduli.mu = self.lam, self.mu
            self.ghost = GhostOperator(body.ghost, moduli)
        self.set_law(law)

    def set_law(self, law: Law) -> None:
        """Another law or other parameters."""
        self.law = law
        mean = mean_energy(law.energy) if self.averaged else None
        self._energy_at = law.energy if mean is None else mean
        self.kernels = law_kernels(self._energy_at, law.floor)
        self._own = law.table(self.cell_count)
        table = self._own if mean is None else mean.table(self._own)
        self.parameters = to_device(table, wp.float64)
        lam, mu = (np.broadcast_to(x, (self.cell_count,)) for x in law.lame())
        # damping and ghost penalty must not be negative where a law has no bulk modulus at rest
        self.lam.assign(np.maximum(lam, 0.0))
        self.mu.assign(np.ascontiguousarray(mu, float))
        if self.ghost is not None:
            self.ghost.set_material()

    def energy(self, u: wp.array) -> float:
        """Stored energy [J], without the ghost penalty; not finite where the law is not defined."""
        launch(
            self.kernels.energies, self.cell_count,
            [self.data, u, self.parameters, self._energy], grain=HEAVY,
        )  # fmt: skip
        return float(self._energy.numpy().sum())

    def add_force(
        self, u: wp.array, out: wp.array, *, factor: float = 1.0, ghost: bool = True
    ) -> None:
        """out += factor * internal force at displacement u."""
        self._add_forces(u, u, u, 0.0, factor, out)
        if ghost:
            self._add_ghost(u, factor, out)

    def add_viscous(self, at: wp.array, w: wp.array, out: wp.array, *, factor: float = 1.0) -> None:
        """out += factor * Kelvin-Voigt force of the rate w about the displacement `at`."""
        launch(
            viscous_forces, self.cell_count,
            [self.data, at, self.lam, self.mu, w, self._cells], grain=HEAVY,
        )  # fmt: skip
        launch(gather_forces, self.node_count, [self.data, self._cells, factor, out])
        self._add_ghost(w, factor, out)

    def add_forces(
        self,
        u: wp.array,
        at: wp.array,
        w: wp.array,
        out: wp.array,
        *,
        factor: float,
        viscous_factor: float,
    ) -> None:
        """out += factor * force at u + viscous_factor * viscous force of w about `at`."""
        self._last = zeros(self.node_count, wp.vec3d)
        self.add_force(u, self._last)
        add_scaled(out, factor, self._last, out)
        if viscous_factor != 0.0:
            self.add_viscous(at, w, out, factor=viscous_factor)

    def add_last_viscous(self, at: wp.array, w: wp.array, out: wp.array, *, factor: float) -> None:
        """`add_viscous` of the w that `add_forces` was last given."""
        self.add_viscous(at, w, out, factor=factor)

    def last_force(self, u: wp.array) -> wp.array:
        """Internal force at u, where `add_forces` was last."""
        return self._last

    def _add_forces(self, u, at, w, viscous: float, factor: float, out: wp.array) -> None:
        launch(
            self.kernels.forces, self.cell_count,
            [self.data, u, self.parameters, at, w, self.lam, self.mu, viscous, self._by_corner,
             self._cells],
            grain=HEAVY,
        )  # fmt: skip
        launch(gather_forces, self.node_count, [self.data, self._cells, factor, out])

    def _add_ghost(self, w: wp.array, factor: float, out: wp.array) -> None:
        if self.ghost is not None:
            self.ghost.add_force(w, out, factor=factor)

    def assemble(
        self,
        matrix,
        mass: MassMatrix,
        u: wp.array,
        *,
        mass_factor: float,
        stiffness_factor: float,
        viscous_factor: float = 0.0,
        viscous_at: wp.array | None = None,
        project: bool = True,
    ) -> None:
        """matrix := mass_factor M + stiffness_factor K(u) + viscous_factor D(viscous_at).

        project: each point's tangent made positive definite.
        """
        k = int(self.data.k)
        if self._blocks is None:
            self._blocks = zeros((self.cell_count, k * (k + 1) // 2), wp.mat33d)
        at = u if viscous_at is None else viscous_at
        launch(
            self.kernels.tangent, self.cell_count,
            [
                self.data, u, self.parameters, stiffness_factor,
                int(CLAMPED) if project else self.kernels.exact, at, self.lam, self.mu,
                viscous_factor, self._by_corner, self._blocks,
            ],
            grain=HEAVY,
        )  # fmt: skip
        launch(
            _assemble_cells, self.node_count,
            [
                self.data, self._slot, matrix.row_start, matrix.diagonal, mass.rows, mass_factor,
                self._blocks, matrix.values,
            ],
            grain=HEAVY,
        )  # fmt: skip
        stiff = stiffness_factor + viscous_factor
        if self.ghost is not None and stiff != 0.0:
            self.ghost.assemble(matrix, stiff)

    def add_force_change(
        self,
        u: wp.array,
        d_u: wp.array,
        out: wp.array,
        *,
        d_p: np.ndarray | None = None,
        factor: float = 1.0,
    ) -> None:
        """out += factor * (K(u) d_u + d force by a change d_p (cells, parameters)); K unclamped.

        Symmetric in d_u, so the same call is its transpose.
        """
        self._add_change(self.kernels.change, u, d_u, d_p, factor, out)

    def _add_change(self, kernel, u, d_u, d_p, factor: float, out: wp.array) -> None:
        change = self.parameters
        if d_p is not None:
            if isinstance(self._energy_at, MeanEnergy):
                d_slopes = np.einsum("csp,cp->cs", self._energy_at.slope_changes(self._own), d_p)
                d_p = np.concatenate([d_p, d_slopes, np.zeros((len(d_p), 1))], axis=1)
            change = to_device(d_p, wp.float64)
        launch(
            kernel, self.cell_count,
            [self.data, u, self.parameters, d_u, change, int(d_p is not None), self._cells],
            grain=HEAVY,
        )  # fmt: skip
        launch(gather_forces, self.node_count, [self.data, self._cells, factor, out])
        self._add_ghost(d_u, factor, out)

    def parameter_pull(self, u: wp.array, y: wp.array, *, factor: float = 1.0) -> np.ndarray:
        """factor * y^T d force / d parameter, (cells, parameters); without the ghost penalty."""
        out = zeros(self.parameters.shape, wp.float64)
        launch(
            self.kernels.pull, self.cell_count,
            [self.data, u, self.parameters, y, factor, out], grain=HEAVY,
        )  # fmt: skip
        pulled = out.numpy()
        if isinstance(self._energy_at, MeanEnergy):
            n = len(self.law.values)
            by_slopes, changes = pulled[:, n:-1], self._energy_at.slope_changes(self._own)
            pulled = pulled[:, :n] + np.einsum("csp,cs->cp", changes, by_slopes)
        return pulled

    def add_viscous_change(
        self, at, d_at, w, d_w, d_lam, d_mu, out: wp.array, *, factor: float = 1.0
    ) -> None:
        """out += factor * change of `add_viscous` (d_lam, d_mu: device arrays)."""
        launch(
            viscous_change, self.cell_count,
            [self.data, at, d_at, w, d_w, self.lam, self.mu, d_lam, d_mu, self._cells],
            grain=HEAVY,
        )  # fmt: skip
        launch(gather_forces, self.node_count, [self.data, self._cells, factor, out])
        self._add_ghost(d_w, factor, out)

    def viscous_pull(self, at, w, y, *, factor: float, at_bar: wp.array):
        """Transpose of `add_viscous_change`: (lam_bar, mu_bar), and adds to at_bar."""
        lam_bar, mu_bar = (zeros(self.cell_count, wp.float64) for _ in range(2))
        launch(
            viscous_pull, self.cell_count,
            [self.data, at, w, y, self.lam, self.mu, factor, lam_bar, mu_bar, self._cells],
            grain=HEAVY,
        )  # fmt: skip
        launch(gather_forces, self.node_count, [self.data, self._cells, 1.0, at_bar])
        return lam_bar.numpy(), mu_bar.numpy()
