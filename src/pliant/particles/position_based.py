"""Position based dynamics with compliant constraints (XPBD; Macklin, Mueller, Chentanez 2016).

A substep predicts where the nodes go by themselves, then goes through the constraints, colour by
colour: the stable neo-Hookean pair of every simplex, points that are held, obstacles. Exact, it
would be a step of implicit Euler of the same energy; one sweep over short substeps comes nearer to
it than many sweeps over long ones (Macklin et al. 2019). Every other substep takes the colours in
the opposite order, so that what one order favours the other takes back. How far the last substep
was from a balance is `residual`.
"""

from functools import cached_property

import numpy as np
import warp as wp

from pliant.core.launch import Recorded, Series, to_device
from pliant.particles.colouring import coloured
from pliant.particles.pair_constraint import PairTable, clear_pairs, project_pairs
from pliant.particles.particle_model import ParticleModel
from pliant.particles.simplices import Simplices

SHORT = 0.5
"""Longest substep, unless told, over the time 2 / w of the stiffest simplex alone."""

MOST_SUBSTEPS = 1000
"""Of a step, unless told."""

GRAIN = 200
"""Simplices a thread must have before a colour is shared out: a visit takes a third of a
microsecond."""


class PositionBasedModel(ParticleModel):
    """Steps a scene with model = "position-based"."""

    def set_numbers(self) -> None:
        """Tables of the pairs for the length of a substep, and the launches of two sweeps."""
        c = self.parts.cell
        mu, lam = self.mu[c], self.lam[c] + self.mu[c]
        order, colours = self._colours
        p = self.parts
        parts = Simplices(
            p.nodes[order], p.cell[order], p.corners, p.gradients[order], p.volumes[order]
        )
        own = self.scene.numbers
        self._shortest = shortest_time(parts, mu[order], lam[order], self._densities(order))
        self._substeps = int(own.substeps) or min(
            int(np.ceil(self.scene.dt / (SHORT * self._shortest))), MOST_SUBSTEPS
        )
        h = self.scene.dt / self.substeps
        kept = own.iterations > 1
        table = PairTable(parts, mu[order], lam[order])
        data = table.data(self.inverse_mass, h, kept=kept)
        inverse = to_device(self.inverse_mass, wp.float64)
        begin, end = self.around()
        places = self.kept_places(inverse)
        pairs = [
            Recorded(project_pairs, n, [first, data, inverse, self.free, self.u], grain=GRAIN)
            for first, n in colours
        ]
        clear = [Recorded(clear_pairs, len(order), [data])] if kept else []
        self._sweeps = [
            Series([begin, *clear, *(own.iterations * [*way, *places]), end])
            for way in (pairs, pairs[::-1])
        ]

    @cached_property
    def _colours(self) -> tuple[np.ndarray, list[tuple[int, int]]]:
        return coloured(self.parts.nodes, self.node_count)

    @property
    def substeps(self) -> int:
        """Parts of a step."""
        return self._substeps

    @property
    def work_units(self) -> int:
        """Sweeps of a step."""
        return self.substeps * int(self.scene.numbers.iterations)

    def sweep(self, k: int) -> None:
        """Substep k of the step, on u and v."""
        self._sweeps[k % 2].run()

    def _densities(self, order: np.ndarray) -> np.ndarray:
        return self.material.densities(len(self.scene.body.cells))[self.parts.cell[order]]


def shortest_time(parts: Simplices, mu: np.ndarray, lam: np.ndarray, density: np.ndarray) -> float:
    """2 / w [s] of the stiffest simplex alone: explicit steps of linear cells end there.

    w^2 = (lambda + 2 mu) / rho times corners times the largest eigenvalue of sum B_a B_a^T.
    """
    B = parts.gradients
    largest = np.linalg.eigvalsh(np.einsum("cai,caj->cij", B, B))[:, -1]
    return float(np.min(2.0 / np.sqrt((lam + mu) / density * parts.corners * largest)))
