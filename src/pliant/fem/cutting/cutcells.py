"""Cells that the surface phi = 0 cuts: moments of their inside and the surface itself.

The inside of a cell is a polyhedron: the surface crosses a lattice edge where the linear
interpolant of phi vanishes, the crossings on a face are joined by straight lines, the lines
close to loops and each loop is a triangulated disc (cut_tables). A face with four crossings
is resolved by the sign of phi at the saddle of its bilinear interpolant, which both cells
that share the face see alike, so the surface is watertight. Exactly zero counts as outside,
except that a cell without positive corners is filled: its trilinear interpolant is negative
in the whole open cell. Its surface is then those of its faces that are zero all over.

Moments M[a, b, c] = integral of x^a y^b z^c over the inside, in unit-cell coordinates, by
the divergence theorem with the field (x^(a+1) / (a+1) y^b z^c, 0, 0):

    M[a, b, c] = sum over facets  n_x dS-integral of x^(a+1) / (a+1) y^b z^c
               + 1 / (a+1)  integral over the inside of the face x = 1 of y^b z^c

and once more in the face. Every connected part of the inside is first reflected so that its
deepest corner is the origin: a sliver then has small coordinates with full relative
accuracy instead of being the difference of numbers of order one.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from pliant.core.errors import BadInput
from pliant.fem.cutting.cut_tables import cube_parts, face_rings, local_vertices, square_parts

CHUNK = 4096
"""Triangles integrated at a time: their quadrature points fill a few megabytes and stay in
the cache; 100 000 cut cells take 0.9 s like this and 4 s all at once."""


@dataclass(frozen=True)
class CutCells:
    """Moments of the inside of each cell and the surface that bounds the body.

    moments: (cells, 3, 3, 3) or (cells, 3, 3); [a, b, c] of x^a y^b z^c, unit cell = 1.
    edge_low, edge_high: (vertices,) nodes at the ends of the lattice edge that a surface
        vertex lives on; equal where it sits on a node with phi == 0.
    edge_weight: (vertices,) w; position = (1 - w) x[edge_low] + w x[edge_high].
    facets: (facets, 3) triangles or (facets, 2) segments of vertices, normal out of the
        body (right-handed; the normal of a segment p -> q is (dy, -dx)).
    facet_cell: (facets,) row of the `cells` argument; ascending.
    """

    moments: np.ndarray
    edge_low: np.ndarray
    edge_high: np.ndarray
    edge_weight: np.ndarray
    facets: np.ndarray
    facet_cell: np.ndarray


@dataclass(frozen=True)
class _Pieces:
    """Flat lists over all parts of all cut cells; owners are part rows and ascending."""

    cell: np.ndarray  # (parts,)
    origin: np.ndarray  # (parts,) deepest corner, which the reflection moves to 0
    member: np.ndarray  # (parts, corners) bool: the corners of the part
    facets: np.ndarray  # (facets, dim) local vertices
    facet_owner: np.ndarray
    segments: np.ndarray  # (segments, 2) local vertices
    segment_side: np.ndarray
    segment_owner: np.ndarray


def full_moments(dim: int) -> np.ndarray:
    """Moments of the whole unit cell, M[a, b, c] = 1 / ((a + 1) (b + 1) (c + 1))."""
    line = 1.0 / np.arange(1, 4)
    square = np.multiply.outer(line, line)
    return square if dim == 2 else np.multiply.outer(square, line)


def cut_cells(phi: np.ndarray, cells: np.ndarray) -> CutCells:
    """Cut active cells by the zero surface of a nodal field.

    phi: (nodes,) negative inside, tiny values already snapped to 0.
    cells: (cells, 8 or 4) nodes in corner order c = ix + 2 iy (+ 4 iz).

    The surface is watertight where all cells with an inside corner are given. Facets of
    two cells that coincide back to back (a sheet of zeros within the body) cancel.
    """
    phi = np.asarray(phi, dtype=np.float64)
    cells = np.asarray(cells, dtype=np.int64)
    if cells.ndim != 2 or cells.shape[1] not in (4, 8):
        raise BadInput(f"Cells have 4 or 8 nodes each; got an array of shape {cells.shape}.")
    dim = 2 if cells.shape[1] == 4 else 3
    values = phi[cells]
    low, high = values.min(axis=1, initial=np.inf), values.max(axis=1, initial=-np.inf)

    moments = np.zeros((len(cells), *(3,) * dim))
    filled = (low < 0) & (high <= 0)
    moments[filled] = full_moments(dim)

    cut = np.flatnonzero((low < 0) & (high > 0))
    pieces = _pieces(values[cut], dim)
    of_parts = _part_moments(values[cut], pieces, dim)
    order = np.argsort(pieces.cell, kind="stable")
    moments[cut] = _sum_by(pieces.cell[order], of_parts[order], len(cut))

    # only a filled cell that touches zeros can have a face of zeros
    capped = np.flatnonzero(filled & (high == 0))
    zero_facets, zero_cell = _zero_faces(values[capped] == 0, dim)
    local = np.concatenate([pieces.facets, zero_facets])
    owner = np.concatenate([cut[pieces.cell[pieces.facet_owner]], capped[zero_cell]])
    return CutCells(moments, *_surface(phi, cells, local, owner, dim))


def _keys(values: np.ndarray, dim: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Masks (case, joined, capped) of cut_tables for corner values (cells, corners)."""
    case = (values < 0) @ (1 << np.arange(values.shape[1]))
    joined, capped = np.zeros_like(case), np.zeros_like(case)
    for face, ring in enumerate(face_rings(dim)):
        on_face = values[:, ring]
        inside = on_face < 0
        # The saddle value (ac - bd) / (a - b + c - d) is negative, which connects the
        # inside, when the product of the inside values is the larger. A tie separates.
        even, odd = on_face[:, 0] * on_face[:, 2], on_face[:, 1] * on_face[:, 3]
        diagonal = (inside[:, 0] == inside[:, 2]) & (inside[:, 1] == inside[:, 3])
        diagonal &= inside[:, 0] != inside[:, 1]
        joined |= (diagonal & np.where(inside[:, 0], even > odd, odd > even)).astype(int) << face
        lone = (inside.sum(axis=1) == 1) & ((on_face == 0).sum(axis=1) == 3)
        capped |= lone.astype(int) << face
    return case, joined, capped


