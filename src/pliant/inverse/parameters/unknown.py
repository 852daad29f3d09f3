"""One unknown of a fit: a chart, and the block of a scene's numbers that it sets."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from pliant.dynamics.model import Block, Model, Parameters
from pliant.inverse.parameters.charts import Chart


@dataclass(frozen=True)
class Unknown:
    """One named quantity; labels name its components in tables.

    suffix: of the name, where it belongs to one of several experiments.
    """

    block: Block
    chart: Chart
    labels: tuple[str, ...]
    suffix: str = ""

    @property
    def name(self) -> str:
        """Of the block, and of the experiment it is about."""
        return self.block.name + self.suffix

    @property
    def start(self) -> np.ndarray:
        """The value that a fit starts with."""
        return self.chart.start

    @property
    def size(self) -> int:
        """Number of free coordinates."""
        return len(self.labels)

    def size_of(self, q: np.ndarray, scene: Any, duration: float) -> np.ndarray:
        """What error bars are judged by, per component (see Block.sizes); a radian for angles."""
        if self.chart.angles:
            return np.ones(self.size)
        return self.block.sizes(self.chart.value(q), scene, duration)

    def apply(self, scene: Any, q: np.ndarray) -> Any:
        """The scene with this unknown set."""
        return self.block.put(scene, self.chart.setting(q))

    def along(self, model: Model, q: np.ndarray, dq: np.ndarray) -> Parameters:
        """How the model's parameters move with q along dq."""
        return self.block.push(model, self.chart.along(q, dq))

    def pull(self, model: Model, q: np.ndarray, dual: Parameters) -> np.ndarray:
        """Gradient by q from the gradient by the parameters."""
        size = len(self.chart.setting(q))
        return self.chart.pull(q, self.block.pull(model, dual, size))
