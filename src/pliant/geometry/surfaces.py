"""The smooth surfaces that bound a shape, and how they combine to its inside.

A box is where six half spaces meet, a cylinder where a tube meets two, a difference where the base
meets the complement of the cut. `surfaces_of` takes a shape apart into that tree:

Plane     n . x - offset, exactly linear
Curved    one smooth function, negative inside
Triangles a closed mesh: planes in patches, its inside known by query
Joined    inside all of its parts (max of their functions) or inside any of them (min)

Between its surfaces' sharp edges a shape is smooth, so whoever cuts cells surface by surface keeps
edges and corners where sampling the shape's own distance would round them off.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from pliant.geometry.boolean import Difference, Intersection, Union
from pliant.geometry.ellipsoid import Ellipsoid
from pliant.geometry.mesh_shape import MeshShape, encloses
from pliant.geometry.primitives import Ball, Box, Capsule, Cylinder, HalfSpace, Torus
from pliant.geometry.shape import Shape
from pliant.geometry.transform import (
    Extruded,
    Mirrored,
    Revolved,
    Rotated,
    Scaled,
    Translated,
    rotation_matrix,
)

Points = np.ndarray
Function = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class Plane:
    """f(x) = normal . x - offset with a unit normal, (dim,)."""

    normal: np.ndarray
    offset: float

    def __call__(self, points: np.ndarray) -> np.ndarray:
        """f at points (n, dim) -> (n,)."""
        return points @ self.normal - self.offset


@dataclass(frozen=True, eq=False)
class Curved:
    """f(x), a distance near its zero surface; smooth: twice differentiable there."""

    function: Function
    smooth: bool

    def __call__(self, points: np.ndarray) -> np.ndarray:
        """f at points (n, dim) -> (n,)."""
        return self.function(points)


@dataclass(frozen=True, eq=False)
class Triangles:
    """A closed mesh, its triangles' corners (m, 3, 3) and its distance f, which knows the sign."""

    corners: np.ndarray
    function: Function

    def __call__(self, points: np.ndarray) -> np.ndarray:
        """f at points (n, 3) -> (n,)."""
        return self.function(points)


@dataclass(frozen=True, eq=False)
class Joined:
    """Inside all of the parts (every = True) or inside any of them."""

    parts: tuple[Tree, ...]
    every: bool


Leaf = Plane | Curved | Triangles
Tree = Leaf | Joined


def surfaces_of(shape: Shape) -> Tree:
    """The tree of a shape; a single Curved where nothing is known but its distance."""
    match shape:
        case HalfSpace():
            return Plane(np.array(shape.normal), shape.offset)
        case Box():
            return _slabs(np.array(shape.center), np.eye(shape.dim), np.array(shape.size) / 2.0)
        case Cylinder():
            axis, center = np.array(shape.axis), np.array(shape.center)
            tube = Curved(_tube(axis, center, shape.radius), smooth=True)
            ends = _slabs(center, axis[None], np.array([shape.height / 2.0]))
            return Joined((tube, *ends.parts), every=True)
        case Ball() | Torus() | Capsule() | Ellipsoid():
            return Curved(shape._distance, smooth=True)
        case MeshShape() if encloses(shape.vertices, shape.faces):
            return Triangles(shape.vertices[shape.faces], shape._distance)
        case Union(blend=0.0) | Intersection(blend=0.0):
            parts = tuple(surfaces_of(part) for part in shape.shapes)
            return _joined(parts, every=isinstance(shape, Intersection))
        case Difference(blend=0.0):
            return _joined((surfaces_of(shape.base), _complement(surfaces_of(shape.cut))), True)
        case Translated():
            return _moved(surfaces_of(shape.shape), np.eye(shape.dim), np.array(shape.offset), 1.0)
        case Rotated():
            turn = rotation_matrix(shape.angle, shape.axis)
            return _moved(surfaces_of(shape.shape), turn, np.zeros(shape.dim), 1.0)
        case Mirrored():
            normal = np.array(shape.normal)
            mirror = np.eye(shape.dim) - 2.0 * np.outer(normal, normal)
            return _moved(surfaces_of(shape.shape), mirror, np.zeros(shape.dim), 1.0)
        case Scaled():
            still = np.eye(shape.dim), np.zeros(shape.dim)
            return _moved(surfaces_of(shape.shape), *still, shape.factor)
        case Extruded():
            ends = _slabs(np.zeros(3), np.eye(3)[2:], np.array([shape.height / 2.0]))
            return _joined((_lifted(surfaces_of(shape.shape)), ends), every=True)
        case Revolved():
            return _turned(surfaces_of(shape.shape), shape.offset)
    return Curved(shape._distance, smooth=False)


def leaves(tree: Tree) -> list[Leaf]:
    """The surfaces at the ends of the tree, in order."""
    if isinstance(tree, Joined):
        return [leaf for part in tree.parts for leaf in leaves(part)]
    return [tree]


