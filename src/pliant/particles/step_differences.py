"""Derivatives of steps of particles: central differences of single steps along directions.

    d after . (ds, dp) = (step(s + e ds, p + e dp) - step(s - e ds, p - e dp)) / (2 e)

Steps are smooth but where a point meets an obstacle, so that these tangents hold to about 1e-8.
Two models with shifted parameters are kept for each direction. There is no adjoint: a fit with many
unknowns takes finite elements.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import warp as wp

from pliant.core.errors import BadInput
from pliant.core.launch import to_device
from pliant.dynamics.model import Parameters, State

if TYPE_CHECKING:
    from pliant.particles.particle_model import ParticleModel

SHIFT = 1e-5
"""Largest relative change of a parameter, or of a displacement over the body's size."""


class StepDifferences:
    """The Derivatives of a model of particles."""

    def __init__(self, model: "ParticleModel"):
        self._model = model
        self._pairs: dict[bytes, tuple[float, list[ParticleModel]]] = {}

    def initial_tangents(self, state: State, directions: Sequence[Parameters]) -> list[State]:
        """See Derivatives: only a velocity changes the start."""
        self._pairs.clear()
        count = self._model.node_count
        out = []
        for direction in directions:
            v = np.broadcast_to(np.asarray(direction.get("velocity", 0.0), float), (count, 3))
            still = {n: wp.zeros_like(x) for n, x in state.arrays.items()}
            out.append(State({**still, "v": to_device(v, wp.vec3d)}, state.t))
        return out

    def tangents(
        self,
        before: State,
        after: State,
        changes: Sequence[State],
        directions: Sequence[Parameters],
        *,
        tolerance: float | None = None,
    ) -> list[State]:
        """See Derivatives; nothing is solved, so there is no tolerance."""
        start = self._model.saved(before)
        out = []
        for change, direction in zip(changes, directions, strict=True):
            e, models = self._shifted(direction)
            way = self._model.saved(change)
            if not np.isfinite(e):
                size = max((float(np.abs(w).max()) for w in way.values()), default=0.0)
                e = SHIFT * float(np.ptp(self._model.scene.body.nodes)) / max(size, 1e-300)
            ends = []
            for sign, model in zip((1.0, -1.0), models, strict=True):
                moved = {n: x + sign * e * way[n] for n, x in start.items()}
                ends.append(model.saved(model.step(model.restored(moved, before.t))[0]))
            slope = {n: (ends[0][n] - ends[1][n]) / (2.0 * e) for n in start}
            out.append(self._model.restored(slope, after.t))
        return out

    def _shifted(self, direction: Parameters) -> tuple[float, list["ParticleModel"]]:
        """The step of the difference, infinite where no parameter moves, and the models."""
        base = self._model
        own = {n: np.asarray(v, float) for n, v in direction.items() if n != "velocity"}
        own = {n: v for n, v in own.items() if np.any(v)}
        if not own:
            return np.inf, [base, base]
        key = b"".join(n.encode() + v.tobytes() for n, v in sorted(own.items()))
        if key not in self._pairs:
            e = SHIFT / max(float(np.max(np.abs(v) / base.scale_of(n))) for n, v in own.items())
            numbers = replace(base.scene.numbers, substeps=base.substeps)
            scene = replace(base.scene, numbers=numbers)
            made = []
            for sign in (e, -e):
                model = type(base)(scene)
                model.shift = Parameters({n: sign * v for n, v in own.items()})
                model.update(scene)
                made.append(model)
            self._pairs[key] = (e, made)
        return self._pairs[key]

    def begin_adjoint(self, tolerance: float | None = None) -> None:
        """See Derivatives."""
        raise BadInput(
            f"model = '{self._model.scene.model}' has no adjoint: take an optimiser that uses "
            "tangents (gauss-newton), or a model of finite elements."
        )

    def adjoint(self, before: State, after: State, bar: State, dual: Parameters) -> State:
        """See Derivatives: there is none."""
        raise TypeError(type(self._model).__name__)

    def initial_adjoint(self, state: State, bar: State, dual: Parameters) -> None:
        """See Derivatives: there is none."""
        raise TypeError(type(self._model).__name__)
