"""Coarse matrices A_c = P^T A P of 3x3 blocks in single precision, gathered row by row.

For coarse row I the fine rows of its support are first added up, T = sum_i P_iI A_i, in a small cube
of blocks around I, then each coarse block gathers its share of the cube, A_IJ = sum_j T_j P_jJ. An
item owns a run of coarse rows and one cube, so nothing is shared and nothing is stored for the
product beyond the interpolation itself.

Blocks that reach further than the neighbours (the ghost penalty couples nodes two apart, with
positive multiples B of the identity) are moved to the diagonal. This adds the energy
B |u_i - u_j|^2 / 2 to each pair: still symmetric, positive and blind to translations, and a few
percent of the shear modulus in the cut layer, which a preconditioner does not notice.
"""

from typing import Any

import numpy as np
import warp as wp

from pliant.core.launch import Recorded, device, to_device, zeros
from pliant.linalg.hierarchy import Interpolation, Level
from pliant.linalg.smoother import Rows

RUNS_CPU, RUNS_CUDA = 64, 4096
"""Items a product is cut into; each needs its own cube (4.5 kB, 12 kB for tetrahedra)."""


@wp.func
def _block(rows: Rows, i: int, e: int) -> wp.mat33f:
    """Block at place e of the row."""
    if e < rows.diagonal[i]:
        return rows.lower[e - rows.row_start[i] + rows.lower_start[i]]
    if e == rows.diagonal[i]:
        return rows.middle[i]
    return rows.upper[e + rows.row_start[i] - rows.lower_start[i] - i - rows.diagonal[i] - 1]


@wp.func
def _store(rows: Rows, i: int, e: int, value: wp.mat33f):
    if e < rows.diagonal[i]:
        rows.lower[e - rows.row_start[i] + rows.lower_start[i]] = value
    elif e == rows.diagonal[i]:
        rows.middle[i] = value
    else:
        at = e + rows.row_start[i] - rows.lower_start[i] - i - rows.diagonal[i] - 1
        rows.upper[at] = value


@wp.func
def _halves(x: int) -> wp.float32:
    """Interpolation weight of offset -1, 0 or 1."""
    if x == 0:
        return wp.float32(1.0)
    return wp.float32(0.5)


@wp.kernel
def _lattice_product(
    first: wp.int32,
    runs: wp.int32,
    width: wp.int32,
    far: wp.vec3i,
    fine: Rows,
    fine_key: wp.array(dtype=wp.int32),
    restrict_start: wp.array(dtype=wp.int32),
    restrict_columns: wp.array(dtype=wp.int32),
    restrict_weights: wp.array(dtype=wp.float32),
    coarse_lattice: wp.array(dtype=wp.vec3i),
    coarse: Rows,
    cube: wp.array(dtype=wp.mat33f),
):
    """width: blocks along a side of the cube, 2 (reach + 1) + 1; fine_key: x + width y + width^2 z
    of each fine node, so that differences of keys are places in the cube; far: differences of keys
    that are lumped.
    """
    run = first + wp.tid()
    half = width / 2
    size = width * width * width
    base = run * size
    strides = wp.vec3i(1, width, width * width)
    for I in range(run * coarse.count / runs, (run + 1) * coarse.count / runs):
        for t in range(base, base + size):
            cube[t] = wp.mat33f()
        origin = wp.dot(2 * coarse_lattice[I] - wp.vec3i(half, half, half), strides) - base
        for s in range(restrict_start[I], restrict_start[I + 1]):
            i = restrict_columns[s]
            w = restrict_weights[s]
            own = fine_key[i] - origin
            shift = fine.row_start[i] - fine.lower_start[i]
            cube[own] = cube[own] + w * fine.middle[i]
            for e in range(fine.lower_start[i], fine.lower_start[i + 1]):
                t = fine_key[fine.columns[e + shift]] - origin
                d = own - t
                if d == far[0] or d == far[1] or d == far[2]:
                    t = own
                cube[t] = cube[t] + w * fine.lower[e]
            right = shift - i - fine.diagonal[i] - 1
            for e in range(fine.diagonal[i] + 1, fine.row_start[i + 1]):
                t = fine_key[fine.columns[e]] - origin
                d = t - own
                if d == far[0] or d == far[1] or d == far[2]:
                    t = own
                cube[t] = cube[t] + w * fine.upper[e + right]
        for e in range(coarse.row_start[I], coarse.row_start[I + 1]):
            o = 2 * (coarse_lattice[coarse.columns[e]] - coarse_lattice[I])
            middle = base + wp.dot(o + wp.vec3i(half, half, half), strides)
            total = wp.mat33f()
            for z in range(wp.max(-1, -half - o[2]), wp.min(1, half - o[2]) + 1):
                for y in range(wp.max(-1, -half - o[1]), wp.min(1, half - o[1]) + 1):
                    w = _halves(z) * _halves(y)
                    for x in range(wp.max(-1, -half - o[0]), wp.min(1, half - o[0]) + 1):
                        total += (w * _halves(x)) * cube[middle + x + width * (y + width * z)]
            _store(coarse, I, e, total)


