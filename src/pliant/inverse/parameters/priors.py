"""What is known of a value before any data."""

from dataclasses import dataclass

import numpy as np

from pliant.core.errors import BadInput
from pliant.core.numbers import LARGEST, SMALLEST


@dataclass(frozen=True)
class Prior:
    """Gaussian on a value, mean +- sigma; or log-normal: log(value) = log(mean) +- sigma.

    Adds r^2 / 2 to the cost, r = (value - mean) / sigma or log(value / mean) / sigma, so that it
    weighs as much as one observation whose noise is sigma.
    """

    mean: float
    sigma: float
    logarithmic: bool = False

    def __post_init__(self):
        if not (abs(self.mean) <= LARGEST and SMALLEST <= self.sigma <= LARGEST):
            raise BadInput(
                f"A prior needs a finite mean and a positive sigma, not {self.mean} +- "
                f"{self.sigma}."
            )
        if self.logarithmic and self.mean <= 0.0:
            raise BadInput(f"A log-normal prior needs a positive mean, not {self.mean}.")

    def residual(self, value: float) -> tuple[float, float]:
        """r and its derivative by the value."""
        if self.logarithmic:
            return float(np.log(value / self.mean)) / self.sigma, 1.0 / (value * self.sigma)
        return (float(value) - self.mean) / self.sigma, 1.0 / self.sigma

    @classmethod
    def parse(cls, text: str) -> "Prior":
        """From "2000+-200" (Gaussian) or "2000*/1.1" (log-normal: within a factor 1.1)."""
        for sign, logarithmic in (("+-", False), ("*/", True)):
            mean, found, spread = text.partition(sign)
            if found:
                try:
                    sigma = float(spread)
                    if logarithmic and sigma <= 1.0:
                        break
                    return cls(
                        float(mean), float(np.log(sigma)) if logarithmic else sigma, logarithmic
                    )
                except ValueError:
                    break
        raise BadInput(
            f"'{text}' is no prior: write MEAN+-SIGMA, or MEAN*/FACTOR with a factor above 1."
        )
