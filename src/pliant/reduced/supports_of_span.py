"""What holds a reduced body: walls and clamps that give, as one constant matrix in q.

    force = - B^T W (B s - g),   s the strained field of the step, g the given place

W is that of penalties alone (fem.cutting.walls): a span whose functions vanish on held nodes has
none, one on a grid, whose walls cut cells, has what its functions leave there. A wall is stiff but
not a material: it keeps the moduli of the scene that was reduced, and no derivative goes through
it.
"""

from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from scipy import sparse

from pliant.core.errors import BadInput
from pliant.dynamics.boundary import Boundary, spread
from pliant.dynamics.scene import Scene
from pliant.dynamics.supports import build_supports
from pliant.linalg.blocks import BlockMatrix
from pliant.reduced.spans import Span

PARTLY_HELD = 100.0
"""Stiffness over mu and the spacing's power of a mesh's node that is held along some axes only."""


@dataclass(frozen=True)
class SpanSupports:
    """boundary: masks and loads; matrix: (size, size), None where nothing acts on the span."""

    boundary: Boundary
    matrix: np.ndarray | None


def held_alike(boundary: Boundary, dim: int) -> np.ndarray:
    """Nodes (nodes,) of which all components are held."""
    return (boundary.free[:, :dim] == 0.0).all(axis=1)


_kept: WeakKeyDictionary[Any, dict[str, tuple[Boundary, sparse.csr_matrix]]] = WeakKeyDictionary()


def nodal_supports(scene: Scene) -> tuple[Boundary, sparse.csr_matrix]:
    """The boundary, and W over the nodes' components, (nodes dim, nodes dim).

    Walls are kept with the body, with the moduli that they were first asked for: finding what a
    large region holds takes longer than all else.
    """
    for number, fixed in enumerate(scene.fixed):
        if fixed.moves or fixed.displacement is not None:
            raise BadInput(
                f"fixed[{number}]: a reduced body is held where it was made; use "
                f"model = 'corotated' for a held region that moves or is moved."
            )
    own = _kept.setdefault(scene.body, {})
    key = repr((walls_told(scene), scene.dilatation))
    if key not in own:
        own[key] = _found(scene)
    boundary, W = own[key]
    loads = [(load, spread(load, k, scene.body)) for k, load in enumerate(scene.loads)]
    return replace(boundary, scene=scene, loads=loads, driven={}), W


def walls_told(scene: Scene) -> list:
    """What tells a scene's held regions from others."""
    return [(repr(f.place.to_dict()), f.axes, f.stiffness) for f in scene.fixed]


def _found(scene: Scene) -> tuple[Boundary, sparse.csr_matrix]:
    body, d = scene.body, scene.body.dim
    held = build_supports(scene, "penalty")
    lam, mu = scene.constitution.moduli()
    held.set_numbers(scene, lam, mu)
    count = len(body.nodes)
    total = sparse.csr_matrix((3 * count, 3 * count))
    if held.terms:
        matrix = BlockMatrix(body.pattern, np.ones((count, 3)))
        for term in held.terms:
            term.assemble_rest(matrix)
        total = sparse.csr_matrix(matrix.to_scipy())
        total.eliminate_zeros()
    free = held.boundary.free[:, :d]
    partly = (free == 0.0) & ~held_alike(held.boundary, d)[:, None]
    if partly.any():
        stiff = np.zeros((count, 3))
        stiff[:, :d] = PARTLY_HELD * float(np.mean(mu)) * body.spacing ** (d - 2) * partly
        total = total + sparse.diags(stiff.reshape(-1))
    components = (3 * np.arange(count)[:, None] + np.arange(d)).reshape(-1)
    return held.boundary, sparse.csr_matrix(total)[components][:, components]


def span_supports(scene: Scene, span: Span) -> SpanSupports:
    """Of a scene, through a span."""
    boundary, W = nodal_supports(scene)
    d = scene.body.dim
    touched = np.unique(np.flatnonzero(np.diff(W.indptr)) // d)
    if len(touched) == 0:
        return SpanSupports(boundary, None)
    rows = (d * touched[:, None] + np.arange(d)).reshape(-1)
    B = span.columns(touched).reshape(-1, span.size)
    return SpanSupports(boundary, B.T @ (W[rows][:, rows] @ B))
