"""What one experiment of a joint fit says alone, and the table of all that do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from pliant.inverse.fitting.registering import Registration


@dataclass(frozen=True)
class Opinion:
    """What one experiment says alone: values, sigma (noise) and total_sigma by its own labels.

    noise, rms [m]: of its residuals, at the joint minimum. apart: how far it is from the others in
    the unknown in which it is farthest, in error bars of the difference; agrees: whether that is
    chance. registration: how its recording was moved before the fit. q, covariance: its own free
    coordinates, (p_k,), and theirs by noise and model, (p_k, p_k). coarser: of each coarser repeat,
    q there and the share of its change that is left as an error here.
    """

    name: str
    values: dict[str, float]
    sigma: dict[str, float]
    total_sigma: dict[str, float]
    noise: float
    rms: float
    apart: float = 0.0
    agrees: bool = True
    registration: Registration | None = None
    q: np.ndarray = field(default_factory=lambda: np.zeros(0), repr=False)
    covariance: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)), repr=False)
    coarser: Sequence[tuple[np.ndarray, float]] = field(default=(), repr=False)


def opinion_rows(
    labels: Sequence[str],
    values: Mapping[str, float],
    total: Mapping[str, float],
    opinions: Sequence[Opinion],
) -> list[list[str]]:
    """Head and rows as text: the joint value and each experiment's own, with total sigma.

    Only what more than one experiment has an opinion on; (blind) where it does not see it alone.
    """
    rows = [["unknown", "joint", *(f"alone: {o.name}" for o in opinions)]]
    for label in labels:
        if sum(label in o.values for o in opinions) < 2:
            continue
        row = [label, _number(values[label], total.get(label))]
        for o in opinions:
            if label not in o.values:
                row.append("")
            elif not abs(o.total_sigma[label]) < max(abs(o.values[label]), 1e-12):
                row.append("(blind)")
            else:
                row.append(_number(o.values[label], o.total_sigma[label]))
        rows.append(row)
    rows.append(["residuals, noise [m]", "", *(f"{o.rms:.2g}, {o.noise:.2g}" for o in opinions)])
    far = ["from the others", "", *(f"{o.apart:.1f} error bars" for o in opinions)]
    rows.append(far)
    if not all(o.agrees for o in opinions):
        rows.append(["", "", *("" if o.agrees else "DISAGREES" for o in opinions)])
    return rows


def _number(value: float, sigma: float | None) -> str:
    return f"{value:.5g}" + ("" if sigma is None else f" +- {sigma:.2g}")
