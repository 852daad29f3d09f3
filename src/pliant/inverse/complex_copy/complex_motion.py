"""Tangents of a simulation by complex steps through every time step: a third, independent opinion.

The unknowns get an imaginary part h = 1e-40 and a step's residual g is evaluated in complex
arithmetic (inverse.complex_copy.complex_forces). The found state has the imaginary part for which
Im g vanishes; the system's own matrix only serves to find it, so a wrong derivative anywhere in the
kernels, in the blocks or in a chart's slope cannot hide: it shows as a difference, not as an error
of this.
"""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import warp as wp

from pliant.complexstep.derivatives import STEP
from pliant.core.errors import BadInput, SolverFailure
from pliant.core.launch import to_device, zeros
from pliant.dynamics.implicit import ImplicitModel
from pliant.dynamics.integrators import Integrator
from pliant.dynamics.loads import PLACE
from pliant.dynamics.march import march
from pliant.dynamics.model import State
from pliant.dynamics.obstacles import Plane
from pliant.dynamics.scene import vector3
from pliant.dynamics.scene_blocks import BLOCKS, LAW_PREFIX, DampingRatios, moduli_slopes
from pliant.dynamics.terms.inertia import STARTING_FLOOR
from pliant.dynamics.terms.slivers import viscosity
from pliant.fem.cutting.ghost import GHOST_INERTIA
from pliant.fem.material_regions import NUMBERS, composed, owners
from pliant.inverse.complex_copy.complex_forces import ComplexForces, contact_forces
from pliant.inverse.parameters.unknowns import UnknownSet
from pliant.linalg.direct import DirectSolver
from pliant.linalg.pcg import Tolerance

EXACT = 1e-14
"""Share of the first Im g at which a step is done."""

NEARLY = 1e-9
"""Share at which it may stagnate: rounding of the forces."""

SAME_STEP = 1e-5
"""Share of the forces that Re g may have left: the kernels' step must solve this g as well."""

DIRECT_NODES = 1_500


class NotComplex(BadInput):
    """Something in the scene has no complex form here; the sentence says what."""


@dataclass
class Numbers:
    """What a step depends on, complex: moduli (cells,), masses (nodes,), damping, loads, planes."""

    lam: np.ndarray
    mu: np.ndarray
    density: np.ndarray
    mass_damping: Any
    stiffness_damping: Any
    gravity: np.ndarray
    planes: list[tuple[np.ndarray, Any]]
    contact_stiffness: Any
    velocity: np.ndarray
    spin: np.ndarray
    law: dict[str, np.ndarray] | None


