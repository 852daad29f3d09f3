"""The scene being edited: its description (plain values, as in a file) and what is built of it.

Every edit makes a new description, builds the scene of it and only then takes its place: an edit
that cannot be built changes nothing and raises a BadInput.
"""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from pliant.app.describing.scene_files import build_scene, describe_scene, save_scene
from pliant.app.editor.history import History
from pliant.dynamics.scene import Scene
from pliant.fem.bodies.body import Body
from pliant.geometry.shape import Shape

Description = dict[str, Any]

OF_THE_BODY = ("shape", "body")
"""Keys of a description whose change makes another body."""


class Session:
    """description, scene, history; listeners are told of "body" and "scene" changes.

    folder: where files are read from and written to.
    """

    def __init__(self, scene: Scene, *, name: str, folder: Path):
        self.folder = folder
        self.history = History()
        self.listeners: list[Callable[[str], None]] = []
        self.body_number = 0
        self.open(scene, name)

    def open(self, scene: Scene, name: str) -> None:
        """Edit another scene."""
        self.name = name
        self._take(scene)
        self.history.clear()
        self._tell("body")

    def change(self, **tables: Any) -> None:
        """Replace top-level keys of the description; None removes one."""
        new = copy.deepcopy(self.description)
        for key, value in tables.items():
            if value is None:
                new.pop(key, None)
            else:
                new[key] = copy.deepcopy(value)
        same_body = all(new.get(k) == self.description.get(k) for k in OF_THE_BODY)
        if same_body:
            body = self.scene.body
            self._take(build_scene(new, make_body=lambda shape, table: body))
            self._tell("scene")
        else:
            self._take(build_scene(new))
            self.history.clear()
            self._tell("body")

    def take(self, scene: Scene) -> None:
        """A variant of the scene with the same body."""
        self._take(scene)
        self._tell("scene")

    def set(self, table: str, **values: Any) -> None:
        """Change entries of one table, such as the density of the material; None removes one."""
        merged = {**self.description.get(table, {}), **values}
        self.change(**{table: {k: v for k, v in merged.items() if v is not None}})

    def save(self, path: Path) -> None:
        """Write the scene as TOML."""
        save_scene(self.scene, path)

    def _take(self, scene: Scene) -> None:
        fresh = getattr(self, "scene", None) is None or self.scene.body is not scene.body
        self.scene = scene
        self.description = describe_scene(scene)
        if fresh:
            self.body_number += 1

    def _tell(self, what: str) -> None:
        for listener in self.listeners:
            listener(what)

    @property
    def body(self) -> Body:
        """The body."""
        return self.scene.body

    @property
    def shape(self) -> Shape | None:
        """The body's shape, if it was made of one."""
        return self.scene.body.shape

    def tip(self) -> int:
        """The surface point to watch: farthest from what is held, else from the centre."""
        rest = self.body.surface.positions(self.body.nodes)
        held = held_points(self.scene)
        centre = rest[held].mean(axis=0) if held.any() else self.body.nodes.mean(axis=0)
        return int(np.argmax(np.linalg.norm(rest - centre, axis=1)))


def held_points(scene: Scene) -> np.ndarray:
    """(surface points,) True inside a held region."""
    rest = scene.body.surface.positions(scene.body.nodes)
    held = np.zeros(len(rest), bool)
    for fixed in scene.fixed:
        held |= fixed.region.distance(rest) <= 1e-9 * scene.body.spacing
    return held
