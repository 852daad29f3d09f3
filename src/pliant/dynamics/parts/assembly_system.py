"""The linear systems of parts that step together: a matrix for each, and what couples them."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import warp as wp

from pliant.core.launch import to_device
from pliant.core.solution import Solution
from pliant.dynamics.parts.between import PairTangent
from pliant.linalg.blocks import BlockMatrix, dot, keep_free
from pliant.linalg.pcg import Preconditioner


class Slices:
    """The parts' shares of arrays over all nodes, as views that are made once for each array."""

    def __init__(self, starts: Sequence[int]):
        self._ends = list(zip(starts[:-1], starts[1:], strict=True))
        self._kept: dict[int, tuple[wp.array, list[Any]]] = {}

    def of(self, array: wp.array) -> list[Any]:
        """Views, not kept."""
        return [array[a:b] for a, b in self._ends]

    def kept(self, array: wp.array) -> list[Any]:
        """Views of an array that lives as long as this."""
        found = self._kept.get(id(array))
        if found is None:
            found = self._kept[id(array)] = (array, self.of(array))
        return found[1]


class AssemblyMatrix:
    """blockdiag(A_1, A_2, ...) + C as an Operator: A_i of the parts, C of what is between."""

    def __init__(self, matrices: Sequence[BlockMatrix], slices: Slices):
        self.matrices, self._slices = list(matrices), slices
        self.node_count = sum(m.node_count for m in matrices)
        self.free = to_device(np.concatenate([m.free.numpy() for m in matrices]), wp.vec3d)
        self.pairs: PairTangent | None = None

    def residual(self, b: wp.array, x: wp.array, r: wp.array) -> float:
        """r = P (b - A x); returns r . r."""
        views = (self._slices.of(f) for f in (b, x, r))
        square = sum(m.residual(*own) for m, *own in zip(self.matrices, *views, strict=True))
        if self.pairs is None:
            return square
        self._add(r, x, -1.0)
        return dot(r, r)

    def curvature(self, r: wp.array, z: wp.array, w: wp.array) -> Callable[[], tuple[float, float]]:
        """A pass that makes w = P A z and returns r . z and z . w."""
        views = (self._slices.kept(f) for f in (r, z, w))
        passes = [m.curvature(*own) for m, *own in zip(self.matrices, *views, strict=True)]

        def run() -> tuple[float, float]:
            both = [run() for run in passes]
            rz, zw = (sum(part[k] for part in both) for k in range(2))
            if self.pairs is not None:
                self._add(w, z, 1.0)
                zw = dot(z, w)
            return rz, zw

        return run

    def _add(self, out: wp.array, x: wp.array, factor: float) -> None:
        """out += factor P C x."""
        assert self.pairs is not None
        out.assign(out.numpy() + factor * self.pairs.product(x.numpy()))
        keep_free(out, self.free)


class AssemblyPreconditioner:
    """Each part's own, as if nothing coupled them."""

    def __init__(self, own: Sequence[Preconditioner], slices: Slices):
        self.own, self._slices = list(own), slices

    def update(self, matrix: AssemblyMatrix, *, fresh: bool = False) -> None:
        """The matrices have changed."""
        for preconditioner, part in zip(self.own, matrix.matrices, strict=True):
            preconditioner.update(part, fresh=fresh)

    def apply(self, r: wp.array, z: wp.array) -> None:
        """z = approximately A^{-1} r; r and z live as long as this."""
        views = zip(self.own, self._slices.kept(r), self._slices.kept(z), strict=True)
        for preconditioner, own_r, own_z in views:
            preconditioner.apply(own_r, own_z)

    def report(self, solution: Solution) -> None:
        """Tell how a solve of all parts went."""
        for preconditioner in self.own:
            preconditioner.report(solution)

    def forget(self) -> None:
        """Recompute all at the next update."""
        for preconditioner in self.own:
            preconditioner.forget()
