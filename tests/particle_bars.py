"""The bar of the tests of particles: 1 x 0.2 x 0.2 m of tetrahedra, clamped, bent by its weight."""

from itertools import permutations

import numpy as np

import pliant as pl


def cubes(counts, size):
    """Nodes and tetrahedra of a box of cubes, six each around the same diagonal (Kuhn)."""
    ticks = [np.linspace(0.0, s, n + 1) for s, n in zip(size, counts, strict=True)]
    nodes = np.stack(np.meshgrid(*ticks, indexing="ij"), -1).reshape(-1, 3)
    index = np.arange(len(nodes)).reshape([n + 1 for n in counts])
    cells = []
    for order in permutations(range(3)):
        corner = np.zeros((4, 3), int)
        for k, axis in enumerate(order):
            corner[k + 1] = corner[k]
            corner[k + 1, axis] = 1
        cells.append(np.stack([
            index[tuple(slice(o, o + n) for o, n in zip(c, counts, strict=True))].ravel()
            for c in corner
        ], axis=1))  # fmt: skip
    return nodes, np.concatenate(cells)


def bar(counts=(20, 4, 4), *, modulus=2e6, dt=1.0 / 60.0, **more):
    """The scene; Poisson's ratio 0.3, density 1000, no damping."""
    body = pl.TetBody(cubes(counts, (1.0, 0.2, 0.2)), order=1)
    given = {
        "material": pl.Material(modulus, 0.3, 1000.0),
        "fixed": [pl.Fixed(pl.shapes.box(center=(0.0, 0.1, 0.1), size=(1e-3, 1.0, 1.0)))],
        "integrator": pl.GeneralisedAlpha(dt=dt),
    }
    return pl.Scene(body, **(given | more))


def tip(run):
    """Mean height of the end over the frames, (frames,) [m]."""
    end = run.scene.body.nodes[:, 0] > 1.0 - 1e-9
    return run.displacements[:, end, 1].mean(axis=1)
