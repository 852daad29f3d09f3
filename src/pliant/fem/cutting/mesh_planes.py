"""The planes of a mesh's triangles in each cell of a lattice."""

from dataclasses import dataclass

import numpy as np

MOST_PLANES = 24
"""Planes of one mesh that may pass through a cell. A mesh that exceeds it has triangles much
smaller than the cells, and shows no edges at that spacing."""

MOST_PAIRS = 20_000_000
"""Pairs of a triangle and a cell of its box that are looked at."""

SAME_PLANE = 1e-6
"""Triangles whose normals and offsets (in cell widths) agree to this lie in one plane."""


@dataclass(frozen=True)
class CellPlanes:
    """cell: (planes,) row of the cells; values: (planes, 8) at its corners, in cell widths."""

    cell: np.ndarray
    values: np.ndarray


def planes_in_cells(
    corners: np.ndarray, cells: np.ndarray, shape: tuple[int, ...], origin: np.ndarray, h: float
) -> CellPlanes | None:
    """Distinct planes of the triangles (m, 3, 3) that touch each cell (cells, 3 lattice position).

    None where a cell has more than MOST_PLANES.
    """
    at = (corners - origin) / h
    normal = np.cross(at[:, 1] - at[:, 0], at[:, 2] - at[:, 0])
    area = np.linalg.norm(normal, axis=1)
    real = area > 1e-12
    at, normal = at[real], normal[real] / area[real][:, None]
    offset = np.einsum("mi,mi->m", normal, at.mean(axis=1))
    plane = _numbered(normal, offset)
    row_of = np.full(int(np.prod(shape)), -1, np.int64)
    row_of[np.ravel_multi_index(tuple(cells.T), shape)] = np.arange(len(cells))

    first = np.floor(at.min(axis=1) - 1e-4).astype(int).clip(min=0)
    last = np.minimum(np.floor(at.max(axis=1) + 1e-4).astype(int), np.array(shape) - 2)
    span = np.maximum(last - first + 1, 0)
    pairs = span.prod(axis=1)
    if pairs.sum() > MOST_PAIRS:
        return None
    found = []
    for start, stop in _chunks(pairs):
        triangle = np.repeat(np.arange(start, stop), pairs[start:stop])
        begin = np.cumsum(pairs[start:stop]) - pairs[start:stop]
        k = np.arange(len(triangle)) - begin[triangle - start]
        s = span[triangle]
        place = first[triangle] + np.stack(
            [k // (s[:, 1] * s[:, 2]), k // s[:, 2] % s[:, 1], k % s[:, 2]], axis=1
        )
        row = row_of[np.ravel_multi_index(tuple(place.T), shape)]
        hit = np.flatnonzero(row >= 0)
        hit = hit[_touches(at[triangle[hit]] - (place[hit] + 0.5)[:, None], normal[triangle[hit]])]
        found.append(np.stack([row[hit], plane[triangle[hit]]], axis=1))
    pair = np.unique(np.concatenate([np.zeros((0, 2), np.int64), *found]), axis=0)
    if np.bincount(pair[:, 0], minlength=1).max() > MOST_PLANES:
        return None
    _, of_plane = np.unique(plane, return_index=True)
    n, d = normal[of_plane][pair[:, 1]], offset[of_plane][pair[:, 1]]
    bits = (np.arange(8)[:, None] >> np.arange(3)) & 1
    node = cells[pair[:, 0]][:, None] + bits
    return CellPlanes(pair[:, 0], np.einsum("pci,pi->pc", node, n) - d[:, None])


def _numbered(normal: np.ndarray, offset: np.ndarray) -> np.ndarray:
    """The same number for triangles in one plane."""
    key = np.rint(np.column_stack([normal, offset]) / SAME_PLANE).astype(np.int64)
    return np.unique(key, axis=0, return_inverse=True)[1].reshape(-1)


def _chunks(pairs: np.ndarray, size: int = 500_000):
    """Runs of triangles with about `size` pairs each."""
    total = np.cumsum(pairs)
    start = 0
    while start < len(pairs):
        before = total[start - 1] if start else 0
        stop = max(int(np.searchsorted(total, before + size)), start + 1)
        yield start, stop
        start = stop


def _touches(triangle: np.ndarray, normal: np.ndarray) -> np.ndarray:
    """Whether triangles (n, 3, 3) meet the unit cube about the origin: no axis parts the two
    (Akenine-Moller 2001); touching counts.
    """
    slack = 1e-4

    def together(axis: np.ndarray) -> np.ndarray:
        reach = 0.5 * np.abs(axis).sum(axis=1) + slack
        along = np.einsum("nci,ni->nc", triangle, axis)
        return (along.min(axis=1) <= reach) & (along.max(axis=1) >= -reach)

    meets = (triangle.min(axis=1) <= 0.5 + slack).all(axis=1)
    meets &= (triangle.max(axis=1) >= -0.5 - slack).all(axis=1)
    meets &= together(normal)
    for k in range(3):
        edge = triangle[:, (k + 1) % 3] - triangle[:, k]
        edge = edge / np.maximum(np.linalg.norm(edge, axis=1, keepdims=True), 1e-300)
        for unit in np.eye(3):
            meets &= together(np.cross(edge, unit))
    return meets