@wp.kernel
def _embedded_product(
    first: wp.int32,
    runs: wp.int32,
    width: wp.int32,
    fine: Rows,
    prolong_start: wp.array(dtype=wp.int32),
    prolong_columns: wp.array(dtype=wp.int32),
    prolong_weights: wp.array(dtype=wp.float32),
    restrict_start: wp.array(dtype=wp.int32),
    restrict_columns: wp.array(dtype=wp.int32),
    restrict_weights: wp.array(dtype=wp.float32),
    coarse_lattice: wp.array(dtype=wp.vec3i),
    coarse: Rows,
    cube: wp.array(dtype=wp.mat33f),
):
    """The same from nodes anywhere; the cube holds coarse blocks, width = 2 reach + 1."""
    run = first + wp.tid()
    half = width / 2
    size = width * width * width
    base = run * size
    strides = wp.vec3i(1, width, width * width)
    for I in range(run * coarse.count / runs, (run + 1) * coarse.count / runs):
        for t in range(base, base + size):
            cube[t] = wp.mat33f()
        origin = wp.dot(coarse_lattice[I] - wp.vec3i(half, half, half), strides) - base
        for s in range(restrict_start[I], restrict_start[I + 1]):
            i = restrict_columns[s]
            w = restrict_weights[s]
            for e in range(fine.row_start[i], fine.row_start[i + 1]):
                block = w * _block(fine, i, e)
                j = fine.columns[e]
                for p in range(prolong_start[j], prolong_start[j + 1]):
                    t = wp.dot(coarse_lattice[prolong_columns[p]], strides) - origin
                    cube[t] = cube[t] + prolong_weights[p] * block
        for e in range(coarse.row_start[I], coarse.row_start[I + 1]):
            t = wp.dot(coarse_lattice[coarse.columns[e]], strides) - origin
            _store(coarse, I, e, cube[t])


class DeviceInterpolation:
    """An interpolation on the device."""

    def __init__(self, rows: Interpolation):
        self.row_start = to_device(rows.row_start, wp.int32)
        self.columns = to_device(rows.columns, wp.int32)
        self.weights = to_device(rows.weights, wp.float32)

    @property
    def arrays(self) -> list[wp.array]:
        """Row starts, columns, weights."""
        return [self.row_start, self.columns, self.weights]


class GalerkinProduct:
    """Computes the values of one coarse matrix from those of the matrix above it."""

    def __init__(
        self,
        level: Level,
        prolong: DeviceInterpolation,
        restrict: DeviceInterpolation,
        fine: Any,
        fine_lattice: np.ndarray | None,
        coarse: Any,
    ):
        """fine, coarse: Rows; fine_lattice: (nodes, 3) positions, None if they are anywhere."""
        runs = min(RUNS_CPU if device() == "cpu" else RUNS_CUDA, level.node_count)
        lattice = to_device(level.lattice, wp.vec3i)
        kernel: Any
        if fine_lattice is None:
            kernel = _embedded_product
            width = 2 * level.reach + 1
            place = [width, fine, *prolong.arrays]
        else:
            kernel = _lattice_product
            width = 2 * level.reach + 3
            strides = np.array([1, width, width**2])
            far = wp.vec3i(*(2 * strides if level.reach == 1 else 0 * strides - 1))
            place = [width, far, fine, to_device(fine_lattice @ strides, wp.int32)]
        cube = zeros(runs * width**3, wp.mat33f)
        arguments = [runs, *place, *restrict.arrays, lattice, coarse, cube]
        self._keep = arguments  # recorded launches hold addresses, not references
        grain = 2 if level.node_count > 300 else runs
        self._product = Recorded(kernel, runs, arguments, grain=grain)

    def run(self) -> None:
        """Recompute the coarse values."""
        self._product.run()
