"""Meshes of tetrahedra or triangles from and to files: .msh (Gmsh), .vtu, .vtk, .mesh (Medit)."""

import contextlib
import io
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from pliant.core.errors import BadInput
from pliant.core.files import require_file
from pliant.core.vectors import in_space
from pliant.geometry.mesh_files import MAX_FILE_BYTES

_READERS = {".msh": "gmsh", ".vtu": "vtu", ".vtk": "vtk", ".mesh": "medit"}
"""meshio's module for each ending."""

SIMPLEX_SUFFIXES = tuple(_READERS)

FLAT = 1e-9
"""A mesh whose z varies less than this part of its size lies in the plane z = const."""

_log = logging.getLogger(__name__)


def load_simplices(path: str | Path) -> tuple[np.ndarray, np.ndarray]:
    """Points (n, 3) and cells of a file: its tetrahedra (m, 4), else its triangles (m, 3).

    Quadratic cells are read as linear ones through their corners; the nodes on their edges stay
    in the points, unused.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in _READERS:
        raise BadInput(f"{path}: not a volume mesh; known endings: {', '.join(_READERS)}.")
    require_file(path, MAX_FILE_BYTES)
    if suffix == ".msh":
        _require_sane_tags(path)
    mesh = _read(path, _READERS[suffix])
    try:
        points = np.asarray(mesh.points, dtype=np.float64)
        cells = _cells(mesh.cells)
    except (TypeError, ValueError) as error:
        raise BadInput(f"{path}: its points or cells are not tables of numbers.") from error
    if points.ndim != 2 or points.shape[1] not in (2, 3) or len(points) == 0:
        raise BadInput(f"{path}: there are no points in it: export the mesh again.")
    if cells is None or len(cells) == 0:
        kinds = ", ".join(sorted({block.type for block in mesh.cells})) or "no cells at all"
        raise BadInput(f"{path}: no tetrahedra or triangles in it (only {kinds}): export those.")
    if points.shape[1] == 2:
        points = np.column_stack([points, np.zeros(len(points))])
    return points, cells


def save_simplices(path: str | Path, nodes: np.ndarray, cells: np.ndarray) -> None:
    """Write nodes (n, 2 or 3) and cells in double precision; the ending chooses how.

    cells: (m, 3 or 4), or quadratic ones (m, 6 or 10), which .mesh files cannot hold.
    """
    import meshio

    path = Path(path)
    if path.suffix.lower() not in _READERS:
        raise BadInput(f"{path}: cannot write this; known endings: {', '.join(_READERS)}.")
    points = in_space(nodes)
    kind = {3: "triangle", 4: "tetra", 6: "triangle6", 10: "tetra10"}[cells.shape[1]]
    if cells.shape[1] > 4 and path.suffix.lower() == ".mesh":
        raise BadInput(f"{path}: Medit files hold linear cells only: write .vtu, .vtk or .msh.")
    options: dict[str, Any] = {"float_fmt": ".17g"} if path.suffix.lower() == ".mesh" else {}
    form = _READERS[path.suffix.lower()]
    try:
        with _captured():
            meshio.write_points_cells(
                path, points, [(kind, np.asarray(cells))], file_format=form, **options
            )
    except OSError as error:
        raise BadInput(f"{path}: cannot be written ({error.strerror}).") from error


def planar(points: np.ndarray) -> bool:
    """Whether points (n, 3) all have the same z, up to rounding."""
    spread = np.ptp(points, axis=0)
    return bool(spread[2] <= FLAT * max(spread[0], spread[1]))


def _read(path: Path, form: str) -> Any:
    import meshio

    try:
        with _captured():
            return getattr(meshio, form).read(str(path))
    except MemoryError as error:
        raise BadInput(f"{path}: the header asks for more memory than there is.") from error
    except (Exception, SystemExit) as error:  # whatever the parsing ran into
        reason = str(error).splitlines()[0][:200] if str(error) else "damaged or cut off"
        raise BadInput(
            f"{path}: cannot be read as {path.suffix[1:].upper()} ({reason}): export it again."
        ) from error


def _require_sane_tags(path: Path) -> None:
    """Refuse a Gmsh file with a node tag far beyond its size.

    meshio makes a table as long as the largest tag: one damaged byte can ask for terabytes.
    """
    size = path.stat().st_size
    try:
        largest = _largest_node_tag(path, size)
    except (ValueError, IndexError, KeyError, OverflowError, MemoryError):
        return  # not as the format says: meshio's own message is the better one
    if largest > 10 * size + 1_000_000:
        raise BadInput(f"{path}: a node has the tag {largest}: it is damaged, export it again.")


def _largest_node_tag(path: Path, size: int) -> int:
    """Largest tag in the section $Nodes of the formats 2.2 and 4.1; 0 for others."""
    with path.open("rb") as f:
        first = f.readline().strip()
        version, binary, width = f.readline().split()[:3]
        if first != b"$MeshFormat" or version not in (b"2.2", b"4.1"):
            return 0
        separator = "" if binary == b"1" else " "
        whole = {b"4": np.uint32, b"8": np.uint64}[width]
        while (line := f.readline()).strip() != b"$Nodes":
            if not line:
                return 0

        def numbers(kind: Any, count: int) -> np.ndarray:
            found = np.fromfile(f, kind, min(int(count), size), sep=separator)
            if len(found) < count:
                raise ValueError("cut off")
            return found

        if version == b"2.2":
            row = np.dtype([("tag", np.int32), ("at", np.float64, 3)])
            count = int(f.readline())
            if separator:
                return int(numbers(np.float64, 4 * count)[::4].max())
            return int(numbers(row, count)["tag"].max())
        largest = 0
        for _ in range(int(numbers(whole, 4)[0])):
            numbers(np.int32, 3)
            count = int(numbers(whole, 1)[0])
            largest = max(largest, int(numbers(whole, count).max(initial=0)))
            numbers(np.float64, 3 * count)
        return largest


def _cells(blocks: Any) -> np.ndarray | None:
    """The tetrahedra of all blocks, else the triangles, else None."""
    for prefix, corners in (("tetra", 4), ("triangle", 3)):
        found = []
        for block in blocks:
            if not block.type.startswith(prefix) or len(block.data) == 0:
                continue
            data = np.asarray(block.data)
            if data.dtype.kind not in "iu" or data.ndim != 2 or data.shape[1] < corners:
                raise ValueError("cells must be rows of integers")
            if data.shape[1] > corners:
                _log.info("%s cells are read through their corners only", block.type)
            # int64: an unsigned index of a corrupt file must not wrap to a valid one
            found.append(data[:, :corners].astype(np.int64))
        if found:
            return np.concatenate(found)
    return None


@contextlib.contextmanager
def _captured() -> Iterator[None]:
    """Hold back what meshio prints and NumPy warns of; what matters of it is in our exception."""
    sink = io.StringIO()
    with (
        contextlib.redirect_stdout(sink),
        contextlib.redirect_stderr(sink),
        np.errstate(all="ignore"),
    ):
        yield
    if sink.getvalue().strip():
        _log.info("meshio: %s", sink.getvalue().strip().splitlines()[0])
