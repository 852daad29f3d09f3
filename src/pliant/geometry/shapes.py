"""All constructors of shapes in one place: `from pliant.geometry import shapes`."""

from pliant.geometry.boolean import (
    difference,
    intersection,
    smooth_difference,
    smooth_intersection,
    smooth_union,
    union,
)
from pliant.geometry.describe import shape_from_dict, shape_types
from pliant.geometry.ellipsoid import ellipsoid
from pliant.geometry.field import sample, solid_field
from pliant.geometry.field_files import field
from pliant.geometry.height_field import height_field
from pliant.geometry.load import load_shape
from pliant.geometry.mesh_files import mesh
from pliant.geometry.primitives import box, capsule, circle, cylinder, half_space, sphere, torus
from pliant.geometry.transform import extruded, mirrored, revolved, rotated, scaled, translated

__all__ = [
    "box",
    "capsule",
    "circle",
    "cylinder",
    "difference",
    "ellipsoid",
    "extruded",
    "field",
    "half_space",
    "height_field",
    "intersection",
    "load_shape",
    "mesh",
    "mirrored",
    "revolved",
    "rotated",
    "sample",
    "scaled",
    "shape_from_dict",
    "shape_types",
    "smooth_difference",
    "smooth_intersection",
    "smooth_union",
    "solid_field",
    "sphere",
    "torus",
    "translated",
    "union",
]
