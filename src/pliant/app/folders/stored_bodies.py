"""Bodies that cannot be made again, with a run or a fit: a mesher's are not the same twice.

body.npz holds `nodes` and `cells` of a scene's mesh; of several bodies those of each mesh, as
`nodes_jelly` and `cells_jelly` of the part called jelly.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pliant.app.describing.scene_building import BodyMaker, made_body
from pliant.app.describing.scene_model import BodyTable
from pliant.app.folders.array_files import damaged, read_arrays, require_floats, write_arrays
from pliant.dynamics.parts.parts_scene import PartsScene
from pliant.fem.bodies.body import Body
from pliant.fem.bodies.tet_body import restored_body
from pliant.geometry.shape import Shape


def store_bodies(scene: Any, path: Path) -> bool:
    """Write the meshes of a scene; False, and no file, where it has none."""
    arrays: dict[str, np.ndarray] = {}
    for name, body in _bodies(scene):
        if not body.is_grid:
            arrays |= {_key("nodes", name): body.nodes, _key("cells", name): body.cells}
    if arrays:
        write_arrays(path, **arrays)
    return bool(arrays)


def _bodies(scene: Any) -> Iterator[tuple[str, Body]]:
    if isinstance(scene, PartsScene):
        yield from ((part.name, part.body) for part in scene.parts)
    else:
        yield "", scene.body


def _key(kind: str, part: str) -> str:
    return f"{kind}_{part}" if part else kind


def stored_maker(path: Path) -> BodyMaker:
    """Bodies as a file holds them, and grids, which it does not, as they are made."""
    found = read_arrays(path)

    def make(shape: Shape | None, table: BodyTable, part: str) -> Body:
        if part and table.kind == "grid":
            return made_body(shape, table, part)
        body = _restored(path, found, part)
        return replace(body, shape=shape)  # which a skin is made from

    return make


def _restored(path: Path, found: dict[str, np.ndarray], part: str) -> Body:
    names = [_key(kind, part) for kind in ("nodes", "cells")]
    if not set(names) <= set(found):
        raise damaged(path, f"{' or '.join(names)} are missing")
    nodes, cells = (found[name] for name in names)
    require_floats(path, {names[0]: nodes})
    if nodes.ndim != 2 or nodes.shape[1] not in (2, 3) or cells.ndim != 2:
        raise damaged(path, "nodes and cells are tables")
    if cells.dtype.kind not in "iu" or cells.shape[1] not in (3, 4, 6, 10) or not len(cells):
        raise damaged(path, "cells are rows of whole numbers")
    if cells.min() < 0 or cells.max() >= len(nodes):
        raise damaged(path, "a cell has a node that does not exist")
    try:
        return restored_body(nodes, cells)
    except (ValueError, IndexError) as error:
        raise damaged(path, "its cells are no body") from error
