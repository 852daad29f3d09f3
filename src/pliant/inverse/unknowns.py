"""What may be recovered: how each unknown enters a scene, its transform, bounds and prior.

An optimiser moves free coordinates q; each unknown maps them to its value (log for positive
numbers, a logistic curve for Poisson's ratio, a chart of the sphere for a normal) and says in which
Direction the simulation's parameters move with q. A new unknown is a new subclass here.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from pliant.core.errors import BadInput
from pliant.dynamics.obstacles import Plane
from pliant.dynamics.scene import Scene, vector3
from pliant.dynamics.system import System
from pliant.inverse.direction import Direction

POISSON_RANGE = (-0.5, 0.4999)


@dataclass(frozen=True)
class Prior:
    """Gaussian on the value, or on its logarithm: value = mean +- sigma (times e^(+-sigma))."""

    mean: float
    sigma: float
    logarithmic: bool = False


@dataclass(frozen=True)
class Unknown:
    """One named quantity; labels name its components in tables."""

    name: str
    start: np.ndarray
    labels: tuple[str, ...]
    priors: tuple[Prior | None, ...] = field(default=())

    @property
    def size(self) -> int:
        """Number of free coordinates."""
        return len(self.labels)

    def coordinates(self, value: np.ndarray) -> np.ndarray:
        """q of a value."""
        return np.asarray(value, float).reshape(-1)

    def value(self, q: np.ndarray) -> np.ndarray:
        """Value at q, one number per label (in the units of the table)."""
        return np.asarray(q, float)

    def slope(self, q: np.ndarray) -> np.ndarray:
        """d value / d q per component, for error bars."""
        return np.ones(self.size)

    def apply(self, scene: Scene, q: np.ndarray) -> Scene:
        """The scene with this unknown set."""
        raise TypeError(self.name)

    def directions(self, system: System, q: np.ndarray) -> list[Direction]:
        """How the simulation's parameters move with each component of q."""
        raise TypeError(self.name)

    def pull(self, system: System, q: np.ndarray, dual: Direction) -> np.ndarray:
        """Gradient by q from the gradient by the parameters."""
        return np.array([dual.dot(d) for d in self.directions(system, q)])


def _zero(system: System) -> Direction:
    obstacles = len(system.contact.obstacles) if system.contact is not None else 0
    return Direction.zero(len(system.lam), system.node_count, obstacles)


class _Positive(Unknown):
    """A positive number, moved by its logarithm."""

    def coordinates(self, value):
        value = np.asarray(value, float).reshape(-1)
        if not (np.isfinite(value) & (value > 0.0)).all():
            raise BadInput(f"The start of {self.name} must be positive, not {value[0]:g}.")
        return np.log(value)

    def value(self, q):
        return np.exp(q)

    def slope(self, q):
        return np.exp(q)


class YoungsModulus(_Positive):
    """Uniform Young's modulus, or one per cell where the start is an array."""

    def apply(self, scene, q):
        E = np.exp(q)
        E = float(E[0]) if len(E) == 1 else E
        return replace(scene, material=replace(scene.material, youngs_modulus=E))

    def directions(self, system, q):
        if self.size > 1:
            raise BadInput("A stiffness field has too many unknowns for tangents: use L-BFGS.")
        d = _zero(system)
        d.lam, d.mu = system.lam.copy(), system.mu.copy()
        if system.contact is not None:
            d.contact_stiffness = system.contact.stiffness_per_modulus * float(np.exp(q[0]))
        return [d]

    def pull(self, system, q, dual):
        if self.size == 1:
            return super().pull(system, q, dual)
        gradient = dual.lam * system.lam + dual.mu * system.mu
        if system.contact is not None:
            share = system.contact.stiffness_per_modulus / self.size
            gradient = gradient + dual.contact_stiffness * share * np.exp(q)
        return gradient


