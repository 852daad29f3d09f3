"""A soft torus hangs by its top: how far does its bottom sink?

At rest the hanging parts stretch under their own weight. The clamp carries all of it, so the
weight the engine sees is density x volume x gravity, and the volume of a torus is known:
2 pi^2 R r^2.
"""

import numpy as np

import pliant as pl

R, r = 1.0, 0.35
shape = pl.shapes.torus(major=R, minor=r)
body = pl.GridBody(shape, spacing=0.1)
scene = pl.Scene(
    body,
    material=pl.Material(youngs_modulus=2000.0, poisson_ratio=0.3, density=1.5),
    gravity=(0.0, -9.81, 0.0),
    fixed=[pl.Fixed(pl.shapes.box(center=(0.0, 1.35, 0.0), size=(1.0, 0.3, 1.0)))],
)
u = pl.solve_static(scene)
bottom = body.displacement_at(np.array([[0.0, -1.35, 0.0]]), u)[0]
print(f"{len(body.nodes)} nodes; the bottom sinks by {-bottom[1]:.4f} m")

assert bottom[1] < 0.0
assert abs(body.volume / (2.0 * np.pi**2 * R * r**2) - 1.0) < 0.02
