"""Sparse matrices of 3x3 blocks and the few vector operations a Krylov method needs.

Sums are taken in chunks of a fixed number of nodes, then over the chunks in order, so they do not
depend on the number of threads.
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

from collections.abc import Callable, Sequence
from threading import local
from typing import Any

import numpy as np
import warp as wp

from pliant.core.block_products import mirror_row
from pliant.core.launch import Recorded, device, launch, share, to_device, zeros
from pliant.linalg.block_rows import NO_TWIN, BlockRows, row_product, stored_at
from pliant.linalg.pattern import Pattern

CHUNK = 256
"""Nodes per chunk of a sum: long enough to hide the launch, short enough to share between cores."""

CHUNK_GRAIN = 2
"""Chunks per thread from which vector kernels are split (about 500 nodes, 50 us of products)."""


MIRROR_GRAIN = 500
"""Rows per thread from which mirroring is split (a tenth of a microsecond each)."""


ThreeByFour: Any = wp.types.matrix((3, 4), wp.float64)


@wp.kernel
def _multiply(
    first: wp.int32,
    A: BlockRows,
    free: wp.array(dtype=wp.vec3d),
    masked: wp.int32,
    x: wp.array(dtype=wp.vec3d),
    y: wp.array(dtype=wp.vec3d),
    n: wp.int32,
    partial: wp.array(dtype=wp.float64),
):
    """y = P A x, partial = x . y; P keeps the free components if masked, else all."""
    chunk = first + wp.tid()
    total = wp.float64(0.0)
    for i in range(chunk * CHUNK, wp.min(n, (chunk + 1) * CHUNK)):
        s = row_product(A, i, x)
        if masked == 1:
            s = wp.cw_mul(free[i], s)
        y[i] = s
        total += wp.dot(x[i], s)
    partial[chunk] = total


@wp.kernel
def _curvature(
    first: wp.int32,
    A: BlockRows,
    free: wp.array(dtype=wp.vec3d),
    r: wp.array(dtype=wp.vec3d),
    z: wp.array(dtype=wp.vec3d),
    w: wp.array(dtype=wp.vec3d),
    n: wp.int32,
    partial: wp.array(dtype=wp.vec2d),
):
    """w = P A z, partial = (r . z, z . w)."""
    chunk = first + wp.tid()
    rz = wp.float64(0.0)
    zw = wp.float64(0.0)
    for i in range(chunk * CHUNK, wp.min(n, (chunk + 1) * CHUNK)):
        s = wp.cw_mul(free[i], row_product(A, i, z))
        w[i] = s
        rz += wp.dot(r[i], z[i])
        zw += wp.dot(z[i], s)
    partial[chunk] = wp.vec2d(rz, zw)


@wp.kernel
def _residual(
    first: wp.int32,
    A: BlockRows,
    free: wp.array(dtype=wp.vec3d),
    b: wp.array(dtype=wp.vec3d),
    x: wp.array(dtype=wp.vec3d),
    r: wp.array(dtype=wp.vec3d),
    n: wp.int32,
    partial: wp.array(dtype=wp.float64),
):
    """r = P (b - A x), partial = r . r."""
    chunk = first + wp.tid()
    total = wp.float64(0.0)
    for i in range(chunk * CHUNK, wp.min(n, (chunk + 1) * CHUNK)):
        s = wp.cw_mul(free[i], b[i] - row_product(A, i, x))
        r[i] = s
        total += wp.dot(s, s)
    partial[chunk] = total


@wp.kernel
def _dot(
    first: wp.int32,
    free: wp.array(dtype=wp.vec3d),
    masked: wp.int32,
    x: wp.array(dtype=wp.vec3d),
    y: wp.array(dtype=wp.vec3d),
    n: wp.int32,
    partial: wp.array(dtype=wp.float64),
):
    chunk = first + wp.tid()
    total = wp.float64(0.0)
    for i in range(chunk * CHUNK, wp.min(n, (chunk + 1) * CHUNK)):
        s = x[i]
        if masked == 1:
            s = wp.cw_mul(free[i], s)
        total += wp.dot(s, y[i])
    partial[chunk] = total


@wp.kernel
def _free_square(
    first: wp.int32,
    free: wp.array(dtype=wp.vec3d),
    x: wp.array(dtype=wp.vec3d),
    partial: wp.array(dtype=wp.float64),
):
    chunk = first + wp.tid()
    total = wp.float64(0.0)
    for i in range(chunk * CHUNK, wp.min(x.shape[0], (chunk + 1) * CHUNK)):
        s = wp.cw_mul(free[i], x[i])
        x[i] = s
        total += wp.dot(s, s)
    partial[chunk] = total


@wp.kernel
def _combine(
    first: wp.int32,
    out: wp.array(dtype=wp.vec3d),
    c0: wp.float64,
    x: wp.array(dtype=wp.vec3d),
    c1: wp.float64,
    y: wp.array(dtype=wp.vec3d),
    c2: wp.float64,
    z: wp.array(dtype=wp.vec3d),
    c3: wp.float64,
    w: wp.array(dtype=wp.vec3d),
):
    """out = c0 x + c1 y + c2 z + c3 w."""
    i = first + wp.tid()
    out[i] = c0 * x[i] + c1 * y[i] + c2 * z[i] + c3 * w[i]


@wp.kernel
def _combine_three(
    first: wp.int32,
    W: ThreeByFour,
    x: wp.array(dtype=wp.vec3d),
    y: wp.array(dtype=wp.vec3d),
    z: wp.array(dtype=wp.vec3d),
    w: wp.array(dtype=wp.vec3d),
    u: wp.array(dtype=wp.vec3d),
    v: wp.array(dtype=wp.vec3d),
    a: wp.array(dtype=wp.vec3d),
):
    """(u, v, a) = W (x, y, z, w)."""
    i = first + wp.tid()
    u[i] = W[0, 0] * x[i] + W[0, 1] * y[i] + W[0, 2] * z[i] + W[0, 3] * w[i]
    v[i] = W[1, 0] * x[i] + W[1, 1] * y[i] + W[1, 2] * z[i] + W[1, 3] * w[i]
    a[i] = W[2, 0] * x[i] + W[2, 1] * y[i] + W[2, 2] * z[i] + W[2, 3] * w[i]


@wp.kernel
def _hold(
    first: wp.int32,
    free: wp.array(dtype=wp.vec3d),
    given: wp.array(dtype=wp.vec3d),
    x: wp.array(dtype=wp.vec3d),
):
    i = first + wp.tid()
    for j in range(3):
        if free[i][j] == wp.float64(0.0):
            x[i][j] = given[i][j]


@wp.kernel
def _mask(first: wp.int32, free: wp.array(dtype=wp.vec3d), x: wp.array(dtype=wp.vec3d)):
    i = first + wp.tid()
    x[i] = wp.cw_mul(free[i], x[i])


@wp.func
def inverse_of_free_part(A: wp.mat33d, free: wp.vec3d) -> wp.mat33d:
    """Inverse of the block restricted to its free components, zero on the others."""
    one = wp.float64(1.0)
    B = wp.mat33d()
    for p in range(3):
        for q in range(3):
            B[p, q] = A[p, q] * free[p] * free[q]
        B[p, p] = B[p, p] + (one - free[p])
    C = wp.inverse(B)
    for p in range(3):
        for q in range(3):
            C[p, q] = C[p, q] * free[p] * free[q]
    return C


@wp.kernel
def _invert_diagonal(
    first: wp.int32,
    A: BlockRows,
    free: wp.array(dtype=wp.vec3d),
    inverse: wp.array(dtype=wp.mat33d),
):
    i = first + wp.tid()
    inverse[i] = inverse_of_free_part(A.values[stored_at(A, i, A.diagonal[i])], free[i])


@wp.kernel
def _find_twins(first: wp.int32, A: BlockRows):
    """Fill in A.twin by bisection of the twins' rows."""
    i = first + wp.tid()
    for e in range(A.row_start[i], A.diagonal[i]):
        j = A.columns[e]
        low = A.diagonal[j]
        high = A.row_start[j + 1]
        while high - low > 1:
            middle = (low + high) / 2
            if A.columns[middle] <= i:
                low = middle
            else:
                high = middle
        A.twin[e] = wp.uint8(low - A.diagonal[j])
        if A.columns[low] != i:
            A.twin[e] = wp.uint8(NO_TWIN)


