"""Vectors of a plane as vectors of space: kernels know only three components."""

import numpy as np
from numpy.typing import ArrayLike


def in_space(vectors: ArrayLike) -> np.ndarray:
    """A copy of vectors (..., 2 or 3) as (..., 3); those of a plane have no third component."""
    given = np.asarray(vectors, float)
    out = np.zeros((*given.shape[:-1], 3))
    out[..., : given.shape[-1]] = given
    return out
