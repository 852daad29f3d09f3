"""A body moved by a few numbers: nodes = X + B q, and the balance of forces projected on B.

    g = M (m . (x, q, q', q'')) + f_new f(q_new) + f_old f(q_old) + beta D(q~) (rate)
        + W (k . (x, q, q', q'')) - contact - f_new f' - f_old f = 0

with the weights of the scene's integrator (dynamics.integrators), as in dynamics.step_problem: the
same table steps the full body and the reduced one. The elastic force is taken at the points of the
`Reduction` (seed 004, section 3.4), contact at the surface's.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np

from pliant.core.errors import BadInput, SolverFailure
from pliant.core.solution import Outcome, Solution
from pliant.core.vectors import in_space
from pliant.dynamics.contact import Contact
from pliant.dynamics.energies import Energies
from pliant.dynamics.loads import Motion
from pliant.dynamics.model import Model, Pair, State, StepRecord
from pliant.dynamics.scene import Scene, vector3
from pliant.dynamics.terms.stage import Balance, start_balance, step_balance
from pliant.reduced.dense_newton import DenseNewton
from pliant.reduced.one_thread import one_thread
from pliant.reduced.point_forces import PointForces
from pliant.reduced.reduced_mass import ReducedMass
from pliant.reduced.reduction import Reduction
from pliant.reduced.span_loads import SpanLoads, weights_of
from pliant.reduced.supports_of_span import span_supports
from pliant.reduced.surface_contact import SurfaceContact

Q, RATE, SECOND = "q", "q_rate", "q_second"
"""Names of a state's arrays: q and its first two derivatives by time."""


class SpanCarrier:
    """From q to the nodes."""

    def __init__(self, reduction: Reduction):
        self._span = reduction.span
        self._kept: tuple[State, Pair] | None = None

    def apply(self, state: State) -> Pair:
        """See Carrier; that of the last state is kept."""
        if self._kept is None or self._kept[0] is not state:
            self._kept = (state, self.jvp(state, state))
        return self._kept[1]

    def jvp(self, state: State, change: State) -> Pair:
        """See Carrier."""
        u, v = (in_space(self._span.apply(change.arrays[name])) for name in (Q, RATE))
        return u, v

    def vjp(self, state: State, bar: Pair) -> State:
        """See Carrier."""
        q, rate = (self._span.pull(np.asarray(part)[:, : self._span.dim]) for part in bar)
        return reduced_state(q, rate, np.zeros(self._span.size), state.t)


def reduced_state(q: np.ndarray, rate: np.ndarray, second: np.ndarray, t: float) -> State:
    """q, q' and q'' at a time."""
    return State({Q: q, RATE: rate, SECOND: second}, t)


def numbers_of_state(state: State) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inverse of `reduced_state`."""
    return state.arrays[Q], state.arrays[RATE], state.arrays[SECOND]


@dataclass(frozen=True)
class Taken:
    """A step's vectors: x, the past (q, q', q'') and what the balance's rows make of them."""

    balance: Balance
    x: np.ndarray
    past: tuple[np.ndarray, np.ndarray, np.ndarray]
    _bases: dict[str, np.ndarray] = field(default_factory=dict, repr=False)

    known: Mapping[str, np.ndarray] = field(default_factory=dict, repr=False)
    """Vectors that a step which was taken has left, to the bit: their stiffness is at hand."""

    def __getitem__(self, name: str) -> np.ndarray:
        if name in self.known:
            return self.known[name]
        row = self.balance.rows[name]
        if name not in self._bases:  # what x does not move
            self._bases[name] = weights_of(self.past, row[1:])
        return row[0] * self.x + self._bases[name] if row[0] != 0.0 else self._bases[name]

    def at(self, x: np.ndarray) -> "Taken":
        """The same step at another x."""
        return Taken(self.balance, x, self.past, self._bases)


