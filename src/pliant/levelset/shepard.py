"""The inverse of a displacement field by Shepard's weights (seed 000, eqs. 2.5.23 and 2.5.24).

    -v(x) = sum_i w_i u_i / sum_i w_i,    w_i = ((R - d_i) / (R d_i))^2 for d_i = |x - p_i| < R

over the displaced samples p_i. The seed searches rest cells within the largest displacement; here
the samples are sorted by where they went, so R is the distance over which they are blended.
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

import numpy as np
import warp as wp

from pliant.core.launch import launch, to_device, zeros
from pliant.core.vectors import in_space
from pliant.levelset.forward_advection import GRAIN, node_place, run_of
from pliant.levelset.sample_bins import SampleBins

RADIUS = 2.0
"""R in cells: the nearest samples decide, and a stretch of two leaves no gaps."""

CLOSEST = 1e-6
"""Distances in cells below this count as it, where the weight would be infinite."""


@wp.kernel
def _blend(
    first: wp.int32,
    shape: wp.vec3i,
    bins: wp.vec3i,
    rim: wp.vec3i,
    start: wp.array(dtype=wp.int32),
    place: wp.array(dtype=wp.vec3d),
    u: wp.array(dtype=wp.vec3d),
    radius: wp.float64,
    out: wp.array(dtype=wp.vec3d),
    total: wp.array(dtype=wp.float64),
):
    item = first + wp.tid()
    node = node_place(item, shape)
    x = wp.vec3d(wp.float64(node[0]), wp.float64(node[1]), wp.float64(node[2]))
    reach = wp.int32(wp.ceil(radius))
    sum_w = wp.float64(0.0)
    sum_u = wp.vec3d()
    for row in range(4 * reach * reach):
        run = run_of(row, node, reach, bins, rim, start)
        for s in range(run[0], run[1]):
            d = wp.max(wp.length(place[s] - x), wp.float64(CLOSEST))
            if d < radius:
                w = (radius - d) / (radius * d)
                sum_w += w * w
                sum_u += w * w * u[s]
    total[item] = sum_w
    if sum_w > wp.float64(0.0):
        out[item] = -sum_u / sum_w


def inverse_displacements(
    places: np.ndarray, u: np.ndarray, shape: tuple[int, ...], *, radius: float = RADIUS
) -> tuple[np.ndarray, np.ndarray]:
    """v (nodes, dim) at the grid's nodes, and where no sample came near (nodes,) True.

    places: (n, dim) where the samples went, u: (n, dim) their displacements, all in cells.
    """
    bins = SampleBins.sorted(places, shape)
    three = in_space(np.asarray(u, float)[bins.order])
    out, total = zeros(bins.node_count, wp.vec3d), zeros(bins.node_count, wp.float64)
    inputs = [
        bins.nodes, bins.bins, bins.rim, bins.start, bins.places, to_device(three, wp.vec3d),
        radius, out, total,
    ]  # fmt: skip
    launch(_blend, bins.node_count, inputs, grain=GRAIN)
    return out.numpy()[:, : len(shape)].copy(), total.numpy() <= 0.0
