"""Penalties that make a stiffness per cell well posed: total variation, or smoothness.

With q the logarithms of the moduli and the sum over pairs of cells that share a face,

    "tv"      weight sum (sqrt((q_i - q_j)^2 + sharpness^2) - sharpness),
    "smooth"  weight / 2 sum (q_i - q_j)^2.

Total variation lets a stiffness jump at few faces; smoothness spreads the change. Each face counts
the same, so cells that hold hardly any material lean on their neighbours.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from pliant.core.errors import BadInput
from pliant.fem.bodies.body import Body

KINDS = ("tv", "smooth")


@dataclass(frozen=True)
class FieldPenalty:
    """kind, weight [1] against the cost in units of half of chi square; sharpness: contrast (of
    the logarithm) below which total variation acts like smoothness, so that it is differentiable.
    """

    kind: str = "tv"
    weight: float = 1.0
    sharpness: float = 0.03

    def __post_init__(self):
        if self.kind not in KINDS:
            raise BadInput(f"A field's penalty is one of {', '.join(KINDS)}, not '{self.kind}'.")
        if not (self.weight >= 0.0 and self.sharpness > 0.0):
            raise BadInput("A field's penalty needs a weight >= 0 and a sharpness > 0.")

    def on(self, body: Body, part: slice) -> "BodyPenalty":
        """The penalty on the part of q that holds the cells of a body."""
        return BodyPenalty(self, neighbours(body), part)


@dataclass(frozen=True)
class BodyPenalty:
    """A FieldPenalty on one body: cost and gradient of the whole q."""

    penalty: FieldPenalty
    pairs: np.ndarray
    part: slice

    def __call__(self, q: np.ndarray) -> tuple[float, np.ndarray]:
        """Cost and gradient (p,)."""
        p, field = self.penalty, q[self.part]
        i, j = self.pairs.T
        jump = field[i] - field[j]
        if p.kind == "tv":
            length = np.sqrt(jump**2 + p.sharpness**2)
            cost, slope = float((length - p.sharpness).sum()), jump / length
        else:
            cost, slope = 0.5 * float((jump**2).sum()), jump
        gradient = np.zeros(len(q))
        n = len(field)
        gradient[self.part] = p.weight * (
            np.bincount(i, slope, minlength=n) - np.bincount(j, slope, minlength=n)
        )
        return p.weight * cost, gradient

    def hessian(self, q: np.ndarray) -> sparse.csr_array:
        """(p, p), positive: of smoothness exact, of total variation with its lengths held.

        Lagged diffusivity (Vogel and Oman 1996): sum weight (q_i - q_j)^2 / (2 length_ij).
        """
        p = self.penalty
        i, j = self.pairs.T + self.part.start
        w = np.full(len(i), p.weight)
        if p.kind == "tv":
            w = w / np.sqrt((q[i] - q[j]) ** 2 + p.sharpness**2)
        n = len(q)
        rows, columns = np.concatenate([i, j, i, j]), np.concatenate([i, j, j, i])
        return sparse.csr_array((np.concatenate([w, w, -w, -w]), (rows, columns)), shape=(n, n))


def neighbours(body: Body) -> np.ndarray:
    """Pairs (pairs, 2) of cells that share a face: all but dim-dimensional sets of their nodes."""
    k = body.cells.shape[1]
    if body.is_grid:
        bits = (np.arange(k)[:, None] >> np.arange(body.dim)) & 1
        faces = [np.flatnonzero(bits[:, d] == side) for d in range(body.dim) for side in (0, 1)]
    else:
        corners = body.dim + 1
        faces = [np.delete(np.arange(corners), a) for a in range(corners)]
    keys = np.concatenate([np.sort(body.cells[:, f], axis=1) for f in faces])
    owner = np.tile(np.arange(len(body.cells)), len(faces))
    order = np.lexsort(keys.T)
    keys, owner = keys[order], owner[order]
    same = (keys[1:] == keys[:-1]).all(axis=1)
    return np.stack([owner[:-1][same], owner[1:][same]], axis=1)
