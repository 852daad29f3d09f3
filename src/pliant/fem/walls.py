"""Walls: parts of the surface that are held, weakly inside grid cells by Nitsche's method.

For a wall piece with normal n, held components P and given displacement g the energy gains

    - integral (P sigma(u) n) . v  - integral (P sigma(v) n) . (u - g)  + eta integral P (u - g) . v

(seed 000, eq. 2.4.5). It is coercive when eta exceeds the largest eigenvalue L of
integral_wall |sigma n|^2 = L integral_cell sigma : eps, solved for every cell; eta = 2 L.
The terms use the linear stress, before any corotation (seed 000, section 2.7).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pliant.fem.body import Body
from pliant.fem.cells import gradient_product_blocks, stiffness_blocks
from pliant.fem.quadrature import FacetPoints, shape_functions

SLIVER_SUPPORT = 0.02
"""Share of the full cell's energy that the eigenvalue problem of a cut cell may count on. The ghost
penalty provides it; without it the penalty of a sliver would grow as 1 / filled fraction."""

POINTS_AT_ONCE = 2000
"""Quadrature points whose products of 24 x 24 are formed at a time (9 MB)."""

SAFETY = 2.0
"""eta / L; 1 is the edge of coercivity."""


@dataclass(frozen=True)
class Walls:
    """Wall terms, one entry per (held region, cell).

    cell: (w,); axes: (w, 3) 1 where held; consistency: (w, k, k, 3, 3) for lambda and mu apart;
    mass: (w, k, k) integrals of N_a N_b; position, weight, normal: the quadrature points (see
    FacetPoints), point_entry: (q,) the entry each point belongs to.
    """

    body: Body
    cell: np.ndarray
    axes: np.ndarray
    consistency_lam: np.ndarray
    consistency_mu: np.ndarray
    mass: np.ndarray
    position: np.ndarray
    weight: np.ndarray
    normal: np.ndarray
    point_entry: np.ndarray

    @cached_property
    def points(self) -> FacetPoints:
        """The quadrature points with their shape functions; only walls that move keep them."""
        return self._points(slice(None))

    def _points(self, part: slice) -> FacetPoints:
        cell, position = self.cell[self.point_entry[part]], self.position[part]
        shape, gradient = shape_functions(self.body, cell, position)
        return FacetPoints(
            cell, position, self.weight[part], self.normal[part], shape, gradient
        )

    def penalties(self, lam: np.ndarray, mu: np.ndarray, support: float = SLIVER_SUPPORT):
        """eta and its derivatives by lambda and mu, (w,) each, for per-cell moduli (cells,)."""
        l, m = lam[self.cell], mu[self.cell]
        last = self._latest.get(support)  # matrix, its derivative and the loads ask in turn
        if last is None or not (np.array_equal(last[0], l) and np.array_equal(last[1], m)):
            self._latest[support] = last = (l, m, self._eigenvalues(l, m, support))
        L, d_lam, d_mu = last[2]
        return SAFETY * L, SAFETY * d_lam, SAFETY * d_mu

    @cached_property
    def _latest(self) -> dict[float, tuple]:
        """The last penalties computed, with the moduli they belong to."""
        return {}

    def blocks(self, lam: np.ndarray, mu: np.ndarray) -> np.ndarray:
        """Stiffness added to each entry's cell, (w, k, k, 3, 3)."""
        eta, _, _ = self.penalties(lam, mu)
        l, m = lam[self.cell], mu[self.cell]
        return self._combine(l, m, eta)

    def block_derivatives(self, lam: np.ndarray, mu: np.ndarray):
        """Derivatives of `blocks` by the entry's lambda and mu."""
        _, d_lam, d_mu = self.penalties(lam, mu)
        one, zero = np.ones(len(self.cell)), np.zeros(len(self.cell))
        return self._combine(one, zero, d_lam), self._combine(zero, one, d_mu)

    def _combine(self, l: np.ndarray, m: np.ndarray, eta: np.ndarray) -> np.ndarray:
        shape = (-1, 1, 1, 1, 1)
        C = l.reshape(shape) * self.consistency_lam + m.reshape(shape) * self.consistency_mu
        held = self.axes[:, None, None, :, None] * C
        adjoint = np.swapaxes(np.swapaxes(held, 1, 2), 3, 4)
        P = np.einsum("w,wab,wi,ij->wabij", eta, self.mass, self.axes, np.eye(3))
        return P - held - adjoint

    def loads(
        self, lam: np.ndarray, mu: np.ndarray, given: np.ndarray, *, derivatives: bool = False
    ):
        """Nodal forces (w, k, 3) of the given displacement (q, 3) at the quadrature points.

        With derivatives=True: a pair, by lambda and by mu, instead.
        """
        eta, d_lam, d_mu = self.penalties(lam, mu)
        l, m = lam[self.cell], mu[self.cell]
        if derivatives:
            one, zero = np.ones_like(l), np.zeros_like(l)
            return self._load(one, zero, d_lam, given), self._load(zero, one, d_mu, given)
        return self._load(l, m, eta, given)

    def _load(self, l, m, eta, given) -> np.ndarray:
        e, p = self.point_entry, self.points
        g = self.axes[e] * given
        lam_part, mu_part = traction_operators(p)  # T[q, b] maps u_b to the traction
        T = l[e][:, None, None, None] * lam_part + m[e][:, None, None, None] * mu_part
        force = -np.einsum("qaij,qi->qaj", T, g) + np.einsum("q,qa,qi->qai", eta[e], p.shape, g)
        out = np.zeros((len(self.cell), p.shape.shape[1], 3))
        np.add.at(out, e, force * p.weight[:, None, None])
        return out

    def _eigenvalues(self, l: np.ndarray, m: np.ndarray, support: float):
        B_lam, B_mu = self._energies(support)
        A_ll, A_lm, A_mm = self._traction_squares()
        c = (slice(None), None, None)
        A = l[c] ** 2 * A_ll + l[c] * m[c] * A_lm + m[c] ** 2 * A_mm
        B = l[c] * B_lam + m[c] * B_mu
        values, vectors = np.linalg.eigh(B)
        keep = values > 1e-12 * values[:, -1:]
        root = np.where(keep, 1.0 / np.sqrt(np.where(keep, values, 1.0)), 0.0)
        V = vectors * root[:, None, :]
        L, Y = np.linalg.eigh(np.swapaxes(V, 1, 2) @ A @ V)
        x = np.einsum("wpr,wr->wp", V, Y[:, :, -1])  # x^T B x = 1
        top = L[:, -1]

        def quadratic(matrix):
            return np.einsum("wp,wpr,wr->w", x, matrix, x)

        d_lam = 2 * l * quadratic(A_ll) + m * quadratic(A_lm) - top * quadratic(B_lam)
        d_mu = 2 * m * quadratic(A_mm) + l * quadratic(A_lm) - top * quadratic(B_mu)
        return top, d_lam, d_mu


    def _flat(self, blocks: np.ndarray) -> np.ndarray:
        """(w, k, k, 3, 3) as matrices over the cell's free components."""
        dim, w, k = self.body.dim, len(self.cell), self.body.cells.shape[1]
        part = blocks[..., :dim, :dim].transpose(0, 1, 3, 2, 4)
        return part.reshape(w, k * dim, k * dim)

    def _energies(self, support: float) -> tuple[np.ndarray, np.ndarray]:
        """integral sigma : eps of each cell for lambda = 1 and for mu = 1."""
        body, k = self.body, self.body.cells.shape[1]
        G = gradient_product_blocks(
            body.kind, body.geometry_table[body.geometry_row[self.cell]], k
        )
        if support > 0.0:
            full = int(np.argmax(body.fill))
            G = G + support * gradient_product_blocks(
                body.kind, body.geometry_table[[body.geometry_row[full]]], k
            )
        one, zero = np.ones(len(self.cell)), np.zeros(len(self.cell))
        return (
            self._flat(stiffness_blocks(G, one, zero)), self._flat(stiffness_blocks(G, zero, one))
        )  # fmt: skip

    def _traction_squares(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """integral_wall |sigma n|^2 = l^2 A_ll + l m A_lm + m^2 A_mm; geometry only."""
        dim, size = self.body.dim, self.body.cells.shape[1] * self.body.dim
        out = np.zeros((3, len(self.cell), size, size))
        for q in range(0, len(self.point_entry), POINTS_AT_ONCE):
            part = slice(q, q + POINTS_AT_ONCE)
            points, e = self._points(part), self.point_entry[part]
            Tl, Tm = (
                T[..., :dim, :dim].transpose(0, 2, 1, 3).reshape(len(e), dim, size)
                for T in traction_operators(points)
            )
            order = np.argsort(e, kind="stable")
            entries, starts = np.unique(e[order], return_index=True)
            for k, (S, T) in enumerate(((Tl, Tl), (Tl, Tm), (Tm, Tm))):
                products = np.einsum("q,qip,qir->qpr", points.weight, S, T)[order]
                out[k, entries] += np.add.reduceat(products, starts)
        return out[0], out[1] + np.swapaxes(out[1], 1, 2), out[2]


def traction_operators(p: FacetPoints) -> tuple[np.ndarray, np.ndarray]:
    """T_b with traction sigma(u) n = sum_b T_b u_b, for lambda = 1 and for mu = 1; (q, k, 3, 3)."""
    n, g = p.normal, p.gradient
    lam = np.einsum("qi,qbj->qbij", n, g)
    mu = np.einsum("qd,qbd,ij->qbij", n, g, np.eye(3)) + np.einsum("qbi,qj->qbij", g, n)
    return lam, mu


def build_walls(body: Body, pieces: list[tuple[FacetPoints, np.ndarray]]) -> Walls | None:
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
    entry = np.concatenate(entries)
    k = body.cells.shape[1]
    lam_part, mu_part = traction_operators(points)

    def integrate(integrand, shape):
        out = np.zeros((count, *shape))
        np.add.at(out, entry, integrand)
        return out

    N, w = points.shape, points.weight
    return Walls(
        body=body,
        cell=np.concatenate(cells),
        axes=np.concatenate(axes).astype(float),
        consistency_lam=integrate(np.einsum("q,qa,qbij->qabij", w, N, lam_part), (k, k, 3, 3)),
        consistency_mu=integrate(np.einsum("q,qa,qbij->qabij", w, N, mu_part), (k, k, 3, 3)),
        mass=integrate(np.einsum("q,qa,qb->qab", w, N, N), (k, k)),
        position=points.position,
        weight=points.weight,
        normal=points.normal,
        point_entry=entry,
    )
