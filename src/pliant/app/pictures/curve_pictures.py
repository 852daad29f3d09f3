"""Measured curves and fitted laws: stress over stretch, one panel for each kind of loading."""

from pathlib import Path
from typing import Any

import numpy as np

from pliant.app.pictures.report_figures import (
    BLUE,
    FAINT,
    GREEN,
    INK,
    ORANGE,
    RED,
    blank,
    save,
    tidy,
)
from pliant.fem.laws.specimen import LOADINGS
from pliant.inverse.curves.curve_fit import CurveFits

COLOURS = (BLUE, ORANGE, GREEN, RED, "#7a4fb0", "#1d9aa8", "#a8741d", "#6b7480")
SHOWN = 6
"""Laws drawn, the best first; more could not be told apart."""

POINTS = 241


def draw_curves(fits: CurveFits, path: Path) -> None:
    """Write the picture."""
    kinds = [k for k in LOADINGS if any(c.loading == k for c in fits.curves)]
    figure = blank(1.9 + 3.6 * len(kinds), 3.7)
    right = 1.0 - 1.65 / (1.9 + 3.6 * len(kinds))
    grid = figure.add_gridspec(
        1, len(kinds), left=0.62 / (1.9 + 3.6 * len(kinds)), right=right, bottom=0.15, top=0.89,
        wspace=0.24,
    )  # fmt: skip
    factor, unit = _unit(fits)
    axes = None
    for k, kind in enumerate(kinds):
        axes = figure.add_subplot(grid[0, k])
        _panel(axes, fits, kind, factor)
        axes.set_title(kind.replace("-", " "), fontsize=10, color=INK)
        axes.set_xlabel("stretch", fontsize=9)
        if k == 0:
            axes.set_ylabel(f"nominal stress [{unit}]", fontsize=9)
    assert axes is not None
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(
        handles[::-1], labels[::-1], loc="center left", bbox_to_anchor=(right + 0.008, 0.52),
        frameon=False, fontsize=8.5, labelcolor=INK,
    )  # fmt: skip
    save(figure, path)


def _unit(fits: CurveFits) -> tuple[float, str]:
    largest = max(float(np.abs(c.stress).max()) for c in fits.curves)
    for factor, unit in ((1e6, "MPa"), (1e3, "kPa")):
        if largest >= 0.1 * factor:
            return factor, unit
    return 1.0, "Pa"


def _panel(axes: Any, fits: CurveFits, kind: str, factor: float) -> None:
    tidy(axes)
    curves = [c for c in fits.curves if c.loading == kind]
    low = min(1.0, *(float(c.stretch.min()) for c in curves))
    high = max(1.0, *(float(c.stretch.max()) for c in curves))
    stretch = np.linspace(low, high, POINTS)
    measured = np.concatenate([c.stress for c in curves]) / factor
    drawn = [f for f in fits if f.law is not None][:SHOWN]
    for fit, colour in reversed(list(zip(drawn, COLOURS, strict=False))):
        stress = fit.stress(kind, stretch, incompressible=fits.incompressible) / factor
        label = f"{fit.name}{' (unstable)' if fit.unstable else ''}"
        axes.plot(
            stretch, stress, color=colour, linewidth=2.0 if fit is fits.best else 1.2, label=label,
            zorder=2.5 if fit is fits.best else 2.0,
        )  # fmt: skip
    for number, curve in enumerate(curves):
        axes.plot(
            curve.stretch, curve.stress / factor, "o^sD"[number % 4], color=INK, markersize=3.6,
            markerfacecolor="white", markeredgewidth=1.0, zorder=3,
            label="measured" if number == 0 else None,
        )  # fmt: skip
    # a law that leaves the data far behind must not shrink them
    span = float(np.ptp(np.append(measured, 0.0)))
    axes.set_ylim(min(measured.min(), 0.0) - 0.08 * span, max(measured.max(), 0.0) + 0.15 * span)
    axes.axhline(0.0, color=FAINT, linewidth=0.6)
