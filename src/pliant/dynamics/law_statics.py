"""Rest under load of a body with a material law: Newton's method with load steps."""

import numpy as np
import warp as wp

from pliant.core.errors import SolverFailure
from pliant.core.launch import to_device, zeros
from pliant.dynamics.directional_newton import add_contact_product
from pliant.dynamics.law_system import LawSystem
from pliant.dynamics.newton import Newton, NewtonFailure, NewtonRecord
from pliant.linalg.blocks import dot, keep_free

SMALLEST_LOAD_STEP = 1.0 / 256.0


class StaticProblem:
    """load * external + contact - internal - walls = 0 in u."""

    clamped = False

    def __init__(self, system: LawSystem, *, time: float = 0.0):
        self.system = system
        self.matrix, self.solver = system.matrix, system.solver
        self.preconditioner = system.preconditioner
        self.load = 1.0
        self._full = system.external_force(time)
        self._external = to_device(self._full, wp.vec3d)
        self._zero, self._scratch = (zeros(system.node_count, wp.vec3d) for _ in range(2))

    def set_load(self, load: float) -> None:
        """Share of the loads and of the walls' displacement."""
        self.load = load
        self._external.assign(load * self._full)

    def residual(self, x: wp.array, out: wp.array) -> None:
        """out = forces in excess at u = x."""
        s = self.system
        wp.copy(out, self._external)
        s.hyper.add_force(x, out, factor=-1.0)
        if s.walls is not None:
            s.walls.add_force(x, out, factor=-1.0)
        if s.contact is not None:
            s.contact.add_forces(
                x, self._zero, x, (x, self._zero), f_new=1.0, f_old=0.0, per_x=(1.0, 0.0), out=out
            )

    def assemble(self, x: wp.array, *, project: bool) -> None:
        """matrix = stiffness at u = x."""
        s = self.system
        s.hyper.assemble(
            self.matrix, s.mass, x, mass_factor=0.0, stiffness_factor=1.0, project=project
        )
        if s.walls is not None:
            s.walls.assemble(self.matrix, 1.0)
        if s.contact is not None:
            self.linearise(x)
            s.contact.add_to_matrix(self.matrix)

    def linearise(self, x: wp.array) -> None:
        """Take `multiply` at u = x."""
        s = self.system
        self._at = x
        if s.contact is not None:
            self._scratch.zero_()
            s.contact.add_forces(
                x, self._zero, x, (x, self._zero), f_new=1.0, f_old=0.0, per_x=(1.0, 0.0),
                out=self._scratch,
            )  # fmt: skip

    def multiply(self, p: wp.array, out: wp.array) -> None:
        """out = stiffness times p, without a matrix."""
        s = self.system
        out.zero_()
        s.hyper.add_direction(self._at, p, out, factor=1.0)
        if s.walls is not None:
            s.walls.add_force(p, out, factor=1.0)
        if s.contact is not None:
            add_contact_product(s.contact, p, out)

    def scale(self, u: wp.array) -> float:
        """Largest of the loads and the reactions of held nodes."""
        s = self.system
        f = zeros(s.node_count, wp.vec3d)
        s.hyper.add_force(u, f)
        total = dot(f, f)
        keep_free(f, s.matrix.free)
        reactions = max(total - dot(f, f), 0.0)
        loads = float(np.sum((self.load * self._full) ** 2))
        return float(np.sqrt(max(loads, reactions, 1e-300)))


def solve_law_static(
    system: LawSystem, *, tolerance: float = 1e-8, start: np.ndarray | None = None,
    load_steps: int = 1, ramp: bool = True,
) -> tuple[np.ndarray, list[NewtonRecord], int]:
    """Displacement (nodes, 3), the record of every load step, and how often a step was halved.

    start: displacement (nodes, 3) to begin at; load_steps: equal steps that are tried first; ramp:
    whether a failed step is tried again with less load (from zero: `start` is then at rest).
    """
    problem = StaticProblem(system)
    newton = Newton(problem, system.node_count, direct=True, tangent=system.tangent)
    boundary = system.boundary
    u = to_device(np.zeros((system.node_count, 3)) if start is None else start, wp.vec3d)
    saved = wp.clone(u)
    held = boundary.free == 0.0
    target = boundary.prescribed(0.0)
    modulus = float(np.mean(system.lam + 2.0 * system.mu))
    tiny = 1e-12 * modulus * float(system.scene.body.volume) ** (2.0 / 3.0)
    load, step = 0.0, 1.0 / load_steps if ramp else 1.0
    records: list[NewtonRecord] = []
    halvings = 0
    while load < 1.0 - 1e-12:
        wp.copy(saved, u)
        goal = min(1.0, load + step)
        problem.set_load(goal)
        given = None
        if boundary.held:
            given = np.where(held, goal * target - u.numpy(), 0.0)
            given = given if np.any(given) else None
        try:
            scale = max(problem.scale(u), tiny)
            if given is not None:
                # reactions are only known once the held nodes have moved
                scale = max(scale, _moved_scale(problem, u, given))
            record = newton.solve(
                u, scale=scale, tolerance=tolerance, given=given, rounding=system.force_rounding()
            )
            records.append(record)
            load = goal
            step = min(step * 1.5, 1.0 / load_steps)
        except NewtonFailure as failure:
            wp.copy(u, saved)
            step /= 2.0
            halvings += 1
            if step < SMALLEST_LOAD_STEP or not ramp:
                raise SolverFailure(
                    f"The body found no rest at {goal:.0%} of its load: {failure} "
                    "Reduce the load, or simulate with damping instead."
                ) from None
    return u.numpy(), records, halvings


def _moved_scale(problem: StaticProblem, u: wp.array, given: np.ndarray) -> float:
    """Size of the forces that moving the held nodes by `given` causes, to first order."""
    s = problem.system
    f, d = zeros(s.node_count, wp.vec3d), to_device(given, wp.vec3d)
    s.hyper.add_force_change(u, d, f)
    keep_free(f, s.matrix.free)
    value = float(np.sqrt(dot(f, f)))
    return value if np.isfinite(value) else 0.0
