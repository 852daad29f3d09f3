"""What is seen of a body of nodes: the nodes themselves."""

import warp as wp

from pliant.core.launch import to_device, zeros
from pliant.dynamics.model import Pair, State


class NodeCarrier:
    """The Carrier of states that hold the nodes' u, v and a."""

    def apply(self, state: State) -> Pair:
        """See Carrier."""
        return state.u.numpy(), state.v.numpy()

    def jvp(self, state: State, change: State) -> Pair:
        """See Carrier."""
        return change.u.numpy(), change.v.numpy()

    def vjp(self, state: State, bar: Pair) -> State:
        """See Carrier."""
        u, v = (to_device(part, wp.vec3d) for part in bar)
        return State.of(u, v, zeros(len(u), wp.vec3d), state.t)
