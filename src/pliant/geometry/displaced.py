"""A shape seen through a displacement that is known at scattered nodes.

    phi'(X) = phi(X + u(X)),

the shape as it was before every X went to X + u(X). Between the nodes and a little beyond them, u
is a quadratic fitted to the nearest ones by moving least squares (Lancaster and Salkauskas 1981).
Near the surface phi' is a distance but for the strain of u; far from all nodes there is nothing.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from pliant.core.errors import BadInput
from pliant.geometry.shape import Shape

NEAR = {2: 14, 3: 40}
"""Nodes that a quadratic is fitted to, by dimension: it has 6 and 10 numbers."""

REACH = 1.0
"""Spacings beyond the nearest node up to which a quadratic is followed: no place of a body is
farther from the nodes of its cells."""

STIFF = 1e-3
"""Weight of the quadratic's curvature against the nodes: where these lie to one side only, hardly
anything else holds it."""

CHUNK = 20_000


@dataclass(frozen=True, eq=False)
class Displaced(Shape):
    """nodes, displacements: (n, dim) [m]; spacing [m]: of the nodes, about."""

    shape: Shape
    nodes: np.ndarray = field(repr=False)
    displacements: np.ndarray = field(repr=False)
    spacing: float

    KIND: ClassVar[str] = "displaced"

    def __post_init__(self):
        if len(self.nodes) < NEAR[self.shape.dim]:
            raise BadInput(f"A displacement needs {NEAR[self.shape.dim]} nodes or more.")

    @property
    def dim(self) -> int:
        """That of the shape."""
        return self.shape.dim

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """The shape's, with all that the displacement may do."""
        lo, hi = self.shape.bounds
        u, slack = self.displacements, 0.1 * self.spacing
        most, least = np.maximum(u.max(axis=0), 0.0), np.minimum(u.min(axis=0), 0.0)
        return lo - most - slack, hi - least + slack

    def to_dict(self) -> dict[str, Any]:
        """It has none."""
        raise BadInput(
            "A displaced shape has no description: sample it and save the field (pliant static "
            "--unloaded FILE does)."
        )

    @cached_property
    def _tree(self) -> Any:
        from scipy.spatial import KDTree

        return KDTree(self.nodes)

    def moved(self, points: np.ndarray) -> np.ndarray:
        """X + u(X) of points (n, dim)."""
        parts = [self._displacement(points[k : k + CHUNK]) for k in range(0, len(points), CHUNK)]
        return points + np.concatenate(parts) if parts else points

    def _displacement(self, points: np.ndarray) -> np.ndarray:
        gap, near = self._tree.query(points, k=NEAR[self.dim])
        first = self.nodes[near[:, 0]]
        far = np.minimum(1.0, REACH * self.spacing / np.maximum(gap[:, 0], 1e-300))
        at = first + far[:, None] * (points - first)  # farther out it stays as it is there
        arm = (self.nodes[near] - at[:, None]) / self.spacing
        basis = _quadratic(arm)
        weight = np.exp(-np.sum(arm**2, axis=2) / 1.5)
        weight /= weight.sum(axis=1, keepdims=True)
        A = np.einsum("pna,pn,pnb->pab", basis, weight, basis)
        A += np.diag([0.0] + [1e-6] * self.dim + [STIFF] * (A.shape[1] - 1 - self.dim))
        b = np.einsum("pna,pn,pni->pai", basis, weight, self.displacements[near])
        return np.linalg.solve(A, b)[:, 0]

    def _distance(self, points: np.ndarray) -> np.ndarray:
        gap = self._tree.query(points)[0]
        near = self.shape._distance(self.moved(points))
        return np.where(gap > REACH * self.spacing, gap - 0.5 * self.spacing, near)


def _quadratic(arm: np.ndarray) -> np.ndarray:
    """1, x, y, .., x^2, x y, .. of vectors (points, n, dim)."""
    dim = arm.shape[2]
    columns = [np.ones(arm.shape[:2]), *(arm[..., i] for i in range(dim))]
    columns += [arm[..., i] * arm[..., j] for i in range(dim) for j in range(i, dim)]
    return np.stack(columns, axis=2)
