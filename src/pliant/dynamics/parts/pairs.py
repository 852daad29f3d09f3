"""Surface points of one part against facets of another, as found at the start of a step.

A pair is a point x = sum of w_i x_i of one part and the cell behind the nearest facet of another
with its map about the facet's middle Y (fem.bodies.facet_maps). All that the pair depends on are
four vectors, linear in the nodes,

    q_0 = x - sum of N_j x_j,    q_k = sum of G_jk x_j = F e_k,    q = S x,

the point's place beside y = x(Y) and the columns of the cell's deformation gradient F. S stays for
the step, so whatever is computed from q acts on the nodes by S transposed: forces of a pair have no
sum, and no moment where they are those of an energy.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from pliant.dynamics.parts.touching_surface import TouchingSurface
from pliant.geometry.smooth_field import SmoothField


@dataclass(frozen=True, eq=False)
class Pairs:
    """S: (4 n, nodes of all parts); back: its transpose; areas: (n,) [m^2], half of the points',
    for the other half is the other way round; middles Y: (n, 3); fields: the distance behind each
    run of pairs; owners: (n, 2) the parts of point and facet.
    """

    S: sparse.csr_matrix
    back: sparse.csr_matrix
    areas: np.ndarray
    middles: np.ndarray
    fields: list[tuple[slice, SmoothField]]
    owners: np.ndarray

    def __len__(self) -> int:
        return len(self.areas)

    def coordinates(self, x: np.ndarray) -> np.ndarray:
        """q (n, 4, 3) of node positions, velocities or their changes (nodes, 3)."""
        return (self.S @ x).reshape(len(self), 4, 3)

    def spread(self, Q: np.ndarray) -> np.ndarray:
        """Forces on the nodes (nodes, 3) of those by q, (n, 4, 3)."""
        return self.back @ Q.reshape(-1, 3)

    def distance(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Distance (n,) and gradient (n, 3) at rest places X (n, 3), complex ones as well."""
        d, g = np.empty(len(X), X.dtype), np.empty_like(X)
        for rows, field in self.fields:
            d[rows], g[rows] = field.at(X[rows])
        return d, g


@dataclass(frozen=True, eq=False)
class Found:
    """Points (n,) of part `point_of` and the facet (n,) of part `facet_of` nearest to each."""

    point_of: int
    facet_of: int
    points: np.ndarray
    facets: np.ndarray


def joined(found: list[Found], surfaces: list[TouchingSurface], node_count: int) -> Pairs:
    """The pairs in the order of `found`."""
    rows, columns, values, areas, middles, owners = [], [], [], [], [], []
    fields: list[tuple[slice, SmoothField]] = []
    first = 0
    for f in found:
        a, b, n = surfaces[f.point_of], surfaces[f.facet_of], len(f.points)
        row = 4 * np.arange(first, first + n)[:, None]
        own = a.first + a.points.nodes[f.points]
        theirs = b.first + b.maps.nodes[f.facets]
        for k, (nodes, weights) in enumerate((
            (own, a.points.weights[f.points]), (theirs, -b.maps.weights[f.facets]),
            *((theirs, b.maps.slopes[f.facets, :, axis]) for axis in range(3)),
        )):  # fmt: skip
            rows.append(np.broadcast_to(row + max(k - 1, 0), nodes.shape).reshape(-1))
            columns.append(nodes.reshape(-1))
            values.append(weights.reshape(-1))
        areas.append(0.5 * a.areas[f.points])
        middles.append(b.maps.middles[f.facets])
        owners.append(np.broadcast_to([f.point_of, f.facet_of], (n, 2)))
        fields.append((slice(first, first + n), b.field))
        first += n
    if not found:
        none = sparse.csr_matrix((0, node_count))
        empty = np.zeros(0), np.zeros((0, 3))
        return Pairs(none, none.T.tocsr(), *empty, [], np.zeros((0, 2), int))
    S = sparse.csr_matrix(
        (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))),
        shape=(4 * first, node_count),
    )
    joint = np.concatenate(areas), np.concatenate(middles)
    return Pairs(S, S.T.tocsr(), *joint, fields, np.concatenate(owners))
