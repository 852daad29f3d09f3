"""A body of partially filled cells of a regular grid, from a signed distance."""

import logging
from dataclasses import dataclass

import numpy as np

from pliant.core.errors import BadInput
from pliant.fem.bodies.body import Body
from pliant.fem.bodies.default_spacing import default_spacing
from pliant.fem.bodies.embedding import Embedding, Surface
from pliant.fem.bodies.grid_locator import Locator, TurnedLocator
from pliant.fem.bodies.lattice_cells import LatticeCells, any_corner, lattice_cells
from pliant.fem.bodies.loose_pieces import cell_pieces, node_pieces, told
from pliant.fem.cutting.cutcells import cut_cells
from pliant.fem.cutting.ghost import GHOST_PENALTY, GhostPenalty, fading, ghost_weights
from pliant.fem.cutting.sharp_cut import added_moments, is_sharp, sharp_cut
from pliant.fem.cutting.surface_states import SNAP
from pliant.fem.cutting.thin_layers import layer_roots
from pliant.fem.cutting.volume_shift import shifted
from pliant.fem.forces.cells import (
    GRID,
    grid_geometry_rows,
    grid_node_volumes,
    grid_pair_integrals,
)
from pliant.geometry.field import SampledField
from pliant.geometry.shape import Shape
from pliant.geometry.surfaces import surfaces_of
from pliant.geometry.upright import upright
from pliant.linalg.pattern import Pattern, lattice_pattern

LARGEST_LATTICE = 300_000_000
"""Lattice nodes that may be sampled; beyond it the distances alone would take 2.4 GB."""

FARTHEST = 2**30
"""Cells from the origin that a lattice may lie: its positions are whole numbers of 32 bits."""


_log = logging.getLogger(__name__)

AXES = ("shape", "world")

PIECES = ("all", "largest")

MOST_SAMPLES = 4
"""Of a field that is finer than the cells, along a cell's edge. A beam four cells across, known to
a seventh of a cell, loses 0.2 % of its volume with four, 4 % with one, and its first frequency is
0.3 and 7 % too low."""

LARGEST_SUBDIVISION = 8
"""Fine cells along the edge of a cell; beyond it rounding of the moments outweighs the gain."""


def GridBody(
    shape: Shape,
    spacing: float | None = None,
    *,
    subdivisions: int | None = None,
    axes: str = "shape",
    pieces: str = "all",
    ghost_penalty: float = GHOST_PENALTY,
) -> Body:
    """`grid_body`, and a word in the log where it falls into several pieces."""
    body = grid_body(
        shape, spacing, subdivisions=subdivisions, axes=axes, pieces=pieces,
        ghost_penalty=ghost_penalty, told_of=True,
    )  # fmt: skip
    for sentence in body.warnings:
        _log.warning("%s", sentence)
    return body


