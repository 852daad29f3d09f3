"""Contact between parts as one more force of their common step.

A step takes it where it ends, as an energy's step does that of the ground (dynamics.terms.contact):

    f_new f(u') + f_old f(u) - (f_new + f_old) c(u', v) v'_t,

with the pairs found at its start. The matrix has - s' dd/dq x dd/dq and the damper, both positive;
what it leaves out, the turning of m and the growth of friction with pressure, `change` knows.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pliant.complexstep.derivatives import STEP
from pliant.dynamics.parts.pair_forces import (
    PairLaw,
    Touches,
    across,
    drag,
    friction_forces,
    spring_forces,
    touches,
)
from pliant.dynamics.parts.pairs import Pairs


@dataclass(frozen=True, eq=False)
class Between:
    """Pairs and their law through one step; x: (nodes, 3) node positions at rest, all parts'.

    force: (f_new, f_old) of the scheme.
    """

    pairs: Pairs
    law: PairLaw
    rest: np.ndarray
    u: np.ndarray
    v: np.ndarray
    force: tuple[float, float]

    def __bool__(self) -> bool:
        return len(self.pairs) > 0

    @cached_property
    def before(self) -> np.ndarray:
        """dq/dt at the step's start."""
        return self.pairs.coordinates(self.v)

    @cached_property
    def old(self) -> np.ndarray:
        """f_old times the springs' forces by q at the step's start."""
        if self.force[1] == 0.0:
            return np.zeros((len(self.pairs), 4, 3))
        q = self.pairs.coordinates(self.rest + self.u)
        return self.force[1] * spring_forces(self.pairs, self.law, touches(self.pairs, q))

    def by_q(self, q: np.ndarray, rate: np.ndarray, before: np.ndarray) -> np.ndarray:
        """Forces (n, 4, 3) of the step's end."""
        f_new, f_old = self.force
        at = touches(self.pairs, q)
        total = f_new * spring_forces(self.pairs, self.law, at)
        if self.law.friction > 0.0:
            c = (f_new + f_old) * drag(self.pairs, self.law, at, before)
            total = total + friction_forces(at, c, rate)
        return total

    def forces(self, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """On the nodes (nodes, 3), for displacement u and velocity v at the step's end."""
        q, rate = (self.pairs.coordinates(f) for f in (self.rest + u, v))
        return self.pairs.spread(self.by_q(q, rate, self.before) + self.old)

    def tangent(self, u: np.ndarray, u_per_x: float, v_per_x: float) -> "PairTangent":
        """Of the step at displacement u: how minus the forces change with its unknown."""
        f_new, f_old = self.force
        at = touches(self.pairs, self.pairs.coordinates(self.rest + u))
        along = -f_new * u_per_x * self.pairs.areas * self.law.slope(at.d)
        damper = np.zeros(len(self.pairs))
        if self.law.friction > 0.0:
            damper = (f_new + f_old) * v_per_x * drag(self.pairs, self.law, at, self.before)
        return PairTangent(self.pairs, at, along, damper)

    def energy(self, u: np.ndarray) -> float:
        """Of the springs at displacement u [J]."""
        at = touches(self.pairs, self.pairs.coordinates(self.rest + u))
        return float(self.pairs.areas @ self.law.energies(at.d))

    def deepest(self, u: np.ndarray) -> float:
        """Largest overlap of a point with another part [m], 0 if there is none."""
        at = touches(self.pairs, self.pairs.coordinates(self.rest + u))
        return float(np.max(-at.d, initial=0.0))

    # derivatives ---------------------------------------------------------------------------------

    def change(
        self, u: np.ndarray, v: np.ndarray, changes: tuple[np.ndarray | None, ...]
    ) -> np.ndarray:
        """Of the forces on the nodes by changes of (u', v', u, v), (nodes, 3) each; None is zero.

        By a complex step: exact to rounding.
        """
        pairs, h = self.pairs, STEP
        d_end, d_rate, d_u, d_v = (
            0.0 if d is None else 1j * h * pairs.coordinates(d) for d in changes
        )
        q, rate = (pairs.coordinates(f) for f in (self.rest + u, v))
        Q = self.by_q(q + d_end, rate + d_rate, self.before + d_v).imag / h
        if self.force[1] != 0.0 and changes[2] is not None:
            old = pairs.coordinates(self.rest + self.u) + d_u
            Q = Q + self.force[1] * _springs(self, old).imag / h
        return pairs.spread(Q)

    def pull(
        self, u: np.ndarray, v: np.ndarray, y: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Transpose of `change` applied to y (nodes, 3): duals of (u', v', u, v)."""
        pairs, h = self.pairs, STEP
        w = pairs.coordinates(y)
        q, rate = (pairs.coordinates(f) for f in (self.rest + u, v))
        # the springs' changes are symmetric
        by_end = self.force[0] * _springs(self, q + 1j * h * w).imag / h
        by_rate, by_before = (np.zeros_like(w) for _ in range(2))
        if self.law.friction > 0.0:
            by_end, by_rate, by_before = (
                a + b for a, b in zip((by_end, by_rate, by_before), self._rubbing(q, rate, w),
                                      strict=True)
            )  # fmt: skip
        by_old = np.zeros_like(w)
        if self.force[1] != 0.0:
            old = pairs.coordinates(self.rest + self.u)
            by_old = self.force[1] * _springs(self, old + 1j * h * w).imag / h
        end, rate_bar, start, before = (
            pairs.spread(f) for f in (by_end, by_rate, by_old, by_before)
        )
        return end, rate_bar, start, before

    def _rubbing(self, q: np.ndarray, rate: np.ndarray, w: np.ndarray):
        """Duals by q, dq/dt and dq/dt before of w . friction, number by number."""

        def product(q: np.ndarray, rate: np.ndarray, before: np.ndarray) -> np.ndarray:
            at = touches(self.pairs, q)
            c = sum(self.force) * drag(self.pairs, self.law, at, before)
            return (w * friction_forces(at, c, rate)).sum(axis=(1, 2))

        given = (q, rate, self.before)
        out = [np.zeros_like(w) for _ in range(3)]
        for which in range(3):
            for k in range(4):
                for i in range(3):
                    moved = [np.array(g, complex) for g in given]
                    moved[which][:, k, i] += 1j * STEP
                    out[which][:, k, i] = product(*moved).imag / STEP
        return out

    def by_stiffness(self, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Change (n, 4, 3) of the forces by q with the logarithm of every pair's stiffness."""
        q, rate = (self.pairs.coordinates(f) for f in (self.rest + u, v))
        return self.by_q(q, rate, self.before) + self.old


def _springs(between: Between, q: np.ndarray) -> np.ndarray:
    return spring_forces(between.pairs, between.law, touches(between.pairs, q))


@dataclass(frozen=True, eq=False)
class PairTangent:
    """S^T (along (t x m) (t x m)^T + damper t P t^T) S, P across the normal; along, damper: (n,)."""

    pairs: Pairs
    at: Touches
    along: np.ndarray
    damper: np.ndarray

    def product(self, x: np.ndarray) -> np.ndarray:
        """Of nodal numbers (nodes, 3)."""
        v = np.einsum("nk,nki->ni", self.at.t, self.pairs.coordinates(x))
        m = self.at.m
        f = (self.along * (m * v).sum(axis=1))[:, None] * m
        if self.damper.any():
            f += self.damper[:, None] * across(self.at, v)
        return self.pairs.spread(self.at.t[:, :, None] * f[:, None, :])
