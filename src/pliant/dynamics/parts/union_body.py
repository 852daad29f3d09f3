"""All parts as one body to look at: what is drawn, filmed, tracked and counted."""

from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from pliant.fem.bodies.affine_body import AffineLocator
from pliant.fem.bodies.body import Body
from pliant.fem.bodies.embedding import Embedding, Surface


@dataclass(frozen=True, eq=False)
class UnionBody:
    """nodes: (nodes, 3) of all parts, one after the other; starts: first node of each, and the end.

    cells: (cells, k) with rows padded by their last node, where parts have cells of several kinds.
    """

    bodies: tuple[Body, ...]
    nodes: np.ndarray
    cells: np.ndarray
    surface: Surface
    starts: tuple[int, ...]
    spacing: float
    dim: int = 3
    is_grid: bool = False
    shape: None = None
    warnings: tuple[str, ...] = ()

    @property
    def volume(self) -> float:
        """Of all parts [m^3]."""
        return sum(body.volume for body in self.bodies)

    @property
    def cell_volumes(self) -> np.ndarray:
        """(cells,) [m^3]."""
        return np.concatenate([body.cell_volumes for body in self.bodies])

    @property
    def fill(self) -> np.ndarray:
        """Filled fraction of each cell, (cells,)."""
        return np.concatenate([body.fill for body in self.bodies])

    def locate(self, points: np.ndarray) -> Embedding:
        """Material points carried by the nearest part's nodes."""
        points = np.atleast_2d(np.asarray(points, float))
        width = max(body.cells.shape[1] for body in self.bodies)
        nodes, weights = np.zeros((len(points), width), np.int32), np.zeros((len(points), width))
        best = np.full(len(points), np.inf)
        for body, first in zip(self.bodies, self.starts, strict=False):
            found = body.locate(points)
            away = np.abs(np.minimum(found.weights, 0.0)).sum(axis=1)  # how far beyond the cell
            if isinstance(body.locate, AffineLocator):
                away = body.locate.beyond(points)
            nearer = away < best
            best[nearer] = away[nearer]
            k = found.nodes.shape[1]
            nodes[nearer], weights[nearer] = 0, 0.0
            nodes[nearer, :k] = found.nodes[nearer] + first
            weights[nearer, :k] = found.weights[nearer]
        return Embedding(nodes, weights, len(self.nodes))

    def displacement_at(self, points: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Displacement at material points (points, 3)."""
        return self.locate(points).at(np.asarray(u))

    def __repr__(self) -> str:
        return f"<{len(self.bodies)} bodies: {len(self.cells)} cells, {len(self.nodes)} nodes>"


_UNIONS: "WeakKeyDictionary[Body, UnionBody]" = WeakKeyDictionary()
"""The last one of each first body: variants of a scene are of the same bodies."""


def union_of(bodies: Sequence[Body]) -> UnionBody:
    """Of placed bodies in space."""
    known = _UNIONS.get(bodies[0])
    same = known is not None and len(known.bodies) == len(bodies)
    if known is None or not (
        same and all(a is b for a, b in zip(known.bodies, bodies, strict=True))
    ):
        known = _UNIONS[bodies[0]] = _union(bodies)
    return known


def _union(bodies: Sequence[Body]) -> UnionBody:
    starts = np.cumsum([0, *(len(body.nodes) for body in bodies)])
    cells = np.concatenate(_padded([b.cells + s for b, s in zip(bodies, starts, strict=False)]))
    points = [b.surface.points for b in bodies]
    embedded = Embedding(
        np.concatenate(_padded([p.nodes + s for p, s in zip(points, starts, strict=False)])),
        np.concatenate(_padded([p.weights for p in points], zero=True)), int(starts[-1]),
    )  # fmt: skip
    first_point = np.cumsum([0, *(len(p) for p in points)])
    first_cell = np.cumsum([0, *(len(b.cells) for b in bodies)])
    surface = Surface(
        embedded,
        np.concatenate([b.surface.facets + s for b, s in zip(bodies, first_point, strict=False)]),
        np.concatenate(
            [b.surface.facet_cell + s for b, s in zip(bodies, first_cell, strict=False)]
        ),
    )
    told = tuple(sentence for b in bodies for sentence in b.warnings)
    return UnionBody(
        tuple(bodies), np.concatenate([b.nodes for b in bodies]), cells, surface,
        tuple(starts.tolist()), min(b.spacing for b in bodies), warnings=told,
    )  # fmt: skip


def _padded(rows: list[np.ndarray], *, zero: bool = False) -> list[np.ndarray]:
    """Tables of as many columns as the widest; more columns repeat the last one, or are zero."""
    width = max(r.shape[1] for r in rows)
    mode: dict = {"mode": "constant"} if zero else {"mode": "edge"}
    return [np.pad(r, ((0, 0), (0, width - r.shape[1])), **mode) for r in rows]
