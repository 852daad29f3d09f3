"""Derivatives of a whole simulation: tangents alongside it, or the adjoint back through it."""

from collections.abc import Callable

import warp as wp

from pliant.dynamics.system import State, System
from pliant.inverse.direction import Direction
from pliant.inverse.step_derivatives import StepDerivatives
from pliant.linalg.blocks import combine

Frame = Callable[[int, State, list[State]], None]


def run_with_tangents(
    system: System, steps: int, directions: list[Direction], on_frame: Frame
) -> None:
    """Simulate and call on_frame(step, state, tangents) at every step, the start included."""
    derivatives = system.cached(StepDerivatives)
    state = system.initial_state()
    tangents = [derivatives.initial_tangent(state, d) for d in directions]
    on_frame(0, state, tangents)
    for step in range(steps):
        after, _ = system.step(state)
        tangents = derivatives.tangents(state, after, tangents, directions)
        state = after
        on_frame(step + 1, state, tangents)


def run(system: System, steps: int) -> list[State]:
    """Simulate and keep every state."""
    states = [system.initial_state()]
    for _ in range(steps):
        states.append(system.step(states[-1])[0])
    return states


def run_adjoint(
    system: System, states: list[State], seed: Callable[[int, State], State | None]
) -> Direction:
    """Gradient by all parameters of a cost whose derivative by state k is seed(k, state)."""
    derivatives = system.cached(StepDerivatives)
    obstacles = len(system.contact.obstacles) if system.contact is not None else 0
    dual = Direction.zero(len(system.lam), system.node_count, obstacles)
    last = len(states) - 1
    bar = _seeded(seed, last, states[last], None)
    for k in range(last, 0, -1):
        before = states[k - 1]
        system.prepare(before)
        system.preconditioner.update(system.matrix)
        bar = derivatives.adjoint(before, states[k], bar, dual)
        bar = _seeded(seed, k - 1, before, bar)
    derivatives.initial_adjoint(states[0], bar, dual)
    return dual


def _seeded(seed, k: int, state: State, bar: State | None) -> State:
    own = seed(k, state)
    if bar is None:
        bar = State(*(wp.zeros_like(f) for f in state.fields()), state.t)
    if own is not None:
        for total, part in zip(bar.fields(), own.fields(), strict=True):
            combine(total, (1.0, total), (1.0, part))
    return bar
