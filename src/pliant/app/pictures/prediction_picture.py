"""What was foretold of a recording, with its band, and what was seen."""

from pathlib import Path
from typing import Any

import numpy as np

from pliant.app.pictures.report_figures import BLUE, FAINT, INK, ORANGE, blank, save, tidy
from pliant.inverse.fitting.prediction import Courses, Prediction

MOST = 4
"""Tracked points drawn."""


def draw_prediction(found: Prediction, path: Path) -> None:
    """Courses of tracked points, or the size of a film's residuals over time."""
    if found.courses is None:
        figure = blank(7.0, 3.4)
        _sizes(figure.subplots(), found)
    elif len(found.times) == 1:
        figure = blank(7.0, 3.4)
        _still(figure.subplots(), found.courses, found.noise)
    else:
        names = found.courses.names[:MOST]
        figure = blank(7.4, 1.55 * len(names) + 0.7)
        grid = figure.subplots(len(names), 1, squeeze=False, sharex=True)[:, 0]
        for k, axes in enumerate(grid):
            _course(axes, found, k)
        grid[-1].set_xlabel("time [s]", fontsize=9)
        grid[0].legend(frameon=False, fontsize=8, ncols=3, loc="lower right",
                       bbox_to_anchor=(1.0, 1.0))  # fmt: skip
    figure.tight_layout()
    save(figure, path)


def _course(axes: Any, found: Prediction, k: int) -> None:
    c = found.courses
    assert c is not None
    tidy(axes)
    axis = int(np.nanargmax(np.nanmax(c.seen[:, k], axis=0) - np.nanmin(c.seen[:, k], axis=0)))
    seen, line = c.seen[:, k, axis], c.foretold[:, k, axis]
    here = np.isfinite(line)
    base = line[here][0]
    t, line, seen = found.times[here], 1e3 * (line[here] - base), 1e3 * (seen[here] - base)
    wide = 2e3 * np.hypot(found.noise, c.band[here, k, axis])
    axes.fill_between(t, line - wide, line + wide, color=ORANGE, alpha=0.25, linewidth=0,
                      label="two error bars")  # fmt: skip
    axes.plot(t, line, color=ORANGE, linewidth=1.4, label="foretold")
    axes.plot(t, seen, ".", color=BLUE, markersize=3.5, label="seen")
    axes.set_ylabel(f"{c.names[k]} {'xyz'[axis]} [mm]", fontsize=8)


def _still(axes: Any, c: Courses, noise: float) -> None:
    """One moment: how far the points are from where they were foretold, component by component."""
    tidy(axes)
    for axis, mark in zip(range(c.seen.shape[2]), "osd", strict=False):
        x = np.arange(len(c.names)) + 0.2 * (axis - 1)
        off = 1e3 * (c.seen[0, :, axis] - c.foretold[0, :, axis])
        wide = 2e3 * np.hypot(noise, c.band[0, :, axis])
        axes.errorbar(x, np.zeros(len(x)), yerr=wide, fmt="none", ecolor=ORANGE, elinewidth=7,
                      alpha=0.35)  # fmt: skip
        axes.plot(x, off, mark, color=BLUE, markersize=4.5, label="xyz"[axis])
    axes.axhline(0.0, color=ORANGE, linewidth=1.2)
    axes.set_xticks(range(len(c.names)), c.names)
    axes.set_ylabel("seen minus foretold [mm]", fontsize=9)
    axes.set_title("bars: two error bars of the prediction", fontsize=9, color=INK)
    axes.legend(frameon=False, fontsize=8)


def _sizes(axes: Any, found: Prediction) -> None:
    tidy(axes)
    allowed = 1e3 * np.hypot(found.noise, found.frame_band)
    axes.fill_between(found.times, 0.0, 2.0 * allowed, color=ORANGE, alpha=0.2, linewidth=0,
                      label="twice what the error bars allow")  # fmt: skip
    axes.plot(found.times, allowed, color=ORANGE, linewidth=1.3, label="noise and band")
    axes.axhline(1e3 * found.noise, color=FAINT, linestyle="--", linewidth=1.0, label="noise")
    axes.plot(
        found.times, 1e3 * found.frame_rms, ".-", color=BLUE, linewidth=1.0, label="residuals"
    )
    axes.set_xlabel("time [s]", fontsize=9)
    axes.set_ylabel("size [mm]", fontsize=9)
    axes.set_ylim(bottom=0.0)
    axes.legend(frameon=False, fontsize=8)
