"""Mass-spring systems (seed 002, section 1.1), advanced by the schemes of that chapter.

A spring of constant k, length L at rest and d between its ends pulls with k (|d| - L) along d, and
damps the speed along d with beta k; masses have the drag alpha. Schemes: explicit Euler, the
midpoint rule (Runge-Kutta 2, eq. 1.16), Runge-Kutta 4, and implicit Euler (eq. 1.17), by one Newton
step from the state ("implicit-euler-linear") or to the balance ("implicit-euler"). Explicit schemes
take substeps below the largest stable one, `largest_step`.
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false

from functools import cached_property

import numpy as np
import warp as wp
from scipy import sparse
from scipy.sparse.linalg import eigsh, splu

from pliant.core.errors import SolverFailure
from pliant.core.launch import Series, launch, to_device, zeros
from pliant.dynamics.model import State
from pliant.dynamics.scene import Scene
from pliant.particles.particle_model import ParticleModel
from pliant.particles.springs import springs_of

EXPLICIT = ("explicit-euler", "runge-kutta-2", "runge-kutta-4")
SCHEMES = (*EXPLICIT, "implicit-euler", "implicit-euler-linear")

SAFE = 0.9
"""Length of the substeps of an explicit scheme over the largest stable one."""

NEWTON_STEPS = 50
NEWTON_TOLERANCE = 1e-10
"""Change of a Newton step over the whole displacement of the step at which it ends."""


@wp.kernel
def _pull(
    first: wp.int32,
    start: wp.array(dtype=wp.int32),
    other: wp.array(dtype=wp.int32),
    spring: wp.array(dtype=wp.int32),
    k: wp.array(dtype=wp.float64),
    length: wp.array(dtype=wp.float64),
    beta: wp.float64,
    x: wp.array(dtype=wp.vec3d),
    v: wp.array(dtype=wp.vec3d),
    out: wp.array(dtype=wp.vec3d),
):
    """Force of all springs at a node."""
    i = first + wp.tid()
    total = wp.vec3d()
    for e in range(start[i], start[i + 1]):
        s = spring[e]
        d = x[other[e]] - x[i]
        far = wp.length(d)
        if far > wp.float64(0.0):
            n = d / far
            speed = wp.dot(v[other[e]] - v[i], n)
            total += (k[s] * (far - length[s] + beta * speed)) * n
    out[i] = total


class MassSpringModel(ParticleModel):
    """Steps a scene with model = "mass-spring"."""

    def __init__(self, scene: Scene):
        body = scene.body
        self.springs = springs_of(body)
        n = len(body.nodes)
        both = np.concatenate([self.springs.ends, self.springs.ends[:, ::-1]])
        order = np.lexsort((both[:, 1], both[:, 0]))
        counts = np.bincount(both[:, 0], minlength=n)
        self._lists = [
            to_device(np.concatenate([[0], np.cumsum(counts)]), wp.int32),
            to_device(both[order, 1], wp.int32),
            to_device(order % len(self.springs.ends), wp.int32),
        ]
        self._length = to_device(self.springs.length, wp.float64)
        self._force_out = zeros(n, wp.vec3d)
        self.judged_by_energy = True
        super().__init__(scene)

    def set_numbers(self) -> None:
        """Constants of the springs and the length of a substep."""
        E = self.mu * (3.0 * self.lam + 2.0 * self.mu) / (self.lam + self.mu)
        self.k = self.springs.constants(E)
        self._k = to_device(self.k, wp.float64)
        self.__dict__.pop("largest_frequency", None)
        own = self.scene.numbers
        self._substeps = int(own.substeps) or 1
        limit = self.largest_step
        if not own.substeps and np.isfinite(limit) and limit > 0.0:
            self._substeps = max(1, int(np.ceil(self.scene.dt / (SAFE * limit))))
        places = self.kept_places(to_device(self.inverse_mass, wp.float64))
        self._kept = Series(places) if places else None
        self.damping = None  # the springs have their own

    @property
    def substeps(self) -> int:
        """Parts of a step."""
        return self._substeps

    # forces -----------------------------------------------------------------------------------

    def spring_force(self, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """(nodes, 3) [N]."""
        x = to_device(self._places(u), wp.vec3d)
        inputs = [*self._lists, self._k, self._length, self.material.stiffness_damping]
        launch(_pull, len(u), [*inputs, x, to_device(v, wp.vec3d), self._force_out])
        return self._force_out.numpy()

    def _acceleration(self, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        drag = self.material.mass_damping
        a = self.spring_force(u, v) / self.masses[:, None] + self.a.numpy() - drag * v
        return a * self.boundary.free

    def stiffness(self, u: np.ndarray, *, clamped: bool = True) -> sparse.csc_matrix:
        """Tangent (3 n, 3 n) [N/m]; clamped: springs that are pressed do not push sideways."""
        i, j = self.springs.ends.T
        x = self._places(u)
        d = x[j] - x[i]
        far = np.maximum(np.linalg.norm(d, axis=1), 1e-300)
        n = d / far[:, None]
        tense = 1.0 - self.springs.length / far
        tense = np.maximum(tense, 0.0) if clamped else tense
        along = n[:, :, None] * n[:, None, :]
        blocks = self.k[:, None, None] * (along + tense[:, None, None] * (np.eye(3) - along))
        rows, columns, values = [], [], []
        for a, b, sign in ((i, i, 1.0), (j, j, 1.0), (i, j, -1.0), (j, i, -1.0)):
            for p in range(3):
                for q in range(3):
                    rows.append(3 * a.astype(int) + p)
                    columns.append(3 * b.astype(int) + q)
                    values.append(sign * blocks[:, p, q])
        size = 3 * self.node_count
        table = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
        return sparse.csc_matrix(table, shape=(size, size))

    # stability --------------------------------------------------------------------------------

    @cached_property
    def largest_frequency(self) -> float:
        """Of the springs about their rest, angular [1/s]."""
        free = np.flatnonzero(self.boundary.free.reshape(-1) > 0.0)
        K = self.stiffness(np.zeros((self.node_count, 3)))[free][:, free]
        m = np.repeat(self.masses, 3)[free] ** -0.5
        scaled = sparse.diags_array(m) @ K @ sparse.diags_array(m)
        if len(free) < 20:
            return float(np.sqrt(np.linalg.eigvalsh(scaled.toarray())[-1]))
        start = np.cos(np.arange(len(free)))  # the same bits every time
        top = eigsh(scaled, 1, which="LA", v0=start, tol=1e-4, return_eigenvectors=False)
        return float(np.sqrt(top[0]))

    @property
    def largest_step(self) -> float:
        """Longest stable substep [s] of the scheme; infinite if implicit, 0 if there is none."""
        if self.scene.numbers.scheme not in EXPLICIT:
            return np.inf
        damping = (self.material.mass_damping, self.material.stiffness_damping)
        return stable_step(self.scene.numbers.scheme, self.largest_frequency, *damping)

    def require_stable(self) -> None:
        """Refuse substeps beyond the limit of an explicit scheme."""
        limit, h = self.largest_step, self.scene.dt / self.substeps
        if 0.0 < limit < h:
            raise SolverFailure(
                f"{self.scene.numbers.scheme} is unstable beyond {limit:.3g} s here, and a substep "
                f"is {h:.3g} s: use substeps = {int(np.ceil(self.scene.dt / limit))} or more."
            )

    def remedy(self) -> str:
        """What to do when energy appears from nowhere."""
        scheme = self.scene.numbers.scheme
        if self.largest_step == 0.0:
            return (
                f"{scheme} gains energy at every step of an undamped body: use runge-kutta-4, "
                "implicit-euler, more substeps or some stiffness_damping."
            )
        return f"{scheme} needs shorter substeps: use substeps = {2 * self.substeps}."

    # steps ------------------------------------------------------------------------------------

    def sweep(self, k: int) -> None:
        """Substep k of the step, on u and v."""
        h, scheme = self.scene.dt / self.substeps, self.scene.numbers.scheme
        wp.copy(self.old, self.u)
        u, v = self.u.numpy().copy(), self.v.numpy().copy()
        free, given = self.boundary.free, self.given.numpy()
        f = self._acceleration
        if scheme == "explicit-euler":
            u, v = u + h * v, v + h * f(u, v)
        elif scheme == "runge-kutta-2":
            middle = v + 0.5 * h * f(u, v)
            u, v = u + h * middle, v + h * f(u + 0.5 * h * v, middle)
        elif scheme == "runge-kutta-4":
            a1 = f(u, v)
            v2 = v + 0.5 * h * a1
            a2 = f(u + 0.5 * h * v, v2)
            v3 = v + 0.5 * h * a2
            a3 = f(u + 0.5 * h * v2, v3)
            v4 = v + h * a3
            a4 = f(u + h * v3, v4)
            u, v = (
                u + h / 6.0 * (v + 2 * v2 + 2 * v3 + v4),
                v + h / 6.0 * (a1 + 2 * a2 + 2 * a3 + a4),
            )
        else:
            u, v = self._implicit(u, v, h, steps=1 if scheme.endswith("linear") else NEWTON_STEPS)
        held = u * free + given
        v = np.where(free > 0.0, v, (held - self.old.numpy()) / h)
        self.u.assign(to_device(held, wp.vec3d))
        if self._kept is not None:
            self._kept.run()
            v = v + (self.u.numpy() - held) / h
        self.v.assign(to_device(v, wp.vec3d))

    def _keep_turning(self, before: State) -> None:
        """Springs pull along themselves: their forces turn nothing, and nothing is put right."""

    def _implicit(
        self, u: np.ndarray, v: np.ndarray, h: float, *, steps: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """M (v' - v) / h = f(u + h v', v'), solved for v'."""
        free = self.boundary.free
        given = (self.given.numpy() - u) * (1.0 - free) / h
        inside = np.flatnonzero(free.reshape(-1) > 0.0)
        m = np.repeat(self.masses, 3)[inside]
        beta, alpha = self.material.stiffness_damping, self.material.mass_damping
        new = v * free + given
        for _ in range(steps):
            r = ((v - new) / h + self._acceleration(u + h * new, new)) * free
            K = self.stiffness(u + h * new)[inside][:, inside]
            A = sparse.diags_array(m * (1.0 / h + alpha)) + (h + beta) * K
            change = np.zeros(new.size)
            change[inside] = splu(sparse.csc_matrix(A)).solve(m * r.reshape(-1)[inside])
            new = new + change.reshape(new.shape)
            if np.abs(change).max() <= NEWTON_TOLERANCE * max(np.abs(new).max(), 1e-300):
                break
        return u + h * new, new

    def elastic_energy(self, state: State) -> float:
        """Energy [J] of the springs."""
        x = self._places(state.u.numpy())
        i, j = self.springs.ends.T
        longer = np.linalg.norm(x[j] - x[i], axis=1) - self.springs.length
        return 0.5 * float(self.k @ (longer * longer))

    def residual(self, h: float) -> float:
        """Explicit schemes solve nothing; implicit Euler is solved to NEWTON_TOLERANCE."""
        return 0.0


def growth(scheme: str, z: np.ndarray) -> np.ndarray:
    """|R(z)| of an explicit scheme for y' = lambda y, z = h lambda."""
    terms = {"explicit-euler": 1, "runge-kutta-2": 2, "runge-kutta-4": 4}[scheme]
    out, term = np.ones_like(z), np.ones_like(z)
    for n in range(1, terms + 1):
        term = term * z / n
        out = out + term
    return np.abs(out)


def stable_step(scheme: str, frequency: float, alpha: float, beta: float) -> float:
    """Longest step [s] that lets no oscillation up to `frequency` [1/s] grow; 0: there is none.

    A mode w has lambda^2 + (alpha + beta w^2) lambda + w^2 = 0.
    """
    w = frequency * np.linspace(0.005, 1.0, 200)
    c = 0.5 * (alpha + beta * w * w)
    root = np.sqrt((c * c - w * w).astype(complex))
    modes = np.concatenate([-c + root, -c - root])
    low, high = 0.0, 10.0 / frequency
    for _ in range(60):
        middle = 0.5 * (low + high)
        if (growth(scheme, middle * modes) <= 1.0 + 1e-12).all():
            low = middle
        else:
            high = middle
    return low if low > 1e-6 / frequency else 0.0
