"""Rows of 3x3 blocks of a symmetric matrix on the device, whole or as half of them.

Whole, row i has its blocks at values[row_start[i] ...] with the columns beside. As a half only the
blocks on and right of the diagonal are kept, at values[upper_start[i] ...]; those left of it are
read as the transposes of their twins. That takes half the memory, and on bodies whose planes do not
fit the cache up to half as much time again for a product.
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

import warp as wp

from pliant.core.block_products import row_sum_double

NO_TWIN = wp.constant(255)
"""Mark of a block whose mirror image has no room in the pattern: both are zero."""


@wp.struct
class BlockRows:
    """half: 1 or 0. twin: for blocks (i, j) left of the diagonal, the place of (j, i) counted from
    the diagonal of row j.
    """

    half: wp.int32
    row_start: wp.array(dtype=wp.int32)
    columns: wp.array(dtype=wp.int32)
    diagonal: wp.array(dtype=wp.int32)
    upper_start: wp.array(dtype=wp.int32)
    twin: wp.array(dtype=wp.uint8)
    values: wp.array(dtype=wp.mat33d)


@wp.func
def row_product(A: BlockRows, i: int, x: wp.array(dtype=wp.vec3d)) -> wp.vec3d:
    """Row i of A x."""
    s = wp.vec3d()
    if A.half == 0:
        begin = A.row_start[i]
        s = row_sum_double(A.values, begin, A.columns, begin, A.row_start[i + 1] - begin, 1, x)
    else:
        for e in range(A.row_start[i], A.diagonal[i]):
            if A.twin[e] != wp.uint8(NO_TWIN):
                j = A.columns[e]
                s += x[j] * A.values[A.upper_start[j] + int(A.twin[e])]  # x * B is B^T x
        shift = A.upper_start[i] - A.diagonal[i]
        begin = A.diagonal[i]
        count = A.row_start[i + 1] - begin
        s += row_sum_double(A.values, begin + shift, A.columns, begin, count, 1, x)
    return s


@wp.func
def stored_at(A: BlockRows, i: int, e: int) -> int:
    """Where block e of row i, on or right of the diagonal, is kept."""
    if A.half == 0:
        return e
    return A.upper_start[i] + e - A.diagonal[i]


@wp.func
def add_block(A: BlockRows, i: int, e: int, block: wp.mat33d):
    """Add to block e of row i; what a half does not keep is left to the twin's row."""
    if A.half == 0:
        A.values[e] = A.values[e] + block
    elif e >= A.diagonal[i]:
        at = A.upper_start[i] + e - A.diagonal[i]
        A.values[at] = A.values[at] + block
