"""A rod hangs under its own weight: it is longer by rho g L^2 / (2 E).

The stress at a height y is the weight below it, rho g (L - y), so the strain is linear and the
displacement a parabola: linear cells meet it at their nodes, whatever their number.
"""

import numpy as np

import pliant as pl

E, rho, g, L, h = 5000.0, 10.0, 9.81, 1.0, 0.2
body = pl.GridBody(pl.shapes.box(center=(h / 2, L / 2, h / 2), size=(h, L, h)), spacing=0.1)
scene = pl.Scene(
    body,
    material=pl.Material(E, poisson_ratio=0.0, density=rho),
    model="linear",
    gravity=(0.0, -g, 0.0),
    fixed=[pl.Fixed(pl.shapes.half_space(normal=(0.0, -1.0, 0.0), offset=-L + 1e-9))],
)
u = pl.solve_static(scene, tolerance=1e-10)
sunk = -body.displacement_at(np.array([[h / 2, 0.0, h / 2]]), u)[0, 1]
exact = rho * g * L**2 / (2.0 * E)
print(f"its lower end sinks by {1e3 * sunk:.6f} mm, in theory by {1e3 * exact:.6f} mm")

assert abs(sunk / exact - 1.0) < 1e-6
