"""The dense inverse of a hierarchy's coarsest matrix."""

import numpy as np
from scipy.linalg.blas import dger  # pyright: ignore[reportAttributeAccessIssue]

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
        inverse = _gauss_jordan(scaled + shift * np.eye(len(part)))
        if inverse is not None:
            out[np.ix_(part, part)] = inverse / root[:, None] / root[None, :]
            break
        shift *= 10.0  # an indefinite matrix: conjugate gradients will say so
    return out


def _gauss_jordan(A: np.ndarray) -> np.ndarray | None:
    """Inverse of a positive matrix of a few hundred rows; None if a pivot is not positive.

    Not LAPACK: its threads fight ours over the cores, and its bits depend on how many there are.
    Those of an update by one column and one row do not.
    """
    B = np.array(A, order="F")
    for k in range(len(B)):
        pivot = B[k, k]
        if not pivot > 0.0:
            return None
        row, column = B[k] / pivot, B[:, k].copy()
        B = dger(-1.0, column, row, a=B, overwrite_a=1)
        B[k] = row
        B[:, k] = -column / pivot
        B[k, k] = 1.0 / pivot
    return 0.5 * (B + B.T)
