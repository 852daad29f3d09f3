"""Forces of pairs: springs towards the other part's surface, and friction along it.

In the coordinates q of a pair (dynamics.parts.pairs), F = (q_1, q_2, q_3),

    Z = F^-1 q_0,   X = Y + Z,   d = phi(X),   m = F^-T grad phi(X),   t = (1, -Z)

are the rest place of the point beside that of the map, its distance there, and dd/dq = t x m. The
energy A S(d) with -S' = s the pressure of dynamics.contact gives the forces A s t x m. Friction
is minus c times the part across n = m / |m| of the relative velocity v = t . dq/dt,

    c = mu A s |m| / sqrt(|v_t|^2 + slip^2).
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import spence

from pliant.dynamics.parts.pairs import Pairs

TAIL = 36.0
"""Sharpness times distance beyond which a pressure is rounding."""


@dataclass(frozen=True, eq=False)
class PairLaw:
    """stiffness [Pa/m], sharpness [1/m], margin [m]: (n,) of the pairs (see ContactLaw)."""

    stiffness: np.ndarray
    sharpness: np.ndarray
    margin: np.ndarray
    friction: float
    slip_speed: float

    def pressure(self, d: np.ndarray) -> np.ndarray:
        """s(d) (n,) [Pa]."""
        z = -self.sharpness * (d + self.margin)
        deep = z > TAIL
        soft = np.where(deep, z, np.log1p(np.exp(np.where(deep, 0.0, z))))
        return self.stiffness * soft / self.sharpness

    def slope(self, d: np.ndarray) -> np.ndarray:
        """s'(d) (n,), not positive."""
        z = np.clip(-self.sharpness * (d + self.margin), -700.0, 700.0)
        return -self.stiffness / (1.0 + np.exp(-z))

    def energies(self, d: np.ndarray) -> np.ndarray:
        """S(d) (n,) [J/m^2], see Contact.energy."""
        z = -self.sharpness * (d + self.margin)
        far = z > 30.0
        soft = -spence(1.0 + np.exp(np.where(far, 0.0, z)))
        value = np.where(far, 0.5 * z * z + np.pi**2 / 6.0, soft)
        return value * self.stiffness / self.sharpness**2


@dataclass(frozen=True, eq=False)
class Touches:
    """Distance d (n,), its gradient m (n, 3) by the point's place, and t (n, 4)."""

    d: np.ndarray
    m: np.ndarray
    t: np.ndarray

    @property
    def size(self) -> np.ndarray:
        """|m|."""
        return np.sqrt((self.m * self.m).sum(axis=1))

    @property
    def normal(self) -> np.ndarray:
        """m / |m|; zero where phi has no slope, beyond its samples."""
        size = self.size
        return self.m / np.where(size > 0.0, size, 1.0)[:, None]


def touches(pairs: Pairs, q: np.ndarray) -> Touches:
    """At coordinates q (n, 4, 3)."""
    r, c0, c1, c2 = (q[:, k] for k in range(4))
    rows = np.stack([np.cross(c1, c2), np.cross(c2, c0), np.cross(c0, c1)], axis=1)
    volume = (c0 * rows[:, 0]).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        rows = rows / volume[:, None, None]
    Z = np.einsum("nki,ni->nk", rows, r)
    d, g = pairs.distance(pairs.places + Z)
    m = np.einsum("nki,nk->ni", rows, g)
    return Touches(d, m, np.concatenate([np.ones((len(Z), 1)), -Z], axis=1))


def spring_forces(pairs: Pairs, law: PairLaw, at: Touches) -> np.ndarray:
    """Forces by q, (n, 4, 3)."""
    return (pairs.areas * law.pressure(at.d))[:, None, None] * _outer(at.t, at.m)


@dataclass(frozen=True, eq=False)
class Rubbing:
    """c (n,) and the sliding over its root, w = v_t / sqrt(|v_t|^2 + slip^2), (n, 3)."""

    c: np.ndarray
    w: np.ndarray
    v: np.ndarray

    def forces(self, at: Touches) -> np.ndarray:
        """By q, (n, 4, 3)."""
        return _outer(at.t, -self.c[:, None] * self.v)

    def change(self, at: Touches, v: np.ndarray, share: float = 1.0) -> np.ndarray:
        """Of the force against a sliding that changes by v (n, 3); never against v.

        share: of what friction loses by the growing speed; 0 is that of a dashpot.
        """
        along = share * (self.w * v).sum(axis=1)
        return self.c[:, None] * (across(at, v) - along[:, None] * self.w)


def rubbing(pairs: Pairs, law: PairLaw, at: Touches, rate: np.ndarray) -> Rubbing:
    """At the rate dq/dt (n, 4, 3)."""
    v = across(at, np.einsum("nk,nki->ni", at.t, rate))
    root = np.sqrt((v * v).sum(axis=1) + law.slip_speed**2)
    c = law.friction * pairs.areas * law.pressure(at.d) * at.size / root
    return Rubbing(c, v / root[:, None], v)


def across(at: Touches, v: np.ndarray) -> np.ndarray:
    """v (..., n, 3) without its part along the normal."""
    n = at.normal
    return v - (n * v).sum(axis=-1)[..., None] * n


def _outer(t: np.ndarray, f: np.ndarray) -> np.ndarray:
    return t[:, :, None] * f[:, None, :]
