"""What the models of particles share: masses, walls, loads, the start, energies, and their state.

Particles are the body's nodes. A node of a mesh that is held in all its directions is not moved by
anything but its wall; on grids the points of the surface within a region are held. A step of the
scene is cut into substeps; what a model does in one of them is its own.
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false

from collections.abc import Mapping, Sequence
from dataclasses import replace
from time import perf_counter

import numpy as np
import warp as wp

from pliant.core.errors import BadInput
from pliant.core.launch import Recorded, to_device, zeros
from pliant.core.solution import Outcome, Solution
from pliant.dynamics.contact import obstacle_data
from pliant.dynamics.energies import Energies
from pliant.dynamics.loads import Motion
from pliant.dynamics.model import Model, Parameters, State, StepRecord
from pliant.dynamics.node_carrier import NodeCarrier
from pliant.dynamics.point_mass import attached_masses
from pliant.dynamics.scene import Scene, vector3
from pliant.linalg.blocks import combine
from pliant.particles.free_pieces import FreePieces
from pliant.particles.number_blocks import PREFIX
from pliant.particles.pair_forces import PairForces
from pliant.particles.particle_boundary import particle_boundary
from pliant.particles.simplices import simplices_of
from pliant.particles.step_differences import StepDifferences
from pliant.particles.substep import finish, predict
from pliant.particles.surface_points import HeldPoints, Obstructed
from pliant.particles.velocity_damping import VelocityDamping


class ParticleModel(Model):
    """Base of the models of particles: a substep is `sweep`, between `predict` and `finish`."""

    judged_by_energy = False
    differentiable = False
    """Whether steps have derivatives of their own: these are differences of steps."""
    contact = None
    """Obstacles are no springs here."""

    def __init__(self, scene: Scene):
        self.scene: Scene = scene
        self.carrier = NodeCarrier()
        body = scene.body
        self.node_count = len(body.nodes)
        self.parts = simplices_of(body)
        self.boundary, self.walls = particle_boundary(scene)
        self.held: HeldPoints | None = None
        if self.walls:
            chosen = np.concatenate([points for _, points in self.walls])
            mask = [np.broadcast_to(f.mask(), (len(p), 3)) for f, p in self.walls]
            self.held = HeldPoints(body, chosen, np.concatenate(mask))
        self.free = to_device(self.boundary.free, wp.vec3d)
        self._alone = self.boundary.free.copy()
        for _, chosen in self.walls:
            self._alone[self._carriers(chosen)] = 0.0
        self._force: np.ndarray | None = None
        count = self.node_count
        self.u, self.v, self.a = (zeros(count, wp.vec3d) for _ in range(3))
        self.old, self.ahead, self.given = (zeros(count, wp.vec3d) for _ in range(3))
        self._given_before: np.ndarray | None = None
        held = (self._alone[:, : body.dim] == 0.0).any(axis=1)
        self.pieces = FreePieces(body.nodes, body.cells, np.flatnonzero(held))
        self.shift = Parameters()
        """What is added to the scene's numbers: see step_differences."""
        self.derivatives = StepDifferences(self)
        self.update(scene)

    def scale_of(self, name: str) -> np.ndarray | float:
        """Size of a parameter that a change of it is measured by."""
        if name.startswith(PREFIX):
            return float(getattr(self.scene.numbers, name.removeprefix(PREFIX)))
        known = {
            "lam": np.maximum(np.abs(self.lam), self.mu), "mu": self.mu, "mass": self.masses,
            "gravity": max(float(np.linalg.norm(self.gravity)), 1e-3),
            "mass_damping": max(self.material.mass_damping, 1e-3),
            "stiffness_damping": max(self.material.stiffness_damping, 1e-6),
        }  # fmt: skip
        if name == "contact_stiffness":
            return 1e300  # obstacles are rigid here
        if name not in known:
            raise BadInput(f"model = '{self.scene.model}': '{name}' cannot be unknown here.")
        return known[name]

    def _carriers(self, points: np.ndarray) -> np.ndarray:
        """The nodes that carry points of the surface."""
        surface = self.scene.body.surface.points
        return surface.nodes[points][surface.weights[points] != 0.0]

    # numbers --------------------------------------------------------------------------------------

    def update(self, scene: Scene) -> None:
        """Take over a variant of the scene: the same body, other numbers."""
        body = scene.body
        d = self.shift
        own_numbers = {n: v for n, v in d.items() if n.startswith(PREFIX)}
        if own_numbers:
            moved = {
                n.removeprefix(PREFIX): float(getattr(scene.numbers, n.removeprefix(PREFIX)))
                + float(v[0])
                for n, v in own_numbers.items()
            }
            scene = replace(scene, numbers=replace(scene.numbers, **moved))
        self.scene = scene
        damped = {n: float(d[n]) for n in ("mass_damping", "stiffness_damping") if n in d}
        m = scene.cell_material
        self.material = replace(m, **{n: getattr(m, n) + v for n, v in damped.items()})
        cells = len(body.cells)
        lam, mu = scene.constitution.moduli()
        self.lam, self.mu = lam + d.get("lam", 0.0), mu + d.get("mu", 0.0)
        density = self.material.densities(cells)
        own = self.parts.lumped(density[self.parts.cell], self.node_count)
        own *= float(density @ body.cell_volumes) / own.sum()
        self.attached = attached_masses(scene.attached, body)
        self._masses = own + self.attached + d.get("mass", 0.0)
        self.gravity = vector3("gravity", scene.gravity) + d.get("gravity", 0.0)
        moves = self.boundary.free.any(axis=1)
        self.inverse_mass = np.where(moves, 1.0 / self._masses, 0.0)
        c = self.parts.cell
        mu, lam = self.mu[c], self.lam[c] + self.mu[c]
        self.elastic = PairForces(self.parts, mu, lam, self.node_count)
        self.obstructed: Obstructed | None = None
        if scene.obstacles:
            self.obstructed = Obstructed(body, [obstacle_data(o, body) for o in scene.obstacles])
        self.damping: VelocityDamping | None = None
        if self.material.stiffness_damping > 0.0:
            self.damping = VelocityDamping(self.parts, mu, lam - mu, self.boundary.free)
        self.set_numbers()

    def set_numbers(self) -> None:
        """Prepare what depends on the numbers and on the length of a substep."""
        raise TypeError(type(self).__name__)

    @property
    def masses(self) -> np.ndarray:
        """Of the nodes, (nodes,) [kg]."""
        return self._masses

    @property
    def substeps(self) -> int:
        """Parts of a step."""
        return 1

    def arms(self) -> np.ndarray:
        """Node positions relative to the centre of mass, (nodes, 3)."""
        X = np.zeros((self.node_count, 3))
        X[:, : self.scene.dim] = self.scene.body.nodes
        return X - (self.masses @ X) / self.masses.sum()

    def around(self) -> tuple[Recorded, Recorded]:
        """The launches at the start and at the end of a substep."""
        n, dt = self.node_count, self.scene.dt / self.substeps
        begin = Recorded(
            predict, n,
            [dt, self.material.mass_damping, self.a, self.free, self.given, self.v, self.old,
             self.ahead, self.u],
        )  # fmt: skip
        return begin, Recorded(finish, n, [1.0 / dt, self.old, self.u, self.v])

    def kept_places(self, inverse_mass: wp.array) -> list[Recorded]:
        """Launches that put held points and those in obstacles where they may be."""
        held = [] if self.held is None else self.held.launches(inverse_mass, self.free, self.u)
        if self.obstructed is None:
            return held
        stays, friction = float(np.exp(-1.0 / self.substeps)), self.scene.contact.friction
        return held + self.obstructed.launches(
            friction, stays, inverse_mass, self.free, self.old, self.u
        )

    # the start and the steps ----------------------------------------------------------------------

    def initial_state(self) -> State:
        """Rest shape with the scene's initial velocity and spin."""
        v = vector3("initial_velocity", self.scene.initial_velocity) + np.cross(
            vector3("initial_spin", self.scene.initial_spin), self.arms()
        )
        u = self.boundary.prescribed(0.0)
        arrays = {"u": u, "v": v * self.boundary.free}
        return State({n: to_device(x, wp.vec3d) for n, x in arrays.items()})

    def step(self, state: State) -> tuple[State, StepRecord]:
        """Advance one time step in substeps."""
        start = perf_counter()
        h = self.scene.dt / self.substeps
        self.take(state)
        self._walls_gave = 0.0
        if self.obstructed is not None:
            self.obstructed.pushed.zero_()
        self._set_force(state.t)
        for k in range(self.substeps):
            t = state.t + (k + 1) * h
            if k == 0:
                self._set_walls(state.t)
                self._given_before = None if self.held is None else self.held.given.numpy().copy()
            self._set_walls(t)
            if self.boundary.changes:
                self._set_force(t)
            moving = self.walls_move
            before = (self.u.numpy().copy(), self.v.numpy().copy()) if moving else None
            self.sweep(k)
            if before is not None:
                self._walls_gave += self._wall_work(before, h)
        self._damping_took = 0.0
        if self.damping is not None:
            self._damp()
        self._keep_turning(state)
        after = State(self.given_back(), state.t + self.scene.dt)
        residual = self.residual(h)
        took = perf_counter() - start
        done = Solution(after.u, Outcome.CONVERGED, self.work_units, residual, np.inf)
        return after, StepRecord(done, {"solve": took})

    def take(self, state: State) -> None:
        """Begin a step at a state."""
        wp.copy(self.u, state.u)
        wp.copy(self.v, state.v)

    def given_back(self) -> dict[str, wp.array]:
        """The arrays of the state that a step has led to."""
        return {"u": wp.clone(self.u), "v": wp.clone(self.v)}

    def _damp(self) -> None:
        assert self.damping is not None
        v, time = self.v.numpy(), self.scene.dt * self.material.stiffness_damping
        slower = self.damping.damped(self.u, v, self.masses, time)
        lost = np.einsum("ni,ni->n", v, v) - np.einsum("ni,ni->n", slower, slower)
        self._damping_took = 0.5 * float(self.masses @ lost)
        self.v.assign(to_device(slower, wp.vec3d))

    def _keep_turning(self, before: State) -> None:
        """Give pieces that fly freely back the angular momentum that the step took from them."""
        if self._loads.any():
            return
        touched = np.zeros(0, int)
        if self.obstructed is not None:
            touched = self._carriers(self.obstructed.touched())
        h = self.scene.dt / self.substeps
        kept = (1.0 + h * self.material.mass_damping) ** -self.substeps
        ends = [(u.numpy(), v.numpy()) for u, v in ((before.u, before.v), (self.u, self.v))]
        found = self.pieces.turned(self.masses, ends[0], ends[1], kept=kept, touched=touched)
        self.v.assign(to_device(found, wp.vec3d))

    def _places(self, u: np.ndarray) -> np.ndarray:
        x = u.copy()
        x[:, : self.scene.dim] += self.scene.body.nodes
        return x

    def sweep(self, k: int) -> None:
        """Substep k of the step, on u and v."""
        raise TypeError(type(self).__name__)

    @property
    def work_units(self) -> int:
        """What a step counts as iterations."""
        return self.substeps

    def residual(self, h: float) -> float:
        """How far the last substep of h [s] is from a step of implicit Euler.

        |M (u - u~) / h^2 - f| over nodes that neither a wall nor an obstacle may push, u~ the
        prediction, f the elastic forces at u; relative to those of the simplices on
        their corners, most of which f cancels.
        """
        alone = self._alone
        if self.obstructed is not None:
            alone = alone.copy()
            alone[self._carriers(self.obstructed.touched())] = 0.0
        force = self.elastic.at(self.u) * alone
        rate = (1.0 + h * self.material.mass_damping) / h**2
        moved = self.masses[:, None] * (self.u.numpy() - self.ahead.numpy()) * rate
        wrong = float(np.linalg.norm(moved * alone - force))
        return wrong / max(self.elastic.size, 1e-300)

    # walls and loads ------------------------------------------------------------------------------

    @property
    def walls_move(self) -> bool:
        """True if held places change with time."""
        driven = bool(self.boundary.driven)
        return driven or any(f.moves for f in self.scene.fixed)

    def _set_walls(self, t: float) -> None:
        if self.boundary.held:
            self.given.assign(to_device(self.boundary.prescribed(t), wp.vec3d))
        if self.held is not None:
            self.held.pull.zero_()
            self.held.set_given(self._given_on_walls(t))

    def _given_on_walls(self, t: float) -> np.ndarray:
        rest = self.scene.body.surface.positions(self.scene.body.nodes)
        out = []
        for number, (fixed, points) in enumerate(self.walls):
            place = fixed.at(rest[points], t)
            if number in self.boundary.driven:
                moved = self.boundary.driven[number](rest[points], t)
                place[:, : moved.shape[1]] += moved
            out.append(place)
        return np.concatenate(out)

    def _set_force(self, t: float) -> None:
        force = self.boundary.load_forces(t)
        if self._force is not None:
            force = force + self._force
        self._loads = force
        self.a.assign(to_device(self.gravity + force / self.masses[:, None], wp.vec3d))

    def push(self, force: np.ndarray | None) -> None:
        """One more force (nodes, 3) [N] on the steps to come."""
        self._force = None if force is None else force * self.boundary.free

    def drive(self, motions: Mapping[int, Motion]) -> None:
        """Move held regions, by their number in the scene, beyond what they do by themselves."""
        known = len(self.scene.fixed)
        for number in motions:
            if not 0 <= number < known:
                raise BadInput(f"There is no held region {number}: the scene has {known}.")
        self.boundary.driven.clear()
        self.boundary.driven.update(motions)

    def _wall_work(self, before: tuple[np.ndarray, np.ndarray], h: float) -> float:
        """Work of the hand that moves the walls: its force, which the balance of nodes tells."""
        if self.held is not None:
            now = self.held.given.numpy().copy()
            way = now - (now if self._given_before is None else self._given_before)
            self._given_before = now
            return float(np.sum(self.held.pull.numpy() * way)) / h**2
        held = self.boundary.free == 0.0
        way = (self.u.numpy() - before[0]) * held
        weight = self.masses[:, None] * ((self.v.numpy() - before[1]) / h - self.gravity)
        return float(np.sum((weight - self._loads - self.elastic.at(self.u)) * way))

    # what a run is told ---------------------------------------------------------------------------

    def stored(self, state: State) -> Energies:
        """Kinetic, elastic and gravity's energy of a state."""
        v, u = state.v.numpy(), state.u.numpy()
        return Energies(
            kinetic=0.5 * float(self.masses @ np.einsum("ni,ni->n", v, v)),
            elastic=self.elastic_energy(state),
            gravity=-float((self.masses @ u) @ self.gravity),
        )

    def elastic_energy(self, state: State) -> float:
        """Energy [J] stored in the body."""
        return float(self.elastic.energies(state.u)[0].sum())

    def work(self, before: State, after: State) -> tuple[float, float, float]:
        """Work of damping (taken), contact and loads (given) over a step."""
        way = after.u.numpy() - before.u.numpy()
        alpha = self.material.mass_damping
        damping = alpha * float(self.masses @ np.einsum("ni,ni->n", way, way)) / self.scene.dt
        damping += self._damping_took
        loads = float(np.sum(self._loads * way)) + self._walls_gave
        return damping, 0.0, loads

    def least_exchange(self) -> float:
        """What gravity may give the body in one step [J], or a strain of 1e-7."""
        speed = float(np.linalg.norm(self.gravity)) * self.scene.dt
        rounding = 1e-14 * float(np.mean(self.mu)) * self.scene.body.volume
        return max(0.5 * float(self.masses.sum()) * speed**2, rounding)

    def inverted(self, state: State) -> int:
        """Cells of which a part is inside out."""
        bad = self.elastic.energies(state.u)[1] <= 0.0
        return len(np.unique(self.parts.cell[bad])) if bad.any() else 0

    def sum_of(self, duals: Sequence[State | None], state: State) -> State:
        """The sum of derivatives by a state, array by array; None is zero."""
        total = {name: wp.zeros_like(x) for name, x in state.arrays.items()}
        for part in duals:
            for name, own in (part.arrays if part is not None else {}).items():
                if name in total:
                    combine(total[name], (1.0, total[name]), (1.0, own))
        return State(total, state.t)

    def saved(self, state: State) -> dict[str, np.ndarray]:
        """The state's arrays, copied to the host."""
        return {name: x.numpy().copy() for name, x in state.arrays.items()}

    def restored(self, arrays: Mapping[str, np.ndarray], t: float) -> State:
        """The inverse of `saved`; plane fields are padded."""
        out = {}
        for name, value in arrays.items():
            if name == "a":  # what a finite element run kept beside
                continue
            if value.ndim == 3:
                out[name] = to_device(value, wp.mat33d)
                continue
            full = np.zeros((len(value), 3))
            full[:, : value.shape[1]] = value
            out[name] = to_device(full, wp.vec3d)
        return State(out, t)
