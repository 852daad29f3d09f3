"""A law of one's own in three lines: the foam of Blatz and Ko, pulled to 1.6 times its length.

Its energy is mu/2 (I1 - 3 + (J^(-2 beta) - 1) / beta) with beta = nu / (1 - 2 nu). Pulled along one
axis by l, with its sides free, it narrows by exactly l^(-nu), and the nominal stress is
mu (l - l^(-1 - 2 nu)). The rollers of a grid are weak, they give by a few parts in ten thousand.
"""

import numpy as np

import pliant as pl


@pl.energy
def foam(F, p):
    """The foam of Blatz and Ko; nu is its Poisson's ratio."""
    beta = p.nu / (1.0 - 2.0 * p.nu)
    J = pl.laws.det(F)
    return p.mu / 2.0 * (pl.laws.first_invariant(F) - 3.0 + (J ** (-2.0 * beta) - 1.0) / beta)


MU, NU = 1000.0, 0.25
body = pl.GridBody(pl.shapes.box(center=(0.5, 0.25, 0.25), size=(1.0, 0.5, 0.5)), spacing=0.125)


def wall(axis, at, side):
    """What lies beyond the face x[axis] = at."""
    normal = np.zeros(3)
    normal[axis] = -side
    return pl.shapes.half_space(normal=tuple(normal), offset=-side * at + 1e-9)


def pulled(stretch):
    """The block at rest between rollers, its far end moved."""
    rollers = [pl.Fixed(wall(axis, 0.0, -1), axes="xyz"[axis]) for axis in range(3)]
    far = pl.Fixed(wall(0, 1.0, 1), (stretch - 1.0, 0.0, 0.0), axes="x")
    scene = pl.Scene(body, law=foam(mu=MU, nu=NU), gravity=(0.0, 0.0, 0.0), fixed=[*rollers, far])
    return pl.solve_static(scene, tolerance=1e-8)


u = pulled(1.6)
corner = np.argmin(np.linalg.norm(body.nodes - [1.0, 0.5, 0.5], axis=1))
narrowed = 1.0 + u[corner, 1] / 0.5
stress = pl.laws.uniaxial(foam(mu=MU, nu=NU), 1.6)[0][0]
print(f"narrows to {narrowed:.6f}, 1.6^-0.25 = {1.6**-NU:.6f}; nominal stress {stress:.2f} Pa")

assert abs(narrowed - 1.6**-NU) < 1e-3
assert abs(stress / (MU * (1.6 - 1.6 ** (-1.0 - 2.0 * NU))) - 1.0) < 1e-8
