"""Where the domains of a body lie: seeds, the segments around them, and which are neighbours.

Seeds are those of a centroidal Voronoi tessellation (seed 004, section 3.5): from slices of equal
volume across the body's longest axis, Lloyd's iteration moves each seed to the centre of what is
nearest to it. A domain is a segment with its neighbours, which share faces with it.
"""

from dataclasses import dataclass

import numpy as np

from pliant.core.errors import BadInput
from pliant.fem.bodies.body import Body

LLOYD = 100
"""Iterations; seeds of a beam rest at once, those of a bunny after some thirty."""

AT_REST = 1e-6
"""Way of the seeds over the body's size below which they rest."""

FACE = {2: 2, 3: 3}
"""Nodes that two segments must share to be neighbours."""


@dataclass(frozen=True)
class Segments:
    """seeds: (n, dim) places; of: (cells,) the segment of each cell; joined: (n, n) bool, which
    are neighbours, or the same.
    """

    seeds: np.ndarray
    of: np.ndarray
    joined: np.ndarray

    def domain(self, j: int) -> np.ndarray:
        """Cells (cells,) of segment j and its neighbours: bool."""
        return self.joined[j][self.of]

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.seeds)


def cell_centres(body: Body) -> np.ndarray:
    """Centroids of what fills the cells, to the first order, (cells, dim)."""
    share = body.node_volumes / np.maximum(body.cell_volumes, 1e-300)[:, None]
    return np.einsum("ca,cai->ci", share, body.nodes[body.cells])


def segmented(body: Body, count: int) -> Segments:
    """`count` segments of a body."""
    if count > len(body.cells):
        raise BadInput(
            f"numbers.domains: {count} are more than the body has cells, {len(body.cells)}."
        )
    centres, volumes = cell_centres(body), body.cell_volumes
    seeds = _slices(centres, volumes, count)
    size = float(np.ptp(body.nodes, axis=0).max())
    of = _nearest(centres, seeds)
    for _ in range(LLOYD):
        moved = _centres_of(centres, volumes, of, seeds)
        way, seeds = float(np.abs(moved - seeds).max()), moved
        of = _nearest(centres, seeds)
        if way < AT_REST * size:
            break
    return around(body, seeds, of)


def around(body: Body, seeds: np.ndarray, of: np.ndarray | None = None) -> Segments:
    """The segments of given seeds (n, dim): each cell goes to the nearest."""
    if of is None:
        of = _nearest(cell_centres(body), seeds)
    n = len(seeds)
    member = np.zeros((len(body.nodes), n), bool)
    member[body.cells.reshape(-1), np.repeat(of, body.cells.shape[1])] = True
    shared = member.T.astype(float) @ member
    joined = (shared >= FACE[body.dim]) | np.eye(n, dtype=bool)
    return Segments(seeds, of, joined)


def _nearest(centres: np.ndarray, seeds: np.ndarray) -> np.ndarray:
    square = ((centres[:, None, :] - seeds[None]) ** 2).sum(axis=2)
    return np.argmin(square, axis=1)


def _slices(centres: np.ndarray, volumes: np.ndarray, count: int) -> np.ndarray:
    """Centres of slices of equal volume across the longest axis of inertia."""
    mean = volumes @ centres / volumes.sum()
    away = centres - mean
    axis = np.linalg.eigh((volumes[:, None] * away).T @ away)[1][:, -1]
    axis = axis * np.sign(axis[np.argmax(np.abs(axis))])
    along = away @ axis
    order = np.argsort(along, kind="stable")
    passed = np.cumsum(volumes[order]) - 0.5 * volumes[order]
    piece = np.empty(len(order), int)
    piece[order] = np.minimum((passed / volumes.sum() * count).astype(int), count - 1)
    return _centres_of(centres, volumes, piece, np.repeat(mean[None], count, axis=0))


def _centres_of(
    centres: np.ndarray, volumes: np.ndarray, of: np.ndarray, otherwise: np.ndarray
) -> np.ndarray:
    weight = np.bincount(of, volumes, len(otherwise))
    sums = np.stack([np.bincount(of, volumes * c, len(otherwise)) for c in centres.T], axis=1)
    found = sums / np.maximum(weight, 1e-300)[:, None]
    return np.where(weight[:, None] > 0.0, found, otherwise)
