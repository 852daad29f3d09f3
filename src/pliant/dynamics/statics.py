"""Rest under load: a fixed-point iteration on the cells' rotations (seed 000, figure 2.10).

Each iteration solves (K_R + contact) du = f + f_contact(u) - f_internal(u) with R at the current u;
for the linear model without contact one iteration is exact, and Anderson acceleration shortens the
rest. It stops when the force imbalance is
below `tolerance` times the largest force the body carries, and the load is applied in growing steps
when the full load does not converge from where it is.
"""

from dataclasses import dataclass

import numpy as np
import warp as wp

from pliant.core.errors import SolverFailure
from pliant.core.launch import to_device, zeros
from pliant.core.solution import Outcome
from pliant.dynamics.law_statics import solve_law_static
from pliant.dynamics.law_system import LawSystem, has_energy, make_system
from pliant.dynamics.scene import Scene
from pliant.dynamics.system import System
from pliant.linalg.anderson import Anderson
from pliant.linalg.blocks import dot, keep_free
from pliant.linalg.direct import DirectSolver
from pliant.linalg.pcg import Tolerance

MAX_ITERATIONS = 200
"""Rotation updates per load step; a bent beam takes 10 to 60."""

PATIENCE = 25
"""Updates without progress after which a smaller load step is tried."""

PLAIN = (1.0, 0)
"""Full steps, nothing remembered: Newton's method as far as contact goes, and exact where the model
is linear."""

ACCELERATED = ((1.0, 10), (0.3, 10), (0.1, 10))
"""Shares of the plain step and steps remembered, in the order they are tried. Full steps are best
where little turns; where turning a stressed cell turns its forces, they overshoot: of five bent
beams a share of 1 fails three, 0.3 settles all in 22 to 24 updates."""

SMALLEST_LOAD_STEP = 1.0 / 64.0

DIRECT_NODES = {2: 20_000, 3: 2_000}
"""Bodies up to this many nodes are factorised (2D and 3D); larger ones are solved iteratively."""

FINE = 1e-10
"""Relative residual of the iterative solves."""


@dataclass(frozen=True)
class StaticRecord:
    """How a static solve went."""

    rotation_updates: int
    solver_iterations: int
    imbalance: float
    load_steps: int


def solve_static(scene: Scene, *, tolerance: float = 1e-8) -> np.ndarray:
    """Displacement (nodes, dim) at rest under the loads at t = 0."""
    return solve_static_recorded(scene, tolerance=tolerance)[0]


def solve_static_recorded(
    scene: Scene, *, tolerance: float = 1e-8, system: System | None = None
) -> tuple[np.ndarray, StaticRecord]:
    """`solve_static` with a record of the iterations."""
    if system is None and has_energy(scene) and scene.law is None and scene.body.is_grid:
        try:  # exact walls first; a cell that turns far at a wall may want the penalties
            return _law_static(LawSystem(scene, nitsche=True), tolerance)
        except SolverFailure:
            pass
    system = system or make_system(scene)
    if isinstance(system, LawSystem):
        return _law_static(system, tolerance)
    problem = _Static(system, tolerance)
    load, step = 0.0, 1.0
    load_steps = 0
    u = problem.u
    while load < 1.0:
        wp.copy(problem.saved, u)
        target = min(1.0, load + step)
        if any(problem.solve(target, *way) for way in problem.ways):
            load = target
            load_steps += 1
            step *= 2.0
        else:
            wp.copy(u, problem.saved)
            step /= 2.0
            if step < SMALLEST_LOAD_STEP:
                raise SolverFailure(
                    f"The body found no rest at {target:.0%} of its load: {problem.reason} "
                    "Reduce the load, or simulate with damping instead."
                )
    result = u.numpy()[:, : scene.dim]
    return result, StaticRecord(
        problem.updates, problem.solver_iterations, problem.imbalance, load_steps
    )


def _law_static(system: LawSystem, tolerance: float) -> tuple[np.ndarray, StaticRecord]:
    u, records, _ = solve_law_static(system, tolerance=tolerance)
    iterations = sum(r.iterations for r in records)
    solves = sum(r.solver_iterations for r in records)
    return u[:, : system.scene.dim], StaticRecord(
        iterations, solves, records[-1].residual, len(records)
    )


