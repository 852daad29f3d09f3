"""A jelly cube as particles: dropped on the floor, and a free bar that keeps its spin.

Position based dynamics takes the same scene as finite elements; the model is one word. A free body
has no reason to turn more slowly: its angular momentum stays what it was.
"""

import numpy as np

import pliant as pl

cube = pl.GridBody(pl.shapes.box(center=(0.0, 0.5, 0.0), size=(0.4, 0.4, 0.4)), spacing=0.1)
drop = pl.Scene(
    cube, pl.Material(youngs_modulus=2e4, poisson_ratio=0.3, density=1000.0, mass_damping=2.0),
    obstacles=[pl.Plane()], integrator=pl.GeneralisedAlpha(dt=1.0 / 60.0),
    model="position-based", numbers={"substeps": 10},
)  # fmt: skip
heights = cube.surface.positions(cube.nodes + pl.simulate(drop, 60).displacements[-1])[:, 1]
print(f"after a second the cube lies {1e3 * heights.min():.2f} mm above the floor")

bar = pl.GridBody(pl.shapes.box(size=(0.6, 0.2, 0.2)), spacing=0.1)
spun = pl.Scene(
    bar, pl.Material(youngs_modulus=2e4, poisson_ratio=0.3, density=1000.0),
    gravity=(0.0, 0.0, 0.0), initial_spin=(0.0, 1.0, 4.0), model="position-based",
    integrator=pl.GeneralisedAlpha(dt=1.0 / 60.0), numbers={"substeps": 10},
)  # fmt: skip
model = spun.make_model()
run = pl.simulate(spun, 60, system=model)


def spin(frame):
    """Angular momentum [kg m^2/s]."""
    return model.masses @ np.cross(bar.nodes + run.displacements[frame], run.velocities[frame])


lost = np.linalg.norm(spin(-1) - spin(0)) / np.linalg.norm(spin(0))
print(f"the bar has lost {lost:.1e} of its angular momentum in a second")

assert lost < 1e-10
assert -1e-3 < heights.min() < 1e-3
