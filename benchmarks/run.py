"""Run the benchmarks and the installed peers in one go; write RESULTS.md, results.json, a picture.

`--check` compares the ratios of a fresh run with the committed results.json instead.
"""

import argparse
import json
import math
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import warp as wp
from peers import PEERS

from pliant.core.launch import Recorded, set_threads, thread_count, to_device, zeros
from pliant.dynamics.implicit import ImplicitModel
from pliant.dynamics.scene import Scene
from pliant.linalg.pcg import Tolerance

HERE = Path(__file__).parent
SIZES = (5, 10, 20, 40, 67)
"""Resolutions whose time a cell is compared: up to a million cells, ten steps each."""

CASES = [
    ("cuboid 5", ["cuboid", "--resolution", "5"]),
    ("cuboid 10", ["cuboid", "--resolution", "10"]),
    ("cuboid 20", ["cuboid", "--resolution", "20"]),
    ("cuboid 20, ground", ["cuboid", "--resolution", "20", "--ground"]),
    *(
        (f"cuboid {n}, first 10 steps", ["cuboid", "--resolution", str(n), "--steps", "10"])
        for n in SIZES
    ),
    ("torus", ["torus"]),
    ("torus, neo-Hookean", ["torus", "--law", "neo-hookean"]),
    ("tets (Campo 2015)", ["tets"]),
    ("tet torus, 660 (Ciecierski)", ["tet-torus", "--resolution", "660"]),
    ("tet torus, 5400 (Ciecierski)", ["tet-torus", "--resolution", "5400"]),
    ("bunny", ["bunny", "--steps", "65"]),
    ("dragon", ["dragon"]),
]
SEED_MS = {"torus": 211.0, "bunny": 39.0, "dragon": 450.0}
"""Forward step of Weiss 2018 on a GTX 1060 (its table 5.2)."""

ROUNDS = 3
"""Runs of a case and of a peer, one round after the other: the quickest counts, noise only adds."""

TURN = 5
"""Steps that two simulations take in turn when they are compared."""

ALLOWED, ALLOWED_APART = 0.8, 0.5
"""Share of the committed ratio to which one may fall before `--check` fails: of steps that took
turns, and of things measured minutes apart, while a shared machine's speed changes by half."""

LARGE_CASES = ("cuboid 67, first 10 steps",)
SLOW_PEERS = ("scikit-fem", "felupe")
"""What `--check` leaves out; the peers are run once by `make bench` too."""


_SUM = """
    typedef double lanes __attribute__((vector_size(32), aligned(8)));
    lanes s[8] = {};
    for (wp::int32 k = 0; k < chunk; k += 32)
        for (int l = 0; l < 8; ++l) s[l] += *(const lanes *)(a.data + start + k + 4 * l);
    for (int l = 1; l < 8; ++l) s[0] += s[l];
    return s[0][0] + s[0][1] + s[0][2] + s[0][3];
"""


@wp.func_native(_SUM)
def sum_of(a: wp.array(dtype=wp.float64), start: wp.int32, chunk: wp.int32) -> wp.float64: ...


@wp.kernel
def _read(
    first: wp.int32,
    a: wp.array(dtype=wp.float64),
    chunk: wp.int32,
    out: wp.array(dtype=wp.float64),
):
    """Sums of chunks, as fast as the memory gives them: eight vector registers add in turn."""
    i = first + wp.tid()
    out[i] = sum_of(a, i * chunk, chunk)


READINGS = 20
"""Of the bandwidths: about eight seconds in which the host may change its mind."""


def bandwidths() -> tuple[list[float], float]:
    """GB/s of reading with one thread and with all, and of the sparse product with all.

    They take turns and the quickest of each counts, so that none has the machine's better mood.
    """
    everything = thread_count()
    work = [(1, *reading(1)), (everything, *reading(everything)), (everything, *product())]
    seconds = [math.inf] * len(work)
    for _ in range(READINGS):
        for k, (threads, _, run) in enumerate(work):
            set_threads(threads)
            t = perf_counter()
            run()
            seconds[k] = min(seconds[k], perf_counter() - t)
    *streams, products = (moved / t / 1e9 for (_, moved, _), t in zip(work, seconds, strict=True))
    return streams, products


