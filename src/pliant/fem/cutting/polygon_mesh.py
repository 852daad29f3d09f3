"""Polygons of many cells made one closed surface of facets.

Cells find a point on their common face by different sums, and one may cut a line there in two that
its neighbour keeps whole. Here near points become one, and a polygon takes up the points that lie
on its sides, so that the facets share their edges.
"""

import numpy as np
from scipy.spatial import KDTree

from pliant.fem.cutting.cutcells import uncancelled
from pliant.fem.cutting.piece_simplices import fans

SAME_PLACE = 2.0**-27
"""Points closer than this, in cell widths, are one."""

ON_SIDE = 1e-6
"""Distance, in cell widths, up to which a point counts as lying on a side."""


def facets_of_polygons(
    vertex: np.ndarray, count: np.ndarray, cell: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points (points, 3) in lattice units, triangles (facets, 3) and the polygon of each.

    vertex: (polygons, longest, 3) in the unit cell; count: (polygons,) of them in use;
    cell: (polygons, 3) lattice position. Facets that lie back to back cancel.
    """
    points, ring = common_points(vertex, count, cell)
    side, extra = _points_on_sides(points, ring, count)
    touched = np.unique(side[:, 0])
    plain = np.ones(len(ring), bool)
    plain[touched] = False
    rows = np.flatnonzero(plain)
    # from the lowest point on, so that two polygons back to back get the same triangles
    used = np.arange(ring.shape[1]) < count[rows][:, None]
    begin = np.where(used, ring[rows], len(points)).argmin(axis=1)
    turn = (begin[:, None] + np.arange(ring.shape[1])) % np.maximum(count[rows], 1)[:, None]
    facets, which = fans(np.take_along_axis(ring[rows], turn, axis=1), count[rows])
    which = rows[which]
    if len(touched):
        points, around, owner = _around_middles(points, ring, count, side, extra, touched)
        facets, which = np.concatenate([facets, around]), np.concatenate([which, owner])
    a, b, c = facets.T
    proper = (a != b) & (b != c) & (c != a)
    facets, which = facets[proper], which[proper]
    left = uncancelled(facets)
    return points, facets[left], which[left]


def common_points(vertex, count, cell) -> tuple[np.ndarray, np.ndarray]:
    """Distinct points in lattice units and the point of each vertex, (polygons, longest)."""
    dim = cell.shape[1]
    used = np.arange(vertex.shape[1]) < count[:, None]
    polygon, slot = np.nonzero(used)
    at = vertex[polygon, slot][:, :dim] + cell[polygon]
    first, inverse = _distinct(at)
    ring = np.zeros(used.shape, np.int64)
    ring[polygon, slot] = inverse
    return at[first], ring


def _distinct(at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows that stand for all points, and the number of each point among them."""
    key = np.rint(at / SAME_PLACE).astype(np.int64)
    _, first, inverse = np.unique(key, axis=0, return_index=True, return_inverse=True)
    return first, inverse.reshape(-1)


def _points_on_sides(points, ring, count) -> tuple[np.ndarray, np.ndarray]:
    """(polygon, slot) of sides and a point on each, in order along the side.

    Only sides without an opposite can have points on them, and only their ends can be such points.
    """
    slot = np.arange(ring.shape[1])
    used = slot < count[:, None]
    onward = np.take_along_axis(ring, np.where(slot + 1 < count[:, None], slot + 1, 0), axis=1)
    polygon, place = np.nonzero(used & (ring != onward))
    a, b = ring[polygon, place], onward[polygon, place]
    low, high = np.minimum(a, b), np.maximum(a, b)
    _, group = np.unique(low * len(points) + high, return_inverse=True)
    net = np.bincount(group.reshape(-1), weights=np.where(a < b, 1, -1))
    lone = np.flatnonzero(net[group.reshape(-1)] != 0)
    none = np.zeros((0, 2), int), np.zeros(0, int)
    if len(lone) == 0:
        return none
    ends = np.unique(np.concatenate([a[lone], b[lone]]))
    p, q = points[a[lone]], points[b[lone]]
    length = np.linalg.norm(q - p, axis=1)
    found = KDTree(points[ends]).query_ball_point((p + q) / 2.0, length / 2.0 * (1.0 + 1e-9))
    which = np.repeat(np.arange(len(lone)), [len(f) for f in found])
    if len(which) == 0:
        return none
    point = ends[np.concatenate([np.asarray(f, int) for f in found])]
    along = (q - p)[which]
    offset = points[point] - p[which]
    share = np.einsum("ni,ni->n", offset, along) / np.maximum(length[which] ** 2, 1e-300)
    away = np.linalg.norm(offset - share[:, None] * along, axis=1)
    on = (point != a[lone][which]) & (point != b[lone][which])
    on &= (away < ON_SIDE) & (share > 0.0) & (share < 1.0)
    which, point, share = which[on], point[on], share[on]
    order = np.lexsort((point, share, which))
    which, point = which[order], point[order]
    return np.stack([polygon[lone[which]], place[lone[which]]], axis=1), point


def _around_middles(points, ring, count, side, extra, touched):
    """Triangles from the middle of each polygon with points on its sides, which avoids flat ones.

    Returns all points, the triangles and the polygon of each.
    """
    own = np.repeat(touched, count[touched])
    place = np.arange(len(own)) - np.repeat(
        np.cumsum(count[touched]) - count[touched], count[touched]
    )
    polygon = np.concatenate([own, side[:, 0]])
    after = np.concatenate([place, side[:, 1]])
    rank = np.concatenate([np.zeros(len(own), int), 1 + np.arange(len(side))])
    corner = np.concatenate([ring[own, place], extra])
    order = np.lexsort((rank, after, polygon))
    polygon, corner = polygon[order], corner[order]
    begins = np.flatnonzero(np.r_[True, polygon[1:] != polygon[:-1]])
    ends = np.r_[begins[1:], len(polygon)] - 1
    following = np.r_[corner[1:], corner[:1]]
    following[ends] = corner[begins]
    number = np.cumsum(np.r_[True, polygon[1:] != polygon[:-1]]) - 1
    size = np.bincount(number)
    middle = np.stack([np.bincount(number, points[corner, d]) / size for d in range(3)], axis=1)
    first, which = _distinct(middle)
    apex = len(points) + which[number]
    triangles = np.stack([apex, corner, following], axis=1)
    return np.concatenate([points, middle[first]]), triangles, polygon
