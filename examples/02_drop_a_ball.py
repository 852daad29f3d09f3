"""A ball falls on a floor and bounces: until it touches, Galileo knows where it is.

Newmark's first scheme with theta = 1/2 (the trapezoidal rule) is exact for a constant acceleration,
so the ball falls by g t^2 / 2 to the solver's tolerance, whatever the time step.
"""

import numpy as np

import pliant as pl
from pliant.app.pictures.picture import Studio, save_gif

body = pl.GridBody(pl.shapes.sphere(radius=0.25, center=(0.0, 1.0, 0.0)), spacing=0.1)
scene = pl.Scene(
    body,
    material=pl.Material(youngs_modulus=5000.0, poisson_ratio=0.3, density=10.0),
    obstacles=[pl.Plane(normal=(0.0, 1.0, 0.0), offset=0.0)],
    integrator=pl.Newmark1(dt=0.02, theta=0.5),
)
run = pl.simulate(scene, steps=30)
fall = run.displacements[:, :, 1].mean(axis=1)
print(f"after 0.2 s: {fall[10]:.6f} m; lowest: {fall.min():.3f} m; at the end: {fall[-1]:.3f} m")

frames = [run.nodes(i) for i in range(0, 31, 3)]
studio = Studio(scene, frames, width=240, height=180)
save_gif("drop_a_ball.gif", [studio.picture(f) for f in frames], seconds=0.1)

assert abs(fall[10] + 0.5 * 9.81 * 0.2**2) < 1e-6
assert np.isfinite(run.displacements).all()
