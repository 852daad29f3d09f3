"""Direct forward advection of a level set (seed 000, algorithm A.2), gathered by target nodes.

Samples with value phi_i sit at displaced places p_i. A node x of the target grid takes

    phi(x) = (sum_i w_i phi_i + w_0 phi_0) / (sum_i w_i + w_0),    w_i = w(|x - p_i|^2),

with the Gaussian of the seed, of which 98 % lie within the kernel radius tau in the plane
(sigma = tau / 2.8), less its tangent at the edge: with q = d^2 / (2 sigma^2) and q_0 its value at
tau, w = exp(-q) - exp(-q_0) (1 + q_0 - q) for q < q_0. The bare truncation would jump there by 2 %,
and the field with it whenever a sample passes; so it is continuously differentiable.
w_0 phi_0 is an optional background that keeps nodes at the rim of the samples smooth.

The seed scatters; here samples are sorted by cell and nodes gather, so nothing is written twice.
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

from dataclasses import dataclass

import numpy as np
import warp as wp

from pliant.core.launch import launch, to_device, zeros
from pliant.levelset.sample_bins import SampleBins

KERNEL = 1.5
"""Radius tau of the kernel in cells (seed 000): smaller ones leave holes where the body is
stretched, larger ones blur the surface, moving it by about 0.06 tau^2 times its curvature."""

TRUNCATION = 2.8
"""tau / sigma: 98 % of a plane Gaussian lie within."""

GRAIN = 2000
"""Nodes per thread from which a launch is split (about 3 microseconds each)."""


@wp.func
def weight(square: wp.float64, radius: wp.float64) -> wp.float64:
    """w as above at a squared distance, in cells."""
    sharpness = wp.float64(0.5 * TRUNCATION * TRUNCATION) / (radius * radius)
    edge = wp.float64(0.5 * TRUNCATION * TRUNCATION)
    q = square * sharpness
    if q >= edge:
        return wp.float64(0.0)
    return wp.exp(-q) - wp.exp(-edge) * (wp.float64(1.0) + edge - q)


@wp.func
def weight_slope(square: wp.float64, radius: wp.float64) -> wp.float64:
    """Derivative of `weight` by the squared distance."""
    sharpness = wp.float64(0.5 * TRUNCATION * TRUNCATION) / (radius * radius)
    edge = wp.float64(0.5 * TRUNCATION * TRUNCATION)
    q = square * sharpness
    if q >= edge:
        return wp.float64(0.0)
    return sharpness * (wp.exp(-edge) - wp.exp(-q))


@wp.func
def node_place(item: wp.int32, shape: wp.vec3i) -> wp.vec3i:
    """Indices (i, j, k) of a node of the target grid, last fastest."""
    k = item % shape[2]
    j = (item // shape[2]) % shape[1]
    return wp.vec3i(item // (shape[2] * shape[1]), j, k)


@wp.func
def run_of(
    row: wp.int32,
    node: wp.vec3i,
    reach: wp.int32,
    bins: wp.vec3i,
    rim: wp.vec3i,
    start: wp.array(dtype=wp.int32),
) -> wp.vec2i:
    """Samples [a, b) of one row of bins along the last axis that may be within `reach` of a node.

    `row` counts the (2 reach)^2 rows over the first two axes.
    """
    i = node[0] + rim[0] - reach + row // (2 * reach)
    j = node[1] + rim[1] - reach + row % (2 * reach)
    if i < 0 or j < 0 or i >= bins[0] or j >= bins[1]:
        return wp.vec2i(0, 0)
    low = wp.max(node[2] + rim[2] - reach, 0)
    high = wp.min(node[2] + rim[2] + reach - 1, bins[2] - 1)
    base = (i * bins[1] + j) * bins[2]
    return wp.vec2i(start[base + low], start[base + high + 1])


@wp.kernel
def _gather(
    first: wp.int32,
    shape: wp.vec3i,
    bins: wp.vec3i,
    rim: wp.vec3i,
    start: wp.array(dtype=wp.int32),
    place: wp.array(dtype=wp.vec3d),
    values: wp.array(dtype=wp.float64),
    radius: wp.float64,
    background_weight: wp.float64,
    background: wp.float64,
    also: wp.array(dtype=wp.float64),
    out: wp.array(dtype=wp.float64),
    total: wp.array(dtype=wp.float64),
    out_also: wp.array(dtype=wp.float64),
):
    item = first + wp.tid()
    node = node_place(item, shape)
    x = wp.vec3d(wp.float64(node[0]), wp.float64(node[1]), wp.float64(node[2]))
    reach = wp.int32(wp.ceil(radius))
    sum_w = background_weight
    sum_v = background_weight * background
    sum_a = wp.float64(0.0)
    more = also.shape[0] > 0
    for row in range(4 * reach * reach):
        run = run_of(row, node, reach, bins, rim, start)
        for s in range(run[0], run[1]):
            d = place[s] - x
            w = weight(wp.dot(d, d), radius)
            sum_w += w
            sum_v += w * values[s]
            if more:
                sum_a += w * also[s]
    total[item] = sum_w
    if sum_w > wp.float64(0.0):
        out[item] = sum_v / sum_w
        if more:
            out_also[item] = sum_a / sum_w


@dataclass(frozen=True)
class ForwardAdvection:
    """The advected field and what its derivatives need.

    values: grid of phi, zero where `weights` is zero (no sample came near); weights: grid of the
    sums of w. bins: the sorted samples; samples: (n,) their values in the caller's order.
    also: grid of a second quantity, blended by the same weights, if one was given.
    """

    values: np.ndarray
    weights: np.ndarray
    bins: SampleBins
    samples: np.ndarray
    radius: float
    also: np.ndarray | None = None

    @property
    def holes(self) -> np.ndarray:
        """Nodes without a sample."""
        return self.weights <= 0.0


def forward_advect(
    places: np.ndarray,
    values: np.ndarray,
    shape: tuple[int, ...],
    *,
    radius: float = KERNEL,
    background: tuple[float, float] = (0.0, 0.0),
    also: np.ndarray | None = None,
) -> ForwardAdvection:
    """Samples `values` (n,) at `places` (n, dim), in cells from the grid's first node, on a grid.

    background: (weight w_0, value phi_0). also: (n,) another quantity to carry along.
    """
    bins = SampleBins.sorted(places, shape)
    count = int(np.prod(shape))
    out, total = zeros(count, wp.float64), zeros(count, wp.float64)
    second = np.zeros(0) if also is None else np.asarray(also, float)[bins.order]
    out_also = zeros(0 if also is None else count, wp.float64)
    inputs = [
        bins.nodes, bins.bins, bins.rim, bins.start, bins.places,
        to_device(np.asarray(values, float)[bins.order], wp.float64),
        radius, background[0], background[1], to_device(second, wp.float64),
        out, total, out_also,
    ]  # fmt: skip
    launch(_gather, count, inputs, grain=GRAIN)
    return ForwardAdvection(
        out.numpy().reshape(shape), total.numpy().reshape(shape), bins,
        np.asarray(values, float), radius,
        None if also is None else out_also.numpy().reshape(shape),
    )  # fmt: skip