def grid_body(
    shape: Shape,
    spacing: float | None = None,
    *,
    subdivisions: int | None = None,
    axes: str = "shape",
    pieces: str = "all",
    ghost_penalty: float = GHOST_PENALTY,
    told_of: bool = False,
) -> Body:
    """Active cells of the lattice of integer multiples of `spacing` [m] that the shape fills.

    The lattice lies along the shape's own directions (geometry.upright), so that a turned beam is
    as stiff as an upright one; axes="world" lays it along x, y, z whatever the shape. Edges and
    corners of boxes, cylinders, booleans and coarse meshes stay sharp within cells
    (fem.cutting.sharp_cut); smooth shapes are cut by their distance at the lattice's nodes
    (fem.cutting.cutcells), shifted so that their volume is right (fem.cutting.volume_shift). A
    sampled field without `spacing` keeps its own lattice, other shapes get one that suits them
    (fem.bodies.default_spacing); a field that is finer than the cells is sampled within them.
    subdivisions: every shape is cut by its distance as it is, sampled so many times finer than the
    lattice (1: at its nodes), which rounds edges off within such a fine cell and shrinks what is
    round. pieces="largest" keeps the cells of the largest piece only (fem.bodies.loose_pieces).
    ghost_penalty = 0 switches the stabilisation of small cuts off (for studies). told_of: look for
    pieces, and say so in the body's `warnings`.
    """
    s = samples_a_cell(shape, spacing)
    if subdivisions is not None:
        s = _checked_subdivisions(subdivisions)
    if axes not in AXES:
        raise BadInput(f"axes must be 'shape' or 'world', not {axes!r}.")
    if pieces not in PIECES:
        raise BadInput(f"pieces must be 'all' or 'largest', not {pieces!r}.")
    given = shape
    shape, turn = upright(shape) if axes == "shape" else (shape, None)
    phi, first, origin, h = lattice_distances(shape, spacing, s)
    if not np.isfinite(phi).all():
        raise BadInput("The shape has distances that are not numbers; check its parameters.")
    cut, count, sharp = None, 1, False
    if subdivisions is None:
        cut = _sharp(shape, phi, origin + h * first, h)
        sharp = cut is not None
        if cut is None:
            phi = shifted(shape, phi, origin + h * first, h / s)
        elif told_of or pieces == "largest":
            count, piece = _sharp_pieces(cut, phi)
            cut = _largest(cut, piece) if count > 1 and pieces == "largest" else cut
    if cut is None:
        cut, fine, of_node = _sampled(phi, s, h, in_pieces=told_of or pieces == "largest")
        count = 1 + int(of_node.max(initial=0))
        if count > 1 and pieces == "largest":
            cut = _sampled(_without_others(phi, fine, of_node), s, h)[0]
    if subdivisions is None and (sharp or s > 1):  # what is smooth has no flat sides
        cut = _without_thin_layers(cut)
    several = count > 1 and pieces == "all"
    warnings = (told(shape, count, h),) if several and told_of else ()
    whole, moments = cut.cells, cut.moments
    cells, lattice, cell_lattice = whole.cells, whole.lattice, whole.cell_lattice
    dim = phi.ndim
    is_full = np.abs(moments.reshape(len(cells), -1)[:, 0] - 1.0) < 1e-12
    geometry_row, table, node_volumes, pairs = _geometry(moments, is_full, h)

    weight = np.zeros((len(lattice), 3))
    if ghost_penalty > 0.0:
        weight = ghost_weights(
            cells,
            ~is_full,
            whole.cell_of,
            cell_lattice,
            node_count=len(lattice),
            dim=dim,
            spacing=h,
            penalty=ghost_penalty,
        )
    support = np.bincount(cells.ravel(), node_volumes.ravel(), len(lattice)) / h**dim
    pattern, ghost = _pattern_and_ghost(cells, lattice, whole.index_of, weight, support)

    nodes = origin + h * (lattice + first)
    locate = Locator(
        cells,
        cell_lattice.astype(np.int32),
        origin + h * first,
        h,
        whole.index_of.shape,
        len(nodes),
    )
    vertices = cut.points
    if not isinstance(vertices, Embedding):
        carrier = np.empty(len(vertices), np.int64)  # any cell there: fields are continuous
        carrier[cut.facets] = cut.facet_cell[:, None]
        vertices = locate.within(carrier, origin + h * (vertices + first))
    return Body(
        nodes=nodes if turn is None else nodes @ turn.T,
        cells=cells,
        kind=GRID,
        geometry_row=geometry_row,
        geometry_table=table,
        node_volumes=node_volumes,
        surface=Surface(vertices, cut.facets, cut.facet_cell),
        pattern=pattern,
        locate=locate if turn is None else TurnedLocator(locate, turn),
        spacing=h,
        ghost=ghost,
        lattice=(lattice + first).astype(np.int32),
        axes=turn,
        shape=given,
        requested_size=spacing,
        subdivisions=subdivisions,
        follows_shape=axes == "shape",
        pieces=pieces,
        pair_table=pairs,
        warnings=warnings,
    )


