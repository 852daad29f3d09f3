"""The nearest known node of a grid for every other one, exactly, axis by axis.

The squared distance splits into axes: the nearest known node of a line is found by two sweeps, then

    d^2(i, j) = min over j' of (j - j')^2 + d^2 of the line (i, j')

and again over the first axis. Each search goes outwards from its node and ends where the way along
the axis alone is farther than what was found.
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

import numpy as np
import warp as wp

from pliant.core.launch import launch, share, zeros

FAR = 1 << 30
"""Squared distance, in cells, of a line without a known node."""


@wp.kernel
def _along_lines(
    first: wp.int32,
    known: wp.array(dtype=wp.bool),
    length: wp.int32,
    square: wp.array(dtype=wp.int32),
    nearest: wp.array(dtype=wp.int32),
):
    """For the nodes of one line along the last axis: sweeps forwards, then back."""
    start = (first + wp.tid()) * length
    last = wp.int32(-1)
    for k in range(length):
        if known[start + k]:
            last = k
        square[start + k] = wp.static(FAR)
        if last >= 0:
            square[start + k] = (k - last) * (k - last)
        nearest[start + k] = start + last
    last = wp.int32(-1)
    for back in range(length):
        k = length - 1 - back
        if known[start + k]:
            last = k
        if last >= 0 and (last - k) * (last - k) < square[start + k]:
            square[start + k] = (last - k) * (last - k)
            nearest[start + k] = start + last


@wp.kernel
def _across(
    first: wp.int32,
    length: wp.int32,
    stride: wp.int32,
    square: wp.array(dtype=wp.int32),
    nearest: wp.array(dtype=wp.int32),
    out_square: wp.array(dtype=wp.int32),
    out_nearest: wp.array(dtype=wp.int32),
):
    """The best of the nodes along another axis, outwards from each."""
    item = first + wp.tid()
    place = (item // stride) % length
    best = square[item]
    node = nearest[item]
    way = wp.int32(1)
    while way < length and way * way < best:
        if place >= way:
            other = square[item - way * stride] + way * way
            if other < best:
                best = other
                node = nearest[item - way * stride]
        if place + way < length:
            other = square[item + way * stride] + way * way
            if other < best:
                best = other
                node = nearest[item + way * stride]
        way += 1
    out_square[item] = best
    out_nearest[item] = node


def nearest_nodes(known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distances in cells and flat indices of the nearest known nodes, both of the grid's shape.

    known: (2D or 3D) True at nodes to choose from, of which there is at least one.
    """
    shape, count = known.shape, known.size
    flags = share(np.ascontiguousarray(known).reshape(-1), wp.bool)
    arrays = [zeros(count, wp.int32) for _ in range(4)]
    launch(_along_lines, count // shape[-1], [flags, shape[-1], *arrays[:2]], grain=200)
    stride = shape[-1]
    for length in shape[-2::-1]:
        launch(_across, count, [length, stride, *arrays])
        arrays = arrays[2:] + arrays[:2]
        stride *= length
    way = np.sqrt(arrays[0].numpy().reshape(shape))
    return way, arrays[1].numpy().reshape(shape)
