"""Pieces that a grid body falls into, and the spacing at which they would be one.

A part that is thinner than a cell is found at some nodes of the lattice only, and its surface
closes around each: loose shards. What belongs together is judged by the filled cells. Where the
surface is cut by the distance at lattice nodes, material joins inside nodes along the lines of the
lattice and under the triangles of the surface; where it is cut sharply, cells that share an inside
node or a point of the surface.
"""

import numpy as np
from scipy import ndimage, sparse
from scipy.sparse.csgraph import connected_components

from pliant.core.lengths import length
from pliant.geometry.shape import Shape

FINER = 2.0**0.5
"""Ratio of the spacings that are tried."""

TRIED = 5
"""How many of them: down to 5.7 times finer than the body."""

MOST_POINTS = 150_000
"""Lattice nodes at most of one that is tried: half a second where the shape is a mesh."""

JOINED = 0.25
"""A spacing joins the pieces if no more than this share of what is loose stays so."""

STAYS = 0.5
"""Pieces of which at least this share is loose on the finest lattice, too, are so in truth."""

LITTLE = 1e-3
"""Share of the nodes that is loose at the body's own spacing, at least."""

WELD = 1e-6
"""Cells between points of a surface that count as one."""


def node_pieces(
    lattice: np.ndarray, inside: np.ndarray, edges: np.ndarray, facets: np.ndarray
) -> tuple[int, np.ndarray]:
    """Pieces of the nodes (n, dim) of a lattice: how many, and that of each, -1 where outside.

    inside: (n,); edges: (points, 2) the nodes between which each point of the surface lies, one of
    them inside; facets: (f, dim) points.
    """
    n = len(lattice)
    lowest, size = lattice.min(axis=0), np.ptp(lattice, axis=0) + 2
    number = np.full(tuple(size), -1)
    number[tuple((lattice - lowest).T)] = np.where(inside, np.arange(n), -1)
    pairs = []
    for axis in range(lattice.shape[1]):
        one, other = number, np.roll(number, -1, axis=axis)  # the last layer is empty
        both = (one >= 0) & (other >= 0)
        pairs.append(np.stack([one[both], other[both]], axis=1))
    at = np.where(inside[edges[:, 0]], edges[:, 0], edges[:, 1])
    pairs += [at[facets[:, [0, k]]] for k in range(1, facets.shape[1])]
    i, j = np.concatenate(pairs).T
    graph = sparse.coo_matrix((np.ones(len(i), np.int8), (i, j)), (n, n))
    label = connected_components(graph.tocsr(), directed=False)[1]
    piece = np.full(n, -1)
    found, piece[inside] = np.unique(label[inside], return_inverse=True)
    return len(found), piece


def cell_pieces(
    cells: np.ndarray, inside: np.ndarray, points: np.ndarray, facets: np.ndarray, owner: np.ndarray
) -> tuple[int, np.ndarray]:
    """Pieces of cells (cells, k): how many, and the piece of each, 0...

    inside: (nodes,) True where a node is; points [cells], facets, owner: the surface and the cell
    of each facet.
    """
    count = len(cells)
    welded = np.unique(np.round(points / WELD), axis=0, return_inverse=True)[1].reshape(-1)
    corner = inside[cells]
    cell = np.concatenate(
        [np.nonzero(corner)[0], np.repeat(owner, facets.shape[1])]
    )  # joined to what is behind the cells: nodes, then points
    other = np.concatenate([count + cells[corner], count + len(inside) + welded[facets.ravel()]])
    size = count + len(inside) + len(points)
    graph = sparse.coo_matrix((np.ones(len(cell), np.int8), (cell, other)), (size, size))
    label = connected_components(graph.tocsr(), directed=False)[1][:count]
    found, piece = np.unique(label, return_inverse=True)
    return len(found), piece


def told(shape: Shape, count: int, spacing: float) -> str:
    """The sentence about a body of several pieces."""
    keeping = 'pieces = "largest" keeps the largest piece only'
    needed = joining_spacing(shape, spacing)
    if needed is None:
        return (
            f"the surface falls into {count} pieces at this spacing ({length(spacing)}), and finer "
            f"ones that were tried do not join them; {keeping}."
        )
    return (
        f"the surface falls into {count} pieces at this spacing ({length(spacing)}); the thinnest "
        f"part needs about {length(needed, 2)}. {keeping}."
    )


def joining_spacing(shape: Shape, spacing: float) -> float | None:
    """The largest of some spacings [m] at which little is loose; None if that stays so.

    What is loose is counted in inside nodes beside the largest piece: single ones come and go with
    the lattice.
    """
    lo, hi = (np.asarray(b, float) for b in shape.bounds)
    tried = [spacing / FINER**k for k in range(TRIED + 1)]
    tried = [h for h in tried if float(np.prod((hi - lo) / h + 3.0)) <= MOST_POINTS]
    loose = [_loose_at(shape, h, lo, hi) for h in tried]
    if len(tried) < 2:
        return None
    loose[0] = max(loose[0], LITTLE)  # something is: the body is cut a little beside these nodes
    most = max(loose)
    if loose[-1] > STAYS * most:
        return None
    enough = loose[-1] + JOINED * (most - loose[-1])
    last = max(i for i, share in enumerate(loose) if share > enough)
    return tried[min(last + 2, len(tried) - 1)]  # one finer: lattices may be lucky


def _loose_at(shape: Shape, spacing: float, lo: np.ndarray, hi: np.ndarray) -> float:
    """Share of the inside nodes, on multiples of the spacing, that are not in the largest piece."""
    first = np.floor(lo / spacing + 1e-6).astype(int) - 1
    last = np.ceil(hi / spacing - 1e-6).astype(int) + 1
    axes = [spacing * np.arange(a, b + 1) for a, b in zip(first, last, strict=True)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    inside = shape.distance(grid.reshape(-1, len(lo))).reshape(grid.shape[:-1]) < 0.0
    label: np.ndarray = ndimage.label(inside)[0]  # pyright: ignore[reportIndexIssue]
    sizes = np.bincount(label.ravel())[1:]
    return 1.0 - float(sizes.max() / sizes.sum()) if len(sizes) else 0.0
