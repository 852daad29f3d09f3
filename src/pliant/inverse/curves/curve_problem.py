"""Residuals of a law against a test machine's curves, and the bounds of its parameters.

Each point's residual is (law - measured) / sigma. The error is either relative, sigma = e |stress|
but never less than e times FLOOR of the curve's largest stress (or the points near the rest, where
digits end, would decide), or absolute, sigma = e everywhere.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pliant.core.errors import BadInput
from pliant.fem.laws.law import Energy
from pliant.fem.laws.specimen import Specimen, loading_number, unseen_parameters
from pliant.observe.curve_files import Curve, stress_unit

FLOOR = 0.05
"""Share of a curve's largest stress below which a relative error grows no smaller."""

SIGNED = {
    "yeoh": ("c2", "c3"),
    "polynomial": ("c01", "c20", "c11", "c02"),
}  # fmt: skip
"""Parameters that are negative in sound laws too: an S-shaped curve has Yeoh's c2 < 0. All others
are positive, but those of Ogden's terms, of which mu_k and alpha_k have one sign."""

LARGEST_EXPONENT = 60.0
"""Bound of a parameter without a unit: powers beyond overflow at the stretches of rubber."""

LARGEST_MODULUS = 1e5
"""Bound of a parameter in Pa, times the largest stress. A bulk modulus that runs up to it says that
the volume was kept."""

LARGEST_COUNT = 1e4
"""Bound of a positive parameter without a unit: a number of links, say."""

SMALLEST = 1e-12
"""Bound below of what keeps a sign; in Pa, times the largest stress."""


@dataclass(frozen=True)
class StressError:
    """The error of a measured stress: `size` is a share of it (relative) or in Pa."""

    size: float
    relative: bool
    stated: bool = True

    def sigma(self, curve: Curve) -> np.ndarray:
        """Standard deviation [Pa] of each point."""
        if not self.relative:
            return np.full(len(curve), self.size)
        floor = FLOOR * np.abs(curve.stress).max()
        return self.size * np.maximum(np.abs(curve.stress), floor)

    def __str__(self) -> str:
        if self.relative:
            text = (
                f"relative, {100.0 * self.size:g} % of each stress (at least of "
                f"{100.0 * FLOOR:g} % of the curve's largest)"
            )
        else:
            text = f"absolute, {self.size:g} Pa at every point"
        return text if self.stated else f"{text}; assumed"


def stress_error(error: float | str | None, units: str | None = None) -> StressError:
    """From "2%", "10 kPa", "0.01" (in `units`, else Pa) or a number [Pa]; None: 2 %, assumed."""
    if error is None:
        return StressError(0.02, relative=True, stated=False)
    match = re.fullmatch(r"\s*([-+.\deE]+?)\s*(%|[A-Za-z][\w/^²]*)?\s*", str(error))
    try:
        size, unit = float(match.group(1)), match.group(2)  # type: ignore[union-attr]
    except (AttributeError, ValueError):
        raise BadInput(
            f"error must be a share like 2% or a stress like 10kPa, not '{error}'."
        ) from None
    if not (np.isfinite(size) and size > 0.0):
        raise BadInput(f"error must be positive, not '{error}'.")
    if unit == "%":
        return StressError(0.01 * size, relative=True)
    return StressError(size * stress_unit(unit or units or "Pa"), relative=False)


