"""A scene whose body has an energy, corotated or a material law: steps of Newton's method.

A step solves

    g = M (m . (x, u, v, a)) + f_new f_int(u') + f_old f_int(u) + beta D(u~) (f_new v' + f_old v)
        + walls(k . (x, u, v, a)) - contact - f_new f' - f_old f = 0,

u' and v' linear in x by the integrator's table: for every scheme the weights of K in the linear
residual are those of f_new u' + f_old u, so the same table serves.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from time import perf_counter

import numpy as np
import warp as wp

from pliant.core.errors import BadInput, SolverFailure
from pliant.core.launch import to_device, zeros
from pliant.core.solution import Outcome, Solution
from pliant.dynamics.directional_newton import add_contact_product
from pliant.dynamics.energies import Energies, step_work, stored
from pliant.dynamics.integrators import INTEGRATORS, ImplicitEuler, Integrator
from pliant.dynamics.newton import TANGENTS, Newton, NewtonFailure, NewtonRecord
from pliant.dynamics.scene import Scene
from pliant.dynamics.system import State, StepRecord, System
from pliant.fem.corotation import Corotation
from pliant.fem.elasticity import ghost_energy
from pliant.fem.hyperelastic import Hyperelasticity
from pliant.fem.laws import find_law
from pliant.fem.laws.law import Law
from pliant.fem.material import Material
from pliant.linalg.blocks import combine, combine_three, dot, keep_free, set_held
from pliant.linalg.multigrid import Multigrid

COROTATED = "corotated"
"""The model, and the law whose moduli it has."""

MOST_HALVINGS = 5
"""A step that Newton cannot take, that turns cells inside out, or in which an impact gives energy,
is cut in two, at most this often (1/32 of the time step)."""

IMPACT_HALVINGS = 3
"""An impact that gives energy even in parts this short (1/8) is too quick for any of them: such a
part is taken by implicit Euler, which only ever takes energy. How high a body bounces that the step
cannot follow is not known anyway, and shorter parts cost as many times more."""


LARGEST_STEP_GAIN = 0.01
"""Share of its own energy that a body in contact may gain in a step before the step is cut."""

TOUCHING = 1e-6
"""Share of a body's energy that its contact holds at least while it touches something."""

ROUNDING_SHARE = 1e-14
"""Rounding of a nodal force over modulus times cell face: some fifty roundings of one stress."""


def scene_law(scene: Scene) -> Law:
    """The scene's law; one given by name takes the material's modulus and ratio."""
    law = scene.law
    if isinstance(law, Law):
        return law
    if law is None and scene.model != COROTATED:
        raise BadInput("The scene has no material law: give Scene(law=...).")
    m = scene.material
    return find_law(law or COROTATED).from_moduli(m.youngs_modulus, m.poisson_ratio)


def has_energy(scene: Scene) -> bool:
    """Whether the forces are an energy's: a law's, or the corotated one."""
    return scene.law is not None or scene.model == COROTATED


@dataclass
class DividedState(State):
    """A state that took several sub-steps to reach: (before, after, scheme) of each.

    Derivatives of the step walk through them.
    """

    parts: list[tuple[State, State, Integrator]] = field(default_factory=list)


def parts_of(before: State, after: State, scheme: Integrator):
    """The sub-steps from one state to the next, the step itself where there are none."""
    return after.parts if isinstance(after, DividedState) else [(before, after, scheme)]


