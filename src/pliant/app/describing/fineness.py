"""How fine a scene's body is made: a spacing, or how many cells lie across it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pliant.app.describing.scene_building import measured_shape
from pliant.core.errors import BadInput


@dataclass(frozen=True)
class Fineness:
    """spacing [m] of a grid, or edge length of a mesh; or cells across the body's shortest side."""

    spacing: float | None = None
    cells_across: int | None = None

    def __post_init__(self):
        if self.spacing is not None and self.cells_across is not None:
            raise BadInput("--spacing and --cells-across say the same: give one of them.")
        if self.spacing is not None and not (np.isfinite(self.spacing) and self.spacing > 0.0):
            raise BadInput(f"--spacing must be a positive length, not {self.spacing}.")
        if self.cells_across is not None and not 1 <= self.cells_across <= 1000:
            raise BadInput(f"--cells-across must be 1 to 1000, not {self.cells_across}.")

    @property
    def given(self) -> bool:
        """True if anything is asked for."""
        return self.spacing is not None or self.cells_across is not None

    def of(self, description: Mapping[str, Any]) -> dict[str, Any]:
        """The same scene as finely as asked."""
        scene, size = dict(description), self.spacing
        if self.given and isinstance(scene.get("parts"), list):
            parts = [self.of(p) if isinstance(p, Mapping) else p for p in scene["parts"]]
            return scene | {"parts": parts}
        if self.cells_across is not None:
            size = _shortest_side(scene) / self.cells_across
        if size is None:
            return scene
        body = dict(scene.get("body") or {})
        if body.get("file") is not None:
            raise BadInput("The body is a mesh of a file: its cells are given.")
        key = "edge_length" if body.get("kind") == "tets" else "spacing"
        return scene | {"body": body | {key: size}}


AS_IT_IS = Fineness()


def _shortest_side(scene: Mapping[str, Any]) -> float:
    if not isinstance(scene.get("shape"), Mapping):
        raise BadInput("--cells-across needs a scene with a shape.")
    lo, hi = (np.asarray(b, float) for b in measured_shape(scene["shape"]).bounds)
    side = float((hi - lo).min())
    if not (np.isfinite(side) and side > 0.0):
        raise BadInput("--cells-across needs a bounded shape: intersect it with a box.")
    return side
