"""Contact between parts as one more force of their common step.

A step takes it where it ends, as an energy's step does that of the ground (dynamics.terms.contact):

    f_new f(u') + f_old f(u) - (f_new + f_old) c(u', v') v'_t,

with the pairs found at its start. Unlike there the speed that c divides by is that of the step's
end, so that friction is never more than its share of the pressure. The matrix has
- s' dd/dq x dd/dq and how friction changes with v', both positive; it leaves out the turning of m
and the growth of friction with pressure.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pliant.dynamics.parts.pair_forces import (
    PairLaw,
    Rubbing,
    Touches,
    rubbing,
    spring_forces,
    touches,
)
from pliant.dynamics.parts.pairs import Pairs

CALM = 0.5
"""Share of what friction loses by the growing speed in clamped tangents. The whole of it lets
points that slide go as if nothing held them, and Newton's steps overshoot: 25 steps of a ball on a
jelly take 30 iterations each, here 20 and 2.5 times less time; with none of it 27."""


@dataclass(frozen=True, eq=False)
class Between:
    """Pairs and their law through one step; rest: (nodes, 3) node positions at rest, all parts'.

    u: displacement at the step's start. force: (f_new, f_old) of the scheme. softer: (n,) the part
    whose modulus a pair's stiffness follows.
    """

    pairs: Pairs
    law: PairLaw
    rest: np.ndarray
    u: np.ndarray
    force: tuple[float, float]
    softer: np.ndarray

    def __bool__(self) -> bool:
        return len(self.pairs) > 0

    @cached_property
    def old(self) -> np.ndarray:
        """f_old times the springs' forces by q at the step's start."""
        if self.force[1] == 0.0:
            return np.zeros((len(self.pairs), 4, 3))
        return self.force[1] * spring_forces(self.pairs, self.law, self.at(self.u))

    def at(self, u: np.ndarray) -> Touches:
        """The pairs at displacement u (nodes, 3)."""
        return touches(self.pairs, self.pairs.coordinates(self.rest + u))

    def forces(self, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """On the nodes (nodes, 3), for displacement u and velocity v at the step's end."""
        return self.pairs.spread(self.pair_forces(u, v))

    def pair_forces(self, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """The same by q, (n, 4, 3)."""
        at = self.at(u)
        total = self.force[0] * spring_forces(self.pairs, self.law, at) + self.old
        if self.law.friction > 0.0:
            total = total + sum(self.force) * self._rubbing(at, v).forces(at)
        return total

    def _rubbing(self, at: Touches, v: np.ndarray) -> Rubbing:
        return rubbing(self.pairs, self.law, at, self.pairs.coordinates(v))

    def tangent(
        self,
        u: np.ndarray,
        v: np.ndarray,
        u_per_x: float,
        v_per_x: float,
        *,
        project: bool = False,
    ) -> "PairTangent":
        """Of the step with u and v at its end: how minus the forces change with its unknown.

        project: whether it is to be positive without question.
        """
        at, share = self.at(u), CALM if project else 1.0
        along = -self.force[0] * u_per_x * self.pairs.areas * self.law.slope(at.d)
        rubs = self._rubbing(at, v) if self.law.friction > 0.0 else None
        return PairTangent(self.pairs, at, along, rubs, sum(self.force) * v_per_x, share)

    def energy(self, u: np.ndarray) -> float:
        """Of the springs at displacement u [J]."""
        return float(np.sum(self.pairs.areas * self.law.energies(self.at(u).d)))


@dataclass(frozen=True, eq=False)
class PairTangent:
    """S^T (along (t x m) (t x m)^T + rate t (change of friction) t^T) S; along: (n,)."""

    pairs: Pairs
    at: Touches
    along: np.ndarray
    rubs: Rubbing | None
    rate: float
    share: float = 1.0

    def product(self, x: np.ndarray) -> np.ndarray:
        """Of nodal numbers (nodes, 3)."""
        v = np.einsum("nk,nki->ni", self.at.t, self.pairs.coordinates(x))
        m = self.at.m
        f = (self.along * (m * v).sum(axis=1))[:, None] * m
        if self.rubs is not None:
            f += self.rate * self.rubs.change(self.at, v, self.share)
        return self.pairs.spread(self.at.t[:, :, None] * f[:, None, :])
