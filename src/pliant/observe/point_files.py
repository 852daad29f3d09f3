"""One frame of points as a file: NPZ arrays, or a PLY point cloud from any program.

Files come from anywhere: nothing is unpickled, and the count that a header claims is compared with
the file's size before memory is taken for it.
"""

import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pliant.core.errors import BadInput
from pliant.core.files import require_file, whole_file
from pliant.geometry.field_files import read_npy
from pliant.observe.observations import Frame

MAX_POINTS = 20_000_000
"""Most points of a frame; a depth camera of the largest kind has four million pixels."""

MAX_FILE_BYTES = 4 * 1024**3
HEADER_BYTES = 64 * 1024

PLY_TYPES = {
    "char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4",
    "float": "f4", "double": "f8", "int8": "i1", "uint8": "u1", "int16": "i2", "uint16": "u2",
    "int32": "i4", "uint32": "u4", "float32": "f4", "float64": "f8",
}  # fmt: skip


# --- NPZ


def write_npz_frame(path: Path, frame: Frame) -> None:
    """Arrays points (p, 3), camera, pixel and depth (p,)."""
    with whole_file(path) as temporary, temporary.open("wb") as stream:
        np.savez(
            stream, points=frame.points, camera=frame.camera.astype(np.int32),
            pixel=frame.pixel.astype(np.int32), depth=frame.depth, allow_pickle=False,
        )  # fmt: skip


def read_npz_frame(path: Path, time: float) -> Frame:
    """A frame; the arrays camera, pixel and depth may be missing (unorganised points)."""
    require_file(path, MAX_FILE_BYTES)
    found: dict[str, np.ndarray] = {}
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
            for name, limit in (("points", 3), ("camera", 1), ("pixel", 1), ("depth", 1)):
                if f"{name}.npy" in names:
                    with archive.open(f"{name}.npy") as stream:
                        found[name] = read_npy(stream, name, limit * MAX_POINTS)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from error
    except Exception as error:  # zipfile and zlib raise whatever a damaged file led them to
        message = f"{path}: the archive is damaged or cut off ({error}): copy it again."
        raise BadInput(message) from error
    if "points" not in found:
        raise BadInput(f"{path}: the archive has no array 'points': save points, (count, 3).")
    points = require_points(path, found["points"])
    n = len(points)
    if not {"camera", "pixel", "depth"} <= found.keys():
        return unorganised(time, points)
    for name in ("camera", "pixel", "depth"):
        if found[name].shape != (n,):
            raise BadInput(
                f"{path}: array '{name}' has shape {found[name].shape} for {n} points: save one "
                "number per point."
            )
    if found["camera"].dtype.kind not in "iu" or found["pixel"].dtype.kind not in "iu":
        raise BadInput(f"{path}: the arrays 'camera' and 'pixel' must hold whole numbers.")
    camera, pixel = found["camera"].astype(np.int64), found["pixel"].astype(np.int64)
    depth = found["depth"].astype(float)
    wrong = np.flatnonzero((camera >= 0) & ~(np.isfinite(depth) & (depth > 0.0)))
    if len(wrong):
        raise BadInput(
            f"{path}: depth[{wrong[0]}] is {depth[wrong[0]]}, not a positive distance: remove such "
            "points."
        )
    return Frame(time, points, camera, pixel, depth)


def unorganised(time: float, points: np.ndarray) -> Frame:
    """A frame of points without cameras."""
    none = np.full(len(points), -1)
    return Frame(time, points, none, none, np.full(len(points), np.nan))


def require_points(path: Path, points: np.ndarray) -> np.ndarray:
    """(p, 3) finite numbers as f64."""
    if points.ndim != 2 or points.shape[1] != 3:
        raise BadInput(f"{path}: the points have shape {points.shape}, not (count, 3).")
    points = points.astype(float)
    wrong = np.flatnonzero(~np.isfinite(points).all(axis=1))
    if len(wrong):
        raise BadInput(
            f"{path}: point {wrong[0]} of {len(points)} is not finite ({len(wrong)} such points): "
            "remove them when exporting."
        )
    return points


# --- PLY


def write_ply_points(path: Path, points: np.ndarray) -> None:
    """A binary point cloud in double precision."""
    head = (
        "ply\nformat binary_little_endian 1.0\ncomment pliant, metres\n"
        f"element vertex {len(points)}\n"
        "property double x\nproperty double y\nproperty double z\nend_header\n"
    )
    with whole_file(path) as temporary:
        temporary.write_bytes(head.encode("ascii") + points.astype("<f8").tobytes())


