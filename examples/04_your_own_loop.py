"""A loop of one's own: a beam is shaken at its clamp until it rings, then let be.

The clamp is moved step by step at the beam's lowest frequency. When it stops, the tip swings on at
that frequency; a snapshot taken there comes back to the bit, however often it is needed.
"""

import numpy as np

import pliant as pl

shape = pl.shapes.box(center=(0.05, 0.0, 0.0), size=(0.1, 0.02, 0.02))
end = pl.shapes.box(center=(-0.01, 0.0, 0.0), size=(0.0201, 0.1, 0.1))
scene = pl.Scene(
    pl.GridBody(shape, spacing=0.01), pl.Material(2.5e5, 0.45, 1070.0), gravity=(0.0, 0.0, 0.0),
    fixed=[pl.Fixed(end)], integrator=pl.GeneralisedAlpha(dt=0.002),
)  # fmt: skip
lowest = pl.modes(scene, 1).frequencies[0]

sim = pl.Simulation(scene)
tip = np.argmax(scene.body.nodes[:, 0])
while sim.time < 4.0 / lowest:
    ahead = sim.time + scene.dt
    sim.step(motions={0: (0.0, 2e-4 * np.sin(2.0 * np.pi * lowest * ahead), 0.0)})
ringing = sim.snapshot()

heights = []
for _ in range(400):
    sim.step()
    heights.append(sim.positions()[tip, 1])
crossings = np.flatnonzero(np.diff(np.sign(heights - np.mean(heights))))
found = 0.5 * (len(crossings) - 1) / (scene.dt * (crossings[-1] - crossings[0]))
print(f"the tip swings at {found:.2f} Hz, the lowest mode at {lowest:.2f} Hz")
assert abs(found / lowest - 1.0) < 0.02

sim.restore(ringing)
sim.step()
assert sim.positions()[tip, 1] == heights[0]
