"""Stress of a body that follows a material law, in the middle of each cell.

With F the deformation gradient there, J = det F and P = d psi / d F, the true (Cauchy) stress is
s = P F^T / J; its size after von Mises is q = sqrt(3/2 dev(s) : dev(s)), its energy per rest volume
psi(F). At small strain both are those of fem.stress.
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

import numpy as np
import warp as wp

from pliant.core.launch import launch, to_device, zeros
from pliant.fem.body import Body
from pliant.fem.cells import GRID, mean_gradient
from pliant.fem.law_kernels import law_kernels
from pliant.fem.laws.law import Law
from pliant.fem.stress import HEAVY, Stresses


@wp.kernel
def _centre_gradients(
    first: wp.int32,
    kind: wp.int32,
    centre_gradient: wp.vec3d,
    cells: wp.array2d(dtype=wp.int32),
    row: wp.array(dtype=wp.int32),
    table: wp.array2d(dtype=wp.float64),
    u: wp.array(dtype=wp.vec3d),
    out: wp.array(dtype=wp.mat33d),
):
    c = first + wp.tid()
    F = wp.identity(n=3, dtype=wp.float64)
    for a in range(cells.shape[1]):
        g = mean_gradient(kind, table, row[c], a, centre_gradient)
        F += wp.outer(u[cells[c, a]], g)
    out[c] = F


class LawStress:
    """Stresses of a body's cells under a law; geometry and parameters are on the device once."""

    def __init__(self, body: Body, law: Law):
        self._count, self._nodes, self._dim = len(body.cells), len(body.nodes), body.dim
        centre = np.zeros(3)
        if body.kind == GRID:
            centre[: body.dim] = 1.0 / (2 ** (body.dim - 1) * body.spacing)
        self._geometry = [
            body.kind, wp.vec3d(*centre), to_device(body.cells, wp.int32),
            to_device(body.geometry_row, wp.int32), to_device(body.geometry_table, wp.float64),
        ]  # fmt: skip
        self._points = law_kernels(law.energy, law.floor).points
        self._parameters = to_device(law.table(self._count), wp.float64)
        self._F, self._P, self._change = (zeros(self._count, wp.mat33d) for _ in range(3))
        self._psi = zeros(self._count, wp.float64)

    def at(self, u: np.ndarray) -> Stresses:
        """Stresses for a displacement u (nodes, dim) [m]; zero where a cell has no volume left."""
        field = np.zeros((self._nodes, 3))
        field[:, : self._dim] = u[:, : self._dim]
        inputs = [*self._geometry, to_device(field, wp.vec3d), self._F]
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
        return Stresses(np.nan_to_num(q, posinf=0.0), np.nan_to_num(self._psi.numpy(), posinf=0.0))
