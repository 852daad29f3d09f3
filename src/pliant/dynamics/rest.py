"""The balance of all forces without inertia, by Newton's method with load steps."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np
import warp as wp

from pliant.core.errors import BadInput, SolverFailure
from pliant.core.launch import to_device, zeros
from pliant.dynamics.newton import DIRECT_NODES, Newton, NewtonRecord
from pliant.dynamics.newton_problem import NewtonFailure
from pliant.dynamics.step_problem import assemble
from pliant.dynamics.terms.stage import Stage, rest_balance
from pliant.linalg.blocks import dot, keep_free

if TYPE_CHECKING:
    from pliant.dynamics.implicit import ImplicitModel

SMALLEST_LOAD_STEP = 1.0 / 256.0

MOST_ITERATIONS = 400
"""Of Newton's method until a body is given up, over all load steps; 5 to 50 are usual."""

LINEAR_DIRECT_NODES = {2: 20_000, 3: 2_000}
"""Linear bodies up to this many nodes are factorised (2D and 3D)."""


@dataclass
class RestWatch:
    """Looks on while a body comes to rest, and ends it where it takes too long.

    iterations: of Newton's method, over all load steps; seconds: None for as long as it takes.
    progress: told the share of the load, the imbalance (|r| over the forces) and the iterations so
    far; balanced: told every share of the load that is balanced, and u (nodes, 3) there.
    """

    iterations: int = MOST_ITERATIONS
    seconds: float | None = None
    progress: Callable[[float, float, int], None] | None = None
    balanced: Callable[[float, np.ndarray], None] | None = None
    done: int = 0
    ended: bool = False
    begun: float = field(default_factory=monotonic)

    def __post_init__(self):
        if self.iterations < 1:
            raise BadInput(f"A limit of iterations must be at least 1, not {self.iterations}.")
        if self.seconds is not None and not self.seconds > 0.0:
            raise BadInput(f"A limit of seconds must be positive, not {self.seconds}.")

    def at(self, load: float, imbalance: float) -> None:
        """After an iteration; raises SolverFailure beyond the limit."""
        self.done += 1
        if self.progress is not None:
            self.progress(load, imbalance, self.done)
        late = self.seconds is not None and monotonic() - self.begun > self.seconds
        if late or self.done >= self.iterations:
            self.ended = True
            limit = f"{self.seconds:g} s" if late else f"{self.iterations} iterations"
            raise SolverFailure(
                f"The body found no rest in {limit}: at {load:.0%} of its load {imbalance:.1e} of "
                "the forces are out of balance. Allow more, reduce the load, take a stiffer "
                "material, or simulate with damping instead."
            )


class StaticProblem:
    """load * external + contact - internal - walls = 0 in u, a NewtonProblem."""

    clamped = False

    def __init__(
        self, model: "ImplicitModel", *, time: float = 0.0, held_by: np.ndarray | None = None
    ):
        """held_by: an acceleration (nodes, 3) [m/s^2] whose force on the masses is a load, too."""
        self.model, self.elastic = model, model.elastic
        self.matrix, self.solver = model.matrix, model.solver
        self.preconditioner = model.preconditioner
        self.load = 1.0
        self._balance = rest_balance(time)
        self._full = model.external_force(time)
        self._external = to_device(self._full, wp.vec3d)
        self._zero = zeros(model.node_count, wp.vec3d)
        self._moved = self._zero
        if held_by is not None:
            self._moved = to_device(-held_by, wp.vec3d)
            held = zeros(model.node_count, wp.vec3d)
            model.inertia.add(self._moved, held, -1.0)
            self._full = self._full + held.numpy()
            self._external = to_device(self._full, wp.vec3d)

    def set_load(self, load: float) -> None:
        """Share of the loads and of the walls' displacement."""
        self.load = load
        self._balance = replace(self._balance, given=load)
        self._external.assign(load * self._full)

    def at(self, x: wp.array) -> Stage:
        """The body at rest at x."""
        still = {name: self._zero for name in ("v", "next_v", "rate")}
        still["moved"] = self._moved
        there = {name: x for name in ("u", "next_u", "predicted", "strained")}
        return Stage(self._balance, (self._zero,) * 3, known=still | there).at(x)

    def residual(self, x: wp.array, out: wp.array) -> None:
        """out = forces in excess at u = x."""
        stage = self.at(x)
        wp.copy(out, self._external)
        self.elastic.add_force(stage, out)
        for term in self.model.supports:
            term.add_force(stage, out)
        if self.model.touch is not None:
            self.model.touch.add_force(stage, out)

    def assemble(self, x: wp.array, *, project: bool) -> None:
        """matrix = stiffness at u = x."""
        assemble(self.model, self.at(x), project=project)

    def turning(self, x: wp.array, dx: wp.array) -> None:
        """What rests is held, or stands on something."""

    def scale(self, u: wp.array) -> float:
        """Largest of the loads and the reactions of held nodes."""
        f = zeros(self.model.node_count, wp.vec3d)
        self.elastic.add_elastic(self.at(u), f)
        total = dot(f, f)
        keep_free(f, self.matrix.free)
        reactions = max(total - dot(f, f), 0.0)
        loads = float(np.sum((self.load * self._full) ** 2))
        return float(np.sqrt(max(loads, reactions, 1e-300)))

    def moved_scale(self, u: wp.array, given: np.ndarray) -> float:
        """Size of the forces that moving the held nodes by `given` causes, to first order."""
        self.assemble(u, project=False)
        f, d = zeros(self.model.node_count, wp.vec3d), to_device(given, wp.vec3d)
        self.matrix.multiply(d, f)
        value = float(np.sqrt(dot(f, f)))
        return value if np.isfinite(value) else 0.0


