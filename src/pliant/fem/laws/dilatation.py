"""A law that sees the mean change of volume of its cell, so that it does not lock near nu = 1/2.

The energy of a cell with points q of weights w_q, J_q = det F_q, V = sum w_q, is

    E = sum_q w_q (psi(F_q) - U(J_q)) + V U(Jbar),    Jbar = sum_q w_q J_q / V,

after the mean dilatation of Nagtegaal, Parks and Rice (1974) and Simo, Taylor and Pister (1985).
Where all J_q are equal it is V psi exactly, whatever U is; so U may be chosen for its manners:

    U(J) = lambda z^2 / 2 + D3 z^3 / 6 + D4 z^4 / 24,
    z = r (x - 2/5 x^5 + 1/9 x^9),   x = (J - 1) / r between -1 and 1,   r = RANGE.

D(J) = psi(J^(1/3) I) is the law's own energy of a pure dilation, D3 and D4 its third and fourth
slope at J = 1. The second one, the bulk modulus, gives way to lambda: at small strain the cell is
the one of fem.forces.cell_forces, whose lambda multiplies the mean dilatation, and each point keeps
2/3 mu of its own against a change of volume. D itself would be a bad U: its cube roots have no
slope at J = 0, where inverted cells pass; log J has no value there; without ln J_q a point would
slip through J_q = 0 unhindered while its cell's mean stays positive; a wall or a kink of psi would
be met at a second place. z has the slope (1 - x^4)^2, is J - 1 to 1e-3 where |J - 1| < 0.1, and
stops at |J - 1| = r: far from the rest, where nothing locks, U is a constant, and a law that
recovers from inversion does so as without U.

At a point, psi - U(J) + P J has the stress, with P = U'(Jbar) one number a cell, and the tangent of
the cell but for the rank-one V U''(Jbar) b b^T, b_a = d Jbar / d x_a (fem.forces.mean_dilatation).
"""

from functools import cached_property, lru_cache

import numpy as np

from pliant.fem.laws.expression import (
    Expression,
    constant,
    evaluate,
    gradient,
    maximum,
    minimum,
    power,
    variable,
)
from pliant.fem.laws.invariants import det
from pliant.fem.laws.law import Energy, substitute

RANGE = 0.5
"""|J - 1| beyond which U is a constant: larger than what a nearly incompressible body shows, small
enough that U and its polynomial in z follow D, and that no cell about to invert is spoken for."""

SLOPES = ("_volume2", "_volume3", "_volume4")
"""lambda, D3 and D4 [Pa], columns of the parameter table behind the law's own; no parameter of
a user begins with an underscore."""

PRESSURE = "_pressure"
"""P [Pa], the last column."""

LARGEST_SLOPE = 1e6
"""Slopes of U, for parameters of the size of one, beyond which psi has a kink at rest and no U."""

VOLUME = variable("J")


def _volume_energy() -> Expression:
    """U(J), the same for every law but for its slopes."""
    a2, a3, a4 = (variable(f"p_{n}") for n in SLOPES)
    x = maximum(minimum((VOLUME - 1.0) * (1.0 / RANGE), 1.0), -1.0)
    x2 = x * x
    x4 = x2 * x2
    z = RANGE * x * (1.0 + x4 * (x4 * (1.0 / 9.0) - 0.4))
    return z * z * (a2 * 0.5 + z * (a3 * (1.0 / 6.0) + z * (a4 * (1.0 / 24.0))))


VOLUME_ENERGY = _volume_energy()


