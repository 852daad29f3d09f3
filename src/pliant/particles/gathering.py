"""Sums at the nodes of what simplices have at their corners, each node in a fixed order."""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

import numpy as np
import warp as wp
from scipy import sparse

from pliant.core.launch import launch, to_device, zeros
from pliant.particles.simplices import Simplices


@wp.kernel
def _gather(
    first: wp.int32,
    start: wp.array(dtype=wp.int32),
    corner: wp.array(dtype=wp.int32),
    value: wp.array(dtype=wp.vec3d),
    out: wp.array(dtype=wp.vec3d),
):
    i = first + wp.tid()
    total = wp.vec3d()
    for e in range(start[i], start[i + 1]):
        total += value[corner[e]]
    out[i] = total


class Gathering:
    """Lists of the corners that lie at each of `count` nodes."""

    def __init__(self, parts: Simplices, count: int):
        flat = parts.nodes[:, : parts.corners]
        where = np.arange(len(flat))[:, None] * 4 + np.arange(parts.corners)
        table = sparse.csr_array(
            (np.ones(flat.size), (flat.reshape(-1), where.reshape(-1))),
            shape=(count, 4 * len(flat)),
        )
        table.sort_indices()
        self._start = to_device(table.indptr, wp.int32)
        self._where = to_device(table.indices, wp.int32)
        self._out = zeros(count, wp.vec3d)

    def sums(self, corners: wp.array) -> np.ndarray:
        """(count, 3) of values (s, 4)."""
        flat = corners.reshape((corners.shape[0] * 4,))
        launch(_gather, len(self._out), [self._start, self._where, flat, self._out])
        return self._out.numpy().copy()
