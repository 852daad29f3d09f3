"""Forces of a body in complex arithmetic, in NumPy: an opinion independent of the kernels.

Every formula is the real one of fem.forces.elasticity, fem.forces.hyperelastic, fem.cutting.walls,
fem.cutting.ghost and dynamics.contact with complex numbers in it, so a value x + i h dx comes back
as f + i h df (seed 004, eq. 4.7) and no derivative is written down anywhere. Fields are (nodes, 3).
"""

from types import SimpleNamespace
from typing import Any

import numpy as np

from pliant.complexstep.derivatives import STEP
from pliant.complexstep.multicomplex import Multicomplex, accelerated
from pliant.core.errors import BadInput
from pliant.fem.bodies.body import Body
from pliant.fem.cutting.cell_quadrature import cell_quadrature
from pliant.fem.cutting.walls import Walls
from pliant.fem.forces.cell_data import cell_means
from pliant.fem.forces.cells import gradient_product_blocks, softened_products
from pliant.fem.forces.wall_traction import WallTractions
from pliant.fem.laws.dilatation import MeanEnergy, mean_energy, volume_slope
from pliant.fem.laws.law import Law

CELLS_AT_ONCE = 4000
"""Cells whose k x k blocks are formed at a time (some 40 MB)."""

POLAR_SWEEPS = 14
"""Of Higham's iteration, which doubles the digits from the fourth or so on."""


def _cofactor(A: np.ndarray) -> np.ndarray:
    """d det A / d A of (..., 3, 3)."""
    r0, r1, r2 = A[..., 0, :], A[..., 1, :], A[..., 2, :]
    return np.stack([np.cross(r1, r2), np.cross(r2, r0), np.cross(r0, r1)], axis=-2)


