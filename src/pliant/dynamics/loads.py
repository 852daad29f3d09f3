"""What holds a body and what pushes it: held regions, tractions, pressure, points, body forces."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from pliant.core.errors import BadInput
from pliant.geometry.shape import Shape

AXES = "xyz"

PLACE = "wall_place."
"""A held region's place along an axis is called wall_place.<its number>.<axis>."""


def place_name(number: int, axis: str) -> str:
    """The name of a held region's place along an axis."""
    return f"{PLACE}{number}.{axis}"


@dataclass(frozen=True)
class Motion:
    """A vector given at some times, linear in between and constant beyond.

    times: ascending [s]; values: (times, dim).
    """

    times: tuple[float, ...]
    values: tuple[tuple[float, ...], ...]

    def __post_init__(self):
        t = np.asarray(self.times, float)
        if len(t) == 0 or len(t) != len(self.values):
            raise BadInput("A motion needs as many values as times, and at least one.")
        if not np.isfinite(t).all() or (np.diff(t) <= 0.0).any():
            raise BadInput("The times of a motion must ascend.")
        if not np.isfinite(np.asarray(self.values, float)).all():
            raise BadInput("The values of a motion must be finite numbers.")

    def __call__(self, points: np.ndarray, t: float) -> np.ndarray:
        """The vector at time t, the same for all points."""
        values = np.asarray(self.values, float)
        now = [np.interp(t, self.times, values[:, d]) for d in range(values.shape[1])]
        return np.broadcast_to(now, (len(points), len(now)))


Displacement = tuple[float, ...] | Motion | Callable[[np.ndarray, float], np.ndarray]


@dataclass(frozen=True)
class Fixed:
    """Holds the part of the body's surface inside `region`.

    displacement: where it is held: a vector, a Motion, or f(points, t) -> (points, dim).
    axes: the components that are held, e.g. "y" for a roller.
    stiffness: of a clamp that gives, pressure per way [Pa/m]; None for one that does not.
    shift: how far the region sits beside where it is described [m], (dim,) or nothing.
    On grids the wall is weak (Nitsche), on meshes the surface nodes are held.
    """

    region: Shape
    displacement: Displacement | None = None
    axes: str = "xyz"
    stiffness: float | None = None
    shift: tuple[float, ...] = ()

    def __post_init__(self):
        if self.shift and (len(self.shift) != self.region.dim or not np.isfinite(self.shift).all()):
            raise BadInput(f"shift must be {self.region.dim} finite numbers, not {self.shift}.")
        if not self.axes or set(self.axes) - set(AXES):
            raise BadInput(f"axes must be letters of 'xyz', not '{self.axes}'.")
        if self.stiffness is not None and not 0.0 < self.stiffness < np.inf:
            raise BadInput(f"stiffness must be a positive number of Pa/m, not {self.stiffness}.")

    @property
    def place(self) -> Shape:
        """The region where it sits."""
        return self.region.translated(self.shift) if any(self.shift) else self.region

    def mask(self) -> np.ndarray:
        """(3,) of 1 where held."""
        return np.array([float(a in self.axes) for a in AXES])

    def at(self, points: np.ndarray, t: float) -> np.ndarray:
        """Given displacement (points, 3) at time t."""
        out = np.zeros((len(points), 3))
        if self.displacement is None:
            return out
        if callable(self.displacement):
            value = np.asarray(self.displacement(points, t), float)
        else:
            value = np.asarray(self.displacement, float)
        if not np.isfinite(value).all():
            raise BadInput(f"The displacement of a fixed region is not finite at t = {t:g}.")
        out[:, : value.shape[-1]] = value
        return out

    @property
    def moves(self) -> bool:
        """True if the given displacement may change with time."""
        return callable(self.displacement)


@dataclass(frozen=True)
class Traction:
    """Force per area [N/m^2] on the surface inside `region`; dead, it does not turn.

    force: a vector, or f(points, normals) -> (points, dim) of the rest surface.
    """

    region: Shape
    force: tuple[float, ...] | Callable[[np.ndarray, np.ndarray], np.ndarray]
    history: Motion | None = field(default=None)


@dataclass(frozen=True)
class Pressure:
    """Pressure [Pa], positive inward along the rest normal, on the surface inside `region`."""

    region: Shape
    pressure: float
    history: Motion | None = field(default=None)


@dataclass(frozen=True)
class PointLoad:
    """Force [N] at a material point."""

    point: tuple[float, ...]
    force: tuple[float, ...]
    history: Motion | None = field(default=None)


@dataclass(frozen=True)
class BodyForce:
    """Force per volume [N/m^3]: a vector, or f(points, t) -> (points, dim) taken at the nodes."""

    force: tuple[float, ...] | Callable[[np.ndarray, float], np.ndarray]
    history: Motion | None = field(default=None)


Load = Traction | Pressure | PointLoad | BodyForce
