"""Stress of a body that follows a material law, in the middle of each cell.

With F the deformation gradient there, J = det F and P = d psi / d F, the true (Cauchy) stress is s
= P F^T / J; its size after von Mises is q = sqrt(3/2 dev(s) : dev(s)), its energy per rest volume
psi(F). At small strain both are those of fem.forces.stress. With the mean dilatation Jbar of the
cell (fem.laws.dilatation) the energy is psi(F) - U(J) + U(Jbar); q is the same, as U is a
pressure's.
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

import numpy as np
import warp as wp

from pliant.core.launch import launch, to_device, zeros
from pliant.fem.bodies.body import Body
from pliant.fem.cutting.quadrature_points import QuadratureData, quadrature_data
from pliant.fem.forces.cell_data import cell_means
from pliant.fem.forces.law_kernels import law_kernels
from pliant.fem.forces.mean_dilatation import mean_volume
from pliant.fem.forces.stress import HEAVY, Stresses
from pliant.fem.laws.dilatation import mean_energy, volume_value
from pliant.fem.laws.law import Law


@wp.kernel
def _centre_gradients(
    first: wp.int32,
    mean: wp.array2d(dtype=wp.vec3d),
    cells: wp.array2d(dtype=wp.int32),
    row: wp.array(dtype=wp.int32),
    u: wp.array(dtype=wp.vec3d),
    out: wp.array(dtype=wp.mat33d),
):
    c = first + wp.tid()
    F = wp.identity(n=3, dtype=wp.float64)
    for a in range(cells.shape[1]):
        F += wp.outer(u[cells[c, a]], mean[row[c], a])
    out[c] = F


@wp.kernel
def _mean_volumes(
    first: wp.int32,
    d: QuadratureData,
    u: wp.array(dtype=wp.vec3d),
    out: wp.array(dtype=wp.float64),
):
    c = first + wp.tid()
    out[c] = mean_volume(d, c, u)[0]


class LawStress:
    """Stresses of a body's cells under a law; geometry and parameters are on the device once."""

    def __init__(self, body: Body, law: Law, *, dilatation: str = "mean"):
        self._count, self._nodes, self._dim = len(body.cells), len(body.nodes), body.dim
        self._geometry = [
            to_device(body.to_world(cell_means(body)[0]), wp.vec3d),
            to_device(body.cells, wp.int32), to_device(body.geometry_row, wp.int32),
        ]  # fmt: skip
        self._points = law_kernels(law.energy, law.floor).points
        self._parameters = to_device(law.table(self._count), wp.float64)
        self._F, self._P, self._change = (zeros(self._count, wp.mat33d) for _ in range(3))
        self._psi = zeros(self._count, wp.float64)
        self._data = quadrature_data(body, dilatation=dilatation)
        averaged = dilatation == "mean" and self._data.points > 1
        self._mean = mean_energy(law.energy) if averaged else None
        if self._mean is not None:
            self._volume = zeros(self._count, wp.float64)
            n = len(law.values)
            self._slopes = list(self._mean.table(law.table(self._count))[:, n : n + 3].T)

    def at(self, u: np.ndarray) -> Stresses:
        """Stresses for a displacement u (nodes, dim) [m]; zero where a cell has no volume left."""
        field = np.zeros((self._nodes, 3))
        field[:, : self._dim] = u[:, : self._dim]
        u_device = to_device(field, wp.vec3d)
        inputs = [*self._geometry, u_device, self._F]
        launch(_centre_gradients, self._count, inputs, grain=HEAVY)
        # the kernel wants a change of F as well: any will do
        inputs = [self._F, self._parameters, self._psi, self._P, self._F, self._change]
        launch(self._points, self._count, inputs, grain=HEAVY)
        F, P = self._F.numpy(), self._P.numpy()
        J = np.linalg.det(F)
        with np.errstate(divide="ignore", invalid="ignore"):
            s = P @ F.transpose(0, 2, 1) / J[:, None, None]
        dev = s - np.trace(s, axis1=1, axis2=2)[:, None, None] / 3.0 * np.eye(3)
        q = np.sqrt(1.5 * (dev * dev).sum(axis=(1, 2)))
        psi = self._psi.numpy()
        if self._mean is not None:
            launch(_mean_volumes, self._count, [self._data, u_device, self._volume], grain=HEAVY)
            U = [volume_value(x, self._slopes) for x in (self._volume.numpy(), J)]
            psi = psi + U[0] - U[1]
        finite = (np.nan_to_num(x, posinf=0.0, neginf=0.0) for x in (q, psi, s))
        return Stresses(*finite, F.copy())
