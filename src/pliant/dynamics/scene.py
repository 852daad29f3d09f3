"""A scene: a body, what it is made of, what acts on it, and how time advances."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from pliant.core.errors import BadInput
from pliant.core.shown import Shown
from pliant.dynamics.constitution import DEFAULT, Constitution, Stress, constitution_of, models
from pliant.dynamics.integrators import INTEGRATORS, GeneralisedAlpha, Integrator
from pliant.dynamics.loads import Fixed, Load
from pliant.dynamics.model import Block, Model, World
from pliant.dynamics.model_numbers import numbers_of
from pliant.dynamics.obstacles import ContactLaw, Obstacle, Plane
from pliant.dynamics.point_mass import PointMass
from pliant.dynamics.scene_vectors import require_vectors, vector3
from pliant.dynamics.start import Start, start_of
from pliant.fem.bodies.body import Body
from pliant.fem.bodies.grid_body import grid_body
from pliant.fem.forces.cell_data import DILATATIONS
from pliant.fem.laws import find_law
from pliant.fem.laws.law import Law
from pliant.fem.material import Material

if TYPE_CHECKING:
    from pliant.dynamics.parts.part import Part
    from pliant.dynamics.parts.parts_scene import PartsScene

PRECONDITIONERS = ("multigrid", "jacobi")
SMALLEST_TOLERANCE = 1e-14


@dataclass(frozen=True)
class Scene(World, Shown):
    """Everything a simulation depends on; immutable, `dataclasses.replace` makes variants.

    gravity [m/s^2]; initial_velocity [m/s] and initial_spin [rad/s] about the centre of mass.
    tolerance: relative residual of each linear solve. preconditioner: "multigrid", or "jacobi" for
    bodies that must fit into less memory (2.4 instead of 4.9 kB a node).
    model: "corotated", an energy of the cells' stretches, "linear" (small rotations only), or, for
    comparison, the steps of "corotated-frozen" and "corotated-qr", which gain energy from nowhere;
    or one of particles: "position-based", "shape-matching", "mass-spring" (docs/particles.md).
    numbers: what the model has of its own, a table such as {"substeps": 20}.
    law: a material law (pliant.laws), or the name of one that then takes the material's modulus and
    ratio; `model` is left out then. Steps of laws and of the corotated energy are Newton's method.
    start: how it begins, "rest" (as it was made), "equilibrium" (in balance with its weight and its
    loads at t = 0), or a Start("state", ...), plucked out of that balance.
    attached: point masses that move with the body.
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
    model: str = DEFAULT
    law: Law | str | None = None
    dilatation: str = "mean"
    initial_velocity: tuple[float, ...] = (0.0, 0.0, 0.0)
    initial_spin: tuple[float, ...] = (0.0, 0.0, 0.0)
    start: Start | str = "rest"
    attached: Sequence[PointMass] = ()
    tolerance: float = 1e-8
    preconditioner: str = "multigrid"
    numbers: Any = None
    source: dict | None = field(default=None, compare=False, repr=False)

    @overload
    def __new__(cls, body: Body, *rest: Any, **options: Any) -> "Scene": ...

    @overload
    def __new__(cls, *, parts: "Sequence[Part]", **options: Any) -> "PartsScene": ...

    def __new__(cls, *given: Any, parts: Any = None, **options: Any) -> Any:
        """Of one body; or, of several that touch, dynamics.parts.parts_scene."""
        if parts is None:
            return super().__new__(cls)
        from pliant.dynamics.parts.parts_scene import PartsScene  # whose parts are scenes

        if given:
            raise BadInput("Scene: give one body, or parts, not both.")
        known = {f.name for f in fields(PartsScene)}
        if wrong := [name for name in options if name not in known]:
            raise BadInput(
                f"Scene: with parts, '{wrong[0]}' belongs to each Part; shared are "
                f"{', '.join(sorted(known - {'parts', 'source'}))}."
            )
        return PartsScene(parts, **options)

    def __post_init__(self):
        if self.contact.is_barrier:
            raise BadInput(
                "contact: a barrier is that of a scene of parts; give the body as its one part."
            )
        made = constitution_of(self)  # model and law must not contradict each other
        object.__setattr__(self, "numbers", numbers_of(made.numbers, self.numbers, made.tag))
        if self.material.branches and not made.branched:
            raise BadInput(
                f"model = '{self.model}' knows no viscoelastic branches: use '{DEFAULT}' or a law."
            )
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
        require_vectors(self)
        object.__setattr__(self, "start", start_of(self.start, self))
        for mass in self.attached:
            mass.check(self.body)
        self.cell_material.lame(len(self.body.cells))  # per-cell arrays must fit the body
        self.cell_material.densities(len(self.body.cells))
        if isinstance(self.law, Law):
            self.law.table(len(self.body.cells))
        elif self.law is not None:
            find_law(self.law)

    def __repr__(self) -> str:
        title = (self.source or {}).get("title")
        made = self.law if isinstance(self.law, str) else getattr(self.law, "name", self.model)
        around = [
            f"{len(items)} {word}"
            for word, items in (
                ("held", self.fixed), ("loads", self.loads), ("obstacles", self.obstacles),
            )
            if items
        ]  # fmt: skip
        return (
            f"<Scene{f' {title!r}' if title else ''}: {len(self.body.cells):,} cells, {made}, "
            f"{''.join(f'{part}, ' for part in around)}dt = {self.dt:g} s>"
        )

    @property
    def begin(self) -> Start:
        """How it begins, in full."""
        assert isinstance(self.start, Start)
        return self.start

    @property
    def cell_material(self) -> Material:
        """The material of the body's cells: `material` with its regions spread over them."""
        try:
            return self.material.on(self.body)
        except BadInput as error:
            raise BadInput(f"material.{error}") from error

    @property
    def constitution(self) -> Constitution:
        """What it is made of and how its steps are solved."""
        return constitution_of(self)

    def stress(self) -> Stress:
        """Of the body's cells."""
        return self.constitution.stress()

    @property
    def usual_unknowns(self) -> list[str]:
        """Modulus and ratio, or the numbers of a law that has its own."""
        made = self.constitution
        if made.follows_moduli:
            return ["youngs_modulus", "poisson_ratio"]
        return [name for name in self.blocks if name.startswith("law.")]

    @property
    def dt(self) -> float:
        """Time step [s]."""
        return self.integrator.dt

    def make_model(self) -> Model:
        """What steps it."""
        return self.constitution.make_model()

    @property
    def blocks(self) -> Mapping[str, Block]:
        """What may be unknown, by name."""
        from pliant.dynamics.scene_blocks import scene_blocks  # they are defined on scenes

        return scene_blocks(self)

    @property
    def can_coarsen(self) -> bool:
        """True for bodies on a grid with a shape to cut again, of one material or of regions."""
        m = self.material
        uniform = all(np.ndim(v) == 0 for v in (m.youngs_modulus, m.poisson_ratio, m.density))
        return self.body.is_grid and self.body.shape is not None and uniform

    @property
    def order(self) -> float:
        """Of the error by the time step."""
        return self.integrator.order

    def coarser(self, *, space: float = 2.0, time: float = 2.0) -> "Scene":
        """Spacing times `space` and time step times `time` (below 1: finer).

        Regions (of the material, too), loads and obstacles are shapes, so they mean the same on the
        other grid.
        """
        body, old = self.body, self.integrator
        if space != 1.0:
            if not self.can_coarsen or body.shape is None:
                raise BadInput(
                    "Only a body on a grid, made from a shape and without values for single cells, "
                    "can be coarsened."
                )
            axes = "shape" if body.follows_shape else "world"
            body = grid_body(body.shape, space * body.spacing, axes=axes, pieces=body.pieces)
        scheme = INTEGRATORS[old.name](time * old.dt, **old.parameters)
        return replace(self, body=body, integrator=scheme, source=None)

    def cautions(self, labels: Sequence[str], values: np.ndarray) -> list[str]:
        """What a fit that found `values` cannot tell, a sentence each."""
        from pliant.dynamics.scene_advice import cautions  # of scenes

        return cautions(self, labels, values)

    def run_warnings(
        self, times: np.ndarray, inverted: np.ndarray, velocities: np.ndarray
    ) -> list[str]:
        """What to know before trusting a run; velocities: of frames one step apart."""
        from pliant.dynamics.scene_advice import run_warnings

        return run_warnings(self, times, inverted, velocities)

    @property
    def judges_runs(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether its model is one that is compared with finite elements."""
        return not self.constitution.finite_elements

    def run_record(self, run: Any) -> dict[str, Any]:
        """What its model says of a run, with a sentence `told`."""
        return self.constitution.run_record(run)

    def by_model(self, model: str, numbers: Mapping[str, Any] | None) -> "Scene":
        """The same body, moved by another model with numbers of its own."""
        kinds = models()
        if model not in kinds:
            raise BadInput(f"model must be one of {', '.join(kinds)}, not '{model}'.")
        law = self.law if kinds[model].takes_law else None
        return replace(self, model=model, law=law, numbers=numbers, source=None)

    def nodal_forces(self, loads: Sequence[Load]) -> np.ndarray:
        """Of loads on its surface or its cells."""
        from pliant.dynamics.boundary import spread  # which takes scenes

        none = np.zeros((len(self.body.nodes), 3))
        return sum((spread(load, k, self.body) for k, load in enumerate(loads)), none)

    def save(self, path) -> None:
        """Write the scene as TOML (see app.describing.scene_files)."""
        from pliant.app.describing.scene_files import (
            save_scene,  # the file format belongs to the app layer
        )

        save_scene(self, path)
