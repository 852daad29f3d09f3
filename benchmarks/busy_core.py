"""A step while another process keeps one of the cores busy: all threads against one, in turns.

    python benchmarks/busy_core.py [--case torus] [--rounds N] [--json]

The ratio is the median over rounds of the time of a block of steps with all threads over that with
one, both with the busy process beside them, so that a slow minute of the machine meets both.
Required: at most 1.3. The ratio without the busy process is printed beside it: what the second
thread is good for.
"""

import argparse
import json
import multiprocessing
import os
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter, sleep

import numpy as np

import pliant as pl
from pliant.app.benchmarks import bench_scene
from pliant.core.launch import thread_count
from pliant.dynamics.implicit import ImplicitModel
from pliant.dynamics.march import march

BLOCK = 5
"""Steps of a turn."""


def spin(core: int) -> None:
    """Keep a core busy until ended, as a program of its own (Linux shares by session)."""
    os.setsid()
    os.sched_setaffinity(0, {core})
    value = 1.0
    while True:
        value = value * 1.0000001 % 7.0


@contextmanager
def busy_core() -> Iterator[int]:
    """A process that keeps the last core busy; it ends with the block."""
    core = max(os.sched_getaffinity(0))
    child = multiprocessing.get_context("spawn").Process(target=spin, args=(core,), daemon=True)
    child.start()
    sleep(1.0)  # it imports, then spins
    try:
        yield core
    finally:
        child.kill()
        child.join()


class Run:
    """A run of a scene with a number of threads, advanced in blocks."""

    def __init__(self, scene: pl.Scene, threads: int):
        self.threads = threads
        pl.set_threads(threads)  # launches that repeat are cut when they are made
        self.system = ImplicitModel(scene)
        self.motion = march(self.system, self.system.initial_state())
        self.block()  # compiles

    def block(self) -> float:
        """Seconds a step over the next block of steps."""
        pl.set_threads(self.threads)
        began = perf_counter()
        for _ in range(BLOCK):
            next(self.motion)
        return (perf_counter() - began) / BLOCK


def compare(runs: list[Run], rounds: int) -> dict[str, float]:
    """Medians of blocks taken in turns, and of their ratios."""
    times = np.array([[run.block() for run in runs] for _ in range(rounds)])
    one, several = np.median(times, axis=0)
    ratios = times[:, 1] / times[:, 0]
    return {
        "one_ms": 1e3 * float(one),
        "all_ms": 1e3 * float(several),
        "ratio": float(np.median(ratios)),
        "worst": float(ratios.max()),
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--case", default="torus")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    threads = thread_count()
    scene = bench_scene(asked.case, resolution=None, ground=False)
    runs = [Run(scene, 1), Run(scene, threads)]
    found = {"free": compare(runs, asked.rounds)}
    with busy_core():
        found["busy"] = compare(runs, asked.rounds)
    if asked.json:
        print(json.dumps({"threads": threads, **found}))
        return
    print(f"core    1 thread [ms]  {threads} threads [ms]   ratio   worst block")
    for name, row in found.items():
        print(f"{name:<8}{row['one_ms']:>12.1f}{row['all_ms']:>16.1f}"
              f"{row['ratio']:>9.2f}{row['worst']:>12.2f}")  # fmt: skip


if __name__ == "__main__":
    main()
