"""Patches of nodes in which a nearly incompressible body is solved at once, and their colours.

Where a cell keeps its volume far better than its shape, a node can hardly move alone: what is soft
are motions of several nodes that leave the volume of every cell as it is. A smoother must contain
them one by one (Schoeberl 1999; Arnold, Falk, Winther 2000), so a patch is as large as they are:

- on a lattice the turn of one cell about its middle changes no mean dilatation, not even that of
  its neighbours, so 2 x 2 x 2 cells (27 nodes) contain the turns of eight cells, and such patches,
  which share only their faces, contain those of all;
- of quadratic simplices a corner and the middles of its edges: the flux through a face depends on
  the middles alone, and every cell that feels one of them has the corner.

On the CPU patches are solved one after the other in runs, which keeps their rows in the cache; runs
touch only the runs beside them, so all even ones go at the same time, then all odd ones. On CUDA
patches have colours, and those of one colour, which share no node and no block, go together.
"""

import itertools
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from pliant.core.launch import device
from pliant.linalg.level_rows import choose_runs
from pliant.linalg.nodes import Nodes


@dataclass(frozen=True, eq=False)
class Patches:
    """Nodes of each patch, ascending, and the turns in which patches are solved.

    start: (patches + 1,) first entry of each patch in nodes; turns: (items, 2) each, the patches
    from the first number to before the second are solved one after the other, the items of a turn
    at the same time.
    """

    start: np.ndarray
    nodes: np.ndarray
    turns: tuple[np.ndarray, ...]

    @property
    def count(self) -> int:
        """Number of patches."""
        return len(self.start) - 1


def finest_patches(nodes: Nodes, lattice: np.ndarray | None) -> Patches | None:
    """Patches of a body's own nodes; None for linear simplices, which have no such motions."""
    rows = nodes.pattern.row_start, nodes.pattern.columns
    if lattice is not None:
        return lattice_patches(lattice, *rows)
    if nodes.middles is None or nodes.corners is None:
        return None
    middle, one, other = nodes.middles.T
    owner, node = [nodes.corners, one, other], [nodes.corners, middle, middle]
    return _patches(np.concatenate(owner), np.concatenate(node), *rows)


def lattice_patches(lattice: np.ndarray, row_start: np.ndarray, columns: np.ndarray) -> Patches:
    """Patches of the nodes between even planes of a lattice; lattice: (nodes, 3) from zero on."""
    shape = lattice.max(axis=0) // 2 + 2
    strides = np.array([1, shape[0], shape[0] * shape[1]])
    owner, node = [], []
    for shift in itertools.product((0, 1), repeat=3):
        # a node on an even plane belongs to the patches on both sides
        inside = ((lattice % 2 == 0) & (lattice > 0) | (np.array(shift) == 0)).all(axis=1)
        owner.append((lattice[inside] // 2 - shift) @ strides)
        node.append(np.flatnonzero(inside))
    owners, nodes = np.concatenate(owner), np.concatenate(node)
    _, owners = np.unique(owners, return_inverse=True)
    thick = np.ones(owners.max() + 1, bool)
    for axis in np.flatnonzero(lattice.max(axis=0) > 0):
        odd = lattice[nodes, axis] % 2 == 1
        thick &= np.bincount(owners, odd) > 0  # else its nodes lie on one plane of another patch
    covered = np.zeros(len(lattice), bool)
    covered[nodes[thick[owners]]] = True
    thick |= np.bincount(owners, ~covered[nodes]) > 0
    kept = thick[owners]
    return _patches(owners[kept], nodes[kept], row_start, columns)


def _patches(
    owner: np.ndarray, node: np.ndarray, row_start: np.ndarray, columns: np.ndarray
) -> Patches:
    """From pairs of a patch's name and one of its nodes, repeated or not."""
    _, owner = np.unique(owner, return_inverse=True)
    n = len(row_start) - 1
    pairs = np.unique(owner.astype(np.int64) * n + node)
    member = sparse.csr_matrix(
        (np.ones(len(pairs), np.float32), (pairs // n, pairs % n)), shape=(owner.max() + 1, n)
    )
    blocks = sparse.csr_matrix(
        (np.ones(len(columns), np.float32), columns, row_start), shape=(n, n)
    )
    touching = (member @ blocks @ member.T).tocsr()
    order, turns = _turns(touching)
    member = member[order]
    return Patches(member.indptr.astype(np.int32), member.indices.astype(np.int32), turns)


def _turns(touching: sparse.csr_matrix) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
    """The order of the patches, and their turns."""
    count = len(touching.indptr) - 1
    if device() != "cpu":
        colour = _colours(touching.indptr, touching.indices)
        order = np.argsort(colour, kind="stable")
        last = np.cumsum(np.bincount(colour))
        each = np.stack([np.arange(count), np.arange(1, count + 1)], axis=1).astype(np.int32)
        return order, tuple(np.split(each, last[:-1]))
    own = np.repeat(np.arange(count), np.diff(touching.indptr))
    reach = int(np.abs(touching.indices - own).max())
    runs, alternate = choose_runs(count, reach, device(), smallest=1)
    if not alternate:
        runs = 1
    begin = np.arange(runs + 1, dtype=np.int64) * count // runs
    ends = np.stack([begin[:-1], begin[1:]], axis=1).astype(np.int32)
    return np.arange(count), (ends[::2], ends[1::2]) if alternate else (ends,)


def _colours(start: np.ndarray, neighbours: np.ndarray) -> np.ndarray:
    """Each item the lowest colour that none of its neighbours before it has."""
    colour = np.full(len(start) - 1, -1)
    for i in range(len(colour)):
        taken = set(colour[neighbours[start[i] : start[i + 1]]].tolist())
        colour[i] = next(c for c in itertools.count() if c not in taken)
    return colour
