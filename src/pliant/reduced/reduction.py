"""What a scene was reduced to: a span of displacements, and the points its forces are taken at.

Both are made once, for one body with its walls, and stay as they are while the numbers of the scene
move: derivatives and fits see a model with a fixed basis.
"""

from dataclasses import dataclass, field

import numpy as np

from pliant.dynamics.scene import Scene
from pliant.fem.bodies.body import Body
from pliant.fem.cutting.cell_quadrature import cell_quadrature
from pliant.reduced.point_forces import Points
from pliant.reduced.spans import Piece, ScalarSpan, Span

STIFF_BULK = 4.0
"""Ratio lambda / mu (4: Poisson's ratio 0.4) from which a cell counts with its mean gradient alone:
more points would forbid what the cells' mean dilatation allows."""

MANY = 60_000
"""Points of a body, beyond which each cell has one. A beam of n cells across is then too soft in
bending by 1 / n^2."""

NOTHING = 1e-13
"""Share of a function's largest gradient below which it has none: rounding of its weights."""


@dataclass(frozen=True)
class Domains:
    """seeds: (domains, dim); segments: (cells,) whose each cell is; weights: (nodes, domains)."""

    seeds: np.ndarray
    segments: np.ndarray
    weights: np.ndarray
    direction: np.ndarray | None = None


@dataclass(frozen=True)
class Reduction:
    """span: from q to the displacements of the nodes. points: where the law is evaluated.

    report: what making it took and how good it is, for records of a run.
    """

    span: Span
    points: Points
    report: dict[str, float] = field(default_factory=dict)
    domains: Domains | None = None


def gradient_span(
    body: Body,
    span: Span,
    cells: np.ndarray,
    gradients: np.ndarray,
    groups: np.ndarray | None = None,
) -> Span:
    """From q to du/dX at points of `cells` (p,) with shape gradients (p, k, 3): rows (p, dim).

    groups: ascending numbers of the points; functions that vanish throughout a group are left out
    there.
    """
    d, nodes = body.dim, body.cells[cells]
    p, k = nodes.shape
    if isinstance(span, ScalarSpan):
        rows = np.matmul(gradients[:, :, :d].transpose(0, 2, 1), span.dense()[nodes])
        rows = rows.reshape(p * d, -1)
        return ScalarSpan.of(rows, d) if groups is None else _in_pieces(rows, groups, d)
    from scipy import sparse

    columns = np.broadcast_to(nodes[:, None, :], (p, d, k)).reshape(-1)
    values = gradients[:, :, :d].transpose(0, 2, 1).reshape(-1)
    start = np.arange(0, p * d * k + 1, k)
    return span.carried(sparse.csr_matrix((values, columns, start), (p * d, len(body.nodes))))


def _in_pieces(rows: np.ndarray, groups: np.ndarray, dim: int) -> ScalarSpan:
    cuts = [0, *(np.flatnonzero(np.diff(groups)) + 1), len(groups)]
    size, pieces = np.abs(rows).max(axis=0), []
    for first, last in zip(cuts[:-1], cuts[1:], strict=True):
        own = rows[first * dim : last * dim]
        columns = np.flatnonzero(np.abs(own).max(axis=0) > NOTHING * size)
        part = np.ascontiguousarray(own[:, columns])
        pieces.append(Piece(first * dim, last * dim, columns, part))
    return ScalarSpan(pieces, rows.shape[1], dim)


@dataclass(frozen=True)
class Rule:
    """Quadrature points of a body: weights (points,), cells (points,), gradients (points, k, 3)."""

    weights: np.ndarray
    cells: np.ndarray
    gradients: np.ndarray


def quadrature(scene: Scene, *, means: bool | None = None) -> Rule:
    """All points of the cells' quadrature; means: one in each, with the cell's mean gradient.

    By itself, means where the material is nearly incompressible and its dilatation averaged, and
    where there are more than MANY points: cells that many are thin.
    """
    body = scene.body
    rule = cell_quadrature(body, dilatation=scene.dilatation)
    row = body.geometry_row
    weights, gradients = rule.weight[row], rule.gradient[row]
    if means is None:
        lam, mu = scene.constitution.moduli()
        means = scene.dilatation == "mean" and float(np.max(lam / mu)) > STIFF_BULK
        means = means or weights.size > MANY
    cells = np.arange(len(body.cells))
    if means:
        total = weights.sum(axis=1)
        share = weights / np.maximum(total, 1e-300)[:, None]
        return Rule(total, cells, np.einsum("cq,cqai->cai", share, gradients))
    count = weights.shape[1]
    return Rule(
        weights.reshape(-1), np.repeat(cells, count), gradients.reshape(-1, *gradients.shape[2:])
    )


def all_points(scene: Scene, span: Span, segments: np.ndarray | None = None) -> Points:
    """The points of all cells: the forces are then those of the cells, projected.

    segments: (cells,) piece of the body that each cell belongs to.
    """
    rule = quadrature(scene)
    kept = np.flatnonzero(rule.weights > 0.0)
    groups = None
    if segments is not None:
        kept = kept[np.argsort(segments[rule.cells[kept]], kind="stable")]
        groups = segments[rule.cells[kept]]
    cells = rule.cells[kept]
    gradients = gradient_span(scene.body, span, cells, rule.gradients[kept], groups)
    return Points(rule.weights[kept], cells, gradients)
