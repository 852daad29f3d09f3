"""States over time, as plain arrays."""

from dataclasses import dataclass, field

import numpy as np
import warp as wp

from pliant.core.launch import to_device
from pliant.dynamics.energies import Energies
from pliant.dynamics.march import march
from pliant.dynamics.own_weight import weight_warning
from pliant.dynamics.scene import Scene
from pliant.dynamics.step_quality import step_warnings
from pliant.dynamics.system import State, System


def host_state(u: np.ndarray, v: np.ndarray, a: np.ndarray, t: float) -> State:
    """A State from arrays (nodes, dim) on the host."""

    def three(values: np.ndarray) -> wp.array:
        out = np.zeros((len(values), 3))
        out[:, : values.shape[1]] = values
        return to_device(out, wp.vec3d)

    return State(three(u), three(v), three(a), t)


@dataclass(frozen=True)
class Anchor:
    """The state of a run's last fresh start (dynamics.march), on the host; fields: (nodes, 3)."""

    number: int
    t: float
    u: np.ndarray = field(repr=False)
    v: np.ndarray = field(repr=False)
    a: np.ndarray = field(repr=False)

    @classmethod
    def at(cls, number: int, state: State) -> "Anchor":
        """A copy of a state that `number` steps have led to."""
        return cls(number, state.t, *(f.numpy().copy() for f in state.fields()))

    def replay(self, system: System, number: int) -> State:
        """The state after `number` steps, the system's past as it was there."""
        system.forget()
        state = host_state(self.u, self.v, self.a, self.t)
        for step in march(system, state, number=self.number, until=number):
            state = step.after
        return state


@dataclass(frozen=True)
class Trajectory:
    """displacements, velocities: (frames, nodes, dim); times: (frames,) [s].

    accelerations of the last frame make a run resumable; iterations, timings and parts (more than
    one where a step had to be cut) tell what each step took. energies: over the frames; inverted:
    cells that are inside out at each frame. anchor: from where a resumed run repeats the last few
    steps, to end with the same bits.
    """

    scene: Scene = field(repr=False)
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

    @property
    def steps(self) -> int:
        """Number of steps taken."""
        return len(self.times) - 1

    def last_state(self) -> State:
        """The last state, on the device."""
        return host_state(
            self.displacements[-1], self.velocities[-1], self.last_acceleration,
            float(self.times[-1]),
        )  # fmt: skip

    def warnings(self) -> list[str]:
        """What to know before trusting the run, a sentence each."""
        return run_warnings(self.scene, self.times, self.inverted, self.velocities)

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


def run_warnings(
    scene: Scene, times: np.ndarray, inverted: np.ndarray, velocities: np.ndarray
) -> list[str]:
    """What to know before trusting a run; velocities: of frames one step apart."""
    return [
        *weight_warning(scene),
        *_inversion_warning(scene, times, inverted),
        *step_warnings(scene, velocities),
    ]


def _inversion_warning(scene: Scene, times: np.ndarray, inverted: np.ndarray) -> list[str]:
    """A sentence where cells were inside out, and what to do about it."""
    bad = np.flatnonzero(inverted > 0)
    if not len(bad):
        return []
    cells, first = len(scene.body.cells), float(times[bad[0]])
    stays = bool(inverted[-1] > 0)
    until = "on" if stays else f"to t = {float(times[bad[-1]]):.4g} s"
    return [
        f"{int(inverted.max())} of {cells} cells are inside out from t = {first:.4g} s {until}: "
        f"use dt <= {scene.dt / 4.0:.2g} s, smaller cells, or a softer impact."
    ]
