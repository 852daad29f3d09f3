"""States over time, as plain arrays."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pliant.core.shown import Shown
from pliant.dynamics.energies import Energies
from pliant.dynamics.march import march
from pliant.dynamics.model import Model, State


@dataclass(frozen=True)
class Anchor:
    """The state of a run's last fresh start (dynamics.march): its arrays, on the host."""

    number: int
    t: float
    arrays: Mapping[str, np.ndarray] = field(repr=False)

    @classmethod
    def at(cls, number: int, state: State, model: Model) -> "Anchor":
        """A copy of a state that `number` steps have led to."""
        return cls(number, state.t, model.saved(state))

    def replay(self, model: Model, number: int) -> State:
        """The state after `number` steps, the model's past as it was there."""
        model.forget()
        state = model.restored(self.arrays, self.t)
        for step in march(model, state, number=self.number, until=number):
            state = step.after
        return state


@dataclass(frozen=True)
class Trajectory(Shown):
    """displacements, velocities: (frames, nodes, dim); times: (frames,) [s]; scene: or other World.

    of_load: times are shares of the load, under each of which the body rests.

    accelerations of the last frame make a run resumable; iterations, timings and parts (more than
    one where a step had to be cut) tell what each step took. energies: over the frames; inverted:
    cells that are inside out at each frame. anchor: from where a resumed run repeats the last few
    steps, to end with the same bits.
    """

    scene: Any = field(repr=False)
    times: np.ndarray
    displacements: np.ndarray = field(repr=False)
    velocities: np.ndarray = field(repr=False)
    last_acceleration: np.ndarray = field(repr=False)
    iterations: np.ndarray = field(repr=False)
    timings: dict[str, np.ndarray] = field(default_factory=dict, repr=False)
    parts: np.ndarray = field(default_factory=lambda: np.zeros(0, int), repr=False)
    energies: Energies = field(default_factory=Energies, repr=False)
    inverted: np.ndarray = field(default_factory=lambda: np.zeros(0, int), repr=False)
    anchor: Anchor | None = field(default=None, repr=False)
    of_load: bool = False

    def __repr__(self) -> str:
        return (
            f"<Trajectory: {self.steps} steps to t = {self.times[-1]:.4g} s, "
            f"{self.displacements.shape[1]:,} nodes, largest displacement {self.largest:.4g} m>"
        )

    @property
    def largest(self) -> float:
        """Largest displacement of a node in any frame [m]."""
        size = (np.linalg.norm(u, axis=1).max(initial=0.0) for u in self.displacements)
        return float(max(size, default=0.0))

    @property
    def steps(self) -> int:
        """Number of steps taken."""
        return len(self.times) - 1

    def last_arrays(self) -> dict[str, np.ndarray]:
        """The last state of a body of nodes, as arrays."""
        u, v = self.displacements[-1], self.velocities[-1]
        return {"u": u, "v": v, "a": self.last_acceleration}

    def warnings(self) -> list[str]:
        """What to know before trusting the run, a sentence each."""
        told = self.scene.run_warnings(self.times, self.inverted, self.velocities)
        return [*told, *self.energies.warnings()]

    def at(self, points) -> np.ndarray:
        """Positions of material points (points, dim) over the frames, (frames, points, dim)."""
        where = self.scene.body.locate(np.atleast_2d(np.asarray(points, float)))
        return np.stack([where.at(self.nodes(k)) for k in range(len(self.times))])

    def nodes(self, frame: int) -> np.ndarray:
        """Deformed node positions of a frame, (nodes, dim)."""
        return self.scene.body.nodes + self.displacements[frame]

    def surface(self, frame: int) -> np.ndarray:
        """Deformed surface points of a frame, (points, dim)."""
        return self.scene.body.surface.positions(self.nodes(frame))
