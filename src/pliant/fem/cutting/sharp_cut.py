"""Cells cut by the surfaces of a shape one by one, so that edges and corners stay sharp.

A cell is split by every surface that passes through it (surface_states says which, convex_pieces
splits, split_cells adds up). Planes cut the cube itself and are exact. Where a curved surface
passes, the cube is first split into tetrahedra, or, where it bends much, into halves and these into
tetrahedra; neighbours agree on their common face, so the surface is closed.

A cell needs no corner inside: a wedge that pokes through a face of the lattice, or a plate thinner
than a cell, is there because each of its planes has corners on both sides.
"""

from dataclasses import dataclass, replace
from itertools import permutations
from math import comb

import numpy as np

from pliant.fem.cutting.cutcells import full_moments, uncancelled
from pliant.fem.cutting.polygon_mesh import common_points, facets_of_polygons
from pliant.fem.cutting.split_cells import Batch, cut_batch
from pliant.fem.cutting.surface_states import (
    SurfaceStates,
    fine_values,
    fineness_of,
    lattice_values,
    states,
)
from pliant.geometry.surfaces import Curved, Leaf, Plane, Tree, combine, leaves, simplified

EMPTY = 1e-15
"""Filled fraction below which a cell is dropped: less than a corner with legs of SNAP."""

MOST_FINE = 20_000
"""Cells near the surface up to which those with strongly bent surfaces are split in half first: a
larger body that is as fine as its cells would get millions of facets."""

MANY_SURFACES = 24
"""Surfaces of a shape beyond which cells are taken in blocks."""

BLOCK = 8
"""Cells along the edge of a block."""

VALUES_AT_ONCE = 2_000_000
"""Cells times surfaces that are looked at together: eight corners each, 130 MB."""


@dataclass(frozen=True)
class SharpCells:
    """cell: (cells, dim) lattice position of the cells with an inside; moments: (cells, 3, 3[, 3]).

    points: (points, dim) of the surface, in lattice units; facets: (facets, dim) of points, normal
    outward; facet_cell: (facets,) ascending.
    """

    cell: np.ndarray
    moments: np.ndarray
    points: np.ndarray
    facets: np.ndarray
    facet_cell: np.ndarray


def is_sharp(tree: Tree) -> bool:
    """Whether a shape has several surfaces, which may meet in edges."""
    return not isinstance(tree, Curved)


def sharp_cut(tree: Tree, phi: np.ndarray, origin: np.ndarray, spacing: float) -> SharpCells | None:
    """Cut the cells of a lattice. phi: distances at its nodes, the first one at `origin` [m].

    None where a mesh is too fine for its planes to be taken one by one.
    """
    found = _all_batches(tree, phi, origin, spacing, solid=False)
    return None if found is None else _collected(*found, phi.ndim)


def sharp_simplices(
    tree: Tree, phi: np.ndarray, origin: np.ndarray, spacing: float
) -> tuple[np.ndarray, np.ndarray] | None:
    """Simplices (n, dim + 1, dim) that cells near the surface consist of, in the unit cell, and the
    lattice position (n, dim) of their cells. See sharp_cut.
    """
    found = _all_batches(tree, phi, origin, spacing, solid=True)
    if found is None:
        return None
    batches, near, _ = found
    dim = phi.ndim
    simplex = [np.zeros((0, dim + 1, dim)), *(b.simplex for b in batches)]
    row = [np.zeros(0, int), *(b.simplex_row for b in batches)]
    return np.concatenate(simplex), near[np.concatenate(row)]


