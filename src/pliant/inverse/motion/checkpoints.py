"""States of a run in descending order with few of them in memory: binomial checkpointing.

With s stored states and at most r repetitions of any step, C(s + r, s) steps can be walked back
(Griewank and Walther 2000, "revolve"): a run of l steps is cut at m with m <= C(s + r - 1, s) and
l - m <= C(s + r - 1, s - 1); the end part is walked back with one state less, the front then with
one repetition less. A simulation is a pure function of its start, so what is recomputed equals what
was forgotten.
"""

from collections.abc import Sequence
from math import comb

from pliant.core.errors import BadInput
from pliant.dynamics.march import march
from pliant.dynamics.model import Model, State
from pliant.inverse.motion.sensitivity import run

FEWEST = 2
"""States that must fit: the start and one between."""


def state_bytes(system: Model) -> int:
    """Memory of one State."""
    return sum(field.nbytes for field in system.saved(system.initial_state()).values())


def cut(length: int, slots: int) -> int:
    """Where to store the next state of `length` steps ahead with `slots` free ones."""
    if length <= 1 or slots < 1:
        return 0
    repetitions = 0
    while comb(slots + repetitions, slots) < length:
        repetitions += 1
    front = comb(slots + repetitions - 1, slots) if repetitions > 0 else 1
    behind = comb(slots + repetitions - 1, slots - 1)
    return min(max(front, length - behind, 1), length - 1)


class Checkpoints(Sequence[State]):
    """The states 0..steps of a run; reading them from last to first recomputes what is missing.

    slots: how many states may be held at once, the start included. `advanced` counts the steps
    computed so far.
    """

    def __init__(self, system: Model, steps: int, slots: int):
        if slots < FEWEST:
            raise BadInput(f"At least {FEWEST} states must fit into the memory limit.")
        self._system, self._steps, self._slots = system, steps, slots
        self._held: list[tuple[int, State]] = [(0, system.initial_state())]
        self.advanced = 0

    def __len__(self) -> int:
        return self._steps + 1

    def __getitem__(self, index):
        """State `index`; a state above those read last is recomputed from the start's side."""
        if isinstance(index, slice):
            raise BadInput("Checkpointed states are read one by one.")
        k = index if index >= 0 else len(self) + index
        if not 0 <= k <= self._steps:
            raise IndexError(index)
        while len(self._held) > 1 and self._held[-1][0] > k:
            self._held.pop()
        while True:
            at, state = self._held[-1]
            ahead = k - at
            if ahead == 0:
                return state
            stride = cut(ahead, self._slots - len(self._held))
            if stride == 0:
                return self._advance(at, state, ahead)
            self._held.append((at + stride, self._advance(at, state, stride)))

    def _advance(self, at: int, state: State, count: int) -> State:
        # contact friction and rotations live in the state, so any state can be gone on from
        for step in march(self._system, state, number=at, until=at + count):
            state = step.after
        self.advanced += count
        return state


def states_within(system: Model, steps: int, limit: float | None) -> Sequence[State]:
    """The run's states: all of them, or checkpoints where `limit` [bytes] does not hold them."""
    if limit is None or (steps + 1) * state_bytes(system) <= limit:
        return run(system, steps)
    return Checkpoints(system, steps, max(FEWEST, int(limit // state_bytes(system))))
