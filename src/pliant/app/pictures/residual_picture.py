"""One image of a compressed film: what was seen, what the scene predicts, and what is left."""

from pathlib import Path

import numpy as np

from pliant.app.folders.compressed_film import Compressed
from pliant.app.pictures.report_figures import INK, RESIDUAL_COLOURS, blank, save
from pliant.core.lengths import length, length_unit


def draw_residual(found: Compressed, path: Path) -> None:
    """Write the picture."""
    seen, predicted, played = (np.where(i > 0.0, i, np.nan) for i in found.example)
    left = seen - predicted
    low, high = (float(f(seen)) for f in (np.nanmin, np.nanmax))
    figure = blank(11.0, 2.6)
    small = 3.0 * max(found.spread, found.error, 1e-12)
    panels = (
        ("seen", seen, (low, high), "viridis"),
        ("predicted by the scene", predicted, (low, high), "viridis"),
        (f"left, {length(found.spread)} where most are", left, (-small, small), RESIDUAL_COLOURS),
        ("error after playing", played - seen, (-found.error or -1e-12, found.error or 1e-12),
         RESIDUAL_COLOURS),
    )  # fmt: skip
    for k, (title, image, ends, colours) in enumerate(panels):
        factor, unit = length_unit(ends[1])
        axes = figure.add_axes((0.005 + 0.25 * k, 0.03, 0.185, 0.84))
        shown = axes.imshow(
            image / factor, cmap=colours, vmin=ends[0] / factor, vmax=ends[1] / factor
        )
        axes.set_xticks([])
        axes.set_yticks([])
        axes.set_facecolor("#e3e7ec")
        axes.set_title(title, fontsize=9, color=INK)
        bar = figure.colorbar(shown, cax=figure.add_axes((0.2 + 0.25 * k, 0.12, 0.008, 0.66)))
        bar.ax.tick_params(labelsize=7)
        bar.ax.set_title(unit, fontsize=8, color=INK)
    save(figure, path)
