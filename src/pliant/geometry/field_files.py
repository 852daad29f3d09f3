"""Fields from files: .npz and .npy grids, .nrrd and .nii scans, label volumes.

Files come from anywhere, so nothing is unpickled, and the size a header claims is checked before
memory is taken for it.
"""

import logging
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np

from pliant.core.errors import BadInput, PliantError
from pliant.core.files import require_file
from pliant.core.lengths import length
from pliant.core.numbers import number, positive
from pliant.geometry.arguments import vector
from pliant.geometry.describe import describes
from pliant.geometry.field import SampledField, check_size
from pliant.geometry.length_units import WIDE, unit_length
from pliant.geometry.shape import Shape
from pliant.geometry.volume import Volume, field_from_volume, in_metres

log = logging.getLogger(__name__)

FIELD_SUFFIXES = (".npz", ".npy", ".nrrd", ".nii", ".nii.gz")

MOST_LABELS = 1000
"""In one list; anatomical atlases have a few hundred."""

MAX_FILE_BYTES = 4 * 1024**3
"""Largest field file read: 512^3 nodes of the widest number."""


def load_field(
    path: str | Path,
    origin: Any = None,
    spacing: Any = None,
    *,
    level: float | None = None,
    label: int | Sequence[int] | None = None,
    nearest: bool = False,
    units: str | None = None,
) -> SampledField:
    """The solid in a grid file, in metres; `origin` and `spacing` replace what the file says.

    .npz has the arrays values, origin, spacing; .npy only the values and needs `spacing`;
    .nrrd and .nii need pliant[medical] and both end in the frame RAS (x right, y anterior, z
    superior; see geometry.medical_files). units: "mm", "cm" or "m", what the file's lengths,
    `origin`, `spacing` and its signed distances are in; by default what the file's header says,
    and metres if it says nothing. Voxels that are not cubes (spacing may be one number per axis)
    are resampled to the smallest edge.
    Floating-point values are signed distances, negative inside. Integers are labels, inside where
    they are not zero, or equal to `label` or to one of several. With `level`, inside is where the
    value exceeds it. With `nearest` and a label, inside is what lies nearer to it than to any other
    label but 0: a part of a body, with no rim of its own.
    """
    path = Path(path)
    ending = field_suffix(path)
    if ending is None:
        raise BadInput(f"{path}: not a field file; known endings: {', '.join(FIELD_SUFFIXES)}.")
    require_file(path, MAX_FILE_BYTES)
    source: dict[str, Any] = {"file": str(path)}
    with naming(path), np.errstate(all="ignore"):
        if level is not None:
            level = source["level"] = number("field", "level", level)
        if label is not None:
            label = source["label"] = _labels(label)
        if units is not None:
            unit_length(units)
            source["units"] = units
        volume = _READERS[ending](path)
        if spacing is not None:
            steps = _per_axis(spacing, volume.values.ndim)
            volume = replace(volume, spacing=steps)
            source["spacing"] = list(steps)
        if origin is not None:
            start = vector("field", "origin", origin, dims=(volume.values.ndim,))
            volume = replace(volume, origin=start)
            source["origin"] = list(start)
        if nearest:
            if label is None:
                raise BadInput("nearest needs a label.")
            source["nearest"] = True
        found = field_from_volume(volume, level=level, label=label, nearest=nearest, source=source)
        return in_metres(found, _unit(path, volume, found, units))


def _unit(path: Path, volume: Volume, found: SampledField, units: str | None) -> float:
    """Metres of the unit that is asked for, or else stated; a word where both are open."""
    if units is not None:
        asked = unit_length(units)
        if volume.unit is not None and volume.unit != asked:
            log.warning(
                "%s: the header's unit is %s; %s is taken, as asked for.",
                path, length(volume.unit), units,
            )  # fmt: skip
        return asked
    if volume.unit is not None:
        return volume.unit
    wide = max(found.spacing * (n - 1) for n in found.values.shape)
    if field_suffix(path) in (".nrrd", ".nii", ".nii.gz") and wide >= WIDE:
        log.warning(
            '%s: does not say its unit of length; taken as metres it is %s wide. Say units = "mm" '
            "if it is of millimetres.", path, length(wide),
        )  # fmt: skip
    return 1.0


@describes("field")
def field(
    *,
    file: str,
    origin: Any = None,
    spacing: Any = None,
    level: float | None = None,
    label: int | Sequence[int] | None = None,
    nearest: bool = False,
    units: str | None = None,
) -> Shape:
    """A shape from a field file, as scene files refer to it."""
    return load_field(file, origin, spacing, level=level, label=label, nearest=nearest, units=units)


def _labels(label: Any) -> int | list[int]:
    """One whole number, or a list of them."""
    several = isinstance(label, list | tuple | np.ndarray)
    if several and not 0 < len(label) <= MOST_LABELS:
        raise BadInput(f"field: label must be one number or a list of 1 to {MOST_LABELS}.")
    found = [number("field", "label", one) for one in (label if several else [label])]
    for one in found:
        if one != int(one):
            raise BadInput(f"field: a label is a whole number, not {one:g}.")
    return [int(one) for one in found] if several else int(found[0])