def find_rest(
    model: "ImplicitModel",
    *,
    tolerance: float = 1e-8,
    start: np.ndarray | None = None,
    load_steps: int = 1,
    ramp: bool = True,
    held_by: np.ndarray | None = None,
    watch: RestWatch | None = None,
) -> tuple[np.ndarray, list[NewtonRecord], int]:
    """Displacement (nodes, 3), the record of every load step, and how often a step was halved.

    start: displacement (nodes, 3) to begin at; load_steps: equal steps that are tried first; ramp:
    whether a failed step is tried again with less load (from zero: `start` is then at rest);
    held_by: see StaticProblem; watch: who looks on.
    """
    watch = watch or RestWatch()
    problem = StaticProblem(model, held_by=held_by)
    linear = model.elastic.linear
    small = LINEAR_DIRECT_NODES[model.scene.dim] if linear else DIRECT_NODES
    newton = Newton(problem, model.node_count, direct=model.node_count <= small)
    boundary = model.boundary
    u = to_device(np.zeros((model.node_count, 3)) if start is None else start, wp.vec3d)
    saved = wp.clone(u)
    held = boundary.free == 0.0
    target = boundary.prescribed(0.0)
    modulus = float(np.mean(model.lam + 2.0 * model.mu))
    tiny = 1e-12 * modulus * float(model.scene.body.volume) ** (2.0 / 3.0)
    load, step = 0.0, 1.0 / load_steps if ramp else 1.0
    records: list[NewtonRecord] = []
    halvings = 0
    while load < 1.0 - 1e-12:
        wp.copy(saved, u)
        goal = min(1.0, load + step)
        problem.set_load(goal)
        given = None
        if boundary.held:
            given = np.where(held, goal * target - u.numpy(), 0.0)
            given = given if np.any(given) else None
        try:
            scale = max(problem.scale(u), tiny)
            if given is not None:
                # reactions are only known once the held nodes have moved
                scale = max(scale, problem.moved_scale(u, given))
            record = newton.solve(
                u, scale=scale, tolerance=tolerance, given=given,
                linear=linear and model.touch is None, rounding=lambda: model.force_rounding(u),
                watch=partial(watch.at, goal),
            )  # fmt: skip
            records.append(record)
            load = goal
            if watch.balanced is not None:
                watch.balanced(load, u.numpy())
            step = min(step * 1.5, 1.0 / load_steps)
        except NewtonFailure as failure:
            wp.copy(u, saved)
            step /= 2.0
            halvings += 1
            if step < SMALLEST_LOAD_STEP or not ramp:
                raise SolverFailure(
                    f"The body found no rest at {goal:.0%} of its load: {failure} "
                    "Reduce the load, or simulate with damping instead."
                ) from None
    return u.numpy(), records, halvings
