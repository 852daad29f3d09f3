"""The misfit of a simulation against observations, as a function of the unknowns."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from time import perf_counter
from typing import Protocol

import numpy as np
import warp as wp

from pliant.core.launch import to_device, zeros
from pliant.dynamics.law_system import make_system
from pliant.dynamics.scene import Scene
from pliant.dynamics.system import State
from pliant.inverse.checkpoints import Checkpoints, states_within
from pliant.inverse.costs import Residuals
from pliant.inverse.level_set_cost import LevelSets
from pliant.inverse.losses import Loss
from pliant.inverse.measures import (
    FrameMisfit,
    NodeMotions,
    Pair,
    SurfaceMeasure,
    make_measure,
)
from pliant.inverse.sensitivity import Clock, add_host, run, run_adjoint, run_with_tangents
from pliant.inverse.unknowns import UnknownSet
from pliant.observe.observations import Observations


class Regulariser(Protocol):
    """A penalty on q beside the data, for fields."""

    def __call__(self, q: np.ndarray) -> tuple[float, np.ndarray]:
        """Cost and gradient (p,)."""
        ...


@dataclass(frozen=True)
class Evaluation:
    """The misfit at q, frame by frame; costs and Gauss-Newton models follow for any loss."""

    q: np.ndarray
    loss: Loss
    frames: dict[int, FrameMisfit] = field(repr=False)
    frame_count: int = 0
    prior: tuple[float, np.ndarray, np.ndarray] | None = field(default=None, repr=False)

    def under(self, loss: Loss) -> "Evaluation":
        """The same misfit judged by another loss."""
        return replace(self, loss=loss)

    @cached_property
    def model(self) -> tuple[float, np.ndarray, np.ndarray]:
        """Cost = sum rho(r) over the usable points + priors, gradient (p,) and Hessian (p, p)."""
        p = next(iter(self.frames.values())).J.shape[1] if self.frames else 0
        cost, g, H = 0.0, np.zeros(p), np.zeros((p, p))
        for f in self.frames.values():
            value, weight = self.loss(f.r)
            weight = np.where(f.usable, weight, 0.0)
            cost += float(value[f.usable].sum())
            g += f.J.T @ (weight * f.r)
            H += f.J.T @ (weight[:, None] * f.J)
        if self.prior is not None:
            cost += self.prior[0]
            if p:
                g += self.prior[1]
                H += np.diag(self.prior[2])
        return cost, g, H

    @property
    def has_tangents(self) -> bool:
        """True if the derivatives by q are known."""
        return any(f.J.shape[1] for f in self.frames.values())

    def until(self, frames: set[int]) -> "Evaluation":
        """The misfit of some of the frames only."""
        return replace(self, frames={k: f for k, f in self.frames.items() if k in frames})

    def predicted(self, dq: np.ndarray) -> "Evaluation":
        """The misfit at q + dq by its own linearisation."""
        frames = {k: FrameMisfit(f.r + f.J @ dq, f.J, f.usable) for k, f in self.frames.items()}
        prior = self.prior
        if prior is not None:
            c, g, h = prior
            prior = (c + float(g @ dq + 0.5 * (h * dq) @ dq), g + h * dq, h)
        return replace(self, q=self.q + dq, frames=frames, prior=prior)

    @property
    def cost(self) -> float:
        """Sum of the losses [1]."""
        return self.model[0]

    def rise_from(self, before: "Evaluation") -> float:
        """Change of the cost against another evaluation, over the points usable in both."""
        total = 0.0
        if self.prior is not None and before.prior is not None:
            total = self.prior[0] - before.prior[0]
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

    @property
    def last(self) -> int:
        """The step after which the frame can be compared."""
        return self.step + (1 if self.share else 0)

    def mix(self, before: Pair, after: Pair) -> Pair:
        """The motion at the frame's time."""
        s = self.share
        return (1.0 - s) * before[0] + s * after[0], (1.0 - s) * before[1] + s * after[1]


