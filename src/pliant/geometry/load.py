"""Shapes from files of any known kind."""

from pathlib import Path
from typing import Any

from pliant.core.errors import BadInput
from pliant.geometry.describe import suggestion
from pliant.geometry.field_files import FIELD_SUFFIXES, field_suffix, load_field
from pliant.geometry.mesh_files import MESH_SUFFIXES, load_mesh
from pliant.geometry.shape import Shape

_FIELD_OPTIONS = ["origin", "spacing", "level", "label", "nearest", "units"]


def load_shape(path: str | Path, **options: Any) -> Shape:
    """The shape in a file: a grid (.npz .npy .nrrd .nii .nii.gz) or a mesh (.ply .obj .stl ...).

    options: those of `load_field` (origin, spacing, level, label, nearest, units); meshes have
    `units` ("mm", "cm" or "m", which their coordinates are in; metres by default).
    """
    path = Path(path)
    is_field = field_suffix(path) is not None
    if not is_field and path.suffix.lower() not in MESH_SUFFIXES:
        known = ", ".join((*FIELD_SUFFIXES, *MESH_SUFFIXES))
        raise BadInput(f"{path}: unknown ending {path.suffix!r}; known: {known}.")
    for name in options:
        if not is_field and name != "units":
            raise BadInput(f"{path}: a mesh has no option {name!r}; scale or move the shape.")
        if name not in _FIELD_OPTIONS:
            raise BadInput(f"{path}: no option {name!r}{suggestion(name, _FIELD_OPTIONS)}")
    return load_field(path, **options) if is_field else load_mesh(path, **options)
