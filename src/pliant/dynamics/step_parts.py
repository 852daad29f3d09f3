"""A step of an energy, in shorter parts where the whole would not do."""

from dataclasses import replace
from typing import Any, Protocol

from pliant.core.errors import SolverFailure
from pliant.dynamics.energies import Energies
from pliant.dynamics.integrators import INTEGRATORS, ImplicitEuler, Integrator
from pliant.dynamics.model import State, StepRecord
from pliant.dynamics.newton_problem import NewtonFailure

MOST_HALVINGS = 5
"""A step that Newton cannot take, that turns cells inside out, or that gives energy, is cut in two,
at most this often (1/32 of the time step)."""

GAIN_HALVINGS = 3
"""An impact, or a collapse, that gives energy even in parts this short (1/8) is too quick for any:
such a part is taken by implicit Euler, which only ever takes energy. How high a body bounces that
the step cannot follow is not known anyway, and shorter parts cost as many times more."""

GAIN_HALVINGS_INVERTED = 1
"""The same while cells are inside out: a crumpled body is not followed at all."""

LARGEST_STEP_GAIN = 0.01
"""Share of its own energy that a body may gain in a step before the step is cut."""

LARGEST_GAIN_INVERTED = 0.001
"""The same while cells are inside out: their frames jump, in easy steps too, and the small gains of
many steps add up."""

EASY, EASY_TOUCHING = 3, 2
"""Newton iterations up to which a step is taken as following its motion: of a body that touches
nothing, and of one that does. Whatever hits or lets go takes more."""

TOUCHING = 1e-6
"""Share of what gravity may give in a step that contact holds at least while a body touches
something."""


class PosedStep(Protocol):
    """A step to solve: of one body, or of several that touch."""

    @property
    def iterations(self) -> int:
        """Of Newton's method."""
        ...

    def solve(self) -> tuple[State, StepRecord]:
        """The state at its end; raises NewtonFailure."""
        ...

    def exchanged(self, before: State, after: State) -> tuple[float, float]:
        """What damping took and loads gave."""
        ...


class Stepping(Protocol):
    """What has such steps."""

    scene: Any

    def pose(self, state: State, scheme: Integrator) -> PosedStep:
        """The step from a state."""
        ...

    def stored(self, state: State) -> Energies:
        """Energies of a state."""
        ...

    def touching_energy(self, state: State) -> float:
        """Energy [J] of its contacts."""
        ...

    def least_exchange(self) -> float:
        """See Model."""
        ...

    @property
    def takes_or_gives(self) -> bool:
        """Whether anything but gravity and contact may do work."""
        ...

    def inverted(self, state: State) -> int:
        """See Model."""
        ...


def step_in_parts(model: Stepping, state: State) -> tuple[State, StepRecord]:
    """One time step; raises SolverFailure where no part of it can be taken."""
    parts, record = _parts(model, state, model.scene.integrator, 0)
    after = parts[-1][1]
    if len(parts) > 1:
        record = replace(record, parts=len(parts))
        after = replace(after, parts=tuple(parts))
    return after, record


def _parts(model: Stepping, state: State, scheme: Integrator, depth: int):
    last = depth >= MOST_HALVINGS
    try:
        problem = model.pose(state, scheme)
        after, record = problem.solve()
        if not last:
            _require_upright(model, state, after)
        if not _gives_energy(model, problem, state, after, scheme):
            return [(state, after, scheme)], record
        upright = model.inverted(after) == 0
        if depth >= (GAIN_HALVINGS if upright else GAIN_HALVINGS_INVERTED):
            scheme = ImplicitEuler(scheme.dt)
            after, record = model.pose(state, scheme).solve()
            return [(state, after, scheme)], record
    except NewtonFailure as failure:
        if last:
            raise SolverFailure(
                f"The step at t = {state.t:g} s failed even at dt = {scheme.dt:g} s: {failure} "
                "Use a smaller time step, or a law that resists inversion."
            ) from None
    half = INTEGRATORS[scheme.name](scheme.dt / 2.0, **scheme.parameters)
    front, first = _parts(model, state, half, depth + 1)
    back, second = _parts(model, front[-1][1], half, depth + 1)
    timings = {k: first.timings[k] + second.timings[k] for k in first.timings}
    iterations = first.solution.iterations + second.solution.iterations
    whole = replace(second.solution, iterations=iterations)
    return front + back, StepRecord(whole, timings)


def _require_upright(model: Stepping, before: State, after: State) -> None:
    """Refuse a step that turns cells inside out: a shorter one may not."""
    had = model.inverted(before)  # asked first: the step before has left it
    if model.inverted(after) > had:
        raise NewtonFailure("cells turn inside out.")


def _gives_energy(
    model: Stepping, problem: PosedStep, before: State, after: State, scheme: Integrator
) -> bool:
    """Whether the motion was too quick for this step: the body has gained energy."""
    touching = (
        max(model.touching_energy(state) for state in (before, after))
        > TOUCHING * model.least_exchange()
    )
    explicit = scheme.next_u[0] == 0.0
    if explicit and not touching:
        return False  # velocities of explicit schemes are half a step off, and so are energies
    upright = model.inverted(after) == 0
    easy = not explicit and problem.iterations <= (EASY_TOUCHING if touching else EASY)
    if upright and easy:
        return False
    start, end = model.stored(before), model.stored(after)
    own = max(float(e.kinetic + abs(e.elastic) + e.contact) for e in (start, end))
    allowed = LARGEST_STEP_GAIN if upright else LARGEST_GAIN_INVERTED
    allowed *= max(own, model.least_exchange())
    gained = float(end.total - start.total)
    if not touching and gained <= allowed:
        return False  # what damping takes need not be known
    if model.takes_or_gives:
        damping, loads = problem.exchanged(before, after)
        gained += damping - loads
    return gained > allowed
