"""What conjugate gradients need of a matrix, and a matrix that is known only by its products."""

from collections.abc import Callable
from typing import Protocol

import warp as wp

from pliant.linalg.blocks import combine, dot, keep_free

Product = Callable[[wp.array, wp.array], None]
"""product(x, out): out = A x on all components."""


class Operator(Protocol):
    """A symmetric operator A on the free components of nodal vectors; a BlockMatrix is one.

    P is the mask of the free components.
    """

    @property
    def node_count(self) -> int:
        """Number of nodes."""
        ...

    @property
    def free(self) -> wp.array:
        """(nodes,) of vec3d, 1 (free) or 0 (held)."""
        ...

    def residual(self, b: wp.array, x: wp.array, r: wp.array) -> float:
        """r = P (b - A x); returns r . r."""
        ...

    def curvature(self, r: wp.array, z: wp.array, w: wp.array) -> Callable[[], tuple[float, float]]:
        """A pass that makes w = P A z and returns r . z and z . w."""
        ...


class ProductOperator:
    """An operator without a matrix; product and free may be exchanged between solves."""

    def __init__(self, product: Product, free: wp.array):
        self.product, self.free = product, free

    @property
    def node_count(self) -> int:
        """Number of nodes."""
        return self.free.shape[0]

    def residual(self, b: wp.array, x: wp.array, r: wp.array) -> float:
        """r = P (b - A x); returns r . r."""
        self.product(x, r)
        combine(r, (1.0, b), (-1.0, r))
        keep_free(r, self.free)
        return dot(r, r)

    def curvature(self, r: wp.array, z: wp.array, w: wp.array) -> Callable[[], tuple[float, float]]:
        """A pass that makes w = P A z and returns r . z and z . w."""

        def run() -> tuple[float, float]:
            self.product(z, w)
            keep_free(w, self.free)
            return dot(r, z), dot(z, w)

        return run
