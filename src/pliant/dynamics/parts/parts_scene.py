"""A scene of several bodies: what they share, and each as a scene of its own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from pliant.core.errors import BadInput
from pliant.core.shown import Shown
from pliant.dynamics.integrators import GeneralisedAlpha, Integrator
from pliant.dynamics.model import Block, Model, World
from pliant.dynamics.obstacles import ContactLaw, Obstacle, Plane
from pliant.dynamics.parts.part import Part
from pliant.dynamics.parts.union_body import UnionBody, union_of

LARGEST_COUNT = 1000
"""Parts of a scene."""


@dataclass(frozen=True)
class PartsScene(World, Shown):
    """What `Scene(parts=[...])` makes: parts that touch each other, and what they share.

    contact: the law between parts, and between each and the obstacles. Between parts a law without
    numbers of its own follows the softer of the two (docs/scenes.md). The rest as in Scene.
    """

    parts: Sequence[Part]
    gravity: tuple[float, ...] = (0.0, -9.81, 0.0)
    obstacles: Sequence[Plane | Obstacle] = ()
    contact: ContactLaw = field(default_factory=ContactLaw)
    integrator: Integrator = field(default_factory=lambda: GeneralisedAlpha(dt=0.01))
    tolerance: float = 1e-8
    preconditioner: str = "multigrid"
    source: dict | None = field(default=None, compare=False, repr=False)

    def __post_init__(self):
        parts = tuple(self.parts)
        if not 1 <= len(parts) <= LARGEST_COUNT:
            raise BadInput(f"parts: a scene has 1 to {LARGEST_COUNT} parts, not {len(parts)}.")
        for part in parts:
            if not isinstance(part, Part):
                raise BadInput(f"parts: each is a Part, not {type(part).__name__}.")
        names = [part.name for part in parts]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise BadInput(f"parts: two are called '{twice[0]}'; give each a name of its own.")
        object.__setattr__(self, "parts", parts)
        if self.integrator.next_u[0] == 0.0:
            raise BadInput(
                f"parts: contact between them is taken at the end of a step, which "
                f"{self.integrator.name} does not solve for; use GeneralisedAlpha, say."
            )
        _ = self.scenes  # what is wrong with one of them is told now

    def __repr__(self) -> str:
        title = (self.source or {}).get("title")
        return (
            f"<Scene{f' {title!r}' if title else ''}: {len(self.parts)} parts, "
            f"{len(self.body.cells):,} cells, dt = {self.dt:g} s>"
        )

    @cached_property
    def scenes(self) -> list[Any]:
        """Each part as a scene of its own; a barrier to obstacles is that of all parts together."""
        obstacles, law = self.obstacles, self.contact
        if law.is_barrier:
            obstacles, law = (), ContactLaw()
        shared = {
            "gravity": self.gravity, "obstacles": obstacles, "contact": law,
            "integrator": self.integrator, "tolerance": self.tolerance,
            "preconditioner": self.preconditioner,
        }  # fmt: skip
        return [part.scene(shared) for part in self.parts]

    @cached_property
    def body(self) -> UnionBody:  # pyright: ignore
        """All parts, to look at."""
        return union_of([own.body for own in self.scenes])

    @property
    def fixed(self) -> list[Any]:  # pyright: ignore
        """Held regions of all parts."""
        return [held for part in self.parts for held in part.fixed]

    @property
    def dt(self) -> float:  # pyright: ignore
        """Time step [s]."""
        return self.integrator.dt

    @property
    def order(self) -> float:
        """Of the error by the time step."""
        return self.integrator.order

    @property
    def constitution(self) -> Any:
        """None of all parts together: what asks for it is made for one body."""
        raise BadInput(
            "A scene of parts is simulated and fitted; statics and modes are those of a scene of "
            "one body."
        )

    def save(self, path: Any) -> None:
        """Write the scene as TOML (see app.describing.parts_files)."""
        from pliant.app.describing.scene_files import (
            save_scene,  # the file format belongs to the app layer
        )

        save_scene(self, path)

    def make_model(self) -> Model:
        """What steps it."""
        from pliant.dynamics.parts.assembly import AssemblyModel  # which takes scenes

        return AssemblyModel(self)

    @property
    def blocks(self) -> Mapping[str, Block]:
        """What may be unknown: of a part, jelly.youngs_modulus, or of what they share."""
        from pliant.dynamics.parts.part_blocks import parts_blocks  # they are defined on scenes

        return parts_blocks(self)

    @property
    def usual_unknowns(self) -> list[str]:
        """Those of every part."""
        each = zip(self.parts, self.scenes, strict=True)
        return [
            f"{part.name}.{name}" for part, own in each if not part.rigid
            for name in own.usual_unknowns
        ]  # fmt: skip

    def nodal_forces(self, loads: Sequence[Any]) -> np.ndarray:
        """Loads of one's own loop."""
        raise BadInput("A scene of parts takes forces on its nodes, (nodes, 3), and no loads.")

    def run_warnings(
        self, times: np.ndarray, inverted: np.ndarray, velocities: np.ndarray
    ) -> list[str]:
        """What to know before trusting a run, a sentence each."""
        said: list[str] = []
        for k, (part, own) in enumerate(zip(self.parts, self.scenes, strict=True)):
            nodes = slice(self.body.starts[k], self.body.starts[k + 1])
            none = np.zeros_like(inverted)
            told = own.run_warnings(times, none, velocities[:, nodes])
            said += [f"{part.name}: {sentence}" for sentence in told]
        if np.any(inverted):
            said.append(f"{int(np.max(inverted))} cells turn inside out: use a smaller time step.")
        return said