def combine(tree: Tree, values: np.ndarray) -> np.ndarray:
    """Value (n,) of the tree from those of its leaves (n, leaves): max for all, min for any."""

    def fold(node: Tree, first: int) -> tuple[np.ndarray, int]:
        if not isinstance(node, Joined):
            return values[:, first], first + 1
        found = None
        for part in node.parts:
            value, first = fold(part, first)
            join = np.maximum if node.every else np.minimum
            found = value if found is None else join(found, value)
        assert found is not None
        return found, first

    return fold(tree, 0)[0]


def simplified(tree: Tree, decided: np.ndarray) -> Tree | bool:
    """The tree without leaves whose sign is known; True or False if that says inside or outside.

    decided: (leaves,) -1 inside, 1 outside, 0 not known.
    """

    def visit(node: Tree, first: int) -> tuple[Tree | bool, int]:
        if not isinstance(node, Joined):
            known = decided[first]
            return (node if known == 0 else bool(known < 0)), first + 1
        open_parts: list[Tree] = []
        settled = False
        for part in node.parts:
            found, first = visit(part, first)
            if isinstance(found, bool):
                settled |= found != node.every  # outside one of all, inside one of any
            else:
                open_parts.append(found)
        if settled or not open_parts:
            return (node.every if not settled else not node.every), first
        if len(open_parts) == 1:
            return open_parts[0], first
        return _joined(tuple(open_parts), node.every), first

    return visit(tree, 0)[0]


def _joined(parts: tuple[Tree, ...], every: bool) -> Joined:
    """Parts of the same kind are taken up: all of (all of (a, b), c) is all of (a, b, c)."""
    flat: list[Tree] = []
    for part in parts:
        same = isinstance(part, Joined) and part.every == every
        flat += part.parts if same else [part]  # type: ignore[union-attr]
    return Joined(tuple(flat), every)


def _slabs(center: np.ndarray, axes: np.ndarray, half: np.ndarray) -> Joined:
    """|axis_i . (x - center)| <= half_i for unit axes (k, dim)."""
    planes = []
    for axis, reach in zip(axes, half, strict=True):
        middle = float(axis @ center)
        planes += [Plane(axis, middle + reach), Plane(-axis, reach - middle)]
    return Joined(tuple(planes), every=True)


def _tube(axis: np.ndarray, center: np.ndarray, radius: float) -> Function:
    def distance(points: np.ndarray) -> np.ndarray:
        offset = points - center
        away = offset - (offset @ axis)[:, None] * axis
        return np.linalg.norm(away, axis=1) - radius

    return distance


def _each_leaf(tree: Tree, change: Callable[[Leaf], Leaf]) -> Tree:
    if isinstance(tree, Joined):
        return replace(tree, parts=tuple(_each_leaf(part, change) for part in tree.parts))
    return change(tree)


def _complement(tree: Tree) -> Tree:
    """De Morgan: outside all is outside each."""
    match tree:
        case Joined():
            return Joined(tuple(_complement(part) for part in tree.parts), not tree.every)
        case Plane():
            return Plane(-tree.normal, -tree.offset)
        case Curved():
            return replace(tree, function=lambda x, f=tree.function: -f(x))
        case Triangles():
            return replace(tree, function=lambda x, f=tree.function: -f(x))


def _moved(tree: Tree, turn: np.ndarray, offset: np.ndarray, factor: float) -> Tree:
    """f'(x) = factor f(turn^T (x - offset) / factor), turn orthogonal."""

    def change(leaf: Leaf) -> Leaf:
        if isinstance(leaf, Plane):
            normal = turn @ leaf.normal
            return Plane(normal, factor * leaf.offset + float(normal @ offset))

        def function(points: np.ndarray) -> np.ndarray:
            return factor * leaf.function((points - offset) @ turn / factor)

        if isinstance(leaf, Triangles):
            return Triangles(factor * leaf.corners @ turn.T + offset, function)
        return replace(leaf, function=function)

    return _each_leaf(tree, change)


def _lifted(tree: Tree) -> Tree:
    """The surfaces of a 2D profile drawn along z."""

    def change(leaf: Leaf) -> Leaf:
        if isinstance(leaf, Plane):
            return Plane(np.append(leaf.normal, 0.0), leaf.offset)
        assert isinstance(leaf, Curved)
        return replace(leaf, function=lambda x: leaf.function(x[:, :2]))

    return _each_leaf(tree, change)


def _turned(tree: Tree, offset: float) -> Tree:
    """The surfaces of a 2D profile turned about the y axis: a line becomes a cone."""

    def change(leaf: Leaf) -> Leaf:
        if isinstance(leaf, Plane) and leaf.normal[0] == 0.0:
            return Plane(np.array([0.0, leaf.normal[1], 0.0]), leaf.offset)

        def function(points: np.ndarray) -> np.ndarray:
            away = np.hypot(points[:, 0], points[:, 2]) - offset
            return leaf(np.stack([away, points[:, 1]], axis=1))

        return Curved(function, smooth=getattr(leaf, "smooth", True))

    return _each_leaf(tree, change)
