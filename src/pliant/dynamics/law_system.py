"""A scene whose body has an energy, corotated or a material law: steps of Newton's method.

What a step solves is in dynamics.step_problem; here are the operators, and what is done where the
whole step fails.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np
import warp as wp

from pliant.core.errors import BadInput, SolverFailure
from pliant.core.launch import zeros
from pliant.dynamics.energies import Energies, step_work, stored
from pliant.dynamics.integrators import INTEGRATORS, ImplicitEuler, Integrator
from pliant.dynamics.newton import TANGENTS, Newton, NewtonFailure, NewtonRecord
from pliant.dynamics.scene import Scene
from pliant.dynamics.step_problem import StepProblem
from pliant.dynamics.system import State, StepRecord, System
from pliant.fem.corotation import Corotation
from pliant.fem.elasticity import ghost_energy
from pliant.fem.hyperelastic import Hyperelasticity
from pliant.fem.laws import find_law
from pliant.fem.laws.law import Law
from pliant.fem.material import Material
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

KEPT_RECORDS = 10_000
"""How Newton's method went is remembered of so many solves: a run of one's own has no end."""

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
        self.newton = Newton(None, self.node_count, tangent=tangent)
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
        self.newton.forget()

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
        del self.newton_records[:-KEPT_RECORDS]
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
        had = self.inverted(before.u)  # asked first: the step before has left it
        if self.inverted(after.u) > had:
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


def make_system(scene: Scene) -> System:
    """The system that suits a scene: one linear solve a step, or Newton's method for energies."""
    return LawSystem(scene) if has_energy(scene) else System(scene)
