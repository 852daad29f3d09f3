"""What a step of the corotated energy costs against one with frozen frames, in turns.

    PLIANT_DATA=... python benchmarks/default_step.py [--steps N] [CASE ...]

Both bodies move from rest; the quicker of two rounds counts, in which the models take turns, so
that a slow minute of the machine meets both. A run's first steps cost the default model more,
because its first guesses learn from the steps before them: with --steps 30 that is half of what is
measured. Required: at most 1.6.
"""

import argparse
from dataclasses import replace
from time import perf_counter

import numpy as np

from pliant.app.benchmarks import bench_scene
from pliant.dynamics.implicit import ImplicitModel
from pliant.dynamics.march import march

CASES = ("torus", "bunny", "dragon", "cuboid")
TURN = 5
ROUNDS = 2


def steps_of(scene, steps: int):
    """Times [s] of the steps of a run, one at a time, and their iterations."""
    system = ImplicitModel(scene)
    motion = march(system, system.initial_state(), until=steps + 1)
    next(motion)  # compiles
    for _ in range(steps):
        began = perf_counter()
        step = next(motion)
        yield perf_counter() - began, step.record.solution.iterations


def compare(case: str, steps: int) -> tuple[float, float, float, float]:
    """Mean milliseconds and iterations of a default and of a frozen step."""
    best = np.full(2, np.inf)
    iterations = np.zeros(2)
    for _ in range(ROUNDS):
        scene = bench_scene(case, resolution=20 if case == "cuboid" else None, ground=False)
        runs = [steps_of(replace(scene, model=m), steps) for m in ("corotated", "corotated-frozen")]
        times = np.zeros((2, 0))
        for _ in range(steps // TURN):
            block = np.array([[next(run) for _ in range(TURN)] for run in runs])
            times = np.concatenate([times, block[:, :, 0]], axis=1)
            iterations += block[:, :, 1].sum(axis=1)
        best = np.minimum(best, times.mean(axis=1))
    per_step = iterations / (ROUNDS * TURN * (steps // TURN))
    return 1e3 * best[0], 1e3 * best[1], per_step[0], per_step[1]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("cases", nargs="*", default=list(CASES))
    parser.add_argument("--steps", type=int, default=100)
    asked = parser.parse_args()
    print("case      default [ms]  frozen [ms]  ratio   iterations")
    for case in asked.cases:
        ours, frozen, i, j = compare(case, asked.steps)
        print(f"{case:<10}{ours:>11.1f}{frozen:>13.1f}{ours / frozen:>8.2f}{i:>8.1f}{j:>7.1f}",
              flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
