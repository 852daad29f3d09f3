"""Any body as linear simplices between its nodes, which position based dynamics and springs take.

Tetrahedra and triangles of order 1 are taken as they are, those of order 2 cut at their edges'
nodes (8 parts, or 4), grid cells cut into 6 tetrahedra around a diagonal (Kuhn), or 2 triangles;
the diagonals of neighbours mirror each other, so that faces fit and no direction is preferred. The
parts of a partially filled cell count by its filled share.
"""

from dataclasses import dataclass
from itertools import permutations

import numpy as np

from pliant.fem.bodies.body import Body

LEAST_FILL = 0.1
"""Share that a grid cell counts with at least, in stiffness and mass alike: a sliver that counted
less could not carry what pulls at its surface. The masses are scaled so that their sum is true."""

_OF_TEN = np.array([
    (0, 4, 6, 7), (4, 1, 5, 8), (6, 5, 2, 9), (7, 8, 9, 3),
    (4, 9, 5, 6), (4, 9, 6, 7), (4, 9, 7, 8), (4, 9, 8, 5),
])  # fmt: skip
_OF_SIX = np.array([(0, 3, 5), (3, 1, 4), (5, 4, 2), (3, 4, 5)])


@dataclass(frozen=True)
class Simplices:
    """nodes: (s, 4) with corner 3 repeated in 2D; cell: (s,) the body's; corners: 4 or 3.

    gradients: (s, 4, 3) of the linear shape functions [1/m], zero for a repeated corner;
    volumes: (s,) filled [m^3]; masses: (nodes,) of the nodes per density, sum the body's volume.
    """

    nodes: np.ndarray
    cell: np.ndarray
    corners: int
    gradients: np.ndarray
    volumes: np.ndarray

    def lumped(self, density: np.ndarray, count: int) -> np.ndarray:
        """Masses (count,) of the nodes, an equal share of each simplex; density: (s,)."""
        share = np.repeat(density * self.volumes / self.corners, self.corners)
        return np.bincount(self.nodes[:, : self.corners].reshape(-1), share, count)


def simplices_of(body: Body) -> Simplices:
    """The body's simplices, positively oriented."""
    cell, nodes = _parts(body)
    dim = body.dim
    corner = body.nodes[nodes]
    edges = corner[:, 1:] - corner[:, :1]  # rows e_1 .. e_dim
    signed = np.linalg.det(edges)
    wrong = signed < 0.0
    nodes[wrong, 1], nodes[wrong, 2] = nodes[wrong, 2], nodes[wrong, 1].copy()
    corner = body.nodes[nodes]
    edges = corner[:, 1:] - corner[:, :1]
    slopes = np.linalg.inv(edges).swapaxes(1, 2)  # grad N_a . e_b = delta_ab
    gradients = np.zeros((len(nodes), 4, 3))
    gradients[:, 1 : dim + 1, :dim] = slopes
    gradients[:, 0, :dim] = -slopes.sum(axis=1)
    fill = np.maximum(np.minimum(body.fill, 1.0), LEAST_FILL if body.is_grid else 0.0)
    volumes = np.abs(signed) / (6.0 if dim == 3 else 2.0) * fill[cell]
    padded = np.zeros((len(nodes), 4), np.int32)
    padded[:, : dim + 1] = nodes
    if dim == 2:
        padded[:, 3] = nodes[:, 2]
    return Simplices(padded, cell, dim + 1, gradients, volumes)


def _parts(body: Body) -> tuple[np.ndarray, np.ndarray]:
    """The cell (s,) and the nodes (s, dim + 1) of every simplex."""
    cells, dim = body.cells, body.dim
    if body.is_grid:
        local = _cube_parts(body)
    else:
        table = {10: _OF_TEN, 6: _OF_SIX}.get(cells.shape[1], np.arange(dim + 1)[None])
        local = np.broadcast_to(table, (len(cells), *table.shape))
    nodes = np.take_along_axis(cells, local.reshape(len(cells), -1), axis=1)
    cell = np.repeat(np.arange(len(cells), dtype=np.int32), local.shape[1])
    return cell, nodes.reshape(-1, dim + 1).astype(np.int32)


def _cube_parts(body: Body) -> np.ndarray:
    """Corners (cells, parts, dim + 1), numbered x fastest, of the simplices of every cell."""
    paths = []
    for order in permutations(range(body.dim)):
        corners = [0]
        for axis in order:
            corners.append(corners[-1] | 1 << axis)
        paths.append(corners)
    assert body.lattice is not None
    parity = body.lattice[body.cells[:, 0]] & 1
    mirrored = (parity << np.arange(parity.shape[1])).sum(axis=1)
    return np.array(paths)[None] ^ mirrored[:, None, None]
