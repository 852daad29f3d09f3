"""Viscosity of slivers under a scheme that damps nothing by itself.

The nodes of small cuts are light: their own motion is hundreds of times quicker than the step. A
trapezoidal rule neither follows nor forgets it, and on a nonlinear energy it may feed it, a
thousandth a step, until it is larger than the body's motion (a clamped silicone block cut by its
grid: after 7,000 steps). So the second differences that the ghost penalty sees are damped, too,

    1/2 dt * penalty * rate,

at which a very stiff one vanishes in one step. Like the penalty it is blind to linear fields, so to
every rigid motion, and small for smooth ones; what it takes is booked to the scheme.
"""

import numpy as np
import warp as wp

from pliant.core.launch import to_device
from pliant.dynamics.model import Parameters
from pliant.dynamics.terms.stage import Changes, Pulls, Stage
from pliant.dynamics.terms.term import Term
from pliant.fem.forces.ghost_operator import GhostOperator
from pliant.linalg.blocks import combine

SLIVER_VISCOSITY = 0.5
"""In time steps."""


class SliverViscosity(Term):
    """- c penalty(rate), c of the step's length."""

    def __init__(self, ghost: GhostOperator, cell_count: int):
        self.ghost, self.cell_count = ghost, cell_count

    def add_force(self, stage: Stage, out: wp.array) -> None:
        self.ghost.add_force(stage["rate"], out, factor=-viscosity(stage.balance.times))

    def assemble(self, stage: Stage, matrix, *, project: bool) -> None:
        c = viscosity(stage.balance.times)
        self.ghost.assemble(matrix, c * stage.balance.per_x("rate"))

    def add_change(self, stage: Stage, d: Changes, p: Parameters, out: wp.array) -> None:
        c = viscosity(stage.balance.times)
        self.ghost.add_force(d["rate"], out, factor=-c)
        if "mu" in p:
            mu = np.broadcast_to(np.asarray(p["mu"], float), (self.cell_count,))
            self.ghost.add_force_by_shear(stage["rate"], to_device(mu, wp.float64), out, factor=-c)

    def add_pull(self, stage: Stage, y: wp.array, pulls: Pulls, dual: Parameters) -> None:
        c = viscosity(stage.balance.times)
        self.ghost.add_force(y, pulls["rate"], factor=-c)
        by_mu, scaled = wp.zeros(self.cell_count, dtype=wp.float64), wp.zeros_like(y)
        combine(scaled, (-c, y))
        self.ghost.add_shear_adjoint(stage["rate"], scaled, by_mu)
        dual.add("mu", by_mu.numpy())


def viscosity(times: tuple[float, float]) -> float:
    """Of a step between (end, start) [s]; none of a state that does not move on."""
    return SLIVER_VISCOSITY * (times[0] - times[1])
