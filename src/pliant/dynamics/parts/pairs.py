"""Surface points of one part against the cells of another, as found at the start of a step.

A pair is a point x = sum of w_i x_i of one part and the rest place Y of another that the cell
behind its nearest facet carries to x. All that the pair depends on are four vectors, linear in the
nodes,

    q_0 = x - sum of N_j(Y) x_j,    q_k = sum of N_j(Y) F_j e_k = F e_k,    q = S x,

the point's place beside that of Y and the columns of the deformation gradient F, interpolated from
its means F_j at the nodes (fem.bodies.cell_maps). S stays for the step, so whatever is computed
from q acts on the nodes by S transposed: forces of a pair have no sum, and no moment where they are
those of an energy. Neither jumps when another facet is the nearest: with maps of the cells alone,
two balls that bounce gained a tenth of their energy.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from pliant.dynamics.parts.touching_surface import TouchingSurface
from pliant.fem.bodies.cell_maps import rest_places, shapes_at
from pliant.geometry.smooth_field import SmoothField


@dataclass(frozen=True, eq=False)
class Pairs:
    """S: (4 n, nodes of all parts); back: its transpose; areas: (n,) [m^2], half of the points',
    for the other half is the other way round; places Y: (n, 3); fields: the distance behind each
    run of pairs; owners: (n, 2) the parts of point and facet; runs: what each run was found as.
    """

    S: sparse.csr_matrix
    back: sparse.csr_matrix
    areas: np.ndarray
    places: np.ndarray
    fields: list[tuple[slice, SmoothField]]
    owners: np.ndarray
    runs: "list[Run]"

    def __len__(self) -> int:
        return len(self.areas)

    def coordinates(self, x: np.ndarray) -> np.ndarray:
        """q (n, 4, 3) of node positions, velocities or their changes (nodes, 3)."""
        return (self.S @ x).reshape(4, len(self), 3).transpose(1, 0, 2)

    def spread(self, Q: np.ndarray) -> np.ndarray:
        """Forces on the nodes (nodes, 3) of those by q, (n, 4, 3)."""
        return self.back @ Q.transpose(1, 0, 2).reshape(-1, 3)

    def curved(self, X: np.ndarray) -> np.ndarray:
        """Second derivatives (n, 3, 3) of the distance at rest places X (n, 3)."""
        out = np.empty((len(X), 3, 3))
        for rows, field in self.fields:
            out[rows] = field.hessian(X[rows])
        return out

    def distance(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Distance (n,) and gradient (n, 3) at rest places X (n, 3)."""
        d, g = np.empty(len(X)), np.empty_like(X)
        for rows, field in self.fields:
            d[rows], g[rows] = field.at(X[rows])
        return d, g


@dataclass(frozen=True, eq=False)
class Run:
    """Pairs `rows` of points of one part with facets of another: its surface, its cells (n,)."""

    rows: slice
    behind: TouchingSurface
    cells: np.ndarray
    near: np.ndarray


@dataclass(frozen=True, eq=False)
class Found:
    """Points (n,) of part `point_of` and the facet (n,) of part `facet_of` nearest to each."""

    point_of: int
    facet_of: int
    points: np.ndarray
    facets: np.ndarray


def joined(found: list[Found], surfaces: list[TouchingSurface], x: np.ndarray) -> Pairs:
    """The pairs in the order of `found`, for nodes at x (nodes, 3)."""
    vectors: list[list[sparse.csr_matrix]] = [[], [], [], []]
    areas, places, owners = [np.zeros(0)], [np.zeros((0, 3))], [np.zeros((0, 2), int)]
    fields: list[tuple[slice, SmoothField]] = []
    runs: list[Run] = []
    first = 0
    for f in found:
        a, b, n = surfaces[f.point_of], surfaces[f.facet_of], len(f.points)
        w = a.points.matrix[f.points]
        cells = b.body.surface.facet_cell[f.facets]
        Y = rest_places(b.body, cells, b.own(x), w @ a.own(x), b.middles[f.facets])
        N, nodes = shapes_at(b.body, cells, Y)[0], b.body.cells[cells]
        row = np.repeat(np.arange(n), nodes.shape[1])
        N = sparse.csr_matrix((N.reshape(-1), (row, nodes.reshape(-1))), (n, len(b.body.nodes)))
        vectors[0].append(_among(w, a.first, len(x)) - _among(N, b.first, len(x)))
        for k in range(3):
            vectors[k + 1].append(_among(N @ b.gradients[k], b.first, len(x)))
        areas.append(0.5 * a.areas[f.points])
        places.append(Y)
        owners.append(np.broadcast_to([f.point_of, f.facet_of], (n, 2)))
        fields.append((slice(first, first + n), b.field))
        runs.append(Run(slice(first, first + n), b, cells, b.middles[f.facets]))
        first += n
    none = sparse.csr_matrix((0, len(x)))
    S = sparse.csr_matrix(sparse.vstack([none, *(run for runs in vectors for run in runs)]))
    joint = np.concatenate(areas), np.concatenate(places)
    return Pairs(S, S.T.tocsr(), *joint, fields, np.concatenate(owners), runs)


def _among(own: sparse.csr_matrix, first: int, count: int) -> sparse.csr_matrix:
    """A matrix over a part's nodes as one over the `count` nodes of all parts."""
    rows = len(own.indptr) - 1
    return sparse.csr_matrix((own.data, own.indices + first, own.indptr), (rows, count))
