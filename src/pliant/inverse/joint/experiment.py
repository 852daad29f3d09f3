"""One recording of one body: what a joint fit takes several of."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pliant.core.errors import BadInput
from pliant.dynamics.model import World

AT = "@"
"""Between an unknown's name and the experiment whose own it is: time_offset@swing."""


@dataclass(frozen=True)
class Experiment:
    """A scene and what was seen of it: Observations, TrackedPoints, NodeMotions or LevelSets.

    A static one starts in equilibrium and was seen at time 0. name: for messages and for unknowns
    of its own; its number, from 1, unless told.
    """

    scene: World
    seen: Any
    name: str = ""

    def __post_init__(self):
        if AT in self.name or any(c.isspace() for c in self.name):
            raise BadInput(f"An experiment's name has no '{AT}' and no blanks: '{self.name}'.")


def numbered(experiments: Sequence[Experiment]) -> tuple[Experiment, ...]:
    """All with names, each with its own."""
    if not experiments:
        raise BadInput("A fit needs at least one experiment.")
    for k, x in enumerate(experiments):
        if not isinstance(x, Experiment):
            raise BadInput(f"Entry {k + 1} of the experiments is no pl.Experiment(scene, seen).")
    named = tuple(replace(x, name=x.name or str(k + 1)) for k, x in enumerate(experiments))
    names = [x.name for x in named]
    for name in names:
        if names.count(name) > 1:
            raise BadInput(f"Two experiments are called '{name}': give each its own name.")
    return named
