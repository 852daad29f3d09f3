"""Scenes as TOML: one dictionary of plain values between the file and the `Scene`.

    file  <->  dictionary  <->  Scene
          read_description, save_scene    build_scene, describe_scene

A `Scene` made here remembers in `source` what its arrays cannot tell: the shape, how the body was
made from it, the number of steps and the title. Paths are absolute in a dictionary; in a file they
are relative to it when they lie below its folder.
"""

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pliant.app.scene_building import BodyMaker, build_scene
from pliant.app.scene_description import describe_scene, first_difference
from pliant.core.errors import BadInput
from pliant.core.files import write_text
from pliant.dynamics.scene import Scene

__all__ = [
    "BodyMaker", "build_scene", "describe_scene", "first_difference", "load_scene",
    "read_description", "save_scene", "scene_text",
]  # fmt: skip

MAX_FILE_BYTES = 10 * 1024**2
"""Largest scene file read; a list with a modulus for each of 500,000 cells fits in it."""

MAX_DEPTH = 80
"""Nesting of tables allowed in a scene file; shapes allow 64."""

_VECTOR = re.compile(r"\[\n(?:\s+[-+\w.]+,\n){1,4}\s*\]")
"""A short list of numbers as tomli_w writes it, one to a line."""


def load_scene(path_or_name: str | Path) -> Scene:
    """The scene of a TOML file, or a built-in one by its name."""
    from pliant.app.scenes import find_description  # the built-in scenes are made of descriptions

    return build_scene(find_description(path_or_name), name=str(path_or_name))


def save_scene(scene: Scene, path: str | Path) -> None:
    """Write the scene as TOML; the file appears whole or not at all."""
    path = Path(path)
    description = _with_paths(describe_scene(scene), lambda p: _shortened(p, path.parent))
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
    text = _read_text(path)
    try:
        description = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{path}: not valid TOML: {_first_line(error)}.") from error
    except RecursionError:
        raise BadInput(f"{path}: its tables are nested too deeply; flatten the shape.") from None
    if _depth(description) > MAX_DEPTH:
        raise BadInput(f"{path}: its tables are nested too deeply; flatten the shape.")
    folder = path.absolute().parent
    return _with_paths(description, lambda p: str(folder / p))


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__


def _read_text(path: Path) -> str:
    try:
        if path.is_symlink():
            raise BadInput(f"{path}: is a symbolic link; name the file itself.")
        if path.is_dir():
            raise BadInput(f"{path}: is a folder, not a scene file.")
        if not path.is_file():
            raise BadInput(f"{path}: there is no such scene file.")
        if path.stat().st_size > MAX_FILE_BYTES:
            raise BadInput(f"{path}: larger than 10 MB, which is too large for a scene file.")
        data = path.read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BadInput(f"{str(path)!r}: cannot be read ({reason}).") from error
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: not a text file (UTF-8), so not a scene file.") from error
    if "\0" in text:
        raise BadInput(f"{path}: not a text file (it has zero bytes), so not a scene file.")
    return text


def _depth(value: Any) -> int:
    deepest, stack = 0, [(value, 1)]
    while stack:
        item, level = stack.pop()
        deepest = max(deepest, level)
        children = item.values() if isinstance(item, dict) else item
        if isinstance(item, dict | list) and level <= MAX_DEPTH:
            stack.extend((child, level + 1) for child in children)
    return deepest


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
