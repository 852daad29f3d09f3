"""Anderson acceleration of a fixed-point iteration u <- u + g(u) (Walker and Ni 2011).

Keeps the last few steps and picks the combination whose linearised residual is least; for a linear
contraction it is GMRES, so slow fixed points converge in tens of steps instead of hundreds.
"""

import numpy as np


class Anderson:
    """Feed it u and the step g(u); it returns the next u."""

    def __init__(self, *, depth: int = 10, mixing: float = 1.0):
        """depth: steps remembered, 0 for none; mixing: share of the combined residual added."""
        self._depth = depth
        self._mixing = mixing
        self._du: list[np.ndarray] = []
        self._dg: list[np.ndarray] = []
        self._last: tuple[np.ndarray, np.ndarray] | None = None

    def restart(self) -> None:
        """Forget the history."""
        self._du, self._dg, self._last = [], [], None

    def next(self, u: np.ndarray, g: np.ndarray) -> np.ndarray:
        """The accelerated successor of u, whose plain successor would be u + mixing * g."""
        if self._depth == 0:
            return u + self._mixing * g
        x, f = u.reshape(-1), g.reshape(-1)
        if self._last is not None:
            self._du.append(x - self._last[0])
            self._dg.append(f - self._last[1])
            if len(self._du) > self._depth:
                self._du.pop(0)
                self._dg.pop(0)
        self._last = (x.copy(), f.copy())
        if not self._du:
            return u + self._mixing * g
        G = np.stack(self._dg, axis=1)
        gamma = np.linalg.lstsq(G, f, rcond=1e-10)[0]
        step = self._mixing * f - (np.stack(self._du, axis=1) + self._mixing * G) @ gamma
        return u + step.reshape(u.shape)
