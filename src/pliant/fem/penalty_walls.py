"""Walls of bodies with a material law: the penalty of fem.walls, without its consistency terms.

Nitsche's terms hold the stress of linear elasticity; where a law softens they make the tangent
indefinite, so here a wall is held by eta integral (u - g) . v alone, eta a multiple of the local
eigenvalue. The surface then slips by traction / eta: with STIFFER = 20 about 1/70 of a cell per
unit of strain, of the order of the discretisation's own error and halved with the spacing.
"""

from dataclasses import dataclass, fields

import numpy as np

from pliant.fem.walls import Walls

STIFFER = 20.0
"""eta over Nitsche's eta. At 5 a clamped bar's end visibly gives; at 100 multigrid slows down."""


@dataclass(frozen=True)
class PenaltyWalls(Walls):
    """`Walls` with the same interface; only the penalty acts."""

    def penalties(self, lam: np.ndarray, mu: np.ndarray, *args, **options):
        """eta and its derivatives by lambda and mu."""
        eta, d_lam, d_mu = super().penalties(lam, mu, *args, **options)
        return STIFFER * eta, STIFFER * d_lam, STIFFER * d_mu

    def _combine(self, l: np.ndarray, m: np.ndarray, eta: np.ndarray) -> np.ndarray:
        return super()._combine(np.zeros_like(l), np.zeros_like(m), eta)

    def _load(self, l, m, eta, given) -> np.ndarray:
        return super()._load(np.zeros_like(l), np.zeros_like(m), eta, given)


def penalty_walls(walls: Walls) -> PenaltyWalls:
    """The same walls, held by the penalty alone."""
    return PenaltyWalls(**{f.name: getattr(walls, f.name) for f in fields(Walls)})
