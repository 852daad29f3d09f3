"""Pictures of tracked points: where they were seen and where the simulation has them."""

from typing import Any

import numpy as np

from pliant.app.pictures import report_figures as figures

MOST_POINTS = 6
"""Drawn, one a row."""


def tracks_over_time(e: Any):
    """The courses of the tracked points, and what is left; e: the report's Evidence."""
    run = e.run
    times, seen, fitted = e.tracks(e.fitted)
    early, _, start = e.tracks(e.start)
    names, dim = run.seen.names[:MOST_POINTS], run.scene.dim
    figure = figures.blank(3.3 * dim, 1.5 * len(names) + 0.6)
    grid = figure.subplots(len(names), dim, squeeze=False, sharex=True)
    for row, name in enumerate(names):
        for axis in range(dim):
            axes = grid[row, axis]
            figures.tidy(axes)
            base = fitted[0, row, axis]
            axes.plot(early, 1e3 * (start[:, row, axis] - base), color=figures.FAINT, lw=0.8)
            axes.plot(times, 1e3 * (fitted[:, row, axis] - base), color=figures.ORANGE, lw=1.3)
            axes.plot(times, 1e3 * (seen[:, row, axis] - base), ".", color=figures.BLUE, ms=2.5)
            if axis == 0:
                axes.set_ylabel(f"{name} [mm]", fontsize=8)
            if row == 0:
                axes.set_title("xyz"[axis], fontsize=9)
            if row == len(names) - 1:
                axes.set_xlabel("time [s]", fontsize=8)
    figure.tight_layout()
    more = len(run.seen.names) - len(names)
    yield (
        "tracks", figure, "What was tracked and what was recovered",
        "Dots: tracked positions, corrected as the fit found; line: the recovered motion; grey: "
        "the start. Lengths from the first recovered position."
        + (f" {more} more points are not drawn." if more > 0 else ""),
    )  # fmt: skip
    r = (fitted - seen)[..., :dim]
    known = np.isfinite(r).all(axis=2)
    squares = np.where(known[..., None], r, 0.0) ** 2
    rms = np.sqrt(squares.sum(axis=(1, 2)) / np.maximum(dim * known.sum(axis=1), 1))
    statistics = figures.residual_statistics(r[known].reshape(-1), run.fit.noise, times, rms)
    yield (
        "statistics", statistics, "Is what is left noise?",
        "Left, all components of what is left against a normal distribution; right, their size "
        "over time and the noise (dashed).",
    )  # fmt: skip
