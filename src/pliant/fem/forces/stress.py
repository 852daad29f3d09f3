"""Mean stress and strain of each cell, for colours, files and energies.

With F = R S the deformation gradient there, the corotated strain is e = S - I (small strains:
e = sym(grad u)), the stress s = lambda tr(e) I + 2 mu e, its size after von Mises
q = sqrt(3/2 dev(s) : dev(s)) and its energy per volume w = s : e / 2. In one direction q = |E e|.
In the world the stress is R s R^T.
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

from dataclasses import dataclass

import numpy as np
import warp as wp

from pliant.core.launch import launch, to_device, zeros
from pliant.fem.bodies.body import Body
from pliant.fem.forces.cell_data import cell_means
from pliant.fem.forces.polar import rotation

HEAVY = 2000
"""Cells per thread from which the kernel is worth splitting (half a microsecond each)."""


@wp.kernel
def _stresses(
    first: wp.int32,
    corotated: wp.int32,
    mean: wp.array2d(dtype=wp.vec3d),
    cells: wp.array2d(dtype=wp.int32),
    row: wp.array(dtype=wp.int32),
    lam: wp.array(dtype=wp.float64),
    mu: wp.array(dtype=wp.float64),
    u: wp.array(dtype=wp.vec3d),
    out: wp.array(dtype=wp.vec2d),
    gradient: wp.array(dtype=wp.mat33d),
    stress: wp.array(dtype=wp.mat33d),
):
    c = first + wp.tid()
    identity = wp.identity(n=3, dtype=wp.float64)
    F = identity
    for a in range(cells.shape[1]):
        F += wp.outer(u[cells[c, a]], mean[row[c], a])
    R = identity
    gradient[c] = F
    if corotated == 1:
        R = rotation(F)
        F = wp.transpose(R) * F
    e = wp.float64(0.5) * (F + wp.transpose(F)) - identity
    s = lam[c] * wp.trace(e) * identity + wp.float64(2.0) * mu[c] * e
    dev = s - wp.trace(s) / wp.float64(3.0) * identity
    q = wp.sqrt(wp.float64(1.5) * wp.ddot(dev, dev))
    stress[c] = R * s * wp.transpose(R)
    out[c] = wp.vec2d(q, wp.float64(0.5) * wp.ddot(s, e))


@dataclass(frozen=True)
class Stresses:
    """von_mises: (cells,) [Pa]; energy_density: (cells,) [J/m^3 at rest].

    stress: (cells, 3, 3) [Pa] in the world's directions, for laws the true (Cauchy) one;
    gradient: (cells, 3, 3) the deformation gradient F; small: rotations count as strains.
    """

    von_mises: np.ndarray
    energy_density: np.ndarray
    stress: np.ndarray
    gradient: np.ndarray
    small: bool = False

    @property
    def strain(self) -> np.ndarray:
        """(cells, 3, 3): Green's (F^T F - I) / 2, which no rotation changes, in the directions at
        rest; where rotations are taken as small, (F + F^T) / 2 - I.
        """
        F, turned = self.gradient, np.swapaxes(self.gradient, 1, 2)
        return 0.5 * (F + turned if self.small else turned @ F) - np.eye(3) * (
            1.0 if self.small else 0.5
        )


class StressField:
    """Stresses of a body's cells; the geometry is on the device once."""

    def __init__(self, body: Body, *, model: str = "corotated"):
        self._count, self._nodes, self._dim = len(body.cells), len(body.nodes), body.dim
        self._geometry = [
            int(model != "linear"), to_device(body.to_world(cell_means(body)[0]), wp.vec3d),
            to_device(body.cells, wp.int32), to_device(body.geometry_row, wp.int32),
        ]  # fmt: skip
        self._out = zeros(self._count, wp.vec2d)
        self._gradient, self._stress = (zeros(self._count, wp.mat33d) for _ in range(2))
        self._small = model == "linear"

    def at(self, u: np.ndarray, lam: np.ndarray, mu: np.ndarray) -> Stresses:
        """Stresses for a displacement u (nodes, dim) [m] and moduli (cells,) [Pa]."""
        field = np.zeros((self._nodes, 3))
        field[:, : self._dim] = u[:, : self._dim]
        moduli = [to_device(np.asarray(m, float), wp.float64) for m in (lam, mu)]
        inputs = [*self._geometry, *moduli, to_device(field, wp.vec3d), self._out]
        launch(_stresses, self._count, [*inputs, self._gradient, self._stress], grain=HEAVY)
        found = self._out.numpy()
        tensors = (a.numpy().copy() for a in (self._stress, self._gradient))
        return Stresses(found[:, 0].copy(), found[:, 1].copy(), *tensors, self._small)


def to_nodes(body: Body, values: np.ndarray) -> np.ndarray:
    """Cell values (cells,) averaged to the nodes (nodes,), by the cells' filled volumes."""
    index = body.cells.reshape(-1)
    weight = np.maximum(body.node_volumes, 0.0) + 1e-6 * body.spacing**body.dim  # slivers count too
    total = np.bincount(index, weight.reshape(-1), len(body.nodes))
    given = np.bincount(index, (weight * values[:, None]).reshape(-1), len(body.nodes))
    return given / total
