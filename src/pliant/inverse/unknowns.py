"""What may be recovered, by name, and all unknowns of a fit as one vector with bounds and priors.

A new unknown is a new subclass of Unknown, entered in KINDS.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from pliant.core.errors import BadInput, SolverFailure
from pliant.dynamics.obstacles import Plane
from pliant.dynamics.scene import Scene
from pliant.dynamics.system import System
from pliant.inverse.direction import Direction
from pliant.inverse.law_unknowns import PREFIX, make_law_unknown
from pliant.inverse.priors import Prior
from pliant.inverse.unknown import OnSphere, Positive, Unknown, zero_direction

POISSON_RANGE = (-0.5, 0.4999)


class YoungsModulus(Positive):
    """Uniform Young's modulus, or one per cell where the start is an array."""

    def apply(self, scene, q):
        E = np.exp(q)
        E = float(E[0]) if len(E) == 1 else E
        return replace(scene, material=replace(scene.material, youngs_modulus=E))

    def directions(self, system, q):
        if self.size > 1:
            raise BadInput("A stiffness field has too many unknowns for tangents: use L-BFGS.")
        d = zero_direction(system)
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
        d = zero_direction(system)
        d.lam = slope * E * (1 + 2 * nu**2) / ((1 + nu) ** 2 * (1 - 2 * nu) ** 2)
        d.mu = -slope * E / (2.0 * (1 + nu) ** 2)
        return [d]


class Density(Positive):
    """Uniform density."""

    def apply(self, scene, q):
        return replace(scene, material=replace(scene.material, density=float(np.exp(q[0]))))

    def directions(self, system, q):
        d = zero_direction(system)
        d.mass = system.mass_host.copy()
        return [d]


class Damping(Positive):
    """A Rayleigh coefficient: mass_damping or stiffness_damping."""

    def apply(self, scene, q):
        return replace(scene, material=replace(scene.material, **{self.name: float(np.exp(q[0]))}))

    def directions(self, system, q):
        d = zero_direction(system)
        setattr(d, self.name, float(np.exp(q[0])))
        return [d]


class Gravity(Unknown):
    """The gravity vector."""

    def apply(self, scene, q):
        return replace(scene, gravity=tuple(float(c) for c in q))

    def directions(self, system, q):
        out = []
        for axis in range(self.size):
            d = zero_direction(system)
            d.gravity[axis] = 1.0
            out.append(d)
        return out


class GravityDirection(OnSphere):
    """Where gravity points; its strength stays the scene's."""

    def apply(self, scene, q):
        strength = float(np.linalg.norm(scene.gravity))
        return replace(scene, gravity=tuple(strength * self.normal(q)))

    def directions(self, system, q):
        strength = float(np.linalg.norm(system.scene.gravity))
        out = []
        for slope in self.normal_slopes(q):
            d = zero_direction(system)
            d.gravity = strength * slope
            out.append(d)
        return out


class DampingRatios(Positive):
    """Damping ratios of motions at `damping_frequencies`, in place of Rayleigh's coefficients.

    ratio_i = (alpha / w_i + beta w_i) / 2 with w = 2 pi f; the two ratios fix alpha and beta.
    """

    def _matrix(self, scene: Scene) -> np.ndarray:
        w = 2.0 * np.pi * np.asarray(damping_frequencies(scene))
        return np.linalg.inv(np.stack([0.5 / w, 0.5 * w], axis=1))

    def apply(self, scene, q):
        alpha, beta = self._matrix(scene) @ np.exp(q)
        if alpha < 0.0 or beta < 0.0:  # not a Rayleigh damping: an optimiser takes a shorter step
            raise SolverFailure(
                f"Damping ratios {np.exp(q[0]):.3g} and {np.exp(q[1]):.3g} need a negative "
                "Rayleigh coefficient: start with ratios closer to each other."
            )
        material = replace(
            scene.material, mass_damping=float(alpha), stiffness_damping=float(beta)
        )
        return replace(scene, material=material)

    def directions(self, system, q):
        by_ratio = self._matrix(system.scene) * np.exp(q)
        out = []
        for alpha, beta in by_ratio.T:
            d = zero_direction(system)
            d.mass_damping, d.stiffness_damping = float(alpha), float(beta)
            out.append(d)
        return out


def damping_frequencies(scene: Scene) -> tuple[float, float]:
    """Frequencies [Hz] at which `damping_ratios` are stated: periods of 100 and of 20 steps."""
    return 0.01 / scene.dt, 0.05 / scene.dt


