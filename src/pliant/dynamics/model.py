"""What every model of a body in motion has, whatever it is made of: nothing here knows of cells.

A model takes a State one step on, and says how the step changes with the state and with its
parameters. The loop (dynamics.march), costs, fits, checkpoints and the command line know no more.
"""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np

from pliant.core.errors import BadInput
from pliant.core.solution import Solution
from pliant.dynamics.energies import Energies


@dataclass(frozen=True)
class State:
    """A time [s] and named arrays; those of a body of nodes are u, v and a, on the device.

    A body may keep more of its past than that: the arrays beside u, v and a are its history.
    parts: the states and tables of the shorter steps that led here, where one step would not do.
    """

    arrays: Mapping[str, Any]
    t: float = 0.0
    parts: tuple[tuple["State", "State", Any], ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, u: Any, v: Any, a: Any, t: float = 0.0, *, history: Sequence[Any] = ()) -> "State":
        """Displacement, velocity and acceleration of nodes, and what the body keeps beside."""
        kept = {f"history_{i}": array for i, array in enumerate(history)}
        return cls({"u": u, "v": v, "a": a, **kept}, t)

    @property
    def u(self) -> Any:
        """Displacement of the nodes [m]."""
        return self.arrays["u"]

    @property
    def v(self) -> Any:
        """Velocity of the nodes [m/s]."""
        return self.arrays["v"]

    @property
    def a(self) -> Any:
        """Acceleration of the nodes [m/s^2]."""
        return self.arrays["a"]

    def fields(self) -> tuple[Any, ...]:
        """u, v and a of the nodes."""
        return self.u, self.v, self.a

    @property
    def history(self) -> tuple[Any, ...]:
        """The arrays beside u, v and a."""
        return tuple(x for name, x in self.arrays.items() if name not in ("u", "v", "a"))


@dataclass(frozen=True)
class StepRecord:
    """What one step took; parts: how many it was cut into because the whole would not do."""

    solution: Solution
    timings: dict[str, float] = field(default_factory=dict)
    parts: int = 1


class Parameters(dict[str, Any]):
    """Named blocks of numbers: a direction, or the derivative of a number by each of them.

    A block that is missing is zero.
    """

    def add(self, name: str, value: Any) -> None:
        """The block += value."""
        self[name] = self[name] + value if name in self else np.array(value, float)

    def plus(self, factor: float, other: "Parameters") -> None:
        """self += factor * other."""
        for name, value in other.items():
            self.add(name, factor * np.asarray(value))

    def dot(self, other: "Parameters") -> float:
        """Sum of the products of all entries: gradient times direction."""
        both = [name for name in self if name in other]
        return float(sum(np.sum(np.asarray(self[n]) * np.asarray(other[n])) for n in both))


@dataclass(frozen=True)
class Block:
    """A named quantity of a scene that may be unknown.

    unit: of its value. chart: how an optimiser moves it, by name (inverse.parameters.charts).
    numbers: in a uniform value.
    """

    name: str
    unit: str
    chart: str
    numbers: int = 1
    excludes: ClassVar[tuple[str, ...]] = ()
    """Blocks that say the same of a scene in other numbers: not unknown together with this one."""
    of_material: ClassVar[bool] = True
    """Whether it is the body's wherever that goes, and not its surroundings' or its start's."""

    def check(self, scene: Any) -> None:
        """Raise BadInput where the scene does not depend on it."""

    def labels(self, scene: Any, count: int) -> tuple[str, ...]:
        """Names in tables of its free coordinates; count: numbers in its start."""
        return (self.name,) if count == 1 else tuple(f"{self.name}[{i}]" for i in range(count))

    def sizes(self, value: np.ndarray, scene: Any, duration: float) -> np.ndarray:
        """What error bars are judged by, per number: the value, or a size that it comes in.

        duration [s]: of the recording.
        """
        return np.maximum(np.abs(value), 1e-12)

    def scales(self, scene: Any, count: int) -> np.ndarray:
        """What a free coordinate of one means, per number, where the chart is "scaled"."""
        return np.ones(count)

    def get(self, scene: Any) -> Any:
        """The scene's own value; None where it has none."""
        raise TypeError(self.name)

    def put(self, scene: Any, value: np.ndarray) -> Any:
        """The scene with another value."""
        raise TypeError(self.name)

    def push(self, model: Any, change: np.ndarray) -> Parameters:
        """How the model's parameters change with the value: unless told, it is one of them."""
        return Parameters({self.name: float(change[0])})

    def pull(self, model: Any, dual: Parameters, size: int) -> np.ndarray:
        """Transpose of `push`: gradient by the value from that by the model's parameters."""
        return np.array([dual.dot(self.push(model, unit)) for unit in np.eye(size)])


