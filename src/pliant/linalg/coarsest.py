"""The dense inverse of a hierarchy's coarsest matrix."""

from functools import cache

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri  # pyright: ignore[reportAttributeAccessIssue]
from threadpoolctl import ThreadpoolController

REGULARISATION = 1e-6
"""Share of its diagonal added to the coarsest matrix, which is singular for a body that floats
freely in statics; single precision has rounded it by more than a tenth of this."""


def regularised_inverse(A: np.ndarray, free: np.ndarray) -> np.ndarray:
    """Inverse of A + REGULARISATION diag(A) on the free components, zero elsewhere."""
    out = np.zeros_like(A)
    part = np.flatnonzero(free)
    if len(part) == 0:
        return out
    B = A[np.ix_(part, part)]
    root = np.sqrt(np.maximum(np.diag(B), np.finfo(np.float32).tiny))
    scaled = B / root[:, None] / root[None, :]
    shift = REGULARISATION
    while shift < 1e6 and np.isfinite(scaled).all():
        inverse = _inverse(scaled + shift * np.eye(len(part)))
        if inverse is not None:
            out[np.ix_(part, part)] = inverse / root[:, None] / root[None, :]
            break
        shift *= 10.0  # an indefinite matrix: conjugate gradients will say so
    return out


@cache
def _libraries() -> ThreadpoolController:
    """The BLAS that SciPy has loaded; looking for it takes milliseconds."""
    return ThreadpoolController()


def _inverse(A: np.ndarray) -> np.ndarray | None:
    """Inverse of a positive matrix of a few hundred rows; None if it is not positive.

    By one thread: LAPACK's own fight ours over the cores, and its bits depend on how many there
    are.
    """
    with _libraries().limit(limits=1, user_api="blas"):
        factor, failed = dpotrf(A, lower=1, clean=1)
        if failed == 0:
            factor, failed = dpotri(factor, lower=1, overwrite_c=1)
    if failed != 0:
        return None
    lower = np.tril(factor, -1)
    return lower + lower.T + np.diag(np.diag(factor))
