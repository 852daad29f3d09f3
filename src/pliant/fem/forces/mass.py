"""The mass matrix: on grids between the lumped and the consistent one.

    M_ab = sum over cells of rho ((1 - c) delta_ab integral N_a + c integral N_a N_b),   c = 3/4.

Lumped masses sit too far out: a beam four cells across has an eighth too much rotary inertia. The
consistent matrix has all of a rigid motion's energy right and makes short waves too fast; a quarter
of the lumped one also keeps M away from zero, however a cell is cut. Simplices keep their lumped
masses.
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

from typing import Any

import numpy as np
import warp as wp
from scipy import sparse

from pliant.core.launch import launch, share, to_device, zeros
from pliant.fem.bodies.body import Body
from pliant.fem.forces.cells import pair_places

CONSISTENT = 0.75
"""Share of the consistent mass matrix. With the stiffness of fem.forces.cells (FLUCTUATION),
torsion of a beam four cells across is +0.1 % off in frequency; -1.4 % with 1/2, +1.7 % with 1."""

GRAIN = 500
"""Nodes per thread from which these kernels are worth splitting."""


@wp.struct
class MassRows:
    """own: (nodes,) the diagonal; scale * beside: (blocks of the pattern,) the rest of M.

    beside is zero on the diagonal, and empty if M is lumped. Single precision will do: what is
    rounded off is on the diagonal, so no row sum changes; and with one of the densities as scale M
    is a smooth function of it.
    """

    own: wp.array(dtype=wp.float64)
    beside: wp.array(dtype=wp.float32)
    scale: wp.float64


@wp.kernel
def _fill_beside(
    first: wp.int32,
    k: wp.int32,
    incident_start: wp.array(dtype=wp.int32),
    incident: wp.array(dtype=wp.int32),
    row_start: wp.array(dtype=wp.int32),
    slot: wp.array2d(dtype=wp.uint8),
    place: wp.array(dtype=wp.int32),
    row: wp.array(dtype=wp.int32),
    table: wp.array2d(dtype=wp.float64),
    weight: wp.array(dtype=wp.float64),
    beside: wp.array(dtype=wp.float32),
    sums: wp.array(dtype=wp.float64),
):
    """beside, for cells of these densities, and its row sums."""
    i = first + wp.tid()
    start = row_start[i]
    for j in range(start, row_start[i + 1]):
        beside[j] = wp.float32(0.0)
    for e in range(incident_start[i], incident_start[i + 1]):
        c = incident[e] / k
        a = incident[e] - c * k
        for b in range(k):
            if b != a:
                j = start + int(slot[c, a * k + b])
                m = weight[c] * table[row[c], place[a * k + b]]
                beside[j] = beside[j] + wp.float32(m)
    total = wp.float64(0.0)
    for j in range(start, row_start[i + 1]):
        total += wp.float64(beside[j])
    sums[i] = total


@wp.kernel
def _add_product(
    first: wp.int32,
    row_start: wp.array(dtype=wp.int32),
    columns: wp.array(dtype=wp.int32),
    mass: MassRows,
    factor: wp.float64,
    z: wp.array(dtype=wp.vec3d),
    out: wp.array(dtype=wp.vec3d),
):
    """out += factor M z."""
    i = first + wp.tid()
    total = mass.own[i] * z[i]
    if mass.beside.shape[0] > 0:
        for j in range(row_start[i], row_start[i + 1]):
            total += (mass.scale * wp.float64(mass.beside[j])) * z[columns[j]]
    out[i] = out[i] + factor * total


class MassMatrix:
    """M of a body on the device; lumped: its row sums on the host, (nodes,) [kg]."""

    def __init__(self, body: Body):
        self._body = body
        self._row_start = share(body.pattern.row_start, wp.int32)
        self._columns = share(body.pattern.columns, wp.int32)
        rows: Any = MassRows()
        rows.own = zeros(len(body.nodes), wp.float64)
        blocks = 0 if body.pair_table is None else len(body.pattern.columns)
        rows.beside = zeros(blocks, wp.float32)
        self.rows = rows
        self.lumped = np.zeros(len(body.nodes))
        self.of_body = 0.0  # [kg], without what is attached
        self._sums = zeros(len(body.nodes), wp.float64)
        self._filled: np.ndarray | None = None

    def set_density(self, density: np.ndarray, attached: np.ndarray | float = 0.0) -> None:
        """density: (cells,) [kg/m^3]; attached: masses of the nodes beyond it, (nodes,) [kg]."""
        body = self._body
        weights = (density[:, None] * body.node_volumes).reshape(-1)
        own = np.bincount(body.cells.reshape(-1), weights, len(body.nodes))
        self.of_body = float(own.sum())
        self.lumped = own + attached
        if not self.is_lumped:
            self.rows.scale = float(density[0])
            self._fill(CONSISTENT * (density / density[0]))
        self.rows.own.assign(self.lumped - float(self.rows.scale) * self._sums.numpy())

    def _fill(self, weight: np.ndarray) -> None:
        """`beside` and its sums; a change of the density alone leaves them as they are."""
        if self._filled is not None and np.array_equal(self._filled, weight):
            return
        self._filled = weight
        body = self._body
        k, pattern = body.cells.shape[1], body.pattern
        launch(
            _fill_beside, len(body.nodes),
            [
                k, share(pattern.incident_start, wp.int32), share(pattern.incident, wp.int32),
                self._row_start, share(pattern.slot, wp.uint8),
                to_device(pair_places(k).reshape(-1), wp.int32),
                share(body.geometry_row, wp.int32), share(body.pair_table, wp.float64),
                to_device(weight, wp.float64), self.rows.beside, self._sums,
            ],
            grain=GRAIN,
        )  # fmt: skip

    def add(self, z: wp.array, out: wp.array, factor: float) -> None:
        """out += factor M z."""
        launch(
            _add_product, len(self.lumped),
            [self._row_start, self._columns, self.rows, factor, z, out], grain=GRAIN,
        )  # fmt: skip

    @property
    def is_lumped(self) -> bool:
        """Whether M is its diagonal."""
        return self._body.pair_table is None

    def to_scipy(self) -> sparse.csr_matrix:
        """M for one component, (nodes, nodes)."""
        n = len(self.lumped)
        own = sparse.csr_matrix(sparse.diags(self.rows.own.numpy()))
        if self.is_lumped:
            return own
        p = self._body.pattern
        values = float(self.rows.scale) * self.rows.beside.numpy().astype(float)
        return own + sparse.csr_matrix((values, p.columns, p.row_start), shape=(n, n))