@wp.kernel
def _mirror(first: wp.int32, A: BlockRows):
    i = first + wp.tid()
    mirror_row(A.values, A.columns, A.diagonal, A.twin, A.row_start[i], A.diagonal[i])


@wp.kernel
def _mirror_and_multiply(
    first: wp.int32, A: BlockRows, x: wp.array(dtype=wp.vec3d), y: wp.array(dtype=wp.vec3d)
):
    """y = A x of a row that is mirrored first, which then is still in the cache."""
    i = first + wp.tid()
    if A.half == 0:
        mirror_row(A.values, A.columns, A.diagonal, A.twin, A.row_start[i], A.diagonal[i])
    y[i] = row_product(A, i, x)


def chunks(n: int) -> int:
    """Number of chunks that n nodes make."""
    return (n + CHUNK - 1) // CHUNK


def combine(out: wp.array, *terms: tuple[float, wp.array]) -> None:
    """out = sum of factor * array, at most four terms; out may be one of them."""
    padded = [*terms, *[(0.0, terms[0][1])] * (4 - len(terms))]
    flat = [part for term in padded for part in term]
    launch(_combine, out.shape[0], [out, *flat])


def combine_three(
    weights: Sequence[Sequence[float]],
    arrays: Sequence[wp.array],
    out: Sequence[wp.array] | None = None,
) -> Sequence[wp.array]:
    """Three arrays, new ones if not given, each the sum of four weights times four arrays."""
    if out is None:
        out = [wp.empty_like(arrays[0]) for _ in range(3)]
    flat = [float(weight) for row in weights for weight in row]
    launch(_combine_three, out[0].shape[0], [ThreeByFour(*flat), *arrays, *out])
    return out


