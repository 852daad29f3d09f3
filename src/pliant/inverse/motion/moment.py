"""A frame's place between two time steps, and the motion there.

Between steps the displacement is the cubic with the positions and velocities of both (Hermite's):
its slope in time is continuous from step to step, so that a clock's offset may be an unknown, and a
frame at a step is compared with that step's own state.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pliant.dynamics.model import Pair

AT_STEP = 1e-9
"""Share of a step within which a frame lies at one."""


@dataclass(frozen=True)
class Moment:
    """A frame at (step + share) dt. Before the start, step is 0 and the share negative: the body
    goes there as its first velocity says, and rests if that is none.
    """

    frame: int
    step: int
    share: float
    dt: float

    @classmethod
    def at(cls, frame: int, time: float, dt: float) -> "Moment":
        """Of a frame at a time [s]."""
        position = time / dt
        step = max(int(np.floor(position + AT_STEP)), 0)
        share = position - step
        return cls(frame, step, share if abs(share) > AT_STEP else 0.0, dt)

    @property
    def between(self) -> bool:
        """Whether the next step's state counts too."""
        return self.share > 0.0

    @property
    def last(self) -> int:
        """The step after which the frame can be compared."""
        return self.step + (1 if self.between else 0)

    @cached_property
    def _position(self) -> tuple[float, float, float, float]:
        """What u, v before and u, v after count in the displacement."""
        s, dt = self.share, self.dt
        if not self.between:
            return 1.0, s * dt, 0.0, 0.0
        return (
            (1.0 + 2.0 * s) * (1.0 - s) ** 2, s * (1.0 - s) ** 2 * dt,
            s * s * (3.0 - 2.0 * s), s * s * (s - 1.0) * dt,
        )  # fmt: skip

    @cached_property
    def _speed(self) -> tuple[float, float, float, float]:
        """The same in its slope by time."""
        s, dt = self.share, self.dt
        if not self.between:
            return 0.0, 1.0, 0.0, 0.0
        return (
            6.0 * s * (s - 1.0) / dt, (1.0 - s) * (1.0 - 3.0 * s),
            6.0 * s * (1.0 - s) / dt, s * (3.0 * s - 2.0),
        )  # fmt: skip

    def mix(self, before: Pair, after: Pair | None) -> Pair:
        """The motion, or a change of it, at the frame's time; velocities are mixed linearly."""
        (u0, v0), (u1, v1) = before, after or before
        a, b, c, d = self._position
        s = self.share if self.between else 0.0
        if self.share == 0.0:
            return before
        return a * u0 + b * v0 + c * u1 + d * v1, (1.0 - s) * v0 + s * v1

    def rate(self, before: Pair, after: Pair | None) -> Pair:
        """How the motion there changes with the frame's time."""
        (u0, v0), (u1, v1) = before, after or before
        a, b, c, d = self._speed
        faster = (v1 - v0) / self.dt if self.between else np.zeros_like(v0)
        return a * u0 + b * v0 + c * u1 + d * v1, faster

    def spread(self, bar: Pair) -> tuple[Pair, Pair]:
        """Transpose of `mix`: the shares of both states in a dual of the motion."""
        a, b, c, d = self._position
        s = self.share if self.between else 0.0
        u, v = bar
        return (a * u, b * u + (1.0 - s) * v), (c * u, d * u + s * v)
