"""Smoothing patch by patch: each patch solves its own equations exactly, one after another.

x_p += A_pp^-1 (b - A x)_p for the patches p (linalg.patches): block Gauss-Seidel with overlap.
A backward sweep takes the patches in the opposite order, which makes it the transpose of a forward
one.

Kept are the factors of A_pp in single precision (linalg.triangular): 13 kB for 27 nodes.
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import warp as wp

from pliant.core.block_products import row_sum_single, row_sum_wide
from pliant.core.launch import Recorded, to_device, zeros
from pliant.linalg.level_rows import Part, Rows
from pliant.linalg.patches import Patches
from pliant.linalg.triangular import column_of, factorise, packed_size, padded, solve_function

PATCH_GRAIN = 2
"""Patches per thread from which taking their factors is split (20 microseconds each)."""


@wp.struct
class Factors:
    """Patch p has the entries from start[p] to start[p + 1]: nodes, and three pivots for each.

    below: its L from below_start[p] on, as in linalg.triangular; given: the matrix' own diagonal;
    room: where the patch may write while it is solved.
    """

    start: wp.array(dtype=wp.int32)
    nodes: wp.array(dtype=wp.int32)
    below_start: wp.array(dtype=wp.int32)
    below: wp.array(dtype=wp.float32)
    pivots: wp.array(dtype=wp.float32)
    given: wp.array(dtype=wp.float32)
    room: wp.array(dtype=wp.int32)


@wp.func
def _put(f: Factors, at: int, m: int, a: int, c: int, block: wp.mat33f):
    """Write the block of entries a > c."""
    for q in range(3):
        j = 3 * c + q
        column = at + column_of(j, m)
        for p in range(3):
            f.below[column + 3 * a + p] = block[p, q]


@wp.func
def _take(part: Part, i: int, f: Factors, begin: int, a: int, at: int, m: int):
    """Write the blocks of row i, entry a, in the columns of the entries before it."""
    k = begin
    for e in range(part.start[i], part.start[i + 1]):
        j = part.columns[e]
        while k < begin + a and f.nodes[k] < j:
            k += 1
        if k < begin + a:
            if f.nodes[k] == j:
                _put(f, at, m, a, k - begin, part.values[e])


@wp.kernel
def _factorise(first: wp.int32, rows: Rows, f: Factors):
    """L and the inverse of D of one patch."""
    p = first + wp.tid()
    begin = f.start[p]
    count = f.start[p + 1] - begin
    m = 3 * count
    at = f.below_start[p]
    for k in range(at, f.below_start[p + 1]):
        f.below[k] = wp.float32(0.0)
    for a in range(count):
        i = f.nodes[begin + a]
        _take(rows.lower, i, f, begin, a, at, m)
        _take(rows.outer, i, f, begin, a, at, m)
        D = rows.middle[i]
        for q in range(3):
            j = 3 * a + q
            f.pivots[3 * begin + j] = D[q, q]
            f.given[3 * begin + j] = D[q, q]
            for r in range(q + 1, 3):
                f.below[at + column_of(j, m) + 3 * a + r] = D[r, q]
    factorise(f.below, at, f.pivots, f.given, 3 * begin, m)


@cache
def patch_kernels(width: int) -> SimpleNamespace:
    """Kernels for `width` right-hand sides at once: vec3f, or 3 x width matrices."""
    V: Any = wp.vec3f if width == 1 else wp.types.matrix((3, width), wp.float32)
    row_sum = row_sum_single if width == 1 else row_sum_wide(width)
    solve = solve_function(width)

    @wp.func
    def part_sum(part: Part, i: int, x: wp.array(dtype=V)) -> V:
        begin = part.start[i]
        return row_sum(part.values, begin, part.columns, begin, part.start[i + 1] - begin, 1, x)

    @wp.func
    def row(rows: Rows, i: int, x: wp.array(dtype=V)) -> V:
        s = rows.middle[i] * x[i] + part_sum(rows.lower, i, x)
        return s + part_sum(rows.upper, i, x) + part_sum(rows.outer, i, x)

    @wp.kernel(module="unique")
    def sweep(
        first: wp.int32,
        rows: Rows,
        f: Factors,
        ends: wp.array2d(dtype=wp.int32),
        down: wp.int32,
        b: wp.array(dtype=V),
        x: wp.array(dtype=V),
        y: wp.array(dtype=V),
    ):
        """x_p += A_pp^-1 (b - A x)_p for one item of a turn; down: from its last patch to its
        first; y: room for every entry of the patches.
        """
        item = first + wp.tid()
        for k in range(ends[item, 1] - ends[item, 0]):
            p = ends[item, 0] + k
            if down == 1:
                p = ends[item, 1] - 1 - k
            begin = f.start[p]
            count = f.start[p + 1] - begin
            room = f.room[p]
            for a in range(count):
                i = f.nodes[begin + a]
                y[room + a] = b[i] - row(rows, i, x)
            solve(f.below, f.below_start[p], f.pivots, 3 * begin, y, room, 3 * count)
            for a in range(count):
                i = f.nodes[begin + a]
                x[i] = x[i] + y[room + a]

    @wp.kernel(module="unique")
    def residual(
        first: wp.int32, rows: Rows, b: wp.array(dtype=V), x: wp.array(dtype=V),
        r: wp.array(dtype=V),
    ):  # fmt: skip
        """r = b - A x."""
        i = first + wp.tid()
        r[i] = b[i] - row(rows, i, x)

    @wp.kernel(module="unique")
    def clear(first: wp.int32, x: wp.array(dtype=V)):
        """x = 0."""
        x[first + wp.tid()] = V()

    return SimpleNamespace(sweep=sweep, residual=residual, clear=clear)


class PatchSmoother:
    """The patches of one level with their factors."""

    def __init__(self, rows: Any, patches: Patches):
        self._rows, self._patches = rows, patches
        sizes = 3 * np.diff(patches.start).astype(np.int64)
        begin = np.zeros(len(sizes) + 1, np.int64)
        np.cumsum(packed_size(sizes), out=begin[1:])
        room = np.zeros(len(sizes) + 1, np.int64)
        np.cumsum(-(-padded(sizes) // 3), out=room[1:])
        self._room_size = int(room[-1])
        f: Any = Factors()
        f.room = to_device(room, wp.int32)
        f.start, f.nodes = (to_device(x, wp.int32) for x in (patches.start, patches.nodes))
        f.below_start = to_device(begin, wp.int32)
        f.below = zeros(int(begin[-1]), wp.float32)
        f.pivots, f.given = (zeros(3 * len(patches.nodes), wp.float32) for _ in range(2))
        self._factors = f
        self._held: dict[Any, wp.array] = {}
        self._turns = [to_device(ends, wp.int32) for ends in patches.turns]
        self._factorise = Recorded(_factorise, patches.count, [rows, f], grain=PATCH_GRAIN)

    def refresh(self) -> None:
        """Take the factors of the level's matrix."""
        self._factorise.run()

    def down(
        self, width: int, sweeps: int, b: wp.array, x: wp.array, r: wp.array
    ) -> list[Recorded]:
        """The launches of `sweeps` forward sweeps from zero, and of r = b - A x."""
        K, n = patch_kernels(width), len(x)
        launches = [Recorded(K.clear, n, [x])]
        for _ in range(sweeps):
            launches += self._sweep(width, b, x, down=False)
        return [*launches, Recorded(K.residual, n, [self._rows, b, x, r], grain=100)]

    def up(self, width: int, sweeps: int, b: wp.array, x: wp.array) -> list[Recorded]:
        """The launches of `sweeps` backward sweeps."""
        launches = []
        for _ in range(sweeps):
            launches += self._sweep(width, b, x, down=True)
        return launches

    def _sweep(self, width: int, b: wp.array, x: wp.array, *, down: bool) -> list[Recorded]:
        sweep, room = patch_kernels(width).sweep, self._room(x.dtype)
        return [
            Recorded(
                sweep, len(ends), [self._rows, self._factors, ends, int(down), b, x, room], grain=1
            )
            for ends in (reversed(self._turns) if down else self._turns)
        ]

    def _room(self, dtype: Any) -> wp.array:
        """Room for one vector an entry, shared by the sweeps of one width."""
        if dtype not in self._held:
            self._held[dtype] = zeros(self._room_size, dtype)
        return self._held[dtype]
