"""Cubes, tetrahedra and prisms split by several linear functions into convex pieces.

A piece is a list of polygons, counterclockwise seen from outside. Every vertex carries its position
and its value of each function, so a split needs nothing else: it cuts each polygon where the values
change sign and closes both halves with the polygon of the crossings (the cap). All pieces of all
cells are split at once; polygons stand in rows padded to the longest.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations

import numpy as np

ROUNDING = 1e-11
"""Values of crossings below this count as zero, in cell widths: three planes through one line then
meet in it, instead of leaving needles as thin as rounding."""


@dataclass(frozen=True)
class Pieces:
    """Convex pieces and their polygons; polygons of a piece follow each other.

    start: (pieces,) the polyhedron each was cut from; sign: (pieces, functions) -1 or 1, the side
    of each function. vertex: (polygons, longest, 3 + functions) position and values;
    count: (polygons,) vertices in use; piece: (polygons,) ascending.
    """

    start: np.ndarray
    sign: np.ndarray
    vertex: np.ndarray
    count: np.ndarray
    piece: np.ndarray


@lru_cache
def cube_faces() -> tuple[tuple[int, ...], ...]:
    """The cube itself: six squares of corners c = ix + 2 iy + 4 iz, outward."""
    return ((0, 4, 6, 2), (1, 3, 7, 5), (0, 1, 5, 4), (2, 6, 7, 3), (0, 2, 3, 1), (4, 5, 7, 6))


@lru_cache
def tetrahedra_faces() -> tuple[tuple[tuple[int, ...], ...], ...]:
    """The six tetrahedra along the cube's long diagonal (Kuhn), each as four outward triangles.

    Neighbouring cubes split their common face along the same diagonal.
    """
    found = []
    for a, b, _ in permutations(range(3)):
        path = [0, 1 << a, 1 << a | 1 << b, 7]
        right = np.linalg.det(((np.array(path[1:])[:, None] >> np.arange(3)) & 1).astype(float)) > 0
        p, q, r, s = path if right else [path[0], path[2], path[1], path[3]]
        found.append(((p, r, q), (p, q, s), (q, r, s), (p, s, r)))
    return tuple(found)


@lru_cache
def prism_faces() -> tuple[tuple[tuple[int, ...], ...], ...]:
    """The square's two triangles drawn along z: what tetrahedra are to the cube, for 2D."""
    triangles = ((0, 1, 3), (0, 3, 2))
    return tuple(
        ((c, b, a), (a + 4, b + 4, c + 4), (a, b, b + 4, a + 4), (b, c, c + 4, b + 4),
         (c, a, a + 4, c + 4))
        for a, b, c in triangles
    )  # fmt: skip


def whole_pieces(
    values: np.ndarray, solids: tuple[tuple[tuple[int, ...], ...], ...]
) -> tuple[Pieces, np.ndarray, np.ndarray]:
    """The parts of each cube before any split, from corner values (cubes, 8, functions).

    solids: faces of each part as corner numbers. Also the cube of each part (starts,) and the
    gradients (starts, functions, 3) of the values there.
    """
    cubes, _, functions = values.shape
    corner = ((np.arange(8)[:, None] >> np.arange(3)) & 1).astype(float)
    vertices = np.concatenate([np.broadcast_to(corner, (cubes, 8, 3)), values], axis=2)
    longest = max(len(face) for faces in solids for face in faces)
    ring = np.array([[*f, *[f[0]] * (longest - len(f))] for faces in solids for f in faces])
    size = np.array([len(f) for faces in solids for f in faces])
    part = np.repeat(np.arange(len(solids)), [len(faces) for faces in solids])
    start = np.arange(cubes * len(solids))
    gradient = np.empty((cubes, len(solids), functions, 3))
    for row, faces in enumerate(solids):
        used = sorted({c for face in faces for c in face})
        fit = np.linalg.pinv(np.column_stack([corner[used], np.ones(len(used))]))[:3]
        gradient[:, row] = np.einsum("xc,ncf->nfx", fit, values[:, used])
    pieces = Pieces(
        start=start,
        sign=np.zeros((len(start), functions), np.int8),
        vertex=vertices[:, ring].reshape(-1, longest, 3 + functions),
        count=np.tile(size, cubes),
        piece=(np.arange(cubes)[:, None] * len(solids) + part).reshape(-1),
    )
    return pieces, start // len(solids), gradient.reshape(len(start), functions, 3)


