"""How much a residual counts: squares, or robust losses that bound what an outlier can do."""

from dataclasses import dataclass

import numpy as np

from pliant.core.errors import BadInput


@dataclass(frozen=True)
class Loss:
    """rho(r) and the weight rho'(r) / r, both for residuals [m] with standard deviation sigma.

    kind "squares": r^2 / 2 sigma^2. "huber": linear beyond cutoff sigma. "tukey": constant beyond
    cutoff sigma.
    """

    sigma: float
    kind: str = "huber"
    cutoff: float = 3.0

    def __post_init__(self):
        if self.kind not in ("squares", "huber", "tukey"):
            raise BadInput(f"loss must be 'squares', 'huber' or 'tukey', not '{self.kind}'.")

    def __call__(self, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values (m,) and weights (m,) so that the derivative of the value is weight * r."""
        s2 = self.sigma**2
        z = np.abs(r) / self.sigma
        if self.kind == "squares":
            return 0.5 * z**2, np.full(len(r), 1.0 / s2)
        c = self.cutoff
        if self.kind == "huber":
            value = np.where(z <= c, 0.5 * z**2, c * z - 0.5 * c**2)
            return value, np.where(z <= c, 1.0, c / np.maximum(z, 1e-300)) / s2
        inside = np.clip(1.0 - (z / c) ** 2, 0.0, None)
        return c**2 / 6.0 * (1.0 - inside**3), inside**2 / s2

    def slope(self, z: np.ndarray) -> np.ndarray:
        """Second derivative (m,) of the value by z = r / sigma."""
        if self.kind == "squares":
            return np.ones(len(z))
        u2 = (z / self.cutoff) ** 2
        inside = u2 <= 1.0
        if self.kind == "huber":
            return inside.astype(float)
        return np.where(inside, (1.0 - u2) * (1.0 - 5.0 * u2), 0.0)
