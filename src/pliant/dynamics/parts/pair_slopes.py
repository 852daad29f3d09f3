"""Derivatives of the forces of pairs by their coordinates, rates, rest places and stiffness.

With a = t . dq (see dynamics.parts.pair_forces) and H the second derivatives of phi,

    dZ = F^-1 a,  dX = dY + dZ,  dd = g . dX,  dt = (0, -dZ),
    dm = F^-T (H dX - (dq_1 . m, dq_2 . m, dq_3 . m)),

and the rest is the product rule. A pair has 12 coordinates, so its derivatives are one small matrix
each, which serves the tangent, the adjoint and the matrix of a step.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pliant.dynamics.parts.pair_forces import PairLaw, Touches, across, touches
from pliant.dynamics.parts.pairs import Pairs


@dataclass(frozen=True, eq=False)
class PairSlopes:
    """At q (n, 4, 3) and its rate (n, 4, 3); spring, rub: what springs and friction count with."""

    pairs: Pairs
    law: PairLaw
    q: np.ndarray
    rate: np.ndarray
    spring: float
    rub: float

    @cached_property
    def at(self) -> Touches:
        """Distances and normals there."""
        return touches(self.pairs, self.q)

    @cached_property
    def matrices(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """By q (n, 12, 12), by its rate (n, 12, 12), by Y (n, 12, 3), by the stiffness (n, 12)."""
        n = len(self.pairs)
        units = np.eye(28)
        dq, dr = (
            np.broadcast_to(units[:, None, k : k + 12], (28, n, 12)).reshape(28, n, 4, 3)
            for k in (0, 12)
        )
        dY = np.broadcast_to(units[:, None, 24:27], (28, n, 3))
        dk = np.broadcast_to(units[:, None, 27], (28, n))
        J = np.moveaxis(self._change(dq, dr, dY, dk).reshape(28, n, 12), 0, 2)
        return J[:, :, :12], J[:, :, 12:24], J[:, :, 24:27], J[:, :, 27]

    def _change(self, dq: np.ndarray, dr: np.ndarray, dY: np.ndarray, dk: np.ndarray) -> np.ndarray:
        """Of the forces by q, for changes with a leading axis of their own."""
        pairs, law, at = self.pairs, self.law, self.at
        t, m, Z = at.t, at.m, -at.t[:, 1:]
        inverse = np.linalg.inv(np.swapaxes(self.q[:, 1:], 1, 2))  # of F, whose columns are q_k
        X = pairs.places + Z
        g, H = pairs.distance(X)[1], pairs.curved(X)
        dZ = np.einsum("nki,nl,...nli->...nk", inverse, t, dq)
        dX = dY + dZ
        dd = (g * dX).sum(axis=-1)
        turned = np.einsum("nij,...nj->...ni", H, dX) - np.einsum(
            "...nki,ni->...nk", dq[..., 1:, :], m
        )
        dm = np.einsum("nki,...nk->...ni", inverse, turned)
        dt = np.concatenate([np.zeros((*dZ.shape[:-1], 1)), -dZ], axis=-1)
        s = law.pressure(at.d)
        ds = law.slope(at.d) * dd + dk * (s / law.stiffness)
        A = pairs.areas
        out = self.spring * (
            _outer((A * ds)[..., None] * t, m)
            + _outer((A * s)[:, None] * dt, m)
            + _outer((A * s)[:, None] * t, dm)
        )
        if law.friction == 0.0 or self.rub == 0.0:
            return out
        n, size = at.normal, np.maximum(at.size, 1e-300)
        V = np.einsum("nk,nki->ni", t, self.rate)
        dV = np.einsum("...nk,nki->...ni", dt, self.rate) + np.einsum("nk,...nki->...ni", t, dr)
        dn = across(at, dm) / size[:, None]
        v = across(at, V)
        dv = (
            across(at, dV)
            - (n * V).sum(axis=-1)[:, None] * dn
            - (dn * V).sum(axis=-1)[..., None] * n
        )
        square = (v * v).sum(axis=-1) + law.slip_speed**2
        per = law.friction * A * size / np.sqrt(square)
        c = per * s
        dc = per * ds + c * ((n * dm).sum(axis=-1) / size - (v * dv).sum(axis=-1) / square)
        return out - self.rub * (
            _outer(dc[..., None] * t, v) + _outer(c[:, None] * dt, v) + _outer(c[:, None] * t, dv)
        )


def _outer(t: np.ndarray, f: np.ndarray) -> np.ndarray:
    return t[..., :, None] * f[..., None, :]
