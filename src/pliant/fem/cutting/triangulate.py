"""Triangles that fill a 2D shape: points along its boundary, a triangular lattice within, Delaunay.

All boundary edges are edges of the triangulation (missing ones are split until they are), so which
triangles are inside follows from the boundary alone and their area is exactly the polygon's.
"""

import logging

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.spatial import Delaunay, KDTree, QhullError

from pliant.core.errors import BadInput
from pliant.fem.cutting.cutcells import cut_cells
from pliant.geometry.shape import Shape

SNAP = 1e-5
"""Distances below SNAP * spacing count as zero, as in GridBody."""

LARGEST_LATTICE = 30_000_000
"""Lattice nodes that may be sampled: a mesh from more would take hours."""

CORNER = np.radians(30.0)
"""Turns of the boundary above this get a point of their own; a circle sampled at a quarter of its
radius turns by 14 degrees per segment, so round shapes stay evenly divided."""

CLEARANCE = 0.6
"""Lattice points nearer to the boundary than this, in edge lengths, are left out. Below 0.5 they
enter the circles over boundary edges, which then vanish; from 0.5 to 0.9 little changes."""

SMOOTHING_ROUNDS = 1
"""How often the inner points are evened out and joined anew; further rounds change the smallest
angle by a degree up or down and cost a Delaunay triangulation each."""

SPLITTING_ROUNDS = 12
"""How often a boundary edge may be halved: to 1/4000, past any detail worth having."""

_log = logging.getLogger(__name__)


def triangulate(shape: Shape, edge_length: float) -> tuple[np.ndarray, np.ndarray]:
    """Nodes (n, 2) and counter-clockwise triangles (m, 3) with edges of about edge_length [m]."""
    points, segments = sampled_surface(shape, edge_length / 2.0)
    points = onto_surface(shape, points, edge_length / 4.0)
    loops = []
    for loop in _loops(segments):
        outline = _divided(shape, points[loop], edge_length)
        if outline is None:
            _log.info("a boundary loop smaller than the edge length %g is left out", edge_length)
        else:
            loops.append(outline)
    if not loops:
        raise BadInput(
            f"The shape is smaller than the edge length {edge_length:g}: use a smaller one."
        )
    border, edges = _joined(loops, edge_length)
    inner = _lattice(shape, border, edges, edge_length)
    border, edges, inner, hull = _conforming(shape, border, edges, inner, edge_length)
    nodes = np.concatenate([border, inner])
    triangles = _inside(hull, edges, len(nodes))
    for _ in range(SMOOTHING_ROUNDS):
        moved = _smoothed(nodes, triangles, len(border))
        hull = _delaunay(moved)
        if len(_missing(hull, edges, len(moved))):
            break
        nodes, triangles = moved, _inside(hull, edges, len(moved))
    return nodes, triangles


def sampled_surface(shape: Shape, spacing: float) -> tuple[np.ndarray, np.ndarray]:
    """Points and facets of the surface phi = 0 on a lattice with steps of at most `spacing` [m].

    Facets are triangles (3D) or segments (2D), closed, normals outward. The lattice starts and
    ends on the shape's bounds, so faces that lie there are met exactly, with their corners.
    """
    lo, hi = (np.asarray(b, float) for b in shape.bounds)
    if not (np.isfinite(lo).all() and np.isfinite(hi).all()):
        raise BadInput("The shape is unbounded: intersect it with a box before making a body.")
    cells = np.maximum(np.ceil((hi - lo) / spacing - 1e-9), 2.0)
    total = float(np.prod(cells + 3.0))
    if not total <= LARGEST_LATTICE:
        raise BadInput(
            f"This edge length needs {total:,.0f} lattice nodes, more than {LARGEST_LATTICE:,}: "
            "use a larger edge_length."
        )
    step = (hi - lo) / cells
    axes = [a + s * (np.arange(int(c) + 3) - 1) for a, s, c in zip(lo, step, cells, strict=True)]
    phi = np.stack([_slab(shape, x, axes[1:]) for x in axes[0]])
    if not np.isfinite(phi).all():
        raise BadInput("The shape has distances that are not numbers; check its parameters.")
    phi[np.abs(phi) < SNAP * step.min()] = 0.0
    # a shape that reaches beyond its bounds ends there
    for axis in range(phi.ndim):
        for side in (0, -1):
            border = phi[(slice(None),) * axis + (side,)]
            border[border <= 0.0] = step.min()
    if not (phi < 0.0).any():
        raise BadInput("The shape has no inside at this edge_length: use a smaller one.")
    flat, active = _active_cells(phi)
    cut = cut_cells(phi.reshape(-1), flat[active])
    place = np.stack(np.unravel_index(np.arange(phi.size), phi.shape), axis=1)
    low = lo + step * (place[cut.edge_low] - 1)
    high = lo + step * (place[cut.edge_high] - 1)
    w = cut.edge_weight[:, None]
    return (1.0 - w) * low + w * high, cut.facets


