"""The bodies of the films: for NGSolve as meshes, for pliant as tables of a scene file.

Both descriptions are made from the same numbers, side by side, so that they cannot part.
"""

# Netgen's geometry module is filled when it is loaded, so that its names cannot be looked up.
# pyright: reportAttributeAccessIssue=false

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import netgen.occ as occ
import ngsolve as ng
import numpy as np

SLIVER = 5e-5
"""How deep the region of a clamp reaches into the body [m]: pliant holds what of the surface lies
in it, so a strip of this width beside the face is held as well, 0.05 % of a beam of 0.1 m."""

OUTSIDE = 0.01
"""How far that region reaches beyond the face [m]."""

RIM = 0.25
"""Edge length along the rim of the held surface over the one elsewhere: stress is singular there,
and without it the tip of a block moves 0.05 % less on a mesh of the same size."""

SLEEVE_RIM = 0.15
"""The same around a sleeve's end, where stress grows as one over the root of the distance. The edge
elsewhere counts too: at 13 mm instead of 8.5 mm a film moves like a beam of a Poisson's ratio 0.04
lower or higher than its own."""

Table = dict[str, Any]


@dataclass(frozen=True)
class ForeignBody:
    """A body in both languages.

    mesh: edge length [m] to an NGSolve mesh whose held surface is named "clamp" and whose other
    surface "free"; shape, region: tables of a scene file; probes: (k, 3) material points [m] whose
    motion measures convergence; thickness [m] of its thinnest part.
    """

    mesh: Callable[[float], ng.Mesh]
    shape: Table
    region: Table
    probes: np.ndarray
    thickness: float


def clamped_box(
    size: tuple[float, float, float],
    *,
    angle: float = 0.0,
    axis: tuple[float, float, float] = (0.0, 0.0, 1.0),
) -> ForeignBody:
    """A box from x = 0 on, centred in y and z, held at x = 0; turned about the origin.

    angle: [radians] about `axis`.
    """  # fmt: skip
    length, height, width = size

    def mesh(edge: float) -> ng.Mesh:
        solid = occ.Box(
            occ.Pnt(0.0, -height / 2, -width / 2), occ.Pnt(length, height / 2, width / 2)
        )
        solid.faces.name = "free"
        held = solid.faces.Min(occ.X)
        held.name = "clamp"
        held.edges.maxh = RIM * edge
        if angle:
            pivot = occ.Axis(occ.Pnt(0, 0, 0), occ.gp_Dir(*axis))
            solid = solid.Rotate(pivot, math.degrees(angle))
        return ng.Mesh(occ.OCCGeometry(solid).GenerateMesh(maxh=edge, grading=0.5))

    depth = OUTSIDE + SLIVER
    shape: Table = {"type": "box", "center": [length / 2, 0.0, 0.0], "size": list(size)}
    region: Table = {
        "type": "box",
        "center": [SLIVER - depth / 2, 0.0, 0.0],
        "size": [depth, height + 2 * OUTSIDE, width + 2 * OUTSIDE],
    }
    inside = 0.999
    probes = length * np.array([[inside, 0.0, 0.0], [0.5, 0.0, 0.0]])
    probes = np.vstack([probes, [inside * length, 0.45 * height, 0.45 * width]])
    if angle:
        shape = {"type": "rotated", "angle": angle, "axis": list(axis), "shape": shape}
        region = {"type": "rotated", "angle": angle, "axis": list(axis), "shape": region}
        probes = probes @ _rotation(angle, np.asarray(axis, float)).T
    return ForeignBody(mesh, shape, region, probes, min(size))


