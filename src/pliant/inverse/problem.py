"""The misfit of a simulation against observations, as a function of the unknowns."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

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


@dataclass(frozen=True)
class FrameMisfit:
    """Residuals r (m,) [m] of a frame, their derivative J (m, p) by q, and which are usable."""

    r: np.ndarray
    J: np.ndarray
    usable: np.ndarray


@dataclass(frozen=True)
class Evaluation:
    """The misfit at q, frame by frame; costs and Gauss-Newton models follow for any loss."""

    q: np.ndarray
    loss: Loss
    frames: dict[int, FrameMisfit] = field(repr=False)
    frame_count: int = 0

    def under(self, loss: Loss) -> "Evaluation":
        """The same misfit judged by another loss."""
        return replace(self, loss=loss)

    @cached_property
    def model(self) -> tuple[float, np.ndarray, np.ndarray]:
        """Cost = sum rho(r) over the usable points, its gradient (p,) and Hessian (p, p)."""
        p = next(iter(self.frames.values())).J.shape[1] if self.frames else 0
        cost, g, H = 0.0, np.zeros(p), np.zeros((p, p))
        for f in self.frames.values():
            value, weight = self.loss(f.r)
            weight = np.where(f.usable, weight, 0.0)
            cost += float(value[f.usable].sum())
            g += f.J.T @ (weight * f.r)
            H += f.J.T @ (weight[:, None] * f.J)
        return cost, g, H

    @property
    def cost(self) -> float:
        """Sum of the losses [1]."""
        return self.model[0]

    def rise_from(self, before: "Evaluation") -> float:
        """Change of the cost against another evaluation, over the points usable in both."""
        total = 0.0
        for k, f in self.frames.items():
            both = f.usable & before.frames[k].usable
            total += float((self.loss(f.r)[0] - self.loss(before.frames[k].r)[0])[both].sum())
        return total

    @cached_property
    def usable(self) -> np.ndarray:
        """All usable residuals [m]."""
        parts = [f.r[f.usable] for f in self.frames.values()]
        return np.concatenate(parts) if parts else np.zeros(0)

    @property
    def rms(self) -> float:
        """Root mean square of the residuals [m]."""
        return float(np.sqrt(np.mean(self.usable**2))) if len(self.usable) else 0.0

    @property
    def spread(self) -> float:
        """Robust standard deviation of the residuals [m]: 1.4826 times the median size."""
        return float(1.4826 * np.median(np.abs(self.usable))) if len(self.usable) else 0.0

    @property
    def frame_rms(self) -> np.ndarray:
        """Root mean square of each frame's residuals [m], zero for frames without any."""
        out = np.zeros(self.frame_count)
        for k, f in self.frames.items():
            if f.usable.any():
                out[k] = np.sqrt(np.mean(f.r[f.usable] ** 2))
        return out


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
    ) -> Evaluation:
        """Simulate at q up to step `horizon` and collect the misfit."""
        steps = self.last_step if horizon is None else min(horizon, self.last_step)
        self.system.update(self.unknowns.apply(self.scene, q))
        directions = self.unknowns.directions(self.system, q) if derivatives else []
        frames: dict[int, FrameMisfit] = {}
        before: tuple[np.ndarray, list[np.ndarray]] | None = None

        def on_frame(step: int, state: State, tangents: list[State]) -> None:
            nonlocal before
            now = (state.u.numpy(), [t.u.numpy() for t in tangents])
            for m in self._moments:
                if m.step == step and m.share <= 1e-9:
                    frames[m.frame] = self._misfit(m.frame, now[0], now[1], loss)
                elif before is not None and m.step == step - 1 and m.share > 1e-9:
                    mix = [
                        (1.0 - m.share) * a + m.share * b
                        for a, b in zip([before[0], *before[1]], [now[0], *now[1]], strict=True)
                    ]
                    frames[m.frame] = self._misfit(m.frame, mix[0], mix[1:], loss)
            before = now
            if self._progress is not None:
                self._progress(step, steps)

        run_with_tangents(self.system, steps, directions, on_frame)
        return Evaluation(q.copy(), loss, frames, len(self.seen.frames))

    def gradient(
        self, q: np.ndarray, loss: Loss, *, horizon: int | None = None
    ) -> tuple[Evaluation, np.ndarray]:
        """Misfit and gradient by the adjoint: one backward run, however many unknowns."""
        steps = self.last_step if horizon is None else min(horizon, self.last_step)
        self.system.update(self.unknowns.apply(self.scene, q))
        states = run(self.system, steps)
        frames: dict[int, FrameMisfit] = {}
        seeds: dict[int, np.ndarray] = {}
        for m in self._moments:
            parts = [(m.step, 1.0 - m.share)]
            if m.share > 1e-9:
                parts.append((m.step + 1, m.share))
            if parts[-1][0] > steps:
                continue
            u = sum(weight * states[k].u.numpy() for k, weight in parts)
            res = self.residuals(m.frame, u, loss)
            frames[m.frame] = FrameMisfit(res.r, np.zeros((len(res.r), 0)), res.usable)
            weight = np.where(res.usable, loss(res.r)[1], 0.0)
            at_points = res.pull(weight * res.r, len(self._surface.points))
            bar = self._surface.points.spread(at_points)
            for k, weight in parts:
                seeds[k] = seeds.get(k, 0.0) + weight * bar

        def seed(k: int, state: State) -> State | None:
            if k not in seeds:
                return None
            zero = wp.zeros_like(state.u)
            return State(to_device(seeds[k], wp.vec3d), zero, zero)

        dual = run_adjoint(self.system, states, seed)
        found = Evaluation(q.copy(), loss, frames, len(self.seen.frames))
        return found, self.unknowns.pull(self.system, q, dual)

    def gradient_mismatch(self, q: np.ndarray, loss: Loss) -> float:
        """Largest relative difference of tangent and adjoint gradients over the first frames."""
        first = min(m.step + (1 if m.share > 1e-9 else 0) for m in self._moments)
        horizon = max(2, first)
        tangent = self.evaluate(q, loss, horizon=horizon).model[1]
        adjoint = self.gradient(q, loss, horizon=horizon)[1]
        return float(np.abs(tangent - adjoint).max() / max(np.abs(tangent).max(), 1e-300))

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

    def _misfit(self, frame: int, u: np.ndarray, tangents, loss: Loss) -> FrameMisfit:
        res = self.residuals(frame, u, loss)
        columns = [res.along(self._surface.positions(t)) for t in tangents]
        J = np.stack(columns, axis=1) if columns else np.zeros((len(res.r), 0))
        return FrameMisfit(res.r, J, res.usable)
