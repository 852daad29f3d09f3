"""Colours of constraints: those of one colour share no node, so that they can be solved at once.

Gauss-Seidel goes through the colours one after the other. Within a colour each constraint writes
only to its own nodes: neither the order nor the number of threads changes a bit.
"""

import numpy as np


def coloured(nodes: np.ndarray, count: int) -> tuple[np.ndarray, list[tuple[int, int]]]:
    """Order (c,) of constraints by colour, and the range (first, number) of each colour in it.

    nodes: (c, k) of each constraint, of `count` nodes; the lowest colour that is free is taken.
    """
    taken = [0] * count  # a bit for every colour
    colour = np.empty(len(nodes), np.int64)
    for i, row in enumerate(nodes.tolist()):
        used = 0
        for n in row:
            used |= taken[n]
        bit = ~used & (used + 1)
        for n in row:
            taken[n] |= bit
        colour[i] = bit.bit_length() - 1
    order = np.argsort(colour, kind="stable")
    sizes = np.bincount(colour)
    ends = np.cumsum(sizes)
    return order, [(int(e - s), int(s)) for e, s in zip(ends, sizes, strict=True)]