def split(
    pieces: Pieces, function: int, gradient: np.ndarray, wanted: tuple[np.ndarray, np.ndarray]
) -> Pieces:
    """Split every piece that the function changes sign in.

    gradient: (starts, 3) of it; wanted: (pieces,) each, whether what lies below zero and above it
    is of interest; the rest is dropped.
    """
    if len(pieces.piece) == 0:
        return pieces
    value = pieces.vertex[:, :, 3 + function]
    used = np.arange(value.shape[1]) < pieces.count[:, None]
    first = np.flatnonzero(np.r_[True, pieces.piece[1:] != pieces.piece[:-1]])
    low = np.minimum.reduceat(np.where(used, value, np.inf).min(axis=1), first)
    high = np.maximum.reduceat(np.where(used, value, -np.inf).max(axis=1), first)
    crossed = (low < 0.0) & (high > 0.0)
    intact = ~crossed & np.where(low < 0.0, *wanted)
    cut = crossed[pieces.piece]
    row = np.cumsum(crossed) - 1
    owner = row[pieces.piece[cut]]
    vertex, count = pieces.vertex[cut], pieces.count[cut]
    start = pieces.start[crossed]
    kept = intact[pieces.piece]
    number = np.cumsum(intact) - 1
    blocks = [(pieces.vertex[kept], pieces.count[kept], number[pieces.piece[kept]])]
    sign = pieces.sign.copy()
    sign[:, function] = np.where(low < 0.0, -1, 1)
    starts, signs, total = [pieces.start[intact]], [sign[intact]], int(intact.sum())
    cap = cap_size = None
    for side, interest in zip((-1, 1), wanted, strict=True):
        chosen = interest[crossed]
        if not chosen.any():
            continue
        half, size = clipped(vertex, count, function, float(side))
        if cap is None or cap_size is None:
            cap, cap_size = _caps(half, size, owner, function, gradient[start])
        number = total + np.cumsum(chosen) - 1
        mine = chosen[owner]
        blocks.append(_proper(half[mine], size[mine], number[owner[mine]], function))
        closed = np.flatnonzero(chosen & (cap_size > 2))
        lid = cap[closed] if side < 0 else _reversed(cap[closed], cap_size[closed])
        blocks.append((lid, cap_size[closed], number[closed]))
        starts.append(start[chosen])
        signs.append(sign[crossed][chosen])
        signs[-1][:, function] = side
        total += int(chosen.sum())
    count = np.concatenate([b[1] for b in blocks])
    piece = np.concatenate([b[2] for b in blocks])
    longest = max(int(count.max(initial=0)), 3)
    order = np.argsort(piece, kind="stable")
    return Pieces(
        start=np.concatenate(starts),
        sign=np.concatenate(signs),
        vertex=np.concatenate([_padded(b[0], longest) for b in blocks])[order],
        count=count[order],
        piece=piece[order],
    )


