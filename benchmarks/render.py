"""Frames a second of the renderer: 640 x 480 pixels, the dragon's surface, level set and slice.

    PLIANT_DATA=folder python benchmarks/render.py        (the torus without PLIANT_DATA)

Prints for each style the processor seconds of a frame, how much of them the kernels take (those are
split over the threads), and the time on the wall. On a machine that does other things too the wall
says little; two free cores need the rest plus half of the kernels.
"""

import os
import time
from pathlib import Path

import numpy as np

import pliant as pl
from pliant.app.picture import Studio
from pliant.core import launch

FRAMES = 5


def body():
    folder = os.environ.get("PLIANT_DATA")
    if folder:
        return pl.GridBody(pl.load_shape(Path(folder) / "sdf_dragon_56x54x28.npz"))
    return pl.GridBody(pl.shapes.torus(major=1.0, minor=0.35), 0.06)


def main() -> None:
    pl.set_threads(1)  # processor time of one thread is the time of the work itself
    scene = pl.Scene(body())
    x = scene.body.nodes
    y = x[:, 1] - x[:, 1].min()
    u = np.zeros_like(x)
    u[:, 0], u[:, 2] = 0.15 * y**2, 0.1 * y
    print(f"{scene.body}, {len(scene.body.surface.facets)} triangles")
    for style, samples in (("surface", 2), ("surface", 3), ("field", 2), ("slice", 2)):
        studio = Studio(scene, [x, x + u], style=style, samples=samples)
        studio.picture(x + u)
        in_kernels = [0.0]
        plain = launch.wp.launch

        def timed(*args, plain=plain, total=in_kernels, **kwargs):
            begun = time.process_time()
            result = plain(*args, **kwargs)
            total[0] += time.process_time() - begun
            return result

        launch.wp.launch = timed
        begun, wall = time.process_time(), time.perf_counter()
        for k in range(FRAMES):
            studio.picture(x + u * (k + 1) / FRAMES)
        spent = (time.process_time() - begun) / FRAMES
        wall = (time.perf_counter() - wall) / FRAMES
        launch.wp.launch = plain
        kernels = in_kernels[0] / FRAMES
        print(
            f"{style:8s} {samples} samples: {spent:.3f} s of processor, {kernels:.3f} in kernels, "
            f"{wall:.3f} s on the wall; two free cores: {1.0 / (spent - kernels / 2):.1f} frames/s"
        )


if __name__ == "__main__":
    main()
