"""The ghost penalty on the device: second differences across the faces of cut cells
(fem.cutting.ghost).

Its weight is the mean of 4 mu around a node (lambda + 2 mu at a Poisson's ratio of 1/3), so it
follows the material; lambda has no share, or the penalty would lock cut cells near a ratio of 1/2.
It is blind to rigid motion and needs no rotations.
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

import warp as wp

from pliant.core.launch import launch, share, to_device, zeros
from pliant.fem.cutting.ghost import GHOST_INERTIA, GhostPenalty
from pliant.fem.forces.cell_data import HEAVY, CellData
from pliant.linalg.block_rows import BlockRows, add_block, stored_at

GHOST_SHEAR = wp.constant(wp.float64(4.0))
"""Modulus of the ghost penalty over mu."""


@wp.func
def _second_difference(x: wp.array(dtype=wp.vec3d), i: int, minus: int, plus: int) -> wp.vec3d:
    return x[plus] - wp.float64(2.0) * x[i] + x[minus]


@wp.func
def _node_modulus(d: CellData, i: int) -> wp.float64:
    """Mean of 4 mu over the cells around the node: the scale of the ghost penalty."""
    total = wp.float64(0.0)
    for e in range(d.incident_start[i], d.incident_start[i + 1]):
        c = d.incident[e] / d.k
        total += GHOST_SHEAR * d.mu[c]
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
    A: BlockRows,
    mirrored: int,
    slot: wp.array2d(dtype=wp.uint8),
    i: int,
    place: int,
    amount: wp.float64,
):
    unit = wp.identity(n=3, dtype=wp.float64)
    e = A.row_start[i] + int(slot[i, place])
    if mirrored == 1:
        add_block(A, i, e, amount * unit)
    elif e >= A.diagonal[i]:
        at = stored_at(A, i, e)
        A.values[at] = A.values[at] + amount * unit


@wp.kernel
def _assemble_ghost(
    first: wp.int32,
    factor: wp.float64,
    scaled: wp.array(dtype=wp.vec3d),
    neighbour: wp.array2d(dtype=wp.int32),
    slot: wp.array2d(dtype=wp.uint8),
    mirrored: wp.int32,
    A: BlockRows,
):
    """mirrored: 0 if the blocks left of the diagonal are still to become images of the others."""
    i = first + wp.tid()
    for axis in range(3):
        base = 5 * axis
        w = factor * scaled[i][axis]
        if w > wp.float64(0.0):  # i is the middle of the triple
            _add_ghost_block(A, mirrored, slot, i, base + 1, wp.float64(-2.0) * w)
            _add_ghost_block(A, mirrored, slot, i, base + 2, wp.float64(4.0) * w)
            _add_ghost_block(A, mirrored, slot, i, base + 3, wp.float64(-2.0) * w)
        for side in range(2):  # i is an end of the triple around its neighbour m
            m = neighbour[i, 2 * axis + side]
            if m >= 0:
                v = factor * scaled[m][axis]
                if v > wp.float64(0.0):
                    step = 2 * side - 1
                    _add_ghost_block(A, mirrored, slot, i, base + 2, v)
                    _add_ghost_block(A, mirrored, slot, i, base + 2 + step, wp.float64(-2.0) * v)
                    _add_ghost_block(A, mirrored, slot, i, base + 2 + 2 * step, v)


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
    mu_bar[c] = mu_bar[c] + GHOST_SHEAR * total


class GhostOperator:
    """Matrix, forces and derivatives of the ghost penalty, with the cells' moduli in `data`."""

    def __init__(self, ghost: GhostPenalty, data: CellData):
        self._data = data
        self._count, self._cells = len(ghost.weight), data.cells.shape[0]
        self._weight = share(ghost.weight, wp.vec3d)
        self._neighbour = share(ghost.neighbour, wp.int32)
        self._slot = share(ghost.slot, wp.uint8)
        self._scaled = zeros(self._count, wp.vec3d)

    def set_material(self) -> None:
        """The moduli in `data` have changed."""
        launch(_ghost_scale, self._count, [self._data, self._weight, self._scaled])

    def assemble(self, matrix, factor: float, *, mirrored: bool = True) -> None:
        """matrix += factor * penalty; mirrored: left of the diagonal too."""
        launch(
            _assemble_ghost,
            self._count,
            [factor, self._scaled, self._neighbour, self._slot, int(mirrored), matrix.rows],
            grain=HEAVY,
        )

    def add_force(self, w: wp.array, out: wp.array, *, factor: float = 1.0) -> None:
        """out += factor * penalty * w."""
        inputs = [self._scaled, self._neighbour, w, factor, out]
        launch(_ghost_forces, self._count, inputs, grain=2 * HEAVY)

    def add_force_by_shear(
        self, w: wp.array, d_mu: wp.array, out: wp.array, *, factor: float
    ) -> None:
        """out += factor * (change of the penalty by a change of mu) * w."""
        change = zeros(self._count, wp.vec3d)
        probe = CellData()
        for name in ("k", "incident_start", "incident"):
            setattr(probe, name, getattr(self._data, name))
        probe.mu = d_mu
        launch(_ghost_scale, self._count, [probe, self._weight, change])
        launch(_ghost_forces, self._count, [change, self._neighbour, w, factor, out])

    def add_shear_adjoint(self, w: wp.array, f_bar: wp.array, mu_bar: wp.array) -> None:
        """Transpose of `add_force_by_shear`: adds to mu_bar."""
        launch(
            _ghost_adjoint,
            self._cells,
            [self._data, self._weight, self._neighbour, w, f_bar, mu_bar],
        )


class GhostInertia:
    """Mass matrix of the ghost penalty, GHOST_INERTIA * density * spacing^2 * penalty of modulus 1.

    Like the penalty it vanishes for linear fields: momenta and rigid motion are untouched.
    """

    def __init__(self, ghost: GhostPenalty, spacing: float):
        self._count = len(ghost.weight)
        self._weight = to_device(GHOST_INERTIA * spacing**2 * ghost.weight, wp.vec3d)
        self._neighbour = share(ghost.neighbour, wp.int32)
        self._slot = share(ghost.slot, wp.uint8)
        self.density = 0.0

    def assemble(self, matrix, factor: float) -> None:
        """matrix += factor * inertia."""
        launch(
            _assemble_ghost,
            self._count,
            [factor * self.density, self._weight, self._neighbour, self._slot, 1, matrix.rows],
        )

    def add(self, z: wp.array, out: wp.array, factor: float) -> None:
        """out += factor * inertia * z."""
        launch(
            _ghost_forces,
            self._count,
            [self._weight, self._neighbour, z, factor * self.density, out],
        )