class _Static:
    def __init__(self, system: System, tolerance: float):
        self.system = system
        self.tolerance = tolerance
        n = system.node_count
        self.u = to_device(np.zeros((n, 3)), wp.vec3d)
        self.saved, self._r, self._du, self._zero = (zeros(n, wp.vec3d) for _ in range(4))
        self.updates = self.solver_iterations = 0
        self.imbalance = np.inf
        self.reason = ""
        contact = system.contact is not None
        self.ways = ACCELERATED if system.elasticity.corotated else (PLAIN,)
        if system.elasticity.corotated and contact:
            self.ways = (PLAIN, *ACCELERATED)

    def solve(self, load: float, mixing: float, depth: int) -> bool:
        """Iterate at a share of the load; False, and back at the saved u, when it fails."""
        s = self.system
        wp.copy(self.u, self.saved)
        external = to_device(load * s.external_force(0.0), wp.vec3d)
        self._hold(load)
        best = np.inf
        grown = 0
        acceleration = Anderson(mixing=mixing, depth=depth)
        for iteration in range(MAX_ITERATIONS):
            r = self._r
            # moving only the held nodes distorts their cells: the first rotations are the old ones
            s.elasticity.rotate(self.u if iteration else self.saved)
            s.elasticity.assemble(s.matrix, s.mass, mass_factor=0.0, stiffness_factor=1.0)
            wp.copy(r, external)
            if s.contact is not None:
                s.contact.add_forces(
                    self.u, self._zero, self.u, (self.u, self._zero),
                    f_new=1.0, f_old=0.0, per_x=(1.0, 0.0), out=r,
                )  # fmt: skip
                s.contact.add_to_matrix(s.matrix)
            s.elasticity.add_force(self.u, 1.0, r, factor=-1.0)
            if s.walls is not None:
                s.walls.assemble(s.matrix, 1.0)
                s.walls.add_force(self.u, r, factor=-1.0)
            everywhere = dot(r, r)
            keep_free(r, s.matrix.free)
            imbalance = dot(r, r)
            reactions = everywhere - imbalance  # held nodes carry what is left over
            scale = np.sqrt(max(dot(external, external), reactions, 1e-300))
            self.imbalance = np.sqrt(imbalance) / scale
            if not np.isfinite(self.imbalance):
                self.reason = "the forces became infinite."
                return False
            if self.imbalance <= self.tolerance and (iteration or not s.boundary.held):
                return True
            grown = 0 if self.imbalance < 0.99 * best else grown + 1
            best = min(best, self.imbalance)
            if grown > PATIENCE:
                self.reason = f"the imbalance stays at {best:.1e} of the load."
                return False
            if self.imbalance > 100.0 * best:
                acceleration.restart()
            self._solve_stiffness(r)
            self.u.assign(acceleration.next(self.u.numpy(), self._du.numpy()))
            self.updates += 1
        self.reason = f"{MAX_ITERATIONS} rotation updates were not enough."
        return False

    def _solve_stiffness(self, r: wp.array) -> None:
        """du = K_R^{-1} r. Finely: a residual of 1e-4 may hide a bending mode altogether."""
        s = self.system
        self._du.zero_()
        if s.node_count <= DIRECT_NODES[s.scene.dim]:
            solution = DirectSolver(s.matrix).solve(r, self._du)
        else:
            s.preconditioner.update(s.matrix, fresh=True)  # an update may turn cells far
            tolerance = Tolerance(relative=FINE, max_iterations=20_000)
            solution = s.solver.solve(r, self._du, tolerance)
        self.solver_iterations += solution.iterations
        hopeless = not solution.residual <= 1e-3 * np.sqrt(dot(r, r))
        if solution.outcome is Outcome.INDEFINITE or (not solution.outcome.ok and hopeless):
            raise SolverFailure(f"The static solve failed: {solution.outcome.value}.")

    def _hold(self, load: float) -> None:
        boundary = self.system.boundary
        if boundary.held:
            u = self.u.numpy()
            held = boundary.free == 0.0
            u[held] = load * boundary.prescribed(0.0)[held]
            self.u.assign(u)
