"""Coarse matrices A_c = P^T A P of 3x3 blocks in single precision, gathered row by row.

For coarse row c the fine rows of its support are first added up, T = sum_i P_ic A_i, in a small
cube of blocks around c; then each coarse block gathers its share, A_cd = sum_j T_j P_jd. An item
owns a run of coarse rows and one cube, so nothing is shared and nothing is stored for the product
beyond the interpolation itself.

Blocks that reach beyond the neighbours (the ghost penalty couples nodes two apart) are kept. Moving
them to the diagonal would save a quarter of the coarse blocks, but it makes rotations cost energy,
and twice the iterations wherever a slender body bends.
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

from typing import Any

import numpy as np
import warp as wp

from pliant.core.launch import Recorded, device, to_device, zeros
from pliant.linalg.hierarchy import Interpolation, Level
from pliant.linalg.level_rows import Part, Rows

RUNS_CPU, RUNS_CUDA = 16, 4096
"""Items a product is cut into; each needs its own cube of 12 kB."""

SIDE = wp.constant(7)
CUBE = wp.constant(343)
"""Blocks of a cube: three either way, a coarse node's support of one and a row's reach of two."""


@wp.struct
class Weights:
    """An interpolation on the device: row i has the weights from start[i] to start[i + 1]."""

    start: wp.array(dtype=wp.int32)
    columns: wp.array(dtype=wp.int32)
    weights: wp.array(dtype=wp.float32)


def make_weights(rows: Interpolation) -> Any:
    """An interpolation taken to the device."""
    out: Any = Weights()
    out.start = to_device(rows.row_start, wp.int32)
    out.columns = to_device(rows.columns, wp.int32)
    out.weights = to_device(rows.weights, wp.float32)
    return out


@wp.func
def _halves(x: int) -> wp.float32:
    """Interpolation weight of offset -1, 0 or 1."""
    if x == 0:
        return wp.float32(1.0)
    return wp.float32(0.5)


@wp.func
def _add_part(
    part: Part,
    i: int,
    w: wp.float32,
    key: wp.array(dtype=wp.int32),
    origin: int,
    cube: wp.array(dtype=wp.mat33f),
):
    """Add a fine row's blocks, times w, to the cube."""
    for e in range(part.start[i], part.start[i + 1]):
        t = key[part.columns[e]] - origin
        cube[t] = cube[t] + w * part.values[e]


@wp.func
def _gathered(cube: wp.array(dtype=wp.mat33f), centre: int, R: int, o: wp.vec3i) -> wp.mat33f:
    """Coarse block for the offset o from the middle of the cube."""
    middle = centre + o[0] + SIDE * (o[1] + SIDE * o[2])
    total = wp.mat33f()
    for z in range(wp.max(-1, -R - o[2]), wp.min(1, R - o[2]) + 1):
        for y in range(wp.max(-1, -R - o[1]), wp.min(1, R - o[1]) + 1):
            w = _halves(z) * _halves(y)
            for x in range(wp.max(-1, -R - o[0]), wp.min(1, R - o[0]) + 1):
                total += (w * _halves(x)) * cube[middle + x + SIDE * (y + SIDE * z)]
    return total


@wp.func
def _gather_part(
    part: Part,
    c: int,
    lattice: wp.array(dtype=wp.vec3i),
    cube: wp.array(dtype=wp.mat33f),
    centre: int,
    R: int,
):
    for e in range(part.start[c], part.start[c + 1]):
        part.values[e] = _gathered(cube, centre, R, 2 * (lattice[part.columns[e]] - lattice[c]))


@wp.kernel
def _lattice_product(
    first: wp.int32,
    runs: wp.int32,
    fine: Rows,
    fine_key: wp.array(dtype=wp.int32),
    restrict: Weights,
    coarse_lattice: wp.array(dtype=wp.vec3i),
    radius: wp.array(dtype=wp.int32),
    coarse: Rows,
    cube: wp.array(dtype=wp.mat33f),
):
    """fine_key: x + 7 y + 49 z of each fine node, so that differences of keys are places in the
    cube; radius: how far from the middle of the cube a row's blocks may be.
    """
    run = first + wp.tid()
    base = run * CUBE
    centre = base + CUBE / 2
    for c in range(run * coarse.count / runs, (run + 1) * coarse.count / runs):
        R = radius[c]
        for z in range(-R, R + 1):
            for y in range(-R, R + 1):
                for x in range(-R, R + 1):
                    cube[centre + x + SIDE * (y + SIDE * z)] = wp.mat33f()
        at = coarse_lattice[c]
        origin = 2 * (at[0] + SIDE * (at[1] + SIDE * at[2])) - centre
        for s in range(restrict.start[c], restrict.start[c + 1]):
            i = restrict.columns[s]
            w = restrict.weights[s]
            t = fine_key[i] - origin
            cube[t] = cube[t] + w * fine.middle[i]
            _add_part(fine.lower, i, w, fine_key, origin, cube)
            _add_part(fine.upper, i, w, fine_key, origin, cube)
            _add_part(fine.outer, i, w, fine_key, origin, cube)
        coarse.middle[c] = _gathered(cube, centre, R, wp.vec3i())
        _gather_part(coarse.lower, c, coarse_lattice, cube, centre, R)
        _gather_part(coarse.upper, c, coarse_lattice, cube, centre, R)
        _gather_part(coarse.outer, c, coarse_lattice, cube, centre, R)


