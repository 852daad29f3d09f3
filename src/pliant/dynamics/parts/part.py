"""One of several bodies in a scene."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from pliant.core.errors import BadInput
from pliant.dynamics.constitution import DEFAULT
from pliant.dynamics.loads import Fixed, Load
from pliant.dynamics.point_mass import PointMass
from pliant.dynamics.scene_vectors import vector3
from pliant.fem.bodies.body import Body
from pliant.fem.bodies.embedding import Embedding
from pliant.fem.laws.law import Law
from pliant.fem.material import Material


@dataclass(frozen=True)
class Part:
    """A body with a name, a material, a place and a start.

    position [m]: how far the body is moved from where it was made before anything else; regions of
    `fixed`, `loads` and `attached` lie around it there. velocity [m/s], spin [rad/s] about its
    centre of mass: at the start. The rest as in Scene.
    """

    name: str
    body: Body
    material: Material = field(default_factory=Material)
    position: tuple[float, ...] = (0.0, 0.0, 0.0)
    velocity: tuple[float, ...] = (0.0, 0.0, 0.0)
    spin: tuple[float, ...] = (0.0, 0.0, 0.0)
    fixed: Sequence[Fixed] = ()
    loads: Sequence[Load] = ()
    attached: Sequence[PointMass] = ()
    model: str = DEFAULT
    law: Law | str | None = None
    dilatation: str = "mean"
    source: Any = field(default=None, compare=False, repr=False)

    def __post_init__(self):
        if not isinstance(self.name, str) or not self.name.isidentifier():
            raise BadInput(
                f"parts: a part is called by a word of letters and digits, not {self.name!r}."
            )
        if not isinstance(self.body, Body):
            raise BadInput(
                f"parts: '{self.name}' needs a body (GridBody or TetBody), not "
                f"{type(self.body).__name__}."
            )
        if self.body.dim != 3:
            raise BadInput(f"parts: '{self.name}' is plane; bodies that touch are bodies in space.")
        for name in ("position", "velocity", "spin"):
            vector3(f"{self.name}.{name}", getattr(self, name))

    def placed(self) -> Body:
        """The body where it begins."""
        return moved_body(self.body, np.array(self.position, float))

    def scene(self, shared: dict[str, Any]) -> Any:
        """A scene of its own; shared: what it has in common with the other parts."""
        from pliant.dynamics.scene import Scene  # which makes scenes of parts

        try:
            return Scene(
                self.placed(), material=self.material, fixed=self.fixed, loads=self.loads,
                attached=self.attached, model=self.model, law=self.law,
                dilatation=self.dilatation, initial_velocity=self.velocity,
                initial_spin=self.spin, **shared,
            )  # fmt: skip
        except BadInput as error:
            raise BadInput(f"{self.name}: {error}") from error


@dataclass(frozen=True)
class MovedLocator:
    """Finds the cells of a body that was moved by `offset`."""

    locate: Any
    offset: np.ndarray

    def __call__(self, points: np.ndarray) -> Embedding:
        """Points carried by the cells they lie in."""
        return self.locate(np.asarray(points, float) - self.offset)


def moved_body(body: Body, offset: np.ndarray) -> Body:
    """The body displaced by `offset` (3,), the same cells.

    The same once more if it is asked for again: variants of a scene are of one body.
    """
    if not offset.any():
        return body
    kept, key = _MOVED.setdefault(body, {}), tuple(offset.tolist())
    if key not in kept:
        kept[key] = _moved(body, offset)
    return kept[key]


_MOVED: "WeakKeyDictionary[Body, dict[tuple[float, ...], Body]]" = WeakKeyDictionary()


def _moved(body: Body, offset: np.ndarray) -> Body:
    shape = None if body.shape is None else body.shape.translated(tuple(offset.tolist()))
    locate = MovedLocator(body.locate, offset)
    return replace(body, nodes=body.nodes + offset, locate=locate, shape=shape)
