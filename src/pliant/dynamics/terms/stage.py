"""Where forces are taken: the fields of a step, of a rest or of a start, and how they change.

A step is posed in its unknown x and the old (u, v, a). Forces do not see these but fields that are
sums of them, with weights from the integrator's table:

    next_u, next_v   at the step's end
    predicted        estimate of next_u before the step: frames and damping are taken there
    strained         what a linear stiffness with its damping acts on, k . (x, u, v, a)
    rate             what damping acts on, d . (x, u, v, a)
    moved            what masses resist, m . (x, u, v, a)
    u, v             at the step's start

so a force says how it changes with them, and the chain rule to (x, u, v, a) is written once, here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import warp as wp

from pliant.core.launch import zeros
from pliant.dynamics.integrators import Integrator
from pliant.dynamics.model import State
from pliant.fem.material import Material
from pliant.linalg.blocks import combine, combine_three, keep_free, set_held

Row = Sequence[float]


@dataclass(frozen=True)
class Balance:
    """Weights of (x, u, v, a) in every field, of the forces at the end and the start, and times."""

    rows: Mapping[str, Row]
    force: tuple[float, float]
    times: tuple[float, float]
    stiffness_damping: float
    dt: float = 0.0
    """Length of the step [s]; a rest or a start has none."""
    given: float = 1.0
    """Share of the walls' given displacement that counts."""

    @property
    def force_total(self) -> float:
        """What a constant force counts with."""
        return self.force[0] + self.force[1]

    def per_x(self, name: str) -> float:
        """Change of a field with x."""
        return float(self.rows[name][0])


def step_balance(scheme: Integrator, material: Material, t: float) -> Balance:
    """Of the step that starts at time t."""
    rows = {
        "u": (0.0, 1.0, 0.0, 0.0),
        "v": (0.0, 0.0, 1.0, 0.0),
        "next_u": scheme.next_u,
        "next_v": scheme.next_v,
        "predicted": (0.0, *scheme.predictor),
        "strained": scheme.stiffness_weights(material.stiffness_damping),
        "rate": scheme.damping_weights,
        "moved": scheme.mass_weights(material.mass_damping),
    }
    times = (t + scheme.dt, t)
    return Balance(rows, scheme.force, times, material.stiffness_damping, scheme.dt)


def start_balance(material: Material, t: float) -> Balance:
    """Of a state itself, whose acceleration is sought."""
    u, v, beta = (0.0, 1.0, 0.0, 0.0), (0.0, 0.0, 1.0, 0.0), material.stiffness_damping
    rows = {"u": u, "v": v, "next_u": u, "next_v": v, "predicted": u,
            "strained": (0.0, 1.0, beta, 0.0), "rate": v, "moved": (0.0,) * 4}  # fmt: skip
    return Balance(rows, (1.0, 0.0), (t, t), beta)


def rest_balance(t: float) -> Balance:
    """Of a body at rest at the displacement x."""
    x, none = (1.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0)
    rows = {"u": x, "v": none, "next_u": x, "next_v": none, "predicted": x, "strained": x,
            "rate": none, "moved": none}  # fmt: skip
    return Balance(rows, (1.0, 0.0), (t, t), 0.0)


