"""What each experiment of a joint fit says alone, beside the joint value."""

from pathlib import Path

import numpy as np

from pliant.app.pictures.report_figures import BLUE, INK, RED, blank, save, spoken, tidy
from pliant.inverse.fitting.fit import Fit

MOST = 6
"""Unknowns shown."""


def draw_opinions(fit: Fit, path: Path) -> None:
    """A panel for each shared unknown: values with total error bars, the joint one as a band."""
    shared = [x for x in fit.labels if sum(x in o.values for o in fit.opinions) > 1][:MOST]
    shared = shared or fit.labels[:1]
    height = 0.42 * len(fit.opinions) + 1.2
    figure = blank(1.6 + 3.1 * len(shared), height)
    axes = figure.subplots(1, len(shared), squeeze=False)[0]
    names = [o.name for o in fit.opinions]
    for k, (own, label) in enumerate(zip(axes, shared, strict=True)):
        tidy(own)
        value, total = fit.values[label], fit.total_sigma.get(label, fit.sigma[label])
        own.axvspan(value - total, value + total, color=BLUE, alpha=0.18, linewidth=0)
        own.axvline(value, color=BLUE, linewidth=1.4)
        said = [o for o in fit.opinions if label in o.values]
        sure = [o.total_sigma[label] for o in said if _seen(o, label)]
        for o in said:
            if _seen(o, label):
                own.errorbar(
                    o.values[label], names.index(o.name), xerr=o.total_sigma[label], fmt="o",
                    color=INK if o.agrees else RED, capsize=3, markersize=4.5, linewidth=1.3,
                )  # fmt: skip
            else:
                own.text(value, names.index(o.name), "does not see it alone", fontsize=8, color=INK,
                         ha="center", va="center")  # fmt: skip
        reach = 3.0 * max([total, *(s for s in sure if np.isfinite(s))])
        ends = [value - reach, value + reach]
        ends += [o.values[label] for o in said if _seen(o, label)]
        margin = 0.05 * (max(ends) - min(ends))
        own.set_xlim(min(ends) - margin, max(ends) + margin)
        own.set_ylim(len(names) - 0.5, -0.5)
        own.set_yticks(range(len(names)), names if k == 0 else [""] * len(names))
        own.set_title(spoken(label), fontsize=10, color=INK)
        own.locator_params(axis="x", nbins=5)
    figure.tight_layout()
    save(figure, path)


def _seen(opinion, label: str) -> bool:
    sigma = opinion.total_sigma[label]
    return bool(np.isfinite(sigma) and sigma < max(abs(opinion.values[label]), 1e-12))
