"""What every force on a body can say of itself."""

import numpy as np
import warp as wp

from pliant.dynamics.model import Parameters, State
from pliant.dynamics.terms.stage import Changes, Pulls, Stage


class Term:
    """A force; what it does not override is zero.

    All methods add. A force is counted as the step balances it: f_new times that of the end plus
    f_old times that of the start.
    """

    def add_constant(self, stage: Stage, out: wp.array) -> None:
        """out += the part of the force that x does not move."""

    def add_force(self, stage: Stage, out: wp.array) -> None:
        """out += the rest of it, at the stage's x."""

    def assemble(self, stage: Stage, matrix, *, project: bool) -> None:
        """matrix -= d force / dx; project: without what may make it indefinite."""

    def add_change(self, stage: Stage, d: Changes, p: Parameters, out: wp.array) -> None:
        """out += change of the force by those of the old state and of the parameters."""

    def add_pull(self, stage: Stage, y: wp.array, pulls: Pulls, dual: Parameters) -> None:
        """Transpose of `add_change` applied to y: adds to pulls and dual."""

    def given(self, t: float) -> np.ndarray | float:
        """The force (nodes, 3) at time t that nothing moves, on the host."""
        return 0.0

    def energy(self, u: wp.array, t: float) -> float:
        """Energy [J] stored at the displacement u."""
        return 0.0


class Support(Term):
    """A force that holds a part of the surface where it is told to be."""

    def assemble_rest(self, matrix) -> None:
        """matrix += its stiffness about the rest shape."""
        raise TypeError(type(self).__name__)

    def standing_force(self, t: float) -> np.ndarray | float:
        """`given` without what the rate of the given displacement does."""
        return 0.0

    def add_damping(self, rate: wp.array, out: wp.array, factor: float) -> None:
        """out += factor * the force of a rate, per stiffness damping."""

    def hand_work(self, before: State, after: State) -> float:
        """Work of the hand that moves what holds, over a step or a part of it."""
        raise TypeError(type(self).__name__)
