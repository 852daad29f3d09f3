"""The directions a shape is built along, and the shape turned so that they are x, y, z.

A lattice laid along them cuts a turned beam as it would cut the upright one: how stiff a body comes
out does not depend on how it happens to stand in the world. A box knows its directions by how it
was turned, a cylinder by its axis, a mesh by its flat faces; a combination has those of its first
part, and what has none (a ball, a field with a lattice of its own) stays as it stands.
"""

import numpy as np

from pliant.geometry.boolean import Difference, Intersection, Union
from pliant.geometry.mesh_shape import MeshShape
from pliant.geometry.primitives import Capsule, Cylinder, Torus
from pliant.geometry.shape import Shape
from pliant.geometry.transform import (
    Extruded,
    Mirrored,
    Rotated,
    Scaled,
    Translated,
    rotation_matrix,
)

STRAIGHT = 1e-7
"""Directions closer than this to those of the world are taken for them."""

FLAT_SHARE = 0.5
"""Share of a mesh's area that must face along three directions for the mesh to have them."""

SAME_FACE = 1e-3
"""Difference of unit normals that counts as one flat face."""


def upright(shape: Shape) -> tuple[Shape, np.ndarray | None]:
    """(shape turned back by A, A) with A (dim, dim) the shape's directions as columns.

    None where they are those of the world. What was turned by `rotated` is taken as it was before.
    """
    match shape:
        case Rotated():
            inner, own = upright(shape.shape)
            turn = rotation_matrix(shape.angle, shape.axis)
            turn = turn if own is None else turn @ own
            return (shape, None) if _is_straight(turn) else (inner, turn)
        case Translated() | Scaled():
            inner, own = upright(shape.shape)
            if own is None:
                return shape, None
            if isinstance(shape, Scaled):
                return inner.scaled(shape.factor), own
            return inner.translated(np.array(shape.offset) @ own), own
    own = _directions(shape)
    if own is None or _is_straight(own):
        return shape, None
    return _turned_back(shape, own), own


def _directions(shape: Shape) -> np.ndarray | None:
    """A of a shape, None where it has none."""
    match shape:
        case Rotated() | Translated() | Scaled():
            return upright(shape)[1]
        case Cylinder() | Torus():
            return _along(np.array(shape.axis))
        case Capsule():
            span = np.subtract(shape.end, shape.start)
            length = np.linalg.norm(span)
            return _along(span / length) if length > 0.0 else None
        case Mirrored():
            own = _directions(shape.shape)
            if own is None:
                return None
            normal = np.array(shape.normal)
            own = own - 2.0 * np.outer(normal, normal @ own)
            own[:, -1] = -own[:, -1]  # a lattice looks the same in a mirror, a rotation does not
            return own
        case Extruded():
            own = _directions(shape.shape)
            if own is None:
                return None
            solid = np.eye(3)
            solid[:2, :2] = own
            return solid
        case Difference():
            return _directions(shape.base)
        case Union() | Intersection():
            return _directions(shape.shapes[0])
        case MeshShape():
            return _flat_directions(shape.vertices[shape.faces])
    return None


def _is_straight(turn: np.ndarray) -> bool:
    """Whether the columns are the world's axes, in whatever order and sense."""
    sizes = np.abs(turn)
    return bool(np.all((sizes < STRAIGHT) | (sizes > 1.0 - STRAIGHT)))


def _along(axis: np.ndarray) -> np.ndarray:
    """The smallest turn that brings the nearest axis of the world to this one."""
    k = int(np.argmax(np.abs(axis)))
    to = axis * np.sign(axis[k])
    start = np.zeros(len(axis))
    start[k] = 1.0
    middle = start + to  # two mirrors: at the plane across the start, then across the middle
    first = np.eye(len(axis)) - 2.0 * np.outer(start, start)
    second = np.eye(len(axis)) - 2.0 * np.outer(middle, middle) / (middle @ middle)
    return second @ first


def _flat_directions(corners: np.ndarray) -> np.ndarray | None:
    """Three directions that most of a mesh's area faces along, of triangles (m, 3, 3)."""
    vectors = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    area = np.linalg.norm(vectors, axis=1)
    kept = area > 0.0
    normals, area = vectors[kept] / area[kept, None], area[kept]
    first = _widest_face(normals, area)
    across = np.abs(normals @ first) < SAME_FACE
    if not across.any():
        return None
    second = _widest_face(normals[across], area[across])
    second = second - first * (first @ second)
    second /= np.linalg.norm(second)
    axes = np.stack([first, second, np.cross(first, second)], axis=1)
    along = np.abs(normals @ axes).max(axis=1) > 1.0 - SAME_FACE**2
    if area[along].sum() < FLAT_SHARE * area.sum():
        return None
    return _nearest_order(axes)


def _widest_face(normals: np.ndarray, area: np.ndarray) -> np.ndarray:
    """Mean normal of the direction, either sense, that most of the area faces along."""
    largest = np.argmax(np.abs(normals), axis=1)
    sense = np.sign(normals[np.arange(len(normals)), largest])
    normals = normals * sense[:, None]
    _, group = np.unique(np.round(normals / SAME_FACE), axis=0, return_inverse=True)
    group = group.reshape(-1)
    seed = int(np.argmax(np.bincount(group, area)[group]))
    same = np.linalg.norm(normals - normals[seed], axis=1) < SAME_FACE
    mean = area[same] @ normals[same]
    return mean / np.linalg.norm(mean)


def _nearest_order(axes: np.ndarray) -> np.ndarray:
    """The same directions in the order and sense nearest to x, y, z, right-handed."""
    order, left = [], list(range(3))
    for row in np.argsort(-np.abs(axes).max(axis=1)):
        column = max(left, key=lambda j: abs(axes[row, j]))
        left.remove(column)
        order.append((row, column))
    out = np.empty((3, 3))
    for row, column in order:
        out[:, row] = axes[:, column] * (1.0 if axes[row, column] >= 0.0 else -1.0)
    if np.linalg.det(out) < 0.0:
        out[:, 2] = -out[:, 2]
    return out


def _turned_back(shape: Shape, turn: np.ndarray) -> Shape:
    """The shape turned by the inverse of the rotation."""
    if shape.dim == 2:
        return shape.rotated(angle=-float(np.arctan2(turn[1, 0], turn[0, 0])))
    from scipy.spatial.transform import Rotation

    spin = Rotation.from_matrix(turn).as_rotvec()
    angle = float(np.linalg.norm(spin))
    return shape.rotated(angle=-angle, axis=tuple(spin / angle))