def complex_numbers(system: ImplicitModel, unknowns: UnknownSet, q: np.ndarray) -> Numbers:
    """The scene's numbers at a complex q, through the unknowns' own formulas."""
    scene, cells = system.scene, len(system.scene.body.cells)
    m = scene.material
    moved = any(m.name.startswith(PLACE) for m in unknowns.members)
    if scene.begin.balanced or scene.attached or system.springs is not None or moved:
        raise NotComplex(
            "Starts in balance, attached masses, clamps that give and their places have no complex "
            'copy: use derivatives by tangents or adjoints (method "gauss-newton" or "adjoint").'
        )
    new: dict[str, Any] = {
        "youngs_modulus": m.youngs_modulus, "poisson_ratio": m.poisson_ratio,
        "density": m.density, "mass_damping": m.mass_damping,
        "stiffness_damping": m.stiffness_damping, "gravity": vector3("gravity", scene.gravity),
        "initial_velocity": vector3("initial_velocity", scene.initial_velocity),
        "initial_spin": vector3("initial_spin", scene.initial_spin),
        "contact_stiffness": scene.contact.stiffness,
    }  # fmt: skip
    if m.branches:
        raise NotComplex("viscoelastic branches have no complex form.")
    planes = [(o.normal, o.offset) for o in scene.obstacles if isinstance(o, Plane)]
    if len(planes) < len(scene.obstacles):
        raise NotComplex("obstacles other than planes are sampled, not formulas.")
    planes = [(vector3("normal", n).astype(complex), o) for n, o in planes]
    law = None
    if scene.constitution.parameters():
        law = {n: np.asarray(v, complex) for n, v in system.law.values.items()}
    for member, part in zip(unknowns.members, unknowns.split(q), strict=True):
        name, value = member.name, member.chart.setting(part)  # analytic formulas
        if name.startswith(LAW_PREFIX):
            assert law is not None
            law[name.removeprefix(LAW_PREFIX)] = np.asarray(value[0])
        elif name == "ground_normal":
            planes[0] = (value, planes[0][1])
        elif name == "ground_offset":
            planes[0] = (planes[0][0], value[0])
        elif name == "gravity_direction":
            new["gravity"] = np.linalg.norm(scene.gravity) * value
        elif name == "damping_ratios":
            ratios = BLOCKS[name]
            assert isinstance(ratios, DampingRatios)
            new["mass_damping"], new["stiffness_damping"] = ratios.matrix(scene) @ value
        elif name in ("gravity", "initial_velocity", "initial_spin"):
            padded = np.zeros(3, complex)
            padded[: len(value)] = value
            new[name] = padded
        else:
            new[name] = value[0] if len(value) == 1 else value
    if m.regions:
        for name in NUMBERS:
            of = [f"regions.{i}.{name}" for i in range(len(m.regions))]
            own = [new.get(key, getattr(r, name)) for key, r in zip(of, m.regions, strict=True)]
            new[name] = composed(owners(scene.body, m.regions, name), new[name], own)
    E, nu = new["youngs_modulus"], new["poisson_ratio"]
    lam, mu = E * nu / ((1.0 + nu) * (1.0 - 2.0 * nu)), E / (2.0 * (1.0 + nu))
    if law is not None:
        if scene.constitution.follows_moduli:
            starts: Any = system.law.energy.starts
            followed = {n: np.asarray(v, complex) for n, v in starts(E, nu).items()}
            law = {n: followed[n] for n in law}
        lam, mu = _small_strain(system, law)
        E = mu * (3.0 * lam + 2.0 * mu) / (lam + mu)
        law = {n: np.broadcast_to(v, (cells,)) for n, v in law.items()}
    lam, mu, density = (
        np.broadcast_to(np.asarray(x, complex), (cells,)) for x in (lam, mu, new["density"])
    )
    stiffness = new["contact_stiffness"]
    if stiffness is None and system.contact is not None:
        stiffness = system.contact.following_stiffness(np.mean(E))
    return Numbers(
        lam, mu, density, new["mass_damping"], new["stiffness_damping"], new["gravity"], planes,
        stiffness, new["initial_velocity"], new["initial_spin"], law,
    )  # fmt: skip


def _small_strain(system: ImplicitModel, law: dict[str, np.ndarray]):
    """Lame's constants of complex parameters; lambda no lower than zero, as in the system."""
    cells = len(system.lam)
    if system.law.energy.lame is not None:
        lam, mu = system.law.energy.lame(SimpleNamespace(**law))
    else:
        by_lam, by_mu = moduli_slopes(system.law, cells)
        steps = (np.broadcast_to(1j * np.imag(v), (cells,)) for v in law.values())
        change = np.stack(list(steps), axis=1)
        lam = system.lam + (by_lam * change).sum(axis=1)
        mu = system.mu + (by_mu * change).sum(axis=1)
    lam = np.asarray(lam, complex)
    return np.where(np.real(lam) > 0.0, lam, 0.0), np.asarray(mu, complex)


