"""The part of a body's surface that lies in a region, facet by facet.

A facet that a region's boundary passes through is cut there, so that a wall or a load acts on
exactly the covered part. Planes cut exactly; along a curved boundary a facet is first parted into
small ones, on which the boundary counts as straight.
"""

from dataclasses import dataclass

import numpy as np

from pliant.fem.bodies.body import Body
from pliant.fem.cutting.convex_pieces import clipped
from pliant.geometry.shape import Shape
from pliant.geometry.surfaces import Leaf, Plane, combine, leaves, surfaces_of

PARTS = 4
"""Parts along each edge of a facet where the region is curved. A disc as wide as two cells is then
covered to 0.1 %."""

ON_FACE = 1e-9
"""Distance, in cell widths, within which a region that ends on a face still covers it."""


@dataclass(frozen=True)
class CoveredFacets:
    """facet: (pieces,) the body's facet each piece is part of; corners: (pieces, dim, dim)."""

    facet: np.ndarray
    corners: np.ndarray


def covered_facets(body: Body, region: Shape) -> CoveredFacets:
    """Simplices that make up the part of the body's surface inside the region."""
    surface = body.surface
    corners = surface.positions(body.nodes)[surface.facets]
    middle = corners.mean(axis=1)
    reach = np.linalg.norm(corners - middle[:, None], axis=2).max(axis=1)
    distance = region.distance(middle)
    whole = np.flatnonzero(distance < -reach)
    mixed = np.flatnonzero(np.abs(distance) <= reach * (1.0 + 1e-9) + ON_FACE * body.spacing)
    facet, pieces = _cut(corners[mixed], mixed, region, ON_FACE * body.spacing)
    facet = np.concatenate([whole, facet])
    order = np.argsort(facet, kind="stable")
    return CoveredFacets(facet[order], np.concatenate([corners[whole], pieces])[order])


def _cut(corners: np.ndarray, facet: np.ndarray, region: Shape, tolerance: float):
    """The covered pieces of facets that may be covered in part: (facet, corners) of each."""
    tree = surfaces_of(region)
    surfaces = leaves(tree)
    dim = corners.shape[2]
    if any(not isinstance(leaf, Plane) for leaf in surfaces):
        corners, facet = _parted(corners, facet)
    values = np.stack([_corner_values(leaf, corners) for leaf in surfaces], axis=2)
    values[np.abs(values) <= tolerance] = 0.0
    if dim == 2:
        vertex = _upright(corners, values)
    else:
        vertex = np.concatenate([corners, values], axis=2)
    count = np.full(len(vertex), vertex.shape[1])
    sign = np.zeros((len(vertex), len(surfaces)), np.int8)
    for k in range(len(surfaces)):
        used = np.arange(vertex.shape[1]) < count[:, None]
        value = vertex[:, :, 3 + k]
        low = np.where(used, value, np.inf).min(axis=1, initial=np.inf)
        high = np.where(used, value, -np.inf).max(axis=1, initial=-np.inf)
        sign[:, k] = np.where(high > 0.0, 1, -1)  # a region that ends on a facet covers it
        crossed = (low < 0.0) & (high > 0.0)
        if not crossed.any():
            continue
        below, below_count = clipped(vertex[crossed], count[crossed], k, -1.0)
        above, above_count = clipped(vertex[crossed], count[crossed], k, 1.0)
        lower = sign[crossed]
        lower[:, k] = -1
        width = max(below.shape[1], above.shape[1], vertex.shape[1])
        vertex = np.concatenate([_wide(v, width) for v in (vertex[~crossed], below, above)])
        count = np.concatenate([count[~crossed], below_count, above_count])
        sign = np.concatenate([sign[~crossed], lower, sign[crossed]])
        facet = np.concatenate([facet[~crossed], facet[crossed], facet[crossed]])
    inside = (combine(tree, sign) < 0) & (count > 2)
    vertex, count, facet = vertex[inside][:, :, :3], count[inside], facet[inside]
    if dim == 2:
        slot = np.arange(vertex.shape[1])
        low = (slot < count[:, None]) & (vertex[:, :, 2] == 0.0)
        ends = np.argsort(~low, axis=1, kind="stable")[:, :2]
        return facet, np.take_along_axis(vertex, ends[:, :, None], axis=1)[:, :, :2]
    polygon, corner = np.nonzero(np.arange(vertex.shape[1] - 2) < count[:, None] - 2)
    picked = np.stack([np.zeros_like(corner), corner + 1, corner + 2], axis=1)
    return facet[polygon], vertex[polygon[:, None], picked]


def _corner_values(leaf: Leaf, corners: np.ndarray) -> np.ndarray:
    """Values (n, dim) of a function at corners, such that their linear interpolant is right on
    average: its excess over f at an edge's middle is (f_i + f_j) / 2 - f(middle), of which a
    triangle's mean is the mean over its edges, a segment's two thirds (f quadratic).
    """
    dim = corners.shape[2]
    value = leaf(corners.reshape(-1, dim)).reshape(-1, dim)
    if isinstance(leaf, Plane):
        return value
    after = np.roll(np.arange(dim), -1)
    middle = (corners + corners[:, after]) / 2.0
    excess = (value + value[:, after]) / 2.0 - leaf(middle.reshape(-1, dim)).reshape(-1, dim)
    return value - excess.mean(axis=1, keepdims=True) * (1.0 if dim == 3 else 2.0 / 3.0)


def _wide(vertex: np.ndarray, width: int) -> np.ndarray:
    more = np.zeros((len(vertex), width - vertex.shape[1], vertex.shape[2]))
    return np.concatenate([vertex, more], axis=1)


def _upright(corners: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Segments drawn along z to rectangles, first end and second end at z = 0 first."""
    n = len(corners)
    flat = np.concatenate([corners, np.zeros((n, 2, 1)), values], axis=2)
    lifted = flat[:, ::-1].copy()
    lifted[:, :, 2] = 1.0
    return np.concatenate([flat, lifted], axis=1)


def _parted(corners: np.ndarray, facet: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each segment in PARTS, each triangle in PARTS^2 like ones."""
    s = PARTS
    if corners.shape[2] == 2:
        weights = [[[1 - i / s, i / s], [1 - (i + 1) / s, (i + 1) / s]] for i in range(s)]
    else:

        def at(i, j):
            return [1 - (i + j) / s, i / s, j / s]

        weights = []
        for i in range(s):
            for j in range(s - i):
                weights.append([at(i, j), at(i + 1, j), at(i, j + 1)])
                if i + j < s - 1:
                    weights.append([at(i + 1, j), at(i + 1, j + 1), at(i, j + 1)])
    w = np.array(weights)
    parts = np.einsum("pab,fbd->fpad", w, corners)
    return parts.reshape(-1, *corners.shape[1:]), np.repeat(facet, len(w))
