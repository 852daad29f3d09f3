"""Fits from starts a hundred times off: same answer as from near, and what the search costs.

python benchmarks/far_starts.py [block] [torus] [beam] [sag]
"""

import sys
import time

import pliant as pl

CLAMP = pl.Fixed(pl.shapes.box(center=(-0.05, 0, 0), size=(0.1002, 0.3, 0.3)))
MARKERS = [[0.4, 0.05, 0.0], [0.4, 0.0, 0.05], [0.2, 0.05, 0.0]]


def beam(**how):
    return pl.Scene(
        pl.GridBody(pl.shapes.box(center=(0.2, 0, 0), size=(0.4, 0.1, 0.1)), 0.025),
        pl.Material(6e4, 0.3, 1000.0, stiffness_damping=0.002),
        gravity=(0, -9.81, 2.0), fixed=[CLAMP], integrator=pl.GeneralisedAlpha(dt=0.02), **how,
    )  # fmt: skip


def tracked(scene, steps, frames, noise):
    run = pl.simulate(scene, steps)
    return scene, pl.TrackedPoints.of(run, MARKERS, noise=noise, seed=1, frames=frames)


def filmed(scene, steps, noise):
    cameras = pl.ring_of_cameras(scene, 3, width=60, height=60)
    return scene, pl.observe(pl.simulate(scene, steps), cameras, noise=noise, seed=1)


def block():
    scene = pl.Scene(
        pl.GridBody(pl.shapes.box(center=(0.06, 0, 0), size=(0.12, 0.03, 0.03)), 0.006),
        pl.Material(69e3, 0.35, 1070.0, stiffness_damping=0.002), gravity=(0, -9.81, 2.0),
        fixed=[pl.Fixed(pl.shapes.box(center=(0, 0, 0), size=(0.002, 0.04, 0.04)))],
        integrator=pl.Newmark2(dt=0.005),
    )  # fmt: skip
    return filmed(scene, 40, 5e-4)


def torus():
    scene = pl.Scene(
        pl.GridBody(pl.shapes.torus(major=1.0, minor=0.35), 0.15),
        pl.Material(2000.0, 0.3, 3.0, mass_damping=0.1, stiffness_damping=0.01),
        gravity=(4.0, -9.0, 3.0), integrator=pl.Newmark1(0.02, 0.6),
        fixed=[pl.Fixed(pl.shapes.box(center=(0, 1.35, 0), size=(1, 0.3, 1)))],
    )  # fmt: skip
    return filmed(scene, 30, 0.03)


CASES = {
    "block": block,
    "torus": torus,
    "beam": lambda: tracked(beam(), 80, None, 3e-4),
    "sag": lambda: tracked(beam(start="equilibrium"), 1, [0], 1e-4),
}


def main(names):
    for name in names or CASES:
        scene, seen = CASES[name]()
        E, nu = scene.material.youngs_modulus, scene.material.poisson_ratio
        least = None
        for factor, off in ((1.1, 0.02), (100.0, -0.2), (100.0, 0.15), (0.01, -0.2), (0.01, 0.15)):
            start = {"youngs_modulus": factor * E, "poisson_ratio": min(nu + off, 0.49)}
            began = time.process_time()
            fit = pl.reconstruct(scene, seen, start, discretisation=False)
            spent = time.process_time() - began
            least = least or spent
            found = "  ".join(f"{n} {v:.5g} +- {fit.sigma[n]:.2g}" for n, v in fit.values.items())
            sys.stdout.write(
                f"{name:6} E x{factor:<5g} nu {off:+.2f}: {found}  {'' if fit.converged else 'NO'} "
                f"{spent:6.1f} s, {spent / least:.1f} times\n"
            )
            sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
