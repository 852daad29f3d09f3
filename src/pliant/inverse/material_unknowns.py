"""Unknowns of the material: moduli, density, damping."""

from dataclasses import dataclass, field, replace

import numpy as np

from pliant.core.errors import BadInput, SolverFailure
from pliant.dynamics.scene import Scene
from pliant.inverse.unknown import Positive, Unknown, zero_direction

POISSON_RANGE = (-0.5, 0.4999)


class YoungsModulus(Positive):
    """Uniform Young's modulus, or one per cell where the start is an array."""

    def apply(self, scene, q):
        E = np.exp(q)
        E = float(E[0]) if len(E) == 1 else E
        return replace(scene, material=replace(scene.material, youngs_modulus=E))

    def directions(self, system, q):
        if self.size > 1:
            return [self.along(system, q, unit) for unit in np.eye(self.size)]
        d = zero_direction(system)
        d.lam, d.mu = system.lam.copy(), system.mu.copy()
        if system.contact is not None:
            d.contact_stiffness = system.contact.stiffness_per_modulus * float(np.exp(q[0]))
        return [d]

    def along(self, system, q, dq):
        if self.size == 1:
            return super().along(system, q, dq)
        d = zero_direction(system)
        d.lam, d.mu = system.lam * dq, system.mu * dq
        if system.contact is not None:
            change = float(np.mean(np.exp(q) * dq))
            d.contact_stiffness = system.contact.stiffness_per_modulus * change
        return d

    def pull(self, system, q, dual):
        if self.size == 1:
            return super().pull(system, q, dual)
        gradient = dual.lam * system.lam + dual.mu * system.mu
        if system.contact is not None:
            share = system.contact.stiffness_per_modulus / self.size
            gradient = gradient + dual.contact_stiffness * share * np.exp(q)
        return gradient


@dataclass(frozen=True)
class SegmentedModulus(Positive):
    """One Young's modulus for each of a few parts of the body.

    segment: (cells,) the part that each cell belongs to, 0 to parts - 1.
    """

    segment: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64), repr=False)

    def apply(self, scene, q):
        E = np.exp(q)[self.segment]
        return replace(scene, material=replace(scene.material, youngs_modulus=E))

    def directions(self, system, q):
        out = []
        share = np.bincount(self.segment, minlength=self.size) / len(self.segment)
        for k, E in enumerate(np.exp(q)):
            own = self.segment == k
            d = zero_direction(system)
            d.lam, d.mu = np.where(own, system.lam, 0.0), np.where(own, system.mu, 0.0)
            if system.contact is not None:  # follows the mean modulus
                d.contact_stiffness = system.contact.stiffness_per_modulus * share[k] * float(E)
            out.append(d)
        return out


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

    def size_of(self, value, scene, duration):
        return np.maximum(np.abs(value), 0.1)

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
