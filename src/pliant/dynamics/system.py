"""A scene made ready to compute: operators on the device, the linear solver, and one time step.

Every step solves g(x; u, v, a) = 0 with the residual

    g = M (m . (x, u, v, a)) + K_R-force(k . (x, u, v, a), s) - f_new f' - f_old f,

m, k the integrator's weights with Rayleigh damping resolved, s = f_new + f_old, and the rotations R
taken at the predicted displacement. It is linear in x.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, TypeVar

import numpy as np
import warp as wp

from pliant.core.errors import SolverFailure
from pliant.core.launch import share, to_device, zeros
from pliant.core.solution import Outcome, Solution
from pliant.dynamics.boundary import Boundary, build_boundary
from pliant.dynamics.contact import LIGHT, Contact
from pliant.dynamics.loads import Motion
from pliant.dynamics.own_weight import own_weight
from pliant.dynamics.scene import Scene, vector3
from pliant.fem.elasticity import Elasticity
from pliant.fem.ghost_operator import GhostInertia
from pliant.fem.mass import MassMatrix
from pliant.fem.material import Material
from pliant.fem.wall_operator import WallOperator
from pliant.linalg.blocks import (
    BlockMatrix,
    combine,
    combine_three,
    dot,
    set_held,
)
from pliant.linalg.multigrid import Multigrid
from pliant.linalg.pcg import BlockJacobi, ConjugateGradients, Preconditioner, Tolerance
from pliant.linalg.recent import RecentErrors

T = TypeVar("T")

STARTING_MASS_FLOOR = 0.1

SLIVER = 0.05
"""Filled share below which a cell may turn inside out without a word: it follows its neighbours."""

WALL_SWEEPS = 1
"""Sweeps over the nodes at weak walls around a coarse correction. The first step of the cuboid of
resolution 35, cut at its wall, needs 18 iterations without, 11 with one, 10 with four."""


PENALTY_SWEEPS = 8
"""Sweeps over the nodes at a law's walls around a coarse correction. On the torus, 390 of 9,236
nodes at its walls, an iteration gains 1.5-fold without, 2.4, 3.2, 4.4, 4.6-fold with 2, 4, 8, 16,
and 6-fold without walls."""


@dataclass
class State:
    """Displacement, velocity, acceleration of the nodes on the device, and the time."""

    u: wp.array
    v: wp.array
    a: wp.array
    t: float = 0.0

    def fields(self) -> tuple[wp.array, wp.array, wp.array]:
        """(u, v, a)."""
        return self.u, self.v, self.a


@dataclass
class StepRecord:
    """What one step took; parts: how many it was cut into because Newton failed on the whole."""

    solution: Solution
    timings: dict[str, float] = field(default_factory=dict)
    parts: int = 1


class System:
    """Operators of a scene on the device."""

    @property
    def _consistent_walls(self) -> bool:
        """Whether walls are held by Nitsche's method, or by penalties alone (fem.walls)."""
        return True


    def __init__(self, scene: Scene):
        self.scene = scene
        body = scene.body
        self.node_count = len(body.nodes)
        self._operators()
        compact = scene.preconditioner == "jacobi" and scene.law is None
        self.matrix = BlockMatrix(body.pattern, self.boundary.free, half=compact)
        self.ghost_inertia: GhostInertia | None = None
        if body.ghost is not None and np.isfinite(scene.integrator.stable_to):
            self.ghost_inertia = GhostInertia(body.ghost, body.spacing)
        self.mass = MassMatrix(body)
        self.contact: Contact | None = None
        if scene.obstacles:
            self.contact = Contact(
                body, scene.obstacles, scene.contact, weight=own_weight(scene),
                burden=_burden(scene),
            )  # fmt: skip
        self.preconditioner = make_preconditioner(scene, self.boundary.free)
        if self.boundary.walls is not None and isinstance(self.preconditioner, Multigrid):
            sweeps = WALL_SWEEPS if self._consistent_walls else PENALTY_SWEEPS
            self.preconditioner.expect_stiff(body.cells[self.boundary.walls.cell], sweeps)
        self.set_material(scene.material)
        self.solver = ConjugateGradients(self.matrix, self.preconditioner)
        # small bodies gain nothing, and without a past a resumed run ends with the same bits
        large = isinstance(self.preconditioner, Multigrid) and self.node_count >= SMALL_BODY
        self._recent = RecentErrors(self.node_count) if large else None
        self._steady_force: np.ndarray | None = None
        self.push: np.ndarray | None = None
        """One more force (nodes, 3) [N], which its owner changes from step to step."""
        self._companions: dict[Any, Any] = {}
        self._solid = body.fill > SLIVER
        self._b, self._w, self._x = (zeros(self.node_count, wp.vec3d) for _ in range(3))

    def _operators(self) -> None:
        """Boundary, elasticity and walls."""
        scene = self.scene
        self.boundary: Boundary = build_boundary(scene, consistent=self._consistent_walls)
        self.elasticity = Elasticity(
            scene.body, model=scene.model, dilatation=scene.dilatation
        )
        self.walls = WallOperator(self.boundary.walls) if self.boundary.walls else None

    def set_material(self, material: Material) -> None:
        """Change what the body is made of; the geometry stays."""
        body = self.scene.body
        self.material = material
        self.lam, self.mu = material.lame(len(body.cells))
        self.elasticity.set_material(self.lam, self.mu)
        if self.walls is not None:
            self.walls.set_material(self.lam, self.mu)
        if isinstance(self.preconditioner, Multigrid):
            stiffness = self.lam + 2.0 * self.mu
            self.preconditioner.expect_contrast(float(stiffness.max() / stiffness.min()))
            self.preconditioner.expect_bulk(float((self.lam / self.mu).max()))
        self.mass.set_density(material.densities(len(body.cells)))
        self.mass_host = self.mass.lumped
        if self.ghost_inertia is not None:
            self.ghost_inertia.density = float(self.mass_host.sum() / body.volume)
        self._steady_force = None
        if self.contact is not None:
            self.contact.set_stiffness(float(np.mean(material.youngs_modulus)))

    def update(self, scene: Scene) -> None:
        """Take over a variant of the scene: the same body and walls, other numbers."""
        self.scene = scene
        if self.contact is not None:
            self.contact.set_obstacles(scene.obstacles, scene.contact)
        self.set_material(scene.material)

    def cached(self, make: Callable[["System"], T]) -> T:
        """make(self), once: for companions with buffers of their own, such as derivatives."""
        if make not in self._companions:
            self._companions[make] = make(self)
        return self._companions[make]

    def arms(self) -> np.ndarray:
        """Node positions relative to the centre of mass, (nodes, 3)."""
        X = np.zeros((self.node_count, 3))
        X[:, : self.scene.dim] = self.scene.body.nodes
        return X - (self.mass_host @ X) / self.mass_host.sum()

    def forget(self) -> None:
        """Start anew: bits of what follows do not depend on what this system computed before."""
        self.preconditioner.forget()
        if self._recent is not None:
            self._recent.forget()

    def initial_state(self) -> State:
        """Rest shape, with the scene's initial velocity and spin, in equilibrium acceleration."""
        self.forget()
        v = vector3("initial_velocity", self.scene.initial_velocity) + np.cross(
            vector3("initial_spin", self.scene.initial_spin), self.arms()
        )
        v = self.boundary.compatible(v)
        u = self.boundary.prescribed(0.0)
        state = State(
            to_device(u, wp.vec3d), to_device(v, wp.vec3d), zeros(self.node_count, wp.vec3d)
        )
        self._set_initial_acceleration(state)
        self.elasticity.release()
        return state

    def _set_initial_acceleration(self, state: State) -> None:
        """M a = f - D v - K u: lumped, so a division; gravity accelerates all nodes alike."""
        g = vector3("gravity", self.scene.gravity)
        a = g + self.initial_push(state) - self.material.mass_damping * state.v.numpy()
        state.a.assign(self.boundary.compatible(a))

    def initial_push(self, state: State) -> np.ndarray:
        """Acceleration (nodes, 3) by all but gravity, mass damping and walls at the start."""
        force = zeros(self.node_count, wp.vec3d)
        self._add_initial_force(state, force)
        if self.contact is not None:
            self.contact.add_forces(
                state.u, state.v, state.u, (state.u, state.v),
                f_new=1.0, f_old=0.0, per_x=(0.0, 0.0), out=force,
            )  # fmt: skip
        force = force.numpy() + self.boundary.load_forces(state.t)
        return force / self.starting_mass()[:, None]

    def _add_initial_force(self, state: State, force: wp.array) -> None:
        """force -= K u + D v."""
        combine(self._w, (1.0, state.u), (self.material.stiffness_damping, state.v))
        self.elasticity.rotate(state.u)
        self.elasticity.add_force(self._w, 1.0, force, factor=-1.0)

    def starting_mass(self) -> np.ndarray:
        """Lumped masses with a floor, for the initial acceleration only.

        A sliver's own mass would turn any residual force into a violent start that undamped
        schemes never forget; the floor is a tenth of the heaviest node.
        """
        return np.maximum(self.mass_host, STARTING_MASS_FLOOR * self.mass_host.max())

    def starting_mass_change(self, mass: np.ndarray) -> np.ndarray:
        """Change of `starting_mass` for a change of the lumped masses."""
        top = int(np.argmax(self.mass_host))
        floor = STARTING_MASS_FLOOR * self.mass_host[top]
        return np.where(self.mass_host > floor, mass, STARTING_MASS_FLOOR * mass[top])

    def starting_mass_pull(self, bar: np.ndarray) -> np.ndarray:
        """Transpose of `starting_mass_change`."""
        top = int(np.argmax(self.mass_host))
        light = self.mass_host <= STARTING_MASS_FLOOR * self.mass_host[top]
        out = np.where(light, 0.0, bar)
        out[top] += STARTING_MASS_FLOOR * bar[light].sum()
        return out

    def external_force(self, t: float) -> np.ndarray:
        """Gravity, loads, wall data and the push (nodes, 3) at time t; contact is apart."""
        force = self._own_force(t)
        return force if self.push is None else force + self.push

    def drive(self, motions: dict[int, Motion]) -> None:
        """Move held regions, by their number in the scene, beyond what they do by themselves."""
        driven = self.boundary.driven
        if driven or motions:
            self._steady_force = None
        driven.clear()
        driven.update(motions)

    def _own_force(self, t: float) -> np.ndarray:
        """What the scene says of it."""
        if self._steady_force is not None and not self.boundary.changes:
            return self._steady_force
        force = self.mass_host[:, None] * vector3("gravity", self.scene.gravity)
        force = force + self.boundary.load_forces(t)
        if self.walls is not None:
            given = self.wall_data(t)
            force += self.boundary.wall_forces(self.lam, self.mu, given)
        self._steady_force = force
        return force

    def wall_data(self, t: float) -> np.ndarray:
        """Given displacement plus stiffness damping times its rate, (q, 3)."""
        given = self.boundary.given_on_walls(t)
        beta = self.material.stiffness_damping
        if beta > 0.0 and self.boundary.changes:
            given = given + beta * self.wall_rate(t)
        return given

    def wall_rate(self, t: float) -> np.ndarray:
        """Velocity of the given displacement (q, 3), by a central difference."""
        h = 1e-3 * self.scene.dt
        later, earlier = (self.boundary.given_on_walls(t + s) for s in (h, -h))
        return (later - earlier) / (2.0 * h)

    def predict(self, state: State) -> wp.array:
        """The displacement after the next step, estimated before it."""
        scheme = self.scene.integrator
        ahead = self._combined(scheme.predictor, state)
        if self.boundary.held:
            given = to_device(self.boundary.prescribed(state.t + scheme.dt), wp.vec3d)
            set_held(ahead, self.matrix.free, given)
        return ahead

    def prepare(self, state: State, *, right_hand_side: bool = False) -> None:
        """Rotations, contact and matrix of the step that starts at `state`.

        right_hand_side: put the elastic and contact forces into it as well, while the matrix still
        is that of the body alone.
        """
        scheme, material = self.scene.integrator, self.material
        self.predicted = self.predict(state)
        self.elasticity.rotate(self.predicted)
        mass = scheme.mass_weights(material.mass_damping)
        stiff = scheme.stiffness_weights(material.stiffness_damping)
        factors = {"mass_factor": mass[0], "stiffness_factor": stiff[0]}
        b, w = self._b, self._w
        b.zero_()
        if right_hand_side:
            combine(w, *zip(stiff[1:], state.fields(), strict=True))
            if self.walls is not None:
                self.walls.add_force(w, b, factor=-1.0)
        if right_hand_side and stiff[0] != 0.0:
            self.elasticity.assemble_and_add_force(
                self.matrix, self.mass, w, scheme.force_total, b, w, factor=-1.0, **factors
            )
        else:
            self.elasticity.assemble(self.matrix, self.mass, **factors)
            if right_hand_side:
                self.elasticity.add_force(w, scheme.force_total, b, factor=-1.0)
        if self.walls is not None and stiff[0] != 0.0:
            self.walls.assemble(self.matrix, stiff[0])
        if self.ghost_inertia is not None:
            self.ghost_inertia.assemble(self.matrix, mass[0])
        if self.contact is not None:
            base = (
                self._combined(scheme.next_u[1:], state), self._combined(scheme.next_v[1:], state)
            )
            f_new, f_old = scheme.force
            self.contact.add_forces(
                state.u, state.v, self.predicted, base, f_new=f_new, f_old=f_old,
                per_x=(scheme.next_u[0], scheme.next_v[0]), out=b,
            )  # fmt: skip
            self.contact.add_to_matrix(self.matrix)

    def right_hand_side(self, state: State) -> wp.array:
        """b of A x = b; `prepare` has put the elastic and contact forces in."""
        scheme, material = self.scene.integrator, self.material
        b, w = self._b, self._w
        mass = scheme.mass_weights(material.mass_damping)
        external = zip(scheme.force, (state.t + scheme.dt, state.t), strict=True)
        given = [(f, share(self.external_force(t), wp.vec3d)) for f, t in external if f != 0.0]
        combine(b, (1.0, b), *given)
        combine(w, *zip(mass[1:], state.fields(), strict=True))
        self.add_inertia(w, b, -1.0)
        return b

    def add_inertia(self, z: wp.array, out: wp.array, factor: float) -> None:
        """out += factor * M z."""
        self.mass.add(z, out, factor)
        if self.ghost_inertia is not None:
            self.ghost_inertia.add(z, out, factor)

    def inertia_per_mass(self, z: wp.array) -> np.ndarray | None:
        """Change of M z, beyond the lumped masses, for each kilogram that the body gains evenly."""
        if self.ghost_inertia is None and self.mass.is_lumped:
            return None
        out = zeros(self.node_count, wp.vec3d)
        self.add_inertia(z, out, 1.0)
        return (out.numpy() - self.mass_host[:, None] * z.numpy()) / self.mass_host.sum()

    # what the energies are told -----------------------------------------------------------------

    def elastic_energy(self, state: State) -> float:
        """Energy [J] of the cells, their ghost penalty and the walls."""
        return self.elasticity.energy(state.u) + self.wall_energy(state.u, state.t)

    def inverted(self, u: wp.array) -> int:
        """Cells that are inside out at the displacement u; slivers do not count."""
        return int(np.count_nonzero((self.stretches(u) <= 0.0) & self._solid))

    def stretches(self, u: wp.array) -> np.ndarray:
        """det F of the cells, (cells,)."""
        return self.elasticity.stretches(u)

    def wall_energy(self, u: wp.array, t: float) -> float:
        """Energy [J] of the walls' terms at the displacement u with their data of time t."""
        if self.walls is None:
            return 0.0
        force = zeros(self.node_count, wp.vec3d)
        self.walls.add_force(u, force)
        return 0.5 * dot(force, u) - self._wall_shift(u, t)

    def _wall_shift(self, u: wp.array, t: float) -> float:
        """1/2 u W u minus the energy 1/2 (u - g) W (u - g) of walls with data g."""
        given = self.boundary.given_on_walls(t) if self.walls is not None else np.zeros(0)
        if self.walls is None or not np.any(given):
            return 0.0
        load = self.boundary.wall_forces(self.lam, self.mu, given)
        own = self.walls.walls.energy_of_given(self.lam, self.mu, given)
        return float(np.sum(load * u.numpy())) - own

    def wall_shift(self, state: State) -> float:
        """What of the work of the walls' data is in the energy of their terms already."""
        return self._wall_shift(state.u, state.t)

    def add_elastic(self, before: State, after: State, out: wp.array) -> None:
        """out += the elastic forces of the cells as the step balances them, f_new f' + f_old f."""
        scheme, w = self.scene.integrator, self._w
        weights = (scheme.system[2], *(-row[2] for row in scheme.history))
        x = self.unknown(before, after)
        combine(w, *zip(weights[:2], (x, before.u), strict=True))
        combine(w, (1.0, w), *zip(weights[2:], (before.v, before.a), strict=True))
        self.elasticity.rotate(self.predict(before))
        self.elasticity.add_force(w, scheme.force_total, out)

    def add_damping(self, before: State, rate: wp.array, out: wp.array, factor: float) -> None:
        """out += factor * (K + walls) rate, as the step from `before` on takes it."""
        self.elasticity.rotate(self.predict(before))
        self.elasticity.add_force(rate, 0.0, out, factor=factor)
        if self.walls is not None:
            self.walls.add_force(rate, out, factor=factor)

    def contact_at(self, before: State, after: State) -> wp.array:
        """Displacement at which a step takes its contact."""
        return self.predict(before)

    def walk(self, before: State, after: State) -> Iterator[tuple[State, State]]:
        """The step, or the parts it was taken in; the scene has each part's scheme meanwhile."""
        yield before, after

    def step(self, state: State) -> tuple[State, StepRecord]:
        """Advance one time step; raises SolverFailure with the reason if the solve fails."""
        scheme = self.scene.integrator
        t0 = perf_counter()
        self.prepare(state, right_hand_side=True)
        b = self.right_hand_side(state)
        t1 = perf_counter()
        self.preconditioner.update(self.matrix)
        t2 = perf_counter()
        x = self._start_value(state)
        square = None
        if self._recent is not None:
            square = self._recent.improve(self.matrix, b, x, self.solver.residual)
        goal = Tolerance(relative=self.scene.tolerance)
        solution = self.solver.solve(b, x, goal, square=square)
        if self._recent is not None:
            self._recent.remember(self.matrix, x, scheme.first_guess, state.fields())
        self.preconditioner.report(solution)
        t3 = perf_counter()
        if not solution.outcome.ok and not self._acceptable(solution):
            raise SolverFailure(
                f"The step at t = {state.t:g} s failed: {solution.outcome.value} "
                f"(residual {solution.residual:.2e}, wanted {solution.target:.2e})."
            )
        weights = (scheme.next_u, scheme.next_v, scheme.next_a)
        u, v, a = combine_three(weights, (x, *state.fields()))
        after = State(u, v, a, state.t + scheme.dt)
        self._impose(after)
        timings = {"assembly": t1 - t0, "setup": t2 - t1, "solve": t3 - t2}
        return after, StepRecord(solution, timings)

    def _acceptable(self, solution: Solution) -> bool:
        """Stagnation close to the target is rounding, not failure."""
        near = solution.residual <= 1e3 * solution.target
        return solution.outcome is Outcome.STAGNATED and near

    def unknown(self, before: State, after: State) -> wp.array:
        """The x that led from one state to the next."""
        w = self.scene.integrator.next_u
        if w[0] == 0.0 or self.scene.integrator.next_a == (1.0, 0.0, 0.0, 0.0):
            return after.a
        scaled = [-c / w[0] for c in w[1:]]
        return self._combined(scaled, before, extra=(1.0 / w[0], after.u))

    def _combined(self, weights, state: State, extra=None) -> wp.array:
        """A new array: the weighted sum of u, v, a (and one more)."""
        out = wp.empty_like(state.u)
        terms = list(zip(weights, state.fields(), strict=True))
        if extra is not None:
            terms.append(extra)
        combine(out, *terms)
        return out

    def _start_value(self, state: State) -> wp.array:
        """First guess of x; held components get the value they must have."""
        scheme = self.scene.integrator
        x = self._x
        combine(x, *zip(scheme.first_guess, state.fields(), strict=True))
        if self.boundary.held:
            w = scheme.next_u
            given = self.boundary.prescribed(state.t + scheme.dt)
            base = self._combined(w[1:], state).numpy()
            value = x.numpy()
            held = self.boundary.free == 0.0
            value[held] = ((given - base) / w[0])[held] if w[0] != 0.0 else 0.0
            x.assign(value)
        return x

    def _impose(self, state: State) -> None:
        """Held components where they are held, with the velocity of their wall and at ease.

        The schemes' own formulas would differentiate the given displacement: v and a ring where it
        has a kink, and under linear acceleration they double every step.
        """
        if not self.boundary.held:
            return
        now = self.boundary.prescribed(state.t)
        before = self.boundary.prescribed(state.t - self.scene.dt)
        held = self.boundary.free == 0.0
        imposed = (now, (now - before) / self.scene.dt, np.zeros_like(now))
        for array, value in zip(state.fields(), imposed, strict=True):
            host = array.numpy()
            host[held] = value[held]
            array.assign(host)


def _burden(scene: Scene) -> float:
    """Pressure [Pa] of a body's own weight beyond what its modulus easily bears."""
    return max(0.0, own_weight(scene) - LIGHT * float(np.mean(scene.material.youngs_modulus)))


SMALL_BODY = 150
"""Nodes below which the own blocks of the nodes precondition as fast as a hierarchy of grids."""

STIFF_BULK = 4.0
"""Ratio lambda / mu (4: Poisson's ratio 0.4) from which they do not: 105 nodes need 36 iterations
at 0.45 and 207 at 0.4999, a hierarchy 5 and 14."""


def make_preconditioner(scene: Scene, free: np.ndarray) -> Preconditioner:
    """The preconditioner for a scene's matrix."""
    lam, mu = scene.material.lame(len(scene.body.cells))
    small = len(scene.body.nodes) < SMALL_BODY and (lam / mu).max() <= STIFF_BULK
    explicit = scene.integrator.system[2] == 0.0
    if small or explicit or scene.preconditioner == "jacobi":
        return BlockJacobi(len(scene.body.nodes))
    return Multigrid(scene.body, free)