class Stage:
    """The fields at one x, each computed when it is asked for.

    past: (u, v, a). known: fields that are what they are whatever x is. buffers: memory for those
    that nobody keeps. hold: (free, given), what the held components of next_u and predicted are.
    history: what the body keeps beside (u, v, a), at the start.
    """

    def __init__(
        self,
        balance: Balance,
        past: tuple[wp.array, ...],
        *,
        known: Mapping[str, wp.array] | None = None,
        buffers: dict[str, wp.array] | None = None,
        hold: tuple[wp.array, wp.array] | None = None,
        history: tuple[wp.array, ...] = (),
    ):
        self.balance, self.past, self.history = balance, past, history
        self._known = dict(known or {})
        self._buffers = {} if buffers is None else buffers
        self._hold = hold
        self._found: dict[str, wp.array] = {}
        self._asked: tuple[str, ...] = ()
        """The fields that x moves which were asked for at the last x."""
        self.x: wp.array | None = None

    def at(self, x: wp.array | None) -> "Stage":
        """Take the fields at x; None is zero."""
        self.x = x
        moved = tuple(n for n in self._found if self.balance.rows[n][0] != 0.0)
        self._asked = moved or self._asked
        for name in moved:
            del self._found[name]
        return self

    def __getitem__(self, name: str) -> wp.array:
        if name in self._known:
            return self._known[name]
        if name not in self._found:
            several = 2 <= len(self._asked) <= 3 and name in self._asked and self.x is not None
            self._mix(self._asked if several else (name,))
        return self._found[name]

    def _mix(self, names: tuple[str, ...]) -> None:
        """Find fields; several in one pass."""
        rows = [self.balance.rows[name] for name in names]
        for name in names:
            if name not in self._buffers:
                self._buffers[name] = zeros(self.past[0].shape, wp.vec3d)
            self._found[name] = self._buffers[name]
        out = [self._found[name] for name in names]
        if len(names) == 1:
            own = () if self.x is None else ((float(rows[0][0]), self.x),)
            combine(out[0], *own, *weighted(rows[0][1:], self.past))
        else:
            assert self.x is not None
            spare = 3 - len(names)  # the last one twice
            combine_three(rows + rows[-1:] * spare, (self.x, *self.past), out + out[-1:] * spare)
        for name in ("next_u", "predicted"):
            if self._hold is not None and name in names:
                set_held(self._found[name], *self._hold)

    def changes(self, change: State, free: wp.array) -> "Changes":
        """How the fields change with the old state while x stays."""
        return Changes(self.balance, change.fields(), free, change.history)


class Changes:
    """Changes of a stage's fields, or None where a field does not change at all.

    history: of what the body keeps; empty where it does not change.
    """

    def __init__(
        self,
        balance: Balance,
        change: tuple[wp.array | None, ...],
        free: wp.array,
        history: tuple[wp.array, ...] = (),
    ):
        self._balance, self._change, self._free = balance, change, free
        self.history = history
        self._found: dict[str, wp.array] = {}

    def __getitem__(self, name: str) -> wp.array:
        if name not in self._found:
            row = self._balance.rows[name][1:]
            parts = [(float(c), f) for c, f in zip(row, self._change, strict=True) if f is not None]
            out = zeros(self._free.shape, wp.vec3d)  # contiguous, as a column is not
            if parts:
                combine(out, *parts)
            if name == "predicted":
                keep_free(out, self._free)
            self._found[name] = out
        return self._found[name]


class Pulls(dict[str, wp.array]):
    """Derivatives of a number by a stage's fields; a field nobody has touched is zero."""

    def __init__(self, node_count: int):
        super().__init__()
        self._count = node_count
        self.history: dict[int, wp.array] = {}
        """By the number of an array in the stage's history."""

    def add_history(self, i: int, factor: float, bar: wp.array) -> None:
        """Derivative by the array i of the history += factor * bar."""
        if i not in self.history:
            self.history[i] = zeros(bar.shape, wp.vec3d)
        combine(self.history[i], (1.0, self.history[i]), (float(factor), bar))

    def __missing__(self, name: str) -> wp.array:
        self[name] = zeros(self._count, wp.vec3d)
        return self[name]

    def by_past(self, balance: Balance, free: wp.array, out: Sequence[wp.array]) -> None:
        """out (u, v, a) += the derivatives by the old state while x stays."""
        if "predicted" in self:
            keep_free(self["predicted"], free)
        for z, field in enumerate(out):
            for name, bar in self.items():
                weight = float(balance.rows[name][z + 1])
                if weight != 0.0:
                    combine(field, (1.0, field), (weight, bar))


def weighted(weights: Row, fields: Sequence[wp.array]) -> list[tuple[float, wp.array]]:
    """Pairs for `combine`."""
    return [(float(c), f) for c, f in zip(weights, fields, strict=True)]


def mix(weights: Row, fields: Sequence[wp.array]) -> wp.array:
    """A new field: the weighted sum."""
    out = zeros(fields[0].shape, wp.vec3d)
    combine(out, *weighted(weights, fields))
    return out


def inner(x: wp.array, y: np.ndarray) -> float:
    """Sum of x . y of a field on the device and one on the host."""
    return float(np.sum(x.numpy() * y))
