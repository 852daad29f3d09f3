"""A scene made ready to compute: its forces as terms, the linear solver, and time steps.

Every step solves g(x; u, v, a) = 0, the balance of all terms with the weights of the integrator's
table (dynamics.step_problem): one linear solve where no term is nonlinear in x, else Newton's
method. Here is what the terms are made of, and what is done where a whole step fails.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
import warp as wp

from pliant.core.errors import BadInput, SolverFailure
from pliant.core.launch import to_device, zeros
from pliant.dynamics.balanced_start import BalancedStart
from pliant.dynamics.contact import LIGHT, Contact
from pliant.dynamics.energies import Energies
from pliant.dynamics.implicit_derivatives import StepDerivatives
from pliant.dynamics.implicit_energies import gravity_in_one_step, step_work, stored
from pliant.dynamics.integrators import Integrator
from pliant.dynamics.loads import Motion
from pliant.dynamics.model import Model, State, StepRecord
from pliant.dynamics.newton import Newton, NewtonRecord
from pliant.dynamics.node_carrier import NodeCarrier
from pliant.dynamics.own_weight import own_weight
from pliant.dynamics.point_mass import attached_masses
from pliant.dynamics.scene import Scene, vector3
from pliant.dynamics.stable_step import require_stable
from pliant.dynamics.step_parts import step_in_parts
from pliant.dynamics.step_problem import StepProblem
from pliant.dynamics.supports import build_supports
from pliant.dynamics.terms.branches import BranchTerm
from pliant.dynamics.terms.contact import ContactTerm
from pliant.dynamics.terms.elastic import EnergyTerm
from pliant.dynamics.terms.inertia import Inertia
from pliant.dynamics.terms.loads import LoadTerm
from pliant.dynamics.terms.places import PlaceTerm
from pliant.dynamics.terms.slivers import SliverViscosity
from pliant.dynamics.terms.stage import Stage, mix, start_balance, step_balance
from pliant.dynamics.terms.term import Support, Term
from pliant.fem.bodies.solver_nodes import solver_nodes
from pliant.fem.cutting.walls import Hold
from pliant.fem.forces.elasticity import Elasticity
from pliant.fem.laws.law import Law
from pliant.linalg.blocks import BlockMatrix, combine
from pliant.linalg.multigrid import Multigrid
from pliant.linalg.pcg import BlockJacobi, ConjugateGradients, Preconditioner
from pliant.linalg.recent import RecentErrors

SLIVER = 0.05
"""Filled share below which a cell may turn inside out without a word: it follows its neighbours."""

WALL_SWEEPS = 1
"""Sweeps over the nodes at weak walls around a coarse correction. The first step of the cuboid of
resolution 35, cut at its wall, needs 18 iterations without, 11 with one, 10 with four."""

PENALTY_SWEEPS = 8
"""Sweeps over the nodes at walls held by penalties alone. On the torus, 390 of 9,236 nodes at its
walls, an iteration gains 1.5-fold without, 2.4, 3.2, 4.4, 4.6-fold with 2, 4, 8, 16, and 6-fold
without walls."""

SMALL_BODY = 150
"""Nodes below which the own blocks of the nodes precondition as fast as a hierarchy of grids."""

STIFF_BULK = 4.0
"""Ratio lambda / mu (4: Poisson's ratio 0.4) from which they do not: 105 nodes need 36 iterations
at 0.45 and 207 at 0.4999, a hierarchy 5 and 14."""

KEPT_RECORDS = 10_000
"""How Newton's method went is remembered of so many solves: a run of one's own has no end."""

ROUNDING_SHARE = 1e-14
"""Rounding of a nodal force over modulus times cell face: some fifty roundings of one stress."""


ROUNDING_AWAY = 4e-16
"""The same for every cell width that the body has moved: some two roundings of a displacement."""


class ImplicitModel(Model):
    """The terms of a scene on the device."""

    def __init__(self, scene: Scene):
        self.scene: Scene = scene
        self.carrier = NodeCarrier()
        body = scene.body
        self.node_count, cells = len(body.nodes), len(body.cells)
        made = scene.constitution
        energetic = made.energetic
        short = bool(np.isfinite(scene.integrator.stable_to))
        hold: Hold = "penalty"
        if made.exact_walls and not scene.material.branches:  # whose stress Nitsche's terms lack
            hold = "turning" if energetic else "linear"
        self._hold: Hold = hold
        self.inertia = Inertia(body, slivers=short)
        self.elastic = made.elastic()
        self.touch: ContactTerm | None = None
        if scene.obstacles:
            contact = Contact(
                body, scene.obstacles, scene.contact, weight=own_weight(scene),
                burden=_burden(scene),
            )  # fmt: skip
            self.touch = ContactTerm(contact, "next_u" if energetic else "predicted")
        self.slivers: SliverViscosity | None = None
        ghost = self.elastic.operator.ghost
        if energetic and ghost is not None and not short and not scene.integrator.damps:
            self.slivers = SliverViscosity(ghost, cells)
        self.branches: BranchTerm | None = None
        if scene.material.branches:
            self.branches = BranchTerm(self.elastic.rest)
        self._hold_surface(scene)
        compact = scene.preconditioner == "jacobi" and made.compact
        self.matrix = BlockMatrix(body.pattern, self.boundary.free, half=compact)
        lam, mu = made.moduli()
        self.preconditioner = make_preconditioner(scene, self.boundary.free, (lam / mu).max())
        self._expect_walls()
        self.version = 0  # counts changes of the numbers, after which an old tangent is of no use
        self.solver = ConjugateGradients(self.matrix, self.preconditioner)
        # small bodies gain nothing, and without a past a resumed run ends with the same bits
        large = isinstance(self.preconditioner, Multigrid) and self.node_count >= SMALL_BODY
        self.recent = RecentErrors(self.node_count) if large else None
        self.newton = Newton(None, self.node_count)
        self.newton_records: list[NewtonRecord] = []
        self.linearised_at: State | None = None
        """The start of the step whose exact matrix, and preconditioner, are at hand."""
        self._solid = body.fill > SLIVER
        shared = ("next_v", "strained", "rate")
        self._buffers = {name: zeros(self.node_count, wp.vec3d) for name in shared}
        self.cell_count = cells
        self.update(scene)

    def _hold_surface(self, scene: Scene) -> None:
        """What holds the body where the scene's regions are."""
        self._held_at_shifts = [f.shift for f in scene.fixed]
        held = build_supports(scene, self._hold)
        self._supports, self.boundary = held, held.boundary
        self.walls, self.tractions, self.springs = held.walls, held.tractions, held.springs
        self.loads = LoadTerm(self.boundary)
        self.places: PlaceTerm | None = None
        if any(self._held_at_shifts):
            self.places = PlaceTerm(lambda other: build_supports(other, self._hold))
        beside: Sequence[Term | None] = (
            self.branches, *self.supports, self.places, self.inertia, self.slivers, self.touch,
        )  # fmt: skip
        self.beside: list[Term] = [term for term in beside if term is not None]
        """The terms that x moves, without the elastic one; in the order of their sum."""

    def _expect_walls(self) -> None:
        if self.walls is not None and isinstance(self.preconditioner, Multigrid):
            sweeps = PENALTY_SWEEPS if self._hold == "penalty" else WALL_SWEEPS
            cells = self.scene.body.cells[self.walls.walls.cell]
            self.preconditioner.expect_stiff(cells, sweeps)

    def _move_supports(self, scene: Scene) -> None:
        try:
            self._hold_surface(scene)
        except BadInput as error:
            raise SolverFailure(f"A clamp was moved off the body: {error}") from error
        self._expect_walls()
        self.forget()

    def update(self, scene: Scene) -> None:
        """Take over a variant of the scene: the same body and regions, other numbers and places."""
        if [f.shift for f in scene.fixed] != self._held_at_shifts:
            self._move_supports(scene)
        self.scene, self.material = scene, scene.cell_material
        self.version += 1
        self.linearised_at = None
        self._steady_force: np.ndarray | None = None
        self._kept_energies: tuple[State, Energies] | None = None
        made = scene.constitution
        self.lam, self.mu = lam, mu = made.moduli()
        if isinstance(self.elastic, EnergyTerm):
            law = made.law
            assert law is not None
            self.law: Law = law
            self.elastic.set_law(law, made.law_by_moduli())
        self.elastic.rest.set_material(lam, mu)
        if self.branches is not None:
            self.branches.set_material(scene.material.branches, lam, mu)
        # whether a wall that stands still holds the body elsewhere
        self._walls_pull = self._supports.set_numbers(scene, lam, mu)
        if self.places is not None:
            self.places.set_numbers(scene, lam, mu)
        if isinstance(self.preconditioner, Multigrid):
            stiffness = lam + 2.0 * mu
            self.preconditioner.expect_contrast(float(stiffness.max() / stiffness.min()))
            self.preconditioner.expect_bulk(float((lam / mu).max()))
        self.attached = attached_masses(scene.attached, scene.body)
        self.inertia.set_density(scene.cell_material.densities(self.cell_count), self.attached)
        self.loads.set_weight(self.masses, vector3("gravity", scene.gravity))
        if self.touch is not None:
            E = mu * (3.0 * lam + 2.0 * mu) / (lam + mu)
            self.touch.set_numbers(scene, float(np.mean(E)))

    @property
    def supports(self) -> list[Support]:
        """What holds the surface weakly: walls, the body's own stress there, clamps that give."""
        return self._supports.terms

    @property
    def masses(self) -> np.ndarray:
        """Lumped masses of the nodes, (nodes,) [kg]."""
        return self.inertia.lumped

    @property
    def contact(self) -> Contact | None:
        """What presses on the surface's points."""
        return None if self.touch is None else self.touch.contact

    @property
    def elasticity(self) -> Elasticity:
        """The linear operator about the rest shape."""
        return self.elastic.rest

    @cached_property
    def derivatives(self) -> StepDerivatives:
        """Tangents and adjoints of the steps."""
        return StepDerivatives(self)

    def arms(self) -> np.ndarray:
        """Node positions relative to the centre of mass, (nodes, 3)."""
        X = np.zeros((self.node_count, 3))
        X[:, : self.scene.dim] = self.scene.body.nodes
        return X - (self.masses @ X) / self.masses.sum()

    def forget(self) -> None:
        """Start anew: bits of what follows do not depend on what this model computed before."""
        self.preconditioner.forget()
        self.linearised_at = None
        if self.recent is not None:
            self.recent.forget()
        self.newton.forget()

    # the start -----------------------------------------------------------------------------------

    def initial_state(self) -> State:
        """Rest shape, with the scene's initial velocity and spin, in equilibrium acceleration.

        Or in balance, and what is plucked out of it: see dynamics.start.
        """
        self.forget()
        if self.scene.begin.balanced:
            return self.balanced_start.state()
        v = self.boundary.compatible(self.asked_velocity())
        u, v = (to_device(f, wp.vec3d) for f in (self.boundary.prescribed(0.0), v))
        start = State.of(u, v, zeros(self.node_count, wp.vec3d))
        a = self.boundary.compatible(self.asked_acceleration(start))
        self.elasticity.release()
        return State.of(u, v, to_device(a, wp.vec3d), history=self.relaxed())

    def asked_velocity(self) -> np.ndarray:
        """Of the scene's nodes (nodes, 3), whatever the walls allow of it."""
        return vector3("initial_velocity", self.scene.initial_velocity) + np.cross(
            vector3("initial_spin", self.scene.initial_spin), self.arms()
        )

    def asked_acceleration(self, start: State) -> np.ndarray:
        """M a = f - D v - K u: lumped, so a division; gravity accelerates all nodes alike."""
        a = self.loads.gravity + self.initial_push(start)
        return a - self.material.mass_damping * start.v.numpy()

    def relaxed(self) -> tuple[wp.array, ...]:
        """What a body keeps that has rested where it is."""
        return () if self.branches is None else self.branches.relaxed()

    @cached_property
    def balanced_start(self) -> BalancedStart:
        """The start of a scene that begins in balance, and its derivatives."""
        return BalancedStart(self)

    def initial_push(self, state: State) -> np.ndarray:
        """Acceleration (nodes, 3) by all but gravity, mass damping and walls at the start."""
        stage, force = self.start_stage(state), zeros(self.node_count, wp.vec3d)
        for term in self.starting:
            term.add_force(stage, force)
        host = force.numpy() + self.boundary.load_forces(state.t)
        return host / self.inertia.starting()[:, None]

    @property
    def starting(self) -> list[Term]:
        """Terms whose forces at the start follow the body."""
        return [self.elastic] if self.touch is None else [self.elastic, self.touch]

    def start_stage(self, state: State) -> Stage:
        """The state itself as a stage of forces."""
        u, v = state.u, state.v
        known = {"u": u, "v": v, "next_u": u, "next_v": v, "predicted": u, "rate": v}
        return Stage(start_balance(self.material, state.t), state.fields(), known=known)

    # loads and walls -----------------------------------------------------------------------------

    def external_force(self, t: float) -> np.ndarray:
        """Gravity, loads, wall data and the push (nodes, 3) at time t; contact is apart."""
        force = self._steady_force
        if force is None or self.boundary.changes:
            force = self.loads.given(t)
            for term in self.supports:
                force = force + term.given(t)
            self._steady_force = force
        return force if self.loads.push is None else force + self.loads.push

    def push(self, force: np.ndarray | None) -> None:
        """One more force (nodes, 3) [N] on the steps to come."""
        self.loads.push = None if force is None else force * self.boundary.free

    def drive(self, motions: Mapping[int, Motion]) -> None:
        """Move held regions, by their number in the scene, beyond what they do by themselves."""
        driven = self.boundary.driven
        if driven or motions:
            self._steady_force = None
        driven.clear()
        driven.update(motions)

    # steps ---------------------------------------------------------------------------------------

    def step_stage(self, before: State, scheme: Integrator) -> Stage:
        """The fields of the step that starts at `before`."""
        b = step_balance(scheme, self.material, before.t)
        return Stage(
            b, before.fields(), known={"u": before.u, "v": before.v},
            buffers=dict(self._buffers), hold=self._held_at(b.times[0]), history=before.history,
        )  # fmt: skip

    def stage_between(self, before: State, after: State, scheme: Integrator) -> Stage:
        """The fields of a step that was taken."""
        b = step_balance(scheme, self.material, before.t)
        known = {"u": before.u, "v": before.v, "next_u": after.u, "next_v": after.v}
        stage = Stage(
            b, before.fields(), known=known, hold=self._held_at(b.times[0]),
            history=before.history,
        )  # fmt: skip
        return stage.at(self.unknown(before, after, scheme))

    def _held_at(self, t: float) -> tuple[wp.array, wp.array] | None:
        if not self.boundary.held:
            return None
        return self.matrix.free, to_device(self.boundary.prescribed(t), wp.vec3d)

    def unknown(self, before: State, after: State, scheme: Integrator) -> wp.array:
        """The x that led from one state to the next."""
        w = scheme.next_u
        known = scheme.next_a == (1.0, 0.0, 0.0, 0.0)
        if w[0] == 0.0 or (known and not self.boundary.held_moves):
            return after.a
        scaled = [-c / w[0] for c in w[1:]]
        x = mix((*scaled, 1.0 / w[0]), (*before.fields(), after.u))
        if known:  # where nodes are held the state's acceleration is not what moved them
            x = to_device(np.where(self.boundary.free > 0.0, after.a.numpy(), x.numpy()), wp.vec3d)
        return x

    def parts(self, before: State, after: State) -> Sequence[tuple[State, State, Integrator]]:
        """The step, or the shorter ones that it was taken in: (before, after, scheme) of each."""
        return after.parts or ((before, after, self.scene.integrator),)

    def step(self, state: State) -> tuple[State, StepRecord]:
        """Advance one time step, in parts if the whole fails; raises SolverFailure."""
        del self.newton_records[:-KEPT_RECORDS]
        if self.elastic.linear:  # no energy to judge a step by
            return self.pose(state, self.scene.integrator).solve()
        return step_in_parts(self, state)

    def pose(self, state: State, scheme: Integrator) -> StepProblem:
        """The step from a state, to be solved."""
        return StepProblem(self, state, scheme)

    def touching_energy(self, state: State) -> float:
        """Energy [J] of contact with obstacles."""
        return 0.0 if self.touch is None else self.touch.energy(state.u, state.t)

    @property
    def takes_or_gives(self) -> bool:
        """Whether anything but gravity and contact may do work: damping, loads, walls, a push."""
        m = self.material
        damped = m.mass_damping > 0.0 or m.stiffness_damping > 0.0 or bool(m.branches)
        return damped or self.driven

    @property
    def driven(self) -> bool:
        """Whether anything but gravity and contact may give energy: loads, walls, a push."""
        moved = self.boundary.changes or self.boundary.held_moves
        pulled = bool(self.scene.loads) or self._walls_pull
        return moved or pulled or self.loads.push is not None

    # what a run is told ---------------------------------------------------------------------------

    def elastic_energy(self, u: wp.array, t: float) -> float:
        """Energy [J] of the cells, their ghost penalty and the walls."""
        return self.elastic.energy(u, t) + sum(term.energy(u, t) for term in self.supports)

    def stored(self, state: State) -> Energies:
        """Kinetic, elastic, gravity's and contact's energy of a state.

        Computed once: a step ends where the next one starts.
        """
        if self._kept_energies is None or self._kept_energies[0] is not state:
            self._kept_energies = (state, stored(self, state))
        return self._kept_energies[1]

    def work(self, before: State, after: State) -> tuple[float, float, float]:
        """Work of damping (taken), contact and loads (given) over a step, part by part."""
        return step_work(self, before, after)

    def least_exchange(self) -> float:
        """What gravity may give the body in one step [J]."""
        return gravity_in_one_step(self)

    def remedy(self) -> str:
        """What to do when energy appears from nowhere."""
        scheme = self.scene.integrator
        advice = f"a smaller time step (dt = {scheme.dt / 4.0:.2g} s, say)"
        if not scheme.damps:
            advice += ", or an integrator that damps high frequencies (GeneralisedAlpha)"
        return f"{scheme.name} is unstable at dt = {scheme.dt:g} s. Use {advice}."

    def require_stable(self) -> None:
        """Refuse a time step beyond the limit of a conditionally stable scheme."""
        require_stable(self)

    def sum_of(self, duals: Sequence[State | None], state: State) -> State:
        """The sum of derivatives by a state, array by array; None is zero."""
        parts = [d for d in duals if d is not None]
        if len(parts) == 1:
            return parts[0]
        total = {name: wp.zeros_like(field) for name, field in state.arrays.items()}
        for part in parts:
            for name, own in part.arrays.items():
                combine(total[name], (1.0, total[name]), (1.0, own))
        return State(total, state.t)

    def saved(self, state: State) -> dict[str, np.ndarray]:
        """The state's arrays, copied to the host."""
        return {name: field.numpy().copy() for name, field in state.arrays.items()}

    def restored(self, arrays: Mapping[str, np.ndarray], t: float) -> State:
        """The inverse of `saved`; plane fields are padded, and without a history all is relaxed."""
        full = {name: np.zeros((len(f), 3)) for name, f in arrays.items()}
        for name, field in arrays.items():
            full[name][:, : field.shape[1]] = field
        state = State({name: to_device(f, wp.vec3d) for name, f in full.items()}, t)
        if self.branches is not None and not state.history:
            return State.of(state.u, state.v, state.a, t, history=self.relaxed())
        return state

    def inverted(self, state: State) -> int:
        """Cells that are inside out; slivers do not count."""
        return int(np.count_nonzero((self.elastic.stretches(state.u) <= 0.0) & self._solid))

    @property
    def branch_share(self) -> float:
        """How much stiffer than its long-term modulus the body is to something sudden."""
        E = self.mu * (3.0 * self.lam + 2.0 * self.mu) / (self.lam + self.mu)
        return sum(branch.modulus for branch in self.material.branches) / float(np.min(E))

    def force_rounding(self, u: wp.array) -> float:
        """Size [N] of the rounding in the internal forces at u: stresses cancel from the moduli's.

        Near the rest P is a difference of terms of the size of the moduli, so no smaller imbalance
        can be told from zero. Far from it, its strain is a difference of displacements: a body of
        4 cm that has fallen for a second is known to 1e-15 m only.
        """
        body = self.scene.body
        area = body.spacing ** (body.dim - 1)
        modulus = float(np.max(self.lam + 2.0 * self.mu)) * (1.0 + self.branch_share)
        away = float(np.abs(u.numpy()).max()) / body.spacing
        share = ROUNDING_SHARE + ROUNDING_AWAY * away
        return share * modulus * area * float(np.sqrt(self.node_count))

    def assemble_rest(self, *, mass_factor: float = 0.0) -> None:
        """matrix := stiffness of cells and walls about the rest shape, and a share of the mass."""
        self.linearised_at = None
        mass = self.inertia.mass
        self.elasticity.assemble(self.matrix, mass, mass_factor=mass_factor, stiffness_factor=1.0)
        for term in self.supports:
            term.assemble_rest(self.matrix)


def _burden(scene: Scene) -> float:
    """Pressure [Pa] of a body's own weight beyond what its modulus easily bears."""
    return max(0.0, own_weight(scene) - LIGHT * float(np.mean(scene.cell_material.youngs_modulus)))


def make_preconditioner(scene: Scene, free: np.ndarray, bulk: float) -> Preconditioner:
    """The preconditioner for a scene's matrix; bulk: largest lambda / mu."""
    small = len(scene.body.nodes) < SMALL_BODY and bulk <= STIFF_BULK
    explicit = scene.integrator.system[2] == 0.0
    if small or explicit or scene.preconditioner == "jacobi":
        return BlockJacobi(len(scene.body.nodes))
    return Multigrid(solver_nodes(scene.body), free)
