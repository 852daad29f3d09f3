"""Triangle meshes from and to files."""

import io
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from pliant.core.errors import BadInput
from pliant.core.files import require_file
from pliant.geometry.describe import describes
from pliant.geometry.length_units import unit_length
from pliant.geometry.mesh_promises import checked
from pliant.geometry.mesh_shape import MeshShape, encloses
from pliant.geometry.shape import Shape

_log = logging.getLogger(__name__)

MESH_SUFFIXES = (".ply", ".obj", ".stl", ".off", ".glb")

MAX_FILE_BYTES = 2 * 1024**3
"""Largest mesh file read; ten times what any tested scan needs."""


def load_mesh(path: str | Path, *, units: str | None = None) -> MeshShape:
    """The solid bounded by the triangles of a .ply, .obj, .stl, .off or .glb file.

    units: "mm", "cm" or "m" (the default), which its coordinates are in.
    """
    path = Path(path)
    if path.suffix.lower() not in MESH_SUFFIXES:
        raise BadInput(f"{path}: not a mesh file; known endings: {', '.join(MESH_SUFFIXES)}.")
    require_file(path, MAX_FILE_BYTES)
    vertices, faces = _triangles(path)
    source = {"file": str(path)}
    try:
        if units is not None:
            vertices, source["units"] = vertices * unit_length(units), units
        shape = MeshShape(vertices=vertices, faces=faces, source=source)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from error
    if not encloses(shape.vertices, shape.faces):
        _log.warning(
            "%s: the mesh is not closed; its holes are bridged, so that about %.3g m3 are inside: "
            "check that the file is whole.", path, shape.volume(),
        )  # fmt: skip
    return shape


@describes("mesh")
def mesh(*, file: str, units: str | None = None) -> Shape:
    """A shape from a mesh file, as scene files refer to it."""
    return load_mesh(file, units=units)


def save_mesh(path: str | Path, vertices: np.ndarray, faces: np.ndarray) -> None:
    """Write triangles; the file's ending chooses the format."""
    import trimesh

    path = Path(path)
    if path.suffix.lower() not in MESH_SUFFIXES:
        raise BadInput(f"{path}: cannot write this; known endings: {', '.join(MESH_SUFFIXES)}.")
    try:
        trimesh.Trimesh(vertices, faces, process=False).export(path)
    except OSError as error:
        raise BadInput(f"{path}: cannot be written ({error.strerror}).") from error


def _triangles(path: Path) -> tuple[np.ndarray, np.ndarray]:
    import trimesh

    try:
        with quiet_trimesh():
            # From bytes, not from the path: a file must not make the reader open other files.
            data = checked(path.read_bytes(), path.suffix.lower())
            loaded: Any = trimesh.load(
                io.BytesIO(data),
                file_type=path.suffix.lower()[1:],
                force="mesh",
                process=False,
                skip_materials=True,
            )
            vertices = np.asarray(loaded.vertices, dtype=np.float64)
            faces = np.asarray(getattr(loaded, "faces", np.zeros((0, 3), dtype=np.int64)))
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from error
    except MemoryError as error:
        raise BadInput(f"{path}: the header asks for more memory than there is.") from error
    except Exception as error:  # trimesh's readers raise whatever the parsing ran into
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        if isinstance(error, ImportError):  # trimesh looks for a guesser of text encodings
            reason = "it is cut off or not of this format"
        raise BadInput(
            f"{path}: cannot be read as {path.suffix[1:].upper()} ({reason}): export it again."
        ) from error
    if vertices.size == 0 or faces.size == 0:
        raise BadInput(f"{path}: the mesh has no faces (a point cloud?): export it with triangles.")
    if vertices.ndim == 2 and np.isfinite(vertices).all():
        # STL files repeat vertices; merged, a closed one can be known as closed.
        vertices, index = _merged(vertices)
        if faces.min() >= 0 and faces.max() < len(index):
            faces = index[faces]
        else:
            raise BadInput(f"{path}: a face refers to a vertex that does not exist: repair it.")
    return vertices, faces


def _merged(vertices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Different rows (n, 3) in ascending order, and the place of each row in them."""
    order = np.lexsort(vertices.T[::-1])  # ten times as fast as np.unique along an axis
    rows = vertices[order]
    new = np.concatenate([[True], (rows[1:] != rows[:-1]).any(axis=1)])
    place = np.empty(len(vertices), np.int64)
    place[order] = np.cumsum(new) - 1
    return rows[new], place


@contextmanager
def quiet_trimesh() -> Iterator[None]:
    """Hold back trimesh's own log lines: what matters of them is in our exception."""
    log = logging.getLogger("trimesh")
    before = log.disabled
    log.disabled = True
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            yield
    finally:
        log.disabled = before
