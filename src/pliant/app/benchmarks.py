"""The benchmark scenes and how a run of one is measured."""

import resource
from collections.abc import Callable
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np

from pliant.app.describing.scenes import NEEDS_FILE, load_builtin
from pliant.core.errors import BadInput
from pliant.dynamics.integrators import ImplicitEuler
from pliant.dynamics.loads import Fixed, Traction
from pliant.dynamics.march import march
from pliant.dynamics.obstacles import Plane
from pliant.dynamics.scene import Scene
from pliant.fem.bodies.embedding import Embedding
from pliant.fem.bodies.grid_body import GridBody
from pliant.fem.bodies.tet_body import TetBody
from pliant.fem.material import Material
from pliant.geometry.shapes import box, torus

CASES = ("cuboid", "tets", "torus", "bunny", "dragon", "tet-torus")

SOLVE_TOLERANCE = 1e-6
"""What seed 000 solves its benchmarks to, relative to the right-hand side."""


def bench_scene(
    case: str, *, resolution: int | None, ground: bool, shape: str | None = None
) -> Scene:
    """The scene of a benchmark case; shape: a file for those that take theirs from one."""
    if shape is not None and case not in NEEDS_FILE:
        raise BadInput(f"--shape goes with {' and '.join(NEEDS_FILE)}; '{case}' has its own.")
    if case == "cuboid":
        scene = load_builtin("cuboid", resolution=resolution or 20)
        if ground:  # seed 000, table B.6: nothing is held, the ground is hit
            plane = Plane(normal=(0.0, 1.0, 0.0), offset=0.55)
            scene = replace(scene, fixed=(), obstacles=(plane,))
        return replace(scene, tolerance=SOLVE_TOLERANCE)
    if case == "tets":
        return _raptor_like()
    if case == "tet-torus":
        return _tet_torus(resolution or 5400)
    if case in ("torus", "bunny", "dragon"):
        return replace(load_builtin(case, shape=shape), tolerance=SOLVE_TOLERANCE)
    raise BadInput(f"There is no benchmark '{case}'; there are {', '.join(CASES)}.")


def _raptor_like() -> Scene:
    """Seed 003's settings (its table 5.1) on a bar of 8,400 tetrahedra."""
    body = TetBody(box(center=(1.25, 0.0, 0.0), size=(2.5, 0.8, 0.7)), edge_length=0.128, order=1)
    material = Material(
        youngs_modulus=1e6, poisson_ratio=0.4, density=0.01,
        mass_damping=0.01, stiffness_damping=0.01,
    )  # fmt: skip
    return Scene(
        body, material, gravity=(0.0, -9.8, 0.0),
        fixed=[Fixed(box(center=(0.0, 0.0, 0.0), size=(0.01, 1.0, 1.0)))],
        integrator=ImplicitEuler(dt=0.04), tolerance=1e-3,
    )  # fmt: skip


def _tet_torus(cells: int) -> Scene:
    """Seed 002's torus squashed from both sides (its section 6)."""
    edge = 0.53 * (660.0 / cells) ** 0.5  # what the mesher makes of it, between 660 and 5,400
    body = TetBody(torus(major=1.0, minor=0.4), edge_length=edge, order=1)
    material = Material(
        youngs_modulus=7000.0, poisson_ratio=0.2, density=1.0,
        mass_damping=10.0, stiffness_damping=2.5,
    )  # fmt: skip
    ends = [(1.0, -100.0), (-1.0, 100.0)]
    return Scene(
        body, material, gravity=(0.0, 0.0, 0.0),
        loads=[
            Traction(box(center=(1.4 * side, 0.0, 0.0), size=(0.3, 0.5, 0.5)), (force, 0.0, 0.0))
            for side, force in ends
        ],
        integrator=ImplicitEuler(dt=0.016), tolerance=SOLVE_TOLERANCE,
    )  # fmt: skip


def mapped_surface(scene: Scene) -> Embedding:
    """About 78,000 render triangles carried by the body, as seed 003 maps its own."""
    fine = GridBody(box(center=(1.25, 0.0, 0.0), size=(2.5, 0.8, 0.7)), 0.0126)
    points = fine.surface.positions(fine.nodes)
    return scene.body.locate(points)


def _peak_megabytes() -> float:
    """Largest resident memory of this process; getrusage would count a parent's before it too."""
    try:
        with open("/proc/self/status", encoding="ascii") as status:
            line = next(line for line in status if line.startswith("VmHWM:"))
        return float(line.split()[1]) / 1024.0
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def measure(
    scene: Scene,
    steps: int,
    *,
    mapped: Embedding | None = None,
    on_step: Callable[[int], None] | None = None,
) -> dict[str, Any]:
    """Run `steps` steps and report means per step, the first (compiling) step left out.

    Means, because steps differ: a falling body costs nothing to solve until it lands.
    """
    system = scene.make_model()
    motion = march(system, system.initial_state(), until=steps + 1)
    next(motion)  # compiles, and sets the hierarchy up
    rows, iterations = [], []
    began = perf_counter()
    for step in motion:
        record, mapping = step.record, perf_counter()
        if mapped is not None:
            mapped.at(step.after.u.numpy())
        now = perf_counter()
        t = record.timings
        rows.append([t["assembly"], t["setup"], t["solve"], now - mapping, now - began])
        iterations.append(record.solution.iterations)
        if on_step is not None:
            on_step(step.number - 1)
        began = perf_counter()
    mean = 1e3 * np.mean(rows, axis=0)
    out = {
        "cells": len(scene.body.cells),
        "nodes": len(scene.body.nodes),
        "steps": steps,
        "assembly_ms": float(mean[0]),
        "setup_ms": float(mean[1]),
        "solve_ms": float(mean[2]),
        "iterations": float(np.mean(iterations)),
        "step_ms": float(mean[4]),
        "peak_mb": _peak_megabytes(),
    }
    if mapped is not None:
        out["mapping_ms"] = float(mean[3])
        out["mapped_points"] = len(mapped)
    return out
