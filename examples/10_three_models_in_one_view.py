"""Three models of one beam, side by side from one camera: linear, corotated and neo-Hookean.

The end of a clamped beam is turned by a quarter about its axis. Linear elasticity takes a turned
point for one that moved along the tangent: of a quarter turn it keeps sin 90 = 1 radius at the end
and half of that halfway, where a corner then lies sqrt(1 + 1/4) = 1.118 times as far from the axis.
The other two models know what a rotation is.
"""

import numpy as np

import pliant as pl
from pliant.app.pictures.picture import Studio, save_png

LENGTH, SIDE = 1.0, 0.2
body = pl.GridBody(
    pl.shapes.box(center=(0.5 * LENGTH, 0.0, 0.0), size=(LENGTH, SIDE, SIDE)), spacing=0.05
)


def slab(x):
    """A region around a section."""
    return pl.shapes.box(center=(x, 0.0, 0.0), size=(0.02, 1.0, 1.0))


def quarter_turn(points, t):
    """Displacement of the far end."""
    x, y, z = points.T
    return np.stack([0.0 * x, -z - y, y - z], axis=1)


def twisted(**model):
    """The beam at rest with its end turned."""
    scene = pl.Scene(
        body, pl.Material(youngs_modulus=1e5, poisson_ratio=0.3), gravity=(0.0, 0.0, 0.0),
        fixed=[pl.Fixed(slab(0.0)), pl.Fixed(slab(LENGTH), quarter_turn)], **model,
    )  # fmt: skip
    return scene, body.nodes + pl.solve_static(scene)


runs = {
    "linear": twisted(model="linear"),
    "corotated": twisted(model="corotated"),
    "neo-hookean": twisted(law="neo-hookean"),
}

views = [points for _, points in runs.values()]
studio = Studio(runs["linear"][0], views, width=320, height=240)  # one camera and scale for all
save_png("three_models.png", np.concatenate([studio.picture(points) for points in views], axis=1))

corner = np.argmin(np.linalg.norm(body.nodes - [0.5 * LENGTH, 0.5 * SIDE, 0.5 * SIDE], axis=1))
rest = np.hypot(*body.nodes[corner, 1:])
for name, (_, points) in runs.items():
    print(f"{name:12} a corner halfway: {np.hypot(*points[corner, 1:]) / rest:.3f} of its distance")

distances = [np.hypot(*points[corner, 1:]) / rest for _, points in runs.values()]
assert abs(distances[0] - np.sqrt(1.25)) < 0.01
assert max(abs(d - 1.0) for d in distances[1:]) < 0.02