def dot(x: wp.array, y: wp.array, free: wp.array | None = None) -> float:
    """Sum of x . y, over the free components if `free` is given."""
    n = x.shape[0]
    partial, seen = _partial_sums(chunks(n))
    mask = [x if free is None else free, int(free is not None)]
    launch(_dot, chunks(n), [*mask, x, y, n, partial], grain=CHUNK_GRAIN)
    return float((partial.numpy() if seen is None else seen).sum())


def free_square(x: wp.array, free: wp.array) -> float:
    """Zero the held components of x; the sum of x . x."""
    count = chunks(x.shape[0])
    partial, seen = _partial_sums(count)
    launch(_free_square, count, [free, x, partial], grain=CHUNK_GRAIN)
    return float((partial.numpy() if seen is None else seen).sum())


class _Memory(local):
    """Of each thread: two may take sums at once."""

    def __init__(self):
        self.sums: dict[int, tuple[wp.array, np.ndarray]] = {}


_memory = _Memory()


def _partial_sums(count: int) -> tuple[wp.array, np.ndarray | None]:
    """Memory for partial sums, and the same seen by NumPy where the device is the host."""
    if device() != "cpu":
        return wp.empty(count, dtype=wp.float64, device=device()), None
    known = _memory.sums
    if count not in known:
        own = wp.empty(count, dtype=wp.float64, device="cpu")
        known[count] = own, own.numpy()
    return known[count]


def keep_free(x: wp.array, free: wp.array) -> None:
    """Zero the held components of x."""
    launch(_mask, x.shape[0], [free, x])


def set_held(x: wp.array, free: wp.array, given: wp.array) -> None:
    """Held components of x := those of `given`."""
    launch(_hold, x.shape[0], [free, given, x])


