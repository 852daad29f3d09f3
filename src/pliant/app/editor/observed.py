"""Observed points over the simulated surface, coloured by how far they are from it."""

from typing import Any

import numpy as np

from pliant.app.editor.coloured_mesh import palette
from pliant.fem.bodies.body import Body
from pliant.observe.observations import Observations
from pliant.observe.raycast import SurfaceQueries

SHOWN = 8000
"""Points drawn of a frame; more are thinned evenly."""

REDDEST = 3.0
"""Times the root mean square of the first frame shown: at the start of a film, its noise."""

FINEST = 0.05
"""Of a cell, for the last colour at least: what is closer lies on the surface."""


class ObservedPoints:
    """Draws the frame of a recording that is nearest in time."""

    def __init__(self, scene: Any):
        self._scene = scene
        self._cloud: Any = None
        self._seen: Observations | None = None
        self._queries: SurfaceQueries | None = None
        self.rms: float | None = None
        self.top = 0.0
        self._size = self._finest = 0.01
        self._scaled = False

    @property
    def present(self) -> bool:
        """True if there is a recording."""
        return self._seen is not None

    @property
    def last_time(self) -> float:
        """The recording's end [s]."""
        return 0.0 if self._seen is None else max(f.time for f in self._seen.frames)

    def load(self, seen: Observations | None, body: Body) -> None:
        """Show another recording, of this body."""
        self._seen = seen
        self.rms = None
        self.top, self._scaled = 0.0, False
        self._finest = FINEST * body.spacing
        span = body.nodes.max(axis=0) - body.nodes.min(axis=0)
        self._size = min(0.15 * body.spacing, 0.01 * float(np.linalg.norm(span)))
        rest = body.surface.positions(body.nodes)
        self._queries = None if seen is None else SurfaceQueries(rest, body.surface.facets)
        if self._cloud is not None:
            self._cloud.remove()
            self._cloud = None

    def show(self, t: float, surface: np.ndarray) -> None:
        """Points seen at about time t over the surface points (n, 3) of that time."""
        if self._seen is None or self._queries is None:
            return
        frame = min(self._seen.frames, key=lambda f: abs(f.time - t))
        points = frame.points[:: max(1, len(frame) // SHOWN)]
        if len(points) == 0:
            return
        self._queries.move(surface)
        distance = np.abs(self._queries.nearest(points).distance)  # signed: inside is negative
        self.rms = float(np.sqrt(np.mean(distance**2)))
        if not self._scaled:  # kept once a frame of the film's own time is shown
            self.top = max(REDDEST * self.rms, self._finest)
            self._scaled = abs(frame.time - t) < 1e-6 * (1.0 + t)
        colours = np.array(palette(), np.uint8)
        level = np.clip(distance / self.top * len(colours), 0, len(colours) - 1).astype(int)
        if self._cloud is not None and len(self._cloud.points) == len(points):
            self._cloud.points = points.astype(np.float32)
            self._cloud.colors = colours[level]
            return
        if self._cloud is not None:
            self._cloud.remove()
        self._cloud = self._scene.add_point_cloud(
            "/observed", points, colours[level], point_size=self._size, precision="float32",
            point_shape="circle",
        )  # fmt: skip
