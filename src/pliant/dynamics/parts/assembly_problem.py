"""One step of several parts at once: Newton's method in the unknowns of all of them.

Every part poses its own step (dynamics.step_problem); what couples them is the contact between
them (dynamics.parts.between), a force of all nodes.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp

from pliant.core.compiling import working_time as perf_counter
from pliant.core.launch import to_device, zeros
from pliant.core.solution import Outcome, Solution
from pliant.dynamics.integrators import Integrator
from pliant.dynamics.model import State, StepRecord
from pliant.dynamics.newton_problem import NewtonFailure
from pliant.dynamics.parts.barrier import BarrierBetween
from pliant.linalg.blocks import combine

if TYPE_CHECKING:
    from pliant.dynamics.parts.assembly import AssemblyModel


MOST_PUSHES = 100
"""Times that held nodes may stop in a step to let others make room."""

ROUGH = 1e-2
"""Share of the forces that is left in between."""


class AssemblyProblem:
    """A NewtonProblem in x of all parts."""

    def __init__(self, model: "AssemblyModel", state: State, scheme: Integrator):
        self.model, self.state, self.scheme = model, state, scheme
        self.matrix: Any = model.matrix
        self.solver = model.solver
        self.preconditioner: Any = model.preconditioner
        own = zip(model.models, model.split(state), strict=True)
        self.problems = [part.pose(start, scheme) for part, start in own]
        self.elastic: Any = None  # laws with kinks are not rounded here
        self.between = model.between(state, scheme.force)
        # parts that a barrier presses keep half of a residual with clamped tangents
        self.pressed = isinstance(self.between, BarrierBetween)
        self._free, self._pressing = model.matrix.free.numpy() > 0.0, 0.0
        self.clamped = not self.pressed and all(p.clamped for p in self.problems)
        self._holds = any(m.boundary.held for m in model.models)
        self._arrived = True  # whether held nodes are where they must be at the end
        self.timings = {"assembly": 0.0, "setup": 0.0, "solve": 0.0}

    def end(self, x: wp.array) -> tuple[np.ndarray, np.ndarray]:
        """Displacement and velocity of all nodes at the step's end."""
        found = []
        for row in (self.scheme.next_u, self.scheme.next_v):
            out = zeros(self.model.node_count, wp.vec3d)
            past = zip(row[1:], self.state.fields(), strict=True)
            combine(out, (float(row[0]), x), *((float(c), f) for c, f in past))
            found.append(out.numpy())
        u, v = found
        for held, given, rate, own in self.model.held_at(self.state.t, self.scheme.dt):
            v[own][held] = rate[held]
            if self._arrived:
                u[own][held] = given[held]
        return u, v

    def residual(self, x: wp.array, out: wp.array) -> None:
        """out = -g(x)."""
        slices = self.model.slices
        for problem, own, r in zip(self.problems, slices.of(x), slices.of(out), strict=True):
            problem.residual(own, r)
        if self.between:
            t0 = perf_counter()
            force = self.between.forces(*self.end(x))
            out.assign(out.numpy() + force)
            if self.pressed:
                own = force[self._free]
                self._pressing = max(self._pressing, float(np.sqrt(np.square(own).sum())))
            self.timings["assembly"] += perf_counter() - t0

    def assemble(self, x: wp.array, *, project: bool) -> None:
        """matrix = dg/dx at x, without what pairs may make indefinite."""
        for problem, own in zip(self.problems, self.model.slices.of(x), strict=True):
            problem.assemble(own, project=project)
        per_x = self.scheme.next_u[0], self.scheme.next_v[0]
        between = self.between
        ends = self.end(x)
        self.matrix.pairs = between.tangent(*ends, *per_x, project=project) if between else None

    def turning(self, x: wp.array, dx: wp.array) -> None:
        """Parts turn each on its own: no common turn is made finite."""
        return None

    def longest(self, x: wp.array, dx: wp.array) -> float:
        """The share of a Newton step that leads no surface through another."""
        if not isinstance(self.between, BarrierBetween):
            return 1.0
        return self.between.longest(self.end(x)[0], self.scheme.next_u[0] * dx.numpy())

    def _calm(self) -> wp.array:
        """x of free nodes that stay where they are."""
        return self._joined([p.calm_guess() for p in self.problems])

    def _may_be_calm(self) -> bool:
        """Whether held nodes may go to where they must be while all others stay."""
        if not isinstance(self.between, BarrierBetween) or not self._holds:
            return True
        u = self.state.u.numpy()
        return self.between.longest(u, self.end(self._calm())[0] - u) == 1.0

    def _begin(self) -> wp.array:
        """The first x: parts go on as they did, unless a barrier is in the way."""
        x = self._joined([p.first_guess() for p in self.problems])
        if not isinstance(self.between, BarrierBetween):
            return x
        u = self.state.u.numpy()
        if self.between.longest(u, self.end(x)[0] - u) == 1.0:
            return x
        x = self._calm()
        way = self.end(x)[0] - u  # of held nodes
        return x if self.between.longest(u, way) == 1.0 else self._pushed(u, way)

    def _pushed(self, u: np.ndarray, way: np.ndarray) -> wp.array:
        """x with held nodes where they must be: they go as far as nothing touches, all others make
        room for them, and so on.
        """
        assert isinstance(self.between, BarrierBetween)
        self._arrived = False
        for _ in range(MOST_PUSHES):
            t = self.between.longest(u, way)
            u, way = u + t * way, (1.0 - t) * way
            x = self._x_at(u)
            if t == 1.0:
                self._arrived = True
                return x
            self.model.newton.converge(x, scale=self.scale, tolerance=ROUGH)
            u = self.end(x)[0]
        raise NewtonFailure("held parts are driven through others.")

    def _x_at(self, u: np.ndarray) -> wp.array:
        """x that ends at displacement u (nodes, 3)."""
        past = zip(self.scheme.next_u[1:], self.state.fields(), strict=True)
        base = sum(float(c) * f.numpy() for c, f in past)
        return to_device((u - base) / self.scheme.next_u[0], wp.vec3d)

    def scale(self) -> float:
        """Size of the forces in balance, those of a barrier among them: plates that are driven push
        parts at rest.
        """
        own = float(np.sqrt(sum(p.scale() ** 2 for p in self.problems)))
        return max(own, self._pressing, 1e-300)

    @property
    def iterations(self) -> int:
        """Of Newton's method."""
        return self.model.newton_records[-1].iterations

    def exchanged(self, before: State, after: State) -> tuple[float, float]:
        """What damping took and loads gave over the step, once it is solved."""
        ends = zip(self.problems, self.model.split(before), self.model.split(after), strict=True)
        own = [problem.exchanged(start, end) for problem, start, end in ends]
        return sum(d for d, _ in own), sum(g for _, g in own)

    def solve(self) -> tuple[State, StepRecord]:
        """The next state; raises NewtonFailure."""
        s, t0 = self.model, perf_counter()
        newton = s.newton
        newton.problem = self
        newton.forget()  # a step's bits depend on its start alone
        x = self._begin()
        record = newton.converge(
            x, scale=self.scale, tolerance=s.scene.tolerance, keep=object(),
            rounding=lambda: self.scheme.force[0] * s.force_rounding(self.state.u),
            calm=self._calm if self._may_be_calm() else None,
        )  # fmt: skip
        del newton.problem  # or model and problem would hold each other
        parts = zip(self.problems, s.slices.of(x), strict=True)
        reached = [p.stage.at(own) and p.reached(own, p.stage["next_u"]) for p, own in parts]
        after = s.joined(reached)
        s.newton_records.append(record)
        assembly = self.timings["assembly"] + sum(p.timings["assembly"] for p in self.problems)
        timings = {"assembly": assembly, "setup": 0.0, "solve": perf_counter() - t0 - assembly}
        solution = Solution(
            x, Outcome.CONVERGED, record.solver_iterations, record.residual * record.scale,
            s.scene.tolerance * record.scale, record.history,
        )  # fmt: skip
        return after, StepRecord(solution, timings)

    def _joined(self, parts: list[wp.array]) -> wp.array:
        return to_device(np.concatenate([p.numpy() for p in parts]), wp.vec3d)