def _pieces(values: np.ndarray, dim: int) -> _Pieces:
    """Look up the parts of every cut cell; cells with the same key go together."""
    case, joined, capped = _keys(values, dim)
    key, group = np.unique(case | joined << 8 | capped << 16, return_inverse=True)
    by_group = np.argsort(group, kind="stable")
    ends = np.cumsum(np.bincount(group, minlength=len(key)))
    look_up = square_parts if dim == 2 else cube_parts

    none = np.zeros(0, dtype=np.int64)
    lists: dict[str, list[np.ndarray]] = {
        "cell": [none],
        "origin": [none],
        "member": [np.zeros((0, 2**dim), dtype=bool)],
        "facets": [np.zeros((0, dim), dtype=np.int64)],
        "facet_owner": [none],
        "segments": [np.zeros((0, 2), dtype=np.int64)],
        "segment_side": [none],
        "segment_owner": [none],
    }
    first = 0
    for code, rows in zip(key.tolist(), np.split(by_group, ends[:-1]), strict=False):
        for part in look_up(code & 255, code >> 8 & 255, code >> 16):
            corners = np.array(part.corners)
            count, owner = len(rows), first + np.arange(len(rows))
            member = np.zeros((count, 2**dim), dtype=bool)
            member[:, corners] = True
            lists["cell"].append(rows)
            lists["origin"].append(corners[values[np.ix_(rows, corners)].argmin(axis=1)])
            lists["member"].append(member)
            lists["facets"].append(np.tile(part.facets, (count, 1)))
            lists["facet_owner"].append(np.repeat(owner, len(part.facets)))
            lists["segments"].append(np.tile(part.segments, (count, 1)))
            lists["segment_side"].append(np.tile(part.segment_side, count))
            lists["segment_owner"].append(np.repeat(owner, len(part.segments)))
            first += count
    return _Pieces(**{name: np.concatenate(blocks) for name, blocks in lists.items()})