class ComplexMotion:
    """One direction of q through a simulation; state holds complex (u, v, a)."""

    def __init__(self, system: ImplicitModel, numbers: Numbers):
        self.system, self.n = system, numbers
        scene, body = system.scene, system.scene.body
        self.energetic = scene.constitution.energetic
        law = system.law if scene.constitution.parameters() else None
        walls = None if system.walls is None else system.walls.walls
        try:
            self.forces = ComplexForces(
                body, model=scene.model, law=law, walls=walls, dilatation=scene.dilatation
            )
        except NotComplex:
            raise
        except BadInput as reason:
            raise NotComplex(str(reason)) from None
        shares = numbers.density[:, None, None] * body.node_volumes[..., None]
        self.mass = self.forces.scatter(np.broadcast_to(shares, (*body.cells.shape, 3)))[:, 0]
        self.moduli = self.forces.node_moduli(numbers.mu)
        self._old: np.ndarray | None = None  # internal force at the start of the step
        self.state = self._initial()

    def _initial(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        s, n, compatible = self.system, self.n, self.system.boundary.compatible
        X = self.forces.nodes
        arms = X - (self.mass @ X) / self.mass.sum()
        u = s.boundary.prescribed(0.0).astype(complex)
        v = compatible(n.velocity + np.cross(n.spin, arms))
        w = u + n.stiffness_damping * v
        if self.energetic:
            force = -self._internal(u) - self.forces.ghost(w, self.moduli)
            force -= n.stiffness_damping * self._viscous(u, v)
        else:
            force = -self.forces.elastic(self.forces.rotations(u), w, 1.0, n.lam, n.mu)
            force -= self.forces.ghost(w, self.moduli)
        force += self._contact(u, v, u, (u, v), 1.0, 0.0, moved=False)
        force += s.boundary.load_forces(0.0)
        heaviest = self.mass[np.argmax(np.real(self.mass))]
        light = np.real(self.mass) <= STARTING_FLOOR * np.real(heaviest)
        starting = np.where(light, STARTING_FLOOR * heaviest, self.mass)
        a = n.gravity + force / starting[:, None] - n.mass_damping * v
        return u, v, compatible(a)

    def _internal(self, u: np.ndarray) -> np.ndarray:
        """Force of the energy at u, without the ghost penalty."""
        if self.n.law is not None:
            return self.forces.internal(u, self.n.law)
        return self.forces.corotated(u, self.n.lam, self.n.mu)

    def _viscous(self, at: np.ndarray, rate: np.ndarray) -> np.ndarray:
        """Damping force per stiffness damping, without the ghost penalty."""
        if self.n.law is not None:
            return self.forces.viscous(at, rate, self.n.lam, self.n.mu)
        return self.forces.elastic(self.forces.rotations(at), rate, 0.0, self.n.lam, self.n.mu)

    def _given(self, t: float) -> np.ndarray:
        s = self.system
        if s.walls is None:
            return np.zeros((0, 3))
        given = s.boundary.given_on_walls(t).astype(complex)
        if s.boundary.changes:
            given = given + self.n.stiffness_damping * s.walls.rate(t)
        return given

    def _traction(self, u: np.ndarray, t: float) -> Any:
        term = self.system.tractions
        if term is None:
            return 0.0
        given = self.system.boundary.given_at_wall_nodes(t)
        return self.forces.traction(term.tractions, u, given, self.n.lam, self.n.mu)

    def _contact(self, u, v, predicted, found, f_new, f_old, *, moved):
        s = self.system
        if s.contact is None:
            return np.zeros_like(u)
        return contact_forces(
            s.contact, self.n.planes, self.n.contact_stiffness, u, v, predicted, found,
            f_new=f_new, f_old=f_old, moved=moved,
        )  # fmt: skip

    def residual(self, x: np.ndarray, t: float, scheme: Integrator) -> np.ndarray:
        """g of the step that starts at the present state, at time t."""
        s, n, forces = self.system, self.n, self.forces
        u, v, a = self.state
        four = (x, u, v, a)
        f_new, f_old = scheme.force

        def mix(weights, fields) -> Any:
            return sum(c * f for c, f in zip(weights, fields, strict=True))

        def weighted(own):
            """Weights of M or K with the complex Rayleigh coefficient resolved."""
            coefficient = n.mass_damping if own == 0 else n.stiffness_damping
            left = scheme.system[own] + coefficient * scheme.system[1]
            return [left, *(-(row[own] + coefficient * row[1]) for row in scheme.history)]

        predicted = mix(scheme.predictor, self.state)
        held = s.boundary.free == 0.0
        ahead = s.boundary.prescribed(t + scheme.dt)
        predicted = np.where(held, ahead, predicted) if s.boundary.held else predicted
        stiff = mix(weighted(2), four)
        found = (mix(scheme.next_u, four), mix(scheme.next_v, four))
        inertia = mix(weighted(0), four)
        g = self.mass[:, None] * inertia + self._beside(inertia)
        if s.inertia.ghost is not None:
            scale = GHOST_INERTIA * s.scene.body.spacing**2 * self.mass.sum() / s.scene.body.volume
            g += forces.ghost(inertia, np.full(len(g), scale))
        if self.energetic:
            rate = mix(scheme.damping_weights, four)
            g += f_new * self._internal(found[0])
            if f_old != 0.0:
                if self._old is None:
                    self._old = self._internal(u)
                g += f_old * self._old
            g += n.stiffness_damping * self._viscous(predicted, rate)
            viscous = n.stiffness_damping
            if s.slivers is not None:
                viscous = viscous + viscosity((t + scheme.dt, t))
            ghosted = f_new * found[0] + f_old * u + viscous * rate
            contact = self._contact(u, v, found[0], found, f_new, f_old, moved=True)
        else:
            R = forces.rotations(predicted)
            g += forces.elastic(R, stiff, scheme.force_total, n.lam, n.mu)
            ghosted = stiff
            contact = self._contact(
                u, v, predicted, found, f_new, f_old, moved=scheme.next_u[0] != 0.0
            )
        g += forces.ghost(ghosted, self.moduli) - contact
        given = f_new * self._given(t + scheme.dt)
        given = given + f_old * self._given(t) if f_old != 0.0 else given
        g += forces.wall(stiff, given, n.lam, n.mu)
        g += f_new * self._traction(found[0], t + scheme.dt)
        g += f_old * self._traction(u, t) if f_old != 0.0 else 0.0
        g -= f_new * s.boundary.load_forces(t + scheme.dt) + f_old * s.boundary.load_forces(t)
        g -= scheme.force_total * self.mass[:, None] * n.gravity
        return g * s.boundary.free

    def _beside(self, z: np.ndarray) -> Any:
        """What M z has beyond the lumped masses."""
        mass = self.system.inertia.mass
        if mass.is_lumped:
            return 0.0
        real = mass.to_scipy() @ z - mass.lumped[:, None] * z
        return real * (self.mass.sum() / mass.lumped.sum())

    def advance(self, before: State, after: State, scheme: Integrator, solve) -> None:
        """The state after the step that the system took from `before` to `after`."""
        s = self.system
        real = [f.numpy() for f in before.fields()]
        imaginary = [1j * np.imag(f) for f in self.state]
        self.state = (real[0] + imaginary[0], real[1] + imaginary[1], real[2] + imaginary[2])
        self._old = None
        x = s.unknown(before, after, scheme).numpy()
        dx = np.zeros_like(x)
        sizes: list[float] = []
        while True:
            g = self.residual(x + 1j * STEP * dx, before.t, scheme)
            if not sizes:
                self._check_real(np.real(g), scheme)
            rest = np.imag(g) / STEP
            sizes.append(float(np.linalg.norm(rest)))
            if sizes[-1] <= EXACT * sizes[0]:
                break
            if len(sizes) > 1 and sizes[-1] > 0.5 * sizes[-2]:  # rounding
                if sizes[-1] > NEARLY * sizes[0]:
                    raise SolverFailure(f"Im g stays at {sizes[-1] / sizes[0]:.1e} of its start.")
                break
            dx -= solve(rest)
        z = x + 1j * STEP * dx
        rows = (scheme.next_u, scheme.next_v, scheme.next_a)
        out = [r[0] * z + sum(c * f for c, f in zip(r[1:], self.state, strict=True)) for r in rows]
        found = [f.numpy() for f in after.fields()]
        free = s.boundary.free
        new = [f + 1j * np.imag(z) * free for f, z in zip(found, out, strict=True)]
        self.state = (new[0], new[1], new[2])

    def _check_real(self, g: np.ndarray, scheme: Integrator) -> None:
        scale = np.linalg.norm(np.real(self.mass)[:, None] * np.real(self.n.gravity))
        scale = max(scale, np.linalg.norm(np.real(self.mass)[:, None] * np.real(self.state[2])))
        scale *= scheme.force_total
        if float(np.linalg.norm(g)) > SAME_STEP * max(float(scale), 1e-300):
            raise NotComplex(
                f"the step in NumPy misses the balance by {np.linalg.norm(g) / scale:.1e}."
            )

    def tangent(self, t: float) -> State:
        """Derivative of (u, v, a) by the direction."""
        u, v, a = (to_device(np.imag(f) / STEP, wp.vec3d) for f in self.state)
        return State.of(u, v, a, t)


def complex_runner(unknowns: UnknownSet, q: np.ndarray):
    """Stands in for `run_with_tangents`: tangents by complex steps, one motion a component of q."""

    def run(system: ImplicitModel, steps: int, directions, on_frame, *, tolerance=None, clock=None):
        motions = [
            ComplexMotion(system, complex_numbers(system, unknowns, q + 1j * STEP * unit))
            for unit in np.eye(len(q))
        ]
        state = system.initial_state()
        on_frame(0, state, [m.tangent(state.t) for m in motions])
        for step in march(system, state, until=steps):
            for start, end, scheme in system.parts(step.before, step.after):
                solve = _solver(system, start, end, scheme)
                for m in motions:
                    m.advance(start, end, scheme, solve)
            state = step.after
            on_frame(step.number, state, [m.tangent(state.t) for m in motions])

    return run


def _solver(system: ImplicitModel, before: State, after: State, scheme: Integrator):
    """x = A^-1 b with the step's own matrix, whose errors the residual corrects."""
    system.derivatives.linearise(before, after, scheme)
    direct = DirectSolver(system.matrix) if system.node_count <= DIRECT_NODES else None

    def solve(b: np.ndarray) -> np.ndarray:
        right, x = to_device(b, wp.vec3d), zeros(system.node_count, wp.vec3d)
        if direct is not None:
            direct.solve(right, x)
        else:
            system.solver.solve(right, x, Tolerance(relative=1e-7))
        return x.numpy()

    return solve
