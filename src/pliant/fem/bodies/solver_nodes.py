"""A body's nodes as the linear solvers see them."""

import numpy as np

from pliant.fem.bodies.body import Body
from pliant.fem.forces.cells import QUADRATIC, SIMPLEX_EDGES
from pliant.linalg.nodes import Nodes


def solver_nodes(body: Body) -> Nodes:
    """Positions, lattice and edges of a body, without its cells."""
    middles, corners = None, None
    if body.kind == QUADRATIC:
        first = body.dim + 1
        edges = SIMPLEX_EDGES[: body.cells.shape[1] - first]
        corners = body.cells[:, :first].ravel()
        middles = np.concatenate(
            [body.cells[:, (a, *ends)] for a, ends in enumerate(edges, first)]
        )  # fmt: skip
    return Nodes(body.nodes, body.pattern, body.lattice, middles, corners)
