"""The main job, small: a swinging torus is filmed with noise, and its stiffness comes back.

Six cameras of 60 x 60 pixels, depth noise of half a voxel. The fit starts 10 % off and is not told
which point is which; what it finds must lie within three of its own sigmas of the truth.
"""

import pliant as pl

body = pl.GridBody(pl.shapes.torus(major=1.0, minor=0.35), spacing=0.2)
scene = pl.Scene(
    body,
    material=pl.Material(2000.0, 0.3, 3.0, mass_damping=0.1, stiffness_damping=0.01),
    gravity=(4.0, -9.0, 3.0),
    fixed=[pl.Fixed(pl.shapes.box(center=(0.0, 1.35, 0.0), size=(1.0, 0.3, 1.0)))],
    integrator=pl.Newmark1(dt=0.02, theta=0.6),
)
run = pl.simulate(scene, steps=20)
cameras = pl.ring_of_cameras(scene, 6, width=60, height=60)
seen = pl.observe(run, cameras, noise=0.5 * body.spacing, seed=1)
fit = pl.reconstruct(scene, seen, unknowns={"youngs_modulus": 2200.0}, discretisation=False)
print(fit)

found, sigma = fit.values["youngs_modulus"], fit.sigma["youngs_modulus"]
assert abs(found - 2000.0) < 3.0 * sigma
assert sigma < 0.02 * 2000.0
