"""What the engine sees of a body, whatever its discretisation."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from pliant.core.errors import BadInput
from pliant.fem.bodies.embedding import Embedding, Surface
from pliant.fem.cutting.ghost import GhostPenalty
from pliant.fem.forces.cells import GRID, QUADRATIC
from pliant.geometry.shape import Shape
from pliant.linalg.pattern import Pattern

DEFAULT_ORDER = 2
"""Order of the shape functions of tetrahedra and triangles that no order is asked for."""


@dataclass(frozen=True, eq=False)
class Body:
    """Nodes, cells and the geometry of each cell; built by GridBody or TetBody.

    nodes: (nodes, dim) [m]; cells: (cells, k) node indices, k = 8 or 4 on grids (x fastest) and
    dim + 1 for simplices; quadratic ones have their edges' nodes after the dim + 1 corners.
    geometry_table[geometry_row[c]] describes cell c (see fem.forces.cells).
    node_volumes: (cells, k) integrals of the shape functions over the filled part; of quadratic
    cells, positive shares of the volume instead (see fem.bodies.quadratic_simplices).
    axes: (dim, dim) directions of a grid's lattice as columns, None where they are x, y, z;
    follows_shape: whether they are the shape's own. pieces: of a grid, "all", or "largest" where
    others were left out. warnings: what to know about how it was made, a sentence each.
    order: of a simplex's shape functions, 1 or 2.
    pair_table: of grids, integrals of N_a N_b by the rows of the geometry table (fem.forces.cells).
    """

    nodes: np.ndarray
    cells: np.ndarray
    kind: int
    geometry_row: np.ndarray
    geometry_table: np.ndarray
    node_volumes: np.ndarray
    surface: Surface
    pattern: Pattern
    locate: Callable[[np.ndarray], Embedding] = field(repr=False)
    spacing: float
    ghost: GhostPenalty | None = None
    lattice: np.ndarray | None = None
    shape: Shape | None = None
    requested_size: float | None = None
    subdivisions: int | None = None
    axes: np.ndarray | None = field(default=None, repr=False)
    follows_shape: bool = True
    pieces: str = "all"
    order: int = 1
    pair_table: np.ndarray | None = field(default=None, repr=False)
    warnings: tuple[str, ...] = ()

    @property
    def origin_of(self) -> dict | None:
        """Plain values that say how the body was made, for scene files; None for bare arrays."""
        if self.shape is None:
            return None
        size = "spacing" if self.is_grid else "edge_length"
        body: dict = {"kind": "grid" if self.is_grid else "tets"}
        if self.requested_size is not None:
            body[size] = self.requested_size
        if self.subdivisions is not None:
            body["subdivisions"] = self.subdivisions
        if not self.follows_shape:
            body["axes"] = "world"
        if self.pieces != "all":
            body["pieces"] = self.pieces
        if not self.is_grid and self.order != DEFAULT_ORDER:
            body["order"] = self.order
        return {"shape": self.shape.to_dict(), "body": body}

    @property
    def dim(self) -> int:
        """2 (plane strain, per unit of thickness) or 3."""
        return self.nodes.shape[1]

    @property
    def is_grid(self) -> bool:
        """True for partially filled grid cells, False for simplices."""
        return self.kind == GRID

    @cached_property
    def frame(self) -> np.ndarray:
        """Directions of the cells' own coordinates as columns, (3, 3); the tables of
        fem.forces.cells are in these coordinates, everything else in the world's.
        """
        frame = np.eye(3)
        if self.axes is not None:
            frame[: self.dim, : self.dim] = self.axes
        return frame

    def to_world(self, vectors: np.ndarray) -> np.ndarray:
        """Vectors (..., 3) along the cells' own coordinates, in the world's."""
        return vectors if self.axes is None else vectors @ self.frame.T

    @cached_property
    def cell_volumes(self) -> np.ndarray:
        """Filled volume of each cell, (cells,)."""
        return self.node_volumes.sum(axis=1)

    @property
    def volume(self) -> float:
        """Filled volume of the body [m^3] (2D: area)."""
        return float(self.cell_volumes.sum())

    @cached_property
    def fill(self) -> np.ndarray:
        """Filled fraction of each cell, (cells,); 1 for simplices."""
        if not self.is_grid:
            return np.ones(len(self.cells))
        return self.cell_volumes / self.spacing**self.dim

    def displacement_at(self, points: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Displacement at material points (points, dim), by the elements' own interpolation."""
        points = np.atleast_2d(np.asarray(points, float))
        if points.shape[1] != self.dim:
            raise BadInput(f"The points have {points.shape[1]} coordinates, the body {self.dim}.")
        return self.locate(points).at(np.asarray(u))

    def __repr__(self) -> str:
        kind = "grid" if self.is_grid else "simplex"
        if self.kind == QUADRATIC:
            kind = "quadratic simplex"
        return (
            f"<{self.dim}D {kind} body: {len(self.cells)} cells, {len(self.nodes)} nodes, "
            f"volume {self.volume:.6g}>"
        )
