"""What may be unknown in a scene of parts: numbers of one, jelly.youngs_modulus, and shared ones.

A part is a scene of its own (dynamics.scene_blocks); what is set there goes back into the part.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pliant.dynamics.model import Block, Parameters

if TYPE_CHECKING:
    from pliant.dynamics.parts.parts_scene import PartsScene

GROUND = ("ground_normal", "ground_offset")

SHARED = ("gravity", "gravity_direction", *GROUND)
"""Blocks of the surroundings."""

NONE = ("start_amplitudes", "start_velocities", "contact_stiffness")
"""Blocks that parts do not have: they begin as they are made, and the law's stiffness is one of
several bodies' contacts."""


OF_RIGID = ("initial_velocity", "initial_spin")
"""What may be unknown of a rigid part: its material is that of all of its cells together."""


@dataclass(frozen=True)
class PartBlock(Block):
    """One of a part's blocks; number: of the part; own: as the part as a scene calls it."""

    part: int = 0
    own: Block = None  # pyright: ignore

    @property
    def excludes(self) -> tuple[str, ...]:  # pyright: ignore
        """As the part's own, called after it."""
        return tuple(self.name.removesuffix(self.own.name) + n for n in self.own.excludes)

    @property
    def of_material(self) -> bool:  # pyright: ignore
        """As the part's own."""
        return self.own.of_material

    def check(self, scene: "PartsScene") -> None:
        self.own.check(scene.scenes[self.part])

    def labels(self, scene: "PartsScene", count: int) -> tuple[str, ...]:
        head = self.name.removesuffix(self.own.name)
        return tuple(head + label for label in self.own.labels(scene.scenes[self.part], count))

    def sizes(self, value: np.ndarray, scene: "PartsScene", duration: float) -> np.ndarray:
        return self.own.sizes(value, scene.scenes[self.part], duration)

    def scales(self, scene: "PartsScene", count: int) -> np.ndarray:
        return self.own.scales(scene.scenes[self.part], count)

    def get(self, scene: "PartsScene") -> Any:
        return self.own.get(scene.scenes[self.part])

    def put(self, scene: "PartsScene", value: np.ndarray) -> "PartsScene":
        changed = self.own.put(scene.scenes[self.part], value)
        parts = list(scene.parts)
        start = {"velocity": changed.initial_velocity, "spin": changed.initial_spin}
        if not parts[self.part].rigid:
            start |= {"material": changed.material, "law": changed.law, "fixed": changed.fixed}
        parts[self.part] = replace(parts[self.part], **start)
        return replace(scene, parts=parts)

    def push(self, model: Any, change: np.ndarray) -> Parameters:
        found = self.own.push(model.models[self.part], change)
        head = model.names[self.part]
        return Parameters({f"{head}.{key}": value for key, value in found.items()})

    def pull(self, model: Any, dual: Parameters, size: int) -> np.ndarray:
        own = model.derivatives.of_parts(dual)[self.part]
        return self.own.pull(model.models[self.part], own, size)


@dataclass(frozen=True)
class SharedBlock(Block):
    """A number of the surroundings: every part feels it."""

    own: Block = None  # pyright: ignore
    of_material = False

    @property
    def excludes(self) -> tuple[str, ...]:  # pyright: ignore
        """As of one body."""
        return self.own.excludes

    def check(self, scene: "PartsScene") -> None:
        self.own.check(scene.scenes[0])

    def labels(self, scene: "PartsScene", count: int) -> tuple[str, ...]:
        return self.own.labels(scene.scenes[0], count)

    def sizes(self, value: np.ndarray, scene: "PartsScene", duration: float) -> np.ndarray:
        return self.own.sizes(value, scene.scenes[0], duration)

    def scales(self, scene: "PartsScene", count: int) -> np.ndarray:
        return self.own.scales(scene.scenes[0], count)

    def get(self, scene: "PartsScene") -> Any:
        return self.own.get(scene.scenes[0])

    def put(self, scene: "PartsScene", value: np.ndarray) -> "PartsScene":
        changed = self.own.put(scene.scenes[0], value)
        return replace(scene, gravity=changed.gravity, obstacles=changed.obstacles)

    def push(self, model: Any, change: np.ndarray) -> Parameters:
        out = Parameters()
        for name, own in zip(model.names, model.models, strict=True):
            found = self.own.push(own, change)
            out.update({f"{name}.{key}": value for key, value in found.items()})
        return out


def parts_blocks(scene: "PartsScene") -> dict[str, Block]:
    """What may be unknown, by name."""
    found: dict[str, Block] = {}
    for k, (part, own) in enumerate(zip(scene.parts, scene.scenes, strict=True)):
        for name, block in own.blocks.items():
            if part.rigid and name not in OF_RIGID:
                continue
            if name not in SHARED and name not in NONE:
                called = f"{part.name}.{name}"
                found[called] = PartBlock(called, block.unit, block.chart, block.numbers, k, block)
    for name in SHARED:
        if scene.contact.is_barrier and name in GROUND:
            continue  # parts of their own have no planes then
        block = scene.scenes[0].blocks[name]
        found[name] = SharedBlock(name, block.unit, block.chart, block.numbers, block)
    return found
