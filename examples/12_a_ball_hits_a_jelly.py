"""A ball hits a block of jelly on a floor: two bodies of one scene file, examples/jelly.toml.

Until they touch, Galileo knows where the ball is. From then on it is slowed down; nothing but
damping, friction and the time step takes energy.
"""

from pathlib import Path

import pliant as pl

scene = pl.load_scene(Path(__file__).parent / "jelly.toml")
run = pl.simulate(scene, steps=14)
ball = slice(scene.body.starts[1], None)  # nodes of the parts are one after the other
fall = run.displacements[:, ball, 1].mean(axis=1)
e = run.energies
print(f"after 4 ms: {fall[1]:.5f} m; after 56 ms: {fall[-1]:.5f} m")
print(f"energy at the start {e.total[0]:.1f} J, at the end {e.total[-1]:.1f} J")

free = -2.0 * run.times - 0.5 * 9.81 * run.times**2
assert abs(fall[1] - free[1]) < 1e-4
assert fall[-1] > free[-1] + 2e-3  # the jelly slows it down
assert 0.8 * e.total[0] < e.total[-1] < e.total[0]
