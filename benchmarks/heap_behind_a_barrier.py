"""Bodies dropped on a heap on a height map, kept apart by a barrier or by springs.

    python benchmarks/heap_behind_a_barrier.py [bodies] [steps] [barrier|springs] [state.npz]

Balls, boxes and rings of 200 to 700 cells fall into a bowl. Prints the time of a step, Newton's
iterations, the fastest node, and after every step of the barrier the toolkit's own answer whether
any surfaces intersect (required: never). With a file the run goes on from where it was left.
"""

import sys
from pathlib import Path
from time import perf_counter

import numpy as np

import pliant as pl
from pliant.dynamics.march import march

SPACING = 0.1
SHAPES = (
    pl.shapes.sphere(radius=0.4),
    pl.shapes.box(size=(0.9, 0.6, 0.7)),
    pl.shapes.torus(major=0.36, minor=0.17),
    pl.shapes.box(size=(0.6, 0.6, 0.6)),
)


def ground(wide=2.4, cell=0.3):
    """A bowl with waves in it."""
    at = np.arange(-wide, wide + 0.5 * cell, cell)
    x, z = np.meshgrid(at, at, indexing="ij")
    rise = np.maximum(np.maximum(np.abs(x), np.abs(z)) - 1.6, 0.0)
    heights = 2.5 * rise + 0.08 * np.sin(3.0 * x) * np.cos(2.5 * z)
    return pl.shapes.height_field(heights, cell, origin=(-wide, 0.0, -wide))


def heap(count, kind="barrier"):
    """Layers of nine bodies above each other, each a little beside its place."""
    bodies = [pl.GridBody(shape, SPACING) for shape in SHAPES]
    rng = np.random.default_rng(1)
    parts = []
    for i in range(count):
        layer, place = divmod(i, 9)
        at = np.array([1.05 * (place % 3 - 1), 0.6 + 0.95 * layer, 1.05 * (place // 3 - 1)])
        at[[0, 2]] += rng.uniform(-0.04, 0.04, 2)
        stuff = pl.Material(rng.choice([1e5, 3e5]), 0.35, 1000.0, stiffness_damping=2e-3)
        parts.append(pl.Part(f"body{i}", bodies[i % 4], stuff, position=tuple(at)))
    law = pl.ContactLaw(kind=kind, friction=0.2, slip_speed=0.02)
    return pl.Scene(
        parts=parts, obstacles=[pl.Obstacle(ground(), SPACING)],
        integrator=pl.ImplicitEuler(0.01), contact=law, tolerance=1e-6,
    )  # fmt: skip


def main(count=30, steps=500, kind="barrier", file=None):
    """Run and print."""
    scene = heap(int(count), kind)
    cells = [len(own.body.cells) for own in scene.scenes]
    model = scene.make_model()
    nodes = model.node_count
    print(f"{count} bodies of {min(cells)} to {max(cells)} cells, {nodes} nodes", flush=True)
    state, done, crossed = model.initial_state(), 0, 0
    if file and Path(file).exists():
        kept = np.load(file)
        done, crossed = int(kept["done"]), int(kept["crossed"])
        arrays = {k: kept[k] for k in kept.files if k not in ("done", "crossed", "t")}
        state = model.restored(arrays, float(kept["t"]))
    began, before = perf_counter(), len(model.newton_records)
    for step in march(model, state, number=done, until=int(steps)):
        state = step.after
        if model.barrier is not None:
            crossed += model.barrier.surface.intersects(state.u.numpy())
        if step.number % 5 == 0 or step.number == int(steps):
            newton = [r.iterations for r in model.newton_records[before:]]
            linear = sum(r.solver_iterations for r in model.newton_records[before:])
            spent = perf_counter() - began
            print(
                f"step {step.number}: {spent / (step.number - done):.2f} s a step, "
                f"{np.mean(newton):.1f} iterations of {linear / max(sum(newton), 1):.1f}, "
                f"{crossed} steps with intersections, {model.inverted(state)} cells inverted, "
                f"fastest {np.abs(state.v.numpy()).max():.3g} m/s",
                flush=True,
            )
            if file:
                numbers = {"done": step.number, "crossed": crossed, "t": state.t}
                np.savez(file, **model.saved(state), **numbers)


if __name__ == "__main__":
    main(*sys.argv[1:])