@dataclass(frozen=True)
class _Cut:
    """Cells and their moments, and the surface: points carried by nodes or in lattice units."""

    cells: LatticeCells
    moments: np.ndarray
    points: Embedding | np.ndarray
    facets: np.ndarray
    facet_cell: np.ndarray


def _sharp(shape: Shape, phi: np.ndarray, origin: np.ndarray, h: float) -> _Cut | None:
    """The cut surface by surface; None for shapes of one surface and for fine meshes."""
    tree = surfaces_of(shape)
    cut = sharp_cut(tree, phi, origin, h) if is_sharp(tree) else None
    if cut is None:
        return None
    if len(cut.cell) == 0:
        raise _no_inside(h)
    active = np.zeros(tuple(n - 1 for n in phi.shape), bool)
    active[tuple(cut.cell.T)] = True
    return _Cut(lattice_cells(active), cut.moments, cut.points, cut.facets, cut.facet_cell)


def _sampled(
    phi: np.ndarray, s: int, h: float, *, in_pieces: bool = False
) -> tuple[_Cut, np.ndarray, np.ndarray]:
    """The cut by the distance at the nodes of a lattice s times finer than the cells.

    Also the nodes of that lattice, and the piece of each if they are asked for.
    """
    phi = np.where(np.abs(phi) < SNAP * h / s, 0.0, phi)
    active = any_corner(phi < 0.0)
    if not active.any():
        raise _no_inside(h)
    fine = lattice_cells(active)
    cut = cut_cells(phi[tuple(fine.lattice.T)], fine.cells)
    ends = np.stack([cut.edge_low, cut.edge_high], axis=1).astype(np.int32)
    weights = np.stack([1.0 - cut.edge_weight, cut.edge_weight], axis=1)
    points = Embedding(ends, weights, len(fine.lattice))
    of_node = np.zeros(0, int)
    if in_pieces:
        _, of_node = node_pieces(fine.lattice, phi[tuple(fine.lattice.T)] < 0.0, ends, cut.facets)
    if s == 1:
        whole = _Cut(fine, cut.moments, points, cut.facets, cut.facet_cell)
        return whole, fine.lattice, of_node
    inside = np.zeros(tuple((n - 1) // s for n in phi.shape), bool)
    inside[tuple((fine.cell_lattice // s).T)] = True
    whole = lattice_cells(inside)
    owner = whole.cell_of[tuple((fine.cell_lattice // s).T)]
    parts = np.full(phi.ndim, s)
    moments = added_moments(cut.moments, fine.cell_lattice % s, parts, owner, len(whole.cells))
    places = points.at(fine.lattice) / s
    whole = _Cut(whole, moments, places, cut.facets, owner[cut.facet_cell])
    return whole, fine.lattice, of_node


def _sharp_pieces(cut: _Cut, phi: np.ndarray) -> tuple[int, np.ndarray]:
    """Pieces of the cells, see loose_pieces."""
    old = cut.cells
    points = cut.points.at(old.lattice) if isinstance(cut.points, Embedding) else cut.points
    inside = phi[tuple(old.lattice.T)] < 0.0
    return cell_pieces(old.cells, inside, points, cut.facets, cut.facet_cell)


def _largest(cut: _Cut, piece: np.ndarray) -> _Cut:
    """The same without the cells and the surface of all pieces but the largest."""
    old = cut.cells
    volumes = cut.moments.reshape(len(old.cells), -1)[:, 0]
    kept = piece == int(np.argmax(np.bincount(piece, volumes)))
    active = np.zeros(tuple(n - 1 for n in old.index_of.shape), bool)
    active[tuple(old.cell_lattice[kept].T)] = True
    renumbered = np.cumsum(kept) - 1  # cells keep their order
    facets = kept[cut.facet_cell]
    points = cut.points.at(old.lattice) if isinstance(cut.points, Embedding) else cut.points
    used, corners = np.unique(cut.facets[facets], return_inverse=True)
    return _Cut(
        lattice_cells(active), cut.moments[kept], points[used],
        corners.reshape(-1, cut.facets.shape[1]), renumbered[cut.facet_cell[facets]],
    )  # fmt: skip


def _without_thin_layers(cut: _Cut) -> _Cut:
    """The same with thin layers of cells as parts of the cells under them."""
    old = cut.cells
    dim = old.cell_lattice.shape[1]
    points = cut.points.at(old.lattice) if isinstance(cut.points, Embedding) else cut.points
    fill = cut.moments.reshape(len(old.cells), -1)[:, 0]
    root = layer_roots(old.cell_lattice, fill, points, cut.facets, cut.facet_cell)
    kept = root == np.arange(len(root))
    if kept.all():
        return cut
    active = np.zeros(tuple(n - 1 for n in old.index_of.shape), bool)
    active[tuple(old.cell_lattice[kept].T)] = True
    owner = (np.cumsum(kept) - 1)[root]
    offset = old.cell_lattice - old.cell_lattice[root]
    moments = added_moments(cut.moments, offset, np.ones(dim), owner, int(kept.sum()))
    return _Cut(lattice_cells(active), moments, points, cut.facets, owner[cut.facet_cell])


def _without_others(phi: np.ndarray, lattice: np.ndarray, piece: np.ndarray) -> np.ndarray:
    """The distance with all pieces of nodes but the one of the most turned outside.

    Nothing joins them to it, so that its own surface stays where it is.
    """
    largest = int(np.argmax(np.bincount(piece[piece >= 0])))
    others = tuple(lattice[(piece >= 0) & (piece != largest)].T)
    phi = phi.copy()
    phi[others] = -phi[others]
    return phi


def _no_inside(h: float) -> BadInput:
    return BadInput(
        f"The shape has no inside at spacing {h:g}: use a smaller spacing or a larger shape."
    )


def samples_a_cell(shape: Shape, spacing: float | None) -> int:
    """How finely a shape is sampled within a cell [m]: as finely as a field of samples knows it."""
    if not isinstance(shape, SampledField) or spacing is None or not spacing > 0.0:
        return 1
    return int(np.clip(np.round(min(spacing / shape.spacing, MOST_SAMPLES)), 1, MOST_SAMPLES))


def _checked_subdivisions(count: int) -> int:
    if int(count) != count or not 1 <= count <= LARGEST_SUBDIVISION:
        raise BadInput(
            f"subdivisions must be a whole number from 1 to {LARGEST_SUBDIVISION}, not {count}."
        )
    return int(count)


def lattice_distances(shape: Shape, spacing: float | None, subdivisions: int):
    """phi on a lattice `subdivisions` times finer, the first integer position, origin, spacing."""
    s = subdivisions
    field = shape if isinstance(shape, SampledField) else None
    if field is not None and spacing is not None:
        field = field if abs(spacing - field.spacing) < 1e-9 * field.spacing else None
    if field is not None:
        origin, spacing = np.asarray(field.origin, float), float(field.spacing)
        first = np.full(field.values.ndim, -1)
        if s == 1:
            # cells at the border may be active, so the lattice gets a layer of outside around it
            phi = np.pad(field.values.astype(float), 1, constant_values=spacing)
            return phi, first, origin, spacing
        count = s * (np.array(field.values.shape) + 1) + 1
    else:
        if spacing is None:
            spacing = default_spacing(shape)
        if not (np.isfinite(spacing) and spacing > 0.0):
            raise BadInput(f"The spacing must be a positive length, not {spacing}.")
        lo, hi = (np.asarray(b, float) for b in shape.bounds)
        if not (np.isfinite(lo).all() and np.isfinite(hi).all()):
            raise BadInput("The shape is unbounded: intersect it with a box before making a body.")
        origin = np.zeros(len(lo))
        with np.errstate(over="ignore"):
            lowest = np.floor(lo / spacing + 1e-6) - 1.0
            count = s * (np.ceil(hi / spacing - 1e-6) + 1.0 - lowest) + 1.0
        farthest = float(np.abs(lo).max() + np.abs(hi).max()) / spacing
        if not farthest * s < FARTHEST:
            raise BadInput(
                f"Spacing {spacing:g} is far too small for a shape that reaches to "
                f"{float(max(np.abs(lo).max(), np.abs(hi).max())):g}: use a larger one."
            )
        first = lowest.astype(int)
    total = float(np.prod(np.asarray(count, float)))
    if total > LARGEST_LATTICE:
        raise BadInput(
            f"Spacing {spacing:g} needs {total:.4g} lattice nodes, more than "
            f"{LARGEST_LATTICE:,}: use a larger spacing."
        )
    count = np.asarray(count).astype(int)
    axes = [
        o + spacing * (f + np.arange(c) / s) for o, f, c in zip(origin, first, count, strict=True)
    ]
    phi = np.empty(tuple(count))
    # slab by slab: the points of a large lattice take three times the memory of its values
    for i in range(count[0]):
        grid = np.meshgrid([axes[0][i]], *axes[1:], indexing="ij")
        points = np.stack([g.reshape(-1) for g in grid], axis=1)
        phi[i] = shape.distance(points).reshape(tuple(count[1:]))
    return phi, first, origin, float(spacing)


def _geometry(moments: np.ndarray, is_full: np.ndarray, h: float):
    """Rows of the cells, table, node volumes, pair integrals: full cells share the first row."""
    full = np.flatnonzero(is_full)
    partial = np.flatnonzero(~is_full)
    row = np.zeros(len(moments), np.int32)
    distinct = moments[np.concatenate([full[:1], partial])]
    row[partial] = np.arange(len(partial)) + (1 if len(full) else 0)
    volumes, pairs = grid_node_volumes(distinct, h)[row], grid_pair_integrals(distinct, h)
    return row, grid_geometry_rows(distinct, h), volumes, pairs


def _pattern_and_ghost(
    cells, lattice, index_of, weight, support
) -> tuple[Pattern, GhostPenalty | None]:
    """Sparsity with room for the ghost penalty's reach of two nodes.

    weight: (nodes, 3) before it fades; support: (nodes,) share of a full node's volume.
    """
    n, dim = lattice.shape
    position = np.full((n, 3), 2)
    position[:, :dim] = lattice + 2
    bordered = np.full(tuple(np.array(index_of.shape + (1,) * (3 - dim)) + 4), -1, np.int32)
    inner = tuple(slice(2, s + 2) for s in index_of.shape) + (2,) * (3 - dim)
    bordered[inner] = index_of
    neighbour = np.full((n, 6), -1, np.int32)
    for axis in range(dim):
        for side, step in enumerate((-1, 1)):
            shifted = position.copy()
            shifted[:, axis] += step
            neighbour[:, 2 * axis + side] = bordered[tuple(shifted.T)]
    # a triple centred at j needs the block between its two ends
    reach_two = np.zeros(n, bool)
    for axis in range(dim):
        centre = np.flatnonzero(weight[:, axis] > 0.0)
        triple = np.column_stack([centre, neighbour[centre, 2 * axis : 2 * axis + 2]])
        weight[centre, axis] *= fading(support[triple].min(axis=1))
        centre = np.flatnonzero(weight[:, axis] > 0.0)
        reach_two[neighbour[centre, 2 * axis]] = True
        reach_two[neighbour[centre, 2 * axis + 1]] = True
    pattern, along = lattice_pattern(cells, position, bordered, reach_two)
    if not reach_two.any():
        return pattern, None
    return pattern, GhostPenalty(weight, neighbour, along)