def _part_moments(values: np.ndarray, pieces: _Pieces, dim: int) -> np.ndarray:
    """Moments of each part in the unreflected cell, (parts, 3, 3[, 3])."""
    reflected = (pieces.origin[:, None] >> np.arange(dim) & 1).astype(bool)
    size = np.abs(values[pieces.cell])

    def points(local: np.ndarray, owner: np.ndarray) -> np.ndarray:
        return _points(size, pieces.origin, local, owner, dim)

    def mirror(owner: np.ndarray, axes: slice) -> np.ndarray:
        return 1.0 - 2.0 * (reflected[owner][:, axes].sum(axis=1) % 2)

    parts = len(pieces.cell)
    edge = _edge_moments(size, pieces, dim)
    if dim == 2:
        facets = points(pieces.facets, pieces.facet_owner)
        lines = _segment_integrals(facets) * mirror(pieces.facet_owner, slice(0, 2))[:, None, None]
        moments = _sum_by(pieces.facet_owner, lines, parts) + _extrude(edge)
    else:
        # the field vanishes on x = 0: only the contour of the reflected face x = 1 counts
        counts = pieces.segment_side != reflected[pieces.segment_owner, 0]
        owner = pieces.segment_owner[counts]
        lines = _segment_integrals(points(pieces.segments[counts], owner)[:, :, 1:])
        face = _sum_by(owner, lines * mirror(owner, slice(1, 3))[:, None, None], parts)
        moments = _extrude(face + _extrude(edge))
        owner = pieces.facet_owner
        flat = np.empty((len(owner), 27))
        for start in range(0, len(owner), CHUNK):
            rows = slice(start, start + CHUNK)
            flat[rows] = triangle_integrals(points(pieces.facets[rows], owner[rows]))
        flat *= mirror(owner, slice(0, 3))[:, None]
        moments += _sum_by(owner, flat, parts).reshape(-1, 3, 3, 3)

    for axis in range(dim):
        # x -> 1 - x maps the moments (m0, m1, m2) to (m0, m0 - m1, m0 - 2 m1 + m2)
        rows = reflected[:, axis]
        m = np.moveaxis(moments[rows], axis + 1, 0)
        back = np.stack([m[0], m[0] - m[1], (m[0] - m[1]) - (m[1] - m[2])])
        moments[rows] = np.moveaxis(back, 0, axis + 1)
    return moments


def _points(
    size: np.ndarray, origin: np.ndarray, local: np.ndarray, owner: np.ndarray, dim: int
) -> np.ndarray:
    """Reflected coordinates of local vertices (..., k) of parts `owner`: (..., k, dim).

    The distance to an end of an edge is its share of |phi|, |p| / (|p| + |q|); taken from
    the end at reflected coordinate 0 it has full relative accuracy.
    """
    places = local_vertices(dim)
    corner = places.low[local] ^ origin[owner][:, None]
    at = (corner[..., None] >> np.arange(dim) & 1).astype(np.float64)
    row = owner[:, None]
    near, far = size[row, places.low[local]], size[row, places.high[local]]
    edge = places.low[local] != places.high[local]
    near_is_zero = corner >> places.axis[local] & 1 == 0
    share = np.where(near_is_zero, near, far) / np.where(edge, near + far, 1.0)
    i, j = np.nonzero(edge)
    at[i, j, places.axis[local][i, j]] = share[i, j]
    return at