@dataclass(frozen=True, eq=False)
class CurveProblem:
    """One energy against curves. signed: parameters that may be negative beside those of SIGNED."""

    energy: Energy
    curves: tuple[Curve, ...]
    error: StressError
    incompressible: bool = True
    signed: tuple[str, ...] = ()
    all_positive: bool = False

    @cached_property
    def specimen(self) -> Specimen:
        """The law in the machine."""
        return Specimen(self.energy, self.incompressible)

    @cached_property
    def used(self) -> list[np.ndarray]:
        """Which points of each curve count: not those at the rest length, where every law has no
        stress.
        """
        return [curve.stretch != 1.0 for curve in self.curves]

    def _joined(self, parts: list[np.ndarray]) -> np.ndarray:
        return np.concatenate([x[keep] for x, keep in zip(parts, self.used, strict=True)])

    @cached_property
    def loading(self) -> np.ndarray:
        """Kind of loading of every point, as places in LOADINGS."""
        return self._joined([np.full(len(c), loading_number(c.loading)) for c in self.curves])

    @cached_property
    def stretch(self) -> np.ndarray:
        """Stretch of every point."""
        return self._joined([c.stretch for c in self.curves])

    @cached_property
    def measured(self) -> np.ndarray:
        """Measured stress of every point."""
        return self._joined([c.stress for c in self.curves])

    @cached_property
    def sigma(self) -> np.ndarray:
        """Standard deviation of every point."""
        return self._joined([self.error.sigma(c) for c in self.curves])

    @cached_property
    def count(self) -> int:
        """Points that count."""
        return len(self.measured)

    @cached_property
    def scale(self) -> float:
        """Largest stress measured [Pa]."""
        return max(float(np.abs(c.stress).max()) for c in self.curves)

    @cached_property
    def unseen(self) -> list[str]:
        """Parameters that these specimens cannot show."""
        loadings = tuple(dict.fromkeys(c.loading for c in self.curves))
        return unseen_parameters(self.energy, loadings, self.incompressible)

    @cached_property
    def names(self) -> list[str]:
        """Parameters that are fitted."""
        return [n for n in self.energy.parameters if n not in self.unseen]

    def is_stress(self, name: str) -> bool:
        """Whether a parameter is in Pa; a user's parameter without a unit is taken to be."""
        return self.energy.units.get(name, "Pa") == "Pa"

    def partner(self, name: str) -> str | None:
        """The exponent alpha_k that a mu_k of Ogden's shares its sign with."""
        other = name.replace("mu", "alpha")
        return other if re.fullmatch(r"mu\d", name) and other in self.names else None

    def may_be_negative(self, name: str) -> bool:
        """Whether the sign of a parameter is free (those of Ogden's pairs are: together)."""
        if re.fullmatch(r"(mu|alpha)\d", name) and self.energy.name.startswith("ogden"):
            return True
        return not self.all_positive and (
            name in SIGNED.get(self.energy.name, ()) or name in self.signed
        )

    def has_sign(self, name: str) -> bool:
        """Whether a parameter keeps one sign, and is fitted by its logarithm."""
        return self.is_paired(name) or not self.may_be_negative(name)

    def is_paired(self, name: str) -> bool:
        """Whether a parameter is the mu_k or the alpha_k of one of Ogden's terms."""
        return self.partner(name) is not None or any(self.partner(m) == name for m in self.names)

    def largest(self, name: str) -> float:
        """Bound of a parameter's size."""
        if self.is_stress(name):
            return LARGEST_MODULUS * self.scale
        return LARGEST_EXPONENT if self.may_be_negative(name) else LARGEST_COUNT

    def responses(self, values: Mapping[str, Any]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Stresses (..., points) and their slopes by the parameters; values may be arrays (..., 1),
        one law a row.
        """
        full = {**dict.fromkeys(self.unseen, self.scale), **values}
        found = self.specimen.respond(self.loading, self.stretch, full)
        return found.stress, {n: found.by[n] for n in self.names}


class Coordinates:
    """Parameters as numbers that a solver moves freely: the logarithm of the size of those that
    keep a sign, values over the measured stress of those that do not. With powers of the stretch a
    modulus and its exponent trade off over many decades, along nearly a line in logarithms.
    """

    def __init__(self, problem: CurveProblem, start: Mapping[str, float]):
        self.problem = problem
        self.names = problem.names
        self.signed = np.array([not problem.has_sign(n) for n in self.names])
        self.sign = np.array([np.sign(start[n]) or 1.0 for n in self.names])
        self.unit = np.array([problem.scale if problem.is_stress(n) else 1.0 for n in self.names])
        top = np.array([problem.largest(n) for n in self.names])
        self.high = np.where(self.signed, top / self.unit, np.log(top))
        self.low = np.where(self.signed, -top / self.unit, np.log(SMALLEST * self.unit))
        values = np.array([start[n] for n in self.names])
        with np.errstate(divide="ignore"):
            x = np.where(self.signed, values / self.unit, np.log(np.abs(values)))
        self.start = np.clip(x, self.low, self.high)
        self._last: tuple[bytes, np.ndarray, np.ndarray] | None = None

    def values(self, x: np.ndarray) -> np.ndarray:
        """Parameters at a place."""
        return np.where(self.signed, x * self.unit, self.sign * np.exp(x))

    def rates(self, x: np.ndarray) -> np.ndarray:
        """d parameter / d coordinate."""
        return np.where(self.signed, self.unit, self.values(x))

    def at_bound(self, x: np.ndarray) -> np.ndarray:
        """Which coordinates ran into a bound."""
        near = np.where(self.signed, 1e-6 * self.high, 0.05)
        return (x - self.low <= near) | (self.high - x <= near)

    def residuals(self, x: np.ndarray) -> np.ndarray:
        """(law - measured) / sigma."""
        return self._at(x)[0]

    def jacobian(self, x: np.ndarray) -> np.ndarray:
        """Slopes (points, parameters) of the residuals by the coordinates."""
        return self._at(x)[1] * self.rates(x)

    def by_parameters(self, x: np.ndarray) -> np.ndarray:
        """Slopes (points, parameters) of the residuals by the parameters themselves."""
        return self._at(x)[1]

    def _at(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        key = x.tobytes()
        if self._last is None or self._last[0] != key:  # a solver asks for both at one place
            problem = self.problem
            stress, by = problem.responses(dict(zip(self.names, self.values(x), strict=True)))
            r = (stress - problem.measured) / problem.sigma
            J = np.stack([by[n] / problem.sigma for n in self.names], axis=1)
            self._last = (key, r, J)
        return self._last[1], self._last[2]
