"""Forces of a strain that the cells keep beside that of their nodes: what a viscoelastic body has.

A strain is an array (cells * corners,) of vectors in the cells' frames, as y = R^T (X + u) - X is:
it turns with the cell. It exerts on the nodes f = G(u)^T K strain, where dy = G(u) du and K is the
cells' stiffness about their rest with mean dilatation, so that the power of f is that of the stress
K strain: frames, translations and spins do no work, whatever the law of the body. The equations are
in fem.forces.overstrain_kernels.
"""

import numpy as np
import warp as wp

from pliant.core.launch import launch, share, zeros
from pliant.fem.forces.assembly import add_overstrain
from pliant.fem.forces.cell_data import HEAVY, CellData
from pliant.fem.forces.elasticity import Elasticity, gather
from pliant.fem.forces.overstrain_kernels import (
    local_changes,
    local_displacements,
    moduli_products,
    overstrain_changes,
    overstrain_forces,
    overstrain_tangents,
    stiff_products,
    turned_forces,
)


class Overstrain:
    """The operators of one body; `rest` has its geometry. Moduli are those of K."""

    def __init__(self, rest: Elasticity):
        self.cell_count, self.corners = rest.cell_count, int(rest.data.k)
        self.node_count = rest.node_count
        self.size = self.cell_count * self.corners
        """Vectors in a strain."""
        self.turns = int(rest.corotated)
        self.data = data = CellData()
        for name in CellData.vars:
            setattr(data, name, getattr(rest.data, name))
        data.lam, data.mu = (zeros(self.cell_count, wp.float64) for _ in range(2))
        self._slot = share(rest.body.pattern.slot, wp.uint8)
        shape = (self.cell_count, self.corners)
        self._one, self._two, self._three = (zeros(shape, wp.vec3d) for _ in range(3))
        self._rotations = zeros(self.cell_count, wp.mat33d)
        self._parts: tuple[wp.array, wp.array] | None = None

    def set_material(self, lam: np.ndarray, mu: np.ndarray) -> None:
        """Moduli of every cell [Pa]."""
        self.data.lam.assign(np.ascontiguousarray(lam, float))
        self.data.mu.assign(np.ascontiguousarray(mu, float))

    def strain(self, u: wp.array) -> wp.array:
        """y at the displacement u."""
        out = zeros(self.size, wp.vec3d)
        self._run(local_displacements, [self.turns, u, self._by_cell(out)])
        return out

    def strain_change(self, u: wp.array, d_u: wp.array) -> wp.array:
        """dy = G(u) d_u."""
        out = zeros(self.size, wp.vec3d)
        self._run(local_changes, [self.turns, u, d_u, self._by_cell(out)])
        return out

    def add_strain_pull(
        self, u: wp.array, bar: wp.array, out: wp.array, *, factor: float = 1.0
    ) -> None:
        """out += factor * G(u)^T bar."""
        self._run(turned_forces, [self.turns, u, self._by_cell(bar), self._one])
        gather(self.data, self._one, factor, out)

    def add_force(
        self, u: wp.array, share: float, past: wp.array, out: wp.array, *, factor: float
    ) -> None:
        """out += factor * G(u)^T K (share y + past), in one pass."""
        self._run(
            overstrain_forces, [self.turns, u, share, self._by_cell(past), self._one, self._two]
        )
        gather(self.data, self._two, factor, out)

    def stress(self, strain: wp.array, moduli: tuple[wp.array, wp.array] | None = None) -> wp.array:
        """K strain, for other moduli (lam, mu) if given."""
        out = zeros(self.size, wp.vec3d)
        lam, mu = moduli or (self.data.lam, self.data.mu)
        self._run(stiff_products, [lam, mu, self._by_cell(strain), self._by_cell(out)])
        return out

    def by_moduli(self, strain: wp.array, other: wp.array) -> np.ndarray:
        """other . d (K strain) / d (lam, mu) of every cell, (cells, 2)."""
        out = zeros(self.cell_count, wp.vec2d)
        arrays = [self._by_cell(strain), self._by_cell(other), self._one, out]
        self._run(moduli_products, arrays)
        return out.numpy()

    def assemble(
        self, matrix, u: wp.array, stress: wp.array, *, share: float, factor: float, exact: bool
    ) -> None:
        """matrix += factor * d/du G(u)^T stress, where the stress changes by share * K dy.

        exact: with what the turning of the frames adds, which may be negative.
        """
        exact = exact and self.turns == 1
        spin, bend = self._tangents(u, stress, share, exact=exact)
        add_overstrain(
            self.data, self._slot, matrix, self._rotations, spin, bend,
            stiffness_factor=share * factor, turn_factor=factor, exact=exact,
        )  # fmt: skip
        matrix.mirror()

    def add_force_change(
        self, u: wp.array, stress: wp.array, d_u: wp.array, out: wp.array, *, share: float,
        factor: float,
    ) -> None:  # fmt: skip
        """out += factor * (d/du G(u)^T stress) d_u, as in `assemble`; symmetric in d_u."""
        parts = self._tangents(u, stress, share, exact=True)
        self._run(overstrain_changes, [d_u, share, self._rotations, *parts, self._one, self._two])
        gather(self.data, self._two, factor, out)

    def _tangents(self, u: wp.array, stress: wp.array, share: float, *, exact: bool):
        if self._parts is None:
            shape = (self.cell_count, self.corners)
            self._parts = (zeros(shape, wp.mat33d), zeros(shape, wp.mat33d))
        self._run(
            overstrain_tangents,
            [
                self.turns, u, share, self._by_cell(stress), int(exact), self._one, self._two,
                self._three, self._rotations, *self._parts,
            ],
        )  # fmt: skip
        return self._parts

    def _by_cell(self, strain: wp.array) -> wp.array:
        """The same memory seen as (cells, corners)."""
        return strain.reshape((self.cell_count, self.corners))

    def _run(self, kernel, inputs: list) -> None:
        launch(kernel, self.cell_count, [self.data, *inputs], grain=HEAVY)
