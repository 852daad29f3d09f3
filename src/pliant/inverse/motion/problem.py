"""The misfit of a simulation against observations, as a function of the unknowns."""

from collections.abc import Callable, Sequence
from time import perf_counter

import numpy as np
from scipy import sparse

from pliant.dynamics.model import Parameters, State, World
from pliant.inverse.fields.field_penalty import BodyPenalty
from pliant.inverse.measuring.level_set_cost import LevelSets
from pliant.inverse.measuring.losses import Loss
from pliant.inverse.measuring.measures import (
    COSTS,
    FrameMisfit,
    LinearMisfit,
    NodeMotions,
    Pair,
    make_measure,
)
from pliant.inverse.motion.checkpoints import Checkpoints, states_within
from pliant.inverse.motion.evaluation import Evaluation
from pliant.inverse.motion.memory import Answer, Memory, packed, remembered, unpacked
from pliant.inverse.motion.moment import Moment
from pliant.inverse.motion.sensitivity import Clock, run_adjoint, run_with_tangents
from pliant.inverse.parameters.recording_blocks import (
    RECORDING,
    TIME,
    moving_part,
    recording_part,
)
from pliant.inverse.parameters.unknowns import UnknownSet
from pliant.observe.calibration import Calibration
from pliant.observe.observations import Observations
from pliant.observe.tracks import TrackedPoints


