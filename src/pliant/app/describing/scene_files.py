"""Scenes as TOML: one dictionary of plain values between the file and the `Scene`.

    file  <->  dictionary  <->  Scene
          read_description, save_scene    build_scene, describe_scene

A `Scene` made here remembers in `source` what its arrays cannot tell: the shape, how the body was
made from it, the number of steps and the title. Paths are absolute in a dictionary; in a file they
are relative to it when they lie below its folder. Long lists are in a file beside it (side_files).
"""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pliant.app.describing.scene_building import BodyMaker, build_scene
from pliant.app.describing.scene_description import describe_scene, first_difference
from pliant.app.describing.side_files import read_side, write_side
from pliant.core.errors import BadInput
from pliant.core.files import read_toml, write_text
from pliant.dynamics.parts.parts_scene import PartsScene
from pliant.dynamics.scene import Scene

__all__ = [
    "BodyMaker", "build_scene", "describe_scene", "first_difference", "load_scene",
    "read_description", "save_scene", "scene_text",
]  # fmt: skip

_VECTOR = re.compile(r"\[\n(?:\s+[-+\w.]+,\n){1,4}\s*\]")
"""A short list of numbers as tomli_w writes it, one to a line."""


def load_scene(path_or_name: str | Path) -> Scene:
    """The scene of a TOML file, or a built-in one by its name."""
    from pliant.app.describing.scenes import (
        find_description,  # the built-in scenes are made of descriptions
    )

    return build_scene(find_description(path_or_name), name=str(path_or_name))


def save_scene(scene: Scene | PartsScene, path: str | Path) -> None:
    """Write the scene as TOML; the file appears whole or not at all.

    Long lists, as a modulus for every cell, go into a file NAME.cells.npz beside it.
    """
    path = Path(path)
    described = write_side(describe_scene(scene), path)
    description = _with_paths(described, lambda p: _shortened(p, path.parent))
    write_text(path, scene_text(description))


def scene_text(description: Mapping[str, Any]) -> str:
    """A scene's dictionary as TOML."""
    import tomli_w

    return _VECTOR.sub(_one_line, tomli_w.dumps(dict(description)))


def _one_line(found: re.Match[str]) -> str:
    return f"[{', '.join(found.group()[1:-1].replace(',', ' ').split())}]"


def read_description(path: str | Path) -> dict[str, Any]:
    """The dictionary of a TOML file, with absolute paths; the keys are not checked yet."""
    path = Path(path)
    if os.path.islink(path):
        raise BadInput(f"{path}: is a symbolic link; name the file itself.")
    folder = path.absolute().parent
    tables = _with_paths(read_toml(path), lambda p: str(folder / p))
    try:
        return read_side(tables)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from error


def _with_paths(value: Any, change: Callable[[str], str]) -> Any:
    """A copy in which every text under a key "file" is changed."""
    if isinstance(value, Mapping):
        return {
            k: change(v) if k == "file" and isinstance(v, str) else _with_paths(v, change)
            for k, v in value.items()
        }
    return [_with_paths(v, change) for v in value] if isinstance(value, list | tuple) else value


def _shortened(path: str, folder: Path) -> str:
    inside = os.path.relpath(path, folder)
    return path if inside.startswith(os.pardir) else inside