def _reversed(polygon: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Polygons seen from the other side."""
    slot = np.arange(polygon.shape[1])
    back = np.where(slot < count[:, None], count[:, None] - 1 - slot, 0)
    return np.take_along_axis(polygon, back[:, :, None], axis=1)


def _padded(vertex: np.ndarray, longest: int) -> np.ndarray:
    have = vertex.shape[1]
    if have >= longest:
        return vertex[:, :longest]
    more = np.zeros((len(vertex), longest - have, vertex.shape[2]))
    return np.concatenate([vertex, more], axis=1)


def clipped(vertex: np.ndarray, count: np.ndarray, function: int, side: float):
    """The part of each polygon with side * value >= 0 (Sutherland and Hodgman 1974)."""
    slot = np.arange(vertex.shape[1])
    used = slot < count[:, None]
    following = np.where(slot + 1 < count[:, None], slot + 1, 0)
    onward = np.take_along_axis(vertex, following[:, :, None], axis=1)
    v, w = vertex[:, :, 3 + function], onward[:, :, 3 + function]
    crossing = used & (v * w < 0.0)
    # from the negative end, whichever way round the polygon runs: neighbours get the same bits
    i, j = np.nonzero(crossing)
    here, there = vertex[i, j], onward[i, j]
    swap = (v[i, j] > 0.0)[:, None]
    a, b = np.where(swap, there, here), np.where(swap, here, there)
    share = a[:, 3 + function] / (a[:, 3 + function] - b[:, 3 + function])
    between = a + share[:, None] * (b - a)
    values = between[:, 3:]
    values[np.abs(values) < ROUNDING] = 0.0
    values[:, function] = 0.0

    rows, width = vertex.shape[:2]
    both = np.zeros((rows, width, 2, vertex.shape[2]))
    both[:, :, 0] = vertex
    both[i, j, 1] = between
    keep = np.empty((rows, width, 2), bool)
    keep[:, :, 0] = used & (side * v >= 0.0)
    keep[:, :, 1] = crossing
    keep = keep.reshape(rows, 2 * width)
    left = keep.sum(axis=1)
    order = np.argsort(~keep, axis=1, kind="stable")[:, : max(int(left.max(initial=0)), 1)]
    flat = both.reshape(rows, 2 * width, -1)
    return np.take_along_axis(flat, order[:, :, None], axis=1), left


def _proper(vertex: np.ndarray, count: np.ndarray, piece: np.ndarray, function: int):
    """Polygons with an inside; one that only touches the cut or lies in it is the cap's."""
    used = np.arange(vertex.shape[1]) < count[:, None]
    flat = ((vertex[:, :, 3 + function] == 0.0) | ~used).all(axis=1)
    keep = (count > 2) & ~flat
    return vertex[keep], count[keep], piece[keep]


def _caps(vertex, count, owner, function, normal):
    """The polygon in the cut of each piece: its points in the order of their angle."""
    used = np.arange(vertex.shape[1]) < count[:, None]
    i, j = np.nonzero(used & (vertex[:, :, 3 + function] == 0.0))
    point, piece = vertex[i, j], owner[i]
    pieces = len(normal)
    share = 1.0 / np.maximum(np.bincount(piece, minlength=pieces), 1)
    middle = np.stack(
        [np.bincount(piece, point[:, d], minlength=pieces) * share for d in range(3)], axis=1
    )
    along = np.zeros((pieces, 3))
    along[np.arange(pieces), np.abs(normal).argmin(axis=1)] = 1.0
    u = np.cross(normal, along)
    w = np.cross(normal, u) / np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-300)
    offset = point[:, :3] - middle[piece]
    x, y = (np.einsum("pd,pd->p", offset, axis[piece]) for axis in (u, w))
    angle = np.arctan2(y, x)
    # the same point comes from the two polygons that meet in it
    order = np.lexsort((angle, piece))
    point, piece = point[order], piece[order]
    begins = np.r_[True, piece[1:] != piece[:-1]]
    again = np.abs(np.diff(point[:, :3], axis=0, prepend=np.inf)).max(axis=1) < ROUNDING
    firsts = np.flatnonzero(begins)
    lasts = np.r_[firsts[1:], len(piece)] - 1
    closing = np.abs(point[lasts, :3] - point[firsts, :3]).max(axis=1) < ROUNDING
    keep = begins | ~again
    keep[lasts[closing & (lasts > firsts)]] = False
    point, piece = point[keep], piece[keep]
    size = np.bincount(piece, minlength=pieces)
    place = np.arange(len(piece)) - (np.cumsum(size) - size)[piece]
    cap = np.zeros((pieces, max(int(size.max(initial=0)), 1), vertex.shape[2]))
    cap[piece, place] = point
    return cap, size
