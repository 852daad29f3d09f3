"""Parts of one modulus each, cut out of a fitted field and fitted again without its penalty.

Total variation finds where a stiff or soft part lies, but takes something off its contrast, and the
data hardly mind: a softer inclusion with a soft rim moves the surface almost like a stiff one with
a sharp rim. A fit of the parts' few moduli has no such bias (the debiasing that follows an L1 fit,
Burger et al. 2018). It holds as far as the body consists of such parts; whether it does, the data
tell: a cut that explains them worse than field and penalty together is refused.
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from pliant.inverse.parameters.charts import PositiveParts
from pliant.inverse.parameters.unknown import Unknown
from pliant.inverse.parameters.unknowns import UnknownSet

CORES = (0.8, 0.7, 0.6, 0.5, 0.4)
"""Shares of a part's largest logarithmic contrast from which a cell may belong to it. Where a
blurred rim ends only the data can tell: each of these cuts is fitted, the best is kept."""

RIM = 0.1
"""The same from which a cell lies in the blurred rim of a part, and is no part of its own."""

LEAST_CONTRAST = 0.2
"""Logarithm of the contrast (1.2) below which nothing is a part."""

MOST_PARTS = 8
"""Parts beside the rest of the body; a field in more pieces is not piecewise constant."""


@dataclass(frozen=True)
class Part:
    """Cells of one modulus; value and sigma [Pa], place: mean of the cells' centres [m]."""

    cells: np.ndarray
    value: float
    sigma: float
    place: tuple[float, ...]


def cut(log_moduli: np.ndarray, pairs: np.ndarray, core: float = 0.5) -> np.ndarray:
    """The part of every cell, (cells,): 0 for the body at large, 1, 2, ... by falling contrast.

    Around the cell that differs most from the median, connected cells with at least the share
    `core` of its contrast are one part; those with a tenth are its rim. Then the same with what is
    left.
    """
    n = len(log_moduli)
    contrast = log_moduli - np.median(log_moduli)
    segment = np.zeros(n, np.int64)
    left = np.ones(n, bool)
    for number in range(1, MOST_PARTS + 1):
        peak = int(np.argmax(np.where(left, np.abs(contrast), 0.0)))
        height = contrast[peak] if left[peak] else 0.0
        if abs(height) < LEAST_CONTRAST:
            break
        share = contrast / height
        segment[_around(peak, left & (share >= core), pairs)] = number
        left &= ~_around(peak, left & (share >= RIM), pairs)
    return segment


def cuts(log_moduli: np.ndarray, pairs: np.ndarray) -> list[np.ndarray]:
    """Every different cut that has parts, one for each of CORES at most."""
    found: list[np.ndarray] = []
    for core in CORES:
        segment = cut(log_moduli, pairs, core)
        if segment.any() and not any(np.array_equal(segment, other) for other in found):
            found.append(segment)
    return found


def _around(cell: int, allowed: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Mask of the allowed cells that are connected to a cell."""
    n = len(allowed)
    own = pairs[allowed[pairs].all(axis=1)]
    graph = csr_array(coo_array((np.ones(len(own)), (own[:, 0], own[:, 1])), shape=(n, n)))
    labels = connected_components(graph, directed=False)[1]
    return allowed & (labels == labels[cell])


class FieldParts:
    """The unknowns of a fit with its field reduced to one modulus a part.

    segment: (cells,) as `cut` gives it. unknowns: the few that are left.
    """

    def __init__(self, unknowns: UnknownSet, segment: np.ndarray):
        self.segment, self._whole = segment, unknowns
        place = field_place(unknowns)
        assert place is not None
        self._field: int = place
        self._count = int(segment.max()) + 1
        members = list(unknowns.members)
        labels = tuple(f"youngs_modulus@{k}" for k in range(self._count))
        start = np.exp(self._means(unknowns.split(unknowns.start())[self._field]))
        whole = members[self._field]
        chart = PositiveParts(whole.name, start, self._count, segment)
        members[self._field] = Unknown(whole.block, chart, labels)
        known = {label for m in members for label in m.labels}
        priors = {k: v for k, v in unknowns.priors.items() if k in known}
        bounds = {k: v for k, v in unknowns.bounds.items() if k in known}
        self.unknowns = UnknownSet(tuple(members), priors, bounds)

    def gather(self, q: np.ndarray) -> np.ndarray:
        """The few from all: means of the logarithms over each part."""
        parts = self._whole.split(q)
        parts[self._field] = self._means(parts[self._field])
        return np.concatenate(parts)

    def spread(self, numbers: np.ndarray) -> np.ndarray:
        """All from the few: every cell has its part's."""
        parts = self.unknowns.split(numbers)
        parts[self._field] = parts[self._field][self.segment]
        return np.concatenate(parts)

    def own(self, numbers: np.ndarray) -> np.ndarray:
        """The parts' share of the few."""
        return self.unknowns.split(numbers)[self._field]

    def _means(self, field: np.ndarray) -> np.ndarray:
        total = np.bincount(self.segment, field, self._count)
        return total / np.maximum(np.bincount(self.segment, minlength=self._count), 1)


def field_place(unknowns: UnknownSet) -> int | None:
    """Which of the members is a modulus for every cell."""
    for k, m in enumerate(unknowns.members):
        if m.name == "youngs_modulus" and m.size > 1:
            return k
    return None


def describe(parts: list[Part]) -> list[str]:
    """The parts in words; the first is the body at large."""
    body = parts[0]
    out = [
        f"The field was cut into the body at large ({body.value:.4g} +- {body.sigma:.2g} Pa) and "
        f"{len(parts) - 1} part{'s' if len(parts) > 2 else ''}, and their moduli fitted again "
        "without the penalty: error bars hold if the parts are right."
    ]
    for k, p in enumerate(parts[1:], 1):
        place = ", ".join(f"{c:.3g}" for c in p.place)
        out.append(
            f"Part {k}: {len(p.cells)} cells around ({place}), {p.value:.4g} +- {p.sigma:.2g} Pa, "
            f"{p.value / body.value:.3g} times the body."
        )
    return out
