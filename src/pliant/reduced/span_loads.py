"""Loads of a reduced body: what does not change with time is pulled through the span once."""

from collections.abc import Sequence

import numpy as np

from pliant.dynamics.boundary import Boundary
from pliant.dynamics.loads import BodyForce
from pliant.reduced.spans import Span


class SpanLoads:
    """B^T of a scene's loads, without gravity, and of one more force that a caller pushes with."""

    def __init__(self, boundary: Boundary, span: Span):
        self._boundary, self._span = boundary, span
        self._push: np.ndarray | None = None
        self._pulled = [span.pull(spread[:, : span.dim]) for _, spread in boundary.loads]
        self._anew = any(
            isinstance(load, BodyForce) and callable(load.force) for load, _ in boundary.loads
        )

    @property
    def any(self) -> bool:
        """Whether anything but gravity acts."""
        return bool(self._pulled) or self._push is not None

    def push(self, force: np.ndarray | None) -> None:
        """A force (nodes, 3) [N] on the steps to come."""
        self._push = None if force is None else self._span.pull(force[:, : self._span.dim])

    def at(self, t: float) -> np.ndarray:
        """All of them at time t, (size,)."""
        if self._anew:
            out = self._span.pull(self._boundary.load_forces(t)[:, : self._span.dim])
        else:
            out = np.zeros(self._span.size)
            for (load, _), pulled in zip(self._boundary.loads, self._pulled, strict=True):
                out += _factor(load.history, t) * pulled
        return out if self._push is None else out + self._push


def _factor(history, t: float) -> float:
    return 1.0 if history is None else float(history(np.zeros((1, 1)), t)[0, 0])


def weights_of(fields: Sequence[np.ndarray], row: Sequence[float]) -> np.ndarray:
    """The sum of fields with the weights of an integrator's row."""
    out = row[0] * fields[0]
    for weight, field in zip(row[1:], fields[1:], strict=True):
        if weight != 0.0:
            out = out + weight * field
    return out
