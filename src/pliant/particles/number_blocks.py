"""A model's own numbers as unknowns: `numbers.alpha` and the like."""

from dataclasses import replace
from typing import Any

import numpy as np

from pliant.core.errors import BadInput
from pliant.dynamics.model import Block, Parameters
from pliant.dynamics.model_numbers import ranges

PREFIX = "numbers."


class NumberBlock(Block):
    """One number of the record in Scene.numbers."""

    @property
    def own(self) -> str:
        """Its name in the record."""
        return self.name.removeprefix(PREFIX)

    def check(self, scene: Any) -> None:
        """See Block: what is 0 is not used."""
        if not getattr(scene.numbers, self.own) > 0.0:
            raise BadInput(f"'{self.name}' is unknown, but 0 in the scene: give it a start there.")

    def get(self, scene: Any) -> Any:
        """See Block."""
        return getattr(scene.numbers, self.own) or None

    def put(self, scene: Any, value: np.ndarray) -> Any:
        """See Block."""
        return replace(scene, numbers=replace(scene.numbers, **{self.own: float(value[0])}))

    def push(self, model: Any, change: np.ndarray) -> Parameters:
        """See Block."""
        return Parameters({self.name: np.asarray(change, float)})


def number_blocks(kind: type) -> dict[str, Block]:
    """Of all numbers of a record that have a chart."""
    return {
        PREFIX + name: NumberBlock(PREFIX + name, about.unit, about.chart)
        for name, about in ranges(kind).items()
        if about.chart is not None
    }