class Problem:
    """Misfit of a scene's simulation against observations.

    tangent_tolerance: of the tangents' and the adjoint's solves, the scene's own unless told;
    jacobian_tolerance: of those of all unknowns at once, the same unless told.
    memory_limit [bytes]: what the states of a gradient may take; beyond it they are recomputed (see
    checkpoints). regulariser: a penalty on q that gradients include. memory: of a fit that was
    begun before.
    moments: of the frames by the recording's own clock; horizons are told in its steps.
    """

    def __init__(
        self,
        scene: World,
        seen: Observations | NodeMotions | LevelSets | TrackedPoints,
        unknowns: UnknownSet,
        *,
        cost: str = "auto",
        progress: Callable[[int, int], None] | None = None,
        tangent_tolerance: float | None = None,
        jacobian_tolerance: float | None = None,
        memory_limit: float | None = None,
        regulariser: BodyPenalty | None = None,
        memory: Memory | None = None,
    ):
        self.measure = make_measure(scene, seen, cost)
        self.scene, self.seen, self.unknowns = scene, seen, unknowns
        self.system = unknowns.apply(scene, unknowns.start()).make_model()
        self.cost_name, self.noise = self.measure.cost_name, self.measure.noise
        self.memory = memory
        self.clock = Clock()
        self._progress, self._memory_limit = progress, memory_limit
        self.tangent_tolerance, self._regulariser = tangent_tolerance, regulariser
        self.jacobian_tolerance = jacobian_tolerance or tangent_tolerance
        for name in unknowns.of_recording:
            self.measure.require(name)
        self.moments = [Moment.at(k, time, scene.dt) for k, time in self.measure.times]
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
        self.system.update(self.unknowns.apply(self.scene, q))
        what = self.asked("evaluate", q, loss, horizon, derivatives, tolerance)
        answer = remembered(
            self.memory if runner is run_with_tangents else None, what,
            lambda: packed(self._simulated(q, loss, derivatives, horizon, runner, tolerance)),
        )  # fmt: skip
        return self.evaluation(q, loss, unpacked(answer))

    def asked(self, kind: str, q: np.ndarray, loss: Loss, *further: object) -> tuple[object, ...]:
        """A question to this problem as `remembered` takes it."""
        s = self.scene
        noise = getattr(self.seen, "noise_by", None)
        own = (self.cost_name, self.unknowns.labels, s.dt, self.spacing, self.cells)
        own += () if noise is None else noise.key
        return (kind, *own, self.tangent_tolerance, self.jacobian_tolerance, q, loss, *further)

    def _simulated(
        self,
        q: np.ndarray,
        loss: Loss,
        derivatives: bool,
        horizon: int | None,
        runner: Callable[..., None],
        tolerance: float | None,
    ) -> dict[int, FrameMisfit]:
        """The misfit at q, where the system is, frame by frame."""
        calibration = self.unknowns.calibration(q)
        moments, steps = self.moments_until(horizon, calibration)
        directions = self.unknowns.directions(self.system, q) if derivatives else []
        moving = [k for k, d in enumerate(directions) if moving_part(d)]
        frames: dict[int, FrameMisfit] = {}
        before: list[Pair] = []

        def on_frame(step: int, state: State, tangents: list[State]) -> None:
            nonlocal before
            here = [m for m in moments if m.last == step]
            if not here and not any(m.step == step for m in moments):
                before = []  # nobody looks: the motion stays on the device
                return self._report(step, steps)
            if len(tangents) > len(moving):  # a runner that has one of each
                tangents = [tangents[k] for k in moving]
            carrier = self.system.carrier
            now = [carrier.apply(state), *(carrier.jvp(state, t) for t in tangents)]
            for m in here:
                ends = list(zip(before if m.between else now, now, strict=True))
                mixed = [m.mix(a, b) for a, b in ends]
                found = self.measure.linear(m.frame, mixed[0], loss, calibration)
                J = np.zeros((len(found.r), len(directions)))
                if moving:
                    J[:, moving] = found.along(mixed[1:])
                by = self.by_recording(found, m, ends[0]) if directions else {}
                for k, d in enumerate(directions):
                    for name, change in recording_part(d).items():
                        J[:, k] += by[name] @ change
                frames[m.frame] = FrameMisfit(found.r, J, found.usable)
            before = now
            self._report(step, steps)

        runner(
            self.system, steps, [directions[k] for k in moving], on_frame, clock=self.clock,
            tolerance=tolerance or self.jacobian_tolerance,
        )  # fmt: skip
        return dict(sorted(frames.items()))

    @property
    def asked_cost(self) -> str:
        """What another problem of the same kind is given as its cost."""
        return self.cost_name if self.cost_name in COSTS else "auto"

    @property
    def spacing(self) -> float:
        """Of the body's cells [m]."""
        return self.scene.body.spacing

    @property
    def cells(self) -> int:
        """How many the body has."""
        return len(self.scene.body.cells)

    def sizes(self, q: np.ndarray) -> np.ndarray:
        """What the error bar of each unknown is judged by."""
        return self.unknowns.sizes(q, self.scene, self.last_step * self.scene.dt)

    def cautions(self, q: np.ndarray) -> list[str]:
        """Where the method rivals the unknowns."""
        return self.system.scene.cautions(self.unknowns.labels, self.unknowns.values(q))

    def each(self, q: np.ndarray, loss: Loss) -> list[tuple["Problem", np.ndarray, Loss]]:
        """The problem of each experiment with its share of q and its loss; this is one."""
        return [(self, q, loss)]

    def parts_of(self, e: Evaluation) -> list[Evaluation]:
        """The misfit of each experiment; this is one."""
        return [e]

    def spread_of(self, e: Evaluation) -> float:
        """Robust size of the residuals [m], to compare ends of fits by."""
        return e.spread

    def reweighed(self, e: Evaluation, *, final: bool = False) -> Evaluation:
        """The misfit with residuals in units of their own noise, as far as it is known now."""
        return e

    def at_rest(self, q: np.ndarray, loss: Loss) -> Evaluation:
        """The misfit of a body that does not move at all; nothing is simulated."""
        calibration = self.unknowns.calibration(q)
        none = np.zeros((len(self.scene.body.nodes), 3))
        frames = {
            m.frame: self.measure.linear(m.frame, (none, none), loss, calibration).alone()
            for m in self.moments
        }
        return self.evaluation(q, loss, frames)

    def _report(self, step: int, steps: int) -> None:
        if self._progress is not None:
            self._progress(step, steps)

    def moments_until(
        self, horizon: int | None, calibration: Calibration
    ) -> tuple[list[Moment], int]:
        """Of the frames up to step `horizon`, by the scene's clock, and the last one's step."""
        times, offset = dict(self.measure.times), calibration.time_offset
        here = [
            m if offset == 0.0 else Moment.at(m.frame, times[m.frame] + offset, self.scene.dt)
            for m in self.moments
            if horizon is None or m.last <= horizon
        ]
        return here, max((m.last for m in here), default=0)

    def by_recording(
        self, found: LinearMisfit, moment: Moment, ends: tuple[Pair, Pair]
    ) -> dict[str, np.ndarray]:
        """Derivatives (m, numbers) of a frame's residuals by the recording's unknowns, by name.

        ends: motions of the steps around the frame.
        """
        return {
            name: found.along([moment.rate(*ends)]) if name == TIME else found.by_recording(name)
            for name in self.unknowns.of_recording
        }

    def frames_until(self, horizon: int) -> set[int]:
        """Frames that a run of `horizon` steps reaches."""
        return {m.frame for m in self.moments if m.last <= horizon}

    def evaluation(self, q: np.ndarray, loss: Loss, frames: dict[int, FrameMisfit]) -> Evaluation:
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
        self.system.update(self.unknowns.apply(self.scene, q))
        what = self.asked("gradient", q, loss, horizon)
        answer = remembered(self.memory, what, lambda: self._walked(q, loss, horizon))
        found, gradient = self.evaluation(q, loss, unpacked(answer)), answer["gradient"]
        return found, gradient if found.prior is None else gradient + found.prior[1]

    def _walked(self, q: np.ndarray, loss: Loss, horizon: int | None) -> Answer:
        """Misfit and gradient of the data at q, where the system is."""
        calibration = self.unknowns.calibration(q)
        moments, steps = self.moments_until(horizon, calibration)
        t0 = perf_counter()
        states = states_within(self.system, steps, self._memory_limit)
        if not isinstance(states, Checkpoints):
            self.clock.add("forward", perf_counter() - t0, steps)
        frames: dict[int, FrameMisfit] = {}

        def dual_of(m: Moment, motion: Pair) -> tuple[LinearMisfit, np.ndarray]:
            found = self.measure.linear(m.frame, motion, loss, calibration)
            frames[m.frame] = found.alone()
            return found, found.weight(loss) * found.r

        dual = self.walk_back(states, moments, dual_of)
        gradient = self.unknowns.pull(self.system, q, dual)
        return {**packed(dict(sorted(frames.items()))), "gradient": gradient}

    def walk_back(
        self,
        states: Sequence[State],
        moments: Sequence[Moment],
        dual_of: Callable[[Moment, Pair], tuple[LinearMisfit, np.ndarray]],
    ) -> Parameters:
        """Gradient by all parameters of a cost whose derivative by a frame's residuals is the
        second of dual_of(moment, motion), the first being these residuals.
        """
        steps = len(states) - 1
        carrier, observing, began = self.system.carrier, 0.0, perf_counter()
        recorded = Parameters()

        def total(here: list[Moment], ends: Sequence[State]) -> list[State | None]:
            """Sums of the frames' duals on the states around them."""
            nonlocal observing
            if not here:
                return [None] * len(ends)
            t0 = perf_counter()
            motions = [carrier.apply(state) for state in ends]
            sums = [[np.zeros_like(field) for field in motions[0]] for _ in ends]
            for m in here:
                around = (motions[0], motions[-1])
                found, weight = dual_of(m, m.mix(*around))
                for at, bar in zip(sums, m.spread(found.pull(weight)), strict=False):
                    for part, field in enumerate(bar):
                        at[part] += field
                for name, slope in self.by_recording(found, m, around).items():
                    recorded.add(RECORDING + name, weight @ slope)
            duals = zip(ends, sums, strict=True)
            out: list[State | None] = [carrier.vjp(s, (at[0], at[1])) for s, at in duals]
            observing += perf_counter() - t0
            return out

        def seed(k: int, state: State) -> State | None:
            """Duals of the frames at step k; one between k and k + 1 joins when both are known."""
            return total([m for m in moments if m.step == k and not m.between], [state])[0]

        def between(k: int, before: State, after: State):
            """Duals of the frames between steps k and k + 1."""
            here = [m for m in moments if m.step == k and m.between]
            first, last = total(here, [before, after])
            return first, last

        dual = run_adjoint(
            self.system, states, seed, between=between,
            on_step=lambda k: self._report(steps - k, steps), tolerance=self.tangent_tolerance,
        )  # fmt: skip
        self.clock.add("adjoint", perf_counter() - began - observing, steps)
        dual.plus(1.0, recorded)
        return dual

    def penalty_hessian(self, q: np.ndarray) -> sparse.csr_array:
        """Hessian (p, p) of priors and regulariser."""
        diagonal = self.unknowns.prior_terms(q)[2]
        own = sparse.csr_array(sparse.diags_array(diagonal))
        return own if self._regulariser is None else own + self._regulariser.hessian(q)

    def step_times(self) -> dict[str, float]:
        """Milliseconds of a step forward and of one back, as this problem's runs took them."""
        best = self.clock.best
        return {f"{name}_ms": 1e3 * best.get(name, 0.0) for name in ("forward", "adjoint")}