class ReducedModel(Model):
    """Steps a scene on the numbers of a reduction."""

    def __init__(self, scene: Scene, reduction: Reduction):
        self.reduction, self.span = reduction, reduction.span
        self.carrier = SpanCarrier(reduction)
        self.size = self.span.size
        self.forces = PointForces(reduction.points)
        supports = span_supports(scene, self.span)
        self.boundary, self.walls = supports.boundary, supports.matrix
        self.loads = SpanLoads(self.boundary, self.span)
        self.mass = ReducedMass(scene, self.span)
        self.touch = SurfaceContact(scene, self.span) if scene.obstacles else None
        self.newton = DenseNewton()
        self.version = 0
        self.update(scene)

    @property
    def derivatives(self):
        """Tangents and adjoints of the steps."""
        from pliant.reduced.reduced_derivatives import ReducedDerivatives  # which steps it again

        if self._derivatives is None:
            self._derivatives = ReducedDerivatives(self)
        return self._derivatives

    # numbers -------------------------------------------------------------------------------------

    def update(self, scene: Scene) -> None:
        """See Model: the span, its points and its walls stay as they are."""
        self.scene, self.material = scene, scene.cell_material
        self.version += 1
        self._derivatives = None
        self._kept_energies: tuple[State, Energies] | None = None
        made = scene.constitution
        self.lam, self.mu = made.moduli()
        law = made.law
        assert law is not None
        self.law, self.by_moduli = law, made.law_by_moduli()
        self.forces.set_law(law, len(scene.body.cells), self.lam, self.mu)
        self.mass.set_density(scene)
        self.gravity = vector3("gravity", scene.gravity)
        if self.touch is not None:
            E = self.mu * (3.0 * self.lam + 2.0 * self.mu) / (self.lam + self.mu)
            self.touch.set_numbers(scene, float(np.mean(E)))
        self.forget()

    @property
    def masses(self) -> np.ndarray:
        """See Model."""
        return self.mass.nodes

    @property
    def attached(self) -> np.ndarray:
        """Point masses at the nodes [kg]."""
        return self.mass.attached

    @property
    def contact(self) -> Contact | None:
        """What presses on the surface's points."""
        return None if self.touch is None else self.touch.contact

    def arms(self) -> np.ndarray:
        """Node positions relative to the centre of mass, (nodes, 3)."""
        X = in_space(self.scene.body.nodes)
        return X - (self.masses @ X) / self.masses.sum()

    def forget(self) -> None:
        """See Model: the factor of an earlier tangent goes."""
        self.newton.forget()

    # the start -----------------------------------------------------------------------------------

    def asked_velocity(self) -> np.ndarray:
        """Of the scene's nodes (nodes, 3), whatever the span allows of it."""
        v = vector3("initial_velocity", self.scene.initial_velocity) + np.cross(
            vector3("initial_spin", self.scene.initial_spin), self.arms()
        )
        return v * self.boundary.free

    def initial_state(self) -> State:
        """Rest shape with the velocity nearest to the scene's by its energy, and M q'' = forces."""
        self.forget()
        none = np.zeros(self.size)
        rate = none
        if any(self.scene.initial_velocity) or any(self.scene.initial_spin):
            rate = np.linalg.solve(self.mass.matrix, self.mass.momentum(self.asked_velocity()))
        second = np.linalg.solve(self.mass.matrix, -self.imbalance(self.start(none, rate, 0.0)))
        return reduced_state(none, rate, second, 0.0)

    def start(self, q: np.ndarray, rate: np.ndarray, t: float) -> Taken:
        """A state itself, whose acceleration is sought."""
        none = np.zeros(self.size)
        balance = start_balance(self.material, t)
        rows = dict(balance.rows) | {"moved": (0.0, 0.0, self.material.mass_damping, 0.0)}
        balance = Balance(rows, balance.force, balance.times, balance.stiffness_damping)
        return Taken(balance, none, (q, rate, none))

    # steps ---------------------------------------------------------------------------------------

    def posed(self, state: State) -> Taken:
        """The step from a state at x = 0."""
        balance = step_balance(self.scene.integrator, self.material, state.t)
        return Taken(balance, np.zeros(self.size), numbers_of_state(state))

    def external(self, t: float) -> np.ndarray:
        """Gravity and loads at time t."""
        out = self.mass.pull_of_unit @ self.gravity[: self.span.dim]
        return out + self.loads.at(t) if self.loads.any else out

    def constant(self, taken: Taken) -> np.ndarray:
        """The part of g that x does not move: the past's inertia, its force, and loads."""
        b = taken.balance
        out = self.mass.matrix @ weights_of(taken.past, b.rows["moved"][1:])
        for weight, t in zip(b.force, b.times, strict=True):
            if weight != 0.0:
                out -= weight * self.external(t)
        if b.force[1] != 0.0:
            out += b.force[1] * self.forces.force(taken.past[0])
        return out

    def imbalance(self, taken: Taken, constant: np.ndarray | None = None) -> np.ndarray:
        """g at a step's x; constant: as of `constant`, where it is known."""
        b = taken.balance
        g = self.constant(taken) if constant is None else constant.copy()
        if b.per_x("moved") != 0.0:
            g += b.per_x("moved") * (self.mass.matrix @ taken.x)
        g += b.force[0] * self.forces.force(taken["next_u"])
        if b.stiffness_damping > 0.0:
            viscous = self.forces.viscous_force(taken["predicted"], taken["rate"])
            g += b.stiffness_damping * viscous
        if self.walls is not None:
            g += self.walls @ taken["strained"]
        if self.touch is not None:
            fields = self.touching(taken)
            g -= self.touch.force(fields, b.force, (b.per_x("next_u"), b.per_x("next_v")))
        return g

    def touching(self, taken: Taken) -> tuple:
        """The surface's fields in a step."""
        assert self.touch is not None
        return self.touch.fields(taken.past[0], taken.past[1], taken["next_u"], taken["next_v"])

    def jacobian(self, taken: Taken, *, project: bool = False) -> np.ndarray:
        """dg/dx, symmetric: without what friction gains with the pressure."""
        b = taken.balance
        A = b.per_x("moved") * self.mass.matrix
        factor = b.force[0] * b.per_x("next_u")
        if factor != 0.0:
            A = A + factor * self.forces.stiffness(taken["next_u"], project=project)
        damped = b.stiffness_damping * b.per_x("rate")
        if damped != 0.0:
            A = A + damped * self.forces.viscous_matrix(taken["predicted"])
        if self.walls is not None:
            A = A + b.per_x("strained") * self.walls
        if self.touch is not None:
            per_x = (b.per_x("next_u"), b.per_x("next_v"))
            self.touch.force(self.touching(taken), b.force, per_x)
            A = A + self.touch.matrix()
        return A

    def step(self, state: State) -> tuple[State, StepRecord]:
        """Advance one time step; raises SolverFailure."""
        begin = perf_counter()
        posed = self.posed(state)
        b, scheme = posed.balance, self.scene.integrator
        constant = self.constant(posed)
        x = weights_of(posed.past, scheme.first_guess)
        inertia = b.per_x("moved") * (self.mass.matrix @ x)
        scale = max(float(np.linalg.norm(constant)), float(np.linalg.norm(inertia)), 1e-300)
        try:
            with one_thread():
                found = self.newton.solve(
                    lambda x: self.imbalance(posed.at(x), constant),
                    lambda x, project: self.jacobian(posed.at(x), project=project), x,
                    scale=scale, tolerance=self.scene.tolerance,
                    token=(scheme.name, scheme.dt, self.version),
                )  # fmt: skip
        except SolverFailure as failure:
            raise SolverFailure(f"The step at t = {state.t:g} s failed: {failure}.") from failure
        after = self.reached(found.x, posed)
        took = perf_counter() - begin
        done = Solution(found.x, Outcome.CONVERGED, found.iterations, found.residual, found.target)
        return after, StepRecord(done, {"solve": took})

    def reached(self, x: np.ndarray, posed: Taken) -> State:
        """The state after the step whose unknown is x."""
        scheme, all_four = self.scene.integrator, (x, *posed.past)
        u, v, a = (
            weights_of(all_four, row) for row in (scheme.next_u, scheme.next_v, scheme.next_a)
        )
        return reduced_state(u, v, a, posed.balance.times[0])

    def between(self, before: State, after: State) -> Taken:
        """The vectors of a step that was taken."""
        scheme, posed = self.scene.integrator, self.posed(before)
        if scheme.next_a == (1.0, 0.0, 0.0, 0.0) or scheme.next_u[0] == 0.0:
            x = after.arrays[SECOND]
        else:
            w = scheme.next_u
            x = (after.arrays[Q] - weights_of(posed.past, w[1:])) / w[0]
        known = {"next_u": after.arrays[Q], "next_v": after.arrays[RATE]}
        return Taken(posed.balance, x, posed.past, known=known)

    def push(self, force: np.ndarray | None) -> None:
        """See Model."""
        self.loads.push(force)

    def drive(self, motions: Mapping[int, Motion]) -> None:
        """See Model."""
        if motions:
            raise BadInput(
                f"model = '{self.scene.model}': held regions stand still; use model = 'corotated' "
                "to move them."
            )

    def require_stable(self) -> None:
        """See Model: explicit schemes have no unknown place to balance forces at."""
        if self.scene.integrator.next_u[0] == 0.0:
            raise BadInput(
                f"model = '{self.scene.model}' takes an implicit integrator, not "
                f"{self.scene.integrator.name}: use GeneralisedAlpha."
            )

    # what a run is told ---------------------------------------------------------------------------

    def stored(self, state: State) -> Energies:
        """See Model."""
        if self._kept_energies is None or self._kept_energies[0] is not state:
            q, rate, _ = numbers_of_state(state)
            elastic = self.forces.energy(q)
            if self.walls is not None:
                elastic += 0.5 * float(q @ self.walls @ q)
            self._kept_energies = (
                state,
                Energies(
                    kinetic=0.5 * float(rate @ self.mass.matrix @ rate),
                    elastic=elastic,
                    gravity=-float(q @ self.mass.pull_of_unit @ self.gravity[: self.span.dim]),
                    contact=0.0 if self.touch is None else self.touch.energy(q),
                ),
            )
        return self._kept_energies[1]

    def work(self, before: State, after: State) -> tuple[float, float, float]:
        """See Model: forces as the step balances them, times the way of the numbers."""
        taken = self.between(before, after)
        b = taken.balance
        way = (after.arrays[Q] - before.arrays[Q]) / b.force_total
        damping = np.zeros(self.size)
        if self.material.mass_damping > 0.0:
            damping += self.material.mass_damping * (self.mass.matrix @ taken["rate"])
        if b.stiffness_damping > 0.0:
            viscous = self.forces.viscous_force(taken["predicted"], taken["rate"])
            damping += b.stiffness_damping * viscous
            if self.walls is not None:
                damping += b.stiffness_damping * (self.walls @ taken["rate"])
        contact, loads = 0.0, 0.0
        if self.touch is not None:
            per_x = (b.per_x("next_u"), b.per_x("next_v"))
            contact = float(self.touch.force(self.touching(taken), b.force, per_x) @ way)
        if self.loads.any:
            for weight, t in zip(b.force, b.times, strict=True):
                loads += weight * float(self.loads.at(t) @ way)
        return float(damping @ way), contact, loads

    def least_exchange(self) -> float:
        """What gravity may give the body in one step [J], or a strain of 1e-7."""
        speed = float(np.linalg.norm(self.gravity)) * self.scene.dt
        rounding = 1e-14 * float(np.mean(self.mu)) * self.scene.body.volume
        return max(0.5 * float(self.masses.sum()) * speed**2, rounding)

    def inverted(self, state: State) -> int:
        """Points at which the body is inside out."""
        return int(np.count_nonzero(self.forces.smallest_stretches(state.arrays[Q]) <= 0.0))