def _inverse_transpose(A: np.ndarray) -> np.ndarray:
    """A^-T of (..., 3, 3) by cofactors: LAPACK would pivot on the size of complex numbers."""
    C = _cofactor(A)
    return C / np.sum(A[..., 0, :] * C[..., 0, :], axis=-1)[..., None, None]


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

    def __init__(
        self, body: Body, *, model: str, law: Law | None, walls: Walls | None, dilatation: str
    ):
        self.body, self.model, self.law, self.walls = body, model, law, walls
        self.averaged = dilatation == "mean"
        self._means = cell_means(body)[0][body.geometry_row]
        self.nodes = np.zeros((len(body.nodes), 3))
        self.nodes[:, : body.dim] = body.nodes
        if law is not None:
            if law.energy.full is None:
                raise BadInput(f"the energy '{law.name}' is written in the stretches.")
            if law.floor > 0.0:
                raise BadInput(f"'{law.name}' is continued below a stretch of {law.floor:g}.")
            rule = cell_quadrature(body, dilatation=dilatation)
            row = body.geometry_row
            self._weight, self._gradient = rule.weight[row], rule.gradient[row]
            self._mean: MeanEnergy | None = None  # one point is its own mean
            if self.averaged and self._weight.shape[1] > 1:
                self._mean = mean_energy(law.energy)

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
            return np.broadcast_to(body.frame, (len(body.cells), 3, 3)).astype(complex)
        F = body.frame + np.einsum("cai,caj->cij", u[body.cells], self._means)
        return gram_schmidt_rotation(F) if self.model == "corotated-qr" else polar_rotation(F)

    def corotated(self, u: np.ndarray, lam, mu) -> np.ndarray:
        """Force of the corotated energy, see fem.forces.corotation_kernels."""
        cells, frame = self.body.cells, self.body.frame
        F = frame + np.einsum("cai,caj->cij", u[cells], self._means)
        R = self.rotations(u)
        S = np.swapaxes(R, 1, 2) @ F
        X = self.nodes[cells] - self.nodes[cells[:, :1]]
        Y = X @ frame
        y = np.einsum("cji,cbj->cbi", R, u[cells] + X) - Y
        g = self._local_forces(y, lam, mu)
        torque = np.cross(Y + y, g).sum(axis=1)
        T = np.trace(S, axis1=1, axis2=2)[:, None, None] * np.eye(3) - S
        l = np.linalg.solve(T, torque[..., None])[..., 0]
        g = g - np.cross(l[:, None, :], self._means)
        return self.scatter(np.einsum("cij,caj->cai", R, g))

    def elastic(self, R, w, s: float, lam, mu) -> np.ndarray:
        """f_a = R sum_b K_ab (R^T w_b + s (R^T X_b - Y_b)), see fem.forces.elasticity."""
        cells = self.body.cells
        X = self.nodes[cells] - self.nodes[cells[:, :1]]
        y = np.einsum("cji,cbj->cbi", R, w[cells] + s * X) - s * (X @ self.body.frame)
        return self.scatter(np.einsum("cij,caj->cai", R, self._local_forces(y, lam, mu)))

    def _local_forces(self, y: np.ndarray, lam, mu) -> np.ndarray:
        """sum_b K_ab y_b (cells, k, 3), K of fem.forces.cell_forces."""
        body, k = self.body, self.body.cells.shape[1]
        out = np.empty(y.shape, complex)
        for first in range(0, len(body.cells), CELLS_AT_ONCE):
            c = slice(first, first + CELLS_AT_ONCE)
            rows = body.geometry_table[body.geometry_row[c]]
            G = gradient_product_blocks(body.kind, rows, k)
            if self.averaged:
                G = softened_products(body.kind, rows, k, spacing=body.spacing)
            trace = np.trace(G, axis1=-2, axis2=-1)
            if self.averaged:
                theta = np.einsum("cbj,cbj->c", self._means[c], y[c])
                by_lam = (body.cell_volumes[c] * theta)[:, None, None] * self._means[c]
            else:
                by_lam = np.einsum("cabij,cbj->cai", G, y[c], optimize=True)
            by_mu = np.einsum("cabji,cbj->cai", G, y[c], optimize=True)
            by_mu = by_mu + np.einsum("cab,cbi->cai", trace, y[c])
            out[c] = lam[c][:, None, None] * by_lam + mu[c][:, None, None] * by_mu
        return out

    # material laws -----------------------------------------------------------------------------

    def internal(self, u: np.ndarray, values: dict[str, np.ndarray]) -> np.ndarray:
        """Internal force of the law at u, its stress by bicomplex steps of the energy."""
        F = np.eye(3) + np.einsum("cai,cqaj->cqij", u[self.body.cells], self._gradient)
        P = self._stress(F, {n: v[:, None] for n, v in values.items()})
        if self._mean is not None:
            K = _cofactor(F)
            J = np.sum(F[..., 0, :] * K[..., 0, :], axis=-1)
            w = self._weight
            average = np.sum(w * J, axis=1) / np.maximum(w.sum(axis=1), 1e-300)
            slopes = self._mean.slopes_of({n: v[:, None] for n, v in values.items()})
            change = volume_slope(average[:, None], slopes) - volume_slope(J, slopes)
            P = P + change[..., None, None] * K
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
        """Kelvin-Voigt force of the rate w about the displacement `at`: fem.forces.hyperelastic."""
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

    def node_moduli(self, mu) -> np.ndarray:
        """Mean of 4 mu around each node."""
        flat, k = self.body.cells.reshape(-1), self.body.cells.shape[1]
        count = np.bincount(flat, minlength=len(self.nodes))

        def mean(x):
            return np.bincount(flat, np.repeat(x, k), len(self.nodes)) / count

        return split(mean, 4.0 * mu)

    def wall(self, w: np.ndarray, given: np.ndarray, lam, mu) -> np.ndarray:
        """Force of the walls on the field w minus the load of the given displacement (q, 3)."""
        walls = self.walls
        out = np.zeros(w.shape, complex)
        if walls is None:
            return out
        corners = self.body.cells[walls.cell]
        force = np.einsum("wabij,wbj->wai", walls.blocks(lam, mu), w[corners], optimize=True)
        if np.any(given):
            force = force - split(lambda g: walls.loads(np.real(lam), np.real(mu), g), given)
            if np.any(np.imag(lam)) or np.any(np.imag(mu)):
                real = np.real(given)  # the data move with beta alone, never with the moduli
                force = force - 1j * walls.loads(np.imag(lam), np.imag(mu), real)
        np.add.at(out, corners, force)
        return out

    def traction(self, t: WallTractions, u: np.ndarray, given, lam, mu) -> np.ndarray:
        """Force of the body's own stress at its walls; given: (w, k, 3) or None."""
        out, cell = np.zeros(u.shape, complex), t.walls.cell
        F = np.eye(3) + np.einsum("wai,waj->wij", u[t.cells], t.mean)
        products = t.products(lam[cell], mu[cell])
        np.add.at(out, t.cells, t.gradient(polar_rotation(F), u, given, *products))
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
    margin = contact.margin_at(stiffness)
    nodes, weights = p.nodes.numpy(), p.weights.numpy()
    X, area = p.positions.numpy(), p.area.numpy()

    def carried(field):
        return np.einsum("pj,pji->pi", weights, field[nodes])

    def pressure(d):
        z = -p.sharpness * (d + margin)
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
