"""Volumes from medical imaging files: NRRD and NIfTI.

Both end in one frame, RAS: x to the patient's right, y to the front (anterior), z to the head
(superior). NIfTI is in it; NRRD names its own, often LPS (x to the left, y to the back), which is
turned. A NRRD file that names no such frame is taken as it is.
"""

import bz2
import logging
import zlib
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np

from pliant.core.errors import BadInput, MissingExtra
from pliant.geometry.field import check_size
from pliant.geometry.length_units import stated_length
from pliant.geometry.volume import Volume, oriented

SLACK = 1 << 24
"""Bytes a compressed stream may hold beyond the voxels (headers and their extensions)."""

_BLOCK = 1 << 20


def read_nrrd(path: Path) -> Volume:
    """A 2D or 3D NRRD volume, turned from the space that its header names to RAS."""
    try:
        import nrrd
    except ImportError as error:
        raise MissingExtra("pynrrd", "medical", "Reading .nrrd files") from error
    with path.open("rb") as stream:
        header = nrrd.read_header(stream)
        sizes = [int(n) for n in np.atleast_1d(header["sizes"])]
        _check_shape(sizes)
        for key in ("line skip", "lineskip", "byte skip", "byteskip"):
            if not -1 <= int(header.get(key, 0)) <= path.stat().st_size:
                raise BadInput(f"the header's '{key}' goes beyond the end of the file.")
        if "data file" in header or "datafile" in header:
            raise BadInput("the data are in another file: save header and data in one .nrrd file.")
        if header.get("type") == "block":
            raise BadInput("block data hold no plain numbers: save the volume as float.")
        encoding = header.get("encoding", "raw")
        if encoding in ("gzip", "gz", "bzip2", "bz2"):
            data = stream.tell()
            voxels = int(np.prod(sizes, dtype=object)) * 8
            coder = zlib.decompressobj(47) if encoding.startswith("g") else bz2.BZ2Decompressor()
            _check_expansion(stream, coder, voxels + SLACK)
            stream.seek(data)
        values = np.asarray(nrrd.read_data(header, stream, str(path)))
    return _nrrd_frame(values, header)


def _nrrd_frame(values: np.ndarray, header: Any) -> Volume:
    dim = values.ndim
    directions = header.get("space directions")
    if directions is not None:
        matrix = np.array(directions, dtype=np.float64).T
        if matrix.shape != (dim, dim):
            raise BadInput(f"the space directions have shape {matrix.shape}, need ({dim}, {dim}).")
        origin = np.array(header.get("space origin", np.zeros(dim)), dtype=np.float64)
        if origin.shape != (dim,):
            raise BadInput(f"the space origin needs {dim} numbers.")
        turn = _to_ras(header.get("space"), dim)
        volume = oriented(values, turn @ matrix, turn @ origin)
        return replace(volume, unit=_stated_unit(header, "space units"))
    unit = _stated_unit(header, "units")
    spacings = header.get("spacings")
    if spacings is None:
        return Volume(values=values, origin=None, spacing=None, unit=unit)
    edges = np.array(spacings, dtype=np.float64)
    if not (edges > 0.0).all():
        raise BadInput(f"the spacings must be positive, not {edges.tolist()}.")
    return replace(oriented(values, np.diag(edges), np.zeros(dim)), unit=unit)


def _to_ras(space: Any, dim: int) -> np.ndarray:
    """The matrix from a named space, "left-posterior-superior" or "LPS", to RAS.

    Unity where the name does not say where right, front and head are.
    """
    name = str(space or "").strip().lower()
    words = name.split("-") if "-" in name else list(name)
    letters = [word[:1] for word in words]
    axes = [_AXIS.get(letter) for letter in letters]
    if dim != 3 or None in axes or sorted(a[0] for a in axes if a) != [0, 1, 2]:
        return np.eye(dim)
    turn = np.zeros((3, 3))
    for column, axis in enumerate(axes):
        assert axis is not None
        turn[axis[0], column] = axis[1]
    return turn


_AXIS = {
    "r": (0, 1.0),
    "l": (0, -1.0),
    "a": (1, 1.0),
    "p": (1, -1.0),
    "s": (2, 1.0),
    "i": (2, -1.0),
}
"""Axis and direction in RAS of right, left, anterior, posterior, superior, inferior."""


def _stated_unit(header: Any, key: str) -> float | None:
    """Metres of the unit that a NRRD header gives all axes, if it does."""
    names = header.get(key)
    if names is None or isinstance(names, str):
        return None
    found = {stated_length(name) for name in names}
    return found.pop() if len(found) == 1 else None


def read_nifti(path: Path) -> Volume:
    """A 3D NIfTI volume in its frame, RAS."""
    try:
        import nibabel
    except ImportError as error:
        raise MissingExtra("nibabel", "medical", "Reading .nii files") from error
    if path.suffix.lower() == ".gz":
        # Even the header's extensions may expand without end, so count before parsing.
        with path.open("rb") as stream:
            _check_expansion(stream, zlib.decompressobj(47), 512**3 * 8 + SLACK)
    logging.getLogger("nibabel.global").setLevel(logging.CRITICAL)  # what it says, we say
    image: Any = nibabel.load(path)
    shape = [int(n) for n in image.shape]
    while len(shape) > 3 and shape[-1] == 1:
        shape.pop()
    _check_shape(shape)
    values = np.asanyarray(image.dataobj).reshape(shape)
    if len(shape) == 2:
        raise BadInput("a NIfTI file needs 3 axes: save the slice as .npy or .nrrd.")
    affine = np.asarray(image.affine, dtype=np.float64)
    unit = stated_length(image.header.get_xyzt_units()[0])
    return replace(oriented(values, affine[:3, :3], affine[:3, 3]), unit=unit)


def _check_shape(shape: list[int]) -> None:
    if len(shape) not in (2, 3):
        raise BadInput(f"the volume has {len(shape)} axes, need 2 or 3: save one channel or frame.")
    if min(shape) < 2:
        raise BadInput(f"the volume needs at least 2 voxels per axis, got {shape}.")
    check_size(shape)


def _check_expansion(stream: IO[bytes], coder: Any, limit: int) -> None:
    """Count what a compressed stream expands to, a block at a time, and stop at the limit."""
    total = 0
    block = stream.read(_BLOCK)
    while not coder.eof:
        out = len(coder.decompress(block, _BLOCK))
        total += out
        if total > limit:
            raise BadInput("the compressed data expand to far more than the volume needs.")
        # What the output limit held back stays with the coder: zlib returns it, bz2 keeps it.
        block = getattr(coder, "unconsumed_tail", b"")
        if not block and getattr(coder, "needs_input", True):
            block = stream.read(_BLOCK)
            if not block and not out:
                raise BadInput("the compressed data are cut off: copy the file again.")