def _slab(shape: Shape, x: float, axes: list[np.ndarray]) -> np.ndarray:
    """Distances on one layer of the lattice: all points at once would take too much memory."""
    grid = np.meshgrid([x], *axes, indexing="ij")
    points = np.stack([g.reshape(-1) for g in grid], axis=1)
    return shape.distance(points).reshape([len(a) for a in axes])


def _active_cells(phi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Flat node indices of all cells (x fastest), and which cells have an inside corner."""
    index = np.arange(phi.size).reshape(phi.shape)
    corners = []
    for a in range(2**phi.ndim):
        cut = tuple(slice(1, None) if a >> d & 1 else slice(None, -1) for d in range(phi.ndim))
        corners.append(index[cut].reshape(-1))
    flat = np.stack(corners, axis=1)
    return flat, np.any(phi.reshape(-1)[flat] < 0.0, axis=1)


def onto_surface(shape: Shape, points: np.ndarray, reach: float) -> np.ndarray:
    """Points moved to phi = 0 along the gradient, by at most `reach`; only where it helps."""
    best, distance = points.copy(), shape.distance(points)
    for _ in range(4):
        slope = shape.gradient(best)
        square = np.maximum(np.einsum("ni,ni->n", slope, slope), 1e-12)
        moved = best - (distance / square)[:, None] * slope
        value = shape.distance(moved)
        near = np.linalg.norm(moved - points, axis=1) <= reach
        better = near & (np.abs(value) < np.abs(distance))
        if not better.any():
            break
        best[better], distance[better] = moved[better], value[better]
    return best


def _loops(segments: np.ndarray) -> list[np.ndarray]:
    """Closed chains of point indices; the inside is on their left."""
    order = np.argsort(segments[:, 0], kind="stable")
    start, end = segments[order, 0], segments[order, 1]
    first = np.searchsorted(start, np.arange(segments.max() + 2)).tolist()
    used = list(first)  # next segment to leave each point by; loops may touch in a point
    loops = []
    for point in range(len(first) - 1):
        while used[point] < first[point + 1]:
            loop, at = [], point
            while used[at] < first[at + 1]:
                loop.append(at)
                used[at] += 1
                at = int(end[used[at] - 1])
            loops.append(np.array(loop))
    return loops


def _turns(loop: np.ndarray) -> np.ndarray:
    """Angle of the change of direction at each point of a closed polyline, left positive."""
    ahead = np.roll(loop, -1, axis=0) - loop
    behind = loop - np.roll(loop, 1, axis=0)
    cross = behind[:, 0] * ahead[:, 1] - behind[:, 1] * ahead[:, 0]
    return np.arctan2(cross, np.einsum("ni,ni->n", behind, ahead))


def _area(loop: np.ndarray) -> float:
    ahead = np.roll(loop, -1, axis=0)
    return float((loop[:, 0] * ahead[:, 1] - loop[:, 1] * ahead[:, 0]).sum() / 2.0)


def _without_repeats(loop: np.ndarray, gap: float) -> np.ndarray:
    return loop[np.linalg.norm(loop - np.roll(loop, 1, axis=0), axis=1) > gap]


def _divided(shape: Shape, loop: np.ndarray, edge: float) -> np.ndarray | None:
    """Points about `edge` apart along a boundary loop, with its corners; None if it is a speck."""
    loop = _without_repeats(loop, 1e-4 * edge)
    if len(loop) < 3 or abs(_area(loop)) < 0.02 * edge**2:
        return None
    loop = _sharpened(shape, loop, edge / 2.0)
    length = np.linalg.norm(np.roll(loop, -1, axis=0) - loop, axis=1)
    along = np.concatenate([[0.0], np.cumsum(length)])
    corners = _separate_corners(np.abs(_turns(loop)), along, 0.25 * edge)
    stops = along[corners] if len(corners) else np.zeros(1)
    stops = np.append(stops, stops[0] + along[-1])
    counts = np.maximum(np.rint(np.diff(stops) / edge).astype(int), 1)
    while counts.sum() < (6 if len(corners) == 0 else 3):
        counts += 1
    at = np.concatenate(
        [a + (b - a) * np.arange(c) / c for a, b, c in zip(stops, stops[1:], counts, strict=False)]
    )
    fixed = np.concatenate([[0], np.cumsum(counts)[:-1]]) if len(corners) else np.zeros(0, int)
    closed = np.concatenate([loop, loop[:1]])
    at = at % along[-1]
    points = np.stack([np.interp(at, along, closed[:, d]) for d in range(2)], axis=1)
    placed = onto_surface(shape, points, edge / 4.0)
    placed[fixed] = loop[corners] if len(corners) else placed[fixed]
    return placed


def _sharpened(shape: Shape, loop: np.ndarray, step: float) -> np.ndarray:
    """Corners that the lattice cut off put back: where both sides, prolonged, meet on phi = 0."""
    turn = _turns(loop)
    after = np.roll(turn, -1)
    cut = (turn * after > 0.0) & (np.minimum(np.abs(turn), np.abs(after)) > np.radians(5.0))
    cut = np.flatnonzero(cut & (np.abs(turn + after) > CORNER))
    n = len(loop)
    a, b = loop[cut - 1], loop[cut]
    c, d = loop[(cut + 1) % n], loop[(cut + 2) % n]
    p, q, r = b - a, d - c, c - b
    cross = p[:, 0] * q[:, 1] - p[:, 1] * q[:, 0]
    t = (r[:, 0] * q[:, 1] - r[:, 1] * q[:, 0]) / np.where(np.abs(cross) > 0.0, cross, 1.0)
    corner = b + t[:, None] * p
    near = np.linalg.norm(corner - (b + c) / 2.0, axis=1) < 2.0 * step
    near &= np.abs(shape.distance(np.where(near[:, None], corner, b))) < 1e-3 * step
    drop = np.zeros(n, bool)
    result = loop.copy()
    for i, x in zip(cut[near].tolist(), corner[near], strict=True):
        if not (drop[i] or drop[(i + 1) % n]):
            result[i] = x
            drop[(i + 1) % n] = True
    return result[~drop]


def _separate_corners(turn: np.ndarray, along: np.ndarray, gap: float) -> np.ndarray:
    """Sharpest points first, none nearer than `gap` to another along the loop; ascending."""
    chosen: list[int] = []
    for i in np.argsort(-turn, kind="stable").tolist():
        if turn[i] < CORNER:
            break
        apart = np.abs(along[chosen] - along[i])
        if (np.minimum(apart, along[-1] - apart) >= gap).all():
            chosen.append(i)
    return np.array(sorted(chosen), int)


def _joined(loops: list[np.ndarray], edge: float) -> tuple[np.ndarray, np.ndarray]:
    """All loops' points, without near-duplicates, and directed edges (m, 2)."""
    points = np.concatenate(loops)
    first = np.cumsum([0, *(len(loop) for loop in loops)])
    edges = np.concatenate(
        [
            np.stack([np.arange(a, b), np.append(np.arange(a + 1, b), a)], axis=1)
            for a, b in zip(first, first[1:], strict=False)
        ]
    )
    rounded = np.round(points / (1e-6 * edge)).astype(np.int64)
    _, one, back = np.unique(rounded, axis=0, return_index=True, return_inverse=True)
    edges = back.reshape(-1)[edges]
    edges = np.unique(edges[edges[:, 0] != edges[:, 1]], axis=0)
    # walls of no thickness: the two directions cancel
    both = np.isin(_keys(edges, len(one)), _keys(edges[:, ::-1], len(one)))
    return points[one], edges[~both]


def _lattice(shape: Shape, border: np.ndarray, edges: np.ndarray, edge: float) -> np.ndarray:
    """Points of a triangular lattice inside the shape and clear of its boundary."""
    lo, hi = border.min(axis=0), border.max(axis=0)
    height = edge * np.sqrt(3.0) / 2.0
    rows = int((hi[1] - lo[1]) / height)
    columns = int((hi[0] - lo[0]) / edge) + 2
    if rows < 1:
        return np.zeros((0, 2))
    i, j = np.meshgrid(np.arange(columns), np.arange(rows + 1), indexing="ij")
    x = (i + 0.5 * (j % 2) - 0.25).reshape(-1) * edge
    # the rows are centred, so that both sides leave the same gap
    y = j.reshape(-1) * height + ((hi[1] - lo[1]) - rows * height) / 2.0
    points = lo + np.stack([x, y], axis=1)
    points = points[(points <= hi).all(axis=1)]
    steps = np.linspace(0.0, 1.0, 8, endpoint=False)[:, None, None]
    dense = ((1.0 - steps) * border[edges[:, 0]] + steps * border[edges[:, 1]]).reshape(-1, 2)
    points = points[KDTree(dense).query(points)[0] > CLEARANCE * edge]
    return points[shape.distance(points) < 0.0] if len(points) else points


def _delaunay(points: np.ndarray) -> np.ndarray:
    """Counter-clockwise triangles of the convex hull."""
    try:
        found = Delaunay(points - points.mean(axis=0)).simplices.astype(np.int64)
    except QhullError as error:
        raise BadInput("The shape is too thin for this edge_length: use a smaller one.") from error
    a, b, c = np.moveaxis(points[found], 1, 0)
    p, q = b - a, c - a
    turned = p[:, 0] * q[:, 1] - p[:, 1] * q[:, 0] < 0.0
    found[turned] = found[turned][:, [0, 2, 1]]
    return found


def _keys(pairs: np.ndarray, count: int) -> np.ndarray:
    return pairs[..., 0].astype(np.int64) * count + pairs[..., 1]


def _sides(triangles: np.ndarray) -> np.ndarray:
    """Directed sides of triangles, (m, 3, 2)."""
    return np.stack([triangles, np.roll(triangles, -1, axis=1)], axis=2)


def _missing(triangles: np.ndarray, edges: np.ndarray, count: int) -> np.ndarray:
    """Rows of `edges` that are no side of any triangle."""
    present = _keys(np.sort(_sides(triangles).reshape(-1, 2), axis=1), count)
    return np.flatnonzero(~np.isin(_keys(np.sort(edges, axis=1), count), present))


def _conforming(shape: Shape, border, edges, inner, edge_length: float):
    """Boundary edges that are not in the triangulation halved until all are."""
    for _ in range(SPLITTING_ROUNDS):
        nodes = np.concatenate([border, inner])
        hull = _delaunay(nodes)
        missing = _missing(hull, edges, len(nodes))
        if len(missing) == 0:
            return border, edges, inner, hull
        a, b = edges[missing].T
        length = np.linalg.norm(border[b] - border[a], axis=1)
        middle = (border[a] + border[b]) / 2.0
        placed = onto_surface(shape, middle, edge_length / 4.0)
        too_far = np.linalg.norm(placed - middle, axis=1) > 0.2 * length
        placed[too_far] = middle[too_far]
        new = len(border) + np.arange(len(missing))
        kept = np.delete(edges, missing, axis=0)
        edges = np.concatenate([kept, np.stack([a, new], axis=1), np.stack([new, b], axis=1)])
        border = np.concatenate([border, placed])
        if len(inner):
            inner = inner[KDTree(placed).query(inner)[0] > 0.4 * edge_length]
    raise BadInput(
        f"The shape has details much finer than the edge length {edge_length:g}: use a smaller one."
    )


def _inside(triangles: np.ndarray, edges: np.ndarray, n: int) -> np.ndarray:
    """Those triangles of a triangulation of n nodes that are on the left of the boundary edges.

    Triangles joined across other sides are on the same side of the boundary; a triangle with a
    boundary edge in its own direction tells which. No coordinates are compared, so triangles of
    no area along straight sides cannot be misjudged.
    """
    m = len(triangles)
    sides = _sides(triangles)
    forward = np.isin(_keys(sides, n), _keys(edges, n))
    backward = np.isin(_keys(sides[..., ::-1], n), _keys(edges, n))
    flat = _keys(np.sort(sides.reshape(-1, 2), axis=1), n)
    free = np.flatnonzero(~(forward | backward).reshape(-1))
    order = free[np.argsort(flat[free], kind="stable")]
    pair = np.flatnonzero(flat[order][1:] == flat[order][:-1])
    left, right = order[pair] // 3, order[pair + 1] // 3
    graph = sparse.coo_matrix((np.ones(len(left)), (left, right)), shape=(m, m))
    piece = connected_components(graph, directed=False)[1]
    votes = forward.sum(axis=1) - backward.sum(axis=1)
    return triangles[np.bincount(piece, votes)[piece] > 0.0]


def _smoothed(nodes: np.ndarray, triangles: np.ndarray, fixed: int) -> np.ndarray:
    """Every node but the first `fixed` moved to the mean of its neighbours, twice."""
    sides = np.unique(np.sort(_sides(triangles).reshape(-1, 2), axis=1), axis=0)
    both = np.concatenate([sides, sides[:, ::-1]])
    n = len(nodes)
    count = np.maximum(np.bincount(both[:, 0], minlength=n), 1)
    moved = nodes.copy()
    for _ in range(2):
        total = [np.bincount(both[:, 0], moved[both[:, 1], d], minlength=n) for d in range(2)]
        moved[fixed:] = (np.stack(total, axis=1) / count[:, None])[fixed:]
    return moved