@dataclass(frozen=True)
class PlyHeader:
    """order: '<', '>' or 'a' (text); count of vertices; columns: their properties (name, type)."""

    order: str
    count: int
    columns: list[tuple[str, str]]
    skipped_bytes: int
    skipped_lines: int
    size: int


def read_ply_points(path: Path) -> np.ndarray:
    """The vertices (p, 3) of a PLY file, text or binary, whatever else it holds."""
    require_file(path, MAX_FILE_BYTES)
    with path.open("rb") as stream:
        start = stream.read(HEADER_BYTES)
    header = _ply_header(path, start)
    room = path.stat().st_size - header.size
    names = [name for name, _ in header.columns]
    missing = [axis for axis in "xyz" if axis not in names]
    if missing:
        raise BadInput(f"{path}: the vertices have no property '{missing[0]}': export x, y, z.")
    if header.count > MAX_POINTS:
        raise BadInput(
            f"{path}: {header.count} points are more than {MAX_POINTS}: thin the cloud out."
        )
    if header.order == "a":
        return require_points(path, _text_points(path, header, room, names))
    row = np.dtype([(name, header.order + kind) for name, kind in header.columns])
    wanted = header.skipped_bytes + header.count * row.itemsize
    if wanted > room:
        raise BadInput(
            f"{path}: cut off: the header promises {header.count} points, that is {wanted} "
            f"bytes, and {room} are there: copy it again."
        )
    with path.open("rb") as stream:
        stream.seek(header.size + header.skipped_bytes)
        rows = np.frombuffer(stream.read(header.count * row.itemsize), row)
    return require_points(path, np.stack([rows[axis].astype(float) for axis in "xyz"], axis=1))


def _text_points(path: Path, header: PlyHeader, room: int, names: list[str]) -> np.ndarray:
    if header.count * 2 * len(names) > room + 1:
        raise BadInput(
            f"{path}: cut off: the header promises {header.count} points, too many for its "
            f"{room} bytes: copy it again."
        )
    with path.open("rb") as stream:
        stream.seek(header.size)
        lines = stream.read().split(b"\n")[header.skipped_lines :]
    out = np.empty((header.count, 3))
    columns = [names.index(axis) for axis in "xyz"]
    for i in range(header.count):
        words = lines[i].split() if i < len(lines) else []
        try:
            if len(words) < len(names):
                raise ValueError(f"{len(words)} of {len(names)} numbers")
            out[i] = [float(words[c]) for c in columns]
        except ValueError as error:
            raise BadInput(
                f"{path}: point {i} of {header.count} cannot be read ({error}): copy or export the "
                "file again."
            ) from error
    return out


def _ply_header(path: Path, start: bytes) -> PlyHeader:
    def bad(why: str) -> BadInput:
        return BadInput(f"{path}: not a readable PLY file ({why}): export it again.")

    if not start.startswith(b"ply"):
        raise bad("it does not begin with 'ply'")
    mark = start.find(b"end_header")
    end = start.find(b"\n", mark)
    if mark < 0 or end < 0:
        raise bad("its header has no end")
    order = ""
    elements: list[tuple[str, int, list[tuple[str, str]]]] = []
    for line in start[:mark].decode("latin-1").splitlines()[1:]:
        words = line.split()
        if not words or words[0] in ("comment", "obj_info"):
            continue
        if words[0] == "format" and len(words) >= 2:
            order = {"ascii": "a", "binary_little_endian": "<", "binary_big_endian": ">"}.get(
                words[1], ""
            )
        elif words[0] == "element" and len(words) == 3 and words[2].isdecimal():
            elements.append((words[1], int(words[2]), []))
        elif words[0] == "property" and elements and len(words) == 3 and words[1] in PLY_TYPES:
            elements[-1][2].append((words[2], PLY_TYPES[words[1]]))
        elif words[0] == "property" and elements and len(words) == 5 and words[1] == "list":
            elements[-1][2].append((words[4], "list"))
        else:
            raise bad(f"line '{line.strip()[:60]}'")
    if not order:
        raise bad("it names no known format")
    bytes_before = lines_before = 0
    for name, count, columns in elements:
        lists = any(kind == "list" for _, kind in columns)
        if name == "vertex":
            if lists:
                raise bad("its vertices have lists")
            if len({c for c, _ in columns}) < len(columns):
                raise bad("a property of its vertices is there twice")
            return PlyHeader(order, count, columns, bytes_before, lines_before, end + 1)
        if lists:
            raise bad(f"the element '{name}' comes before the vertices")
        bytes_before += count * sum(np.dtype(kind).itemsize for _, kind in columns)
        lines_before += count
    raise bad("it has no vertices")