Pair = tuple[np.ndarray, np.ndarray]
"""Displacement and velocity of material points, (points, 3) each; or their changes or duals."""


class Carrier(Protocol):
    """From a model's state to the material points that are seen, drawn and compared."""

    def apply(self, state: State) -> Pair:
        """Displacements [m] and velocities [m/s] of the points."""
        ...

    def jvp(self, state: State, change: State) -> Pair:
        """Their changes with the state."""
        ...

    def vjp(self, state: State, bar: Pair) -> State:
        """Transpose of `jvp`."""
        ...


class Derivatives(Protocol):
    """Tangents and adjoints of a model's start and of its steps."""

    def initial_tangents(self, state: State, directions: Sequence[Parameters]) -> list[State]:
        """Changes of the initial state along directions of the parameters."""
        ...

    def tangents(
        self,
        before: State,
        after: State,
        changes: Sequence[State],
        directions: Sequence[Parameters],
        *,
        tolerance: float | None = None,
    ) -> list[State]:
        """Changes of `after` by those of `before` and of the parameters."""
        ...

    def begin_adjoint(self, tolerance: float | None = None) -> None:
        """A backward run begins; tolerance: of its solves, if it has any."""
        ...

    def adjoint(self, before: State, after: State, bar: State, dual: Parameters) -> State:
        """Dual of `before` from that of `after`; adds the parameters' share to `dual`."""
        ...

    def initial_adjoint(self, state: State, bar: State, dual: Parameters) -> None:
        """Transpose of `initial_tangents`."""
        ...


class World:
    """A body, its numbers and what steps it; `Scene` is the one of finite elements.

    body: rest points `nodes`, `surface`, `spacing`, `dim`. dt [s]: a property or field.
    """

    body: Any
    dt: Any
    tolerance: float = 0.0
    """Relative residual of its solves, if it has any."""
    obstacles: Sequence[Any] = ()
    fixed: Sequence[Any] = ()
    """What is drawn around the body, and regions that hold it."""
    source: Any = None
    """What a file said beside its numbers: title, description, steps, how the body was made."""

    @property
    def dim(self) -> int:
        """2 or 3."""
        return self.body.dim

    def make_model(self) -> "Model":
        """What steps it."""
        raise TypeError(type(self).__name__)

    @property
    def blocks(self) -> Mapping[str, Block]:
        """What may be unknown, by name."""
        return {}

    def block(self, name: str) -> Block:
        """One of them; raises BadInput where there is none, or nothing depends on it."""
        found = self.blocks.get(name)
        if found is None:
            near = difflib.get_close_matches(name, self.blocks, n=1)
            hint = f"Did you mean '{near[0]}'?" if near else f"Known: {', '.join(self.blocks)}."
            raise BadInput(f"There is no unknown called '{name}'. {hint}")
        found.check(self)
        return found

    @property
    def usual_unknowns(self) -> list[str]:
        """What is fitted unless told."""
        return list(self.blocks)

    def stress(self) -> Any:
        """What tells the stresses of its cells (`at(u)`); None where it has none."""
        return None

    def nodal_forces(self, loads: Sequence[Any]) -> np.ndarray:
        """Loads of one's own loop as forces (nodes, 3) [N]."""
        raise BadInput(f"A {type(self).__name__} knows no loads: give forces on its points.")

    @property
    def can_coarsen(self) -> bool:
        """Whether the same can be computed with larger cells."""
        return False

    @property
    def order(self) -> float:
        """Of the error by the time step."""
        return 2.0

    def coarser(self, *, space: float = 2.0, time: float = 2.0) -> Any:
        """The same with cells and steps that are so many times larger."""
        raise BadInput("There is nothing coarser here.")

    def cautions(self, labels: Sequence[str], values: np.ndarray) -> list[str]:
        """What a fit that found `values` cannot tell, a sentence each."""
        return []

    def run_warnings(
        self, times: np.ndarray, inverted: np.ndarray, velocities: np.ndarray
    ) -> list[str]:
        """What to know before trusting a run; velocities: of frames one step apart."""
        return []

    judges_runs: bool = False
    """Whether `run_record` has something to say."""

    def run_record(self, run: Any) -> dict[str, Any]:
        """What its model says of a run (a Trajectory), with a sentence `told`."""
        return {}

    def by_model(self, model: str, numbers: Mapping[str, Any] | None) -> Any:
        """The same bodies, moved by another model with numbers of its own."""
        raise BadInput("model: only a scene of one body can be fitted with another model first.")


