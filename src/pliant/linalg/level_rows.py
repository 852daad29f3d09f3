"""Rows of 3x3 blocks in single precision, cut into the runs of nodes that the smoother sweeps.

With them the diagonals that the sweeps divide by, E included (see linalg.smoother).
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

import warp as wp

from pliant.linalg.blocks import inverse_of_free_part

RUNS_CPU = 8
"""Runs of a level: at least the threads to be used. The cuboid of 26,624 cells needs 8 iterations
with 1 run, 9 with 8 and 10 with 16 (one sweep)."""

RUN_LENGTH_CUDA = 16
"""Nodes per run on CUDA, where thousands of short runs are needed to fill the device."""

SMALLEST_RUN = 128
"""Levels are not cut into runs shorter than this."""

LONG_RUN = 10_000
"""More than two runs on the CPU only if each has this many nodes: in short runs half of the blocks
are between runs, and the sweep is half a Jacobi sweep."""


MARGIN = wp.constant(wp.float64(0.9))
"""Share of the diagonal's own dominance that may be used up by blocks between runs; below 1."""


def run_count(nodes: int, device: str) -> int:
    """Into how many runs a level is cut."""
    if device == "cpu":
        runs = 2 if nodes >= 2 * SMALLEST_RUN else 1
        while runs < RUNS_CPU and nodes >= LONG_RUN * 2 * runs:
            runs *= 2
        return runs
    return max(1, nodes // RUN_LENGTH_CUDA)


@wp.func
def row_sums(A: wp.mat33d) -> wp.vec3d:
    """Sum of absolute values of each row."""
    return wp.vec3d(
        wp.abs(A[0, 0]) + wp.abs(A[0, 1]) + wp.abs(A[0, 2]),
        wp.abs(A[1, 0]) + wp.abs(A[1, 1]) + wp.abs(A[1, 2]),
        wp.abs(A[2, 0]) + wp.abs(A[2, 1]) + wp.abs(A[2, 2]),
    )


@wp.struct
class Rows:
    """A matrix of 3x3 blocks in single precision, cut in three so that each sweep streams its part.

    Row i has its blocks left of the diagonal at lower[lower_start[i] ...], with columns
    columns[row_start[i] ...]; those right of it at upper[row_start[i] - lower_start[i] - i ...],
    with columns columns[diagonal[i] + 1 ...]. Interleaved as usual, a sweep that needs half of
    each row is three times slower: the hardware fetches the other half too.
    """

    count: wp.int32
    runs: wp.int32
    row_start: wp.array(dtype=wp.int32)
    columns: wp.array(dtype=wp.int32)
    diagonal: wp.array(dtype=wp.int32)
    lower_start: wp.array(dtype=wp.int32)
    lower: wp.array(dtype=wp.mat33f)
    upper: wp.array(dtype=wp.mat33f)
    middle: wp.array(dtype=wp.mat33f)
    extra: wp.array(dtype=wp.vec3f)
    inverse: wp.array(dtype=wp.mat33f)


@wp.func
def run_begin(rows: Rows, run: int) -> int:
    """First node of a run."""
    return wp.int32(wp.int64(run) * wp.int64(rows.count) / wp.int64(rows.runs))


@wp.kernel
def round_matrix(
    first: wp.int32,
    values: wp.array(dtype=wp.mat33d),
    free: wp.array(dtype=wp.vec3d),
    rows: Rows,
):
    """rows = P A P in single precision; P keeps the free components."""
    i = first + wp.tid()
    begin = rows.row_start[i]
    left = rows.lower_start[i] - begin
    right = begin - rows.lower_start[i] - i - rows.diagonal[i] - 1
    for e in range(begin, rows.diagonal[i]):
        mask = wp.outer(free[i], free[rows.columns[e]])
        rows.lower[e + left] = wp.mat33f(wp.cw_mul(mask, values[e]))
    rows.middle[i] = wp.mat33f(wp.cw_mul(wp.outer(free[i], free[i]), values[rows.diagonal[i]]))
    for e in range(rows.diagonal[i] + 1, rows.row_start[i + 1]):
        mask = wp.outer(free[i], free[rows.columns[e]])
        rows.upper[e + right] = wp.mat33f(wp.cw_mul(mask, values[e]))


@wp.kernel
def prepare_diagonal(first: wp.int32, free: wp.array(dtype=wp.vec3d), rows: Rows):
    """extra = E and inverse = (D + E)^-1 on the free components."""
    run = first + wp.tid()
    low = run_begin(rows, run)
    high = run_begin(rows, run + 1)
    for i in range(low, high):
        leaving = wp.vec3d()
        begin = rows.row_start[i]
        left = rows.lower_start[i] - begin
        for e in range(begin, rows.diagonal[i]):
            if rows.columns[e] >= low:
                break
            leaving += row_sums(wp.mat33d(rows.lower[e + left]))
        right = begin - rows.lower_start[i] - i - rows.diagonal[i] - 1
        for k in range(rows.row_start[i + 1] - rows.diagonal[i] - 1):
            e = rows.row_start[i + 1] - 1 - k
            if rows.columns[e] < high:
                break
            leaving += row_sums(wp.mat33d(rows.upper[e + right]))
        D = wp.mat33d(rows.middle[i])
        margin = wp.vec3d(D[0, 0], D[1, 1], D[2, 2])
        margin = MARGIN * (margin + margin - row_sums(D))
        E = wp.float64(0.5) * wp.max(leaving - margin, wp.vec3d())
        rows.extra[i] = wp.vec3f(E)
        rows.inverse[i] = wp.mat33f(inverse_of_free_part(D + wp.diag(E), free[i]))
