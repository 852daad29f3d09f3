"""Ground of given heights, as a closed mesh: every column is solid down to a common floor."""

from typing import Any

import numpy as np

from pliant.core.errors import BadInput
from pliant.core.numbers import positive
from pliant.geometry.arguments import vector
from pliant.geometry.describe import describes
from pliant.geometry.mesh_shape import MeshShape


@describes("height_field")
def height_field(
    heights: Any,
    spacing: float,
    origin: Any = (0.0, 0.0, 0.0),
    depth: float | None = None,
) -> MeshShape:
    """Two triangles between four neighbouring heights, and walls down to a floor.

    heights: (nx, nz) [m], y at origin + (i spacing, height, j spacing). depth: of the floor below
    the lowest height [m]; by default four spacings.
    """
    spacing = positive("height_field", "spacing", spacing)
    origin = vector("height_field", "origin", origin, dims=(3,))
    depth = 4.0 * spacing if depth is None else positive("height_field", "depth", depth)
    try:
        h = np.array(heights, float)
    except (TypeError, ValueError):
        h = np.zeros(0)
    if h.ndim != 2 or min(h.shape) < 2 or not np.isfinite(h).all():
        raise BadInput("height_field: heights are finite numbers, rows of equal length, 2 x 2 up.")
    x, z = (spacing * np.arange(n) for n in h.shape)
    top = np.stack([*np.meshgrid(x, z, indexing="ij"), h], axis=-1)[..., [0, 2, 1]]
    number = np.arange(h.size).reshape(h.shape)
    a, b, c, d = number[:-1, :-1], number[1:, :-1], number[1:, 1:], number[:-1, 1:]
    faces = [np.stack(corners, axis=-1).reshape(-1, 3) for corners in ((a, d, c), (a, c, b))]

    floor = h.min() - depth
    rim = np.concatenate([number[:-1, 0], number[-1, :-1], number[:0:-1, -1], number[0, :0:-1]])
    foot = top.reshape(-1, 3)[rim] * (1.0, 0.0, 1.0) + (0.0, floor, 0.0)
    middle = np.array([[0.5 * x[-1], floor, 0.5 * z[-1]]])
    low = h.size + np.arange(len(rim))
    after, low_after = np.roll(rim, -1), np.roll(low, -1)
    centre = np.full(len(rim), h.size + len(rim))
    rows = (rim, after, low_after), (rim, low_after, low), (low, low_after, centre)
    faces += [np.stack(corners, axis=-1) for corners in rows]

    vertices = np.concatenate([top.reshape(-1, 3), foot, middle]) + np.array(origin)
    source = {
        "type": "height_field", "heights": h.tolist(), "spacing": spacing,
        "origin": list(origin), "depth": depth,
    }  # fmt: skip
    return MeshShape(vertices, np.concatenate(faces), source)
