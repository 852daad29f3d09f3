"""A test machine's specimen of a law: nominal stress over stretch, with its derivatives.

The principal stretches are (l, m, t): l is what the machine pulls, t the direction without stress.

    uniaxial     m = t      a strip, sides free
    equibiaxial  m = l      a sheet or a bubble, pulled alike along two axes
    pure shear   m = 1      a wide strip, whose width cannot shrink (planar tension)

Incompressible, t = 1 / (l m), and the pressure that keeps the volume follows from the free side:
P = psi_1 - psi_3 t / l. A term U(J) of the energy falls out. Compressible, t is the root of
psi_3(l, m, t) = 0, and P = psi_1.

Stresses and slopes are derived from the law's own recorded energy (fem.laws.expression), so that a
user's law has a specimen too. Other than fem.laws.curves, which checks one law with numbers, this
takes arrays of parameters (a batch of laws) and points of several loadings at once, and
differentiates by all of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from pliant.core.errors import BadInput
from pliant.fem.laws.expression import evaluate, gradient, variable
from pliant.fem.laws.expression_program import Program, compiled_program
from pliant.fem.laws.law import Energy

LOADINGS = ("uniaxial", "equibiaxial", "pure-shear")

MIDDLE_POWER = (-0.5, 1.0, 0.0)
"""m = l^a where the volume is kept; then t = l^(-1 - a)."""

MIDDLE_BY = ((0.0, 1.0), (1.0, 0.0), (0.0, 0.0))
"""d m / d l and d m / d t where the sides are free."""

ROOT_STEPS = 60
"""Newton steps for the free stretch; 4 to 8 are usual."""

ROOT_TOLERANCE = 1e-13
"""Relative step at which the free stretch has settled."""

SHORTEST, LONGEST = 0.5, 2.0
"""Bounds on the factor by which one Newton step changes the free stretch."""


@dataclass(frozen=True)
class Response:
    """stress [Pa], slope d stress / d stretch [Pa], by: d stress / d parameter, name by name;
    free: the stretch of the free direction. Arrays as the stretches and parameters broadcast.
    """

    stress: np.ndarray
    slope: np.ndarray
    by: dict[str, np.ndarray]
    free: np.ndarray


@dataclass(frozen=True)
class _Record:
    """psi_1 and psi_3 with their slopes by the three stretches and by the parameters."""

    parameters: tuple[str, ...]
    whole: Program
    side: Program


@lru_cache(maxsize=64)
def _record(energy: Energy) -> _Record:
    if not energy.isotropic:
        raise BadInput(
            f"The law '{energy.name}' depends on the direction; a test machine's curve is fitted "
            "by isotropic laws."
        )
    s = [variable(f"s{i}") for i in range(3)]
    p = [variable(f"p_{n}") for n in energy.parameters]
    first, _, third = gradient(energy.principal, s)
    whole = [first, third, *gradient(first, [*s, *p]), *gradient(third, [*s, *p])]
    by_side = gradient(third, s)
    side = [third, by_side[1], by_side[2]]
    return _Record(energy.parameters, compiled_program(whole), compiled_program(side))


@dataclass(frozen=True, eq=False)
class Specimen:
    """One energy; `incompressible`: whether the volume is held."""

    energy: Energy
    incompressible: bool = True

    def respond(self, loading: Any, stretch: Any, parameters: Mapping[str, Any]) -> Response:
        """The response at stretches (n,), with parameters that broadcast against them.

        loading: one of LOADINGS, or their places in it, one for each stretch.
        """
        kind = loading_number(loading) if isinstance(loading, str) else np.asarray(loading)
        record = _record(self.energy)
        l = np.asarray(stretch, float)
        given = {f"p_{n}": parameters[n] for n in record.parameters}
        shape = np.broadcast_shapes(l.shape, *(np.shape(v) for v in given.values()))
        a = np.array(MIDDLE_POWER)[kind]
        with np.errstate(all="ignore"):  # a law may end at a wall; the caller sees nan
            m, t = l**a, l ** (-1.0 - a)
            if not self.incompressible:
                t = self._free_stretch(record, kind, l, t, given, shape)
                m = _middle(kind, l, t)
            values = record.whole({"s0": l, "s1": m, "s2": t, **given})
            count = 3 + len(given)
            P1, P3, by1, by3 = values[0], values[1], values[2 : 2 + count], values[2 + count :]
            if self.incompressible:
                r = t / l
                stress = P1 - r * P3
                d = [x - r * y for x, y in zip(by1, by3, strict=True)]
                # along l, with m = l^a and t = l^(-1-a); r = l^(-2-a) changes too
                turn = (2.0 + a) * r / l * P3
                slope = d[0] + d[1] * a * m / l - d[2] * (1.0 + a) * t / l + turn
            else:
                stress = P1
                ml, mt = np.array(MIDDLE_BY)[kind].T
                lever = (by1[1] * mt + by1[2]) / (by3[1] * mt + by3[2])
                d = [x - lever * y for x, y in zip(by1, by3, strict=True)]
                slope = d[0] + d[1] * ml
        by = {n: np.broadcast_to(v, shape) for n, v in zip(record.parameters, d[3:], strict=True)}
        wide = [np.broadcast_to(x, shape) for x in (stress, slope, t)]
        return Response(wide[0], wide[1], by, wide[2])

    def _free_stretch(self, record: _Record, kind, l, start, given: dict, shape) -> np.ndarray:
        """Root of the free side's stress by Newton's method in ln t, from the volume kept.

        The stress there rises with t for a sound law; where it does not, or the law ends at a wall,
        the step is cut. nan where no root is found.
        """
        _, mt = np.array(MIDDLE_BY)[kind].T

        def condition(t):
            f, by_m, by_t = record.side({"s0": l, "s1": _middle(kind, l, t), "s2": t, **given})
            return np.broadcast_to(f, shape), np.broadcast_to(by_m * mt + by_t, shape)

        t = np.broadcast_to(start, shape).astype(float)
        f, slope = condition(t)
        for _ in range(ROOT_STEPS):
            ratio = np.clip(1.0 - f / (t * np.abs(slope)), SHORTEST, LONGEST)
            new = np.where(np.isfinite(ratio), t * ratio, t)
            f_new, slope_new = condition(new)
            better = np.abs(f_new) <= np.abs(f)
            for _ in range(8):  # the size of the condition must fall
                if better.all():
                    break
                new = np.where(better, new, 0.5 * (new + t))
                f_new, slope_new = condition(new)
                better = np.abs(f_new) <= np.abs(f)
            moved = np.abs(new - t) > ROOT_TOLERANCE * t
            t = np.where(better, new, t)
            f, slope = np.where(better, f_new, f), np.where(better, slope_new, slope)
            if not (moved & better).any():
                break
        sound = np.abs(f) <= 1e-9 * np.maximum(np.abs(slope) * t, 1e-300)
        return np.where(sound, t, np.nan)


def loading_number(loading: str) -> int:
    """The place of a loading in LOADINGS."""
    if loading not in LOADINGS:
        raise BadInput(f"loading must be one of {', '.join(LOADINGS)}, not '{loading}'.")
    return LOADINGS.index(loading)


def _middle(kind: Any, l: np.ndarray, t: np.ndarray) -> np.ndarray:
    """m = t, l or 1."""
    return np.where(kind == 0, t, np.where(kind == 1, l, 1.0))


def unseen_parameters(energy: Energy, loadings: tuple[str, ...], incompressible: bool) -> list[str]:
    """Parameters that no stress of these loadings depends on, tried at fixed stretches and values.

    Incompressible specimens do not see the terms of the volume.
    """
    rng = np.random.default_rng(11)
    starts = energy.starts(1.0, 0.3) if energy.starts is not None else {}
    base = {n: starts.get(n, 0.6 + 0.1 * k) for k, n in enumerate(energy.parameters)}
    stretch = np.array([0.8, 1.15, 1.4])
    size: dict[str, float] = dict.fromkeys(energy.parameters, 0.0)
    for loading in loadings:
        for _ in range(2):
            p = {n: v * rng.uniform(0.8, 1.2) for n, v in base.items()}
            response = Specimen(energy, incompressible).respond(loading, stretch, p)
            scale = float(np.nanmax(np.abs(response.stress))) or 1.0
            for n, slope in response.by.items():
                change = np.nanmax(np.abs(slope * p[n])) / scale
                size[n] = max(size[n], float(np.nan_to_num(change)))
    return [n for n, change in size.items() if change < 1e-12]


def initial_shear_modulus(energy: Energy, values: Mapping[str, float]) -> tuple[float, dict]:
    """mu = (psi_11 - psi_12) / 2 at rest [Pa], and its slope by each parameter."""
    s = [variable(f"s{i}") for i in range(3)]
    first = gradient(energy.principal, s)[0]
    by_first, by_second, _ = gradient(first, s)
    mu = (by_first - by_second) * 0.5
    slopes = gradient(mu, [variable(f"p_{n}") for n in energy.parameters])
    inputs = {f"p_{n}": np.float64(v) for n, v in values.items()}
    inputs |= {f"s{i}": np.float64(1.0) for i in range(3)}
    found = [float(x) for x in evaluate([mu, *slopes], inputs)]
    return found[0], dict(zip(energy.parameters, found[1:], strict=True))