def _edge_moments(size: np.ndarray, pieces: _Pieces, dim: int) -> np.ndarray:
    """Integrals of s^c, c = 0..2, over the inside of the last edge, (parts, 3).

    The last edge runs along the last axis, s, where all other reflected coordinates are 1.
    """
    last = 1 << (dim - 1)
    start = pieces.origin ^ (last - 1)
    row = np.arange(len(start))
    near, far = size[row, start], size[row, start ^ last]
    near_in, far_in = pieces.member[row, start], pieces.member[row, start ^ last]
    total = np.where(near + far > 0, near + far, 1.0)
    t = np.where(near_in, near, far) / total
    # [0, t], [1 - t, 1] without forming the difference of nearby powers, or [0, 1]
    head = np.stack([t, t**2 / 2, t**3 / 3], axis=1)
    tail = np.stack([t, t - t**2 / 2, t - t**2 + t**3 / 3], axis=1)
    whole = 1.0 / np.arange(1, 4)
    both = np.where(far_in[:, None], whole, head)
    return np.where(near_in[:, None], both, np.where(far_in[:, None], tail, 0.0))


def _extrude(face: np.ndarray) -> np.ndarray:
    """The divergence theorem's term of the face x = 1: M[a, ...] = face[...] / (a + 1)."""
    weight = (1.0 / np.arange(1, 4)).reshape(3, *(1,) * (face.ndim - 1))
    return weight * face[:, None]


