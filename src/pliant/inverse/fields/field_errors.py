"""Error bars of a field: the diagonal of (H + L)^-1 from a few products with H.

From pairs (s_i, H s_i) that the optimiser has met, H is approximated by Nystroem's formula

    H ~ Y (S^T Y)^-1 Y^T,    Y = H S,

which is exact on the span of S and never above H, so that variances are never too small by it. Then

    (H + L)^-1 = L^-1 - L^-1 Y (S^T Y + Y^T L^-1 Y)^-1 Y^T L^-1                        (Woodbury).

L is the Hessian of the penalty and the priors at the result: what the data do not see is as
uncertain as the penalty lets it be. Low-rank posteriors: Bui-Thanh et al. 2013.
"""

from collections.abc import Sequence

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.linalg import splu

SHIFT = 1e-4
"""Share of L's mean diagonal added to it: a penalty on differences does not know the mean."""

DENSE = 6_000
"""Unknowns up to which the diagonal of L^-1 is computed exactly; beyond, by random probes."""

PROBES = 128
"""Random signs for the diagonal of a large L^-1: each is off by some 10 per cent."""


def standard_deviations(
    pairs: Sequence[tuple[np.ndarray, np.ndarray]], L: sparse.csr_array
) -> np.ndarray:
    """(p,) of the free coordinates; NaN where there is nothing to tell it from."""
    n = len(L.diagonal())
    mean = float(L.diagonal().mean())
    if not pairs or not mean > 0.0:
        return np.full(n, np.nan)
    lu = splu(sparse.csc_array(L + SHIFT * mean * sparse.eye_array(n)))
    variance = _inverse_diagonal(lu, n)
    S = np.stack([s for s, _ in pairs], axis=1)
    Y = np.stack([y for _, y in pairs], axis=1)
    scale = np.linalg.norm(S, axis=0)
    S, Y = S / scale, Y / scale
    G = S.T @ Y
    G = 0.5 * (G + G.T)  # tangent and adjoint solves are transposes to their tolerance only
    values, vectors = linalg.eigh(G)
    good = values > 1e-9 * values.max()
    B = Y @ (vectors[:, good] / np.sqrt(values[good]))  # H ~ B B^T
    Z = lu.solve(B)
    core = linalg.cholesky(np.eye(Z.shape[1]) + B.T @ Z, lower=True)
    reduced = linalg.solve_triangular(core, Z.T, lower=True)
    return np.sqrt(np.maximum(variance - (reduced**2).sum(axis=0), 0.0))


def _inverse_diagonal(lu, n: int) -> np.ndarray:
    if n <= DENSE:
        out = np.empty(n)
        for first in range(0, n, 500):
            part = np.arange(first, min(first + 500, n))
            unit = np.zeros((n, len(part)))
            unit[part, np.arange(len(part))] = 1.0
            out[part] = lu.solve(unit)[part, np.arange(len(part))]
        return out
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (n, PROBES))
    return np.maximum((signs * lu.solve(signs)).mean(axis=1), 0.0)
