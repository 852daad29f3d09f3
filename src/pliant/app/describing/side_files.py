"""Long lists of a scene in a file beside it: a modulus for each of 3,000 cells is no text to read.

    [material.youngs_modulus]
    file = "scene.cells.npz"
    array = "material.youngs_modulus"

A dictionary of a scene holds the lists themselves; only in files are they apart. No pickles.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pliant.app.folders.array_files import damaged, read_arrays, write_arrays
from pliant.core.errors import BadInput

LONGEST = 64
"""Rows of numbers that a scene file holds itself."""

MOST_NUMBERS = 10_000_000
"""In a list: more than there are cells in any body that fits into a machine."""

ENDING = ".cells.npz"
ADVICE = "write it again, with the arrays that the scene names"


def side_path(scene: str | Path) -> Path:
    """Where the lists of a scene file lie."""
    return Path(scene).with_suffix(ENDING)


def write_side(description: Mapping[str, Any], scene: str | Path) -> dict[str, Any]:
    """The description as its file holds it; long lists of numbers go into the side file."""
    path = side_path(scene)
    arrays: dict[str, np.ndarray] = {}
    short = _taken(dict(description), "", arrays, str(path.absolute()))
    if arrays:
        write_arrays(path, **arrays)
    return short


def _taken(value: Any, place: str, arrays: dict[str, np.ndarray], file: str) -> Any:
    if isinstance(value, Mapping):
        return {
            k: _taken(v, f"{place}.{k}" if place else str(k), arrays, file)
            for k, v in value.items()
        }
    if not isinstance(value, list):
        return value
    if len(value) > LONGEST and _are_numbers(value):
        arrays[place] = np.asarray(value, float)
        return {"file": file, "array": place}
    return [_taken(v, f"{place}.{i}", arrays, file) for i, v in enumerate(value)]


def _are_numbers(values: list[Any]) -> bool:
    """Whether it is a list of numbers, or of vectors of one length."""
    if all(isinstance(v, float | int) and not isinstance(v, bool) for v in values):
        return True
    vectors = all(isinstance(v, list) and len(v) == len(values[0]) for v in values)
    return vectors and len(values[0]) in (2, 3) and all(_are_numbers(v) for v in values)


def read_side(value: Any, place: str = "") -> Any:
    """A copy with the lists that its tables {file, array} name; paths are absolute."""
    return _given(value, place, {})


def _given(value: Any, place: str, known: dict[str, dict[str, np.ndarray]]) -> Any:
    if isinstance(value, list):
        return [_given(v, f"{place}[{i}]", known) for i, v in enumerate(value)]
    if not isinstance(value, Mapping):
        return value
    if set(value) != {"file", "array"}:
        return {k: _given(v, f"{place}.{k}" if place else str(k), known) for k, v in value.items()}
    file, name = value["file"], value["array"]
    if not isinstance(file, str) or not isinstance(name, str):
        raise BadInput(f"{place}: file and array are texts in quotes.")
    try:
        if file not in known:
            known[file] = read_arrays(Path(file), most=MOST_NUMBERS, advice=ADVICE)
        array = known[file].get(name)
        if array is None:
            raise damaged(Path(file), f"it has no array '{name}'", ADVICE)
        if array.ndim not in (1, 2) or array.dtype.kind not in "fiu":
            raise damaged(Path(file), f"'{name}' is no list of numbers", ADVICE)
    except BadInput as error:
        raise BadInput(f"{place}: {error}") from error
    return array.astype(float).tolist()
