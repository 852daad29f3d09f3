"""Ghost penalty: ties slivers to their neighbours, so that small cuts do not ruin the matrix.

On the face between two active cells, one of them cut, the jump of the normal derivative of a
trilinear field is a second difference of nodal values, (u[i+1] - 2 u[i] + u[i-1]) / h. Penalising
it with the (lumped) face mass gives, for every node i and axis, the energy

    1/2 weight[i, axis] * modulus[i] * |u[i+1] - 2 u[i] + u[i-1]|^2,

which vanishes for linear fields, rotations included, so it needs no corotation and keeps the patch
test (Burman 2010; the lumping changes the weight, not the consistency). It fades out where all
three nodes have a good share of a full node's volume, for there it would only stiffen the surface.
"""

from dataclasses import dataclass

import numpy as np

GHOST_PENALTY = 3e-3
"""Weight of the face-jump term. Below 1e-4 iterations grow with the smallest cut; above 0.1 the
surface stiffens visibly (see tests/fem/test_cut_conditioning.py). First frequency of the silicone
beam, four cells across and shifted in its grid: 5e-3 adds 0.2 % to that with 3e-3."""


WELL_FILLED = 0.2
"""Share of a full node's volume from which on a node needs no stabilisation. Silicone beam, four
cells across, turned by 45 degrees: its stiffer bending mode is 4.65 % too quick with the penalty on
every cut face, 4.3 % with this, 4.0 % without any. With 0.05 it is 4.2 %, but the cuboid of
resolution 8 needs 13 iterations instead of 12 at a Poisson's ratio of 0.45."""


GHOST_INERTIA = 0.25
"""Inertia of the penalty where a scheme is stable for short steps only, as a share of its stiffness
with density * spacing^2 for the modulus. Without it a sliver's tiny mass bounds the time step: on
the torus of tests/dynamics/test_conservation.py to 0.0002 spacings over the speed of sound, with it
to 0.67. Larger values gain little and make the mass matrix harder to invert."""


def fading(support: np.ndarray) -> np.ndarray:
    """Factor of a term whose least supported node has this share of a full node's volume."""
    return np.maximum(0.0, 1.0 - support / WELL_FILLED) ** 2


@dataclass(frozen=True)
class GhostPenalty:
    """weight: (nodes, 3) [m^(dim-2)]; neighbour: (nodes, 6) node at -x +x -y +y -z +z or -1;
    slot: (nodes, 15) place in the node's matrix row of the offsets -2 -1 0 1 2 along x, y, z
    (255 where there is none).
    """

    weight: np.ndarray
    neighbour: np.ndarray
    slot: np.ndarray


def face_counts(cut: np.ndarray, cell_of: np.ndarray, cell_lattice: np.ndarray, dim: int):
    """Faces to stabilise: pairs of active cells that share a face, at least one of them cut.

    cell_of: dense array lattice position -> cell or -1. Yields (axis, cells on the upper side).
    """
    for axis in range(dim):
        below = cell_lattice.copy()
        below[:, axis] -= 1
        lower = np.where(below[:, axis] >= 0, cell_of[tuple(np.maximum(below, 0).T)], -1)
        chosen = (lower >= 0) & (cut | cut[np.maximum(lower, 0)])
        yield axis, np.flatnonzero(chosen)


def ghost_weights(
    cells: np.ndarray,
    cut: np.ndarray,
    cell_of: np.ndarray,
    cell_lattice: np.ndarray,
    *,
    node_count: int,
    dim: int,
    spacing: float,
    penalty: float = GHOST_PENALTY,
) -> np.ndarray:
    """Weights (nodes, 3): penalty * h^(dim-2) / corners per face, summed over the faces."""
    weight = np.zeros((node_count, 3))
    share = penalty * spacing ** (dim - 2) / 2 ** (dim - 1)
    for axis, upper in face_counts(cut, cell_of, cell_lattice, dim):
        for a in range(cells.shape[1]):
            if (a >> axis) & 1 == 0:  # corners on the lower side of the upper cell: the face
                np.add.at(weight[:, axis], cells[upper, a], share)
    return weight
