"""Gauss-Seidel smoothing of 3x3 block rows, sequential in runs of nodes.

The nodes are cut into runs. Where runs touch only the runs next to them, all even runs are swept
at the same time and then all odd ones: M = D + L, L the blocks that couple a node to those before
it in this order. Where they touch others too, all runs are swept at the same time, Gauss-Seidel
inside and Jacobi between: M = D + E + L with L the lower blocks inside the runs, and E the smallest
diagonal that makes M + M^T - A = D + 2 E - (blocks between runs) diagonally dominant.

That M + M^T - A is positive is all a smoother needs: one forward sweep before and one backward
sweep (with M^T) after the coarse correction make a symmetric positive V-cycle, whatever the
material, without eigenvalue estimates.

From a zero start the forward sweep reads only the blocks of L, and because M x = b afterwards, the
residual b - A x = E x - (other blocks) x only the others: a sweep down reads the matrix once, as a
sweep up does.

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
from pliant.linalg.galerkin import Weights
from pliant.linalg.level_rows import Part, Rows, run_begin


@cache
def cycle_kernels(width: int) -> SimpleNamespace:
    """Kernels of a V-cycle on `width` right-hand sides at once: vec3f, or 3 x width matrices."""
    V: Any = wp.vec3f if width == 1 else wp.types.matrix((3, width), wp.float32)

    row_sum = row_sum_single if width == 1 else row_sum_wide(width)

    @wp.func
    def part_sum(part: Part, i: int, x: wp.array(dtype=V)) -> V:
        """Sum over the blocks of row i in a part."""
        begin = part.start[i]
        return row_sum(part.values, begin, part.columns, begin, part.start[i + 1] - begin, 1, x)

    @wp.func
    def part_sum_down(part: Part, i: int, x: wp.array(dtype=V)) -> V:
        """The same, descending: the hardware prefetches straight streams only."""
        last = part.start[i + 1] - 1
        return row_sum(part.values, last, part.columns, last, last + 1 - part.start[i], -1, x)

    @wp.func
    def share_begin(rows: Rows, share: int) -> int:
        """First node of a share of a run."""
        run = share / rows.shares
        low = run_begin(rows, run)
        return low + (share % rows.shares) * (run_begin(rows, run + 1) - low) / rows.shares

    @wp.func
    def share_end(rows: Rows, share: int) -> int:
        if (share + 1) % rows.shares == 0:
            return run_begin(rows, (share + 1) / rows.shares)
        return share_begin(rows, share + 1)

    @wp.kernel(module="unique")
    def forward(
        first: wp.int32,
        rows: Rows,
        turn: wp.int32,
        b: wp.array(dtype=V),
        x: wp.array(dtype=V),
    ):
        """x = M^-1 b; turn: 0 or 1 where runs alternate."""
        run = (1 + rows.alternate) * (first + wp.tid()) + turn
        for i in range(run_begin(rows, run), run_begin(rows, run + 1)):
            s = b[i] - part_sum(rows.lower, i, x)
            if turn == 1:
                s -= part_sum(rows.outer, i, x)
            x[i] = rows.inverse[i] * s

    @wp.kernel(module="unique")
    def residual(first: wp.int32, rows: Rows, x: wp.array(dtype=V), r: wp.array(dtype=V)):
        """r = b - A x for the x of `forward`."""
        share = first + wp.tid()
        waited = rows.alternate * ((share / rows.shares) % 2)
        for i in range(share_begin(rows, share), share_end(rows, share)):
            s = wp.diag(rows.extra[i]) * x[i] - part_sum(rows.upper, i, x)
            if waited == 0:
                s -= part_sum(rows.outer, i, x)
            r[i] = s

    @wp.kernel(module="unique")
    def lower_residual(
        first: wp.int32,
        rows: Rows,
        b: wp.array(dtype=V),
        x: wp.array(dtype=V),
        t: wp.array(dtype=V),
    ):
        """t = b - A x without the blocks of L^T."""
        share = first + wp.tid()
        waits = rows.alternate * (1 - (share / rows.shares) % 2)
        for i in range(share_begin(rows, share), share_end(rows, share)):
            s = b[i] - rows.middle[i] * x[i] - part_sum(rows.lower, i, x)
            if waits == 0:
                s -= part_sum(rows.outer, i, x)
            t[i] = s

    @wp.kernel(module="unique")
    def backward(
        first: wp.int32,
        rows: Rows,
        turn: wp.int32,
        t: wp.array(dtype=V),
        x: wp.array(dtype=V),
        y: wp.array(dtype=V),
    ):
        """y = x + M^-T (b - A x) for the t of `lower_residual`; the turns of `forward` reversed.

        Two kernels with one long loop each: one kernel with both took ten times as long for eight
        right-hand sides.
        """
        run = (1 + rows.alternate) * (first + wp.tid()) + rows.alternate - turn
        high = run_begin(rows, run + 1)
        for k in range(high - run_begin(rows, run)):
            i = high - 1 - k
            s = t[i] - part_sum_down(rows.upper, i, y)
            if turn == 1:
                s -= part_sum_down(rows.outer, i, y)
            y[i] = x[i] + rows.inverse[i] * s

    @wp.func
    def row(rows: Rows, i: int, x: wp.array(dtype=V)) -> V:
        """Row i of A x."""
        s = rows.middle[i] * x[i] + part_sum(rows.lower, i, x)
        return s + part_sum(rows.upper, i, x) + part_sum(rows.outer, i, x)

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
        share = first + wp.tid()
        for i in range(share_begin(rows, share), share_end(rows, share)):
            r[i] = b[i] - row(rows, i, x)
            total[i] = x[i]

    @wp.kernel(module="unique")
    def stiff_clear(first: wp.int32, stiff: wp.array(dtype=wp.int32), d: wp.array(dtype=V)):
        """d = 0 on the stiff nodes."""
        d[stiff[first + wp.tid()]] = V()

    @wp.kernel(module="unique")
    def stiff_sweep(
        first: wp.int32,
        rows: Rows,
        stiff: wp.array(dtype=wp.int32),
        runs: wp.int32,
        turns: wp.int32,
        turn: wp.int32,
        down: wp.int32,
        b: wp.array(dtype=V),
        x: wp.array(dtype=V),
    ):
        """Gauss-Seidel for A x = b on the stiff nodes alone, in place; down: from the last one."""
        run = turns * (first + wp.tid()) + turn
        begin = run * stiff.shape[0] / runs
        end = (run + 1) * stiff.shape[0] / runs
        for k in range(end - begin):
            i = stiff[begin + k]
            if down == 1:
                i = stiff[end - 1 - k]
            x[i] = x[i] + rows.inverse[i] * (b[i] - row(rows, i, x))

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
    def add(first: wp.int32, x: wp.array(dtype=V), total: wp.array(dtype=V)):
        """total += x."""
        i = first + wp.tid()
        total[i] = total[i] + x[i]

    @wp.kernel(module="unique")
    def restrict(
        first: wp.int32,
        interpolation: Weights,
        r: wp.array(dtype=V),
        b: wp.array(dtype=V),
    ):
        """b = P^T r; held components of coarse nodes receive only zeros."""
        i = first + wp.tid()
        s = V()
        for e in range(interpolation.start[i], interpolation.start[i + 1]):
            s += interpolation.weights[e] * r[interpolation.columns[e]]
        b[i] = s

    @wp.kernel(module="unique")
    def prolong(
        first: wp.int32,
        interpolation: Weights,
        free: wp.array(dtype=wp.vec3d),
        e_coarse: wp.array(dtype=V),
        x: wp.array(dtype=V),
    ):
        """x += P e on the free components."""
        i = first + wp.tid()
        s = V()
        for e in range(interpolation.start[i], interpolation.start[i + 1]):
            s += interpolation.weights[e] * e_coarse[interpolation.columns[e]]
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
        stiff_clear=stiff_clear, stiff_sweep=stiff_sweep, stiff_defect=stiff_defect,
    )  # fmt: skip


@wp.kernel
def to_single(first: wp.int32, x: wp.array(dtype=wp.vec3d), y: wp.array(dtype=wp.vec3f)):
    """y = x."""
    i = first + wp.tid()
    y[i] = wp.vec3f(x[i])


@wp.kernel
def to_double(first: wp.int32, x: wp.array(dtype=wp.vec3f), y: wp.array(dtype=wp.vec3d)):
    """y = x."""
    i = first + wp.tid()
    y[i] = wp.vec3d(x[i])
