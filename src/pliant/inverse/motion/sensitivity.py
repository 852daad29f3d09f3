"""Derivatives of a whole simulation: tangents alongside it, or the adjoint back through it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter

from pliant.dynamics.march import march
from pliant.dynamics.model import Model, Parameters, State

Frame = Callable[[int, State, list[State]], None]


@dataclass
class Clock:
    """Seconds of a step, by what it was: the quickest run counts, for others are disturbed."""

    best: dict[str, float] = field(default_factory=dict)

    def add(self, name: str, seconds: float, steps: int) -> None:
        """One more run."""
        if steps:
            self.best[name] = min(self.best.get(name, float("inf")), seconds / steps)


def run_with_tangents(
    model: Model,
    steps: int,
    directions: list[Parameters],
    on_frame: Frame,
    *,
    tolerance: float | None = None,
    clock: Clock | None = None,
) -> None:
    """Simulate and call on_frame(step, state, tangents) at every step, the start included.

    tolerance: of the tangents' solves, the scene's own unless told. clock: gets the seconds of
    steps, "forward".
    """
    derivatives = model.derivatives
    state = model.initial_state()
    tangents = derivatives.initial_tangents(state, directions)
    on_frame(0, state, tangents)
    t0, forward = perf_counter(), 0.0
    for step in march(model, state, until=steps):
        forward += perf_counter() - t0
        tangents = derivatives.tangents(
            step.before, step.after, tangents, directions, tolerance=tolerance
        )
        on_frame(step.number, step.after, tangents)
        t0 = perf_counter()
    if clock is not None:
        clock.add("forward", forward, steps)


def run(model: Model, steps: int) -> list[State]:
    """Simulate and keep every state."""
    start = model.initial_state()
    return [start, *(step.after for step in march(model, start, until=steps))]


def run_tangent(
    model: Model,
    states: Sequence[State],
    direction: Parameters,
    on_frame: Callable[[int, State], None],
    *,
    tolerance: float | None = None,
) -> None:
    """The tangent along one direction of a run whose states are known: on_frame(step, tangent)."""
    derivatives = model.derivatives
    (tangent,) = derivatives.initial_tangents(states[0], [direction])
    on_frame(0, tangent)
    for step in range(1, len(states)):
        before, after = states[step - 1], states[step]
        tangent = derivatives.tangents(before, after, [tangent], [direction], tolerance=tolerance)[
            0
        ]
        on_frame(step, tangent)


def run_adjoint(
    model: Model,
    states: Sequence[State],
    seed: Callable[[int, State], State | None],
    *,
    between: Callable[[int, State, State], tuple[State | None, State | None]] | None = None,
    on_step: Callable[[int], None] | None = None,
    tolerance: float | None = None,
) -> Parameters:
    """Gradient by all parameters of a cost whose derivative by state k is seed(k, state).

    states: a list, or Checkpoints; read from last to first, each once. The seed of a state is asked
    for when its step is about to be walked back. between(k, before, after): shares of `before` and
    of `after` in costs of both. on_step(k): progress.
    tolerance: of the adjoint solves, the scene's own unless told.
    """
    derivatives = model.derivatives
    derivatives.begin_adjoint(tolerance)
    dual = Parameters()
    last = len(states) - 1
    after = states[last]
    bar = model.sum_of([seed(last, after)], after)
    for k in range(last, 0, -1):
        before = states[k - 1]
        mixed = None
        if between is not None:
            mixed, late = between(k - 1, before, after)
            bar = model.sum_of([bar, late], after)
        bar = derivatives.adjoint(before, after, bar, dual)
        bar = model.sum_of([bar, seed(k - 1, before), mixed], before)
        after = before
        if on_step is not None:
            on_step(k - 1)
    derivatives.initial_adjoint(after, bar, dual)
    return dual
