"""How a surface can pass through one cell: the combinatorics of marching squares and cubes.

Corners are numbered c = ix + 2 iy (+ 4 iz). A *local vertex* is a place where the
surface can have a vertex: first the cell's edges (sorted by axis, then by lower corner),
then its corners. `LocalVertices` says where each of them is.

A cell is described by a key of three bit masks:

case    bit c is set when corner c is inside (phi < 0)
joined  bit f is set when face f is ambiguous and its two inside corners are connected
capped  bit f is set when face f has one inside corner and three zeros. The bilinear
        interpolant is then negative in the whole open face, so the contour runs along the
        two far edges instead of cutting the face in half; without this an aligned box
        would lose the corners of its cross section.

Face f = 2 axis + side; a square has the one face 0, itself. A key is turned into *parts*:
the connected pieces of the inside, each with the facets that separate it from the outside.
"""

from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np

FACE_DIAGONAL_COST = 100
"""Price of a surface diagonal that lies in a face of the cell, in squared cell widths.
Such a diagonal could coincide with one of the neighbouring cell and four triangles would
meet in it. Larger than any sum of squared lengths (at most 15 diagonals of length^2 3),
so that a triangulation with fewer of them always wins."""


@dataclass(frozen=True)
class LocalVertices:
    """Ends of the places in a cell where the surface can have a vertex.

    low, high: (places,) corners at the two ends; equal where the place is a corner.
    axis: (places,) direction of the edge; 0 (and of no meaning) for a corner.
    """

    low: np.ndarray
    high: np.ndarray
    axis: np.ndarray


@dataclass(frozen=True)
class Part:
    """A connected piece of the inside of a cell.

    corners: the inside corners that belong to it.
    facets: (facets, dim) local vertices; the right-handed normal points out of the body
        (2D: the normal of p -> q is (dy, -dx)).
    segments: (segments, 2) local vertices; the contour on the two faces normal to x,
        counterclockwise in the (y, z) plane (inside on the left). Empty in 2D.
    segment_side: (segments,) the x of the face, 0 or 1.
    """

    corners: tuple[int, ...]
    facets: np.ndarray
    segments: np.ndarray
    segment_side: np.ndarray


@lru_cache
def local_vertices(dim: int) -> LocalVertices:
    """Edges and then corners of the unit square (dim 2) or cube (dim 3)."""
    corners = range(2**dim)
    edges = [(c, c | 1 << axis, axis) for axis in range(dim) for c in corners if not c >> axis & 1]
    low, high, axis = np.array(edges + [(c, c, 0) for c in corners], dtype=np.int64).T
    return LocalVertices(low, high, axis)


@lru_cache
def face_rings(dim: int) -> np.ndarray:
    """Corners of each face, (faces, 4), counterclockwise in the plane (axis + 1, axis + 2).

    Seen from outside, that is counterclockwise for side 1 and clockwise for side 0.
    """
    if dim == 2:
        return np.array([[0, 1, 3, 2]])
    rings = []
    for axis in range(3):
        u, v = 1 << (axis + 1) % 3, 1 << (axis + 2) % 3
        rings += [[start, start | u, start | u | v, start | v] for start in (0, 1 << axis)]
    return np.array(rings)


@lru_cache
def _vertex_numbers(dim: int) -> dict[tuple[int, int], int]:
    """Local vertex between two corners, in either order; a corner is between itself."""
    places = local_vertices(dim)
    ends = list(zip(places.low.tolist(), places.high.tolist(), strict=True))
    numbers = {pair: number for number, pair in enumerate(ends)}
    return numbers | {(b, a): number for (a, b), number in numbers.items()}


def _contour(dim: int, face: int, case: int, joined: bool, capped: bool) -> list[list[int]]:
    """Paths of the contour through one face, with the inside on the left.

    A path leaves the face's boundary where the boundary leaves the inside. It comes back
    at the near end of the same run of inside corners (which cuts that run off), or, when
    the face is joined, at the next run.
    """
    ring = face_rings(dim)[face].tolist()
    number = _vertex_numbers(dim)
    inside = [bool(case >> c & 1) for c in ring]
    paths = []
    for k in range(4):
        if not inside[k] or inside[(k + 1) % 4]:
            continue
        entry = (k + 1) % 4 if joined else k
        if joined:
            while not inside[entry]:
                entry = (entry + 1) % 4
        else:
            while inside[entry - 1]:
                entry -= 1
        path = [number[ring[k], ring[(k + 1) % 4]], number[ring[entry - 1], ring[entry]]]
        if capped:
            opposite = ring[(k + 2) % 4]
            path.insert(1, number[opposite, opposite])
        paths.append(path)
    return paths


