"""How residuals of surface points change with the nodes that carry the surface."""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

from collections.abc import Sequence
from typing import Any

import numpy as np
import warp as wp

from pliant.core.launch import launch, to_device, zeros
from pliant.fem.bodies.embedding import Embedding
from pliant.inverse.measuring.costs import Residuals

AT_ONCE = 4
"""Motions that a thread takes together: what it reads for one serves them all."""

Four: Any = wp.types.matrix((3, AT_ONCE), wp.float64)


@wp.kernel
def _along(
    first: wp.int32,
    corners: wp.array2d(dtype=wp.int32),
    slope: wp.array2d(dtype=wp.vec3d),
    nodes: wp.array2d(dtype=wp.int32),
    weights: wp.array2d(dtype=wp.float64),
    motion: wp.array(dtype=Four),
    change: wp.array(dtype=wp.vec4d),
):
    m = first + wp.tid()
    total = wp.vec4d()
    for c in range(3):
        point = corners[m, c]
        moved = Four()
        for j in range(nodes.shape[1]):
            moved += weights[point, j] * motion[nodes[point, j]]
        total += slope[m, c] * moved
    change[m] = total


class SurfaceSlopes:
    """A surface's points on the device. A frame sees few of them: only those are moved."""

    def __init__(self, points: Embedding):
        self._nodes = to_device(points.nodes, wp.int32)
        self._weights = to_device(points.weights, wp.float64)

    def along(self, residuals: Residuals, motions: Sequence[np.ndarray]) -> np.ndarray:
        """Changes of r, (m, p), for p motions of the nodes, (nodes, 3) each."""
        corners = to_device(residuals.corners, wp.int32)
        slope = to_device(residuals.slope, wp.vec3d)
        m, p = len(residuals.r), len(motions)
        out = np.empty((m, p))
        for low in range(0, p, AT_ONCE):
            part = motions[low : low + AT_ONCE]
            four = np.zeros((len(part[0]), 3, AT_ONCE))
            np.stack(part, axis=2, out=four[:, :, : len(part)])
            change = zeros(m, wp.vec4d)
            launch(
                _along, m,
                [corners, slope, self._nodes, self._weights, to_device(four, Four), change],
                grain=1000,
            )  # fmt: skip
            out[:, low : low + AT_ONCE] = change.numpy()[:, : len(part)]
        return out
