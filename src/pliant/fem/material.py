"""Isotropic linear elastic material: uniform, by region or a value per cell; its branches."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from pliant.core.errors import BadInput
from pliant.fem.material_regions import NUMBERS, MaterialRegion, composed, owners

if TYPE_CHECKING:
    from pliant.fem.bodies.body import Body

Value = float | np.ndarray

MOST_CONTRAST = 1e12
"""Between the cells of a body: of more, double precision keeps nothing of the softest."""


@dataclass(frozen=True)
class Branch:
    """A Maxwell element beside the elastic response: a spring [Pa] that relaxes in a time [s].

    Held at a strain, a body with branches relaxes as E + sum of modulus exp(-t / time), E the
    long-term modulus; Poisson's ratio is that of the body throughout.
    """

    modulus: float
    time: float

    def __post_init__(self):
        for name in ("modulus", "time"):
            _check(f"branch: {name}", getattr(self, name), lambda v: v > 0.0, "must be positive")
            object.__setattr__(self, name, float(getattr(self, name)))


@dataclass(frozen=True)
class Material:
    """Young's modulus [Pa], Poisson's ratio [1], density [kg/m^3], Rayleigh damping.

    The damping matrix is D = mass_damping M + stiffness_damping K (seed 000, eq. 2.6.1), [1/s] and
    [s]; a mode of angular frequency w decays with ratio (mass_damping / w + stiffness_damping w)/2.
    Modulus, ratio and density may be arrays with a value for every cell.
    branches: a generalised Maxwell (Prony) element; youngs_modulus is then the long-term one. To a
    small strain of angular frequency w the body answers with the storage modulus
    E + sum E_i (w t_i)^2 / (1 + (w t_i)^2) and the loss modulus sum E_i w t_i / (1 + (w t_i)^2).
    regions: parts of the body that are made of something else (fem.material_regions).
    """

    youngs_modulus: Value = 2000.0
    poisson_ratio: Value = 0.3
    density: Value = 1.0
    mass_damping: float = 0.0
    stiffness_damping: float = 0.0
    branches: Sequence[Branch] = ()
    regions: Sequence[MaterialRegion] = ()

    def __post_init__(self):
        object.__setattr__(self, "regions", tuple(self.regions))
        object.__setattr__(self, "branches", tuple(self.branches))
        for branch in self.branches:
            if not isinstance(branch, Branch):
                raise BadInput(
                    f"branches must be pl.Branch(modulus=..., time=...), not {branch!r}."
                )
        for name, (allowed, demand) in _DEMANDS.items():
            _check(name, getattr(self, name), allowed, demand)
        _check_contrast("youngs_modulus", self.youngs_modulus)
        _check_contrast("density", self.density)
        for i, region in enumerate(self.regions):
            if not isinstance(region, MaterialRegion):
                raise BadInput(f"regions must be pl.MaterialRegion(shape, ...), not {region!r}.")
            for name, (allowed, demand) in _DEMANDS.items():
                if (value := getattr(region, name)) is not None:
                    _check_one(f"regions[{i}].{name}", value, allowed, demand)
        _check("mass_damping", self.mass_damping, lambda v: v >= 0.0, "must not be negative")
        _check(
            "stiffness_damping", self.stiffness_damping, lambda v: v >= 0.0, "must not be negative"
        )

    def on(self, body: "Body") -> "Material":
        """The same without regions: modulus, ratio and density of every cell where they differ."""
        if not self.regions:
            return self
        given = {n for n in NUMBERS if any(getattr(r, n) is not None for r in self.regions)}
        cells = {
            name: composed(
                owners(body, self.regions, name),
                per_cell(name, getattr(self, name), len(body.cells)),
                [getattr(region, name) for region in self.regions],
            )
            for name in sorted(given)
        }
        return replace(self, regions=(), **cells)

    def lame(self, cell_count: int) -> tuple[np.ndarray, np.ndarray]:
        """lambda = E nu / ((1 + nu)(1 - 2 nu)) and mu = E / (2 (1 + nu)), one per cell [Pa]."""
        E = per_cell("youngs_modulus", self.youngs_modulus, cell_count)
        nu = per_cell("poisson_ratio", self.poisson_ratio, cell_count)
        return E * nu / ((1.0 + nu) * (1.0 - 2.0 * nu)), E / (2.0 * (1.0 + nu))

    def densities(self, cell_count: int) -> np.ndarray:
        """Density of every cell [kg/m^3]."""
        return per_cell("density", self.density, cell_count)

    def with_damping_ratios(
        self, *, frequencies: tuple[float, float], ratios: tuple[float, float]
    ) -> "Material":
        """The same with Rayleigh coefficients that give two damping ratios at two frequencies [Hz].

        Solves (alpha / w_i + beta w_i) / 2 = ratio_i for i = 1, 2.
        """
        w = 2.0 * np.pi * np.asarray(frequencies, float)
        if not (w > 0.0).all() or w[0] == w[1]:
            raise BadInput("Damping ratios need two different positive frequencies.")
        system = np.stack([0.5 / w, 0.5 * w], axis=1)
        alpha, beta = np.linalg.solve(system, np.asarray(ratios, float))
        if alpha < 0.0 or beta < 0.0:
            raise BadInput(
                f"Damping ratios {tuple(ratios)} at {tuple(frequencies)} Hz need a negative "
                "Rayleigh coefficient: bring the two ratios closer to each other."
            )
        return replace(self, mass_damping=float(alpha), stiffness_damping=float(beta))


def per_cell(name: str, value: Value, count: int) -> np.ndarray:
    """A number or an array of `count` numbers as an array of `count`."""
    array = np.asarray(value, float)
    if array.ndim == 0:
        return np.full(count, float(array))
    if array.shape != (count,):
        raise BadInput(
            f"{name} has shape {array.shape}; it must be one number or one for each of the "
            f"{count} cells."
        )
    return array


_DEMANDS = {
    "youngs_modulus": (lambda v: v > 0.0, "must be positive"),
    "poisson_ratio": (
        lambda v: (v > -1.0) & (v < 0.5),
        "must lie between -1 and 0.5, both excluded (0.5 is incompressible: try 0.49)",
    ),
    "density": (lambda v: v > 0.0, "must be positive"),
}
"""What the numbers of a body or a region must be."""


def _check_contrast(name: str, value: Value) -> None:
    array = np.asarray(value, float)
    if array.ndim and array.size and array.max() > MOST_CONTRAST * array.min() > 0.0:
        raise BadInput(
            f"{name} goes from {array.min():g} to {array.max():g}, more than double precision can "
            "tell apart; bring the cells closer to each other."
        )


def _check_one(name: str, value: Value, allowed, demand: str) -> None:
    if np.ndim(value) != 0:
        raise BadInput(f"{name} must be one number, not {value!r}.")
    _check(name, value, allowed, demand)


def _check(name: str, value: Value, allowed, demand: str) -> None:
    try:
        array = np.asarray(value, float)
    except (TypeError, ValueError):
        raise BadInput(f"{name} must be a number, not {value!r}.") from None
    bad = ~(np.isfinite(array) & allowed(array))
    if bad.any():
        place = "" if array.ndim == 0 else f" (cell {int(np.argmax(bad))})"
        worst = array if array.ndim == 0 else array[bad][0]
        raise BadInput(f"{name} = {float(worst):g}{place} {demand}.")
