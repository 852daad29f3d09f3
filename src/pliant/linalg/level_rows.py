"""Rows of 3x3 blocks in single precision, cut into the runs of nodes that the smoother sweeps.

With them the diagonals that the sweeps divide by, E included (see linalg.smoother).
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

from typing import Any

import numpy as np
import warp as wp

from pliant.core.launch import device, to_device, zeros
from pliant.linalg.block_rows import BlockRows
from pliant.linalg.blocks import inverse_of_free_part

MOST_RUNS = 32
"""Runs of a level on the CPU, half of them at a time: enough for cores of unlike speed to share
evenly."""

RUN_LENGTH_CUDA = 16
"""Nodes per run on CUDA, where thousands of short runs are needed to fill the device."""

SMALLEST_RUN = 128
"""Levels are not cut into runs shorter than this on the CPU."""

SHARES = 4
"""Items that share a run on the CPU where the order of its nodes is free."""

MARGIN = wp.constant(wp.float64(0.9))
"""Share of the diagonal's own dominance that may be used up by blocks between runs; below 1."""


def choose_runs(
    nodes: int, reach: int, device: str, *, smallest: int = SMALLEST_RUN
) -> tuple[int, bool]:
    """Into how many runs nodes are cut, and whether every second one can wait for the others.

    reach: the largest difference of two coupled nodes' numbers. Runs at least that long touch their
    neighbours only, so all even ones can be swept at the same time, and then all odd ones: still
    Gauss-Seidel, in another order. A level with fewer than four such runs, and CUDA, which needs
    thousands, take one sweep over all runs at the same time.
    """
    if device != "cpu":
        return max(1, nodes // RUN_LENGTH_CUDA), False
    runs = min(nodes // max(reach, smallest), MOST_RUNS)
    if runs >= 4:
        return runs // 4 * 4, True
    return (2 if nodes >= 2 * smallest else 1), False


@wp.func
def row_sums(A: wp.mat33d) -> wp.vec3d:
    """Sum of absolute values of each row."""
    return wp.vec3d(
        wp.abs(A[0, 0]) + wp.abs(A[0, 1]) + wp.abs(A[0, 2]),
        wp.abs(A[1, 0]) + wp.abs(A[1, 1]) + wp.abs(A[1, 2]),
        wp.abs(A[2, 0]) + wp.abs(A[2, 1]) + wp.abs(A[2, 2]),
    )


@wp.struct
class Part:
    """Some of the blocks of each row: row i has those from start[i] to start[i + 1]."""

    start: wp.array(dtype=wp.int32)
    columns: wp.array(dtype=wp.int32)
    values: wp.array(dtype=wp.mat33f)


@wp.struct
class Rows:
    """A matrix of 3x3 blocks in single precision, cut in four so that each sweep streams its part.

    lower, upper: blocks left and right of the diagonal inside the row's run; outer: those in other
    runs; middle: the diagonal. Interleaved as usual, a sweep that needs half of each row is three
    times slower: the hardware fetches the other half too.
    """

    count: wp.int32
    runs: wp.int32
    alternate: wp.int32
    shares: wp.int32
    lower: Part
    upper: Part
    outer: Part
    middle: wp.array(dtype=wp.mat33f)
    extra: wp.array(dtype=wp.vec3f)
    inverse: wp.array(dtype=wp.mat33f)


def make_rows(row_start: np.ndarray, columns: np.ndarray) -> Any:
    """Rows of zeros with the given sparsity."""
    n = len(row_start) - 1
    own = np.repeat(np.arange(n, dtype=np.int32), np.diff(row_start))
    rows: Any = Rows()
    reach = int(np.abs(columns - own).max(initial=0))  # a zero block may lack its mirror image
    runs, alternate = choose_runs(n, reach, device())
    rows.count, rows.runs, rows.alternate = n, runs, int(alternate)
    rows.shares = SHARES if device() == "cpu" else 1
    begin = np.arange(runs + 1, dtype=np.int64) * n // runs
    run = np.repeat(np.arange(runs, dtype=np.int32), np.diff(begin))
    inside = run[own] == run[columns]
    for name, chosen in (
        ("lower", inside & (columns < own)), ("upper", inside & (columns > own)), ("outer", ~inside)
    ):  # fmt: skip
        setattr(rows, name, _make_part(own, columns, chosen, n))
    rows.middle, rows.inverse = zeros(n, wp.mat33f), zeros(n, wp.mat33f)
    rows.extra = zeros(n, wp.vec3f)
    return rows


def _make_part(own: np.ndarray, columns: np.ndarray, chosen: np.ndarray, n: int) -> Any:
    part: Any = Part()
    start = np.zeros(n + 1, np.int32)
    np.cumsum(np.bincount(own[chosen], minlength=n), out=start[1:])
    part.start = to_device(start, wp.int32)
    part.columns = to_device(columns[chosen], wp.int32)
    part.values = zeros(int(start[-1]), wp.mat33f)
    return part


@wp.func
def run_begin(rows: Rows, run: int) -> int:
    """First node of a run."""
    return wp.int32(wp.int64(run) * wp.int64(rows.count) / wp.int64(rows.runs))


@wp.kernel
def round_matrix(
    first: wp.int32,
    A: BlockRows,
    free: wp.array(dtype=wp.vec3d),
    rows: Rows,
):
    """rows = P A P in single precision; P keeps the free components."""
    i = first + wp.tid()
    lower = rows.lower.start[i]
    upper = rows.upper.start[i]
    outer = rows.outer.start[i]
    for e in range(A.row_start[i], A.row_start[i + 1]):
        j = A.columns[e]
        block = wp.mat33f(wp.cw_mul(wp.outer(free[i], free[j]), A.values[e]))
        if j == i:
            rows.middle[i] = block
        elif outer < rows.outer.start[i + 1] and j == rows.outer.columns[outer]:
            rows.outer.values[outer] = block
            outer += 1
        elif j < i:
            rows.lower.values[lower] = block
            lower += 1
        else:
            rows.upper.values[upper] = block
            upper += 1


@wp.kernel
def prepare_diagonal(first: wp.int32, free: wp.array(dtype=wp.vec3d), rows: Rows):
    """extra = E and inverse = (D + E)^-1 on the free components."""
    i = first + wp.tid()
    D = wp.mat33d(rows.middle[i])
    E = wp.vec3d()
    if rows.alternate == 0:
        leaving = wp.vec3d()
        for e in range(rows.outer.start[i], rows.outer.start[i + 1]):
            leaving += row_sums(wp.mat33d(rows.outer.values[e]))
        margin = wp.vec3d(D[0, 0], D[1, 1], D[2, 2])
        margin = MARGIN * (margin + margin - row_sums(D))
        E = wp.float64(0.5) * wp.max(leaving - margin, wp.vec3d())
    rows.extra[i] = wp.vec3f(E)
    rows.inverse[i] = wp.mat33f(inverse_of_free_part(D + wp.diag(E), free[i]))