class BlockMatrix:
    """A symmetric matrix of 3x3 blocks on the device; values are filled by an assembly."""

    def __init__(self, pattern: Pattern, free: np.ndarray, *, half: bool = False):
        """free: (nodes, 3) of 1 (free) or 0 (held). half: keep half of the blocks."""
        n, blocks = len(pattern.row_start) - 1, len(pattern.columns)
        self.node_count, self.half = n, half
        places = diagonal_places(pattern)
        upper = np.zeros(n + 1, np.int32)
        np.cumsum(pattern.row_start[1:] - places, out=upper[1:])
        rows: Any = BlockRows()
        rows.half = int(half)
        rows.row_start = self.row_start = share(pattern.row_start, wp.int32)
        rows.columns = self.columns = share(pattern.columns, wp.int32)
        rows.diagonal = self.diagonal = to_device(places, wp.int32)
        rows.upper_start = to_device(upper, wp.int32)
        rows.twin = zeros(blocks, wp.uint8)
        rows.values = self.values = zeros(int(upper[-1]) if half else blocks, wp.mat33d)
        self.rows = rows
        self.free = share(free, wp.vec3d)
        self.partial = zeros(chunks(n), wp.float64)
        self._multiply: dict[tuple, Recorded] = {}
        self._keep: list[wp.array] = []
        launch(_find_twins, n, [rows])
        self._mirror = Recorded(_mirror, n, [rows], grain=MIRROR_GRAIN)

    def mirror(self) -> None:
        """Make it symmetric: blocks left of the diagonal from those right of it."""
        if not self.half:
            self._mirror.run()

    def mirror_and_multiply(self, x: wp.array, y: wp.array) -> None:
        """`mirror`, and y = A x in the same pass; held components are not masked."""
        launch(_mirror_and_multiply, self.node_count, [self.rows, x, y], grain=MIRROR_GRAIN)

    def multiply(self, x: wp.array, y: wp.array, *, masked: bool = True) -> float:
        """y = P A x (P = identity if not masked); returns x . y."""
        key = (x.ptr, y.ptr, masked)
        if key not in self._multiply:
            n = self.node_count
            arguments = [self.rows, self.free, int(masked), x, y, n, self.partial]
            self._multiply[key] = Recorded(_multiply, chunks(n), arguments, grain=CHUNK_GRAIN)
            self._keep += [x, y]  # recorded launches hold addresses, not references
        self._multiply[key].run()
        return float(self.partial.numpy().sum())

    def residual(self, b: wp.array, x: wp.array, r: wp.array) -> float:
        """r = P (b - A x); returns r . r."""
        n = self.node_count
        launch(
            _residual,
            chunks(n),
            [self.rows, self.free, b, x, r, n, self.partial],
            grain=CHUNK_GRAIN,
        )
        return float(self.partial.numpy().sum())

    def curvature(self, r: wp.array, z: wp.array, w: wp.array) -> Callable[[], tuple[float, float]]:
        """A pass that makes w = P A z and returns r . z and z . w."""
        n = self.node_count
        pairs = zeros(chunks(n), wp.vec2d)
        arguments = [self.rows, self.free, r, z, w, n, pairs]
        recorded = Recorded(_curvature, chunks(n), arguments, grain=CHUNK_GRAIN)

        def run() -> tuple[float, float]:
            recorded.run()
            rz, zw = pairs.numpy().sum(axis=0)
            return float(rz), float(zw)

        return run

    def invert_diagonal(self, inverse: wp.array) -> None:
        """inverse[i] = inverse of the free part of the diagonal block of row i."""
        launch(_invert_diagonal, self.node_count, [self.rows, self.free, inverse])

    def to_scipy(self, *, masked: bool = False):
        """The matrix as scipy.sparse.bsr_matrix (3 nodes rows), for checks and small solves."""
        from scipy import sparse

        n = self.node_count
        start, columns, values = self.row_start.numpy(), self.columns.numpy(), self.values.numpy()
        if self.half:
            rows = np.repeat(np.arange(n), np.diff(start))
            right = columns >= rows
            start = self.rows.upper_start.numpy()
            columns = columns[right]
            above = sparse.bsr_matrix((values, columns, start), shape=(3 * n, 3 * n)).tocsr()
            at_diagonal = values[start[:-1]]
            middle = sparse.bsr_matrix(
                (at_diagonal, np.arange(n), np.arange(n + 1)), shape=(3 * n, 3 * n)
            ).tocsr()
            matrix = (above + above.T - middle).tobsr((3, 3))
        else:
            matrix = sparse.bsr_matrix((values, columns, start), shape=(3 * n, 3 * n))
        if masked:
            P = sparse.diags(self.free.numpy().reshape(-1))
            matrix = P @ matrix @ P
        return matrix


def diagonal_places(pattern: Pattern) -> np.ndarray:
    """Index of the diagonal block of each row."""
    n = len(pattern.row_start) - 1
    rows = np.repeat(np.arange(n, dtype=np.int32), np.diff(pattern.row_start))
    return np.flatnonzero(rows == pattern.columns).astype(np.int32)
