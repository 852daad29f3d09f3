"""Which points of which parts may touch which facets: boxes first, then the nearest facet.

Broad: the boxes around the surfaces, enlarged by the reach, sorted by their lower ends along x; of
those that overlap there, the ones that overlap along y and z too. Narrow: points of one surface in
the other's box, and of the facets whose middles are nearest the one that is nearest itself. Lists
are made in the order of the parts and of their points, so the bits of what follows depend on
nothing else.
"""

import numpy as np
from scipy.spatial import KDTree

from pliant.dynamics.parts.pairs import Found
from pliant.dynamics.parts.touching_surface import TouchingSurface

CANDIDATES = 10
"""Facets looked at for a point: next to a cut cell's slivers the nearest middle need not be that of
the nearest facet."""


def overlapping(low: np.ndarray, high: np.ndarray) -> list[tuple[int, int]]:
    """Pairs (i < j) of boxes (n, 3) that overlap, ascending."""
    order = np.argsort(low[:, 0], kind="stable")
    found = []
    for rank, i in enumerate(order.tolist()):
        for j in order[rank + 1 :].tolist():
            if low[j, 0] > high[i, 0]:
                break
            if (low[i] <= high[j]).all() and (low[j] <= high[i]).all():
                found.append((min(i, j), max(i, j)))
    return sorted(found)


def nearest_facets(
    points: np.ndarray, corners: np.ndarray, tree: KDTree
) -> tuple[np.ndarray, np.ndarray]:
    """Number (n,) of the facet (f, 3, 3) nearest to each point (n, 3), and the distance, which is
    negative behind it; tree: of the facets' middles.
    """
    count = min(CANDIDATES, len(corners))
    near = np.sort(tree.query(points, k=count)[1].reshape(len(points), count), axis=1)
    square, sign = _to_triangles(points[:, None], corners[near])
    best = np.argmin(square, axis=1)
    row = np.arange(len(points))
    return near[row, best], np.sqrt(square[row, best]) * sign[row, best]


def _to_triangles(p: np.ndarray, corners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Squared distance of points (n, 1, 3) to triangles (n, c, 3, 3), and the side they are on."""
    a, b, c = (corners[..., k, :] for k in range(3))
    normal = np.cross(b - a, c - a)
    area = np.maximum((normal * normal).sum(axis=-1), 1e-300)
    height = ((p - a) * normal).sum(axis=-1)
    over = np.ones(height.shape, bool)
    square = np.full(height.shape, np.inf)
    for start, end in ((a, b), (b, c), (c, a)):
        along, to = end - start, p - start
        over &= (np.cross(along, to) * normal).sum(axis=-1) >= 0.0
        length = np.maximum((along * along).sum(axis=-1), 1e-300)
        t = np.clip((to * along).sum(axis=-1) / length, 0.0, 1.0)
        beside = to - t[..., None] * along
        square = np.minimum(square, (beside * beside).sum(axis=-1))
    return np.where(over, height**2 / area, square), np.where(height < 0.0, -1.0, 1.0)


def find(surfaces: list[TouchingSurface], x: np.ndarray, reach: np.ndarray) -> list[Found]:
    """Of node positions x (nodes, 3); reach: (parts,) [m] how far from a part a point may be."""
    at = [s.points.at(s.own(x)) for s in surfaces]
    low = np.array([p.min(axis=0) for p in at]) - reach[:, None]
    high = np.array([p.max(axis=0) for p in at]) + reach[:, None]
    trees: dict[int, tuple[np.ndarray, KDTree]] = {}
    found = []
    for pair in overlapping(low, high):
        for a, b in (pair, pair[::-1]):
            inside = np.flatnonzero(((at[a] >= low[b]) & (at[a] <= high[b])).all(axis=1))
            if not len(inside):
                continue
            if b not in trees:
                corners = at[b][surfaces[b].body.surface.facets]
                trees[b] = corners, KDTree(corners.mean(axis=1))
            facet, distance = nearest_facets(at[a][inside], *trees[b])
            close = distance <= reach[a] + reach[b]
            if close.any():
                found.append(Found(a, b, inside[close], facet[close]))
    return found
