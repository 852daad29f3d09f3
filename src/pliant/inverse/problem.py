"""The misfit of a simulation against observations, as a function of the unknowns."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from time import perf_counter
from typing import Protocol

import numpy as np
import warp as wp
from scipy import sparse

from pliant.core.launch import to_device, zeros
from pliant.dynamics.law_system import make_system
from pliant.dynamics.scene import Scene
from pliant.dynamics.system import State
from pliant.inverse.checkpoints import Checkpoints, states_within
from pliant.inverse.costs import Residuals
from pliant.inverse.direction import Direction
from pliant.inverse.evaluation import Evaluation
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

    def hessian(self, q: np.ndarray) -> sparse.csr_array:
        """(p, p), positive semidefinite, possibly an approximation."""
        ...


@dataclass(frozen=True)
class Moment:
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


INVISIBLE = 1e-5
"""Motions by an unknown, in spacings, of which tangent and adjoint hold rounding only."""


CHANGES = (1e-3, 1e-4)
"""Of the unknowns, in free coordinates, for the difference that checks the tangents."""

MOST_CHANGE = 30.0
"""Times these for unknowns of which little is seen."""

CLOSE = 0.01
"""Relative difference at which no smaller change is tried."""

KEPT = 0.8
"""Share of the residuals that move which is compared with differences: the rest are rays that slip
off a silhouette and feet that jump to another place."""


class Problem:
    """Misfit of a scene's simulation against observations.

    tangent_tolerance: of the tangents' and the adjoint's solves, the scene's own unless told;
    jacobian_tolerance: of those of all unknowns at once, the same unless told.
    memory_limit [bytes]: what the states of a gradient may take; beyond it they are recomputed (see
    checkpoints). regulariser: a penalty on q that gradients include.
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
        jacobian_tolerance: float | None = None,
        memory_limit: float | None = None,
        regulariser: Regulariser | None = None,
    ):
        self.measure = make_measure(scene, seen, cost)
        self.scene, self.seen, self.unknowns = scene, seen, unknowns
        self.system = make_system(unknowns.apply(scene, unknowns.start()))
        self.cost_name, self.noise = self.measure.cost_name, self.measure.noise
        self.clock = Clock()
        self._progress, self._memory_limit = progress, memory_limit
        self.tangent_tolerance, self._regulariser = tangent_tolerance, regulariser
        self.jacobian_tolerance = jacobian_tolerance or tangent_tolerance
        dt = scene.dt
        self.moments = []
        for k, time in self.measure.times:
            position = time / dt
            step = int(np.floor(position + 1e-9))
            share = position - step
            self.moments.append(Moment(k, step, share if share > 1e-9 else 0.0))
        self.last_step = max(m.last for m in self.moments)

    def evaluate(
        self,
        q: np.ndarray,
        loss: Loss,
        *,
        derivatives: bool = True,
        horizon: int | None = None,
        runner: Callable[..., None] = run_with_tangents,
        tolerance: float | None = None,
    ) -> Evaluation:
        """Simulate at q up to step `horizon` and collect the misfit; runner: whose tangents.

        tolerance: of their solves, jacobian_tolerance unless told.
        """
        steps = self.last_step if horizon is None else min(horizon, self.last_step)
        self.system.update(self.unknowns.apply(self.scene, q))
        directions = self.unknowns.directions(self.system, q) if derivatives else []
        frames: dict[int, FrameMisfit] = {}
        before: list[Pair] = []

        def on_frame(step: int, state: State, tangents: list[State]) -> None:
            nonlocal before
            began = perf_counter()
            now = [pair_of(s) for s in (state, *tangents)]
            for m in self.moments:
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
            self.system, steps, directions, on_frame, clock=self.clock,
            tolerance=tolerance or self.jacobian_tolerance,
        )  # fmt: skip
        return self.evaluation(q, loss, frames)

    def frames_until(self, horizon: int) -> set[int]:
        """Frames that a run of `horizon` steps reaches."""
        return {m.frame for m in self.moments if m.last <= horizon}

    def evaluation(
        self, q: np.ndarray, loss: Loss, frames: dict[int, FrameMisfit]
    ) -> Evaluation:
        """The frames' misfit with priors and penalty."""
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
        observing = 0.0

        def dual_of(m: Moment, motion: Pair) -> Pair:
            nonlocal observing
            began = perf_counter()
            frames[m.frame], bar = self.measure.dual(m.frame, motion, loss)
            observing += perf_counter() - began
            return bar

        dual = self.walk_back(states, dual_of)
        self.clock.add("observe", observing)
        found = self.evaluation(q, loss, frames)
        gradient = self.unknowns.pull(self.system, q, dual)
        if found.prior is not None:
            gradient = gradient + found.prior[1]
        if not isinstance(states, Checkpoints):
            self.clock.add("forward_run", t1 - t0)
            self.clock.add("adjoint_run", perf_counter() - t1 - observing)
        return found, gradient

    def walk_back(
        self, states: Sequence[State], dual_of: Callable[[Moment, Pair], Pair]
    ) -> Direction:
        """Gradient by all parameters of a cost whose derivative by the motion at a frame is
        dual_of(moment, motion).
        """
        steps = len(states) - 1
        own = [m for m in self.moments if m.last <= steps]

        def seed(k: int, state: State) -> State | None:
            """Duals of the frames at step k; one between k and k + 1 joins when both are known."""
            here = [m for m in own if m.step == k and not m.share]
            if not here:
                return None
            motion = pair_of(state)
            total = [np.zeros_like(motion[0]), np.zeros_like(motion[1])]
            for m in here:
                for sum_, part in zip(total, dual_of(m, motion), strict=True):
                    sum_ += part
            return self._on_device(*total)

        def between(k: int, before: State, after: State, bar: State) -> State | None:
            """Frames between steps k and k + 1: their dual on `after` into bar, on `before` out."""
            here = [m for m in own if m.step == k and m.share]
            if not here:
                return None
            total = [np.zeros((self.system.node_count, 3)) for _ in range(4)]
            first, last = pair_of(before), pair_of(after)
            for m in here:
                d = dual_of(m, m.mix(first, last))
                for i in range(2):
                    total[i] += (1.0 - m.share) * d[i]
                    total[2 + i] += m.share * d[i]
            add_host(bar, total[2], total[3])
            return self._on_device(*total[:2])

        def reached(k: int) -> None:
            if self._progress is not None:
                self._progress(steps - k, steps)

        return run_adjoint(
            self.system, states, seed, between=between, on_step=reached,
            tolerance=self.tangent_tolerance,
        )  # fmt: skip

    def _on_device(self, u: np.ndarray, v: np.ndarray) -> State:
        return State(to_device(u, wp.vec3d), to_device(v, wp.vec3d), self._still)

    @cached_property
    def _still(self) -> wp.array:
        return zeros(self.system.node_count, wp.vec3d)

    def penalty_hessian(self, q: np.ndarray) -> sparse.csr_array:
        """Hessian (p, p) of priors and regulariser."""
        diagonal = self.unknowns.prior_terms(q)[2]
        own = sparse.csr_array(sparse.diags_array(diagonal))
        return own if self._regulariser is None else own + self._regulariser.hessian(q)

    def gradient_mismatch(self, q: np.ndarray, loss: Loss) -> tuple[float, float]:
        """How far the tangents over the first frame are from the adjoint, and from differences.

        Relative to a gradient at least as large as motions of INVISIBLE spacings would make it.
        """
        horizon = max(1, min(m.last for m in self.moments))
        e = self.evaluate(q, loss, horizon=horizon, tolerance=self.tangent_tolerance)
        tangent, adjoint = e.model[1], self.gradient(q, loss, horizon=horizon)[1]
        invisible = INVISIBLE * self.scene.body.spacing
        pull = sum(float(np.abs(loss(f.r)[1] * f.r)[f.usable].sum()) for f in e.frames.values())
        least = max(invisible * pull, 1e-300)
        apart = float(np.abs(tangent - adjoint).max() / max(np.abs(tangent).max(), least))
        seen = np.sqrt(sum(np.square(f.J[f.usable]).sum(axis=0) for f in e.frames.values()))
        # all unknowns at once, those of which less is seen changed by more
        d = np.minimum(seen.max() / np.maximum(seen, 1e-300), MOST_CHANGE)
        d[1::2] *= -1.0
        off = np.inf
        for h in CHANGES:
            up, down = (
                self.evaluate(q + step * d, loss, derivatives=False, horizon=horizon).frames
                for step in (h, -h)
            )
            off = min(off, _difference_error(e.frames, up, down, h, d, invisible))
            if off < CLOSE:
                break
        return apart, off

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
            run_adjoint(
                self.system, states, lambda k, s: bar if k == steps else None,
                tolerance=self.tangent_tolerance,
            )  # fmt: skip
            t2 = perf_counter()
            best["forward_ms"] = min(best["forward_ms"], 1e3 * (t1 - t0) / steps)
            best["adjoint_ms"] = min(best["adjoint_ms"], 1e3 * (t2 - t1) / steps)
        return best


def _difference_error(
    at: dict[int, FrameMisfit],
    up: dict[int, FrameMisfit],
    down: dict[int, FrameMisfit],
    h: float,
    d: np.ndarray,
    invisible: float,
) -> float:
    """Relative error of J d against (r(q + h d) - r(q - h d)) / 2h, residual by residual."""
    tangents, differences = [], []
    for k, f in at.items():
        both = f.usable & up[k].usable & down[k].usable
        tangents.append(f.J[both] @ d)
        differences.append((up[k].r - down[k].r)[both] / (2.0 * h))
    along, found = np.concatenate(tangents), np.concatenate(differences)
    error, size = np.abs(along - found), np.maximum(np.abs(along), np.abs(found))
    visible = np.flatnonzero(size > max(1e-3 * size.max(initial=0.0), invisible))
    kept = visible[np.argsort(error[visible])][: int(np.ceil(KEPT * len(visible)))]
    return float(error[kept].sum() / max(size[kept].sum(), 1e-300))


def pair_of(state: State) -> Pair:
    """Displacement and velocity on the host."""
    return state.u.numpy(), state.v.numpy()