class GroundNormal(OnSphere):
    """Normal of the first plane."""

    def apply(self, scene, q):
        plane = _first_plane(scene)
        moved = replace(scene.obstacles[plane], normal=tuple(self.normal(q)))
        return _with_obstacle(scene, plane, moved)

    def directions(self, system, q):
        out = []
        for slope in self.normal_slopes(q):
            d = zero_direction(system)
            d.normal[_first_plane(system.scene)] = slope
            out.append(d)
        return out


class GroundOffset(Unknown):
    """Offset of the first plane along its normal."""

    def apply(self, scene, q):
        plane = _first_plane(scene)
        return _with_obstacle(scene, plane, replace(scene.obstacles[plane], offset=float(q[0])))

    def directions(self, system, q):
        d = zero_direction(system)
        d.offset[_first_plane(system.scene)] = 1.0
        return [d]


class ContactStiffness(Positive):
    """Stiffness of the contact springs."""

    def apply(self, scene, q):
        return replace(scene, contact=replace(scene.contact, stiffness=float(np.exp(q[0]))))

    def directions(self, system, q):
        d = zero_direction(system)
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
            d = zero_direction(system)
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
    "damping_ratios": DampingRatios,
    "gravity": Gravity,
    "gravity_direction": GravityDirection,
    "ground_normal": GroundNormal,
    "ground_offset": GroundOffset,
    "contact_stiffness": ContactStiffness,
    "initial_velocity": InitialMotion,
    "initial_spin": InitialMotion,
}
"""Names that `reconstruct` accepts."""


def make_unknown(name: str, start, scene: Scene) -> Unknown:
    """An unknown by its name and start value."""
    if name.startswith(PREFIX):
        return make_law_unknown(name, start, scene)
    if name not in KINDS:
        import difflib

        near = difflib.get_close_matches(name, KINDS, n=1)
        hint = f" Did you mean '{near[0]}'?" if near else f" Known: {', '.join(KINDS)}."
        raise BadInput(f"There is no unknown called '{name}'.{hint}")
    value = np.atleast_1d(np.asarray(start, float))
    if not np.isfinite(value).all():
        raise BadInput(f"The start of {name} must be finite.")
    if name in ("ground_normal", "gravity_direction"):
        labels = tuple(f"{name}.{k + 1}" for k in range(scene.dim - 1))
    elif name == "damping_ratios":
        if len(value) != 2:
            raise BadInput("damping_ratios are two numbers, one for each frequency.")
        labels = tuple(f"damping_ratio@{f:.3g}Hz" for f in damping_frequencies(scene))
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
    """All unknowns of a fit, as one vector q.

    priors and bounds: by label, on the values in the units of the table.
    """

    members: tuple[Unknown, ...]
    priors: Mapping[str, Prior] = field(default_factory=dict)
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def __post_init__(self):
        for kind, given in (("prior", self.priors), ("bound", self.bounds)):
            for label in given:
                if label not in self.labels:
                    raise BadInput(
                        f"There is a {kind} on '{label}', which is not unknown here; "
                        f"unknown are {', '.join(self.labels[:12])}."
                    )
        lower, upper = self.limits()
        start = self.start()
        outside = np.flatnonzero((start < lower) | (start > upper) | (lower >= upper))
        if len(outside):
            label = self.labels[outside[0]]
            raise BadInput(
                f"The bounds of {label}, {tuple(self.bounds[label])}, must enclose its start."
            )

    def limits(self) -> tuple[np.ndarray, np.ndarray]:
        """Lowest and highest q, infinite where there is no bound."""
        lower, upper = [], []
        for m in self.members:
            for i, label in enumerate(m.labels):
                ends = [-np.inf, np.inf]
                if label in self.bounds:
                    if isinstance(m, OnSphere):
                        raise BadInput(f"{label}: a direction cannot be bounded; give a prior.")
                    for side, value in enumerate(self.bounds[label]):
                        if np.isfinite(value):
                            at = np.array(m.start, float)
                            at[i] = value
                            ends[side] = float(m.coordinates(at)[i])
                lower.append(ends[0])
                upper.append(ends[1])
        return np.array(lower), np.array(upper)

    def prior_terms(self, q: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Cost of the priors, its gradient (p,) and the diagonal of its Hessian (p,), by q."""
        g, h = np.zeros(len(q)), np.zeros(len(q))
        cost = 0.0
        if self.priors:
            values, slopes = self.values(q), self.slopes(q)
            for i, label in enumerate(self.labels):
                if label in self.priors:
                    r, by_value = self.priors[label].residual(values[i])
                    by_q = by_value * slopes[i]
                    cost += 0.5 * r * r
                    g[i], h[i] = r * by_q, by_q * by_q
        return cost, g, h

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
