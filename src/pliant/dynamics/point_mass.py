"""Something heavy that sits on a body and moves with it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pliant.core.errors import BadInput
from pliant.fem.bodies.body import Body
from pliant.fem.cutting.quadrature import covered_points
from pliant.geometry.shape import Shape

REACH = 1.0
"""Cells beside the body at which a mass still sits on it."""


@dataclass(frozen=True)
class PointMass:
    """mass [kg] at a point [m] of the rest shape, or at most a cell beside its surface.

    Or spread evenly over the surface within a region: what hangs at one point of soft matter digs
    itself in, the deeper the finer the cells.
    """

    mass: float
    point: tuple[float, ...] | None = None
    region: Shape | None = None

    def __post_init__(self):
        if not 0.0 < self.mass < np.inf:
            raise BadInput(f"attached: a mass must be positive, not {self.mass!r}.")
        if (self.point is None) == (self.region is None):
            raise BadInput("attached: a mass sits at a point or on a region, one of the two.")

    def shares(self, body: Body) -> np.ndarray:
        """Of the nodes, (nodes,) [kg]; they keep the mass and its moment."""
        out = np.zeros(len(body.nodes))
        if self.region is None:
            at = body.locate(np.asarray([self.point], float))
            np.add.at(out, at.nodes[0], self.mass * at.weights[0])
            return out
        chosen = covered_points(body, self.region)
        if len(chosen.cell) == 0:
            raise BadInput("attached: the region touches no part of the body's surface.")
        weight = self.mass * chosen.weight / chosen.weight.sum()
        np.add.at(out, body.cells[chosen.cell], weight[:, None] * chosen.shape)
        return out

    def check(self, body: Body) -> None:
        """Refuse a place that is not on the body."""
        if self.region is not None:
            self.shares(body)
            return
        point = np.asarray(self.point, float)
        if point.shape != (body.dim,) or not np.isfinite(point).all():
            raise BadInput(f"attached: the point {self.point!r} must be {body.dim} finite numbers.")
        at = body.locate(point[None])
        beside = np.linalg.norm(at.at(body.nodes)[0] - point)
        near = np.abs(body.nodes[at.nodes[0]] - point).max()
        if beside > 1e-6 * body.spacing or near > (1.0 + REACH) * body.spacing:
            raise BadInput(
                f"attached: the point {self.point} is not on the body, which reaches from "
                f"{_words(body.nodes.min(axis=0))} to {_words(body.nodes.max(axis=0))} m."
            )


def attached_masses(attached: Sequence[PointMass], body: Body) -> np.ndarray:
    """Of all of them at the nodes, (nodes,) [kg]."""
    return sum((one.shares(body) for one in attached), np.zeros(len(body.nodes)))


def _words(point: np.ndarray) -> str:
    return "(" + ", ".join(f"{c:.3g}" for c in point) + ")"
