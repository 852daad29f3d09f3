"""Newton's linear systems without a matrix: products along directions (seed 004, eq. 4.37).

The matrix assembled some iterations ago only preconditions; each product with the exact tangent is
a pass over the cells (fem.directional_tangent), so no iteration assembles and no multigrid is set
up anew. It pays where few products are needed per assembly: see docs/laws.md for measurements.
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

from collections.abc import Callable

import numpy as np
import warp as wp

from pliant.core.launch import launch, zeros
from pliant.core.solution import Outcome, Solution
from pliant.dynamics.contact import Contact
from pliant.dynamics.contact_points import PointData, carried
from pliant.linalg.blocks import combine, dot, keep_free
from pliant.linalg.pcg import Preconditioner

Product = Callable[[wp.array, wp.array], None]
"""product(p, out): out = A p on all components."""


@wp.kernel
def _point_products(
    first: wp.int32,
    p: PointData,
    block: wp.array(dtype=wp.mat33d),
    x: wp.array(dtype=wp.vec3d),
    out: wp.array(dtype=wp.vec3d),
):
    i = first + wp.tid()
    out[i] = block[i] * carried(p, i, x)


def add_contact_product(contact: Contact, x: wp.array, out: wp.array) -> None:
    """out += what `Contact.add_to_matrix` would put into the matrix, times x."""
    force = zeros(contact.count, wp.vec3d)
    launch(_point_products, contact.count, [contact.points, contact.block, x, force])
    contact.gather(force, out)


class DirectionalGradients:
    """Preconditioned conjugate gradients over products instead of a matrix."""

    def __init__(self, node_count: int):
        self._r, self._z, self._p, self._q = (zeros(node_count, wp.vec3d) for _ in range(4))

    def solve(
        self, product: Product, preconditioner: Preconditioner, free: wp.array, b: wp.array,
        x: wp.array, *, relative: float, max_iterations: int,
    ) -> Solution:
        """Improve x until |b - A x| <= relative * its start, over the free components."""
        r, z, p, q = self._r, self._z, self._p, self._q

        def masked(y, out):
            product(y, out)
            keep_free(out, free)

        masked(x, q)
        combine(r, (1.0, b), (-1.0, q))
        keep_free(r, free)
        norm = float(np.sqrt(dot(r, r)))
        target, history = relative * norm, [norm]
        rz, iterations = 0.0, 0

        def ended(outcome: Outcome) -> Solution:
            return Solution(x, outcome, iterations, history[-1], target, history)

        while history[-1] > target:
            if iterations >= max_iterations:
                return ended(Outcome.ITERATION_LIMIT)
            preconditioner.apply(r, z)
            new = dot(r, z)
            combine(p, (1.0, z), (new / rz if iterations else 0.0, p))
            masked(p, q)
            curvature = dot(p, q)
            if not np.isfinite(curvature):
                return ended(Outcome.NOT_FINITE)
            if curvature <= 0.0 or new <= 0.0:
                return ended(Outcome.INDEFINITE)
            step = new / curvature
            combine(x, (1.0, x), (step, p))
            combine(r, (1.0, r), (-step, q))
            rz = new
            iterations += 1
            history.append(float(np.sqrt(dot(r, r))))
        return ended(Outcome.CONVERGED)
