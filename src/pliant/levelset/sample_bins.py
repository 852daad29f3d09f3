"""Scattered samples sorted into the cells of a grid, so that nodes find those near them."""

from dataclasses import dataclass

import numpy as np
import warp as wp

from pliant.core.launch import to_device
from pliant.core.vectors import in_space

RIM = 3
"""Cells beyond the grid whose samples are kept: the largest kernel of the advections."""


@dataclass(frozen=True)
class SampleBins:
    """Samples in the order of their cells, last axis fastest; 2D grids have one layer.

    order: (kept,) rows of the caller's arrays; samples beyond the rim are dropped. On the device:
    places (kept,) vec3d in cells, start (bins + 1,) the first sample of each bin. Bin b holds the
    places with floor(p) = b - rim.
    """

    order: np.ndarray
    places: wp.array
    start: wp.array
    nodes: wp.vec3i
    bins: wp.vec3i
    rim: wp.vec3i
    node_count: int

    @classmethod
    def sorted(cls, places: np.ndarray, shape: tuple[int, ...]) -> "SampleBins":
        """Sort samples at `places` (n, dim), in cells from node 0 of a grid of `shape` nodes."""
        places = np.asarray(places, float)
        dim = len(shape)
        nodes, rim = np.ones(3, np.int64), np.zeros(3, np.int64)
        nodes[:dim], rim[:dim] = shape, RIM
        bins = nodes + 2 * rim
        three = in_space(places)
        # clipped before they become integers: a far sample must not wrap around
        cell = np.floor(np.clip(three, -rim - 1.0, nodes + rim + 1.0)).astype(np.int64) + rim
        kept: np.ndarray = np.flatnonzero(((cell >= 0) & (cell < bins)).all(axis=1))
        flat = np.asarray(np.ravel_multi_index(tuple(cell[kept].T), tuple(bins)))
        order: np.ndarray = kept[_stable_order(flat)]
        held = np.bincount(flat, minlength=int(np.prod(bins)))
        start = np.concatenate([[0], np.cumsum(held)])
        return cls(
            order,
            to_device(three[order], wp.vec3d),
            to_device(start.astype(np.int32), wp.int32),
            *(wp.vec3i(*map(int, v)) for v in (nodes, bins, rim)),
            node_count=int(np.prod(nodes)),
        )


def _stable_order(numbers: np.ndarray) -> np.ndarray:
    """As np.argsort(kind="stable") of numbers below 2^32, by halves: 16 bits take linear time."""
    order = np.argsort((numbers & 0xFFFF).astype(np.uint16), kind="stable")
    high = (numbers >> 16).astype(np.uint16)
    return order[np.argsort(high[order], kind="stable")]
