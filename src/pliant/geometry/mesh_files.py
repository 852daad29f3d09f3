"""Triangle meshes from and to files."""

import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from pliant.core.errors import BadInput
from pliant.geometry.describe import describes
from pliant.geometry.mesh_shape import MeshShape
from pliant.geometry.shape import Shape

MESH_SUFFIXES = (".ply", ".obj", ".stl", ".off", ".glb")

MAX_FILE_BYTES = 2 * 1024**3
"""Largest mesh file read; ten times what any tested scan needs."""


def load_mesh(path: str | Path) -> MeshShape:
    """The solid bounded by the triangles of a .ply, .obj, .stl, .off or .glb file."""
    path = Path(path)
    if path.suffix.lower() not in MESH_SUFFIXES:
        raise BadInput(f"{path}: not a mesh file; known endings: {', '.join(MESH_SUFFIXES)}.")
    require_file(path, MAX_FILE_BYTES)
    vertices, faces = _triangles(path)
    try:
        return MeshShape(vertices=vertices, faces=faces, source={"file": str(path)})
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from error


@describes("mesh")
def mesh(*, file: str) -> Shape:
    """A shape from a mesh file, as scene files refer to it."""
    return load_mesh(file)


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


def require_file(path: Path, limit: int) -> None:
    """Refuse what is not a readable, non-empty file of at most `limit` bytes."""
    try:
        if not path.is_file():
            what = "is a folder, not a file" if path.is_dir() else "there is no such file"
            raise BadInput(f"{path}: {what}.")
        size = path.stat().st_size
        with path.open("rb"):
            pass
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: cannot be read ({error}).") from error
    if size == 0:
        raise BadInput(f"{path}: the file is empty.")
    if size > limit:
        raise BadInput(f"{path}: {size / 1e9:.1f} GB is more than the limit; simplify it first.")


def _triangles(path: Path) -> tuple[np.ndarray, np.ndarray]:
    import trimesh

    try:
        with _quiet_trimesh():
            # From bytes, not from the path: a file must not make the reader open other files.
            loaded: Any = trimesh.load(
                io.BytesIO(path.read_bytes()),
                file_type=path.suffix.lower()[1:],
                force="mesh",
                process=False,
                skip_materials=True,
            )
            vertices = np.asarray(loaded.vertices, dtype=np.float64)
            faces = np.asarray(getattr(loaded, "faces", np.zeros((0, 3), dtype=np.int64)))
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
        vertices, index = np.unique(vertices, axis=0, return_inverse=True)
        if faces.min() >= 0 and faces.max() < len(index):
            faces = index.reshape(-1)[faces]
        else:
            raise BadInput(f"{path}: a face refers to a vertex that does not exist: repair it.")
    return vertices, faces


@contextmanager
def _quiet_trimesh() -> Iterator[None]:
    """Hold back trimesh's own log lines: what matters of them is in our exception."""
    log = logging.getLogger("trimesh")
    before = log.disabled
    log.disabled = True
    try:
        yield
    finally:
        log.disabled = before
