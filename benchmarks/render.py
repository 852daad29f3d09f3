"""Frames a second of the renderer: 640 x 480 pixels, the dragon's surface, level set and slice.

    PLIANT_DATA=folder python benchmarks/render.py        (the torus without PLIANT_DATA)

Prints for each style the processor seconds and the seconds on the wall of a frame, and the load: on
a machine that does other things too the wall says little.
"""

import os
import time
from pathlib import Path

import numpy as np

import pliant as pl
from pliant.app.pictures.picture import Studio

FRAMES = 9


def body():
    folder = os.environ.get("PLIANT_DATA")
    if folder:
        return pl.GridBody(pl.load_shape(Path(folder) / "sdf_dragon_56x54x28.npz"))
    return pl.GridBody(pl.shapes.torus(major=1.0, minor=0.35), 0.06)


def main() -> None:
    scene = pl.Scene(body())
    x = scene.body.nodes
    y = x[:, 1] - x[:, 1].min()
    u = np.zeros_like(x)
    u[:, 0], u[:, 2] = 0.15 * y**2, 0.1 * y
    print(f"{scene.body}, {len(scene.body.surface.facets)} triangles")
    for style, samples in (("surface", 2), ("surface", 3), ("field", 2), ("slice", 2)):
        studio = Studio(scene, [x, x + u], style=style, samples=samples)
        studio.picture(x + u)
        walls, begun = [], time.process_time()
        for k in range(FRAMES):
            start = time.perf_counter()
            studio.picture(x + u * (k + 1) / FRAMES)
            walls.append(time.perf_counter() - start)
        spent, wall = (time.process_time() - begun) / FRAMES, float(np.median(walls))
        print(
            f"{style:8s} {samples} samples: {spent:.3f} s of processor, {wall:.3f} s on the wall, "
            f"{1.0 / wall:.1f} frames/s; load {os.getloadavg()[0]:.1f}"
        )


if __name__ == "__main__":
    main()
