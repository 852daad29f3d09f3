"""Error bars of a robust fit: what outliers cost, although they count little.

A residual beyond the loss's cutoff pulls with a bounded force, but it does pull, and it holds
nothing: with z = r / s, psi = rho'(z) and its slope, the estimate of a robust fit varies by

    kappa = mean(psi^2) / mean(psi')^2

times the s^2 (J^T J)^-1 of least squares (Huber 1964). The Hessian that the optimiser steps with
counts an outlier by its weight psi / z instead, as if it held something: with 5 % of outliers its
error bars are a quarter too small. s is the noise, or the residuals' spread where that is far
larger: residuals that are too large as a whole are another matter (see `verdict`).
"""

import numpy as np

from pliant.inverse.measuring.losses import Loss
from pliant.inverse.motion.evaluation import Evaluation

ALIKE = 1.2
"""Spread over noise up to which outliers alone explain it; 5 % of them make 1.06."""

FEWEST = 30
"""Residuals from which their shape can be told."""


def robust_growth(e: Evaluation) -> float:
    """By how much the variance exceeds the one that the weighted Hessian tells; at least 1."""
    r = e.usable
    if len(r) < FEWEST:
        return 1.0
    scale = e.loss.sigma if e.spread <= ALIKE * e.loss.sigma else e.spread
    own = Loss(scale, e.loss.kind, e.loss.cutoff)
    weight = scale**2 * own(r)[1]
    z = r / scale
    slope = float(np.mean(own.slope(z)))
    if e.loss.kind == "squares" or not slope > 0.0:
        return 1.0
    kappa = float(np.mean((weight * z) ** 2)) / slope**2
    return max(1.0, kappa * float(np.mean(weight)))


def information(e: Evaluation) -> np.ndarray:
    """(p, p): inverse of the covariance of q by noise, outliers and priors."""
    H = e.model[2]
    if e.prior is None:
        return H / robust_growth(e)
    prior = np.diag(e.prior[2])
    return (H - prior) / robust_growth(e) + prior