@wp.func
def _key(place: wp.vec3i) -> int:
    return place[0] + SIDE * (place[1] + SIDE * place[2])


@wp.func
def _embed_block(
    block: wp.mat33f,
    j: int,
    prolong: Weights,
    lattice: wp.array(dtype=wp.vec3i),
    origin: int,
    cube: wp.array(dtype=wp.mat33f),
):
    """Add a fine row's block in column j to the cube of coarse blocks."""
    for p in range(prolong.start[j], prolong.start[j + 1]):
        t = _key(lattice[prolong.columns[p]]) - origin
        cube[t] = cube[t] + prolong.weights[p] * block


@wp.func
def _embed_part(
    part: Part,
    i: int,
    w: wp.float32,
    prolong: Weights,
    lattice: wp.array(dtype=wp.vec3i),
    origin: int,
    cube: wp.array(dtype=wp.mat33f),
):
    for e in range(part.start[i], part.start[i + 1]):
        _embed_block(w * part.values[e], part.columns[e], prolong, lattice, origin, cube)


@wp.func
def _take_part(
    part: Part,
    c: int,
    lattice: wp.array(dtype=wp.vec3i),
    origin: int,
    cube: wp.array(dtype=wp.mat33f),
):
    for e in range(part.start[c], part.start[c + 1]):
        part.values[e] = cube[_key(lattice[part.columns[e]]) - origin]


@wp.kernel
def _embedded_product(
    first: wp.int32,
    runs: wp.int32,
    fine: Rows,
    prolong: Weights,
    restrict: Weights,
    coarse_lattice: wp.array(dtype=wp.vec3i),
    coarse: Rows,
    cube: wp.array(dtype=wp.mat33f),
):
    """The same from nodes anywhere; here the cube holds coarse blocks."""
    run = first + wp.tid()
    base = run * CUBE
    centre = base + CUBE / 2
    for c in range(run * coarse.count / runs, (run + 1) * coarse.count / runs):
        for t in range(base, base + CUBE):
            cube[t] = wp.mat33f()
        origin = _key(coarse_lattice[c]) - centre
        for s in range(restrict.start[c], restrict.start[c + 1]):
            i = restrict.columns[s]
            w = restrict.weights[s]
            _embed_block(w * fine.middle[i], i, prolong, coarse_lattice, origin, cube)
            _embed_part(fine.lower, i, w, prolong, coarse_lattice, origin, cube)
            _embed_part(fine.upper, i, w, prolong, coarse_lattice, origin, cube)
            _embed_part(fine.outer, i, w, prolong, coarse_lattice, origin, cube)
        coarse.middle[c] = cube[centre]
        _take_part(coarse.lower, c, coarse_lattice, origin, cube)
        _take_part(coarse.upper, c, coarse_lattice, origin, cube)
        _take_part(coarse.outer, c, coarse_lattice, origin, cube)


class GalerkinProduct:
    """Computes the values of one coarse matrix from those of the matrix above it."""

    def __init__(
        self,
        level: Level,
        prolong: Any,
        restrict: Any,
        fine: Any,
        fine_lattice: np.ndarray | None,
        coarse: Any,
    ):
        """prolong, restrict: Weights; fine, coarse: Rows; fine_lattice: (nodes, 3) positions, None
        if they are anywhere.
        """
        runs = min(RUNS_CPU if device() == "cpu" else RUNS_CUDA, level.node_count)
        lattice = to_device(level.lattice, wp.vec3i)
        cube = zeros(runs * 343, wp.mat33f)
        kernel: Any
        if fine_lattice is None:
            kernel = _embedded_product
            place, limits = [prolong], []
        else:
            kernel = _lattice_product
            place = [to_device(fine_lattice @ np.array([1, 7, 49]), wp.int32)]
            limits = [to_device(level.radius, wp.int32)]
        arguments = [runs, fine, *place, restrict, lattice, *limits, coarse, cube]
        self._keep = arguments  # recorded launches hold addresses, not references
        grain = 1 if level.node_count > 50 else runs
        self._product = Recorded(kernel, runs, arguments, grain=grain)

    def run(self) -> None:
        """Recompute the coarse values."""
        self._product.run()