@lru_cache
def _interval_rule(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss points and weights on [0, 1], exact to degree 2 count - 1."""
    at, weight = np.polynomial.legendre.leggauss(count)
    return (1.0 + at) / 2.0, weight / 2.0


@lru_cache
def _triangle_rule() -> tuple[np.ndarray, np.ndarray]:
    """Barycentric points (20, 3) and weights of sum 1, exact to degree 7.

    A square rule collapsed to the triangle; the factor (1 - u) of the map raises the
    degree in u to 8, hence five points there and four across.
    """
    (u, wu), (v, wv) = _interval_rule(5), _interval_rule(4)
    u, v = (grid.ravel() for grid in np.meshgrid(u, v, indexing="ij"))
    weight = 2.0 * np.multiply.outer(wu, wv).ravel() * (1.0 - u)
    return np.stack([1.0 - u - v * (1.0 - u), u, v * (1.0 - u)], axis=1), weight


def _segment_integrals(ends: np.ndarray) -> np.ndarray:
    """Integrals of x^(a+1) / (a+1) y^b n_x ds over segments (n, 2 ends, 2): (n, 3, 3)."""
    s, weight = _interval_rule(3)
    x, y = (np.outer(ends[:, 0, k], 1.0 - s) + np.outer(ends[:, 1, k], s) for k in (0, 1))
    X = np.stack([x, x**2 / 2, x**3 / 3], axis=1) * weight
    Y = np.stack([np.ones_like(y), y, y**2], axis=2)
    return (X @ Y) * (ends[:, 1, 1] - ends[:, 0, 1])[:, None, None]


def triangle_integrals(corners: np.ndarray) -> np.ndarray:
    """Integrals of x^(a+1) / (a+1) y^b z^c n_x dS over triangles (n, 3, 3): (n, 27)."""
    rule, weight = _triangle_rule()
    x, y, z = (corners[:, :, k] @ rule.T for k in range(3))
    X = np.stack([x, x**2 / 2, x**3 / 3], axis=1) * weight
    Y, Z = (np.stack([np.ones_like(s), s, s**2], axis=2) for s in (y, z))
    YZ = (Y[:, :, :, None] * Z[:, :, None, :]).reshape(*y.shape, 9)
    p, q = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    area_x = (p[:, 1] * q[:, 2] - p[:, 2] * q[:, 1]) / 2.0
    return (X @ YZ).reshape(-1, 27) * area_x[:, None]


def _sum_by(owner: np.ndarray, rows: np.ndarray, count: int) -> np.ndarray:
    """Sums of the rows of each owner, (count, ...); owners ascend."""
    total = np.zeros((count, *rows.shape[1:]))
    if len(owner):
        starts = np.flatnonzero(np.r_[True, owner[1:] != owner[:-1]])
        total[owner[starts]] = np.add.reduceat(rows, starts, axis=0)
    return total


def _zero_faces(zero: np.ndarray, dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Facets on the all-zero faces of filled cells, and the row each comes from.

    A face is split along the diagonal from its lowest to its highest corner, which the
    neighbour does too, so that the two sides of a sheet of zeros cancel.
    """
    corner = len(local_vertices(dim).low) - 2**dim
    facets, rows = [np.zeros((0, dim), dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    if dim == 2:
        ring = face_rings(2)[0]
        outlines = np.stack([ring, np.roll(ring, -1)], axis=1)
    else:
        # rings are counterclockwise from outside on side 1 only
        outlines = face_rings(3).copy()
        outlines[::2] = outlines[::2, [0, 3, 2, 1]]
    for outline in outlines:
        pick = np.flatnonzero(zero[:, outline].all(axis=1))
        for shape in [[0, 1]] if dim == 2 else [[0, 1, 2], [0, 2, 3]]:
            facets.append(np.tile(corner + outline[shape], (len(pick), 1)))
            rows.append(pick)
    return np.concatenate(facets), np.concatenate(rows)


def _surface(phi: np.ndarray, cells: np.ndarray, local: np.ndarray, owner: np.ndarray, dim: int):
    """Global vertices and facets from local ones: (low, high, weight, facets, facet_cell)."""
    order = np.argsort(owner, kind="stable")
    local, owner = local[order], owner[order]
    places = local_vertices(dim)
    a, b = cells[owner[:, None], places.low[local]], cells[owner[:, None], places.high[local]]
    # crossings at a zero belong to the node, whichever edge they came from
    a, b = np.where(phi[b] == 0, b, a), np.where(phi[a] == 0, a, b)
    low, high = np.minimum(a, b), np.maximum(a, b)
    facets = np.unique(low * len(phi) + high, return_inverse=True)[1].reshape(local.shape)

    # coinciding vertices: the facet has no area and its boundary cancels in itself
    proper = facets[:, 0] != facets[:, 1]
    if dim == 3:
        proper &= (facets[:, 1] != facets[:, 2]) & (facets[:, 2] != facets[:, 0])
    keep = np.flatnonzero(proper)
    keep = keep[uncancelled(facets[keep])]
    used, first, inverse = np.unique(facets[keep], return_index=True, return_inverse=True)
    low, high = low[keep].ravel()[first], high[keep].ravel()[first]
    step = np.where(low == high, 1.0, phi[low] - phi[high])
    weight = np.where(low == high, 0.0, phi[low] / step)
    return low, high, weight, inverse.reshape(-1, dim), owner[keep]


def uncancelled(facets: np.ndarray) -> np.ndarray:
    """Rows that remain when facets with the same vertices and opposite normals annihilate."""
    corners = np.sort(facets, axis=1)
    # the orientation is that of the sorted corners when the second follows the first
    lead = facets.argmin(axis=1)[:, None]
    if facets.shape[1] == 2:
        same = lead[:, 0] == 0
    else:
        same = np.take_along_axis(facets, (lead + 1) % 3, axis=1)[:, 0] == corners[:, 1]
    sign = np.where(same, 1, -1)
    order = np.lexsort(corners.T)
    corners, sign = corners[order], sign[order]
    new = np.r_[True, (corners[1:] != corners[:-1]).any(axis=1)][: len(order)]
    group = np.cumsum(new) - 1
    net = np.bincount(group, weights=sign).astype(np.int64)
    # within a group keep the first |net| facets that have the sign of net
    agrees = sign * net[group] > 0
    rank = np.cumsum(agrees)
    before = (rank - agrees)[new][group]
    return np.sort(order[agrees & (rank - before <= np.abs(net[group]))])
