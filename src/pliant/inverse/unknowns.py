"""What may be recovered, by name, and all unknowns of a fit as one vector with bounds and priors.

A new unknown is a new subclass of Unknown, entered in KINDS.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from pliant.core.errors import BadInput
from pliant.dynamics.scene import Scene
from pliant.dynamics.system import System
from pliant.inverse.direction import Direction
from pliant.inverse.law_unknowns import PREFIX, make_law_unknown
from pliant.inverse.material_unknowns import (
    Damping,
    DampingRatios,
    Density,
    PoissonRatio,
    YoungsModulus,
    damping_frequencies,
)
from pliant.inverse.priors import Prior
from pliant.inverse.scene_unknowns import (
    ContactStiffness,
    Gravity,
    GravityDirection,
    GroundNormal,
    GroundOffset,
    InitialMotion,
)
from pliant.inverse.unknown import OnSphere, Unknown

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

    def sizes(self, q: np.ndarray, scene: Scene, duration: float) -> np.ndarray:
        """What the error bar of each component is judged by."""
        parts = zip(self.members, self.split(q), strict=True)
        return np.concatenate([m.size_of(m.value(p), scene, duration) for m, p in parts])

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

    def along(self, system: System, q: np.ndarray, dq: np.ndarray) -> Direction:
        """The Direction of a change dq of all components."""
        parts = [
            m.along(system, p, d)
            for m, p, d in zip(self.members, self.split(q), self.split(dq), strict=True)
        ]
        # the directions of a law's parameters have entries that the others lack
        parts.sort(key=lambda d: -len(d.__dataclass_fields__))
        for part in parts[1:]:
            parts[0].add(1.0, part)
        return parts[0]

    def pull(self, system: System, q: np.ndarray, dual: Direction) -> np.ndarray:
        """Gradient by q."""
        return np.concatenate(
            [m.pull(system, p, dual) for m, p in zip(self.members, self.split(q), strict=True)]
        )
