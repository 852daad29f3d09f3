"""How far a reduced run is from the full one: the full body's imbalance, turned into displacement.

At some frames of a run the forces of the full body are taken at the reduced motion,

    r = f_ext - f(u) - D u' - M (u'' + alpha u'),

u'' from differences of the velocities. A body that moves as the full one does has r = 0; what is
lacking pushes it beside its way, by one solve with the full tangent at the place reached,

    y = (2 M / t^2 + K(u))^-1 r,

r t^2 / 2 m where it has had no time t to resist, and later K^-1 r, the way to where forces balance.
r comes and goes with the motion itself, to which the body resonates: after a time t an oscillator
of angular frequency w and damping ratio z that is pushed at its own frequency is off by y times

    g = (1 - e^(-z w t)) / (2 z),    w t / 2 without damping,

w the run's own, speed over displacement about its mean. The estimate is e = (1 + g) y.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import warp as wp

from pliant.core.errors import SolverFailure
from pliant.core.launch import to_device, zeros
from pliant.core.vectors import in_space
from pliant.dynamics.constitution import DEFAULT
from pliant.dynamics.implicit import ImplicitModel
from pliant.dynamics.integrators import ImplicitEuler
from pliant.dynamics.model import State
from pliant.dynamics.scene import Scene
from pliant.dynamics.trajectory import Trajectory
from pliant.linalg.blocks import keep_free
from pliant.linalg.pcg import Tolerance

FRAMES = 8
"""Frames that are looked at, unless told."""

ENOUGH = 1e-3
"""Relative residual of the solves: an estimate has one digit."""


@dataclass(frozen=True)
class ErrorEstimate:
    """Of a run: frames, and at each the root mean square of e and of u over the nodes [m].

    fields: e itself, (frames, nodes, dim).
    """

    frames: np.ndarray
    errors: np.ndarray
    sizes: np.ndarray
    fields: np.ndarray

    @property
    def relative(self) -> float:
        """Root mean square of the error over that of the displacement, all frames together."""
        size = float(np.sqrt(np.mean(np.square(self.sizes))))
        return float(np.sqrt(np.mean(np.square(self.errors)))) / max(size, 1e-300)

    def told(self) -> str:
        """A sentence."""
        return (
            f"About {self.relative:.1%} off the full body, judged by its imbalance at "
            f"{len(self.frames)} frames."
        )


class ErrorEstimator:
    """Judges single frames of runs of a scene's full body; made once, for several of them."""

    def __init__(self, scene: Scene):
        self.model = ImplicitModel(replace(scene, model=DEFAULT, numbers=None, start="rest"))

    def imbalance(self, u: np.ndarray, v: np.ndarray, a: np.ndarray, t: float) -> np.ndarray:
        """r (nodes, 3) [N] of fields (nodes, 3), zero where held."""
        m = self.model
        state = self._state(u, v, t)
        stage, force = m.start_stage(state), to_device(m.external_force(t), wp.vec3d)
        m.elastic.add_force(stage, force)
        for term in m.supports:
            term.add_force(stage, force)
        if m.touch is not None:
            m.touch.add_force(stage, force)
        m.inertia.add(to_device(a + m.material.mass_damping * v, wp.vec3d), force, -1.0)
        keep_free(force, m.matrix.free)
        return force.numpy().copy()

    def response(self, u: np.ndarray, r: np.ndarray, t: float) -> np.ndarray:
        """(2 M / t^2 + K)^-1 r, (nodes, 3) [m]; t [s]: since the start."""
        m = self.model
        m.forget()
        self._assemble(u, t / np.sqrt(2.0), project=True)
        m.preconditioner.update(m.matrix)
        x = zeros(len(u), wp.vec3d)
        found = m.solver.solve(to_device(r, wp.vec3d), x, Tolerance(relative=ENOUGH))
        if not found.outcome.ok and found.residual > 1e2 * found.target:
            raise SolverFailure(f"The error could not be estimated: {found.outcome.value}.")
        return x.numpy().copy()

    def _assemble(self, u: np.ndarray, h: float, *, project: bool) -> None:
        """matrix = M / h^2 + D / h + K."""
        state = self._state(u, np.zeros_like(u), 0.0)
        self.model.pose(state, ImplicitEuler(h)).assemble(state.u, project=project)

    def _state(self, u: np.ndarray, v: np.ndarray, t: float) -> State:
        place, rate = (to_device(np.ascontiguousarray(field), wp.vec3d) for field in (u, v))
        return State.of(place, rate, zeros(len(u), wp.vec3d), t)


def estimated_error(
    run: Trajectory, frames: Sequence[int] | None = None, *, scene: Scene | None = None
) -> ErrorEstimate:
    """Of a run of three steps or more; frames: neither the first nor the last one."""
    scene = scene or run.scene
    assert scene is not None
    last = run.steps - 1
    spread = np.unique(np.linspace(max(1, last // FRAMES), last, FRAMES).round()).astype(int)
    judge, chosen = ErrorEstimator(scene), spread if frames is None else np.asarray(frames)
    fields = []
    for k in chosen.tolist():
        dt, t = float(run.times[k + 1] - run.times[k - 1]), float(run.times[k])
        a = (run.velocities[k + 1] - run.velocities[k - 1]) / dt
        u, v, a = (in_space(x) for x in (run.displacements[k], run.velocities[k], a))
        y = judge.response(u, judge.imbalance(u, v, a, t), t)
        fields.append((1.0 + _growth(run, t)) * y[:, : scene.dim])
    e = np.array(fields)
    size = [
        np.sqrt(np.mean(np.sum(np.square(x), axis=-1), axis=-1))
        for x in (e, run.displacements[chosen])
    ]
    return ErrorEstimate(chosen, size[0], size[1], e)


def _growth(run: Trajectory, t: float) -> float:
    """g at a time of a run."""
    away = run.displacements - run.displacements.mean(axis=0)
    speed, way = (float(np.sqrt(np.mean(np.square(x)))) for x in (run.velocities, away))
    w = speed / max(way, 1e-300)
    material = run.scene.material
    z = 0.5 * (material.mass_damping / max(w, 1e-300) + material.stiffness_damping * w)
    return 0.5 * w * t if z * w * t < 1e-9 else -float(np.expm1(-z * w * t)) / (2.0 * z)
