"""A rod, half of it ten times stiffer, is pulled: the two halves are springs in series.

A material may have regions, each a shape with numbers of its own (or an array with a value for
every cell): a cell is of the region that holds its middle. With Poisson's ratio 0 the rod is a
chain of springs: its end moves by F / A (L1 / E1 + L2 / E2), to the solver's tolerance, on any
grid.
"""

import numpy as np

import pliant as pl

L, h, stress = 2.0, 0.25, 10.0
body = pl.GridBody(pl.shapes.box(center=(L / 2, h / 2, h / 2), size=(L, h, h)), spacing=0.125)
stiff = pl.MaterialRegion(
    pl.shapes.half_space(normal=(-1.0, 0.0, 0.0), offset=-1.25), youngs_modulus=20000.0
)

start = pl.shapes.half_space(normal=(1.0, 0.0, 0.0), offset=1e-9)
end = pl.shapes.half_space(normal=(-1.0, 0.0, 0.0), offset=-L + 1e-9)
scene = pl.Scene(
    body,
    material=pl.Material(2000.0, poisson_ratio=0.0, regions=[stiff]),
    model="linear",
    gravity=(0.0, 0.0, 0.0),
    fixed=[pl.Fixed(start)],
    loads=[pl.Traction(end, (stress, 0.0, 0.0))],
)
u = pl.solve_static(scene, tolerance=1e-10)
moved = body.displacement_at(np.array([[L, h / 2, h / 2]]), u)[0, 0]
springs = stress * (1.25 / 2000.0 + 0.75 / 20000.0)
print(f"the end moves by {moved:.8f} m, two springs in series by {springs:.8f} m")

assert abs(moved / springs - 1.0) < 1e-6
