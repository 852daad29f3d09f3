"""A body of partially filled cells of a regular grid, from a signed distance."""

import numpy as np
from scipy.spatial import cKDTree

from pliant.core.errors import BadInput
from pliant.fem.body import Body
from pliant.fem.cells import GRID, grid_geometry_rows, grid_node_volumes
from pliant.fem.cutcells import cut_cells
from pliant.fem.embedding import Embedding, Surface
from pliant.fem.ghost import GHOST_PENALTY, GhostPenalty, ghost_weights
from pliant.fem.pattern import Pattern, lattice_pattern
from pliant.geometry.field import SampledField
from pliant.geometry.shape import Shape

SNAP = 1e-5
"""Distances below SNAP * spacing count as zero (seed 000, section 2.5.2.6): the surface then runs
through the node. Without it, a body aligned with the grid gets slivers from rounding alone."""

LARGEST_LATTICE = 300_000_000
"""Lattice nodes that may be sampled; beyond it the distances alone would take 2.4 GB."""


def GridBody(
    shape: Shape, spacing: float | None = None, *, ghost_penalty: float = GHOST_PENALTY
) -> Body:
    """Active cells of the lattice of integer multiples of `spacing` [m] that the shape fills.

    A sampled field without `spacing` keeps its own lattice and values. ghost_penalty = 0 switches
    the stabilisation of small cuts off (for studies).
    """
    phi, first, origin, h = _distances(shape, spacing)
    phi = np.where(np.abs(phi) < SNAP * h, 0.0, phi)
    dim = phi.ndim
    if not np.isfinite(phi).all():
        raise BadInput("The shape has distances that are not numbers; check its parameters.")
    active = _any_corner(phi < 0.0)
    if not active.any():
        raise BadInput(
            f"The shape has no inside at spacing {h:g}: use a smaller spacing or a larger shape."
        )
    cell_lattice = np.argwhere(active)
    cell_lattice = cell_lattice[np.lexsort(cell_lattice.T)]  # x fastest
    corner_offsets = np.array([[(a >> d) & 1 for d in range(dim)] for a in range(2**dim)])
    corners = cell_lattice[:, None, :] + corner_offsets  # (cells, k, dim)
    is_node = np.zeros(phi.shape, bool)
    is_node[tuple(corners.reshape(-1, dim).T)] = True
    lattice = np.argwhere(is_node)
    lattice = lattice[np.lexsort(lattice.T)]
    index_of = np.full(np.array(phi.shape), -1, np.int32)
    index_of[tuple(lattice.T)] = np.arange(len(lattice))
    cells = index_of[tuple(np.moveaxis(corners, 2, 0))]
    node_phi = phi[tuple(lattice.T)]

    cut = cut_cells(node_phi, cells)
    is_full = cut.moments.reshape(len(cells), -1)[:, 0] > 1.0 - 1e-12
    geometry_row, table = _geometry(cut.moments, is_full, h)
    node_volumes = grid_node_volumes(cut.moments, h)

    weight = np.zeros((len(lattice), 3))
    if ghost_penalty > 0.0:
        cell_of = np.full(np.array(phi.shape), -1, np.int32)
        cell_of[tuple(cell_lattice.T)] = np.arange(len(cells))
        weight = ghost_weights(
            cells, ~is_full, cell_of, cell_lattice,
            node_count=len(lattice), dim=dim, spacing=h, penalty=ghost_penalty,
        )
    pattern, ghost = _pattern_and_ghost(cells, lattice, index_of, weight)

    nodes = origin + h * (lattice + first)
    vertices = Embedding(
        np.stack([cut.edge_low, cut.edge_high], axis=1).astype(np.int32),
        np.stack([1.0 - cut.edge_weight, cut.edge_weight], axis=1),
        len(nodes),
    )
    cell_lattice32 = cell_lattice.astype(np.int32)
    return Body(
        nodes=nodes,
        cells=cells,
        kind=GRID,
        geometry_row=geometry_row,
        geometry_table=table,
        node_volumes=node_volumes,
        surface=Surface(vertices, cut.facets, cut.facet_cell),
        pattern=pattern,
        locate=_Locator(cells, cell_lattice32, origin + h * first, h, phi.shape, len(nodes)),
        spacing=h,
        ghost=ghost,
        lattice=lattice + first,
        shape=shape,
        requested_size=spacing,
    )


