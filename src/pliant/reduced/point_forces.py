"""Elastic and viscous forces of a reduced body: a law at weighted points, seen through a span.

    energy = sum_p w_p psi(F_p),   f = sum_p w_p P(F_p) : dF_p/dq,   F_p = I + grad u(q)

(seed 004, eq. 3.4 and 3.5). The points are those of the cells' quadrature, or a few of them with
trained weights (section 3.6). Stiffness damping is the Kelvin-Voigt stress of the small-strain
moduli, P_d = F~ (lambda tr(D) I + 2 mu D) with D = sym(F~^T grad v), for every law.
"""

from dataclasses import dataclass

import numpy as np

from pliant.fem.laws.law import Law
from pliant.reduced.point_law import PointLaw
from pliant.reduced.spans import Span


@dataclass(frozen=True)
class Points:
    """Where the law is evaluated: weights (points,) [m^dim], the cell of each (points,).

    gradients: from q to the rows (point, j) of du / dX_j.
    """

    weights: np.ndarray
    cells: np.ndarray
    gradients: Span

    def __len__(self) -> int:
        return len(self.weights)


class PointForces:
    """The forces of `points` under a law; q: (size,)."""

    def __init__(self, points: Points):
        self.points = points
        self.dim = points.gradients.dim
        self._w = points.weights[:, None, None]
        self._kept: dict[bytes, np.ndarray] = {}
        self.law: PointLaw | None = None

    def set_law(self, law: Law, cell_count: int, lam: np.ndarray, mu: np.ndarray) -> None:
        """Another law, or other numbers; lam, mu: small-strain moduli of all cells [Pa]."""
        cells = self.points.cells
        self.law = PointLaw(law, law.table(cell_count)[cells], self.points.weights, self.dim)
        self.lam, self.mu = np.maximum(lam[cells], 0.0), mu[cells]
        self._kept.clear()

    def gradient(self, q: np.ndarray) -> np.ndarray:
        """du_i / dX_j, (points, 3, 3)."""
        d = self.dim
        H = self.points.gradients.apply(q).reshape(-1, d, d)
        out = np.zeros((len(H), 3, 3))
        out[:, :d, :d] = H.transpose(0, 2, 1)
        return out

    def deformation(self, q: np.ndarray) -> np.ndarray:
        """F (points, 3, 3)."""
        F = self.gradient(q)
        F[:, [0, 1, 2], [0, 1, 2]] += 1.0
        return F

    def pull(self, P: np.ndarray) -> np.ndarray:
        """sum_p w_p P_p : dF_p / dq."""
        d = self.dim
        weighted = (self._w * P[:, :d, :d]).transpose(0, 2, 1)
        return self.points.gradients.pull(weighted.reshape(-1, d))

    def gram(self, A: np.ndarray) -> np.ndarray:
        """sum_p w_p (dF/dq)^T A_p (dF/dq); A (points, 3, 3, 3, 3)."""
        d = self.dim
        own = A[:, :d, :d, :d, :d] * self.points.weights[:, None, None, None, None]
        return self.points.gradients.gram(own.transpose(0, 2, 1, 4, 3))

    def energy(self, q: np.ndarray) -> float:
        """Stored energy [J]."""
        assert self.law is not None
        self.points.gradients.apply(q, out=self.law.gradients)
        return float(np.sum(self.points.weights * self.law.forces(energy=True)[0]))

    def force(self, q: np.ndarray) -> np.ndarray:
        """Gradient of the energy."""
        assert self.law is not None
        self.points.gradients.apply(q, out=self.law.gradients)
        return self.points.gradients.pull(self.law.forces()[1])

    def stiffness(self, q: np.ndarray, *, project: bool = False) -> np.ndarray:
        """Its second derivative; those of the last two q are kept: a step's ends."""
        assert self.law is not None
        key = q.tobytes() + bytes([project])
        found = self._kept.pop(key, None)
        if found is None:
            found = self.gram(self.law.tangent(self.deformation(q), project=project))
        self._kept[key] = found
        while len(self._kept) > 2:
            del self._kept[next(iter(self._kept))]
        return found

    def smallest_stretches(self, q: np.ndarray) -> np.ndarray:
        """det F at the points."""
        return np.linalg.det(self.deformation(q))

    # by the law's parameters ----------------------------------------------------------------------

    def force_by_law(self, q: np.ndarray, d_p: np.ndarray) -> np.ndarray:
        """Change of the force by the parameters' (cells, parameters)."""
        assert self.law is not None
        return self.pull(self.law.change(self.deformation(q), d_p[self.points.cells]))

    def law_pull(self, q: np.ndarray, y: np.ndarray) -> np.ndarray:
        """y . d force / d parameters, (points, parameters)."""
        assert self.law is not None
        return self.law.pull(self.deformation(q), self._w * self.gradient(y))

    # damping --------------------------------------------------------------------------------------

    def viscous_force(self, at: np.ndarray, rate: np.ndarray) -> np.ndarray:
        """Per stiffness damping."""
        return self.pull(_viscous(self.deformation(at), self.gradient(rate), self.lam, self.mu))

    def viscous_matrix(self, at: np.ndarray) -> np.ndarray:
        """Its derivative by the rate: symmetric, never negative."""
        F = self.deformation(at)
        B = F @ F.transpose(0, 2, 1)
        lam, mu = (m[:, None, None, None, None] for m in (self.lam, self.mu))
        A = lam * np.einsum("pij,pkl->pijkl", F, F) + mu * np.einsum("pil,pkj->pijkl", F, F)
        A += mu * np.einsum("pik,jl->pijkl", B, np.eye(3))
        return self.gram(A)

    def viscous_by_place(self, at: np.ndarray, rate: np.ndarray, change: np.ndarray) -> np.ndarray:
        """Change of the viscous force along a change of `at`."""
        return self.pull(
            _viscous_by_place(
                self.deformation(at), self.gradient(rate), self.gradient(change), self.lam, self.mu
            )
        )

    def viscous_place_pull(self, at: np.ndarray, rate: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Transpose of `viscous_by_place`."""
        F, W, Y = self.deformation(at), self.gradient(rate), self.gradient(y)
        return self.pull(_viscous_place_pull(F, W, Y, self.lam, self.mu))

    def viscous_by_moduli(
        self, at: np.ndarray, rate: np.ndarray, lam: np.ndarray, mu: np.ndarray
    ) -> np.ndarray:
        """Change of the viscous force by those of the moduli (cells,)."""
        c = self.points.cells
        return self.pull(_viscous(self.deformation(at), self.gradient(rate), lam[c], mu[c]))

    def viscous_moduli_pull(
        self, at: np.ndarray, rate: np.ndarray, y: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Its transpose at the points."""
        F, W = self.deformation(at), self.gradient(rate)
        Y, one, none = self._w * self.gradient(y), np.ones(len(F)), np.zeros(len(F))
        by_lam = np.einsum("pij,pij->p", Y, _viscous(F, W, one, none))
        return by_lam, np.einsum("pij,pij->p", Y, _viscous(F, W, none, one))


def _viscous(F: np.ndarray, W: np.ndarray, lam: np.ndarray, mu: np.ndarray) -> np.ndarray:
    """F (lambda tr(D) I + 2 mu D), D = sym(F^T W)."""
    return F @ _inner_stress(F, W, lam, mu)


def _inner_stress(F, W, lam, mu):
    S = F.transpose(0, 2, 1) @ W
    trace = np.einsum("pii->p", S)
    out = mu[:, None, None] * (S + S.transpose(0, 2, 1))
    out[:, [0, 1, 2], [0, 1, 2]] += (lam * trace)[:, None]
    return out


def _viscous_by_place(F, W, dF, lam, mu):
    return dF @ _inner_stress(F, W, lam, mu) + F @ _inner_stress(dF, W, lam, mu)


def _viscous_place_pull(F, W, Y, lam, mu):
    """Z with Z : dF = Y : d P_d along dF: (Y S + W T, S and T the inner stresses of W and of Y)."""
    return Y @ _inner_stress(F, W, lam, mu) + W @ _inner_stress(F, Y, lam, mu)
