"""Forces of a body in complex arithmetic, in NumPy: an opinion independent of the kernels.

Every formula is the real one of fem.elasticity, fem.hyperelastic, fem.walls, fem.ghost and
dynamics.contact with complex numbers in it, so a value x + i h dx comes back as f + i h df (seed
004, eq. 4.7) and no derivative is written down anywhere. Fields are (nodes, 3).
"""

from types import SimpleNamespace
from typing import Any

import numpy as np

from pliant.complexstep.derivatives import STEP
from pliant.complexstep.multicomplex import Multicomplex, accelerated
from pliant.core.errors import BadInput
from pliant.fem.body import Body
from pliant.fem.cell_quadrature import cell_quadrature
from pliant.fem.cells import GRID, gradient_product_blocks
from pliant.fem.laws.law import Law
from pliant.fem.penalty_walls import STIFFER, PenaltyWalls
from pliant.fem.walls import SAFETY, SLIVER_SUPPORT, Walls

CELLS_AT_ONCE = 4000
"""Cells whose k x k blocks are formed at a time (some 40 MB)."""

POLAR_SWEEPS = 14
"""Of Higham's iteration, which doubles the digits from the fourth or so on."""


def _inverse_transpose(A: np.ndarray) -> np.ndarray:
    """A^-T of (..., 3, 3) by cofactors: LAPACK would pivot on the size of complex numbers."""
    r0, r1, r2 = A[..., 0, :], A[..., 1, :], A[..., 2, :]
    C = np.stack([np.cross(r1, r2), np.cross(r2, r0), np.cross(r0, r1)], axis=-2)
    return C / np.sum(r0 * C[..., 0, :], axis=-1)[..., None, None]


def polar_rotation(F: np.ndarray) -> np.ndarray:
    """R of F = R S by R <- (R + R^-T) / 2 (Higham 1986)."""
    R = F
    for _ in range(POLAR_SWEEPS):
        R = 0.5 * (R + _inverse_transpose(R))
    return R


def _length(v: np.ndarray) -> np.ndarray:
    """sqrt(v . v) without conjugation."""
    return np.sqrt(np.sum(v * v, axis=-1, keepdims=True))


def gram_schmidt_rotation(F: np.ndarray) -> np.ndarray:
    """The frame of F's first two columns."""
    a, b = F[..., :, 0], F[..., :, 1]
    q1 = a / _length(a)
    b = b - q1 * np.sum(q1 * b, axis=-1, keepdims=True)
    q2 = b / _length(b)
    return np.stack([q1, q2, np.cross(q1, q2)], axis=-1)


def split(linear, z: np.ndarray) -> np.ndarray:
    """A real linear map of a complex array."""
    return linear(np.real(z)) + 1j * linear(np.imag(z))


