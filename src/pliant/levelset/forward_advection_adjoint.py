"""Derivatives of direct forward advection: tangent, and adjoint (seed 000, algorithm A.4).

With W the sum of weights at a node x and w'_i = d w_i / d(|x - p_i|^2),

    d phi(x) = (1 / W) sum_i [ w_i dphi_i + 2 (phi_i - phi(x)) w'_i (p_i - x) . dp_i ].

The adjoint gathers the same terms for each sample from the nodes around it; the seed's algorithm
writes them in the same order of operations (its line 2 misprints phi_new as phi_old).
Nodes without a sample have no derivative.
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

import numpy as np
import warp as wp

from pliant.core.launch import launch, to_device, zeros
from pliant.core.vectors import in_space
from pliant.levelset.forward_advection import (
    GRAIN,
    ForwardAdvection,
    node_place,
    run_of,
    weight,
    weight_slope,
)


@wp.kernel
def _tangent(
    first: wp.int32,
    shape: wp.vec3i,
    bins: wp.vec3i,
    rim: wp.vec3i,
    start: wp.array(dtype=wp.int32),
    place: wp.array(dtype=wp.vec3d),
    values: wp.array(dtype=wp.float64),
    radius: wp.float64,
    place_dot: wp.array(dtype=wp.vec3d),
    values_dot: wp.array(dtype=wp.float64),
    phi: wp.array(dtype=wp.float64),
    total: wp.array(dtype=wp.float64),
    out: wp.array(dtype=wp.float64),
):
    item = first + wp.tid()
    if total[item] <= wp.float64(0.0):
        return
    node = node_place(item, shape)
    x = wp.vec3d(wp.float64(node[0]), wp.float64(node[1]), wp.float64(node[2]))
    reach = wp.int32(wp.ceil(radius))
    change = wp.float64(0.0)
    for row in range(4 * reach * reach):
        run = run_of(row, node, reach, bins, rim, start)
        for s in range(run[0], run[1]):
            d = place[s] - x
            square = wp.dot(d, d)
            change += weight(square, radius) * values_dot[s]
            slope = wp.float64(2.0) * weight_slope(square, radius) * wp.dot(d, place_dot[s])
            change += (values[s] - phi[item]) * slope
    out[item] = change / total[item]


@wp.kernel
def _adjoint(
    first: wp.int32,
    shape: wp.vec3i,
    place: wp.array(dtype=wp.vec3d),
    values: wp.array(dtype=wp.float64),
    radius: wp.float64,
    phi: wp.array(dtype=wp.float64),
    total: wp.array(dtype=wp.float64),
    dual: wp.array(dtype=wp.float64),
    place_bar: wp.array(dtype=wp.vec3d),
    values_bar: wp.array(dtype=wp.float64),
):
    s = first + wp.tid()
    p = place[s]
    bar = wp.vec3d()
    value_bar = wp.float64(0.0)
    i0 = wp.max(wp.int32(wp.ceil(p[0] - radius)), 0)
    j0 = wp.max(wp.int32(wp.ceil(p[1] - radius)), 0)
    k0 = wp.max(wp.int32(wp.ceil(p[2] - radius)), 0)
    i1 = wp.min(wp.int32(wp.floor(p[0] + radius)), shape[0] - 1)
    j1 = wp.min(wp.int32(wp.floor(p[1] + radius)), shape[1] - 1)
    k1 = wp.min(wp.int32(wp.floor(p[2] + radius)), shape[2] - 1)
    for i in range(i0, i1 + 1):
        for j in range(j0, j1 + 1):
            for k in range(k0, k1 + 1):
                item = (i * shape[1] + j) * shape[2] + k
                d = p - wp.vec3d(wp.float64(i), wp.float64(j), wp.float64(k))
                square = wp.dot(d, d)
                w = weight(square, radius)
                if w > wp.float64(0.0) and total[item] > wp.float64(0.0):
                    share = dual[item] / total[item]
                    value_bar += w * share
                    slope = wp.float64(2.0) * weight_slope(square, radius)
                    bar += (values[s] - phi[item]) * share * slope * d
    place_bar[s] = bar
    values_bar[s] = value_bar


def tangent(
    advected: ForwardAdvection, places_dot: np.ndarray, values_dot: np.ndarray | None = None
) -> np.ndarray:
    """Change of the grid's values for motions of the samples (n, dim) [cells] and their values."""
    bins = advected.bins
    out = zeros(bins.node_count, wp.float64)
    moved = in_space(places_dot[bins.order])
    if values_dot is None:
        values_dot = np.zeros(len(advected.samples))
    inputs = [
        bins.nodes, bins.bins, bins.rim, bins.start, bins.places,
        to_device(advected.samples[bins.order], wp.float64), advected.radius,
        to_device(moved, wp.vec3d), to_device(np.asarray(values_dot)[bins.order], wp.float64),
        to_device(advected.values.reshape(-1), wp.float64),
        to_device(advected.weights.reshape(-1), wp.float64), out,
    ]  # fmt: skip
    launch(_tangent, bins.node_count, inputs, grain=GRAIN)
    return out.numpy().reshape(advected.values.shape)


def adjoint(advected: ForwardAdvection, dual: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The transpose of `tangent`: (n, dim) by the samples' places [cells], (n,) by their values."""
    bins = advected.bins
    count, dim = len(bins.order), dual.ndim
    place_bar, values_bar = zeros(count, wp.vec3d), zeros(count, wp.float64)
    inputs = [
        bins.nodes, bins.places, to_device(advected.samples[bins.order], wp.float64),
        advected.radius, to_device(advected.values.reshape(-1), wp.float64),
        to_device(advected.weights.reshape(-1), wp.float64),
        to_device(np.asarray(dual, float).reshape(-1), wp.float64), place_bar, values_bar,
    ]  # fmt: skip
    launch(_adjoint, count, inputs, grain=GRAIN)
    places = np.zeros((len(advected.samples), dim))
    values = np.zeros(len(advected.samples))
    places[bins.order] = place_bar.numpy()[:, :dim]
    values[bins.order] = values_bar.numpy()
    return places, values
