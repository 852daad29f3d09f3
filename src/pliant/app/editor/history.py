"""Frames of a run in memory, for the timeline: displacements in single precision, bounded."""

from dataclasses import dataclass, field

import numpy as np

LIMIT = 400 * 1024**2
"""Bytes of displacements kept; beyond it every second frame goes."""


ENERGIES = ("kinetic", "elastic", "gravity", "contact", "dissipated")
"""What the page plots of the account of energies."""


@dataclass
class Frame:
    """One frame: u (nodes, dim) float32 [m], time [s], and numbers about the step by name."""

    step: int
    t: float
    u: np.ndarray
    numbers: dict[str, float] = field(default_factory=dict)


class History:
    """Frames in ascending time."""

    def __init__(self, limit: int = LIMIT):
        self._limit = limit
        self._frames: list[Frame] = []

    def __len__(self) -> int:
        return len(self._frames)

    def __getitem__(self, index: int) -> Frame:
        return self._frames[index]

    def clear(self) -> None:
        """Forget everything."""
        self._frames.clear()

    def cut_after(self, index: int) -> None:
        """Forget what follows a frame: a run that goes on from it takes another way."""
        del self._frames[index + 1 :]

    def append(self, frame: Frame) -> None:
        """Add a frame; when full, every second one but the first and the last goes."""
        self._frames.append(frame)
        if len(self._frames) * frame.u.nbytes > self._limit and len(self._frames) > 4:
            last = self._frames[-1]
            self._frames = self._frames[:-1:2]
            self._frames.append(last)

    def series(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Times and values of a number, of the frames that have it."""
        found = [(f.t, f.numbers[name]) for f in self._frames if name in f.numbers]
        if not found:
            return np.zeros(0), np.zeros(0)
        t, y = np.array(found).T
        return t, y
