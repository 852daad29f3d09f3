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
from pliant.fem.bodies.affine_body import affine_body
from pliant.fem.bodies.body import Body
from pliant.fem.bodies.embedding import Embedding
from pliant.fem.laws.law import Law
from pliant.fem.material import Material
from pliant.geometry.primitives import box


@dataclass(frozen=True)
class Part:
    """A body with a name, a material, a place and a start.

    position [m]: how far the body is moved from where it was made before anything else; regions of
    `fixed`, `loads` and `attached` lie around it there. velocity [m/s], spin [rad/s] about its
    centre of mass: at the start. The rest as in Scene.

    rigid: the part has the body's surface, mass and inertia, and strains only uniformly, as the
    material says: a stiff one is as good as rigid (fem.bodies.affine_body). What is fixed of it
    holds or moves the whole.
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
    rigid: bool = False
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
        if self.rigid:
            m = self.material
            several = any(np.ndim(v) for v in (m.youngs_modulus, m.poisson_ratio, m.density))
            if several or m.regions or self.loads or self.attached:
                raise BadInput(
                    f"parts: '{self.name}' is rigid: it has one material, and no loads or masses."
                )

    def placed(self) -> Body:
        """The body where it begins."""
        return self._placed()[0]

    def _placed(self) -> tuple[Body, float]:
        """The body where it begins, and how many times its cells fill it."""
        body = moved_body(self.body, np.array(self.position, float))
        return rigid_body(body) if self.rigid else (body, 1.0)

    def _held(self) -> list[Fixed]:
        """What is fixed; of a rigid part a region holds all or nothing."""
        if not self.rigid:
            return list(self.fixed)
        body = self.placed()
        at = body.surface.positions(body.nodes)
        low, high = (f(at, axis=0) for f in (np.min, np.max))
        everywhere = box(center=tuple(0.5 * (low + high)), size=tuple(4.0 * (high - low)))
        for number, one in enumerate(self.fixed):
            if one.place.distance(at).min() > 0.0:
                raise BadInput(
                    f"fixed[{number}]: the region touches no part of the body's surface; move or "
                    "enlarge it."
                )
        return [replace(one, region=everywhere, shift=()) for one in self.fixed]

    def scene(self, shared: dict[str, Any]) -> Any:
        """A scene of its own; shared: what it has in common with the other parts."""
        from pliant.dynamics.scene import Scene  # which makes scenes of parts

        try:
            body, filled = self._placed()
            m = self.material
            stuff = replace(
                m, youngs_modulus=filled * m.youngs_modulus, density=filled * m.density
            ) if self.rigid else m  # fmt: skip
            return Scene(
                body, material=stuff, fixed=self._held(), loads=self.loads,
                attached=self.attached, model=self.model, law=self.law,
                dilatation=self.dilatation, initial_velocity=self.velocity,
                initial_spin=self.spin, **shared,
            )  # fmt: skip
        except BadInput as error:
            raise BadInput(f"{self.name}: {error}") from error


_RIGID: "WeakKeyDictionary[Body, tuple[Body, float]]" = WeakKeyDictionary()


def rigid_body(body: Body) -> tuple[Body, float]:
    """`affine_body`, the same once more if it is asked for again."""
    if body not in _RIGID:
        _RIGID[body] = affine_body(body)
    return _RIGID[body]


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
