"""Rest under load: the balance of all forces without inertia, by Newton's method with load steps.

A linear body without contact is solved at once. Frames have nothing to be frozen at where nothing
moves, so bodies of the frozen models rest as the corotated energy does.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from pliant.dynamics.implicit import ImplicitModel
from pliant.dynamics.rest import MOST_ITERATIONS, RestWatch, find_rest
from pliant.dynamics.scene import Scene


@dataclass(frozen=True)
class StaticRecord:
    """How a static solve went; rotation_updates: iterations of Newton's method."""

    rotation_updates: int
    solver_iterations: int
    imbalance: float
    load_steps: int


def solve_static(
    scene: Scene,
    *,
    tolerance: float = 1e-8,
    max_iterations: int = MOST_ITERATIONS,
    max_seconds: float | None = None,
    progress: Callable[[float, float, int], None] | None = None,
) -> np.ndarray:
    """Displacement (nodes, dim) at rest under the loads at t = 0.

    max_iterations: of Newton's method in all, max_seconds: None for no limit; beyond either a
    SolverFailure says how far it came. progress: told the share of the load, the imbalance of the
    forces and the iterations so far.
    """
    watch = RestWatch(max_iterations, max_seconds, progress)
    return solve_static_recorded(scene, tolerance=tolerance, watch=watch)[0]


def solve_static_recorded(
    scene: Scene, *, tolerance: float = 1e-8, watch: RestWatch | None = None
) -> tuple[np.ndarray, StaticRecord]:
    """`solve_static` with a record of the iterations; watch: who looks on."""
    made = scene.constitution
    if made.rests_as != made.tag:
        scene = replace(scene, model=made.rests_as)
    u, records, _ = find_rest(ImplicitModel(scene), tolerance=tolerance, watch=watch)
    iterations = sum(r.iterations for r in records)
    solves = sum(r.solver_iterations for r in records)
    record = StaticRecord(iterations, solves, records[-1].residual, len(records))
    return u[:, : scene.dim], record
