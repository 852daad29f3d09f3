"""The total error bar of a fit: noise, grid, time step and model.

    total^2 = noise^2 + grid^2 + step^2 + model^2

Grid and step: the same fit with spacing or time step r times as large ends at v_r instead of v; a
method of order p then leaves v about |v - v_r| / (r^p - 1) off (Richardson 1911). Where no more is
sure than an order p' below it, two standard deviations cover |v - v_r| / (r^p' - 1) as well. Model:
the square s^2 of what neighbouring residuals share is no noise. The part of it that the repeats do
not explain (it falls as r^(2p) where spacing or step is its cause) is the model's; as much as is
left in n residuals of noise sigma may have been taken up by an unknown, which moves it by up to
sqrt(n) s / sigma of its own standard deviations (Cauchy-Schwarz).
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from pliant.inverse.fitting.identifiability import WILD, shared_by_neighbours
from pliant.inverse.motion.evaluation import Evaluation
from pliant.inverse.parameters.unknowns import UnknownSet

log = logging.getLogger(__name__)

GRID, TIME_STEP = "grid", "time step"
"""What a repeat is coarser in."""

GRID_ORDER = 2.0
"""Of displacements by trilinear cells and linear or better tetrahedra, in the mean square."""

SURE_GRID_ORDER = 1.0
"""What a grid that is coarse for a body surely has: ends of walls are of first order, and cells are
cut elsewhere on every grid. First frequency of a torus held at its top, off by 2.1, 2.2, 0.8 and
0.9 % at 3, 4, 6 and 8 cells across (held by springs alone 2.5, 1.5, 0.6, 0.5 %): by second order
alone, eight cells and four would tell 0.4 % (0.35 %)."""


@dataclass(frozen=True)
class Repeat:
    """A fit with spacing or time step `ratio` times as large, by a method of some order.

    q: (p,) where it ended; pattern [m^2]: the square that neighbouring residuals share there.
    sure: the order that can be relied on, `order` if None. parts: the misfit there,
    of each experiment.
    """

    kind: str
    ratio: float
    order: float
    q: np.ndarray
    pattern: float
    sure: float | None = None
    parts: Sequence[Evaluation] = field(default=(), repr=False)

    @property
    def share(self) -> float:
        """Standard deviation of a value over its change by the repeat."""
        expected = 1.0 / (self.ratio**self.order - 1.0)
        if self.sure is None:
            return expected
        return max(expected, 0.5 / (self.ratio**self.sure - 1.0))


@dataclass(frozen=True)
class ErrorBudget:
    """Standard deviations by cause, (p,) each in the unknowns' own units.

    causes: "noise", "model" and those of the repeats that there were. pattern [m^2]: the square
    that neighbouring residuals share; unexplained [m^2]: the part of it that no repeat explains,
    by the method's order; lasting [m^2]: the part that remains if it may fall as r^p only, as it
    does where spacing or step are too coarse for the order to show.
    extrapolated: (p,) values at spacing and step zero, none without repeats.
    """

    causes: dict[str, np.ndarray]
    pattern: float = 0.0
    unexplained: float = 0.0
    lasting: float = 0.0
    extrapolated: np.ndarray | None = field(default=None, repr=False)

    @property
    def total(self) -> np.ndarray:
        """(p,): root of the sum of squares."""
        return np.sqrt(sum(np.square(c) for c in self.causes.values()))

    @property
    def discretisation(self) -> np.ndarray | None:
        """(p,) of grid and time step; None without repeats."""
        own = [c for k, c in self.causes.items() if k in (GRID, TIME_STEP)]
        return np.sqrt(sum(np.square(c) for c in own)) if own else None


def shared_square(e: Evaluation, noise: float) -> float:
    """Mean square [m^2] that neighbouring residuals have in common, strangers left out."""
    limit = WILD * noise
    near = e.usable[np.abs(e.usable) < limit]
    return shared_by_neighbours(e, limit) * float(np.mean(near**2)) if len(near) else 0.0


def error_budget(
    unknowns: UnknownSet,
    q: np.ndarray,
    e: Evaluation,
    sigma: np.ndarray,
    noise: float,
    repeats: Sequence[Repeat],
) -> ErrorBudget:
    """The budget at a minimum; e: its evaluation, sigma: (p,) by noise alone."""
    values = unknowns.values(q)
    causes = {"noise": sigma}
    pattern = shared_square(e, noise)
    left, lasting, limit = pattern, pattern, q.copy()
    for r in repeats:
        finer = r.ratio**r.order - 1.0
        causes[r.kind] = np.abs(values - unknowns.values(r.q)) * r.share
        limit += (q - r.q) / finer  # in free coordinates: no bound is left behind
        growth = max(r.pattern - pattern, 0.0)
        left -= growth / (r.ratio ** (2.0 * r.order) - 1.0)
        lasting -= growth / (r.ratio**r.order - 1.0)
    left, lasting = max(left, 0.0), max(lasting, 0.0)
    log.info("shared squares [m^2]: %s, of repeats %s", pattern, [r.pattern for r in repeats])
    extrapolated = unknowns.values(limit) if repeats else None
    causes["model"] = sigma * np.sqrt(len(e.usable) * left) / max(noise, 1e-300)
    return ErrorBudget(causes, pattern, left, lasting, extrapolated)