def sleeved_box(size: tuple[float, float, float], *, grip: float) -> ForeignBody:
    """A box from x = 0 on, centred in y and z, whose surface is held as far as x = grip [m]."""
    length, height, width = size

    def mesh(edge: float) -> ng.Mesh:
        def piece(low: float, high: float):
            return occ.Box(
                occ.Pnt(low, -height / 2, -width / 2), occ.Pnt(high, height / 2, width / 2)
            )

        held, rest = piece(0.0, grip), piece(grip, length)
        rest.faces.name = held.faces.name = "free"
        for face in held.faces:
            face.name = "clamp"
        inner = held.faces.Max(occ.X)
        inner.name = "inner"
        inner.edges.maxh = SLEEVE_RIM * edge
        rest.faces.Min(occ.X).name = "inner"
        glued = occ.Glue([held, rest])
        return ng.Mesh(occ.OCCGeometry(glued).GenerateMesh(maxh=edge, grading=0.6))

    depth = OUTSIDE + grip
    shape: Table = {"type": "box", "center": [length / 2, 0.0, 0.0], "size": list(size)}
    region: Table = {
        "type": "box",
        "center": [grip - depth / 2, 0.0, 0.0],
        "size": [depth, height + 2 * OUTSIDE, width + 2 * OUTSIDE],
    }
    inside = 0.999
    probes = length * np.array([[inside, 0.0, 0.0], [0.5, 0.0, 0.0]])
    return ForeignBody(mesh, shape, region, probes, min(size))


def held_torus(
    major: float, minor: float, *, axis: tuple[float, float, float], grip: float
) -> ForeignBody:
    """A ring around the origin, held where its surface lies in a cube at its highest point.

    axis: of the ring, not vertical; grip: edge length of the cube [m].
    """
    n = np.asarray(axis, float) / np.linalg.norm(axis)
    up = np.array([0.0, 1.0, 0.0]) - n[1] * n
    up /= np.linalg.norm(up)
    middle = major * up
    low, high = middle - grip / 2, middle + grip / 2

    def mesh(edge: float) -> ng.Mesh:
        circle = occ.WorkPlane(occ.Axes(occ.Pnt(major, 0, 0), n=occ.Y, h=occ.X)).Circle(minor)
        ring = circle.Face().Revolve(occ.Axis(occ.Pnt(0, 0, 0), occ.Z), 360)
        turn, angle = _turn_from_z(n)
        ring = ring.Rotate(occ.Axis(occ.Pnt(0, 0, 0), occ.gp_Dir(*turn)), math.degrees(angle))
        cube = occ.Box(occ.Pnt(*low), occ.Pnt(*high))
        ring.faces.name = "free"
        cube.faces.name = "cut"
        held, rest = ring * cube, ring - cube
        for face in held.faces:
            if face.name == "free":
                face.name = "clamp"
                face.edges.maxh = RIM * edge
        glued = occ.Glue([held, rest])
        found = ng.Mesh(occ.OCCGeometry(glued).GenerateMesh(maxh=edge, grading=0.5))
        found.Curve(3)
        return found

    side = np.cross(n, up)
    probes = major * np.stack([-up, side, -side])
    shape = {"type": "torus", "major": major, "minor": minor, "axis": n.tolist()}
    region = {"type": "box", "center": middle.tolist(), "size": [grip] * 3}
    return ForeignBody(mesh, shape, region, probes, 2 * minor)


def _rotation(angle: float, axis: np.ndarray) -> np.ndarray:
    """R = I + sin(a) K + (1 - cos(a)) K^2 (Rodrigues), K = [axis / |axis|]x."""
    x, y, z = axis / np.linalg.norm(axis)
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + math.sin(angle) * K + (1.0 - math.cos(angle)) * K @ K


def _turn_from_z(n: np.ndarray) -> tuple[np.ndarray, float]:
    """Axis and angle [radians] of the turn that takes z to the unit vector n."""
    axis = np.cross([0.0, 0.0, 1.0], n)
    length = float(np.linalg.norm(axis))
    if length < 1e-12:
        return np.array([1.0, 0.0, 0.0]), 0.0 if n[2] > 0 else math.pi
    return axis / length, math.atan2(length, float(n[2]))
