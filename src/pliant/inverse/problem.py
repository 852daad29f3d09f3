"""The misfit of a simulation against observations, as a function of the unknowns."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import warp as wp

from pliant.core.launch import to_device
from pliant.dynamics.scene import Scene
from pliant.dynamics.system import State, System
from pliant.inverse.costs import (
    Residuals,
    check_observations,
    depth_residuals,
    foot_residuals,
    mean_curvature,
)
from pliant.inverse.losses import Loss
from pliant.inverse.sensitivity import run, run_adjoint, run_with_tangents
from pliant.inverse.unknowns import UnknownSet
from pliant.observe.observations import Observations
from pliant.observe.raycast import SurfaceQueries


@dataclass
class Evaluation:
    """Cost and, where asked for, its Gauss-Newton model at q.

    cost = sum rho(r / sigma) [1] over the usable points; rise: change of the cost against a
    previous evaluation over the points usable in both; gradient (p,), hessian (p, p); rms [m] of
    the residuals; frame_rms: (frames,) [m]; values: per frame, each point's cost, NaN if unusable.
    """

    q: np.ndarray
    cost: float
    residual_count: int
    rms: float
    spread: float
    gradient: np.ndarray | None = None
    hessian: np.ndarray | None = None
    rise: float = 0.0
    values: dict[int, np.ndarray] = field(default_factory=dict, repr=False)
    loss: Loss | None = None
    frame_rms: np.ndarray = field(default_factory=lambda: np.zeros(0))


@dataclass(frozen=True)
class _Moment:
    """An observed frame between two steps: state = (1 - share) * step + share * (step + 1)."""

    frame: int
    step: int
    share: float


class Problem:
    """Misfit of a scene's simulation against observations."""

    def __init__(
        self,
        scene: Scene,
        seen: Observations,
        unknowns: UnknownSet,
        *,
        cost: str = "auto",
        progress: Callable[[int, int], None] | None = None,
    ):
        check_observations(seen)
        self.scene, self.seen, self.unknowns = scene, seen, unknowns
        self.system = System(unknowns.apply(scene, unknowns.start()))
        organised = all(f.organised for f in seen.frames if len(f))
        self.cost_name = ("depth" if organised else "foot") if cost == "auto" else cost
        surface = scene.body.surface
        self._surface = surface
        self._queries = SurfaceQueries(surface.positions(scene.body.nodes), surface.facets)
        self._progress = progress
        dt = scene.dt
        self._moments = []
        for k, frame in enumerate(seen.frames):
            if len(frame) == 0:
                continue
            position = frame.time / dt
            step = int(np.floor(position + 1e-9))
            self._moments.append(_Moment(k, step, max(0.0, position - step)))
        self.last_step = max(
            m.step + (1 if m.share > 1e-9 else 0) for m in self._moments
        )

    def evaluate(
        self,
        q: np.ndarray,
        loss: Loss,
        *,
        derivatives: bool = True,
        horizon: int | None = None,
        previous: Evaluation | None = None,
    ) -> Evaluation:
        """Simulate at q up to step `horizon` and sum up the misfit."""
        steps = self.last_step if horizon is None else min(horizon, self.last_step)
        self.system.update(self.unknowns.apply(self.scene, q))
        directions = self.unknowns.directions(self.system, q) if derivatives else []
        p = len(q)
        total = _Sums(p if derivatives else 0, len(self.seen.frames), loss, previous)
        before: tuple[np.ndarray, list[np.ndarray]] | None = None

        def on_frame(step: int, state: State, tangents: list[State]) -> None:
            nonlocal before
            now = (state.u.numpy(), [t.u.numpy() for t in tangents])
            for m in self._moments:
                if m.step == step and m.share <= 1e-9:
                    self._add(total, m.frame, now[0], now[1], loss)
                elif before is not None and m.step == step - 1 and m.share > 1e-9:
                    mix = [
                        (1.0 - m.share) * a + m.share * b
                        for a, b in zip([before[0], *before[1]], [now[0], *now[1]], strict=True)
                    ]
                    self._add(total, m.frame, mix[0], mix[1:], loss)
            before = now
            if self._progress is not None:
                self._progress(step, steps)

        run_with_tangents(self.system, steps, directions, on_frame)
        return total.evaluation(q)

    def gradient(self, q: np.ndarray, loss: Loss, *, horizon: int | None = None) -> Evaluation:
        """Cost and gradient by the adjoint: one backward run, however many unknowns."""
        steps = self.last_step if horizon is None else min(horizon, self.last_step)
        self.system.update(self.unknowns.apply(self.scene, q))
        states = run(self.system, steps)
        total = _Sums(0, len(self.seen.frames), loss, None)
        seeds: dict[int, np.ndarray] = {}
        for m in self._moments:
            parts = [(m.step, 1.0 - m.share)]
            if m.share > 1e-9:
                parts.append((m.step + 1, m.share))
            if parts[-1][0] > steps:
                continue
            u = sum(weight * states[k].u.numpy() for k, weight in parts)
            bar = self._add(total, m.frame, u, [], loss, pull=True)
            for k, weight in parts:
                seeds[k] = seeds.get(k, 0.0) + weight * bar

        def seed(k: int, state: State) -> State | None:
            if k not in seeds:
                return None
            zero = wp.zeros_like(state.u)
            return State(to_device(seeds[k], wp.vec3d), zero, zero)

        dual = run_adjoint(self.system, states, seed)
        result = total.evaluation(q)
        result.gradient = self.unknowns.pull(self.system, q, dual)
        return result

    def residuals(self, frame: int, u: np.ndarray, loss: Loss) -> Residuals:
        """Residuals of one frame for a displacement (nodes, 3)."""
        points = self._surface.positions(self.scene.body.nodes + u)
        self._queries.move(points)
        seen = self.seen.frames[frame]
        if self.cost_name == "depth":
            near = max(3.0 * loss.sigma, self.scene.body.spacing)
            return depth_residuals(self._queries, seen, self.seen.cameras, near)
        curvature = mean_curvature(points, self._surface.facets)
        return foot_residuals(self._queries, seen, curvature, loss.sigma)

    def _add(self, total, frame, u, tangents, loss, *, pull=False):
        res = self.residuals(frame, u, loss)
        columns = [res.along(self._surface.positions(t)) for t in tangents]
        weight = total.add(frame, res, columns)
        if pull:
            at_points = res.pull(weight * res.r, len(self._surface.points))
            return self._surface.points.spread(at_points)
        return None