class MeanEnergy:
    """psi(F) - U(J) + P J: what fem.laws.compiled needs of an energy, made from another one.

    parameters: those of psi, the slopes of U, and P; slopes: the expressions of U's slopes.
    """

    volume = VOLUME_ENERGY

    def __init__(self, own: Energy, slopes: list[Expression]):
        self.own, self.slopes = own, slopes
        self.name, self.isotropic = own.name, own.isotropic
        self.parameters = (*own.parameters, *SLOPES, PRESSURE)

    def continued(self, floor: float) -> Expression:
        """By the stretches; psi alone is continued, U needs no floor."""
        s = [variable(f"s{i}") for i in range(3)]
        return self.own.continued(floor) + _rest(s[0] * s[1] * s[2])

    @cached_property
    def full(self) -> Expression | None:
        """By F00 ... F22; None for energies of the stretches."""
        F = np.array([[variable(f"F{i}{j}") for j in range(3)] for i in range(3)], object)
        return None if self.own.full is None else self.own.full + _rest(det(F))

    @cached_property
    def invariant(self) -> Expression | None:
        """By I1, I2 and J; None where psi is written otherwise."""
        return None if self.own.invariant is None else self.own.invariant + _rest(variable("i2"))

    def table(self, own: np.ndarray) -> np.ndarray:
        """Parameters of every cell, (cells, parameters), from those of psi; P is zero."""
        values = self.slopes_of(self._values(own))
        columns = [np.broadcast_to(v, (len(own),)) for v in (*values, 0.0)]
        return np.concatenate([own, np.stack(columns, axis=1)], axis=1)

    def slope_changes(self, own: np.ndarray) -> np.ndarray:
        """d (slopes of U) / d (parameters of psi), (cells, 3, parameters)."""
        by = [variable(f"p_{n}") for n in self.own.parameters]
        roots = [g for slope in self.slopes for g in gradient(slope, by)]
        values = evaluate(roots, {f"p_{n}": v for n, v in self._values(own).items()})
        flat = np.stack([np.broadcast_to(v, (len(own),)) for v in values], axis=1)
        return flat.reshape(len(own), len(SLOPES), len(by))

    def slopes_of(self, values: dict[str, np.ndarray]) -> list[np.ndarray]:
        """U's slopes of parameters that may be complex."""
        return evaluate(self.slopes, {f"p_{n}": v for n, v in values.items()})

    def _values(self, own: np.ndarray) -> dict[str, np.ndarray]:
        return {n: own[:, j] for j, n in enumerate(self.own.parameters)}


def volume_value(J: np.ndarray, slopes: list[np.ndarray]) -> np.ndarray:
    """U(J) of numbers."""
    return _evaluated(VOLUME_ENERGY, J, slopes)


def volume_slope(J: np.ndarray, slopes: list[np.ndarray]) -> np.ndarray:
    """U'(J) of numbers that may be complex."""
    return _evaluated(gradient(VOLUME_ENERGY, [VOLUME])[0], J, slopes)


def _evaluated(root: Expression, J: np.ndarray, slopes: list[np.ndarray]) -> np.ndarray:
    named = {f"p_{n}": a for n, a in zip(SLOPES, slopes, strict=True)}
    return evaluate([root], {"J": J, **named})[0]


def _rest(J: Expression) -> Expression:
    """P J - U(J)."""
    return variable(f"p_{PRESSURE}") * J - substitute(VOLUME_ENERGY, {"J": J})


def volume_slopes(energy: Energy) -> list[Expression]:
    """lambda, D3 and D4 at rest, of the parameters.

    lambda is the mean of d^2 psi / d s_i d s_j, i != j: what the law's directions share.
    """
    s = [variable(f"s{i}") for i in range(3)]
    rest = {f"s{i}": constant(1.0) for i in range(3)}
    g = gradient(energy.principal, s)
    mixed = [substitute(gradient(g[i], s)[(i + 1) % 3], rest) for i in range(3)]
    root = power(VOLUME, 1.0 / 3.0)
    D = substitute(energy.principal, {f"s{i}": root for i in range(3)})
    slopes = []
    for _ in range(4):
        D = gradient(D, [VOLUME])[0]
        slopes.append(substitute(D, {"J": constant(1.0)}))
    return [(mixed[0] + mixed[1] + mixed[2]) * (1.0 / 3.0), *slopes[2:]]


@lru_cache(maxsize=256)
def mean_energy(energy: Energy) -> MeanEnergy | None:
    """The energy of a point whose cell has a mean dilatation; None where psi has a kink at rest."""
    try:
        slopes = volume_slopes(energy)
    except ZeroDivisionError:  # a root or a logarithm that vanishes at rest
        return None
    generic = {f"p_{n}": np.float64(0.6 + 0.1 * k) for k, n in enumerate(energy.parameters)}
    with np.errstate(all="ignore"):
        sizes = np.abs(np.array(evaluate(slopes, generic), float))
    return MeanEnergy(energy, slopes) if (sizes < LARGEST_SLOPE).all() else None
