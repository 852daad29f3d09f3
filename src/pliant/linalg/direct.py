"""A direct solver on the free components: for small systems, and to check the iterative ones."""

import warnings

import numpy as np
import warp as wp
from scipy.sparse.linalg import splu

from pliant.core.solution import Outcome, Solution
from pliant.linalg.blocks import BlockMatrix

ACCEPTED = 1e-8
"""Relative residual up to which the factors count as good; a singular matrix leaves far more."""


class DirectSolver:
    """Sparse LU factors (SuperLU) of the free part of a matrix, symmetric mode.

    Memory and time grow as nodes^(4/3) and nodes^2: meant for a few thousand nodes.
    """

    def __init__(self, matrix: BlockMatrix):
        self.matrix = matrix
        self._free = np.flatnonzero(matrix.free.numpy().reshape(-1) > 0.0)
        A = matrix.to_scipy().tocsr()
        self._rows = A[self._free]
        self._A = self._rows[:, self._free].tocsc()
        self._factors = None
        self._outcome = Outcome.CONVERGED
        if not np.isfinite(self._A.data).all():
            self._outcome = Outcome.NOT_FINITE
        elif len(self._free):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    self._factors = splu(
                        self._A,
                        permc_spec="MMD_AT_PLUS_A",
                        diag_pivot_thresh=0.0,
                        options={"SymmetricMode": True},
                    )
                if (self._factors.U.diagonal() <= 0.0).any():  # pivots of L D L^T
                    self._outcome = Outcome.INDEFINITE
            except RuntimeError:  # SuperLU: "Factor is exactly singular"
                self._outcome = Outcome.INDEFINITE

    def solve(self, b: wp.array, x: wp.array) -> Solution:
        """A x = b on the free components; held components of x are kept and taken into account."""
        given = x.numpy().reshape(-1)
        right = b.numpy().reshape(-1)[self._free]
        target = ACCEPTED * float(np.linalg.norm(right))
        if self._factors is None:
            exact = len(self._free) == 0
            outcome = self._outcome
            return Solution(x, outcome, 0, 0.0 if exact else float("nan"), target)
        held = given.copy()
        held[self._free] = 0.0
        load = right - self._rows @ held
        y = self._factors.solve(load)
        y += self._factors.solve(load - self._A @ y)  # one refinement: the LU does not pivot
        residual = float(np.linalg.norm(load - self._A @ y))
        outcome = self._outcome
        if not np.isfinite(y).all():
            outcome = Outcome.INDEFINITE if outcome.ok else outcome
        else:
            held[self._free] = y
            x.assign(held.reshape(-1, 3))
            if outcome.ok and residual > max(target, ACCEPTED * float(np.linalg.norm(load))):
                outcome = Outcome.STAGNATED
        return Solution(x, outcome, 1, residual, target)
