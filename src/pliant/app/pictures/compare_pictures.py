"""One scene under several models, side by side: a film, and a figure with its curves."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pliant.app.folders.comparing import Compared
from pliant.app.pictures.picture import Studio
from pliant.app.pictures.report_figures import blank, save, tidy
from pliant.app.render.picture_files import save_gif

COLOURS = ("#333333", "#c4552d", "#2d6ec4", "#2d9c6e", "#8c5fc4", "#b08a1e")

MOST_FRAMES = 60
"""Of the film."""


def draw_compared(found: Sequence[Compared], folder: Path, *, width: int = 300) -> list[str]:
    """Write compare.png and compare.gif; returns their names."""
    shortest = min(c.run.steps for c in found)
    frames = np.unique(np.linspace(0, shortest, min(shortest + 1, MOST_FRAMES)).round()).astype(int)
    studios = _studios(found, frames, width)
    film = [
        np.concatenate([_picture(s, c, int(k)) for s, c in zip(studios, found, strict=True)], 1)
        for k in frames
    ]
    seconds = float(np.clip(2.0 * found[0].run.times[shortest], 2.0, 8.0))
    save_gif(folder / "compare.gif", film, seconds=seconds / len(film))
    farthest = int(np.argmax(found[0].tip[: shortest + 1]))
    strip = [_picture(s, c, farthest) for s, c in zip(studios, found, strict=True)]
    save(_figure(found, strip), folder / "compare.png")
    return ["compare.png", "compare.gif"]


def _studios(found: Sequence[Compared], frames: np.ndarray, width: int) -> list[Studio]:
    """The same camera, light and scale for all of them."""
    motion = [
        c.run.scene.body.nodes + c.run.displacements[k]
        for c in found
        for k in frames[:: max(1, len(frames) // 12)]
    ]
    return [
        Studio(c.run.scene, motion, width=width, height=round(0.8 * width), samples=2)
        for c in found
    ]


def _picture(studio: Studio, one: Compared, frame: int) -> np.ndarray:
    nodes = one.run.scene.body.nodes + one.run.displacements[frame]
    caption = f"{one.model}  {one.run.times[frame]:.2f} s"
    return studio.picture(nodes, caption=caption, scaled=False)


def _figure(found: Sequence[Compared], strip: list[np.ndarray]) -> Any:
    wide = max(9.0, 2.6 * len(found))
    figure = blank(wide, 2.3 * wide / len(found) * 0.36 + 3.4)
    top = 3.2 / figure.get_size_inches()[1]
    for i, picture in enumerate(strip):
        axes = figure.add_axes((i / len(found), top, 1.0 / len(found), 0.99 - top))
        axes.imshow(picture)
        axes.set_axis_off()
    bottom, height = 0.5 / figure.get_size_inches()[1], 0.78 * top
    left = figure.add_axes((0.07, bottom, 0.4, height))
    right = figure.add_axes((0.57, bottom, 0.4, height))
    for one, colour in zip(found, COLOURS * 9, strict=False):
        t = one.run.times
        left.plot(t, one.tip, color=colour, linewidth=1.6, label=one.model)
        right.plot(t, one.run.energies.elastic, color=colour, linewidth=1.6)
        right.plot(t, one.run.energies.kinetic, color=colour, linewidth=1.0, linestyle=":")
    left.set_ylabel("tip [m]")
    right.set_ylabel("energy [J]: elastic, kinetic (dotted)")
    for axes in (left, right):
        axes.set_xlabel("time [s]")
        tidy(axes)
    left.legend(frameon=False, fontsize=8)
    return figure