class LawSystem(System):
    """Operators of a scene with a law; `step` is Newton's method."""

    def __init__(self, scene: Scene, *, tangent: str = "assembled", nitsche: bool = False):
        """tangent: "assembled" or "directional", how Newton's method sees it (dynamics.newton).

        nitsche: walls of a corotated body with consistency terms: exact, but without a lower bound.
        """
        self._nitsche = nitsche or bool(np.isfinite(scene.integrator.stable_to))
        if tangent not in TANGENTS:
            raise BadInput(f"tangent must be one of {', '.join(TANGENTS)}, not '{tangent}'.")
        self.tangent = tangent
        self.version = 0  # counts changes of the material, after which an old tangent is of no use
        super().__init__(scene)
        self.newton_records: list[NewtonRecord] = []

    def _operators(self) -> None:
        """Boundary, and the energy's own operator."""
        scene = self.scene
        super()._operators()
        law = scene_law(scene)
        self.hyper: Hyperelasticity | Corotation
        if scene.law is None:
            self.hyper = Corotation(scene.body, law, self.elasticity)
        else:
            self.hyper = Hyperelasticity(scene.body, law, dilatation=scene.dilatation)

    @property
    def _consistent_walls(self) -> bool:
        """Explicit schemes keep Nitsche's terms, where they are corotated: stiff penalties would
        bound their time step, and no matrix of theirs can become indefinite.
        """
        return self.scene.law is None and self._nitsche

    def set_material(self, material: Material) -> None:
        """Density and damping from the material, stiffness from the law."""
        self.version += 1
        self._kept_internal: tuple[wp.array, wp.array] | None = None
        self._kept_stretches: tuple[wp.array, np.ndarray] | None = None
        self._kept_energies: tuple[State, Energies] | None = None
        self.law = scene_law(replace(self.scene, material=material))
        self.hyper.set_law(self.law)
        super().set_material(material)
        cells = len(self.scene.body.cells)
        lam, mu = (np.broadcast_to(np.asarray(x, float), (cells,)).copy() for x in self.law.lame())
        if (mu <= 0.0).any():
            raise BadInput(f"{self.law}: the shear modulus at small strain must be positive.")
        # walls and contact need a positive scale even where a law has no bulk modulus at rest
        self.lam, self.mu = lam if self.scene.law is None else np.maximum(lam, 0.0), mu
        self.elasticity.set_material(self.lam, self.mu)
        if isinstance(self.preconditioner, Multigrid):
            self.preconditioner.expect_bulk(float((self.lam / self.mu).max()))
        if self.walls is not None:
            self.walls.set_material(self.lam, self.mu)
        if self.contact is not None:
            E = self.mu * (3.0 * self.lam + 2.0 * self.mu) / (self.lam + self.mu)
            self.contact.set_stiffness(float(np.mean(E)))

    def forget(self) -> None:
        """As every system, and the tangents of earlier steps."""
        super().forget()
        self.cached(_newton_for).forget()

    def _add_initial_force(self, state: State, force: wp.array) -> None:
        """force -= f_int(u) + D v."""
        self.hyper.add_force(state.u, force, factor=-1.0)
        beta = self.material.stiffness_damping
        if beta > 0.0:
            self.hyper.add_viscous(state.u, state.v, force, factor=-beta)

    def internal_force(self, u: wp.array) -> wp.array:
        """Force of the energy at u; a step that ended there has left it."""
        kept = self._kept_internal
        if kept is None or kept[0] is not u:
            force = zeros(self.node_count, wp.vec3d)
            self.hyper.add_force(u, force)
            kept = self._kept_internal = (u, force)
        return kept[1]

    def keep_internal(self, u: wp.array, force: wp.array) -> None:
        """Remember the force at u, a field that nobody changes."""
        self._kept_internal = (u, force)

    def elastic_energy(self, state: State) -> float:
        """Energy [J] of the cells, their ghost penalty and the walls."""
        cells = self.hyper.energy(state.u) + ghost_energy(self.hyper.ghost, state.u)
        return cells + self.wall_energy(state.u, state.t)

    def stretches(self, u: wp.array) -> np.ndarray:
        """det F of the cells, (cells,)."""
        kept = self._kept_stretches
        if kept is None or kept[0] is not u:
            kept = self._kept_stretches = (u, self._stretches_at(u))
        return kept[1]

    def _stretches_at(self, u: wp.array) -> np.ndarray:
        if isinstance(self.hyper, Corotation):
            return self.hyper.stretches(u)
        return self.elasticity.stretches(u)

    def add_elastic(self, before: State, after: State, out: wp.array) -> None:
        """out += f_new f_int(u') + f_old f_int(u)."""
        for factor, state in zip(self.scene.integrator.force, (after, before), strict=True):
            if factor != 0.0:
                self.hyper.add_force(state.u, out, factor=factor)

    def add_damping(self, before: State, rate: wp.array, out: wp.array, factor: float) -> None:
        """out += factor * (viscous + walls) rate, as the step from `before` on takes it."""
        self.hyper.add_viscous(self.predict(before), rate, out, factor=factor)
        if self.walls is not None:
            self.walls.add_force(rate, out, factor=factor)

    def contact_at(self, before: State, after: State) -> wp.array:
        """Displacement at which a step takes its contact: that of its end."""
        return after.u

    def walk(self, before: State, after: State) -> Iterator[tuple[State, State]]:
        """The step, or the parts it was taken in; the scene has each part's scheme meanwhile."""
        for start, end, scheme in parts_of(before, after, self.scene.integrator):
            with self.using(scheme):
                yield start, end

    def force_rounding(self) -> float:
        """Size [N] of the rounding in the internal forces: stresses cancel from the moduli's size.

        Near the rest P is a difference of terms of the size of the moduli, so no smaller imbalance
        can be told from zero.
        """
        body = self.scene.body
        area = body.spacing ** (body.dim - 1)
        modulus = float(np.max(self.lam + 2.0 * self.mu))
        return ROUNDING_SHARE * modulus * area * float(np.sqrt(self.node_count))

    def prepare(self, state: State, *, right_hand_side: bool = False) -> None:
        """Nothing: a law's tangent belongs to the end of a step, not to its start."""

    def step(self, state: State) -> tuple[State, StepRecord]:
        """Advance one time step, in parts if Newton fails on the whole."""
        parts, record = self._step_in_parts(state, self.scene.integrator, 0)
        after = parts[-1][1]
        if len(parts) > 1:
            record = replace(record, parts=len(parts))
            after = DividedState(after.u, after.v, after.a, after.t, parts)
        return after, record

    def _step_in_parts(self, state: State, scheme: Integrator, depth: int):
        last = depth >= MOST_HALVINGS
        try:
            after, record = StepProblem(self, state, scheme).solve()
            if not last:
                self._require_upright(state, after)
            if not self._gives_energy(state, after, scheme):
                return [(state, after, scheme)], record
            if depth >= IMPACT_HALVINGS:
                scheme = ImplicitEuler(scheme.dt)
                after, record = StepProblem(self, state, scheme).solve()
                return [(state, after, scheme)], record
        except NewtonFailure as failure:
            if last:
                raise SolverFailure(
                    f"The step at t = {state.t:g} s failed even at dt = {scheme.dt:g} s: {failure} "
                    "Use a smaller time step, or a law that resists inversion."
                ) from None
        half = INTEGRATORS[scheme.name](scheme.dt / 2.0, **scheme.parameters)
        front, first = self._step_in_parts(state, half, depth + 1)
        back, second = self._step_in_parts(front[-1][1], half, depth + 1)
        timings = {k: first.timings[k] + second.timings[k] for k in first.timings}
        iterations = first.solution.iterations + second.solution.iterations
        whole = replace(second.solution, iterations=iterations)
        return front + back, StepRecord(whole, timings)

    def _require_upright(self, before: State, after: State) -> None:
        """Refuse a step that turns cells inside out: a shorter one may not."""
        if self.inverted(after.u) > self.inverted(before.u):
            raise NewtonFailure("cells turn inside out.")

    def _gives_energy(self, before: State, after: State, scheme: Integrator) -> bool:
        """Whether an impact was too quick for this step: the body has gained energy."""
        if self.contact is None:
            return False
        start, end = self._stored_at(before), self._stored_at(after)
        own = max(float(e.kinetic + abs(e.elastic) + e.contact) for e in (start, end))
        if max(start.contact, end.contact) <= TOUCHING * own:
            return False
        with self.using(scheme):
            damping, _, loads = step_work(self, before, after)
        return float(end.total - start.total) + damping - loads > LARGEST_STEP_GAIN * own

    def _stored_at(self, state: State) -> Energies:
        """Energies of a state; a step ends where the next one starts."""
        if self._kept_energies is None or self._kept_energies[0] is not state:
            self._kept_energies = (state, stored(self, state))
        return self._kept_energies[1]

    @contextmanager
    def using(self, scheme: Integrator) -> Iterator[None]:
        """Inside the block the scene has another integrator: that of a sub-step."""
        scene = self.scene
        if scheme is not scene.integrator:
            self.scene = replace(scene, integrator=scheme)
        try:
            yield
        finally:
            self.scene = scene


