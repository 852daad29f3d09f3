"""Named arrays as .npz files of ours, read as if anybody could have written them."""

import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from pliant.core.errors import BadInput
from pliant.core.files import require_file, whole_file
from pliant.geometry.field_files import read_npy

MAX_BYTES = 8 * 1024**3
MOST_NUMBERS = 10**9
MOST_ARRAYS = 100


def write_arrays(path: Path, **arrays: np.ndarray) -> None:
    """Write them at once."""
    with whole_file(path) as temporary, temporary.open("wb") as stream:
        np.savez(stream, allow_pickle=False, **arrays)  # pyright: ignore[reportArgumentType]


def read_arrays(
    path: Path, *, most: int = MOST_NUMBERS, advice: str = "start again with --overwrite"
) -> dict[str, np.ndarray]:
    """All arrays of a file; nothing is unpickled, and no header is believed.

    most: numbers in an array; advice: what to do about a damaged file.
    """
    require_file(path, MAX_BYTES)
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            if len(names) > MOST_ARRAYS:
                raise BadInput(f"it holds {len(names)} arrays")
            found = {}
            for name in names:
                with archive.open(name) as stream:
                    key = name.removesuffix(".npy")
                    found[key] = read_npy(stream, key, most)
            return found
    except BadInput as error:
        raise damaged(path, str(error).rstrip("."), advice) from error
    except Exception as error:  # zipfile and zlib raise whatever a damaged file led them to
        raise damaged(path, "cut off or no archive", advice) from error


def require_floats(
    path: Path, arrays: Mapping[str, np.ndarray], *, shape: tuple[int, ...] | None = None
) -> None:
    """Refuse arrays that are not of finite doubles, or not of a shape."""
    for name, array in arrays.items():
        if shape is not None and array.shape != shape:
            raise damaged(path, f"'{name}' has the shape {array.shape}, not {shape}")
        if array.dtype.kind != "f" or array.dtype.itemsize != 8:
            raise damaged(path, f"'{name}' holds {array.dtype}, not float64")
        if not np.isfinite(array).all():
            raise damaged(path, f"'{name}' has a number that is not finite")


def damaged(path: Path, why: str, advice: str = "start again with --overwrite") -> BadInput:
    """The complaint about a file."""
    return BadInput(f"{path}: damaged ({why[:200]}); {advice}.")
