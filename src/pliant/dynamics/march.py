"""The one loop that advances time.

A step is quicker for what the steps before it left behind: the tangent and the hierarchy of grids
at hand, and what earlier first guesses missed. Its answer depends on them within its tolerance, so
a run that is taken up from a state alone would end with other bits. Therefore a march forgets all
of it at every `FRESH`-th step: from the state there (the anchor) the same steps give the same bits,
whoever takes them and however often.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from pliant.dynamics.model import Model, State, StepRecord

FRESH = 64
"""Steps between two fresh starts. Each costs a new hierarchy of grids and some iterations of the
next few steps; resuming a run repeats up to as many steps."""


@dataclass(frozen=True)
class Step:
    """One step: its number (the first is 1), the states around it and what it took."""

    number: int
    before: State
    after: State
    record: StepRecord


def march(
    model: Model, state: State, *, number: int = 0, until: int | None = None
) -> Iterator[Step]:
    """Step from `state`, which `number` steps have led to, up to step `until`, or for ever.

    Bits equal those of an uninterrupted run if `number` is a multiple of FRESH, or if the model
    itself has taken the steps since the last one.
    """
    while until is None or number < until:
        if number % FRESH == 0:
            model.forget()
        after, record = model.step(state)
        number += 1
        yield Step(number, state, after, record)
        state = after


def anchor_before(number: int) -> int:
    """The step of the last fresh start at or before step `number`."""
    return number - number % FRESH
