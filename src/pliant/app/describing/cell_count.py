"""How many cells a body will have, before it is built."""

import numpy as np

from pliant.core.errors import BadInput
from pliant.fem.bodies.default_spacing import default_spacing
from pliant.fem.bodies.lattice_cells import any_corner
from pliant.fem.cutting.sharp_cut import is_sharp
from pliant.fem.cutting.volume_shift import shifted
from pliant.geometry.field import MAX_NODES, SampledField
from pliant.geometry.shape import Shape
from pliant.geometry.surfaces import surfaces_of
from pliant.geometry.upright import upright

EXACT = 400_000
"""Lattice nodes up to which the active cells are counted; beyond it their volume is scaled up."""


def grid_cells(shape: Shape, spacing: float | None) -> tuple[int, bool]:
    """Active cells of a grid body, and whether the number is exact.

    A cell is active if one of its corners is inside, on the lattice and by the distances of
    fem.bodies.grid_body. Beyond EXACT lattice
    nodes cells are counted at a larger spacing: active and full ones are V / h^d +- c A / h^(d-1),
    so their mean gives the volume and their difference the rim.
    """
    if spacing is None:
        if not isinstance(shape, SampledField):
            return grid_cells(shape, default_spacing(upright(shape)[0]))
        values = np.pad(shape.values, 1, constant_values=shape.spacing)
        values = shifted(shape, values, np.zeros(shape.dim), shape.spacing)
        return int(any_corner(values < 0.0).sum()), True
    if not (np.isfinite(spacing) and spacing > 0.0):
        raise BadInput(f"The spacing must be a positive length, not {spacing}.")
    shape, _ = upright(shape)
    lo, hi = (np.asarray(b, float) for b in shape.bounds)
    if not (np.isfinite(lo).all() and np.isfinite(hi).all()):
        raise BadInput("The shape is unbounded: intersect it with a box.")
    with np.errstate(over="ignore"):
        around = float(np.prod((hi - lo) / spacing + 3.0))
    if not around < MAX_NODES * 1e6:
        raise BadInput(f"The spacing {spacing:g} is far too small for this shape.")
    if around > EXACT:
        factor = float((around / EXACT) ** (1.0 / shape.dim))
        active, full = _counts(shape, spacing * factor)
        volume, rim = 0.5 * (active + full), 0.5 * (active - full)
        return int(round(volume * factor**shape.dim + rim * factor ** (shape.dim - 1))), False
    return _counts(shape, spacing)[0], True


def _counts(shape: Shape, spacing: float) -> tuple[int, int]:
    """Active cells and cells with every corner inside."""
    phi, first = _distances(shape, spacing)
    if not is_sharp(surfaces_of(shape)):
        phi = shifted(shape, phi, first, spacing)
    inside = phi < -1e-5 * spacing
    return int(any_corner(inside).sum()), int((~any_corner(~inside)).sum())


def _distances(shape: Shape, spacing: float) -> tuple[np.ndarray, np.ndarray]:
    """At the nodes of the lattice, and the position of the first of them."""
    lo, hi = (np.asarray(b, float) for b in shape.bounds)
    first = np.floor(lo / spacing + 1e-6).astype(int) - 1
    count = np.ceil(hi / spacing - 1e-6).astype(int) + 2 - first
    axes = [spacing * (f + np.arange(c)) for f, c in zip(first, count, strict=True)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    phi = shape.distance(grid.reshape(-1, shape.dim)).reshape(grid.shape[:-1])
    return phi, spacing * first


def tet_cells(shape: Shape, edge_length: float) -> int:
    """Roughly the tetrahedra (triangles in 2D) of a mesh: volume over that of a regular one.

    A regular tetrahedron of edge a has a^3 / (6 sqrt 2), a triangle sqrt(3) / 4 a^2; real meshes of
    a given target edge have about as many.
    """
    if not (np.isfinite(edge_length) and edge_length > 0.0):
        raise BadInput(f"The edge length must be positive, not {edge_length}.")
    lo, hi = (np.asarray(b, float) for b in shape.bounds)
    size = float((hi - lo).max())
    h = size / 24.0
    # a node within half a spacing of the surface counts in part
    volume = float(np.clip(0.5 - _distances(shape, h)[0] / h, 0.0, 1.0).sum()) * h**shape.dim
    regular = edge_length**3 / (6.0 * np.sqrt(2.0))
    if shape.dim == 2:
        regular = np.sqrt(3.0) / 4.0 * edge_length**2
    return max(1, int(round(volume / regular)))


def spacing_for(shape: Shape, cells: int) -> float:
    """A spacing, to two digits, with about so many active cells."""
    lo, hi = (np.asarray(b, float) for b in shape.bounds)
    h = float((hi - lo).max()) / 16.0
    for _ in range(4):
        found, _ = grid_cells(shape, h)
        h *= (max(found, 1) / cells) ** (1.0 / shape.dim)
    return float(f"{h:.2g}")
