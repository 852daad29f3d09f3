"""Corotated linear elasticity as an energy: one frame a cell, and forces that are its gradient.

The equations are in fem.forces.corotation_kernels. Stretched without bending, a cell has the energy
V (mu |S - I|^2 + lambda/2 tr(S - I)^2) of fem.laws.corotated; bending is taken in the cell's frame,
so that a step costs little more than one with frozen frames, and no point needs a rotation of its
own. Stiffness damping is the force beta R K R^T of a rate, R at the predicted displacement.

The class has the interface of fem.forces.hyperelastic.Hyperelasticity, with (lambda, mu) as
parameters.
"""

import numpy as np
import warp as wp

from pliant.core.launch import launch, share, to_device, zeros
from pliant.fem.bodies.body import Body
from pliant.fem.forces.assembly import assemble_corotation
from pliant.fem.forces.cell_data import HEAVY
from pliant.fem.forces.corotation_kernels import (
    corotated_changes,
    corotated_forces,
    corotated_pull,
    corotated_tangents,
    gather_two,
)
from pliant.fem.forces.elasticity import Elasticity, add_scaled, gather
from pliant.fem.forces.force_derivatives import add_force_adjoint, add_force_tangents
from pliant.fem.forces.mass import MassMatrix
from pliant.fem.laws.law import Law


