"""The scene being edited: its description (plain values, as in a file) and what is built of it.

Every edit makes a new description, builds the scene of it and only then takes its place: an edit
that cannot be built changes nothing and raises a BadInput.
"""

import copy
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from pliant.app.describing.scene_files import build_scene, describe_scene, save_scene
from pliant.app.editor.history import History
from pliant.core.errors import BadInput
from pliant.dynamics.scene import Scene
from pliant.fem.bodies.body import Body
from pliant.geometry.shape import Shape

Description = dict[str, Any]

OF_THE_BODY = ("shape", "body")
"""Keys of a description whose change makes another body."""


MOST_EDITS = 50
"""That can be undone."""

ONE_EDIT = 1.0
"""Seconds within which changes of the same entries are one edit: a slider being dragged."""


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
        self._past: list[Scene] = []
        self._future: list[Scene] = []
        self._edited: tuple[frozenset[str], float] = (frozenset(), 0.0)
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
        body = self.scene.body
        made = build_scene(new, make_body=(lambda *_: body) if same_body else None)
        self._remember(frozenset(k for k in new if new[k] != self.description.get(k)))
        self._show(made)

    def take(self, scene: Scene) -> None:
        """A variant of the scene with the same body."""
        self._remember(frozenset())
        self._show(scene)

    # --- undo

    @property
    def can_undo(self) -> bool:
        """Whether there is an edit to take back."""
        return bool(self._past)

    @property
    def can_redo(self) -> bool:
        """Whether there is one to make again."""
        return bool(self._future)

    def undo(self) -> None:
        """Take the last edit back; the body before it is the same object again."""
        if not self._past:
            raise BadInput("There is nothing to undo.")
        self._future.append(self.scene)
        self._edited = (frozenset(), 0.0)
        self._show(self._past.pop())

    def redo(self) -> None:
        """Make the edit again that was taken back last."""
        if not self._future:
            raise BadInput("There is nothing to redo.")
        self._past.append(self.scene)
        self._edited = (frozenset(), 0.0)
        self._show(self._future.pop())

    def _remember(self, keys: frozenset[str]) -> None:
        """Keep the scene before an edit; while a slider is dragged, the one before all of it."""
        now = time.monotonic()
        before, when = self._edited
        if not (keys and keys == before and now - when < ONE_EDIT):
            self._past = [*self._past[1 - MOST_EDITS :], self.scene]
        self._future = []
        self._edited = (keys, now)

    def _show(self, scene: Scene) -> None:
        """Take a scene's place, and tell who draws it."""
        same = scene.body is self.scene.body
        self._take(scene)
        if not same:
            self.history.clear()
        self._tell("scene" if same else "body")

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
        held |= fixed.place.distance(rest) <= 1e-9 * scene.body.spacing
    return held