def _all_batches(
    tree: Tree, phi: np.ndarray, origin: np.ndarray, spacing: float, *, solid: bool
) -> tuple[list[Batch], np.ndarray, np.ndarray] | None:
    """Batches of cut cells, the cells near the surface that their rows are of, and whole cells."""
    near, inside = _near_cells(phi, spacing)
    surfaces = leaves(tree)
    fineness = 1
    if len(near) < MOST_FINE:
        fineness = fineness_of(surfaces, near, phi.shape, origin, spacing)
    batches, whole = [], [inside]
    for rows in _blocks(near, len(surfaces)):
        some = near[rows]
        part = simplified(tree, _signs_in_block(surfaces, some, origin, spacing))
        if isinstance(part, bool):
            whole += [some] if part else []
            continue
        found = _cut(part, leaves(part), some, phi.shape, origin, spacing, fineness, solid)
        if found is None:
            return None
        for b in found[0]:
            batches.append(
                replace(
                    b, row=rows[b.row], polygon_row=rows[b.polygon_row],
                    simplex_row=rows[b.simplex_row],
                )
            )  # fmt: skip
        whole.append(found[1])
    return batches, near, np.concatenate(whole)


def _blocks(near: np.ndarray, surfaces: int) -> list[np.ndarray]:
    """Rows of cells in portions; where there are many surfaces, those of small blocks of cells, in
    which few of them matter.
    """
    rows = np.arange(len(near))
    if surfaces > MANY_SURFACES:
        _, block = np.unique(near // BLOCK, axis=0, return_inverse=True)
        order = np.argsort(block.reshape(-1), kind="stable")
        ends = np.cumsum(np.bincount(block.reshape(-1)))
        return np.split(order, ends[:-1])
    size = max(VALUES_AT_ONCE // surfaces, 1000)
    return [rows[first : first + size] for first in range(0, len(near), size)]


def _signs_in_block(surfaces, cells, origin, h) -> np.ndarray:
    """(leaves,) -1 or 1 where a surface keeps away from all of the cells, else 0.

    Distances change no faster than the point moves; a few cells more make up for shifted values.
    """
    decided = np.zeros(len(surfaces), int)
    if len(surfaces) <= MANY_SURFACES:
        return decided
    low, high = cells.min(axis=0), cells.max(axis=0) + 1
    middle = origin + h * (low + high) / 2.0
    reach = h * (np.linalg.norm(high - low) / 2.0 + 2.0)
    for k, leaf in enumerate(surfaces):
        if isinstance(leaf, Plane) or isinstance(leaf, Curved) and leaf.smooth:
            value = float(leaf(middle[None])[0])
            decided[k] = int(np.sign(value)) if abs(value) > reach else 0
    return decided


def _cut(tree, surfaces, near, shape, origin, h, fineness: int, solid: bool):
    """Batches of cut cells, whose rows are those of `near`, and the cells that are whole."""
    dim = near.shape[1]
    values = lattice_values(surfaces, near, shape, origin, h, fineness)
    state = states(tree, surfaces, near, shape, origin, h, values)
    if state is None:
        return None
    bent = state.bent & (fineness > 1)
    batches = _batches(tree, surfaces, state, ~bent, near, origin, h, solid)
    whole = near[state.decided & (combine(tree, state.sign) < 0)]
    if not bent.any():
        return batches, whole
    parts = np.stack(np.unravel_index(np.arange(fineness**dim), (fineness,) * dim), axis=1)
    fine = (near[bent][:, None] * fineness + parts).reshape(-1, dim)
    fine_shape = tuple((n - 1) * fineness + 1 for n in shape)
    step = h / fineness
    values = fine_values(surfaces, fine, fine_shape, origin, h, fineness)
    finer = states(tree, surfaces, fine, fine_shape, origin, step, values)
    if finer is None:
        return None
    every = np.ones(len(fine), bool)
    of_parts = _batches(tree, surfaces, finer, every, fine, origin, step, solid)
    full = finer.decided & (combine(tree, finer.sign) < 0)
    return [*batches, _merged(of_parts, fine, full, np.flatnonzero(bent), fineness, solid)], whole


def _batches(
    tree: Tree, surfaces: list[Leaf], state: SurfaceStates, chosen: np.ndarray,
    cells: np.ndarray, origin: np.ndarray, h: float, solid: bool,
) -> list[Batch]:  # fmt: skip
    return [
        cut_batch(
            tree, surfaces, rows, state.sign[rows], state.leaf[entries],
            np.swapaxes(state.values[entries], 1, 2),
            origin + h * cells[rows], h, tets=tets, dim=cells.shape[1], solid=solid,
        )
        for rows, entries, tets in state.batches(chosen)
    ]  # fmt: skip


def _near_cells(phi: np.ndarray, h: float) -> tuple[np.ndarray, np.ndarray]:
    """Cells that the surface may pass through, and those certainly inside; (cells, dim) each.

    A point of a cell is at most sqrt(dim) / 2 h from a corner, and phi changes no faster than that.
    """
    reach = 0.5 * np.sqrt(phi.ndim) * h * 1.01
    corners = [phi[tuple(slice(o, n - 1 + o) for o, n in zip(place, phi.shape, strict=True))]
               for place in np.ndindex(*(2,) * phi.ndim)]  # fmt: skip
    least = np.minimum.reduce([np.abs(c) for c in corners])
    deepest = np.minimum.reduce(corners)
    near = least <= reach
    return np.argwhere(near), np.argwhere(~near & (deepest < 0.0))


def _merged(parts: list[Batch], fine, full, row, fineness: int, solid: bool) -> Batch:
    """Batches of the parts of cells as one batch of the cells, whose rows are given in order."""
    dim = fine.shape[1]
    each = fineness**dim
    moments = np.zeros((len(fine), 3, 3, 3))
    moments[full] = full_moments(3)
    for batch in parts:
        moments[batch.row] = batch.moments
    offset = np.zeros((len(fine), 3), int)
    offset[:, :dim] = fine % fineness
    split_axes = np.full(3, fineness)
    split_axes[dim:] = 1
    owner = np.repeat(np.arange(len(row)), each)
    added = added_moments(moments, offset, split_axes, owner, len(row))
    longest = max((b.vertex.shape[1] for b in parts), default=3)
    vertex = [np.zeros((0, longest, 3))]
    for batch in parts:
        wide = np.zeros((len(batch.vertex), longest, 3))
        wide[:, : batch.vertex.shape[1]] = batch.vertex
        wide = (wide + offset[batch.polygon_row][:, None]) / split_axes
        vertex.append(wide)
    polygon_row = np.concatenate([np.zeros(0, int), *(b.polygon_row for b in parts)])
    count = np.concatenate([np.zeros(0, int), *(b.count for b in parts)])
    whole, cell = whole_simplices(np.flatnonzero(full if solid else np.zeros_like(full)), dim)
    simplex = np.concatenate([whole, *(b.simplex for b in parts)])
    of = np.concatenate([cell, *(b.simplex_row for b in parts)])
    simplex = (simplex + offset[of, None, :dim]) / fineness
    return Batch(
        row,
        added,
        np.concatenate(vertex),
        count,
        row[owner[polygon_row]],
        simplex,
        row[owner[of]],
    )


def whole_simplices(rows: np.ndarray, dim: int) -> tuple[np.ndarray, np.ndarray]:
    """The simplices of whole unit cells, (n, dim + 1, dim), and the row each is of."""
    corner = ((np.arange(8)[:, None] >> np.arange(3)) & 1).astype(float)
    paths = []
    for axes in permutations(range(dim)):  # along the long diagonal (Kuhn), as convex_pieces
        path = np.cumsum([0, *(1 << a for a in axes)])
        own = corner[path, :dim]
        paths.append(
            own if np.linalg.det(own[1:] - own[0]) > 0.0 else own[[1, 0, *range(2, dim + 1)]]
        )
    return np.tile(np.array(paths), (len(rows), 1, 1)), np.repeat(rows, len(paths))


def added_moments(
    moments: np.ndarray, offset: np.ndarray, parts: np.ndarray, owner: np.ndarray, count: int
) -> np.ndarray:
    """Moments of cells from those of their parts at offsets 0 .. parts - 1 along each axis.

    In the whole cell a part's x is X = (offset + x) / s with s parts along that axis, so
    X^a = sum over b of binomial(a, b) offset^(a-b) x^b / s^a, and dX = dx / s.
    """
    for axis, s in enumerate(parts):
        o = offset[:, axis].astype(float)
        T = np.zeros((len(o), 3, 3))  # (part, power in the cell, power in the part)
        for a, b in ((0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2)):
            T[:, a, b] = comb(a, b) * o ** (a - b) / float(s) ** (a + 1)
        turned = np.moveaxis(moments, axis + 1, 1)
        shape = turned.shape
        product = (T @ turned.reshape(len(o), 3, -1)).reshape(shape)
        moments = np.moveaxis(product, 1, axis + 1)
    out = np.zeros((count, *moments.shape[1:]))
    np.add.at(out, owner, moments)
    return out


def _collected(batches: list[Batch], near, whole, dim: int) -> SharpCells:
    """All cells in one list, their polygons' vertices made common and cut into facets."""
    row = np.concatenate([np.zeros(0, int), *(b.row for b in batches)])
    moments = np.concatenate([np.zeros((0, 3, 3, 3)), *(b.moments for b in batches)])
    kept = moments[:, 0, 0, 0] > EMPTY
    cells = np.concatenate([near[row[kept]], whole])
    moments = np.concatenate(
        [moments[kept], np.broadcast_to(full_moments(3), (len(whole), 3, 3, 3))]
    )
    is_full = moments[:, 0, 0, 0] > 1.0 - 1e-12
    moments[is_full] = full_moments(3)
    order = np.lexsort(cells.T)
    cells, moments = cells[order], moments[order]
    number = np.full(len(near), -1)
    rank = np.empty(len(order), int)
    rank[order] = np.arange(len(order))
    number[row[kept]] = rank[: kept.sum()]

    longest = max((b.vertex.shape[1] for b in batches), default=3)
    corner, owner, count = [], [], []
    for b in batches:
        alive = number[b.polygon_row] >= 0
        padded = np.zeros((int(alive.sum()), longest, 3))
        padded[:, : b.vertex.shape[1]] = b.vertex[alive]
        corner.append(padded)
        owner.append(number[b.polygon_row[alive]])
        count.append(b.count[alive])
    vertex = np.concatenate([np.zeros((0, longest, 3)), *corner])
    count = np.concatenate([np.zeros(0, int), *count])
    owner = np.concatenate([np.zeros(0, int), *owner])
    if dim == 2:
        points, ring = common_points(vertex, count, cells[owner])
        facets, which = _edges(vertex, count, ring)
        proper = facets[:, 0] != facets[:, 1]
        facets, which = facets[proper], which[proper]
        left = uncancelled(facets)
        facets, which = facets[left], which[left]
        moments = moments[..., 0]
    else:
        points, facets, which = facets_of_polygons(vertex, count, cells[owner])
    facet_cell = owner[which]
    order = np.argsort(facet_cell, kind="stable")
    facets, facet_cell = facets[order], facet_cell[order]
    used_points, facets = np.unique(facets, return_inverse=True)
    return SharpCells(cells, moments, points[used_points], facets.reshape(-1, dim), facet_cell)


def _edges(vertex, count, ring) -> tuple[np.ndarray, np.ndarray]:
    """The sides of upright polygons on z = 0: the segments of a 2D body's outline."""
    slot = np.arange(vertex.shape[1])
    used = slot < count[:, None]
    following = np.where(slot + 1 < count[:, None], slot + 1, 0)
    low = used & (vertex[:, :, 2] == 0.0)
    both = low & np.take_along_axis(low, following, axis=1)
    polygon, k = np.nonzero(both)
    return np.stack([ring[polygon, k], ring[polygon, following[polygon, k]]], axis=1), polygon
