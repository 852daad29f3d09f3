"""Worlds by the name that a scene file has for them: `kind = "pendulum"`.

A file without the key `kind` is a scene of finite elements. Other worlds are entered by whoever
wrote them, or by an installed package through the entry points `pliant.worlds`, which are looked up
when a kind is asked for that nobody has entered yet:

    [project.entry-points."pliant.worlds"]
    pendulum = "my_package.pendulum:Swing"
"""

import difflib
from collections.abc import Callable
from dataclasses import fields
from importlib.metadata import entry_points
from typing import TypeVar

from pliant.core.errors import BadInput
from pliant.dynamics.model import World

GROUP = "pliant.worlds"
"""Entry points of installed packages."""

RESERVED = ("kind", "title", "description", "steps", "shape")
"""Keys of every file, which no field of a world may be called."""

W = TypeVar("W", bound=type[World])
_KINDS: dict[str, type[World]] = {}


def world(kind: str) -> Callable[[W], W]:
    """Decorator, above @dataclass(frozen=True): files with this `kind` describe such a world."""

    def enter(cls: W) -> W:
        register_world(kind, cls)
        return cls

    return enter


def register_world(kind: str, cls: type[World]) -> None:
    """Files with this `kind` describe such a world: a dataclass of plain fields and a body.

    The same class may be entered again, as a module that is loaded twice does.
    """
    name = cls.__name__
    if not isinstance(kind, str) or not kind:
        raise BadInput(f"{name}: its kind must be a word, not {kind!r}.")
    if "__dataclass_fields__" not in vars(cls) or not issubclass(cls, World):
        raise BadInput(f"{name}: only a World with @dataclass(frozen=True) of its own has a kind.")
    own = [f.name for f in fields(cls)]  # pyright: ignore[reportArgumentType]
    if wrong := [key for key in RESERVED if key in own]:
        raise BadInput(f"{name}: no field may be called '{wrong[0]}', which every file has.")
    if "source" not in own:
        raise BadInput(f"{name}: it needs a field 'source' for what a file says beside its fields.")
    there = _KINDS.get(kind)
    if there is not None and _home(there) != _home(cls):
        raise BadInput(f"{name}: the kind '{kind}' is {there.__name__} already.")
    _KINDS[kind] = cls


def _home(cls: type) -> tuple[str, str]:
    return cls.__module__, cls.__qualname__


def world_class(kind: str) -> type[World]:
    """The class of a kind; raises BadInput where there is none."""
    if kind not in _KINDS:
        _load(kind)
    if kind not in _KINDS:
        known = known_kinds()
        near = difflib.get_close_matches(kind, known, n=1)
        if near:
            hint = f"did you mean '{near[0]}'?"
        elif known:
            hint = f"known: {', '.join(known)} (a scene of finite elements has no kind)."
        else:
            hint = "import the module that defines it, or install its package."
        raise BadInput(f"kind: there is no kind of world '{kind}'; {hint}")
    return _KINDS[kind]


def kind_of(which: World) -> str:
    """The name in files of a world's class."""
    for kind, cls in _KINDS.items():
        if cls is type(which):
            return kind
    name = type(which).__name__
    raise BadInput(f'A {name} has no name in files yet: put @pl.world("name") above its class.')


def known_kinds() -> list[str]:
    """All kinds that are entered or installed."""
    return sorted({*_KINDS, *entry_points(group=GROUP).names})


def _load(kind: str) -> None:
    """Enter the class of an installed package."""
    for found in entry_points(group=GROUP, name=kind):
        try:
            cls = found.load()
        except Exception as error:  # whatever the import of another's package ends with
            raise BadInput(f"kind: '{kind}' ({found.value}) cannot be loaded: {error}.") from error
        if kind not in _KINDS:  # its module may have entered it itself
            register_world(kind, cls)
        return
