"""What colours show: displacement, strain, stress, or the distance to an observation."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from pliant.app.describing.elastic_scenes import require_elastic
from pliant.app.render.pixels import linear
from pliant.core.errors import BadInput
from pliant.core.lengths import length
from pliant.dynamics.constitution import Stress
from pliant.dynamics.scene import Scene
from pliant.fem.forces.stress import StressField, to_nodes

KINDS = ("displacement", "strain", "stress", "observation")

UNITS = {"displacement": "m", "strain": "", "stress": "Pa", "observation": "m"}

TOP = 99.5
"""Percentile that takes the last colour: stresses are infinite at the edges of fixed regions."""

COLOURS = {"displacement": "viridis", "strain": "inferno", "stress": "inferno",
           "observation": "coolwarm"}  # fmt: skip
"""Matplotlib's names."""

RANGE = {"viridis": (0.2, 1.0), "inferno": (0.15, 0.95), "coolwarm": (0.0, 1.0)}
"""The part of each map in use; the first colours of some are too dark to show a shape."""


@cache
def colour_map(kind: str = "displacement") -> Any:
    """A function from 0 .. 1 to RGBA."""
    import matplotlib

    name = COLOURS[kind]
    low, high = RANGE[name]
    full = matplotlib.colormaps[name]
    return lambda x: full(low + (high - low) * np.clip(np.asarray(x, float), 0.0, 1.0))


@dataclass(frozen=True)
class Scale:
    """Values from 0 to `largest` as colours."""

    kind: str
    largest: float

    def colours(self, values: np.ndarray) -> np.ndarray:
        """sRGB (n, 3) of values (n,)."""
        return colour_map(self.kind)(np.asarray(values) / self.largest)[..., :3]

    def linear_colours(self, values: np.ndarray) -> np.ndarray:
        """Linear light (..., 3) float32 of values, by a table: grids hold many."""
        table = linear(self.colours(np.linspace(0.0, self.largest, 256))).astype(np.float32)
        share = np.clip(np.asarray(values) / self.largest, 0.0, 1.0)
        return table[(255.0 * share + 0.5).astype(np.uint8)]

    @property
    def name(self) -> str:
        """What is shown, for a caption; empty for displacements."""
        return {"stress": "von Mises stress", "strain": "strain", "observation": "off by"}.get(
            self.kind, ""
        )

    @property
    def label(self) -> str:
        """The last colour's value, with its unit."""
        unit = UNITS[self.kind]
        value = self.largest
        if unit == "m":
            return length(value)
        if unit == "Pa" and value >= 1000.0:
            power = min(3, int(np.floor(np.log10(value) / 3.0)))
            value, unit = value / 1000.0**power, ("Pa", "kPa", "MPa", "GPa")[power]
        return f"{value:.3g} {unit}".rstrip()


class Colouring:
    """Values at the nodes of a scene's body, one kind for all frames.

    observed: points (p, 3) [m] to which distances are measured, for the kind "observation".
    """

    def __init__(self, scene: Scene, kind: str = "displacement"):
        if kind not in KINDS:
            raise BadInput(f"The colour must be one of {', '.join(KINDS)}, not '{kind}'.")
        self._parts: list[Colouring] = []
        if kind in ("strain", "stress"):
            self._parts = [Colouring(own, kind) for own in getattr(scene, "scenes", ())]
            if not self._parts:
                require_elastic(scene, f"Colour by {kind}")
        self.scene, self.kind = scene, kind
        self._stress: Stress | None = None
        self._strain: StressField | None = None

    def at_nodes(self, u: np.ndarray, observed: np.ndarray | None = None) -> np.ndarray:
        """Values (nodes,) for a displacement u (nodes, dim) [m].

        strain: sqrt(2/3 dev(e) : dev(e)) of the rotation-free strain e, stress: after von Mises,
        in the middle of each cell and averaged to the nodes.
        """
        body = self.scene.body
        if self.kind == "displacement":
            return np.linalg.norm(u, axis=1)
        if self.kind == "observation":
            return self.distances(body.nodes + u, observed)
        if self._parts:
            ends = np.cumsum([len(own.scene.body.nodes) for own in self._parts])[:-1]
            each = zip(self._parts, np.split(u, ends), strict=True)
            return np.concatenate([own.at_nodes(part) for own, part in each])
        if self.kind == "stress":
            self._stress = self._stress or self.scene.stress()
            return to_nodes(body, self._stress.at(u).von_mises)
        self._strain = self._strain or StressField(body, model=self.scene.model)
        count = len(body.cells)  # with these moduli the stress after von Mises is the strain above
        lam, mu = np.zeros(count), np.full(count, 1.0 / 3.0)
        return to_nodes(body, self._strain.at(u, lam, mu).von_mises)

    def at_points(
        self, carrier: Any, u: np.ndarray, observed: np.ndarray | None = None
    ) -> np.ndarray:
        """Values at points carried by the nodes (a surface's or render mesh's embedding)."""
        if self.kind == "observation":
            return self.distances(carrier.matrix @ (self.scene.body.nodes + u), observed)
        if self.kind == "displacement":
            return np.linalg.norm(carrier.matrix @ u, axis=1)
        return carrier.matrix @ self.at_nodes(u)

    def distances(self, points: np.ndarray, observed: np.ndarray | None) -> np.ndarray:
        """From points (n, dim) to the nearest observed one, (n,) [m]."""
        from scipy.spatial import KDTree

        if observed is None or not len(observed):
            raise BadInput("Colour by observation needs observed points: give their folder.")
        return np.asarray(KDTree(observed).query(points)[0])

    def scale(self, values: Sequence[np.ndarray]) -> Scale:
        """One scale for all frames' values."""
        if self.kind in ("displacement", "observation"):
            largest = max((float(v.max()) for v in values), default=0.0)
        else:
            largest = max((float(np.percentile(v, TOP)) for v in values), default=0.0)
        return Scale(self.kind, largest if largest > 0.0 else 1.0)