class ComplexForces:
    """The forces of one body with one set of moduli; law None for the linear elastic models."""

    def __init__(self, body: Body, *, model: str, law: Law | None, walls: Walls | None):
        self.body, self.model, self.law, self.walls = body, model, law, walls
        self.nodes = np.zeros((len(body.nodes), 3))
        self.nodes[:, : body.dim] = body.nodes
        if law is not None:
            if law.energy.full is None:
                raise BadInput(f"the energy '{law.name}' is written in the stretches.")
            if law.floor > 0.0:
                raise BadInput(f"'{law.name}' is continued below a stretch of {law.floor:g}.")
            rule = cell_quadrature(body)
            row = body.geometry_row
            self._weight, self._gradient = rule.weight[row], rule.gradient[row]
        self._eta: np.ndarray | None = None

    def scatter(self, per_cell: np.ndarray) -> np.ndarray:
        """Sum of (cells, k, 3) contributions over the cells of each node."""
        flat = self.body.cells.reshape(-1)

        def summed(values):
            columns = [np.bincount(flat, values[..., i].reshape(-1), len(self.nodes))
                       for i in range(3)]  # fmt: skip
            return np.stack(columns, axis=1)

        return split(summed, per_cell)

    # linear elasticity, corotated or not -------------------------------------------------------

    def rotations(self, u: np.ndarray) -> np.ndarray:
        """Rotation of every cell, (cells, 3, 3)."""
        body = self.body
        if self.model == "linear":
            return np.broadcast_to(np.eye(3), (len(body.cells), 3, 3)).astype(complex)
        F = np.eye(3) + np.einsum("cai,caj->cij", u[body.cells], self._mean_gradients())
        return gram_schmidt_rotation(F) if self.model == "corotated-qr" else polar_rotation(F)

    def _mean_gradients(self) -> np.ndarray:
        body, k = self.body, self.body.cells.shape[1]
        if body.kind != GRID:
            return body.geometry_table[body.geometry_row][:, :12].reshape(-1, 4, 3)[:, :k]
        g = np.zeros((k, 3))
        for a in range(k):
            for d in range(body.dim):
                g[a, d] = (2 * ((a >> d) & 1) - 1) / (2 ** (body.dim - 1) * body.spacing)
        return np.broadcast_to(g, (len(body.cells), k, 3))

    def elastic(self, R, w, s: float, lam, mu) -> np.ndarray:
        """f_a = R sum_b K_ab (R^T w_b + s (R^T X_b - X_b)), see fem.elasticity."""
        body, k = self.body, self.body.cells.shape[1]
        X = self.nodes[body.cells] - self.nodes[body.cells[:, :1]]
        out = np.empty((len(body.cells), k, 3), complex)
        for first in range(0, len(body.cells), CELLS_AT_ONCE):
            c = slice(first, first + CELLS_AT_ONCE)
            G = gradient_product_blocks(
                body.kind, body.geometry_table[body.geometry_row[c]], k
            )
            y = np.einsum("cji,cbj->cbi", R[c], w[body.cells[c]] + s * X[c]) - s * X[c]
            trace = np.trace(G, axis1=-2, axis2=-1)
            g = lam[c][:, None, None] * np.einsum("cabij,cbj->cai", G, y, optimize=True)
            g = g + mu[c][:, None, None] * (
                np.einsum("cabji,cbj->cai", G, y, optimize=True)
                + np.einsum("cab,cbi->cai", trace, y)
            )
            out[c] = np.einsum("cij,caj->cai", R[c], g)
        return self.scatter(out)

    # material laws -----------------------------------------------------------------------------

    def internal(self, u: np.ndarray, values: dict[str, np.ndarray]) -> np.ndarray:
        """Internal force of the law at u, its stress by bicomplex steps of the energy."""
        F = np.eye(3) + np.einsum("cai,cqaj->cqij", u[self.body.cells], self._gradient)
        P = self._stress(F, {n: v[:, None] for n, v in values.items()})
        return self.scatter(np.einsum("cq,cqij,cqaj->cai", self._weight, P, self._gradient))

    def _stress(self, F: np.ndarray, values: dict[str, np.ndarray]) -> np.ndarray:
        """P_ij: unit 1 steps along F_ij, unit 2 carries the imaginary part of the arguments."""
        assert self.law is not None
        p = SimpleNamespace(**{n: _bicomplex(v) for n, v in values.items()})
        P = np.empty(F.shape, complex)
        for i in range(3):
            for j in range(3):
                G = np.empty((3, 3), object)
                for a in range(3):
                    for b in range(3):
                        along = STEP if (a, b) == (i, j) else 0.0
                        G[a, b] = _bicomplex(F[..., a, b], along)
                with accelerated():  # tiny steps: the infinitesimal rules lose nothing
                    value: Any = self.law.energy.value(G, p)
                P[..., i, j] = (value.re.im + 1j * value.im.im) / STEP
        return P

    def viscous(self, at, w, lam, mu) -> np.ndarray:
        """Kelvin-Voigt force of the rate w about the displacement `at` (fem.hyperelastic)."""
        cells = self.body.cells
        F = np.eye(3) + np.einsum("cai,cqaj->cqij", at[cells], self._gradient)
        S = np.einsum("cqki,cqkj->cqij", F, np.einsum("cai,cqaj->cqij", w[cells], self._gradient))
        D = 0.5 * (S + np.swapaxes(S, -1, -2))
        T = lam[:, None, None, None] * np.trace(D, axis1=-2, axis2=-1)[..., None, None] * np.eye(3)
        P = F @ (T + 2.0 * mu[:, None, None, None] * D)
        return self.scatter(np.einsum("cq,cqij,cqaj->cai", self._weight, P, self._gradient))

    # ghost penalty and walls -------------------------------------------------------------------

    def ghost(self, w: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """Ghost penalty of the field w, scale (nodes,) times the rest of its weights."""
        ghost = self.body.ghost
        out = np.zeros(w.shape, complex)
        if ghost is None:
            return out
        for axis in range(3):
            middle = np.flatnonzero(ghost.weight[:, axis] > 0.0)
            ends = ghost.neighbour[middle][:, 2 * axis : 2 * axis + 2]
            jump = w[ends[:, 1]] - 2.0 * w[middle] + w[ends[:, 0]]
            force = (scale[middle] * ghost.weight[middle, axis])[:, None] * jump
            np.add.at(out, middle, -2.0 * force)
            np.add.at(out, ends[:, 0], force)
            np.add.at(out, ends[:, 1], force)
        return out

    def node_moduli(self, lam, mu) -> np.ndarray:
        """Mean of lambda + 2 mu around each node."""
        flat, k = self.body.cells.reshape(-1), self.body.cells.shape[1]
        count = np.bincount(flat, minlength=len(self.nodes))

        def mean(x):
            return np.bincount(flat, np.repeat(x, k), len(self.nodes)) / count

        return split(mean, lam + 2.0 * mu)

    def _penalty(self, l, m) -> np.ndarray:
        """eta: a Rayleigh quotient is exact to first order when its vector is the real one."""
        walls = self.walls
        assert walls is not None
        A_ll, A_lm, A_mm = walls._traction_squares()
        B_lam, B_mu = walls._energies(SLIVER_SUPPORT)
        c = (slice(None), None, None)

        def forms(l, m):
            A = l[c] ** 2 * A_ll + l[c] * m[c] * A_lm + m[c] ** 2 * A_mm
            return A, l[c] * B_lam + m[c] * B_mu

        A, B = forms(np.real(l), np.real(m))
        values, vectors = np.linalg.eigh(B)
        keep = values > 1e-12 * values[:, -1:]
        V = vectors * np.where(keep, 1.0 / np.sqrt(np.where(keep, values, 1.0)), 0.0)[:, None, :]
        x = np.einsum("wpr,wr->wp", V, np.linalg.eigh(np.swapaxes(V, 1, 2) @ A @ V)[1][:, :, -1])
        top, bottom = (np.einsum("wp,wpr,wr->w", x, Q, x) for Q in forms(l, m))
        stiffer = STIFFER if isinstance(walls, PenaltyWalls) else 1.0
        return stiffer * SAFETY * top / bottom

    def wall(self, w: np.ndarray, given: np.ndarray, lam, mu) -> np.ndarray:
        """Force of the walls on the field w minus the load of the given displacement (q, 3)."""
        walls = self.walls
        out = np.zeros(w.shape, complex)
        if walls is None:
            return out
        l, m = lam[walls.cell], mu[walls.cell]
        if self._eta is None:  # one set of moduli a motion
            self._eta = self._penalty(l, m)
        eta = self._eta
        corners = self.body.cells[walls.cell]
        force = np.einsum("wabij,wbj->wai", walls._combine(l, m, eta), w[corners], optimize=True)
        if np.any(given):
            for z, unit in ((np.real, 1.0), (np.imag, 1j)):
                def load(g, z=z):
                    return walls._load(z(l), z(m), z(eta), g)

                force = force - unit * split(load, given)
        np.add.at(out, corners, force)
        return out


def _bicomplex(z: np.ndarray, along: float = 0.0) -> Multicomplex:
    """z with its imaginary part on unit 2 and `along` on unit 1."""
    re, im = np.real(z), np.imag(z)
    zero = np.zeros_like(re)
    return Multicomplex(Multicomplex(re, zero + along), Multicomplex(im, zero))


def contact_forces(contact, obstacles, stiffness, u, v, predicted, found, *, f_new, f_old, moved):
    """Contact force of a step (dynamics.contact) from planes (normal, offset).

    found: displacement and velocity at its end; moved: whether the unknown moves the displacement.
    """
    p = contact.points
    nodes, weights = p.nodes.numpy(), p.weights.numpy()
    X, area = p.positions.numpy(), p.area.numpy()

    def carried(field):
        return np.einsum("pj,pji->pi", weights, field[nodes])

    def pressure(d):
        z = -p.sharpness * (d + p.margin)
        small = np.where(np.real(z) > 35.0, 0.0, z)
        soft = np.where(np.real(z) > 35.0, z, np.log1p(np.exp(small)))
        slope = 1.0 / (1.0 + np.exp(-np.where(np.real(z) < -700.0, -700.0, z)))
        return stiffness * soft / p.sharpness, -stiffness * slope

    total = np.zeros(X.shape, complex)
    for n, offset in obstacles:
        ahead = X + carried(predicted)
        s, slope = pressure(ahead @ n - offset)
        gap = (X + carried(found[0]) - ahead) @ n if moved else 0.0
        old, new = carried(v), carried(found[1])
        slip = old - (old @ n)[:, None] * n
        drag = p.friction * s / np.sqrt(np.sum(slip * slip, axis=1) + p.slip_speed**2)
        across = new - (new @ n)[:, None] * n
        total += (f_new * (s + slope * gap))[:, None] * n
        total -= ((f_new + f_old) * drag)[:, None] * across
        if f_old != 0.0:
            total += (f_old * pressure((X + carried(u)) @ n - offset)[0])[:, None] * n
    out = np.zeros(u.shape, complex)
    np.add.at(out, nodes, weights[..., None] * (area[:, None] * total)[:, None, :])
    return out
