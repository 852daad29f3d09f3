"""Tetrahedra of 10 and triangles of 6 nodes: corners, and the middle of every straight edge.

With barycentric coordinates l_m: N_a = l_a (2 l_a - 1) on corners, N_a = 4 l_i l_j on edges (see
fem.forces.cells for their order). They reproduce every quadratic field, so that a bent beam needs
no shear, which is what makes linear tetrahedra too stiff.
"""

import numpy as np

from pliant.fem.forces.cells import SIMPLEX_EDGES, quadratic_slopes

LUMPED = {6: (1.0 / 19.0, 16.0 / 57.0), 10: (1.0 / 36.0, 4.0 / 27.0)}
"""Share of a cell's mass on each corner and on each edge node: in proportion to the integral of
N_a^2 (Hinton, Rock, Zienkiewicz 1976). The integrals of N_a themselves, -1/20 and 1/5 of a
tetrahedron and 0 and 1/3 of a triangle, would leave nodes without mass or worse."""

_FACE_PARTS = {
    6: np.array([[[1, 4], [4, 2]], [[2, 5], [5, 0]], [[0, 3], [3, 1]]]),
    10: np.array(
        [
            [(i, ij, ki), (ij, j, jk), (ki, jk, k), (ij, jk, ki)]
            for (i, j, k), (ij, jk, ki) in (
                ((1, 2, 3), (5, 9, 8)), ((0, 3, 2), (7, 9, 6)),
                ((0, 1, 3), (4, 8, 7)), ((0, 2, 1), (6, 5, 4)),
            )
        ]
    ),
}  # fmt: skip
"""The parts, 2 segments or 4 triangles, outward, of the face opposite to each corner."""

RULES = {
    6: np.full((3, 3), 1.0 / 6.0) + 0.5 * np.eye(3),
    10: np.full((4, 4), (5.0 - 5.0**0.5) / 20.0) + np.eye(4) / 5.0**0.5,
}
"""Barycentric points (q, corners) of equal weight that integrate quadratic polynomials exactly,
and so all products of gradients (Hammer, Marlowe, Stroud 1956)."""


def with_edge_nodes(nodes: np.ndarray, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Nodes with one more in the middle of every edge, at the end, and cells (m, 10 or 6)."""
    corners = cells.shape[1]
    pairs = np.array(SIMPLEX_EDGES[: corners * (corners - 1) // 2])
    ends = np.sort(cells[:, pairs].astype(np.int64), axis=2)
    keys, edge = np.unique(ends[..., 0] * len(nodes) + ends[..., 1], return_inverse=True)
    middle = 0.5 * (nodes[keys // len(nodes)] + nodes[keys % len(nodes)])
    added = (len(nodes) + edge.reshape(len(cells), -1)).astype(np.int32)
    return np.concatenate([nodes, middle]), np.concatenate([cells, added], axis=1)


def interleaved(
    nodes: np.ndarray, cells: np.ndarray, facets: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Edge nodes numbered between the ends of their edges: neighbours stay near in memory."""
    corners = nodes.shape[1] + 1
    place = np.arange(len(nodes), dtype=float)
    for a, (i, j) in enumerate(SIMPLEX_EDGES[: cells.shape[1] - corners], corners):
        place[cells[:, a]] = 0.5 * (cells[:, i] + cells[:, j].astype(float))
    order = np.argsort(place, kind="stable")
    new = np.empty(len(nodes), np.int32)
    new[order] = np.arange(len(nodes), dtype=np.int32)
    return nodes[order], new[cells], new[facets]


def quadratic_shapes(barycentric: np.ndarray) -> np.ndarray:
    """N_a (points, 10 or 6) at barycentric coordinates (points, 4 or 3)."""
    l = barycentric
    corners = l.shape[1]
    pairs = SIMPLEX_EDGES[: corners * (corners - 1) // 2]
    return np.column_stack([l * (2.0 * l - 1.0), *(4.0 * l[:, i] * l[:, j] for i, j in pairs)])


def quadratic_gradients(rows: np.ndarray, barycentric: np.ndarray) -> np.ndarray:
    """grad N_a (points, 10 or 6, 3) [1/m] at points (points, 4 or 3) of cells with those rows."""
    k = {3: 6, 4: 10}[barycentric.shape[1]]
    return np.einsum("pm,pami->pai", barycentric, quadratic_slopes(rows, k))


def face_parts(
    cells: np.ndarray, faces: np.ndarray, owners: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Boundary faces divided at their edge nodes: parts (p, dim) of nodes and the cell of each.

    cells: (m, 10 or 6); faces: (f, dim) corners; owners: (f,) the cell that has the face.
    """
    dim = faces.shape[1]
    of_face = (cells[owners, : dim + 1, None] == faces[:, None, :]).any(axis=2)
    parts = _FACE_PARTS[cells.shape[1]][np.argmin(of_face, axis=1)]  # (f, parts, dim)
    nodes = cells[owners[:, None, None], parts]
    return nodes.reshape(-1, dim), np.repeat(owners, parts.shape[1])
