"""Thin layers of cells beyond a flat face belong to the cells under them.

Where a flat side sticks out of a plane of the lattice by a little, it fills a thin layer of cells
there. Their far nodes carry next to nothing, and a wall that ends in the middle of such a cell
holds them as firmly as coercivity asks of so thin a cell: a beam six cells across, in a clamp that
reaches 0.4 cells around its end and with sides 0.001 cells beyond the lattice, was 4.5 % too quick
in its first frequency. So the layer is integrated with the functions of the cells under it, taken a
little beyond them (aggregation; Badia, Verdugo and Martin 2018): what the layer adds to a cell is
added to its moments.

Functions of neighbours agree beyond their common face, so a whole layer keeps every patch test. A
layer that ends at a cell which is not part of it would tear them: cells at such an end stay, and
then those beside them, so that round and tilted surfaces stay as they are.
"""

from itertools import product

import numpy as np

THIN = 0.1
"""Filled share below which a cell may belong to the one under it."""

BEYOND = 0.1
"""Cells that its surface may lie beyond that one."""


def layer_roots(
    cell_lattice: np.ndarray,
    fill: np.ndarray,
    points: np.ndarray,
    facets: np.ndarray,
    facet_cell: np.ndarray,
) -> np.ndarray:
    """The cell (cells,) that each is integrated with: itself but for those of thin layers.

    cell_lattice: (cells, dim); points: (p, dim) of the surface in units of cells; facets: (f, dim),
    of the cells facet_cell.
    """
    count, dim = cell_lattice.shape
    root = np.arange(count)
    thin = fill < THIN
    if not thin.any():
        return root
    low = cell_lattice.min(axis=0) - 1
    number = np.full(tuple(cell_lattice.max(axis=0) - low + 2), -1)
    number[tuple((cell_lattice - low).T)] = root
    # how far a cell's surface reaches from its lower and from its upper side
    at = points[facets] - cell_lattice[facet_cell][:, None, :]
    from_low, from_high = np.full((count, dim), -np.inf), np.full((count, dim), -np.inf)
    np.maximum.at(from_low, facet_cell, at.max(axis=1))
    np.maximum.at(from_high, facet_cell, (1.0 - at).max(axis=1))
    step = np.zeros((count, dim), int)
    best = np.zeros(count)
    for side in product((-1, 0, 1), repeat=dim):
        if not any(side):
            continue
        beyond = np.max([from_high[:, d] if s < 0 else from_low[:, d]
                         for d, s in enumerate(side) if s], axis=0)  # fmt: skip
        under = number[tuple((cell_lattice - side - low).T)]
        fits = thin & (under >= 0) & (np.abs(beyond) <= BEYOND)
        better = fits & (fill[under] > np.maximum(best, fill))
        best[better], root[better], step[better] = fill[under[better]], under[better], side
    joins = root != np.arange(count)
    beside = [
        (f, number[tuple((cell_lattice + f - low).T)])
        for f in np.concatenate([np.eye(dim, dtype=int), -np.eye(dim, dtype=int)])
    ]
    while joins.any():
        stays = joins & joins[root]  # a cell cannot be part of one that is part of another
        for f, other in beside:
            axis = int(np.argmax(np.abs(f)))
            shifted = number[tuple((cell_lattice[root] + f - low).T)]
            same = root[other] == root
            along = (root[other] == shifted) & (step[:, axis] == 0)
            agrees = (other == root) | (joins[other] & (same | along))
            stays |= joins & (other >= 0) & ~agrees
        if not stays.any():
            break
        joins &= ~stays
    return np.where(joins, root, np.arange(count))
