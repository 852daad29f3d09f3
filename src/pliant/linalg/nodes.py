"""What multigrid sees of a body: where its nodes are, who touches whom, which lie on edges."""

from dataclasses import dataclass

import numpy as np

from pliant.linalg.pattern import Pattern


@dataclass(frozen=True, eq=False)
class Nodes:
    """Nodes on a lattice, or anywhere in space.

    positions: (nodes, dim) [m]; lattice: (nodes, dim) whole numbers, None for nodes of a mesh.
    middles: (n, 3) of meshes with nodes on their edges: such a node and the two ends of its edge;
    corners: (m,) the nodes at the corners of cells. Repetitions do no harm.
    """

    positions: np.ndarray
    pattern: Pattern
    lattice: np.ndarray | None = None
    middles: np.ndarray | None = None
    corners: np.ndarray | None = None

    @property
    def count(self) -> int:
        """Number of nodes."""
        return len(self.positions)

    @property
    def dim(self) -> int:
        """2 or 3."""
        return self.positions.shape[1]