class _Sums:
    def __init__(self, p: int, frames: int, loss: Loss, previous: Evaluation | None):
        self.p, self.loss, self.previous = p, loss, previous
        self.cost = self.rise = 0.0
        self.g, self.H = np.zeros(p), np.zeros((p, p))
        self.square, self.count = np.zeros(frames), np.zeros(frames)
        self.values: dict[int, np.ndarray] = {}
        self.all: list[np.ndarray] = []

    def add(self, frame: int, res: Residuals, columns: list[np.ndarray]) -> np.ndarray:
        """Add a frame; returns the weights (m,) of its points, zero where not usable."""
        value, weight = self.loss(res.r)
        value = np.where(res.usable, value, np.nan)
        self.values[frame] = value
        if self.previous is not None:
            self.rise += float(np.nansum(value - self.previous.values[frame]))
        weight = np.where(res.usable, weight, 0.0)
        r = res.r[res.usable]
        self.cost += float(np.nansum(value))
        self.square[frame] = float(r @ r)
        self.count[frame] = len(r)
        self.all.append(r)
        if self.p:
            J = np.stack(columns, axis=1)
            self.g += J.T @ (weight * res.r)
            self.H += J.T @ (weight[:, None] * J)
        return weight

    def evaluation(self, q) -> Evaluation:
        r = np.concatenate(self.all) if self.all else np.zeros(0)
        count = max(len(r), 1)
        return Evaluation(
            q=q.copy(),
            cost=self.cost,
            residual_count=len(r),
            rms=float(np.sqrt(self.square.sum() / count)),
            spread=float(1.4826 * np.median(np.abs(r))) if len(r) else 0.0,
            gradient=self.g if self.p else None,
            hessian=self.H if self.p else None,
            rise=self.rise,
            values=self.values,
            loss=self.loss,
            frame_rms=np.sqrt(self.square / np.maximum(self.count, 1)),
        )