class PoissonRatio(Unknown):
    """Poisson's ratio by a logistic curve over POISSON_RANGE."""

    def coordinates(self, value):
        lo, hi = POISSON_RANGE
        s = (np.asarray(value, float).reshape(-1) - lo) / (hi - lo)
        if not ((s > 0.0) & (s < 1.0)).all():
            raise BadInput(f"The start of poisson_ratio must lie in {POISSON_RANGE}.")
        return np.log(s / (1.0 - s))

    def value(self, q):
        lo, hi = POISSON_RANGE
        return lo + (hi - lo) / (1.0 + np.exp(-q))

    def slope(self, q):
        lo, hi = POISSON_RANGE
        s = 1.0 / (1.0 + np.exp(-q))
        return (hi - lo) * s * (1.0 - s)

    def apply(self, scene, q):
        nu = float(self.value(q)[0])
        return replace(scene, material=replace(scene.material, poisson_ratio=nu))

    def directions(self, system, q):
        nu, slope = float(self.value(q)[0]), float(self.slope(q)[0])
        E = system.mu * 2.0 * (1.0 + nu)
        d = _zero(system)
        d.lam = slope * E * (1 + 2 * nu**2) / ((1 + nu) ** 2 * (1 - 2 * nu) ** 2)
        d.mu = -slope * E / (2.0 * (1 + nu) ** 2)
        return [d]


class Density(_Positive):
    """Uniform density."""

    def apply(self, scene, q):
        return replace(scene, material=replace(scene.material, density=float(np.exp(q[0]))))

    def directions(self, system, q):
        d = _zero(system)
        d.mass = system.mass_host.copy()
        return [d]


class Damping(_Positive):
    """A Rayleigh coefficient: mass_damping or stiffness_damping."""

    def apply(self, scene, q):
        return replace(scene, material=replace(scene.material, **{self.name: float(np.exp(q[0]))}))

    def directions(self, system, q):
        d = _zero(system)
        setattr(d, self.name, float(np.exp(q[0])))
        return [d]


class Gravity(Unknown):
    """The gravity vector."""

    def apply(self, scene, q):
        return replace(scene, gravity=tuple(float(c) for c in q))

    def directions(self, system, q):
        out = []
        for axis in range(self.size):
            d = _zero(system)
            d.gravity[axis] = 1.0
            out.append(d)
        return out


class GroundNormal(Unknown):
    """Normal of the first plane: n = normalised(start + q1 t1 + q2 t2), t1, t2 tangents."""

    def _frame(self):
        n = np.zeros(3)
        n[: len(self.start)] = self.start / np.linalg.norm(self.start)
        helper = np.eye(3)[np.argmin(np.abs(n))]
        t1 = np.cross(helper, n)
        t1 /= np.linalg.norm(t1)
        return n, t1, np.cross(n, t1)

    def coordinates(self, value):
        n, t1, t2 = self._frame()
        v = vector3("ground_normal", value)
        along = v @ n
        if along <= 0.0:
            raise BadInput("ground_normal lies more than 90 degrees from its start.")
        return np.array([v @ t1, v @ t2]) / along

    def normal(self, q: np.ndarray) -> np.ndarray:
        """The unit normal at q."""
        n, t1, t2 = self._frame()
        m = n + q[0] * t1 + q[1] * t2
        return m / np.linalg.norm(m)

    def apply(self, scene, q):
        plane = _first_plane(scene)
        moved = replace(scene.obstacles[plane], normal=tuple(self.normal(q)))
        return _with_obstacle(scene, plane, moved)

    def directions(self, system, q):
        n0, t1, t2 = self._frame()
        m = n0 + q[0] * t1 + q[1] * t2
        length = np.linalg.norm(m)
        n = m / length
        out = []
        for t in (t1, t2):
            d = _zero(system)
            d.normal[_first_plane(system.scene)] = (t - n * (n @ t)) / length
            out.append(d)
        return out


class GroundOffset(Unknown):
    """Offset of the first plane along its normal."""

    def apply(self, scene, q):
        plane = _first_plane(scene)
        return _with_obstacle(scene, plane, replace(scene.obstacles[plane], offset=float(q[0])))

    def directions(self, system, q):
        d = _zero(system)
        d.offset[_first_plane(system.scene)] = 1.0
        return [d]


class ContactStiffness(_Positive):
    """Stiffness of the contact springs."""

    def apply(self, scene, q):
        return replace(scene, contact=replace(scene.contact, stiffness=float(np.exp(q[0]))))

    def directions(self, system, q):
        d = _zero(system)
        d.contact_stiffness = float(np.exp(q[0]))
        return [d]