def _part_labels(dim: int, case: int, joined: int) -> list[int]:
    """For every corner the smallest inside corner it is connected with (itself if outside)."""
    label = list(range(2**dim))

    def connect(a: int, b: int) -> None:
        keep, drop = sorted((label[a], label[b]))
        label[:] = [keep if value == drop else value for value in label]

    for a in range(2**dim):
        for axis in range(dim):
            b = a | 1 << axis
            if a != b and case >> a & 1 and case >> b & 1:
                connect(a, b)
    for face, ring in enumerate(face_rings(dim).tolist()):
        if joined >> face & 1:
            connect(*(c for c in ring if case >> c & 1))
    return label


def _inside_end(dim: int, case: int, vertex: int) -> int:
    """The inside corner of a crossed edge."""
    places = local_vertices(dim)
    low, high = int(places.low[vertex]), int(places.high[vertex])
    return low if case >> low & 1 else high


def _triangulate(loop: list[int]) -> list[tuple[int, int, int]]:
    """Triangles of a closed loop of local vertices of the cube, oriented like the loop.

    The triangulation with the cheapest diagonals (dynamic programming over intervals). The
    loop is first brought to a form that depends neither on its start nor on its direction:
    the complement of a case has the same loops backwards and must get the same triangles,
    or a cell and its complement would not add up to the cube.
    """
    start = loop.index(min(loop))
    loop = loop[start:] + loop[:start]
    backwards = loop[-1] < loop[1]
    if backwards:
        loop = loop[:1] + loop[:0:-1]

    places = local_vertices(3)
    bits = np.arange(3)
    ends = np.stack([places.low, places.high])[:, loop, None] >> bits & 1
    middle = ends.mean(axis=0)
    # a place touches side s of an axis when both its ends do
    share = (ends[0] == ends[1])[:, None] & (ends[0] == ends[1])[None]
    in_face = (share & (ends[0][:, None] == ends[0][None])).any(axis=2)
    length2 = ((middle[:, None] - middle[None]) ** 2).sum(axis=2)
    diagonal = length2 + FACE_DIAGONAL_COST * in_face

    count = len(loop)
    cost = {(i, i + 1): 0.0 for i in range(count - 1)}
    split = {}
    for width in range(2, count):
        for i in range(count - width):
            j = i + width
            price = 0.0 if width == count - 1 else float(diagonal[i, j])
            cost[i, j], split[i, j] = min(
                (cost[i, k] + cost[k, j] + price, k) for k in range(i + 1, j)
            )
    triangles = []
    pending = [(0, count - 1)]
    while pending:
        i, j = pending.pop()
        if j - i < 2:
            continue
        k = split[i, j]
        corners = loop[i], loop[k], loop[j]
        triangles.append(corners[::-1] if backwards else corners)
        pending += [(i, k), (k, j)]
    return triangles


@cache
def square_parts(case: int, joined: int, capped: int) -> tuple[Part, ...]:
    """Parts of a cut square: each path of the contour becomes one or two segments."""
    label = _part_labels(2, case, joined)
    facets: dict[int, list] = {}
    for path in _contour(2, 0, case, bool(joined), bool(capped)):
        part = label[_inside_end(2, case, path[0])]
        facets.setdefault(part, []).extend(zip(path[:-1], path[1:], strict=True))
    return _assemble(label, facets, {})


@cache
def cube_parts(case: int, joined: int, capped: int) -> tuple[Part, ...]:
    """Parts of a cut cube: the contours of its faces, linked into loops and triangulated.

    Every crossed edge lies in two faces; the contour of one ends there and that of the
    other begins there, so the paths close to loops by themselves.
    """
    label = _part_labels(3, case, joined)
    follow: dict[int, list[int]] = {}
    segments: dict[int, list] = {}
    for face in range(6):
        axis, side = divmod(face, 2)
        for path in _contour(3, face, case, bool(joined >> face & 1), bool(capped >> face & 1)):
            if axis == 0:
                part = label[_inside_end(3, case, path[0])]
                pairs = zip(path[:-1], path[1:], strict=True)
                segments.setdefault(part, []).extend((p, q, side) for p, q in pairs)
            # The body's boundary is closed: the surface runs against the face, which
            # itself is counterclockwise from outside on side 1 only.
            along = path[::-1] if side else path
            follow[along[0]] = along[1:]

    facets: dict[int, list] = {}
    while follow:
        first, rest = follow.popitem()
        loop = [first]
        while rest[-1] != first:
            loop += rest
            rest = follow.pop(rest[-1])
        loop += rest[:-1]
        part = label[_inside_end(3, case, first)]
        facets.setdefault(part, []).extend(_triangulate(loop))
    return _assemble(label, facets, segments)


def _assemble(label: list[int], facets: dict[int, list], segments: dict[int, list]):
    parts = []
    for part, rows in sorted(facets.items()):
        corners = tuple(c for c, value in enumerate(label) if value == part)
        lines = np.array(segments.get(part, []), dtype=np.int64).reshape(-1, 3)
        parts.append(Part(corners, np.array(rows, dtype=np.int64), lines[:, :2], lines[:, 2]))
    return tuple(parts)
