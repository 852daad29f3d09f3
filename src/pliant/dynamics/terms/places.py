"""How what holds a body changes with where it holds: the derivative by a clamp's place.

A region that is moved by s along an axis covers another part of the surface, so all of the walls'
integrals change, and their penalties with them. The covered part is cut exactly, its integrals are
polynomials of s as long as no facet comes or goes, and the force f is what they make it:

    df / ds = (f(s + h) - f(s - h)) / 2h,    h = STRIDE cells,

which is as good as rounding and h^2 allow (1e-8 of it), and the same number forwards and backwards.
Where a region's end lies on the plane of a grid it is the mean of both sides' slopes; where it
would leave the body on one side, it is the other's.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import warp as wp

from pliant.core.errors import BadInput
from pliant.core.launch import to_device
from pliant.dynamics.boundary import Boundary
from pliant.dynamics.loads import AXES, place_name
from pliant.dynamics.model import Parameters
from pliant.dynamics.scene import Scene
from pliant.dynamics.terms.stage import Changes, Pulls, Stage
from pliant.dynamics.terms.term import Term
from pliant.linalg.blocks import combine

STRIDE = 1e-4
"""Cells by which a region is moved each way."""


class Held(Protocol):
    """What holds at one place: dynamics.supports.Supports."""

    @property
    def boundary(self) -> Boundary: ...  # noqa: D102

    def set_numbers(self, scene: Scene, lam: np.ndarray, mu: np.ndarray) -> bool: ...  # noqa: D102

    def force(self, stage: Stage) -> np.ndarray: ...  # noqa: D102


@dataclass(frozen=True)
class Ends:
    """What holds a little farther, what a little less far, and their distance [m]."""

    there: Held
    here: Held
    width: float

    def slope(self, stage: Stage) -> np.ndarray:
        """df / ds, (nodes, 3)."""
        return (self.there.force(stage) - self.here.force(stage)) / self.width

    def compatible(self, field: np.ndarray) -> np.ndarray:
        """Change per metre of what walls leave of a field of velocities (dynamics.compatible)."""
        there, here = (end.boundary.compatible(field) for end in (self.there, self.here))
        return (there - here) / self.width


class PlaceTerm(Term):
    """The places of a scene's held regions that have a shift; build: what holds in a scene."""

    def __init__(self, build):
        self._build = build

    def set_numbers(self, scene: Scene, lam: np.ndarray, mu: np.ndarray) -> None:
        """The scene as it is, and the moduli of every cell [Pa]."""
        self._scene, self._moduli = scene, (lam, mu)
        self._found: dict[str, Ends | None] = {}

    @property
    def _names(self) -> list[str]:
        s = self._scene
        shifted = [n for n, f in enumerate(s.fixed) if f.shift]
        return [place_name(n, axis) for n in shifted for axis in AXES[: s.dim]]

    def ends(self, name: str) -> Ends | None:
        """By the name of a place; None where nothing depends on it."""
        if name not in self._found:
            self._found[name] = self._ends(name)
        return self._found[name]

    def _ends(self, name: str) -> Ends | None:
        number, axis = name.split(".")[1:]
        step = np.zeros(self._scene.dim)
        step[AXES.index(axis)] = STRIDE * self._scene.body.spacing
        built, ways = [], []
        for side in (1.0, 0.0, -1.0):
            try:
                built.append(self._at(int(number), side * step))
                ways.append(side)
            except BadInput:  # beyond the body
                continue
        if len(built) < 2 or _same(built[0], built[-1]):
            return None
        return Ends(built[0], built[-1], (ways[0] - ways[-1]) * float(step.max()))

    def _at(self, number: int, way: np.ndarray) -> Held:
        fixed = list(self._scene.fixed)
        shift = np.add(fixed[number].shift, way)
        fixed[number] = replace(fixed[number], shift=tuple(shift.tolist()))
        scene = replace(self._scene, fixed=fixed)
        held = self._build(scene)
        held.set_numbers(scene, *self._moduli)
        return held

    def _asked(self, p: Mapping) -> list[tuple[float, Ends]]:
        """(rate, ends) of the places that a direction moves."""
        found = [(float(p[name]), self.ends(name)) for name in self._names if name in p]
        return [(rate, ends) for rate, ends in found if ends is not None]

    def add_change(self, stage: Stage, d: Changes, p: Parameters, out: wp.array) -> None:
        """See Term; the fields' own changes are the supports'."""
        for rate, ends in self._asked(p):
            change = to_device(rate * ends.slope(stage), wp.vec3d)
            combine(out, (1.0, out), (1.0, change))

    def add_pull(self, stage: Stage, y: wp.array, pulls: Pulls, dual: Parameters) -> None:
        """See Term."""
        at = y.numpy()
        for name in self._names:
            ends = self.ends(name)
            if ends is not None:
                dual.add(name, np.sum(at * ends.slope(stage)))

    # fields that walls allow ---------------------------------------------------------------------

    def compatible_change(self, p: Parameters, field: np.ndarray) -> np.ndarray:
        """Change of C f (dynamics.compatible) along p, (nodes, 3)."""
        out = np.zeros(field.shape)
        for rate, ends in self._asked(p):
            out += rate * ends.compatible(field)
        return out

    def compatible_pull(self, bar: np.ndarray, field: np.ndarray, dual: Parameters) -> None:
        """Its transpose."""
        for name in self._names:
            ends = self.ends(name)
            if ends is not None:
                dual.add(name, np.sum(bar * ends.compatible(field)))


def _same(one: Held, other: Held) -> bool:
    """Whether both hold the same."""

    def weights(held: Held) -> list[np.ndarray]:
        walls = held.boundary.walls
        beds = [bed.points.weight for bed in held.boundary.springs]
        return beds if walls is None else [walls.weight, *beds]

    pairs = zip(weights(one), weights(other), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)
