"""Bodies dropped on a heap: what finding their contacts costs of a step, and how deep they overlap.

    python benchmarks/heap_of_bodies.py [bodies] [steps]

Balls, boxes and rings of 200 to 700 cells fall into a box without a lid. Prints the share of broad
and narrow phase in the steps (issue: at most 15 %) and the deepest overlap at the end in cells
(issue: a quarter).
"""

import sys
from time import perf_counter

import numpy as np

import pliant as pl
from pliant.dynamics.march import march
from pliant.dynamics.parts import assembly
from pliant.dynamics.parts.pair_forces import touches

SPACING = 0.1
SHAPES = (
    pl.shapes.sphere(radius=0.4),
    pl.shapes.box(size=(0.9, 0.6, 0.7)),
    pl.shapes.torus(major=0.36, minor=0.17),
    pl.shapes.box(size=(0.6, 0.6, 0.6)),
)


def heap(count):
    """Layers of nine bodies above each other, each a little beside its place."""
    bodies = [pl.GridBody(shape, SPACING) for shape in SHAPES]
    rng = np.random.default_rng(1)
    parts = []
    for i in range(count):
        layer, place = divmod(i, 9)
        at = np.array([1.15 * (place % 3 - 1), 0.45 + 0.95 * layer, 1.15 * (place // 3 - 1)])
        at[[0, 2]] += rng.uniform(-0.04, 0.04, 2)
        stuff = pl.Material(rng.choice([1e5, 3e5]), 0.35, 1000.0, stiffness_damping=2e-3)
        parts.append(pl.Part(f"body{i}", bodies[i % 4], stuff, position=tuple(at)))
    walls = [
        pl.Plane(normal, -1.75)
        for normal in ((1, 0, 0), (-1, 0, 0), (0, 0, 1), (0, 0, -1))
    ]  # fmt: skip
    return pl.Scene(
        parts=parts, obstacles=[pl.Plane(), *walls], integrator=pl.ImplicitEuler(0.01),
        contact=pl.ContactLaw(friction=0.2, slip_speed=0.02), tolerance=1e-6,
    )  # fmt: skip


class Clock:
    """Adds up the seconds in a function."""

    def __init__(self, function):
        self.function, self.seconds = function, 0.0

    def __call__(self, *given, **named):
        """The function's own answer."""
        began = perf_counter()
        try:
            return self.function(*given, **named)
        finally:
            self.seconds += perf_counter() - began


def deepest(model, state):
    """Largest overlap over the smaller spacing of the two parts."""
    pairs = model.pairs_at(state)
    d = touches(pairs, pairs.coordinates(model.rest + state.u.numpy())).d
    return float(np.max(-d, initial=0.0)) / SPACING


def main(count=30, steps=500):
    """Run and print."""
    scene = heap(count)
    cells = [len(own.body.cells) for own in scene.scenes]
    print(f"{count} bodies of {min(cells)} to {max(cells)} cells, {len(scene.body.nodes)} nodes")
    search = assembly.find = Clock(assembly.find)
    joining = assembly.joined = Clock(assembly.joined)
    model = scene.make_model()
    search.seconds = joining.seconds = 0.0
    began = perf_counter()
    for step in march(model, model.initial_state(), until=steps):
        if step.number % max(steps // 10, 1) == 0 or step.number == steps:
            spent = perf_counter() - began
            found = search.seconds + joining.seconds
            state = step.after
            speed = float(np.abs(state.v.numpy()).max())
            print(
                f"step {step.number}: {1e3 * spent / step.number:.0f} ms a step, finding contacts "
                f"{found / spent:.1%}, {len(model.pairs_at(state))} pairs, "
                f"deepest overlap {deepest(model, state):.3f} cells, fastest {speed:.3g} m/s",
                flush=True,
            )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
