"""Masses of a reduced body: M = B^T M_nodes B, what gravity pulls at, and how both change.

M_nodes is that of fem.forces.mass: lumped on meshes, partly consistent on grids. A change of the
nodes' masses by d (nodes,) changes it by diag(d) and, where it is not lumped, by the share that the
body gains evenly.
"""

import numpy as np
from scipy import sparse

from pliant.dynamics.point_mass import attached_masses
from pliant.dynamics.scene import Scene
from pliant.fem.forces.mass import MassMatrix
from pliant.reduced.spans import Span


class ReducedMass:
    """Of a scene's body, through a span."""

    def __init__(self, scene: Scene, span: Span):
        self._span, self._own = span, MassMatrix(scene.body)
        self._count, self.dim = len(scene.body.nodes), scene.body.dim
        self.set_density(scene)

    def set_density(self, scene: Scene) -> None:
        """Another scene's densities and point masses."""
        self.attached = attached_masses(scene.attached, scene.body)
        self._own.set_density(scene.cell_material.densities(len(scene.body.cells)), self.attached)
        self._nodal = self._own.to_scipy()
        self.matrix = self._span.weighted(self._nodal)
        self.pull_of_unit = self.pulled(self.nodes)

    @property
    def nodes(self) -> np.ndarray:
        """Lumped masses of the nodes, (nodes,) [kg]."""
        return self._own.lumped

    def pulled(self, mass: np.ndarray) -> np.ndarray:
        """B^T of the masses (nodes,) pushed along each axis, (size, dim): what gravity does."""
        d = self.dim
        unit = np.zeros((self._count, d))
        out = np.empty((self._span.size, d))
        for i in range(d):
            unit[:] = 0.0
            unit[:, i] = mass
            out[:, i] = self._span.pull(unit)
        return out

    def momentum(self, velocity: np.ndarray) -> np.ndarray:
        """B^T M_nodes v of a field (nodes, 3)."""
        return self._span.pull(self._nodal @ velocity[:, : self.dim])

    def nodal_momentum(self, rate: np.ndarray) -> np.ndarray:
        """M_nodes B q', (nodes, dim)."""
        return self._nodal @ self._span.apply(rate)

    def _nodal_change(self, mass: np.ndarray) -> sparse.csr_matrix:
        change = sparse.csr_matrix(sparse.diags(mass))
        return change if self._own.is_lumped else change + float(mass.sum()) * self._beside

    @property
    def _beside(self) -> sparse.csr_matrix:
        """Change of M_nodes beyond the lumped masses for each kilogram gained evenly."""
        beyond = self._nodal - sparse.diags(self._own.lumped)
        return sparse.csr_matrix(beyond / self._own.of_body)

    def change(self, mass: np.ndarray) -> np.ndarray:
        """Change of M by that of the nodes' masses."""
        return self._span.weighted(self._nodal_change(mass))

    def momentum_change(self, mass: np.ndarray, velocity: np.ndarray) -> np.ndarray:
        """Change of `momentum` by that of the nodes' masses."""
        return self._span.pull(self._nodal_change(mass) @ velocity[:, : self.dim])

    def pull(self, products: np.ndarray) -> np.ndarray:
        """Transpose of `change`: by the nodes' masses, of sum of entries products * M.

        products: (size, size), sums of y z^T.
        """
        values, left, right = _factors(products)
        out, evenly = np.zeros(self._count), 0.0
        for value, y, z in zip(values, left, right, strict=True):
            a, b = self._span.apply(y), self._span.apply(z)
            out += value * np.einsum("ni,ni->n", a, b)
            if not self._own.is_lumped:
                evenly += value * float(np.sum(a * (self._beside @ b)))
        return out + evenly

    def field_pull(self, y: np.ndarray, velocity: np.ndarray) -> np.ndarray:
        """Transpose of `momentum_change`, of y . momentum."""
        a, b = self._span.apply(y), velocity[:, : self.dim]
        out = np.einsum("ni,ni->n", a, b)
        if self._own.is_lumped:
            return out
        return out + float(np.sum(a * (self._beside @ b)))

    def gravity_pull(self, y: np.ndarray, gravity: np.ndarray) -> np.ndarray:
        """By the nodes' masses, of y . B^T (mass x gravity)."""
        return self._span.apply(y) @ gravity[: self.dim]


def _factors(products: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The matrix's symmetric part as a sum of values * y z^T, rows of the two arrays."""
    values, vectors = np.linalg.eigh(0.5 * (products + products.T))
    kept = np.abs(values) > 1e-15 * max(float(np.abs(values).max(initial=0.0)), 1e-300)
    return values[kept], vectors.T[kept], vectors.T[kept]
