"""Models of few numbers: a pendulum, a mass on a spring, a rigid body that rolls.

Their author writes a frozen dataclass with a start, a step and the points that are seen, in NumPy.
Derivatives of all three by the state and by the unknown fields are complex steps

    df/dz . d = Im f(z + i h d) / h,    h = 1e-40,

exact to rounding, so simulating, filming, fitting (tangents and adjoints), drawing, saving and
resuming need no formula of their own. A Jacobian takes one evaluation for each number.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar

import numpy as np

from pliant.complexstep.derivatives import STEP
from pliant.core.errors import BadInput
from pliant.core.solution import Outcome, Solution
from pliant.dynamics.energies import Energies
from pliant.dynamics.model import Block, Model, Pair, Parameters, State, StepRecord, World

Values = Mapping[str, Any]
"""A state by name: numbers, or arrays of any shape."""

UNKNOWNS = "(unknowns)"
"""Name, in tangents and duals of states, of the change of the unknown fields at that moment: what
is seen of a state may depend on them too, and a carrier is told of nothing but states."""


@dataclass(frozen=True, kw_only=True)
class SmallWorld(World):
    """Base of a model of few numbers; derive a frozen dataclass whose fields are its numbers.

    Two fields are asked of it: `dt` [s], and `body`, whose nodes are the points that are seen.
    unknowns: the fields that may be fitted, with unit and chart, {"length": ("m", "positive")};
    charts are plain, positive, signed (keeps its sign), ratio and direction. Numbers and vectors of
    numbers can be unknown.
    Methods get complex numbers when a derivative is asked for: use NumPy's functions, and neither
    `.real`, `abs` nor arrays that can only hold real numbers. `pliant check-gradients` shows
    whether something was lost.
    """

    unknowns: ClassVar[Mapping[str, tuple[str, str]]] = {}
    source: dict | None = field(default=None, compare=False, repr=False)

    def __post_init__(self):
        for name in ("dt", "body"):
            if not hasattr(self, name):
                raise BadInput(f"{type(self).__name__}: it has no '{name}'.")
        _require_positive("dt", self.dt)
        for name, (_, chart) in self.unknowns.items():
            if chart == "positive":
                _require_positive(name, getattr(self, name))

    def start(self) -> Values:
        """The state at t = 0."""
        raise TypeError(f"{type(self).__name__} has no method start.")

    def advance(self, **state: Any) -> Values:
        """The state one time step later."""
        raise TypeError(f"{type(self).__name__} has no method advance.")

    def points(self, **state: Any) -> Pair:
        """Displacements [m] and velocities [m/s] of body.nodes, (nodes, dim) each."""
        raise TypeError(f"{type(self).__name__} has no method points.")

    def energies(self, **state: Any) -> Energies:
        """Energies [J] of a state. Leave it out where they are not known: nothing is checked then.

        What they lose or gain from step to step is booked to the scheme, and a run that gains much
        is stopped.
        """
        return Energies()

    def make_model(self) -> "SmallModel":
        """What steps it."""
        return SmallModel(self)

    @property
    def blocks(self) -> Mapping[str, Block]:
        """The fields that may be unknown."""
        own = {f.name for f in fields(self)}
        for name in self.unknowns:
            if name not in own:
                raise BadInput(f"{type(self).__name__}: its unknown '{name}' is not a field.")
        return {
            name: FieldBlock(name, unit, chart, np.size(getattr(self, name)))
            for name, (unit, chart) in self.unknowns.items()
        }


def _require_positive(name: str, value: Any) -> None:
    numbers = np.real(np.asarray(value))
    if not (np.isfinite(numbers) & (numbers > 0.0)).all():
        raise BadInput(f"{name}: it must be greater than 0, not {value}.")


def _like(old: Any, numbers: np.ndarray) -> Any:
    """Numbers as the kind of thing that a field holds: a number, a tuple, a list or an array."""
    if np.ndim(old) == 0:
        return numbers.reshape(-1)[0].item()
    shaped = numbers.reshape(np.shape(old))
    return shaped if isinstance(old, np.ndarray) else type(old)(shaped.tolist())


class FieldBlock(Block):
    """A field of a world that may be unknown: a number, or a vector of them."""

    def get(self, scene: Any) -> Any:
        """See Block."""
        return getattr(scene, self.name)

    def put(self, scene: Any, value: np.ndarray) -> Any:
        """See Block."""
        new = _like(self.get(scene), np.asarray(value, float))
        return replace(scene, **{self.name: new})

    def push(self, model: Any, change: np.ndarray) -> Parameters:
        """See Block."""
        return Parameters({self.name: np.asarray(change, float).reshape(-1)})


class SmallModel(Model):
    """Steps a SmallWorld; it is its own carrier and its own derivatives.

    Inside, a state is a vector x of all its numbers, and the unknown fields are a vector p.
    Functions of both take z = (x, p), in which a complex step is made.
    """

    def __init__(self, scene: SmallWorld):
        self.carrier = self.derivatives = self
        self.update(scene)

    def update(self, scene: Any) -> None:
        """See Model."""
        self.scene = scene
        values = [np.asarray(getattr(scene, n), float).reshape(-1) for n in scene.unknowns]
        self._p = np.concatenate([np.zeros(0), *values])
        cuts = np.cumsum([0, *(len(v) for v in values)])
        self._part = {n: slice(*cuts[i : i + 2]) for i, n in enumerate(scene.unknowns)}
        start = {n: np.asarray(v, float) for n, v in scene.start().items()}
        self._shapes = {n: v.shape for n, v in start.items()}
        self._start = start

    # --- the run

    def initial_state(self) -> State:
        """See Model."""
        return State({n: v.copy() for n, v in self._start.items()})

    def step(self, state: State) -> tuple[State, StepRecord]:
        """See Model."""
        x = self._advanced(self._at(state))
        done = Solution(x, Outcome.CONVERGED, 0, 0.0, 0.0)
        return self._state(x, state.t + self.scene.dt), StepRecord(done)

    def restored(self, arrays: Mapping[str, np.ndarray], t: float) -> State:
        """See Model."""
        if {n: np.shape(v) for n, v in arrays.items()} != self._shapes:
            name = type(self.scene).__name__
            raise BadInput(f"What was saved is no state of this {name}: start again.")
        return super().restored({n: arrays[n] for n in self._shapes}, t)

    def stored(self, state: State) -> Energies:
        """See Model."""
        return self.scene.energies(**self._named(self._numbers(state)))

    def sum_of(self, duals: Sequence[State | None], state: State) -> State:
        """See Model; the share of the unknown fields is summed as well."""
        x, p = np.zeros(self._size), np.zeros(len(self._p))
        for dual in duals:
            if dual is not None:
                x, p = x + self._numbers(dual), p + self._unknowns(dual)
        return self._change(x, p, state.t)

    # --- carrier

    def apply(self, state: State) -> Pair:
        """See Carrier."""
        u, v = self._seen(self._at(state))
        return u, v

    def jvp(self, state: State, change: State) -> Pair:
        """See Carrier."""
        along = np.concatenate([self._numbers(change), self._unknowns(change)])
        u, v = self._along(self._seen, self._at(state), along)
        return u, v

    def vjp(self, state: State, bar: Pair) -> State:
        """See Carrier."""
        bars = np.stack(bar)
        dual = np.array([np.sum(bars * column) for column in self._columns(self._seen, state)])
        return self._change(dual[: self._size], dual[self._size :], state.t)

    # --- derivatives

    def initial_tangents(self, state: State, directions: Sequence[Parameters]) -> list[State]:
        """See Derivatives."""
        changes = [self._direction(d) for d in directions]
        rest = np.zeros(self._size)
        return [
            self._change(self._along(self._begun, self._at(state), np.r_[rest, p]), p, state.t)
            for p in changes
        ]

    def tangents(
        self,
        before: State,
        after: State,
        changes: Sequence[State],
        directions: Sequence[Parameters],
        *,
        tolerance: float | None = None,
    ) -> list[State]:
        """See Derivatives; nothing is solved, so there is no tolerance."""
        out, z = [], self._at(before)
        for change, direction in zip(changes, directions, strict=True):
            p = self._direction(direction)
            x = self._along(self._advanced, z, np.r_[self._numbers(change), p])
            out.append(self._change(x, p, after.t))
        return out

    def begin_adjoint(self, tolerance: float | None = None) -> None:
        """See Derivatives; nothing is solved."""

    def adjoint(self, before: State, after: State, bar: State, dual: Parameters) -> State:
        """See Derivatives."""
        x, p = self._back(self._advanced, before, bar)
        self._add(dual, p)
        return self._change(x, np.zeros(len(p)), before.t)

    def initial_adjoint(self, state: State, bar: State, dual: Parameters) -> None:
        """See Derivatives."""
        self._add(dual, self._back(self._begun, state, bar)[1])

    def _back(self, function: Callable, state: State, bar: State) -> tuple[np.ndarray, np.ndarray]:
        """Duals of x and p behind function(z), a state; what is seen there may depend on p too."""
        found = self._columns(function, state) @ self._numbers(bar)
        return found[: self._size], found[self._size :] + self._unknowns(bar)

    def _direction(self, parameters: Parameters) -> np.ndarray:
        p = np.zeros(len(self._p))
        for name, part in self._part.items():
            p[part] = parameters.get(name, 0.0)
        return p

    def _add(self, dual: Parameters, p: np.ndarray) -> None:
        for name, part in self._part.items():
            dual.add(name, p[part])

    # --- between states and vectors

    @property
    def _size(self) -> int:
        return sum(int(np.prod(shape)) for shape in self._shapes.values())

    def _numbers(self, state: State) -> np.ndarray:
        """All numbers of a state, or of a change or a dual of one."""
        parts = [np.asarray(state.arrays[n], float).reshape(-1) for n in self._shapes]
        return np.concatenate([np.zeros(0), *parts])

    def _unknowns(self, change: State) -> np.ndarray:
        return np.asarray(change.arrays.get(UNKNOWNS, np.zeros(len(self._p))))

    def _at(self, state: State) -> np.ndarray:
        return np.concatenate([self._numbers(state), self._p])

    def _named(self, x: np.ndarray) -> dict[str, Any]:
        """The numbers by name: fresh arrays, and numbers where the start had numbers."""
        out, first = {}, 0
        for name, shape in self._shapes.items():
            count = int(np.prod(shape))
            out[name] = x[first : first + count].reshape(shape).copy()[()]
            first += count
        return out

    def _state(self, x: np.ndarray, t: float) -> State:
        return State({n: np.array(v) for n, v in self._named(x).items()}, t)

    def _change(self, x: np.ndarray, p: np.ndarray, t: float) -> State:
        return State({**self._state(x, t).arrays, UNKNOWNS: p}, t)

    # --- the author's methods as functions of z

    def _begun(self, z: np.ndarray) -> np.ndarray:
        return self._vector("start", self._asked("start", z, {}))

    def _advanced(self, z: np.ndarray) -> np.ndarray:
        named = self._named(z[: self._size])
        return self._vector("advance", self._asked("advance", z, named))

    def _seen(self, z: np.ndarray) -> np.ndarray:
        """Displacements and velocities of the nodes, (2, nodes, 3)."""
        named = self._named(z[: self._size])
        nodes = self.scene.body.nodes
        found = self._asked("points", z, named)
        if len(found) != 2 or any(np.shape(f) != nodes.shape for f in found):
            raise BadInput(
                f"{type(self.scene).__name__}.points must return displacements and velocities of "
                f"the body's nodes, {nodes.shape} each."
            )
        out = np.zeros((2, len(nodes), 3), np.result_type(*found, float))
        for k in range(2):
            out[k, :, : nodes.shape[1]] = found[k]
        return out

    def _asked(self, method: str, z: np.ndarray, named: dict[str, Any]) -> Any:
        """A method of the world with p in its unknown fields."""
        p = z[self._size :]
        if not np.iscomplexobj(z):
            return getattr(self.scene, method)(**named)
        with warnings.catch_warnings():
            # a number that is made real again would be a derivative of zero
            warnings.simplefilter("error", np.exceptions.ComplexWarning)
            try:
                world = self.scene
                if np.imag(p).any():
                    new = {n: _like(getattr(world, n), p[k]) for n, k in self._part.items()}
                    world = replace(world, **new)
                return getattr(world, method)(**named)
            except (TypeError, np.exceptions.ComplexWarning) as error:
                raise BadInput(
                    f"{type(self.scene).__name__}.{method} does not take the complex numbers that "
                    f"its derivatives are made of ({error}): use NumPy's functions throughout."
                ) from error

    def _vector(self, method: str, values: Values) -> np.ndarray:
        """The numbers of a state that a method returned."""
        shapes = {n: np.shape(v) for n, v in values.items()}
        if shapes != self._shapes:
            raise BadInput(
                f"{type(self.scene).__name__}.{method} must return a state like that of start, "
                f"{self._shapes}, not {shapes}."
            )
        parts = [np.asarray(values[n]).reshape(-1) for n in self._shapes]
        return np.concatenate([np.zeros(0), *parts])

    # --- complex steps

    def _along(self, function: Callable, z: np.ndarray, change: np.ndarray) -> np.ndarray:
        """d function / dz . change."""
        return np.imag(function(z + 1j * STEP * change)) / STEP

    def _columns(self, function: Callable, state: State) -> np.ndarray:
        """d function / dz, one row for each number of z: the transposed Jacobian."""
        z = self._at(state)
        return np.array([self._along(function, z, unit) for unit in np.eye(len(z))])
