"""Displacements on a regular lattice as NRRD, which 3D Slicer and ITK read as a vector field.

At a point X of the lattice the field holds u(X): what was at X at rest is at X + u(X). Beyond the
body it goes on with the displacement of the nearest node. Axes are x, y, z as the scene has them;
the header calls them right, anterior, superior.
"""

from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial import KDTree

from pliant.core.errors import BadInput, MissingExtra
from pliant.core.files import whole_file
from pliant.fem.bodies.body import Body
from pliant.fem.bodies.embedding import Embedding

BORDER = 1
"""Lattice points around the body's box."""

MOST_POINTS = 30_000_000
"""Of a lattice; 720 MB of numbers."""

SPACE = "right-anterior-superior"


class DisplacementLattice:
    """The lattice of a body: as fine as its cells, around its box.

    scale: of lengths in the file, 1000 for millimetres.
    """

    def __init__(self, body: Body, *, scale: float = 1.0):
        if body.dim != 3:
            raise BadInput("A field of displacements needs a 3D body: use --format vtu.")
        h = body.spacing
        surface = body.surface.positions(body.nodes)
        low, high = surface.min(axis=0) - BORDER * h, surface.max(axis=0) + BORDER * h
        count = np.ceil((high - low) / h).astype(int) + 1
        if float(np.prod(count.astype(float))) > MOST_POINTS:
            raise BadInput(
                f"The field would have {' x '.join(str(c) for c in count)} points: use a larger "
                "spacing."
            )
        axes = [a + h * np.arange(n) for a, n in zip(low, count, strict=True)]
        points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
        self._at = _carried(body, points)
        self._count, self._scale = tuple(int(n) for n in count), scale
        self._header: dict[str, Any] = {
            "space": SPACE,
            "kinds": ["vector", "domain", "domain", "domain"],
            "space directions": np.vstack([np.full(3, np.nan), scale * h * np.eye(3)]),
            "space origin": scale * low,
            "encoding": "gzip",
        }

    def values(self, u: np.ndarray) -> np.ndarray:
        """Displacements (3, nx, ny, nz) on the lattice, of the nodes' (nodes, 3)."""
        field = self._scale * self._at.at(u)
        return np.moveaxis(field.reshape(*self._count, 3), 3, 0)

    def write(self, path: str | Path, u: np.ndarray) -> None:
        """One field as a file, in single precision."""
        try:
            import nrrd
        except ImportError as error:
            raise MissingExtra("pynrrd", "medical", "Writing .nrrd files") from error
        with whole_file(path) as temporary:
            data = self.values(u).astype(np.float32)
            nrrd.write(str(temporary), data, self._header, index_order="F")


def _carried(body: Body, points: np.ndarray) -> Embedding:
    """Points in cells by the cells' own interpolation, others by the nearest node."""
    found = body.locate(points)
    outside = (found.weights < -1e-9).any(axis=1)  # weights of a cell's own points are positive
    if not body.is_grid:  # and those of quadratic simplices need not be
        outside = ~body.shape.contains(points) if body.shape is not None else outside
    nodes, weights = found.nodes.copy(), found.weights.copy()
    if outside.any():
        nearest = np.asarray(KDTree(body.nodes).query(points[outside])[1])
        nodes[outside] = nearest[:, None]
        weights[outside] = 0.0
        weights[outside, 0] = 1.0
    return Embedding(nodes, weights, found.node_count)
