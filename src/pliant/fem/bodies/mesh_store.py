"""Meshes that were made once: fTetWild does not make the same mesh twice from one surface.

Its order of operations differs from run to run, even on one thread, and with it the number of cells
(by a third, for coarse meshes). What a user meshed yesterday must be what is simulated today, so
the first mesh of a surface is kept, and every later body of that surface has it.
"""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from pliant.core.errors import BadInput
from pliant.core.files import whole_file

MOST = 200
"""Meshes that are kept; the one unused for longest goes first."""

Mesh = tuple[np.ndarray, np.ndarray]


def folder() -> Path:
    """PLIANT_CACHE, or a folder of the user's own for what can be made again."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("PLIANT_CACHE") or Path(base) / "pliant") / "meshes"


def kept_mesh(make: Callable[..., Mesh], version: str, **given: np.ndarray | float) -> Mesh:
    """make(**given), or what it gave for the same numbers before; version: of the mesher."""
    digest = hashlib.sha256(version.encode())
    for name in sorted(given):
        value = np.ascontiguousarray(given[name])
        digest.update(f"{name} {value.dtype.str} {value.shape}".encode() + value.tobytes())
    place = folder() / f"{digest.hexdigest()[:32]}.npz"
    found = _read(place)
    if found is None:
        found = make(**given)
        _write(place, found)
    return found


def _read(place: Path) -> Mesh | None:
    try:
        with np.load(place) as file:
            nodes, cells = file["nodes"], file["cells"]
        place.touch()
    except (OSError, ValueError, KeyError, EOFError, BadZipFile):  # missing or damaged
        return None
    whole = nodes.ndim == 2 and cells.ndim == 2 and cells.dtype.kind == "i" and cells.size
    if not whole or not np.isfinite(nodes).all() or cells.min() < 0 or cells.max() >= len(nodes):
        return None
    return nodes, cells


def _write(place: Path, mesh: Mesh) -> None:
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(place) as beside, open(beside, "wb") as file:
            np.savez_compressed(file, nodes=mesh[0], cells=mesh[1])
        by_age = sorted(place.parent.glob("*.npz"), key=lambda p: p.stat().st_mtime)
        for old in by_age[:-MOST]:
            old.unlink(missing_ok=True)
    except (OSError, BadInput):
        return  # a home that cannot be written: the next mesh will be another