class Corotation:
    """A body's corotated energy on the device. Fields are wp.array(dtype=vec3d), one per node.

    clamped_converges: in a time step the warped stiffness needs no more iterations than the exact
    tangent (torus, dragon: 2.0, 2.4 both) and costs half.
    elastic: the operator that is linear between two rotations; damping and modes take it.
    """

    clamped_converges = True

    def __init__(self, body: Body, law: Law, elastic: Elasticity):
        self.body, self.elastic = body, elastic
        self.node_count, self.cell_count = len(body.nodes), len(body.cells)
        self.data = elastic.data
        self.ghost = elastic.ghost
        self._slot = share(body.pattern.slot, wp.uint8)
        shape = body.cells.shape
        self._local, self._spun, self._cells = (zeros(shape, wp.vec3d) for _ in range(3))
        self._rotations = zeros(self.cell_count, wp.mat33d)
        self._parts: tuple[wp.array, wp.array] | None = None
        self._rotated_at: wp.array | None = None
        self._measured_at: wp.array | None = None
        self._energy, self._stretch = (zeros(self.cell_count, wp.float64) for _ in range(2))
        self._ghosted = zeros(self.node_count, wp.vec3d)
        self._last_viscous: tuple[wp.array, wp.array] | None = None
        self.set_law(law)

    def set_law(self, law: Law) -> None:
        """Other moduli."""
        self.law = law
        self._measured_at = None
        lam, mu = (np.broadcast_to(x, (self.cell_count,)) for x in law.lame())
        self.elastic.set_material(lam, mu)
        self.lam, self.mu = self.data.lam, self.data.mu

    def energy(self, u: wp.array) -> float:
        """Stored energy [J], without the ghost penalty."""
        self._measure(u)
        return float(self._energy.numpy().sum())

    def stretches(self, u: wp.array) -> np.ndarray:
        """det F of the cells' mean deformation gradients, (cells,); negative: inside out."""
        self._measure(u)
        return self._stretch.numpy()

    def _measure(self, u: wp.array) -> None:
        """Energies and stretches at u; the last force has left them if it was taken there."""
        if u is not self._measured_at:
            self._place_forces(u, self.lam, self.mu)
            self._measured_at = u

    def _place_forces(self, u: wp.array, lam: wp.array, mu: wp.array) -> None:
        launch(
            corotated_forces, self.cell_count,
            [self.data, u, lam, mu, self._local, self._cells, self._energy, self._stretch],
            grain=HEAVY,
        )  # fmt: skip
        self._measured_at = None

    def add_force(
        self, u: wp.array, out: wp.array, *, factor: float = 1.0, ghost: bool = True
    ) -> None:
        """out += factor * internal force at displacement u."""
        self._add_forces(u, self.lam, self.mu, factor, out)
        self._measured_at = u
        if ghost:
            self._add_ghost(u, factor, out)

    def _add_forces(self, u, lam: wp.array, mu: wp.array, factor: float, out: wp.array) -> None:
        self._place_forces(u, lam, mu)
        gather(self.data, self._cells, factor, out)

    def add_viscous(self, at: wp.array, w: wp.array, out: wp.array, *, factor: float = 1.0) -> None:
        """out += factor * R K R^T w, R at the displacement `at`."""
        self._rotate(at)
        self._last_viscous = None
        self.elastic.add_force(w, 0.0, out, factor=factor)

    def _rotate(self, at: wp.array) -> None:
        """Frames of the damping; `at` is a field that nobody changes, such as a prediction."""
        if at is not self._rotated_at:
            self.elastic.rotate(at)
            self._rotated_at = at

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
        if factor == 0.0 or viscous_factor == 0.0:
            self.add_force(u, out, factor=factor)
            if viscous_factor != 0.0:
                self.add_viscous(at, w, out, factor=viscous_factor)
            return
        self._rotate(at)
        self._place_forces(u, self.lam, self.mu)
        self._measured_at = u
        viscous = self.elastic.cell_forces(w, 0.0)
        launch(
            gather_two, self.node_count,
            [self.data, self._cells, factor, viscous, viscous_factor, out], grain=HEAVY,
        )  # fmt: skip
        self._last_viscous = (w, viscous)
        if self.ghost is not None:  # linear and blind to rotations: one pass over the sum will do
            add_scaled(u, viscous_factor / factor, w, self._ghosted)
            self.ghost.add_force(self._ghosted, out, factor=factor)

    def add_last_viscous(self, at: wp.array, w: wp.array, out: wp.array, *, factor: float) -> None:
        """`add_viscous`, quicker where `add_forces` was last given this w."""
        if self._last_viscous is None or self._last_viscous[0] is not w:
            self.add_viscous(at, w, out, factor=factor)
            return
        gather(self.data, self._last_viscous[1], factor, out)
        self._add_ghost(w, factor, out)

    def last_force(self, u: wp.array) -> wp.array:
        """Internal force at u, where `add_forces` was last."""
        out = zeros(self.node_count, wp.vec3d)
        gather(self.data, self._cells, 1.0, out)
        self._add_ghost(u, 1.0, out)
        return out

    def _add_ghost(self, w: wp.array, factor: float, out: wp.array) -> None:
        if self.ghost is not None:
            self.ghost.add_force(w, out, factor=factor)

    def _tangents(self, u: wp.array, *, exact: bool) -> tuple[wp.array, wp.array]:
        """The cells' parts of the tangent at u; W and B only if exact."""
        if self._parts is None:
            self._parts = (zeros(self.body.cells.shape, wp.mat33d),
                           zeros(self.body.cells.shape, wp.mat33d))  # fmt: skip
        launch(
            corotated_tangents, self.cell_count,
            [
                self.data, u, int(exact), self._local, self._spun, self._cells, self._rotations,
                *self._parts,
            ],
            grain=HEAVY,
        )  # fmt: skip
        return self._parts

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
        """matrix := mass_factor M + stiffness_factor H(u) + viscous_factor K_R(viscous_at).

        project: without the parts of H that may be negative, and with all of it at the rotations
        of u, for Newton's method in a time step.
        """
        parts = self._tangents(u, exact=not project)
        if project:  # one set of rotations will do: those of the damping are hardly different
            stiffness_factor, viscous_factor = stiffness_factor + viscous_factor, 0.0
        if viscous_factor != 0.0:
            self._rotate(u if viscous_at is None else viscous_at)
        assemble_corotation(
            self.data, self._slot, matrix, mass, self._rotations, *parts, mass_factor=mass_factor,
            stiffness_factor=stiffness_factor, viscous_factor=viscous_factor, exact=not project,
        )  # fmt: skip
        stiff = stiffness_factor + viscous_factor
        if self.ghost is not None and stiff != 0.0:
            self.ghost.assemble(matrix, stiff, mirrored=False)
        matrix.mirror()

    def add_force_change(
        self,
        u: wp.array,
        d_u: wp.array,
        out: wp.array,
        *,
        d_p: np.ndarray | None = None,
        factor: float = 1.0,
    ) -> None:
        """out += factor * (H(u) d_u + d force by a change d_p (cells, 2) of lambda and mu).

        Symmetric in d_u, so the same call is its transpose.
        """
        parts = self._tangents(u, exact=True)
        launch(
            corotated_changes, self.cell_count,
            [self.data, u, d_u, self._rotations, *parts, self._local, self._cells], grain=HEAVY,
        )  # fmt: skip
        gather(self.data, self._cells, factor, out)
        self._add_ghost(d_u, factor, out)
        if d_p is not None:  # forces are linear in the moduli
            lam, mu = (to_device(d_p[:, j], wp.float64) for j in range(2))
            self._add_forces(u, lam, mu, factor, out)

    def parameter_pull(self, u: wp.array, y: wp.array, *, factor: float = 1.0) -> np.ndarray:
        """factor * y^T d force / d (lambda, mu), (cells, 2); without the ghost penalty."""
        out = zeros(self.cell_count, wp.vec2d)
        launch(
            corotated_pull, self.cell_count,
            [self.data, u, y, factor, self._local, self._cells, out], grain=HEAVY,
        )  # fmt: skip
        return out.numpy()

    def add_viscous_change(
        self, at, d_at, w, d_w, d_lam, d_mu, out: wp.array, *, factor: float = 1.0
    ) -> None:
        """out += factor * change of `add_viscous`, the ghost penalty's by moduli not included."""
        self.add_viscous(at, d_w, out, factor=factor)
        add_force_tangents(
            self.data, w, 0.0, at, _as_column(d_at), _as_column(d_lam), _as_column(d_mu),
            _as_column(out), factor,
        )  # fmt: skip

    def viscous_pull(self, at, w, y, *, factor: float, at_bar: wp.array):
        """Transpose of `add_viscous_change`: (lam_bar, mu_bar), and adds to at_bar."""
        self._rotate(at)
        lam_bar, mu_bar = (zeros(self.cell_count, wp.float64) for _ in range(2))
        add_force_adjoint(self.data, w, 0.0, at, y, lam_bar, mu_bar, self._cells)
        gather(self.data, self._cells, factor, at_bar)
        return factor * lam_bar.numpy(), factor * mu_bar.numpy()


def _as_column(array: wp.array) -> wp.array:
    """The same memory seen as (n, 1)."""
    return array.reshape((len(array), 1))