def reading(threads: int) -> tuple[int, Callable[[], object]]:
    """Bytes and launch that reads an array far larger than the caches: STREAM without writing."""
    n, chunk = 1 << 26, 4096
    set_threads(threads)
    a, out = zeros(n, wp.float64), zeros(n // chunk, wp.float64)
    launch = Recorded(_read, n // chunk, [a, chunk, out], grain=1)
    return 8 * n, launch.run


def product() -> tuple[int, Callable[[], object]]:
    """Bytes and run of the sparse product on the cuboid at resolution 40: 440 MB."""
    from pliant.app.benchmarks import bench_scene
    from pliant.dynamics.implicit import ImplicitModel
    from pliant.dynamics.step_problem import StepProblem

    scene = bench_scene("cuboid", resolution=40, ground=False)
    system = ImplicitModel(replace(scene, model="corotated-frozen"))
    StepProblem(system, system.initial_state(), system.scene.integrator).prepare()
    x = to_device(np.ones((system.node_count, 3)), wp.vec3d)
    y = zeros(system.node_count, wp.vec3d)
    blocks = system.matrix.values.shape[0]
    moved = blocks * (72 + 4) + system.node_count * (3 * 24 + 4)
    return moved, lambda: system.matrix.multiply(x, y)


def step_ratios() -> dict[str, float]:
    """Ratios of steps that take turns in one process: the machine's moods touch both alike."""
    from pliant.app.benchmarks import bench_scene

    cuboid, large = (bench_scene("cuboid", resolution=n, ground=False) for n in (20, 40))
    torus = bench_scene("torus", resolution=None, ground=False)
    law = replace(torus, law="neo-hookean")
    one, all_threads = 1, thread_count()
    found = {
        "one thread / two threads, cuboid 20": turns((cuboid, one), (cuboid, all_threads)),
        "one thread / two threads, cuboid 40": turns(
            (large, one), (large, all_threads), steps=10, rounds=3
        ),
        "corotated / neo-Hookean step, torus": turns((torus, all_threads), (law, all_threads)),
        "corotated / neo-Hookean step, torus, one thread": turns((torus, one), (law, one)),
    }
    set_threads(all_threads)
    return found


def turns(*pair: tuple[Scene, int], steps: int = 20, rounds: int = 6) -> float:
    """Time of the first scene's steps over that of the second's, each with its threads.

    They take turns of TURN steps, so that caches and threads are as warm as in a simulation, and
    both start anew `rounds` times: of each step the quickest counts, noise only adds.
    """
    times = np.full((2, rounds, steps), np.inf)
    systems = []
    for scene, threads in pair:
        set_threads(threads)
        systems.append(ImplicitModel(scene))
        _run(systems[-1], systems[-1].initial_state(), 2)  # compile and allocate
    for round_ in range(rounds):
        states = [system.initial_state() for system in systems]
        for begin in range(0, steps, TURN):
            for k, (system, (_, threads)) in enumerate(zip(systems, pair, strict=True)):
                set_threads(threads)
                some = times[k, round_, begin : begin + TURN]
                states[k], some[:] = _run(system, states[k], len(some))
    first, second = times.min(axis=1).sum(axis=1)
    return float(first / second)


def _run(system: Any, state: Any, steps: int) -> tuple[Any, list[float]]:
    """The state after some steps, and the seconds that each took."""
    taken = []
    for _ in range(steps):
        t = perf_counter()
        state, _ = system.step(state)
        taken.append(perf_counter() - t)
    return state, taken


def batch_ratio(columns: int = 8) -> float:
    """How many times as long as one system the same system takes for 8 right-hand sides."""
    from pliant.app.benchmarks import bench_scene
    from pliant.dynamics.implicit import ImplicitModel
    from pliant.dynamics.step_problem import StepProblem
    from pliant.linalg.batched import BatchedConjugateGradients
    from pliant.linalg.multigrid import Multigrid

    scene = bench_scene("cuboid", resolution=20, ground=False)
    system = ImplicitModel(replace(scene, model="corotated-frozen"))
    StepProblem(system, system.initial_state(), system.scene.integrator).prepare()
    system.preconditioner.update(system.matrix)
    assert isinstance(system.preconditioner, Multigrid)
    batch = BatchedConjugateGradients(system.matrix, system.preconditioner, columns)
    place = np.arange(system.node_count)[:, None, None] / 500.0
    loads = np.sin(place * (1.0 + np.arange(columns)[:, None]) + np.arange(3.0))
    all_b = to_device(loads, wp.vec3d)
    one_b = to_device(np.ascontiguousarray(loads[:, -1]), wp.vec3d)  # the roughest
    times: list[list[float]] = [[], []]
    for _ in range(6):
        for k, (solver, b) in enumerate(((system.solver, one_b), (batch, all_b))):
            x = wp.zeros_like(b)
            t = perf_counter()
            solver.solve(b, x, Tolerance(relative=1e-6))
            times[k].append(perf_counter() - t)
    return min(times[1]) / min(times[0])


def run_all(quick: bool) -> tuple[dict[str, dict], dict[str, dict]]:
    """The quickest run of each case and of each peer; quick: without the large and slow ones."""
    cases: dict[str, dict] = {}
    peers: dict[str, dict] = {}
    for round_ in range(ROUNDS):
        for name, arguments in CASES:
            if not (quick and name in LARGE_CASES):
                keep_quickest(cases, name, run_case(name, arguments), ("step_ms",))
        for name in PEERS:
            if not ((quick or round_) and name in SLOW_PEERS):
                keep_quickest(peers, name, run_peer(name), ("assembly_ms", "solve_ms"))
    return cases, peers


def keep_quickest(known: dict[str, dict], name: str, found: dict | None, times: tuple) -> None:
    if found is None:
        return
    taken = sum(found[t] for t in times)
    print(f"{name}: {taken:.1f} ms a step", flush=True)
    if name not in known or taken < sum(known[name][t] for t in times):
        known[name] = found


def run_case(name: str, arguments: list[str]) -> dict | None:
    command = [sys.executable, "-m", "pliant", "bench", *arguments, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"{name}: skipped ({done.stderr.strip().splitlines()[-1]})")
        return None
    return json.loads(done.stdout)


def run_peer(name: str) -> dict | None:
    try:
        return PEERS[name]()
    except ImportError:
        print(f"{name}: not installed (pip install 'pliant[bench]')")
    except Exception as error:  # a peer's own trouble must not lose our results
        print(f"{name}: failed ({type(error).__name__}: {error})")
    return None


def frame_rates() -> dict[str, float]:
    """Pictures a second of the renderer, and simulated frames a second of the editor."""
    out = {}
    for script, what in (("render.py", "{} pictures a second"), ("editor_rate.py", "editor")):
        done = subprocess.run(
            [sys.executable, str(HERE / script)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            print(f"{script}: skipped ({done.stderr.strip().splitlines()[-1]})")
        for style, rate in re.findall(r"(\w+) .*?([\d.]+) frames/s", done.stdout):
            name = "simulated frames a second, editor" if what == "editor" else what.format(style)
            out.setdefault(name, float(rate))
    return out


def ratios(cases: dict, peers: dict, streams: list[float], product: float) -> dict[str, float]:
    out = {
        "product / stream bandwidth": product / streams[1],
        "stream bandwidth, two threads / one": streams[1] / streams[0],
        "one solve x 8 / batched solve of 8": 8.0 / batch_ratio(),
    } | step_ratios()
    per_cell = {n: time_a_cell(cases, n) for n in SIZES}
    for n in (40, 67):
        if per_cell[n]:
            out[f"time a cell, cuboid 20 / {n}"] = per_cell[20] / per_cell[n]
    ours = cases["cuboid 20"]
    step = ours["assembly_ms"] + ours["setup_ms"] + ours["solve_ms"]
    for name, r in peers.items():
        share = ours["cells"] / r.get("cells", ours["cells"])  # a peer may do a coarser body
        out[f"{name} / pliant, cuboid 20"] = share * (r["assembly_ms"] + r["solve_ms"]) / step
    for name, seed in SEED_MS.items():
        if name in cases:
            out[f"Weiss 2018 (GTX 1060) / pliant, {name}"] = seed / cases[name]["step_ms"]
    if tets := cases.get("tets (Campo 2015)"):
        out["steps a second with mapping, tets"] = 1e3 / tets["step_ms"]
    return out | frame_rates()


def time_a_cell(cases: dict, resolution: int) -> float:
    """Milliseconds; 0 where it was not measured."""
    case = cases.get(f"cuboid {resolution}, first 10 steps")
    return case["step_ms"] / case["cells"] if case else 0.0


def write(cases: dict, peers: dict, streams: list[float], product: float) -> None:
    found = ratios(cases, peers, streams, product)
    lines = [
        "# Benchmark results",
        "",
        f"One run of `make bench`, {thread_count()} CPU threads. Times in milliseconds; ratios are",
        "what counts, machines differ.",
        "",
        "| case | cells | nodes | assembly | set-up | solve | iterations | step | peak MB |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, r in cases.items():
        lines.append(
            f"| {name} | {r['cells']:,} | {r['nodes']:,} | {r['assembly_ms']:.1f} | "
            f"{r['setup_ms']:.1f} | {r['solve_ms']:.1f} | {r['iterations']:.1f} | "
            f"{r['step_ms']:.1f} | {r['peak_mb']:.0f} |"
        )
    lines += ["", "| peer, cuboid 20 | assembly | solve | iterations | what differs |",
              "|---|---|---|---|---|"]  # fmt: skip
    for name, r in peers.items():
        lines.append(
            f"| {name} | {r['assembly_ms']:.0f} | {r['solve_ms']:.0f} | {r['iterations']} | "
            f"{r['differs']} |"
        )
    lines += ["", "| ratio | value |", "|---|---|"]
    lines += [f"| {name} | {value:.2f} |" for name, value in found.items()]
    bar = round(40 * product / streams[1])
    lines += [
        "",
        f"Memory bandwidth: reading {streams[1]:.1f} GB/s ({streams[0]:.1f} with one thread), "
        f"sparse product {product:.1f} GB/s",
        "",
        f"    attainable {'#' * 40}",
        f"    product    {'#' * bar}",
        "",
        "![time against cells](time_against_cells.png)",
    ]
    (HERE / "RESULTS.md").write_text("\n".join(lines) + "\n")
    data = {"cases": cases, "peers": peers, "ratios": found}
    (HERE / "results.json").write_text(json.dumps(data, indent=1) + "\n")
    draw(cases)


def draw(cases: dict) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = [r for name, r in cases.items() if "first 10 steps" in name]
    cells = np.array([r["cells"] for r in rows])
    figure, axes = plt.subplots(figsize=(6, 4.2), layout="constrained")
    for key, label in (("step_ms", "step"), ("assembly_ms", "assembly"), ("solve_ms", "solve")):
        axes.loglog(cells, [r[key] for r in rows], "o-", label=label)
    axes.loglog(cells, rows[-1]["step_ms"] * cells / cells[-1], "k:", label="linear")
    axes.set_xlabel("cells")
    axes.set_ylabel("milliseconds a step")
    axes.legend()
    axes.grid(alpha=0.3, which="both")
    figure.savefig(HERE / "time_against_cells.png", dpi=130)


def check(found: dict[str, float]) -> int:
    committed = json.loads((HERE / "results.json").read_text())["ratios"]
    worse = 0
    for name, before in committed.items():
        now = found.get(name)
        if now is None:
            print(f"{name}: not measured here")
            continue
        together = name.startswith(("one ", "corotated"))
        fell = now < (ALLOWED if together else ALLOWED_APART) * before
        worse += fell
        print(f"{name}: {now:.2f}, committed {before:.2f}{'  WORSE' if fell else ''}")
    return 1 if worse else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare with the committed results")
    wanted = parser.parse_args()
    streams, products = bandwidths()
    if wanted.check:
        return check(ratios(*run_all(quick=True), streams, products))
    cases, peers = run_all(quick=False)
    write(cases, peers, streams, products)
    return 0


if __name__ == "__main__":
    sys.exit(main())
