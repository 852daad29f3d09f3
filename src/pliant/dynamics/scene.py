"""A scene: a body, what it is made of, what acts on it, and how time advances."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from pliant.core.errors import BadInput
from pliant.dynamics.integrators import GeneralisedAlpha, Integrator
from pliant.dynamics.loads import Fixed, Load
from pliant.dynamics.obstacles import ContactLaw, Obstacle, Plane
from pliant.fem.body import Body
from pliant.fem.cell_data import DILATATIONS
from pliant.fem.laws import find_law
from pliant.fem.laws.law import Law
from pliant.fem.material import Material

PRECONDITIONERS = ("multigrid", "jacobi")
MODELS = ("corotated", "linear", "corotated-frozen", "corotated-qr")
FROZEN = ("corotated-frozen", "corotated-qr")
"""Models whose rotations stay those of the predicted displacement: one linear solve a step, as in
seed 000, and no energy behind it."""
SMALLEST_TOLERANCE = 1e-14


@dataclass(frozen=True)
class Scene:
    """Everything a simulation depends on; immutable, `dataclasses.replace` makes variants.

    gravity [m/s^2]; initial_velocity [m/s] and initial_spin [rad/s] about the centre of mass.
    tolerance: relative residual of each linear solve. preconditioner: "multigrid", or "jacobi" for
    bodies that must fit into less memory (2.4 instead of 4.9 kB a node).
    model: "corotated", an energy of the cells' stretches, "linear" (small rotations only), or, for
    comparison, the steps of "corotated-frozen" and "corotated-qr", which gain energy from nowhere.
    law: a material law (pliant.laws), or the name of one that then takes the material's modulus and
    ratio; it replaces `model`. Steps of laws and of the corotated energy are Newton's method.
    dilatation: "mean", which does not lock near a Poisson's ratio of 1/2, or "pointwise".
    """

    body: Body
    material: Material = field(default_factory=Material)
    gravity: tuple[float, ...] = (0.0, -9.81, 0.0)
    fixed: Sequence[Fixed] = ()
    loads: Sequence[Load] = ()
    obstacles: Sequence[Plane | Obstacle] = ()
    contact: ContactLaw = field(default_factory=ContactLaw)
    integrator: Integrator = field(default_factory=lambda: GeneralisedAlpha(dt=0.01))
    model: str = "corotated"
    law: Law | str | None = None
    dilatation: str = "mean"
    initial_velocity: tuple[float, ...] = (0.0, 0.0, 0.0)
    initial_spin: tuple[float, ...] = (0.0, 0.0, 0.0)
    tolerance: float = 1e-8
    preconditioner: str = "multigrid"
    source: dict | None = field(default=None, compare=False, repr=False)

    def __post_init__(self):
        if self.model not in MODELS:
            raise BadInput(f"model must be one of {', '.join(MODELS)}, not '{self.model}'.")
        if self.dilatation not in DILATATIONS:
            raise BadInput(
                f"dilatation must be one of {', '.join(DILATATIONS)}, not '{self.dilatation}'."
            )
        if self.preconditioner not in PRECONDITIONERS:
            raise BadInput(
                f"preconditioner must be one of {', '.join(PRECONDITIONERS)}, "
                f"not '{self.preconditioner}'."
            )
        if not (SMALLEST_TOLERANCE <= self.tolerance < 1.0):
            raise BadInput(
                f"tolerance must lie between {SMALLEST_TOLERANCE:g}, what double precision can "
                f"hold, and 1, not {self.tolerance}."
            )
        for name in ("gravity", "initial_velocity", "initial_spin"):
            vector3(name, getattr(self, name))
        self.material.lame(len(self.body.cells))  # per-cell arrays must fit the body
        self.material.densities(len(self.body.cells))
        if isinstance(self.law, Law):
            self.law.table(len(self.body.cells))
        elif self.law is not None:
            find_law(self.law)

    @property
    def dim(self) -> int:
        """2 or 3."""
        return self.body.dim

    @property
    def dt(self) -> float:
        """Time step [s]."""
        return self.integrator.dt

    def save(self, path) -> None:
        """Write the scene as TOML (see app.scene_files)."""
        from pliant.app.scene_files import save_scene  # the file format belongs to the app layer

        save_scene(self, path)


def vector3(name: str, value: Sequence[float]) -> np.ndarray:
    """A 2D or 3D vector as three numbers."""
    array = np.asarray(value, float)
    if array.ndim != 1 or len(array) not in (2, 3) or not np.isfinite(array).all():
        raise BadInput(f"{name} must be two or three finite numbers, not {value!r}.")
    out = np.zeros(3)
    out[: len(array)] = array
    return out