class InitialMotion(Unknown):
    """initial_velocity or initial_spin."""

    def apply(self, scene, q):
        return replace(scene, **{self.name: tuple(float(c) for c in q)})

    def directions(self, system, q):
        out = []
        for axis in range(self.size):
            unit = np.zeros(3)
            unit[axis] = 1.0
            d = _zero(system)
            if self.name == "initial_velocity":
                d.velocity[:] = unit
            else:
                d.velocity[:] = np.cross(unit, system.arms())
            d.velocity *= system.boundary.free
            out.append(d)
        return out


def _first_plane(scene: Scene) -> int:
    for k, o in enumerate(scene.obstacles):
        if isinstance(o, Plane):
            return k
    raise BadInput("The ground is unknown, but the scene has no plane: add obstacles=[Plane()].")


def _with_obstacle(scene: Scene, index: int, obstacle) -> Scene:
    obstacles = list(scene.obstacles)
    obstacles[index] = obstacle
    return replace(scene, obstacles=tuple(obstacles))


KINDS = {
    "youngs_modulus": YoungsModulus,
    "poisson_ratio": PoissonRatio,
    "density": Density,
    "mass_damping": Damping,
    "stiffness_damping": Damping,
    "gravity": Gravity,
    "ground_normal": GroundNormal,
    "ground_offset": GroundOffset,
    "contact_stiffness": ContactStiffness,
    "initial_velocity": InitialMotion,
    "initial_spin": InitialMotion,
}
"""Names that `reconstruct` accepts."""


def make_unknown(name: str, start, scene: Scene) -> Unknown:
    """An unknown by its name and start value."""
    if name not in KINDS:
        import difflib

        near = difflib.get_close_matches(name, KINDS, n=1)
        hint = f" Did you mean '{near[0]}'?" if near else f" Known: {', '.join(KINDS)}."
        raise BadInput(f"There is no unknown called '{name}'.{hint}")
    value = np.atleast_1d(np.asarray(start, float))
    if not np.isfinite(value).all():
        raise BadInput(f"The start of {name} must be finite.")
    if name == "ground_normal":
        labels = ("ground_normal.1", "ground_normal.2")
    elif name in ("gravity", "initial_velocity"):
        value = value[: scene.dim]
        labels = tuple(f"{name}.{a}" for a in "xyz"[: scene.dim])
    elif name == "initial_spin":
        labels = tuple(f"{name}.{a}" for a in "xyz")
    elif len(value) > 1:
        labels = tuple(f"{name}[{i}]" for i in range(len(value)))
    else:
        labels = (name,)
    return KINDS[name](name, value, labels)


@dataclass(frozen=True)
class UnknownSet:
    """All unknowns of a fit, as one vector q."""

    members: tuple[Unknown, ...]

    @property
    def labels(self) -> list[str]:
        """One per component of q."""
        return [label for m in self.members for label in m.labels]

    def start(self) -> np.ndarray:
        """q of the start values."""
        return np.concatenate([m.coordinates(m.start) for m in self.members])

    def split(self, q: np.ndarray) -> list[np.ndarray]:
        """The part of q that belongs to each member."""
        cuts = np.cumsum([m.size for m in self.members])[:-1]
        return np.split(q, cuts)

    def values(self, q: np.ndarray) -> np.ndarray:
        """Values, one per component."""
        return np.concatenate(
            [m.value(p) for m, p in zip(self.members, self.split(q), strict=True)]
        )

    def slopes(self, q: np.ndarray) -> np.ndarray:
        """d value / d q, one per component."""
        return np.concatenate(
            [m.slope(p) for m, p in zip(self.members, self.split(q), strict=True)]
        )

    def apply(self, scene: Scene, q: np.ndarray) -> Scene:
        """The scene with all unknowns set."""
        for m, p in zip(self.members, self.split(q), strict=True):
            scene = m.apply(scene, p)
        return scene

    def directions(self, system: System, q: np.ndarray) -> list[Direction]:
        """One Direction per component."""
        return [
            d
            for m, p in zip(self.members, self.split(q), strict=True)
            for d in m.directions(system, p)
        ]

    def pull(self, system: System, q: np.ndarray, dual: Direction) -> np.ndarray:
        """Gradient by q."""
        return np.concatenate(
            [m.pull(system, p, dual) for m, p in zip(self.members, self.split(q), strict=True)]
        )