def _distances(shape: Shape, spacing: float | None):
    """phi on a lattice, its first integer position, origin and spacing."""
    if isinstance(shape, SampledField) and (
        spacing is None or abs(spacing - shape.spacing) < 1e-9 * shape.spacing
    ):
        # cells at the border may be active, so the lattice gets a layer of outside around it
        phi = np.pad(shape.values.astype(float), 1, constant_values=shape.spacing)
        return phi, np.full(phi.ndim, -1), np.asarray(shape.origin, float), float(shape.spacing)
    if spacing is None:
        raise BadInput("GridBody needs a spacing for this shape, for example spacing=0.1.")
    if not (np.isfinite(spacing) and spacing > 0.0):
        raise BadInput(f"The spacing must be a positive length, not {spacing}.")
    lo, hi = (np.asarray(b, float) for b in shape.bounds)
    if not (np.isfinite(lo).all() and np.isfinite(hi).all()):
        raise BadInput("The shape is unbounded: intersect it with a box before making a body.")
    first = np.floor(lo / spacing + 1e-6).astype(int) - 1
    count = np.ceil(hi / spacing - 1e-6).astype(int) + 2 - first
    total = int(np.prod(count.astype(float)))
    if total > LARGEST_LATTICE:
        raise BadInput(
            f"Spacing {spacing:g} needs {total:,} lattice nodes, more than {LARGEST_LATTICE:,}: "
            "use a larger spacing."
        )
    axes = [spacing * (f + np.arange(c)) for f, c in zip(first, count, strict=True)]
    phi = np.empty(tuple(count))
    # slab by slab: the points of a large lattice take three times the memory of its values
    for i in range(count[0]):
        grid = np.meshgrid([axes[0][i]], *axes[1:], indexing="ij")
        points = np.stack([g.reshape(-1) for g in grid], axis=1)
        phi[i] = shape.distance(points).reshape(tuple(count[1:]))
    return phi, first, np.zeros(len(count)), float(spacing)


def _any_corner(inside: np.ndarray) -> np.ndarray:
    """Cells with at least one inside corner."""
    for axis in range(inside.ndim):
        low = tuple(slice(None, -1) if d == axis else slice(None) for d in range(inside.ndim))
        high = tuple(slice(1, None) if d == axis else slice(None) for d in range(inside.ndim))
        inside = inside[low] | inside[high]
    return inside


def _geometry(moments: np.ndarray, is_full: np.ndarray, h: float):
    """Row index of each cell and the table: full cells share the first row."""
    full = np.flatnonzero(is_full)
    partial = np.flatnonzero(~is_full)
    row = np.zeros(len(moments), np.int32)
    distinct = np.concatenate([full[:1], partial])
    row[partial] = np.arange(len(partial)) + (1 if len(full) else 0)
    return row, grid_geometry_rows(moments[distinct], h)


def _pattern_and_ghost(cells, lattice, index_of, weight) -> tuple[Pattern, GhostPenalty | None]:
    """Sparsity with room for the ghost penalty's reach of two nodes."""
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
        reach_two[neighbour[centre, 2 * axis]] = True
        reach_two[neighbour[centre, 2 * axis + 1]] = True
    pattern = lattice_pattern(cells, position, bordered, reach_two)
    if not reach_two.any():
        return pattern, None
    return pattern, GhostPenalty(weight, neighbour, _ghost_slots(pattern, neighbour, reach_two))


def _ghost_slots(pattern: Pattern, neighbour: np.ndarray, reach_two: np.ndarray) -> np.ndarray:
    """Where in each row the blocks at -2 .. 2 along each axis are stored."""
    n = len(neighbour)
    own = np.arange(n)
    slots = np.full((n, 15), 255, np.uint8)
    start = pattern.row_start[:-1].astype(np.int64)
    length = np.diff(pattern.row_start)
    for axis in range(3):
        minus, plus = neighbour[:, 2 * axis], neighbour[:, 2 * axis + 1]
        at = [
            np.where(minus >= 0, neighbour[minus, 2 * axis], -1),
            minus,
            own,
            plus,
            np.where(plus >= 0, neighbour[plus, 2 * axis + 1], -1),
        ]
        for j, target in enumerate(at):
            found = np.full(n, 255)
            for s in range(int(length.max())):
                inside = (s < length) & (target >= 0)
                hit = inside & (
                    pattern.columns[np.minimum(start + s, len(pattern.columns) - 1)] == target
                )
                found[hit] = s
            slots[:, 5 * axis + j] = found
    return slots


class _Locator:
    """Finds the cell of a material point; points outside take the nearest active cell's field."""

    def __init__(self, cells, cell_lattice, origin, spacing, lattice_shape, node_count):
        self._cells = cells
        self._lattice = cell_lattice
        self._origin = origin
        self._h = spacing
        self._cell_of = np.full(lattice_shape, -1, np.int32)
        self._cell_of[tuple(cell_lattice.T)] = np.arange(len(cells))
        self._node_count = node_count
        self._tree: cKDTree | None = None

    def cells_of(self, points: np.ndarray) -> np.ndarray:
        """Index of the cell of each point; the nearest active one where there is none."""
        x = (points - self._origin) / self._h
        place = np.clip(np.floor(x).astype(int), 0, np.array(self._cell_of.shape) - 1)
        cell = self._cell_of[tuple(place.T)]
        lost = np.flatnonzero(cell < 0)
        if len(lost):
            if self._tree is None:
                self._tree = cKDTree(self._lattice + 0.5)
            cell[lost] = self._tree.query(x[lost])[1]
        return cell

    def __call__(self, points: np.ndarray) -> Embedding:
        cell = self.cells_of(points)
        t = (points - self._origin) / self._h - self._lattice[cell]
        k, dim = self._cells.shape[1], points.shape[1]
        weights = np.ones((len(points), k))
        for a in range(k):
            for d in range(dim):
                weights[:, a] *= t[:, d] if (a >> d) & 1 else 1.0 - t[:, d]
        return Embedding(self._cells[cell], weights, self._node_count)
