"""Derivatives of an implicit model's steps: forward along directions, and backward from a cost.

g(x; u, v, a, p) = 0 of dynamics.step_problem gives A dx = -dg with A the exact tangent at the
solution. Never the matrix, only forces are differentiated: every term says how it changes with the
fields of the step and with its parameters, and A is symmetric, so

tangent   A dx = sum of the terms' changes, then (du', dv', da') from the table;
adjoint   A y = x_bar, then every derivative is the terms' transposed change of y.

A step that was taken in parts is differentiated part by part. Friction grows with the pressure at
the step's end, which A leaves out: A - E then has to be solved with, E that growth, by repeated
solves with A.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING
from weakref import ref

import numpy as np
import warp as wp

from pliant.core.errors import SolverFailure
from pliant.core.launch import to_device, zeros
from pliant.core.solution import Solution
from pliant.dynamics.integrators import Integrator
from pliant.dynamics.model import Parameters, State
from pliant.dynamics.step_problem import assemble
from pliant.dynamics.terms.stage import Changes, Pulls, Stage, mix
from pliant.linalg.batched import BatchedConjugateGradients
from pliant.linalg.blocks import combine, dot, keep_free
from pliant.linalg.direct import DirectSolver
from pliant.linalg.multigrid import Multigrid
from pliant.linalg.pcg import Tolerance
from pliant.linalg.recent import RecentErrors

if TYPE_CHECKING:
    from pliant.dynamics.implicit import ImplicitModel

LARGEST_BATCH = 8
"""Tangents solved at once: beyond it the vectors no longer fit the cache beside the matrix."""

MOST_CORRECTIONS = 60
"""Solves for the growth of friction; each reduces the rest by friction times the share of a step in
which a point travels its own slip speed."""

DIRECT_NODES = 3_000
"""Bodies up to this size are factorised when the exact tangent is not positive definite."""


class StepDerivatives:
    """Tangent and adjoint of the steps of one model."""

    def __init__(self, model: "ImplicitModel"):
        self._model = ref(model)  # which holds these: large models go when nobody needs them
        self._y = zeros(model.node_count, wp.vec3d)
        self._batched: dict[int, BatchedConjugateGradients] = {}
        multigrid = isinstance(model.preconditioner, Multigrid)
        self._recent = RecentErrors(model.node_count) if multigrid else None
        self._backward_tolerance: float | None = None

    @property
    def model(self) -> "ImplicitModel":
        """Whose steps they are."""
        model = self._model()
        assert model is not None
        return model

    # the start -----------------------------------------------------------------------------------

    def initial_tangents(self, state: State, directions: Sequence[Parameters]) -> list[State]:
        """Changes of the initial state."""
        s, n = self.model, self.model.node_count
        if s.scene.begin.balanced:
            return s.balanced_start.tangents(state, directions)
        stage, push = s.start_stage(state), s.initial_push(state)
        alpha, mass = s.material.mass_damping, s.inertia.starting()[:, None]
        out = []
        for p in directions:
            velocity = np.zeros((n, 3))
            if "velocity" in p:
                velocity = s.boundary.compatible(p["velocity"])
            if s.places is not None:
                velocity = velocity + s.places.compatible_change(p, s.asked_velocity())
            d_v, force = to_device(velocity, wp.vec3d), zeros(n, wp.vec3d)
            d = Changes(stage.balance, (None, d_v, None), s.matrix.free)
            for term in s.starting:
                term.add_change(stage, d, p, force)
            a = force.numpy()
            if "mass" in p:
                a = a - s.inertia.starting_change(p["mass"])[:, None] * push
            a = a / mass + p.get("gravity", 0.0)
            a -= alpha * velocity + p.get("mass_damping", 0.0) * state.v.numpy()
            a = s.boundary.compatible(a)
            if s.places is not None:
                a = a + s.places.compatible_change(p, s.asked_acceleration(state))
            a = to_device(a, wp.vec3d)
            out.append(State.of(zeros(n, wp.vec3d), d_v, a, state.t, history=s.relaxed()))
        return out

    def initial_adjoint(self, state: State, bar: State, dual: Parameters) -> None:
        """Parameters' share of the initial state's dual: the transpose of `initial_tangents`."""
        s, n = self.model, self.model.node_count
        if s.scene.begin.balanced:
            s.balanced_start.adjoint(state, bar, dual)
            return
        compatible = s.boundary.compatible  # symmetric
        a_bar = compatible(bar.a.numpy())
        v_bar = bar.v.numpy() - s.material.mass_damping * a_bar
        f_bar = a_bar / s.inertia.starting()[:, None]
        by_push = np.sum(f_bar * s.initial_push(state), axis=1)
        dual.add("mass", -s.inertia.starting_pull(by_push))
        dual.add("mass_damping", -np.sum(a_bar * state.v.numpy()))
        dual.add("gravity", a_bar.sum(axis=0))
        stage, pulls, y = s.start_stage(state), Pulls(n), to_device(f_bar, wp.vec3d)
        for term in s.starting:
            term.add_pull(stage, y, pulls, dual)
        past = [zeros(n, wp.vec3d) for _ in range(3)]
        pulls.by_past(stage.balance, s.matrix.free, past)
        v_bar = v_bar + past[1].numpy()
        dual.add("velocity", compatible(v_bar))
        if s.places is not None:
            s.places.compatible_pull(v_bar, s.asked_velocity(), dual)
            s.places.compatible_pull(bar.a.numpy(), s.asked_acceleration(state), dual)

    # forward -------------------------------------------------------------------------------------

    def tangents(
        self,
        before: State,
        after: State,
        changes: Sequence[State],
        directions: Sequence[Parameters],
        *,
        tolerance: float | None = None,
    ) -> list[State]:
        """Changes of `after` by changes of `before` and of the parameters: one batched solve."""
        found = list(changes)
        if not directions:
            return found
        for start, end, scheme in self.model.parts(before, after):
            found = self._part_tangents(start, end, scheme, found, directions, tolerance)
        return found

    def _part_tangents(
        self,
        before: State,
        after: State,
        scheme: Integrator,
        changes: list[State],
        directions: Sequence[Parameters],
        tolerance: float | None,
    ) -> list[State]:
        s = self.model
        stage = self.linearise(before, after, scheme)
        sides, starts = [], []
        for change, p in zip(changes, directions, strict=True):
            sides.append(self.right_hand_side(stage, change, p))
            x = mix(scheme.first_guess, change.fields())
            keep_free(x, s.matrix.free)
            starts.append(x)
        self.solve_all(stage, sides, starts, tolerance or s.scene.tolerance)
        return [
            self.advanced(stage, scheme, dx, change, p, after.t)
            for change, dx, p in zip(changes, starts, directions, strict=True)
        ]

    def advanced(
        self, stage: Stage, scheme: Integrator, dx: wp.array, change: State, p: Parameters, t: float
    ) -> State:
        """(du', dv', da') of the table, and the change of what the body keeps."""
        four, branches = (dx, *change.fields()), self.model.branches
        u, v, a = (mix(row, four) for row in (scheme.next_u, scheme.next_v, scheme.next_a))
        history = ()
        if branches is not None:
            d = stage.changes(change, self.model.matrix.free)
            history = branches.advance_change(stage, d, u, p)
        return State.of(u, v, a, t, history=history)

    def linearise(
        self, before: State, after: State, scheme: Integrator, *, precondition: bool = True
    ) -> Stage:
        """The exact matrix of a step that was taken, with its preconditioner; the step's fields.

        precondition: False where the matrix is to be a part of a larger one.
        """
        s = self.model
        stage = s.stage_between(before, after, scheme)
        if s.linearised_at is not before:
            assemble(s, stage, project=False)
            if precondition:
                s.preconditioner.update(s.matrix)
                s.linearised_at = before
        return stage

    def right_hand_side(self, stage: Stage, change: State, p: Parameters) -> wp.array:
        """-(dg by the old state and the parameters)."""
        s = self.model
        d, b = stage.changes(change, s.matrix.free), zeros(s.node_count, wp.vec3d)
        for term in (s.elastic, *s.beside, s.loads):
            term.add_change(stage, d, p, b)
        keep_free(b, s.matrix.free)
        return b

    # backward ------------------------------------------------------------------------------------

    def begin_adjoint(self, tolerance: float | None = None) -> None:
        """A backward run begins: its solves start from nothing that came before.

        tolerance: of its solves, the scene's own unless told.
        """
        self._backward_tolerance = tolerance
        if self._recent is not None:
            self._recent.forget()

    def adjoint(self, before: State, after: State, bar: State, dual: Parameters) -> State:
        """Dual of `before` from that of `after`; adds the parameters' share to `dual`."""
        for start, end, scheme in reversed(self.model.parts(before, after)):
            bar = self._part_adjoint(start, end, scheme, bar, dual)
        return bar

    def _part_adjoint(
        self, before: State, after: State, scheme: Integrator, bar: State, dual: Parameters
    ) -> State:
        s = self.model
        stage = self.linearise(before, after, scheme)
        x_bar, ends, pulls = self.adjoint_side(stage, scheme, bar, dual)
        y = self._y
        y.zero_()
        square = None
        if self._recent is not None:  # y changes as smoothly from step to step as x does
            square = self._recent.improve(s.matrix, x_bar, y, s.solver.residual)
        tolerance = self._backward_tolerance or s.scene.tolerance
        self.solve_one(stage, x_bar, y, "adjoint", tolerance, square)
        if self._recent is not None:
            self._recent.remember(s.matrix, y, (0.0, 0.0, 0.0), (y, y, y))
        return self.adjoint_past(stage, scheme, y, ends, pulls, dual, before)

    def adjoint_side(
        self, stage: Stage, scheme: Integrator, bar: State, dual: Parameters
    ) -> tuple[wp.array, tuple[wp.array, ...], Pulls]:
        """Derivative by x of a step with the dual `bar` at its end: what A y equals.

        Beside it the duals of (u', v', a'), and what is known already of those of the fields.
        """
        s = self.model
        rows = (scheme.next_u, scheme.next_v, scheme.next_a)
        pulls, ends = Pulls(s.node_count), bar.fields()
        if s.branches is not None and bar.history:
            by_end = s.branches.advance_pull(stage, bar.history, pulls, dual)
            ends = (mix((1.0, 1.0), (bar.u, by_end)), bar.v, bar.a)
        x_bar = mix([r[0] for r in rows], ends)
        keep_free(x_bar, s.matrix.free)
        return x_bar, ends, pulls

    def adjoint_past(
        self,
        stage: Stage,
        scheme: Integrator,
        y: wp.array,
        ends: tuple[wp.array, ...],
        pulls: Pulls,
        dual: Parameters,
        before: State,
    ) -> State:
        """Dual of the old state, once y is known."""
        s = self.model
        rows = (scheme.next_u, scheme.next_v, scheme.next_a)
        for term in (s.elastic, *s.beside, s.loads):
            term.add_pull(stage, y, pulls, dual)
        out = [mix([r[z + 1] for r in rows], ends) for z in range(3)]
        pulls.by_past(stage.balance, s.matrix.free, out)
        history = tuple(pulls.history[i] for i in range(len(before.history)))
        return State.of(out[0], out[1], out[2], before.t, history=history)

    # solves --------------------------------------------------------------------------------------

    def solve_all(
        self, stage: Stage, sides: list[wp.array], starts: list[wp.array], tolerance: float
    ) -> None:
        """Improve every start; batched where that is possible."""
        s = self.model
        grows = s.touch is not None and s.touch.grows
        if len(sides) > 1 and isinstance(s.preconditioner, Multigrid) and not grows:
            try:
                for first in range(0, len(sides), LARGEST_BATCH):
                    part = slice(first, first + LARGEST_BATCH)
                    self._solve_batch(s.preconditioner, sides[part], starts[part], tolerance)
                return
            except SolverFailure:  # one by one, factorised where that is needed and possible
                if s.elastic.linear:
                    raise
        for b, x in zip(sides, starts, strict=True):
            self.solve_one(stage, b, x, "tangent", tolerance)

    def _solve_batch(
        self, multigrid: Multigrid, sides: list[wp.array], starts: list[wp.array], tolerance: float
    ) -> None:
        s, k = self.model, len(sides)
        if k not in self._batched:
            self._batched[k] = BatchedConjugateGradients(s.matrix, multigrid, k)
        b, x = (
            to_device(np.stack([f.numpy() for f in group], axis=1), wp.vec3d)
            for group in (sides, starts)
        )
        for found in self._batched[k].solve(b, x, Tolerance(relative=tolerance)):
            _require(found, "tangent")
        solved = x.numpy()
        for j, start in enumerate(starts):
            start.assign(np.ascontiguousarray(solved[:, j]))

    def solve_one(
        self,
        stage: Stage,
        b: wp.array,
        x: wp.array,
        what: str,
        tolerance: float,
        square: float | None = None,
    ) -> None:
        """(A - E) x = b, or its transpose for an adjoint."""
        s, touch = self.model, self.model.touch
        self._solve_symmetric(b, x, what, tolerance, square)
        if touch is None or not touch.grows:
            return
        goal = tolerance * float(np.sqrt(dot(b, b)))
        counted, correction = zeros(len(b), wp.vec3d), zeros(len(b), wp.vec3d)
        for _ in range(MOST_CORRECTIONS):
            grown = touch.growth(stage, x, transposed=what == "adjoint")
            keep_free(grown, s.matrix.free)
            rest = mix((1.0, -1.0), (grown, counted))
            if float(np.sqrt(dot(rest, rest))) <= goal:
                return
            correction.zero_()
            self._solve_symmetric(rest, correction, what, tolerance)
            combine(x, (1.0, x), (1.0, correction))
            counted = grown
        raise SolverFailure(
            f"The {what} solve failed: friction dominates the step, use a smaller time step."
        )

    def _solve_symmetric(
        self, b: wp.array, x: wp.array, what: str, tolerance: float, square: float | None = None
    ) -> None:
        s = self.model
        try:
            solution = s.solver.solve(b, x, Tolerance(relative=tolerance), square=square)
            s.preconditioner.report(solution)
            _require(solution, what)
        except SolverFailure:
            if s.elastic.linear or s.node_count > DIRECT_NODES:
                raise
            x.zero_()
            if not np.isfinite(DirectSolver(s.matrix).solve(b, x).residual):
                raise


def _require(solution: Solution, what: str) -> None:
    if not solution.outcome.ok and solution.residual > 1e3 * solution.target:
        raise SolverFailure(f"The {what} solve failed: {solution.outcome.value}.")