def field_suffix(path: Path) -> str | None:
    """Which of FIELD_SUFFIXES the name ends in, if any."""
    name = path.name.lower()
    return next((s for s in reversed(FIELD_SUFFIXES) if name.endswith(s)), None)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Put the file's name before any message, and turn a reader's own errors into BadInput."""
    try:
        yield
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from error
    except PliantError:
        raise
    except MemoryError as error:
        raise BadInput(f"{path}: too large for this machine's memory.") from error
    except Exception as error:  # parsers of foreign formats raise whatever they ran into
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        if isinstance(error, KeyError):
            reason = f"its header has no {reason}"
        raise BadInput(f"{path}: cannot be read ({reason}): write the file again.") from error


def _read_npz(path: Path) -> Volume:
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
            if "values.npy" not in names:
                raise BadInput("the archive has no array 'values': save values, origin, spacing.")
            found = {
                name: _read_member(archive, name, limit)
                for name, limit in (("values", None), ("origin", 3), ("spacing", 3))
                if f"{name}.npy" in names
            }
    except (zipfile.BadZipFile, EOFError) as error:
        raise BadInput(f"the archive is damaged or cut off ({error}): copy it again.") from error
    values = found["values"]
    dim = values.ndim
    origin, spacing = found.get("origin"), found.get("spacing")
    return Volume(
        values=values,
        origin=None if origin is None else vector("field", "origin", origin.ravel(), dims=(dim,)),
        spacing=None if spacing is None else _per_axis(spacing, dim),
    )


def _per_axis(spacing: Any, dim: int) -> tuple[float, ...]:
    """One spacing for all axes, or one for each, as a tuple of `dim` positive numbers."""
    if np.ndim(spacing) == 0 or np.size(spacing) == 1:
        return (positive("field", "spacing", np.asarray(spacing).item()),) * dim
    steps = vector("field", "spacing", np.ravel(spacing), dims=(dim,))
    return tuple(positive("field", f"spacing[{i}]", step) for i, step in enumerate(steps))


def _read_member(archive: zipfile.ZipFile, name: str, limit: int | None) -> np.ndarray:
    with archive.open(f"{name}.npy") as stream:
        return read_npy(stream, name, limit)


def _read_npy_file(path: Path) -> Volume:
    with path.open("rb") as stream:
        return Volume(values=read_npy(stream, "values", None), origin=None, spacing=None)


def read_npy(stream: IO[bytes], name: str, limit: int | None) -> np.ndarray:
    """One array in NumPy's format, at most `limit` numbers (None: MAX_NODES), never objects.

    Exactly as many bytes are read as the checked header announces, so a stream that expands
    without end cannot fill the memory.
    """
    try:
        version = np.lib.format.read_magic(stream)
        if version == (1, 0):
            header = np.lib.format.read_array_header_1_0(stream)
        elif version == (2, 0):
            header = np.lib.format.read_array_header_2_0(stream)
        else:
            raise BadInput(f"array '{name}' has format version {version}, save it with np.save.")
    except (ValueError, SyntaxError, EOFError) as error:
        raise BadInput(
            f"array '{name}' is not in NumPy's format ({error}): use np.save."
        ) from error
    shape, fortran, dtype = header
    if dtype.hasobject:
        raise BadInput(f"array '{name}' is pickled, which is never loaded: save it as float64.")
    if dtype.kind not in "fiub":
        raise BadInput(f"array '{name}' holds {dtype}, not real numbers: save it as float64.")
    if any(n < 0 for n in shape):  # a negative length would read the stream to its end
        raise BadInput(f"array '{name}' has the impossible shape {shape}: save it again.")
    if limit is None:
        if len(shape) not in (2, 3):
            raise BadInput(f"array '{name}' must have 2 or 3 axes, got shape {shape}.")
        check_size(shape)
    count = int(np.prod(shape, dtype=object)) if shape else 1
    if limit is not None and count > limit:
        raise BadInput(f"array '{name}' must have at most {limit} numbers, got shape {shape}.")
    wanted = count * dtype.itemsize
    data = stream.read(wanted)
    if len(data) < wanted:
        raise BadInput(
            f"array '{name}' is cut off: {len(data)} of {wanted} bytes are there; copy it again."
        )
    return np.frombuffer(data, dtype=dtype).reshape(shape, order="F" if fortran else "C")


def _read_nrrd(path: Path) -> Volume:
    from pliant.geometry.medical_files import read_nrrd

    return read_nrrd(path)


def _read_nifti(path: Path) -> Volume:
    from pliant.geometry.medical_files import read_nifti

    return read_nifti(path)


_READERS = {
    ".npz": _read_npz,
    ".npy": _read_npy_file,
    ".nrrd": _read_nrrd,
    ".nii": _read_nifti,
    ".nii.gz": _read_nifti,
}
