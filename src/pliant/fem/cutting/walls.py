"""Walls: parts of the surface that are held, weakly inside grid cells by Nitsche's method.

For a wall piece with normal n, held components P and given displacement g the energy gains

    - integral (P sigma(u) n) . v  - integral (P sigma(v) n) . (u - g)
    + eta_mu mu integral P (u - g) . v  + the same for lambda

(seed 000, eq. 2.4.5), with the linear stress, before any corotation (seed 000, section 2.7). The
shares of mu and lambda are held apart, each by a penalty of its own, so that both enter linearly:

mu       coercive when eta_mu exceeds the largest eigenvalue L of
         integral_wall |2 eps n|^2 = L integral_cell 2 eps : eps, solved for every cell.
lambda   the mean dilatation pushes with one traction theta n on the whole piece, so it needs one
         number to be held: eta q(u - g) q(v) with q(v) = integral_wall n . P v and eta = 1 / V.
         A penalty of the size of lambda at every point would lock a tilted wall in its cells near a
         Poisson's ratio of 1/2. With the pointwise dilatation: eta_lam integral (n . P (u - g))
         (n . P v), from integral_wall theta^2 = L integral_cell theta^2.

Both take SAFETY times what coercivity asks. Three ways to hold:

linear   as above. It has no lower bound where a cell at the wall turns.
turning  the terms of the stress and lambda's penalty, which has a direction, act in the cell's
         frame (fem.forces.wall_traction), here is the penalty of mu alone: for the corotated
         energy.
penalty  no terms of the stress, penalties STIFFER times larger: for laws, which may soften, and for
         viscoelastic branches, whose stress is not a matter of u alone. The surface slips by
         traction / eta, about 1/70 of a cell per unit of strain. Cells where a wall ends are held
         less (RIM): held as firmly as the others they would hold their far nodes too, and the wall
         would end up to half a cell later than it does.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from scipy.sparse import csr_array

from pliant.fem.bodies.body import Body
from pliant.fem.cutting.quadrature import FacetPoints, shape_functions
from pliant.fem.forces.cell_data import cell_means
from pliant.fem.forces.cells import gradient_product_blocks, stiffness_blocks

Hold = Literal["linear", "turning", "penalty"]

SLIVER_SUPPORT = 0.02
"""Share of the full cell's energy that the eigenvalue problem of a cut cell may count on. The ghost
penalty provides it; without it the penalty of a sliver would grow as 1 / filled fraction."""

SMALLEST_FILL = 1e-6
"""Filled fraction from which on the penalty of lambda no longer grows: the snapped surface leaves
no smaller ones."""

POINTS_AT_ONCE = 2000
"""Quadrature points whose products of 24 x 24 are formed at a time (9 MB)."""

SAFETY = 2.0
"""Penalty over what coercivity asks; 1 is its edge."""

STIFFER = 20.0
"""Penalty of walls without consistency terms over that with them. First frequency of the silicone
beam, four cells across, Poisson's ratio 0.3: +0.8 % at 20, +0.6 at 10, +0.1 at 5, -0.8 at 2.5; with
consistency terms +0.5. The wall slips by 0.012 of a cell times the strain, inversely to this. At
100 multigrid slows down."""

RIM = 14.0
"""Penalty, over modulus / spacing, of walls without consistency terms where they end on a surface
that goes on: twice that of Nitsche's method in a full cell. First frequency of a torus held at its
top, at 4, 6, 8 cells across: +5.4, +3.9, +2.7 % without this, +1.5, +0.6, +0.5 % with it; with
consistency terms +2.2, +0.8, +0.9 %. Chosen by this torus and a beam in a sleeve: at 20 it is
+1.0 % at six cells, at 28 +1.3 %. Slip here makes up for some stiffness of cut cells."""

RIM_SHARE = 1.0 / 3.0
"""Free share of the surface around a cell from which on all of RIM acts; below it, in proportion.
A third of it is free where the wall ends with the cell."""


@dataclass(frozen=True)
class Walls:
    """Wall terms, one entry per (held region, cell).

    cell: (w,); axes: (w, 3) 1 where held; eta_lam, eta_mu: (w,) penalties per modulus; by_lam,
    by_mu: (w, k, k, 3, 3) stiffness per modulus; position, weight, normal: the quadrature points
    (see FacetPoints), point_entry: (q,) the entry each point belongs to; mean: (w, k, 3) mean
    gradients where lambda sees the mean dilatation, else None; hold: see above. traction_lam,
    traction_mu: (w, k, k, 3, 3) integral of N_b T_a by (b, a), and flux_lam: the penalty of lambda
    on all components, where they act apart.
    """

    body: Body
    cell: np.ndarray
    axes: np.ndarray
    eta_lam: np.ndarray
    eta_mu: np.ndarray
    by_lam: np.ndarray
    by_mu: np.ndarray
    position: np.ndarray
    weight: np.ndarray
    normal: np.ndarray
    point_entry: np.ndarray
    mean: np.ndarray | None
    hold: Hold
    traction_lam: np.ndarray
    traction_mu: np.ndarray
    flux_lam: np.ndarray

    @cached_property
    def points(self) -> FacetPoints:
        """The quadrature points with their shape functions; only walls that move keep them."""
        cell = self.cell[self.point_entry]
        shape, gradient = shape_functions(self.body, cell, self.position)
        return FacetPoints(cell, self.position, self.weight, self.normal, shape, gradient)

    def blocks(self, lam: np.ndarray, mu: np.ndarray) -> np.ndarray:
        """Stiffness added to each entry's cell, (w, k, k, 3, 3), for moduli (cells,)."""
        c = (slice(None), None, None, None, None)
        return lam[self.cell][c] * self.by_lam + mu[self.cell][c] * self.by_mu

    def loads(self, lam: np.ndarray, mu: np.ndarray, given: np.ndarray) -> np.ndarray:
        """Nodal forces (w, k, 3) of the given displacement (q, 3) at the quadrature points."""
        by_lam, by_mu = self.loads_per_modulus(given)
        c = (slice(None), None, None)
        return lam[self.cell][c] * by_lam + mu[self.cell][c] * by_mu

    def loads_per_modulus(self, given: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """`loads` for lambda = 1 and for mu = 1."""
        e, p = self.point_entry, self.points
        g = self.axes[e] * given
        along = np.einsum("qi,qi->q", p.normal, g)
        out_lam, out_mu = (np.zeros((len(self.cell), p.shape.shape[1], 3)) for _ in range(2))
        weight = p.weight[:, None, None]
        at_mu = self.eta_mu[e][:, None, None] * p.shape[:, :, None] * g[:, None, :]
        if self.mean is None:
            normal = self.axes[e] * p.normal
            at_lam = np.einsum("q,qa,qi->qai", self.eta_lam[e] * along, p.shape, normal)
        else:
            flux = np.bincount(e, p.weight * along, len(self.cell))  # q(g)
            at_lam = np.zeros_like(at_mu)
            out_lam += (self.eta_lam * flux)[:, None, None] * self._normal_integrals
        if self.hold == "linear":
            traction_lam, traction_mu = traction_operators(p, self._mean_at_points)
            at_lam = at_lam - np.einsum("qaij,qi->qaj", traction_lam, g)
            at_mu = at_mu - np.einsum("qaij,qi->qaj", traction_mu, g)
        np.add.at(out_lam, e, at_lam * weight)
        np.add.at(out_mu, e, at_mu * weight)
        return out_lam, out_mu

    def energy_of_given(self, lam: np.ndarray, mu: np.ndarray, given: np.ndarray) -> float:
        """What the penalties would cost with u = 0 at the walls: 1/2 eta |g|^2."""
        e = self.point_entry
        g = self.axes[e] * given
        square = np.bincount(e, self.weight * np.sum(g * g, axis=1), len(self.cell))
        along = np.einsum("qi,qi->q", self.normal, g)
        if self.mean is None:
            flux = np.bincount(e, self.weight * along**2, len(self.cell))
        else:
            flux = np.bincount(e, self.weight * along, len(self.cell)) ** 2
        l, m = lam[self.cell], mu[self.cell]
        return 0.5 * float(np.sum(m * self.eta_mu * square + l * self.eta_lam * flux))

    @property
    def _mean_at_points(self) -> np.ndarray | None:
        return None if self.mean is None else self.mean[self.point_entry]

    @cached_property
    def _normal_integrals(self) -> np.ndarray:
        """q of every shape function: integral of N_a P n, (w, k, 3)."""
        return _normal_integrals(self.points, self.point_entry, self.axes)


def traction_operators(
    p: FacetPoints, mean: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """T_b with traction sigma(u) n = sum_b T_b u_b, for lambda = 1 and for mu = 1; (q, k, 3, 3).

    mean: (q, k, 3) mean gradients of the cells, where lambda sees the mean dilatation.
    """
    n, g = p.normal, p.gradient
    lam = np.einsum("qi,qbj->qbij", n, g if mean is None else mean)
    mu = np.einsum("qd,qbd,ij->qbij", n, g, np.eye(3)) + np.einsum("qbi,qj->qbij", g, n)
    return lam, mu


def build_walls(
    body: Body,
    pieces: list[tuple[FacetPoints, np.ndarray]],
    *,
    dilatation: str = "mean",
    hold: Hold = "linear",
    support: float = SLIVER_SUPPORT,
) -> Walls | None:
    """Walls from (quadrature points, axes) of each held region; None if there are no points."""
    cells, axes, entries, parts = [], [], [], []
    count = 0
    for points, held in pieces:
        unique, inverse = np.unique(points.cell, return_inverse=True)
        cells.append(unique)
        axes.append(np.broadcast_to(held, (len(unique), 3)))
        entries.append(inverse + count)
        parts.append(points)
        count += len(unique)
    if count == 0:
        return None
    points = FacetPoints(
        *(np.concatenate([getattr(p, f) for p in parts]) for f in FacetPoints.__dataclass_fields__)
    )
    entry, cell = np.concatenate(entries), np.concatenate(cells)
    axes = np.concatenate(axes).astype(float)
    averaged = dilatation == "mean"
    mean = body.to_world(cell_means(body)[0])[body.geometry_row[cell]] if averaged else None
    slips = hold == "penalty"
    stiffer = SAFETY * (STIFFER if slips else 1.0)
    eta_mu = stiffer * _largest_ratio(body, cell, points, entry, support, by_mu=True)
    if averaged:
        # nothing but the sliver itself bears lambda: the ghost penalty has no share of it
        floor = support if slips else SMALLEST_FILL
        eta_lam = stiffer / np.maximum(body.cell_volumes[cell], floor * body.cell_volumes.max())
    else:
        eta_lam = stiffer * _largest_ratio(body, cell, points, entry, support, by_mu=False)
    if slips:
        free = np.concatenate([_free_shares(body, p) for p, _ in pieces])
        slack = np.minimum(free / RIM_SHARE, 1.0) * body.spacing / RIM  # adds to the slip 1 / eta
        eta_mu, eta_lam = (eta / (1.0 + slack * eta_mu) for eta in (eta_mu, eta_lam))
    by_lam, by_mu = _penalties(points, entry, axes, eta_lam, eta_mu, mean)
    none = np.zeros((0, *by_lam.shape[1:]))
    tractions, flux_lam = (none, none), none
    if not slips:
        tractions = _tractions(points, entry, count, mean)
    if hold == "linear":
        held = axes[:, None, None, :, None]
        for total, C in zip((by_lam, by_mu), tractions, strict=True):
            total -= held * C + (held * C).transpose(0, 2, 1, 4, 3)
        tractions = (none, none)
    elif hold == "turning":
        every = np.ones_like(axes)
        flux_lam, _ = _penalties(points, entry, every, eta_lam, eta_mu, mean)
        by_lam, eta_lam = np.zeros_like(by_lam), np.zeros_like(eta_lam)
    return Walls(
        body=body, cell=cell, axes=axes, eta_lam=eta_lam, eta_mu=eta_mu, by_lam=by_lam,
        by_mu=by_mu, position=points.position, weight=points.weight, normal=points.normal,
        point_entry=entry, mean=mean, hold=hold, traction_lam=tractions[0],
        traction_mu=tractions[1], flux_lam=flux_lam,
    )  # fmt: skip


def _free_shares(body: Body, p: FacetPoints) -> np.ndarray:
    """Share of the surface around each of the wall's cells (ascending) that the wall leaves free.

    Around: in the cell and those that share a node with it, so that a share changes continuously
    where a wall's end moves from cell to cell. Only what faces the same way counts: the sides of a
    beam do not go on from its held end.
    """
    cells, entry = np.unique(p.cell, return_inverse=True)
    surface = body.surface
    vectors = surface.area_vectors(surface.positions(body.nodes))
    area = np.linalg.norm(vectors, axis=1)
    outward = np.zeros((len(area), 3))
    outward[:, : body.dim] = vectors / np.maximum(area, 1e-300)[:, None]
    facing = np.zeros((len(cells), 3))
    np.add.at(facing, entry, p.weight[:, None] * p.normal)
    facing /= np.maximum(np.linalg.norm(facing, axis=1), 1e-300)[:, None]

    def alike(cell: np.ndarray, weight: np.ndarray, normal: np.ndarray) -> np.ndarray:
        near, what = _around(body, cells, cell).nonzero()
        # in full where it faces the same way, not at all beyond 60 degrees
        same = np.clip(2.0 * np.einsum("qi,qi->q", normal[what], facing[near]) - 1.0, 0.0, 1.0)
        return np.bincount(near, weight[what] * same, len(cells))

    whole = alike(surface.facet_cell, area, outward)
    held = alike(p.cell, p.weight, p.normal)
    return np.clip(1.0 - held / np.maximum(whole, 1e-300), 0.0, 1.0)


def _around(body: Body, cells: np.ndarray, others: np.ndarray) -> csr_array:
    """Nodes that each of `cells` (rows) shares with the cell of each of `others` (columns)."""

    def incidence(chosen: np.ndarray) -> csr_array:
        nodes = body.cells[chosen]
        start = np.arange(len(chosen) + 1) * nodes.shape[1]
        entries = (np.ones(nodes.size), nodes.ravel(), start)
        return csr_array(entries, (len(chosen), len(body.nodes)))

    return csr_array(incidence(cells) @ incidence(others).T)


def _penalties(
    p: FacetPoints,
    entry: np.ndarray,
    axes: np.ndarray,
    eta_lam: np.ndarray,
    eta_mu: np.ndarray,
    mean: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Blocks (w, k, k, 3, 3) of the penalties for lambda = 1 and for mu = 1."""
    k, count = p.shape.shape[1], len(axes)
    out = np.zeros((2, count, k, k, 3, 3))
    for first in range(0, len(entry), POINTS_AT_ONCE):
        part = slice(first, first + POINTS_AT_ONCE)
        q, e = p[part], entry[part]
        own = axes[e]
        mass = np.einsum("q,qa,qb->qab", q.weight, q.shape, q.shape)
        held = own[:, :, None] * np.eye(3)
        np.add.at(out[1], e, np.einsum("q,qab,qij->qabij", eta_mu[e], mass, held, optimize=True))
        if mean is None:
            normal = own * q.normal
            across = np.einsum("q,qab,qi,qj->qabij", eta_lam[e], mass, normal, normal,
                               optimize=True)  # fmt: skip
            np.add.at(out[0], e, across)
    if mean is not None:
        flux = _normal_integrals(p, entry, axes)
        out[0] += np.einsum("w,wai,wbj->wabij", eta_lam, flux, flux, optimize=True)
    return out[0], out[1]


def _tractions(
    p: FacetPoints, entry: np.ndarray, count: int, mean: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Integral of N_b T_a, (w, k, k, 3, 3) by (b, a), for lambda = 1 and for mu = 1."""
    k = p.shape.shape[1]
    out = np.zeros((2, count, k, k, 3, 3))
    for first in range(0, len(entry), POINTS_AT_ONCE):
        part = slice(first, first + POINTS_AT_ONCE)
        q, e = p[part], entry[part]
        at = None if mean is None else mean[e]
        for total, traction in zip(out, traction_operators(q, at), strict=True):
            C = np.einsum("q,qb,qaij->qbaij", q.weight, q.shape, traction, optimize=True)
            np.add.at(total, e, C)
    return out[0], out[1]


def _normal_integrals(p: FacetPoints, entry: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """Integral of N_a P n over each entry's wall, (w, k, 3)."""
    out = np.zeros((len(axes), p.shape.shape[1], 3))
    np.add.at(out, entry, np.einsum("q,qa,qi->qai", p.weight, p.shape, axes[entry] * p.normal))
    return out


def _largest_ratio(
    body: Body, cell: np.ndarray, p: FacetPoints, entry: np.ndarray, support: float, *, by_mu: bool
) -> np.ndarray:
    """Largest eigenvalue of integral_wall |sigma n|^2 over integral_cell sigma : eps, (w,) [1/m].

    sigma for mu = 1 alone (by_mu), or for lambda = 1 alone with the pointwise dilatation; of plain
    cells, which cells.FLUCTUATION raises to at most 1.25 times this.
    """
    dim, k = body.dim, body.cells.shape[1]
    size, count = k * dim, len(cell)
    rows = body.geometry_table[body.geometry_row[cell]]
    G = gradient_product_blocks(body.kind, rows, k)
    if support > 0.0:
        full = int(np.argmax(body.fill))
        row = body.geometry_table[[body.geometry_row[full]]]
        G = G + support * gradient_product_blocks(body.kind, row, k)
    if body.axes is not None:  # tractions are in the world's coordinates
        G = body.frame @ G @ body.frame.T
    moduli = np.full(count, 0.0 if by_mu else 1.0), np.full(count, 1.0 if by_mu else 0.0)
    B = stiffness_blocks(G, *moduli)[..., :dim, :dim].transpose(0, 1, 3, 2, 4)
    B = B.reshape(count, size, size)
    A = np.zeros((count, size, size))
    for first in range(0, len(entry), POINTS_AT_ONCE):
        part = slice(first, first + POINTS_AT_ONCE)
        traction = traction_operators(p[part])[1 if by_mu else 0]
        T = traction[..., :dim, :dim].transpose(0, 2, 1, 3).reshape(-1, dim, size)
        np.add.at(A, entry[part], np.einsum("q,qip,qir->qpr", p[part].weight, T, T, optimize=True))
    values, vectors = np.linalg.eigh(B)
    keep = values > 1e-12 * values[:, -1:]
    root = np.where(keep, 1.0 / np.sqrt(np.where(keep, values, 1.0)), 0.0)
    V = vectors * root[:, None, :]
    return np.linalg.eigvalsh(np.swapaxes(V, 1, 2) @ A @ V)[:, -1]