class StepProblem:
    """One step as a NewtonProblem in x."""

    def __init__(self, system: LawSystem, state: State, scheme: Integrator):
        self.system, self.state, self.scheme = system, state, scheme
        self.matrix, self.solver = system.matrix, system.solver
        self.preconditioner = system.preconditioner
        self.clamped = system.hyper.clamped_converges
        material = system.material
        self.mass = scheme.mass_weights(material.mass_damping)
        self.stiff = scheme.stiffness_weights(material.stiffness_damping)
        self.damping = np.array([scheme.system[1], *[-row[1] for row in scheme.history]])
        self.beta = material.stiffness_damping
        self.c = scheme.next_u[0]
        with system.using(scheme):
            self.predicted = system.predict(state)
        self.u_next, self.v_next, self.internal, self._w = (
            zeros(system.node_count, wp.vec3d) for _ in range(4)
        )
        self._given: wp.array | None = None
        if system.boundary.held:
            self._given = to_device(system.boundary.prescribed(state.t + scheme.dt), wp.vec3d)
        self.timings = {"assembly": 0.0, "setup": 0.0, "solve": 0.0}
        self.constant = self._constant()

    def _constant(self) -> wp.array:
        """What x does not move: loads, inertia of the past, f_old f_int(u)."""
        s, scheme, state = self.system, self.scheme, self.state
        f_new, f_old = scheme.force
        force = f_new * s.external_force(state.t + scheme.dt)
        if f_old != 0.0:
            force = force + f_old * s.external_force(state.t)
        b = to_device(force, wp.vec3d)
        combine(self._w, *zip(self.mass[1:], state.fields(), strict=True))
        s.add_inertia(self._w, b, -1.0)
        if f_old != 0.0:
            combine(b, (1.0, b), (-f_old, s.internal_force(state.u)))
        return b

    def place(self, x: wp.array) -> None:
        """u_next and v_next of x."""
        scheme, state = self.scheme, self.state
        combine(self.u_next, (scheme.next_u[0], x),
                *zip(scheme.next_u[1:], state.fields(), strict=True))
        if self._given is not None:
            set_held(self.u_next, self.matrix.free, self._given)
        combine(self.v_next, (scheme.next_v[0], x),
                *zip(scheme.next_v[1:], state.fields(), strict=True))

    def residual(self, x: wp.array, out: wp.array) -> None:
        """out = -g(x)."""
        s, scheme, state = self.system, self.scheme, self.state
        t0 = perf_counter()
        f_new, f_old = scheme.force
        self.place(x)
        wp.copy(out, self.constant)
        s.add_inertia(x, out, -self.mass[0])
        w, internal = self._w, self.internal
        internal.zero_()
        if self.beta > 0.0:
            combine(w, (self.damping[0], x),
                    *zip(self.damping[1:], state.fields(), strict=True))
            s.hyper.add_forces(
                self.u_next, self.predicted, w, internal, out, viscous_factor=-self.beta
            )
        else:
            s.hyper.add_force(self.u_next, internal)
        combine(out, (1.0, out), (-f_new, internal))
        if s.walls is not None:
            combine(w, (self.stiff[0], x), *zip(self.stiff[1:], state.fields(), strict=True))
            s.walls.add_force(w, out, factor=-1.0)
        if s.contact is not None:
            s.contact.add_forces(
                state.u, state.v, self.u_next, (self.u_next, self.v_next),
                f_new=f_new, f_old=f_old, per_x=(self.c, scheme.next_v[0]), out=out,
            )  # fmt: skip
        self.timings["assembly"] += perf_counter() - t0

    def assemble(self, x: wp.array, *, project: bool) -> None:
        """matrix = dg/dx at x."""
        s, scheme = self.system, self.scheme
        t0 = perf_counter()
        self.place(x)
        s.hyper.assemble(
            self.matrix, s.mass, self.u_next, mass_factor=self.mass[0],
            stiffness_factor=scheme.force[0] * self.c,
            viscous_factor=self.beta * self.damping[0], viscous_at=self.predicted, project=project,
        )  # fmt: skip
        if s.walls is not None and self.stiff[0] != 0.0:
            s.walls.assemble(self.matrix, self.stiff[0])
        if s.ghost_inertia is not None:
            s.ghost_inertia.assemble(self.matrix, self.mass[0])
        if s.contact is not None:
            self._prepare_contact()
            s.contact.add_to_matrix(self.matrix)
        self.timings["assembly"] += perf_counter() - t0

    def linearise(self, x: wp.array) -> None:
        """Take `multiply` at x."""
        self.place(x)
        self._prepare_contact()

    def multiply(self, p: wp.array, out: wp.array) -> None:
        """out = dg/dx p at the x of `linearise`, without a matrix."""
        s, scheme = self.system, self.scheme
        out.zero_()
        s.add_inertia(p, out, self.mass[0])
        s.hyper.add_direction(self.u_next, p, out, factor=scheme.force[0] * self.c)
        if self.beta > 0.0:
            s.hyper.add_viscous(self.predicted, p, out, factor=self.beta * self.damping[0])
        if s.walls is not None:
            s.walls.add_force(p, out, factor=self.stiff[0])
        if s.contact is not None:
            add_contact_product(s.contact, p, out)

    def _prepare_contact(self) -> None:
        """Blocks of the contact at u_next."""
        s, scheme, scratch = self.system, self.scheme, self._w
        if s.contact is None:
            return
        scratch.zero_()
        s.contact.add_forces(
            self.state.u, self.state.v, self.u_next, (self.u_next, self.v_next),
            f_new=scheme.force[0], f_old=scheme.force[1],
            per_x=(self.c, scheme.next_v[0]), out=scratch,
        )  # fmt: skip

    def first_guess(self) -> wp.array:
        """x of an unchanged acceleration; held components as they must be."""
        s, scheme, state = self.system, self.scheme, self.state
        x = s._combined(scheme.first_guess, state)
        if s.boundary.held:
            w = scheme.next_u
            given = s.boundary.prescribed(state.t + scheme.dt)
            base = s._combined(w[1:], state).numpy()
            value = x.numpy()
            held = s.boundary.free == 0.0
            value[held] = ((given - base) / w[0])[held] if w[0] != 0.0 else 0.0
            x.assign(value)
        return x

    def scale(self, x: wp.array) -> float:
        """Size of the forces in balance: loads, inertia and internal forces, the largest."""
        s = self.system
        parts = [wp.clone(self.constant), zeros(s.node_count, wp.vec3d)]
        s.add_inertia(x, parts[1], self.mass[0])
        external = self.scheme.force_total * s.external_force(self.state.t)
        sizes = [float(np.sqrt(np.square(external).sum()))]  # a norm would wake BLAS's threads
        for f in parts:
            keep_free(f, s.matrix.free)
            sizes.append(float(np.sqrt(dot(f, f))))
        return max(*sizes, 1e-300)

    def solve(self) -> tuple[State, StepRecord]:
        """The next state; raises NewtonFailure."""
        s, scheme, state = self.system, self.scheme, self.state
        t0 = perf_counter()
        x = self.first_guess()
        linear = self.c == 0.0
        newton = s.cached(_newton_for)
        newton.problem = self  # the buffers serve every step
        if s._recent is None:  # without a past a resumed run ends with the same bits
            newton.forget()
        scale = self.scale(x)
        options = {
            "scale": scale, "tolerance": s.scene.tolerance, "linear": linear,
            "rounding": scheme.force[0] * s.force_rounding(),
        }  # fmt: skip
        whole = scheme is s.scene.integrator and not linear
        recent = s._recent if whole else None
        if recent is not None:
            recent.predict(x)
        try:
            token = (scheme.name, scheme.dt, s.version)
            record = newton.solve(x, keep=token, recent=recent, **options)
        except NewtonFailure:
            newton.kept = None
            x = self._calm_guess()
            record = newton.solve(x, **options)
        if recent is not None:
            recent.remember(self.matrix, x, scheme.first_guess, state.fields())
        weights = (scheme.next_u, scheme.next_v, scheme.next_a)
        _, v, a = combine_three(weights, (x, *state.fields()))
        after = State(self.u_next, v, a, state.t + scheme.dt)
        s._impose(after)
        s.keep_internal(after.u, self.internal)
        s.newton_records.append(record)
        self.timings["solve"] = perf_counter() - t0 - self.timings["assembly"]
        norm = record.residual * scale
        solution = Solution(
            x, Outcome.CONVERGED, record.solver_iterations, norm, s.scene.tolerance * scale,
            record.history,
        )  # fmt: skip
        return after, StepRecord(solution, self.timings)

    def _calm_guess(self) -> wp.array:
        """x that leaves the free nodes where they are: the law is defined there."""
        w = self.scheme.next_u
        if w[0] == 0.0:
            raise NewtonFailure("the explicit step leaves the law's domain.")
        base = self.system._combined(w[1:], self.state).numpy()
        x = self.first_guess()
        value = x.numpy()
        free = self.system.boundary.free > 0.0
        value[free] = ((self.state.u.numpy() - base) / w[0])[free]
        x.assign(value)
        return x


def _newton_for(system: System) -> Newton:
    assert isinstance(system, LawSystem)
    return Newton(None, system.node_count, tangent=system.tangent)


def make_system(scene: Scene) -> System:
    """The system that suits a scene: one linear solve a step, or Newton's method for energies."""
    return LawSystem(scene) if has_energy(scene) else System(scene)
