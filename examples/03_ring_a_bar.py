"""A clamped bar rings: its lowest frequency is Euler and Bernoulli's, f = 1.875^2 / (2 pi) c.

c = sqrt(E I / (rho A L^4)), with I / A = h^2 / 12 for a square of edge h. The scene comes from a
description, as in a scene file, and is saved as one.
"""

import numpy as np

import pliant as pl
from pliant.app.describing.scene_files import build_scene, load_scene

E, rho, L, h = 2000.0, 1.0, 4.0, 0.4
scene = build_scene(
    {
        "title": "a bar that rings",
        "shape": {"type": "box", "center": [L / 2.0, 0.0, 0.0], "size": [L, h, h]},
        "body": {"kind": "grid", "spacing": 0.1},
        "material": {"youngs_modulus": E, "poisson_ratio": 0.0, "density": rho},
        "fixed": [{"region": {"type": "box", "center": [0, 0, 0], "size": [0.002, 1.0, 1.0]}}],
    }
)
scene.save("bar.toml")
lowest = pl.modes(load_scene("bar.toml"), count=2).frequencies[0]
beam = 1.8751**2 / (2.0 * np.pi) * np.sqrt(E * h**2 / 12.0 / (rho * L**4))
print(f"lowest frequency {lowest:.4f} Hz, beam theory {beam:.4f} Hz")

assert abs(lowest / beam - 1.0) < 0.05
