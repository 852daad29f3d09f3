"""Fields that a weak wall allows: what a body may start with without being torn at its walls.

A penalty answers a velocity across a wall with accelerations that no scheme without strong damping
forgets, so initial velocities and accelerations are brought to rest there. The field nearest to f
with little left on the walls is

    C f = (I + c W)^{-1} f,    W_ab = integral_wall N_a N_b,

one component at a time; C is symmetric, so it is its own transpose in adjoints.
"""

from collections.abc import Callable

import numpy as np
from scipy.sparse import csc_matrix, identity
from scipy.sparse.linalg import splu

from pliant.fem.cutting.walls import Walls

REST = 1e-6
"""Share of a velocity that is left on a wall that fills the face of a cell."""


class Compatible:
    """C for the free components of a body's nodes and its weak walls."""

    def __init__(self, free: np.ndarray, walls: Walls | None):
        self._free = free
        self._solvers: list[tuple[int, np.ndarray, Callable]] = []
        if walls is None:
            return
        p, entry = walls.points, walls.point_entry
        corners = walls.body.cells[walls.cell][entry]
        nodes, flat = np.unique(corners, return_inverse=True)
        local = flat.reshape(corners.shape)
        rows, columns = np.broadcast_arrays(local[:, :, None], local[:, None, :])
        mass = p.weight[:, None, None] * p.shape[:, :, None] * p.shape[:, None, :]
        scale = 1.0 / (REST * walls.body.spacing ** (walls.body.dim - 1))
        for axis in range(walls.body.dim):
            values = scale * walls.axes[entry, axis][:, None, None] * mass
            W = csc_matrix((values.ravel(), (rows.ravel(), columns.ravel())), 2 * (len(nodes),))
            self._solvers.append((axis, nodes, splu(csc_matrix(identity(len(nodes)) + W)).solve))

    def __call__(self, field: np.ndarray) -> np.ndarray:
        """C f, zero where nodes are held; complex fields too."""
        if np.iscomplexobj(field):
            return self(np.real(field)) + 1j * self(np.imag(field))
        out = field * self._free
        for axis, nodes, solve in self._solvers:
            out[nodes, axis] = solve(np.ascontiguousarray(out[nodes, axis]))
        return out
