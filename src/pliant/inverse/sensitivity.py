"""Derivatives of a whole simulation: tangents alongside it, or the adjoint back through it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np
import warp as wp

from pliant.core.launch import to_device
from pliant.dynamics.march import march
from pliant.dynamics.system import State, System
from pliant.inverse.direction import Direction
from pliant.inverse.newton_derivatives import step_derivatives, zero_dual
from pliant.linalg.blocks import combine

Frame = Callable[[int, State, list[State]], None]


@dataclass
class Clock:
    """Seconds and counts by name."""

    seconds: dict[str, float] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def add(self, name: str, seconds: float) -> None:
        """One more."""
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds
        self.counts[name] = self.counts.get(name, 0) + 1


def run_with_tangents(
    system: System,
    steps: int,
    directions: list[Direction],
    on_frame: Frame,
    *,
    tolerance: float | None = None,
    clock: Clock | None = None,
) -> None:
    """Simulate and call on_frame(step, state, tangents) at every step, the start included.

    tolerance: of the tangents' solves, the scene's own unless told. clock: gets the seconds of
    steps ("forward") and of their tangents ("tangent").
    """
    derivatives = system.cached(step_derivatives)
    state = system.initial_state()
    tangents = derivatives.initial_tangents(state, directions)
    on_frame(0, state, tangents)
    t0 = perf_counter()
    for step in march(system, state, until=steps):
        t1 = perf_counter()
        tangents = derivatives.tangents(
            step.before, step.after, tangents, directions, tolerance=tolerance
        )
        if clock is not None:
            clock.add("forward", t1 - t0)
            clock.add("tangent", perf_counter() - t1)
        on_frame(step.number, step.after, tangents)
        t0 = perf_counter()


def run(system: System, steps: int) -> list[State]:
    """Simulate and keep every state."""
    start = system.initial_state()
    return [start, *(step.after for step in march(system, start, until=steps))]


def run_tangent(
    system: System,
    states: Sequence[State],
    direction: Direction,
    on_frame: Callable[[int, State], None],
    *,
    tolerance: float | None = None,
) -> None:
    """The tangent along one direction of a run whose states are known: on_frame(step, tangent)."""
    derivatives = system.cached(step_derivatives)
    (tangent,) = derivatives.initial_tangents(states[0], [direction])
    on_frame(0, tangent)
    for step in range(1, len(states)):
        before, after = states[step - 1], states[step]
        system.prepare(before)
        system.preconditioner.update(system.matrix)
        tangent = derivatives.tangents(
            before, after, [tangent], [direction], tolerance=tolerance
        )[0]
        on_frame(step, tangent)


def run_adjoint(
    system: System,
    states: Sequence[State],
    seed: Callable[[int, State], State | None],
    *,
    between: Callable[[int, State, State, State], State | None] | None = None,
    on_step: Callable[[int], None] | None = None,
    tolerance: float | None = None,
) -> Direction:
    """Gradient by all parameters of a cost whose derivative by state k is seed(k, state).

    states: a list, or Checkpoints; read from last to first, each once. The seed of a state is asked
    for when its step is about to be walked back. between(k, before, after, bar): costs of both ends
    of a step; adds the share of `after` to bar and returns that of `before`. on_step(k): progress.
    tolerance: of the adjoint solves, the scene's own unless told.
    """
    derivatives = system.cached(step_derivatives)
    derivatives.begin_adjoint(tolerance)
    dual = zero_dual(system)
    last = len(states) - 1
    after = states[last]
    bar = _seeded(seed, last, after, None)
    for k in range(last, 0, -1):
        before = states[k - 1]
        mixed = between(k - 1, before, after, bar) if between is not None else None
        system.prepare(before)
        system.preconditioner.update(system.matrix)
        bar = derivatives.adjoint(before, after, bar, dual)
        bar = _seeded(seed, k - 1, before, bar)
        if mixed is not None:
            for total, part in zip(bar.fields(), mixed.fields(), strict=True):
                combine(total, (1.0, total), (1.0, part))
        after = before
        if on_step is not None:
            on_step(k - 1)
    derivatives.initial_adjoint(after, bar, dual)
    return dual


def _seeded(seed, k: int, state: State, bar: State | None) -> State:
    own = seed(k, state)
    if bar is None:
        u, v, a = (wp.zeros_like(f) for f in state.fields())
        bar = State(u, v, a, state.t)
    if own is not None:
        for total, part in zip(bar.fields(), own.fields(), strict=True):
            combine(total, (1.0, total), (1.0, part))
    return bar


def add_host(bar: State, u: np.ndarray, v: np.ndarray) -> None:
    """bar += (u, v, 0) of the host, (nodes, 3) each."""
    for total, part in ((bar.u, u), (bar.v, v)):
        combine(total, (1.0, total), (1.0, to_device(part, wp.vec3d)))
