"""States over time, as plain arrays."""

from dataclasses import dataclass, field

import numpy as np

from pliant.dynamics.scene import Scene


@dataclass(frozen=True)
class Trajectory:
    """displacements, velocities: (frames, nodes, dim); times: (frames,) [s].

    accelerations of the last frame make a run resumable; iterations, timings and parts (more than
    one where Newton failed on the whole step) tell what each step took.
    """

    scene: Scene = field(repr=False)
    times: np.ndarray
    displacements: np.ndarray = field(repr=False)
    velocities: np.ndarray = field(repr=False)
    last_acceleration: np.ndarray = field(repr=False)
    iterations: np.ndarray = field(repr=False)
    timings: dict[str, np.ndarray] = field(default_factory=dict, repr=False)
    parts: np.ndarray = field(default_factory=lambda: np.zeros(0, int), repr=False)

    @property
    def steps(self) -> int:
        """Number of steps taken."""
        return len(self.times) - 1

    def nodes(self, frame: int) -> np.ndarray:
        """Deformed node positions of a frame, (nodes, dim)."""
        return self.scene.body.nodes + self.displacements[frame]

    def surface(self, frame: int) -> np.ndarray:
        """Deformed surface points of a frame, (points, dim)."""
        return self.scene.body.surface.positions(self.nodes(frame))
