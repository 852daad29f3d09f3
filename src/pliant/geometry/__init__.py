"""Shapes as signed distances: primitives, booleans, transforms, sampled fields, meshes."""

from pliant.geometry import shapes
from pliant.geometry.describe import shape_from_dict, shape_types
from pliant.geometry.field import SampledField, sample, solid_field
from pliant.geometry.field_files import load_field
from pliant.geometry.load import load_shape
from pliant.geometry.mesh_files import load_mesh
from pliant.geometry.mesh_shape import MeshShape
from pliant.geometry.redistance import redistance
from pliant.geometry.shape import Shape

__all__ = [
    "MeshShape",
    "SampledField",
    "Shape",
    "load_field",
    "load_mesh",
    "load_shape",
    "redistance",
    "sample",
    "shape_from_dict",
    "shape_types",
    "shapes",
    "solid_field",
]