class Model:
    """What takes a state one step on; `scene` says with which numbers."""

    scene: Any
    carrier: Carrier
    derivatives: Derivatives
    """Of a model that can be fitted."""
    differentiable: bool = True
    """Whether `derivatives` are exact; else they are differences, and a fit says so."""
    judged_by_energy: bool = True
    """Whether energy from nowhere ends a run: not where steps are bounded, however coarse."""

    @property
    def masses(self) -> np.ndarray:
        """Of the material points, (points,) [kg]."""
        raise TypeError(type(self).__name__)

    def update(self, scene: Any) -> None:
        """Take over a variant of the scene: the same body, other numbers."""
        self.scene = scene

    def forget(self) -> None:
        """Start anew: bits of what follows do not depend on what was computed before."""

    def initial_state(self) -> State:
        """Where a run starts."""
        raise TypeError(type(self).__name__)

    def step(self, state: State) -> tuple[State, StepRecord]:
        """Advance one time step."""
        raise TypeError(type(self).__name__)

    def sum_of(self, duals: Sequence[State | None], state: State) -> State:
        """The sum of derivatives by a state, array by array; None is zero."""
        parts = [d for d in duals if d is not None]
        return State(
            {n: sum((d.arrays[n] for d in parts), 0.0 * x) for n, x in state.arrays.items()},
            state.t,
        )

    def saved(self, state: State) -> dict[str, np.ndarray]:
        """The state's arrays, copied to the host."""
        return {name: np.array(value) for name, value in state.arrays.items()}

    def restored(self, arrays: Mapping[str, np.ndarray], t: float) -> State:
        """The inverse of `saved`."""
        return State({name: np.array(value) for name, value in arrays.items()}, t)

    def stored(self, state: State) -> Energies:
        """Kinetic, elastic, gravity's and contact's energy of a state."""
        raise TypeError(type(self).__name__)

    def work(self, before: State, after: State) -> tuple[float, float, float]:
        """Work of damping (taken), contact and loads (given) over a step."""
        return 0.0, 0.0, 0.0

    def least_exchange(self) -> float:
        """Energy [J] below which motions cannot be told from errors of the step."""
        return 0.0

    def remedy(self) -> str:
        """What to do when energy appears from nowhere."""
        dt = self.scene.dt
        return f"the step is too long at dt = {dt:g} s. Use dt = {dt / 4.0:.2g} s, say."

    def inverted(self, state: State) -> int:
        """Cells that are inside out."""
        return 0

    def require_stable(self) -> None:
        """Raise SolverFailure where the time step cannot be stable."""

    def push(self, force: np.ndarray | None) -> None:
        """One more force (points, 3) [N] on the steps to come."""
        if force is not None:
            raise BadInput(f"A {type(self).__name__} cannot be pushed.")

    def drive(self, motions: Mapping[int, Any]) -> None:
        """Move held regions, by their number in the scene, beyond what they do by themselves."""
        if motions:
            raise BadInput(f"A {type(self).__name__} has no held regions.")
