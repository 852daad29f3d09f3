"""Pictures and films of natural modes: each swings once about the rest shape."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from pliant.app.pictures.picture import Studio
from pliant.app.render.picture_files import save_gif, save_png
from pliant.dynamics.modes import Modes
from pliant.dynamics.scene import Scene

SWING = 0.1
"""Largest displacement drawn, as a share of the body's longest side: a mode has no size."""

FRAMES = 11
"""Pictures of half a period; the other half shows the same ones backwards."""

SECONDS = 1.6
"""A period on the screen, whatever it is in truth."""


def draw_modes(
    scene: Scene, found: Modes, folder: Path, *, width: int = 480, height: int = 360
) -> Iterator[list[str]]:
    """Write mode_01.png and mode_01.gif and so on; yields the names of each mode as it is there."""
    for i, frequency in enumerate(found.frequencies):
        shape = found.shapes[i]
        extent = float(np.ptp(scene.body.nodes, axis=0).max())
        shape = shape * (SWING * extent / float(np.linalg.norm(shape, axis=1).max()))
        phases = np.cos(np.linspace(0.0, np.pi, FRAMES))
        motion = [scene.body.nodes + c * shape for c in phases]
        studio = Studio(scene, motion, width=width, height=height, samples=2)
        caption = f"mode {i + 1}: {frequency:.4g} Hz"
        half = [studio.picture(nodes, caption=caption, scaled=False) for nodes in motion]
        frames = [*half, *half[-2:0:-1]]
        names = [f"mode_{i + 1:02d}.png", f"mode_{i + 1:02d}.gif"]
        save_png(folder / names[0], half[0])
        save_gif(folder / names[1], frames, seconds=SECONDS / len(frames))
        yield names
