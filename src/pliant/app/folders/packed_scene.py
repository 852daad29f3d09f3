"""A scene as one bundle: its file's own text, and every file that the text refers to.

A scene file names meshes, fields and long lists by their paths. A bundle holds them under names of
its own, so that it means the same on another machine: {"scene.toml": ..., "0-bunny.npz": ...}.
"""

import re
import tempfile
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pliant.app.describing.scene_files import read_description, save_scene, scene_text
from pliant.app.folders.run_directory import BODY, SCENE, open_scene
from pliant.app.folders.stored_bodies import store_bodies
from pliant.core.errors import BadInput
from pliant.core.files import read_bytes, read_toml
from pliant.dynamics.scene import Scene

MOST_BYTES = 512 * 1024**2
"""Of all files together."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,80}")


def scene_bundle(scene: Scene) -> dict[str, bytes]:
    """The files of a scene by name; the body's own nodes and cells, if a mesher made them."""
    with tempfile.TemporaryDirectory(prefix="pliant-") as name:
        folder = Path(name)
        save_scene(scene, folder / SCENE)
        named: dict[str, bytes] = {}
        short: dict[str, str] = {}

        def taken(path: str) -> str:
            whole = str(folder / path)
            if whole not in short:
                ending = re.sub(r"[^A-Za-z0-9._-]", "_", Path(path).name)[-60:]
                short[whole] = f"{len(short)}-{ending}"
                named[short[whole]] = read_bytes(whole, limit=MOST_BYTES)
            return short[whole]

        text = scene_text(_with_files(read_toml(folder / SCENE), taken))
        if store_bodies(scene, folder / BODY):
            named[BODY] = read_bytes(folder / BODY, limit=MOST_BYTES)
        total = sum(len(data) for data in named.values())
        if total > MOST_BYTES:
            raise BadInput(f"The files of the scene have {total / 2**20:.0f} MB, too many to pack.")
        return {SCENE: text.encode(), **named}


def _with_files(value: Any, change: Callable[[str], str]) -> Any:
    """A copy in which every text under a key "file" is changed."""
    if isinstance(value, Mapping):
        return {
            k: change(v) if k == "file" and isinstance(v, str) else _with_files(v, change)
            for k, v in value.items()
        }
    return [_with_files(v, change) for v in value] if isinstance(value, list) else value


@contextmanager
def unbundled(bundle: Mapping[str, bytes]):
    """The scene of a bundle; its files are there as long as the block lasts.

    A text that refers to a file outside of the bundle is refused.
    """
    with tempfile.TemporaryDirectory(prefix="pliant-") as name:
        folder = Path(name)
        for key, data in bundle.items():
            if not _NAME.fullmatch(key):
                raise BadInput("a file of its scene has a name that cannot be used")
            (folder / key).write_bytes(data)
        if SCENE not in bundle:
            raise BadInput("it holds no scene")

        def known(path: str) -> str:
            if path not in bundle:
                raise BadInput(f"its scene refers to '{path[:60]}', which it does not hold")
            return path

        _with_files(read_toml(folder / SCENE), known)
        yield open_scene(read_description(folder / SCENE), None, str(folder))