class Problem:
    """Misfit of a scene's simulation against observations.

    tangent_tolerance: of the tangents' solves, the scene's own unless told. memory_limit [bytes]:
    what the states of a gradient may take; beyond it they are recomputed (see checkpoints).
    regulariser: a penalty on q that gradients include.
    """

    def __init__(
        self,
        scene: Scene,
        seen: Observations | NodeMotions | LevelSets,
        unknowns: UnknownSet,
        *,
        cost: str = "auto",
        progress: Callable[[int, int], None] | None = None,
        tangent_tolerance: float | None = None,
        memory_limit: float | None = None,
        regulariser: Regulariser | None = None,
    ):
        self.measure = make_measure(scene, seen, cost)
        self.scene, self.seen, self.unknowns = scene, seen, unknowns
        self.system = make_system(unknowns.apply(scene, unknowns.start()))
        self.cost_name, self.noise = self.measure.cost_name, self.measure.noise
        self.clock = Clock()
        self._progress, self._memory_limit = progress, memory_limit
        self._tangent_tolerance, self._regulariser = tangent_tolerance, regulariser
        dt = scene.dt
        self._moments = []
        for k, time in self.measure.times:
            position = time / dt
            step = int(np.floor(position + 1e-9))
            share = position - step
            self._moments.append(_Moment(k, step, share if share > 1e-9 else 0.0))
        self.last_step = max(m.last for m in self._moments)

    def evaluate(
        self,
        q: np.ndarray,
        loss: Loss,
        *,
        derivatives: bool = True,
        horizon: int | None = None,
        runner: Callable[..., None] = run_with_tangents,
    ) -> Evaluation:
        """Simulate at q up to step `horizon` and collect the misfit; runner: whose tangents."""
        steps = self.last_step if horizon is None else min(horizon, self.last_step)
        self.system.update(self.unknowns.apply(self.scene, q))
        directions = self.unknowns.directions(self.system, q) if derivatives else []
        frames: dict[int, FrameMisfit] = {}
        before: list[Pair] = []

        def on_frame(step: int, state: State, tangents: list[State]) -> None:
            nonlocal before
            began = perf_counter()
            now = [_pair(s) for s in (state, *tangents)]
            for m in self._moments:
                if m.last == step:
                    mixed = now
                    if m.share:
                        mixed = [m.mix(a, b) for a, b in zip(before, now, strict=True)]
                    frames[m.frame] = self.measure.misfit(m.frame, mixed[0], mixed[1:], loss)
            before = now
            self.clock.add("observe", perf_counter() - began)
            if self._progress is not None:
                self._progress(step, steps)

        runner(
            self.system, steps, directions, on_frame, tolerance=self._tangent_tolerance,
            clock=self.clock,
        )  # fmt: skip
        return self._evaluation(q, loss, frames)

    def frames_until(self, horizon: int) -> set[int]:
        """Frames that a run of `horizon` steps reaches."""
        return {m.frame for m in self._moments if m.last <= horizon}

    def _evaluation(self, q: np.ndarray, loss: Loss, frames) -> Evaluation:
        prior = self.unknowns.prior_terms(q) if self.unknowns.priors else None
        if self._regulariser is not None:
            cost, gradient = self._regulariser(q)
            own = prior or (0.0, np.zeros(len(q)), np.zeros(len(q)))
            prior = (own[0] + cost, own[1] + gradient, own[2])
        ordered = dict(sorted(frames.items()))
        return Evaluation(q.copy(), loss, ordered, self.measure.frame_count, prior)

    def gradient(
        self, q: np.ndarray, loss: Loss, *, horizon: int | None = None
    ) -> tuple[Evaluation, np.ndarray]:
        """Misfit and gradient by the adjoint: one backward run, however many unknowns."""
        steps = self.last_step if horizon is None else min(horizon, self.last_step)
        self.system.update(self.unknowns.apply(self.scene, q))
        t0 = perf_counter()
        states = states_within(self.system, steps, self._memory_limit)
        t1 = perf_counter()
        frames: dict[int, FrameMisfit] = {}
        waiting = {m.frame for m in self._moments if m.last <= steps}
        observing = 0.0

        def seed(k: int, state: State) -> State | None:
            """Duals of the frames at step k; one between k and k + 1 joins when both are known."""
            nonlocal observing
            began = perf_counter()
            own = _pair(state)
            u_bar, v_bar = np.zeros_like(own[0]), np.zeros_like(own[1])
            for m in self._moments:
                if m.frame not in waiting or m.step != k or m.share:
                    continue
                frames[m.frame], bar = self.measure.dual(m.frame, own, loss)
                u_bar += bar[0]
                v_bar += bar[1]
            observing += perf_counter() - began
            return State(to_device(u_bar, wp.vec3d), to_device(v_bar, wp.vec3d), self._still)

        def between(k: int, before: State, after: State, bar: State) -> State | None:
            """Frames between steps k and k + 1: their dual on `after` into bar, on `before` out."""
            nonlocal observing
            own = [m for m in self._moments if m.share and m.step == k and m.frame in waiting]
            if not own:
                return None
            began = perf_counter()
            total = [np.zeros((self.system.node_count, 3)) for _ in range(4)]
            first, last = _pair(before), _pair(after)
            for m in own:
                frames[m.frame], d = self.measure.dual(m.frame, m.mix(first, last), loss)
                for i in range(2):
                    total[i] += (1.0 - m.share) * d[i]
                    total[2 + i] += m.share * d[i]
            add_host(bar, total[2], total[3])
            observing += perf_counter() - began
            return State(to_device(total[0], wp.vec3d), to_device(total[1], wp.vec3d), self._still)

        def reached(k: int) -> None:
            if self._progress is not None:
                self._progress(steps - k, steps)

        dual = run_adjoint(self.system, states, seed, between=between, on_step=reached)
        self.clock.add("observe", observing)
        found = self._evaluation(q, loss, frames)
        gradient = self.unknowns.pull(self.system, q, dual)
        if found.prior is not None:
            gradient = gradient + found.prior[1]
        if not isinstance(states, Checkpoints):
            self.clock.add("forward_run", t1 - t0)
            self.clock.add("adjoint_run", perf_counter() - t1 - observing)
        return found, gradient

    @cached_property
    def _still(self) -> wp.array:
        return zeros(self.system.node_count, wp.vec3d)

    def gradient_mismatch(self, q: np.ndarray, loss: Loss) -> float:
        """Largest relative difference of tangent and adjoint gradients over the first frame."""
        horizon = max(1, min(m.last for m in self._moments))
        tangent = self.evaluate(q, loss, horizon=horizon).model[1]
        adjoint = self.gradient(q, loss, horizon=horizon)[1]
        return float(np.abs(tangent - adjoint).max() / max(np.abs(tangent).max(), 1e-300))

    def residuals(self, frame: int, u: np.ndarray, loss: Loss) -> Residuals:
        """Residuals of one frame of surface points for a displacement (nodes, 3)."""
        assert isinstance(self.measure, SurfaceMeasure)
        return self.measure.residuals(frame, u, loss)

    def step_times(self, steps: int = 3) -> dict[str, float]:
        """Milliseconds of a step forward and of one back, alone, at the present parameters."""
        states = run(self.system, 1)  # warm
        best = {"forward_ms": np.inf, "adjoint_ms": np.inf}
        bar = states[-1]
        for _ in range(2):  # the quicker of two: other programs slow the machine down
            t0 = perf_counter()
            states = run(self.system, steps)
            t1 = perf_counter()
            run_adjoint(self.system, states, lambda k, s: bar if k == steps else None)
            t2 = perf_counter()
            best["forward_ms"] = min(best["forward_ms"], 1e3 * (t1 - t0) / steps)
            best["adjoint_ms"] = min(best["adjoint_ms"], 1e3 * (t2 - t1) / steps)
        return best


def _pair(state: State) -> Pair:
    return state.u.numpy(), state.v.numpy()
