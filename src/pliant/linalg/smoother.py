"""Gauss-Seidel smoothing of 3x3 block rows, sequential in a few long runs of nodes.

The nodes are cut into runs; inside a run the sweep is Gauss-Seidel, between runs it is Jacobi. The
smoother is M = D + E + L with D the diagonal blocks, L the lower blocks inside the runs, and E the
smallest diagonal that makes M + M^T - A = D + 2 E - (blocks between runs) diagonally dominant. That
is all a smoother needs: one forward sweep before and one backward sweep (with M^T) after the coarse
correction make a symmetric positive V-cycle, whatever the material, without eigenvalue estimates.
Without E the cycle is indefinite for thin runs; inside the runs E is zero.

From a zero start the forward sweep reads only the lower half of the rows, and because
(D + E + L) x = b afterwards, the residual b - A x = E x - (other blocks) x only the upper half:
a sweep down reads the matrix once, as a sweep up does.

The number of runs depends on the device, not on the threads, so results do not either.
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

from functools import cache
from types import SimpleNamespace
from typing import Any

import warp as wp

from pliant.core.block_products import row_sum_single, row_sum_wide
from pliant.linalg.level_rows import Rows, run_begin


@cache
def cycle_kernels(width: int) -> SimpleNamespace:
    """Kernels of a V-cycle on `width` right-hand sides at once: vec3f, or 3 x width matrices."""
    V: Any = wp.vec3f if width == 1 else wp.types.matrix((3, width), wp.float32)

    row_sum = row_sum_single if width == 1 else row_sum_wide(width)

    @wp.func
    def before(rows: Rows, i: int, low: int) -> int:
        """Blocks of row i in columns before `low`, the start of its run."""
        begin = rows.row_start[i]
        count = wp.int32(0)
        while begin + count < rows.diagonal[i] and rows.columns[begin + count] < low:
            count += 1
        return count

    @wp.func
    def after(rows: Rows, i: int, high: int) -> int:
        """Blocks of row i in columns from `high` on, the end of its run."""
        last = rows.row_start[i + 1] - 1
        count = wp.int32(0)
        while last - count > rows.diagonal[i] and rows.columns[last - count] >= high:
            count += 1
        return count

    @wp.func
    def left_sum(rows: Rows, i: int, skip: int, count: int, x: wp.array(dtype=V)) -> V:
        """Sum over `count` blocks left of the diagonal, the first `skip` left out."""
        at = rows.lower_start[i] + skip
        return row_sum(rows.lower, at, rows.columns, rows.row_start[i] + skip, count, 1, x)

    @wp.func
    def right_sum(rows: Rows, i: int, x: wp.array(dtype=V)) -> V:
        """Sum over the blocks right of the diagonal."""
        begin = rows.diagonal[i] + 1
        at = rows.row_start[i] - rows.lower_start[i] - i  # blocks right of earlier diagonals
        return row_sum(rows.upper, at, rows.columns, begin, rows.row_start[i + 1] - begin, 1, x)

    @wp.func
    def right_sum_down(rows: Rows, i: int, skip: int, count: int, x: wp.array(dtype=V)) -> V:
        """Sum over `count` blocks right of the diagonal, descending, the last `skip` left out.

        Descending, because the backward sweep is: the hardware prefetches straight streams only.
        """
        end = rows.row_start[i + 1] - 1 - skip
        right = rows.row_start[i] - rows.lower_start[i] - i - rows.diagonal[i] - 1
        return row_sum(rows.upper, end + right, rows.columns, end, count, -1, x)

    @wp.kernel(module="unique")
    def forward(first: wp.int32, rows: Rows, b: wp.array(dtype=V), x: wp.array(dtype=V)):
        """x = M^-1 b."""
        run = first + wp.tid()
        low = run_begin(rows, run)
        for i in range(low, run_begin(rows, run + 1)):
            skip = before(rows, i, low)
            count = rows.diagonal[i] - rows.row_start[i] - skip
            x[i] = rows.inverse[i] * (b[i] - left_sum(rows, i, skip, count, x))

    @wp.kernel(module="unique")
    def residual(first: wp.int32, rows: Rows, x: wp.array(dtype=V), r: wp.array(dtype=V)):
        """r = b - A x for the x of `forward`."""
        run = first + wp.tid()
        low = run_begin(rows, run)
        for i in range(low, run_begin(rows, run + 1)):
            s = wp.diag(rows.extra[i]) * x[i] - left_sum(rows, i, 0, before(rows, i, low), x)
            r[i] = s - right_sum(rows, i, x)

    @wp.kernel(module="unique")
    def lower_residual(
        first: wp.int32,
        rows: Rows,
        b: wp.array(dtype=V),
        x: wp.array(dtype=V),
        t: wp.array(dtype=V),
    ):
        """t = b - A x without the upper blocks inside the runs."""
        run = first + wp.tid()
        high = run_begin(rows, run + 1)
        for i in range(run_begin(rows, run), high):
            s = b[i] - rows.middle[i] * x[i] - right_sum_down(rows, i, 0, after(rows, i, high), x)
            t[i] = s - left_sum(rows, i, 0, rows.diagonal[i] - rows.row_start[i], x)

    @wp.kernel(module="unique")
    def backward(
        first: wp.int32,
        rows: Rows,
        t: wp.array(dtype=V),
        x: wp.array(dtype=V),
        y: wp.array(dtype=V),
    ):
        """y = x + M^-T (b - A x) for the t of `lower_residual`.

        Two kernels with one long loop each: one kernel with both took ten times as long for eight
        right-hand sides.
        """
        run = first + wp.tid()
        low = run_begin(rows, run)
        high = run_begin(rows, run + 1)
        for k in range(high - low):
            i = high - 1 - k
            skip = after(rows, i, high)
            count = rows.row_start[i + 1] - rows.diagonal[i] - 1 - skip
            y[i] = x[i] + rows.inverse[i] * (t[i] - right_sum_down(rows, i, skip, count, y))

    @wp.kernel(module="unique")
    def defect(
        first: wp.int32,
        rows: Rows,
        b: wp.array(dtype=V),
        x: wp.array(dtype=V),
        r: wp.array(dtype=V),
        total: wp.array(dtype=V),
    ):
        """r = b - A x, total = x."""
        run = first + wp.tid()
        for i in range(run_begin(rows, run), run_begin(rows, run + 1)):
            s = b[i] - rows.middle[i] * x[i]
            s -= left_sum(rows, i, 0, rows.diagonal[i] - rows.row_start[i], x)
            r[i] = s - right_sum(rows, i, x)
            total[i] = x[i]

    @wp.func
    def row(rows: Rows, i: int, x: wp.array(dtype=V)) -> V:
        """Row i of A x."""
        s = rows.middle[i] * x[i] + right_sum(rows, i, x)
        return s + left_sum(rows, i, 0, rows.diagonal[i] - rows.row_start[i], x)

    @wp.kernel(module="unique")
    def stiff_forward(
        first: wp.int32,
        rows: Rows,
        stiff: wp.array(dtype=wp.int32),
        sweeps: wp.int32,
        r: wp.array(dtype=V),
        d: wp.array(dtype=V),
    ):
        """d = `sweeps` sweeps for A d = r on the stiff nodes alone; one item, d zero elsewhere."""
        for k in range(stiff.shape[0]):
            d[stiff[k]] = V()
        for _sweep in range(sweeps):
            for k in range(stiff.shape[0]):
                i = stiff[k]
                d[i] = d[i] + rows.inverse[i] * (r[i] - row(rows, i, d))

    @wp.kernel(module="unique")
    def stiff_defect(
        first: wp.int32,
        rows: Rows,
        near: wp.array(dtype=wp.int32),
        d: wp.array(dtype=V),
        x: wp.array(dtype=V),
        r: wp.array(dtype=V),
    ):
        """x += d, r -= A d on the nodes near the stiff ones."""
        i = near[first + wp.tid()]
        x[i] = x[i] + d[i]
        r[i] = r[i] - row(rows, i, d)

    @wp.kernel(module="unique")
    def stiff_backward(
        first: wp.int32,
        rows: Rows,
        stiff: wp.array(dtype=wp.int32),
        sweeps: wp.int32,
        b: wp.array(dtype=V),
        x: wp.array(dtype=V),
    ):
        """Sweeps for A x = b in the opposite order, in place."""
        count = stiff.shape[0]
        for _sweep in range(sweeps):
            for k in range(count):
                i = stiff[count - 1 - k]
                x[i] = x[i] + rows.inverse[i] * (b[i] - row(rows, i, x))

    @wp.kernel(module="unique")
    def add(first: wp.int32, x: wp.array(dtype=V), total: wp.array(dtype=V)):
        """total += x."""
        i = first + wp.tid()
        total[i] = total[i] + x[i]

    @wp.kernel(module="unique")
    def restrict(
        first: wp.int32,
        row_start: wp.array(dtype=wp.int32),
        columns: wp.array(dtype=wp.int32),
        weights: wp.array(dtype=wp.float32),
        r: wp.array(dtype=V),
        b: wp.array(dtype=V),
    ):
        """b = P^T r; held components of coarse nodes receive only zeros."""
        i = first + wp.tid()
        s = V()
        for e in range(row_start[i], row_start[i + 1]):
            s += weights[e] * r[columns[e]]
        b[i] = s

    @wp.kernel(module="unique")
    def prolong(
        first: wp.int32,
        row_start: wp.array(dtype=wp.int32),
        columns: wp.array(dtype=wp.int32),
        weights: wp.array(dtype=wp.float32),
        free: wp.array(dtype=wp.vec3d),
        e_coarse: wp.array(dtype=V),
        x: wp.array(dtype=V),
    ):
        """x += P e on the free components."""
        i = first + wp.tid()
        s = V()
        for e in range(row_start[i], row_start[i + 1]):
            s += weights[e] * e_coarse[columns[e]]
        x[i] = x[i] + wp.diag(wp.vec3f(free[i])) * s

    @wp.kernel(module="unique")
    def dense(
        first: wp.int32,
        inverse: wp.array2d(dtype=wp.mat33f),
        b: wp.array(dtype=V),
        x: wp.array(dtype=V),
    ):
        """x = A^-1 b with all blocks of the inverse."""
        i = first + wp.tid()
        s = V()
        for j in range(b.shape[0]):
            s += inverse[i, j] * b[j]
        x[i] = s

    return SimpleNamespace(
        forward=forward, residual=residual, lower_residual=lower_residual, backward=backward,
        restrict=restrict, prolong=prolong, dense=dense, defect=defect, add=add,
        stiff_forward=stiff_forward, stiff_defect=stiff_defect, stiff_backward=stiff_backward,
    )  # fmt: skip


@wp.kernel
def to_single(
    first: wp.int32, x: wp.array(dtype=wp.vec3d), y: wp.array(dtype=wp.vec3f)
):
    """y = x."""
    i = first + wp.tid()
    y[i] = wp.vec3f(x[i])


@wp.kernel
def to_double(
    first: wp.int32, x: wp.array(dtype=wp.vec3f), y: wp.array(dtype=wp.vec3d)
):
    """y = x."""
    i = first + wp.tid()
    y[i] = wp.vec3d(x[i])
