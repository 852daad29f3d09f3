"""What only an elastic body can be asked for: its modes, its rest, its stress."""

from typing import Any

from pliant.core.errors import BadInput
from pliant.dynamics.parts.parts_scene import PartsScene
from pliant.dynamics.scene import Scene


class NotElastic(BadInput):
    """A world that has none of these."""


def require_elastic(world: Any, what: str) -> Scene:
    """The scene, if it is one of finite elements; `what` begins the sentence that refuses."""
    if isinstance(world, Scene):
        return world
    if isinstance(world, PartsScene):
        raise NotElastic(f"{what} takes a scene of one body, and this one has parts.")
    raise NotElastic(f"{what} needs an elastic body, and a {type(world).__name__} is none.")
