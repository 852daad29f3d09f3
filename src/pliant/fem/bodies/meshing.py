"""Tetrahedra or triangles that fill a shape: bricks for a box, fTetWild for all else in 3D."""

import importlib.util
import os
import subprocess
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from pliant.core.errors import BadInput, MissingExtra
from pliant.fem.bodies.mesh_store import kept_mesh
from pliant.fem.bodies.simplices import boundary, edges_of, oriented
from pliant.fem.cutting.triangulate import onto_surface, sampled_surface, triangulate
from pliant.fem.forces.cells import simplex_geometry_rows
from pliant.geometry.mesh_shape import MeshShape, enclosed_volume
from pliant.geometry.primitives import Box
from pliant.geometry.shape import Shape
from pliant.geometry.transform import Mirrored, Rotated, Scaled, Translated, rotation_matrix

DEFAULT_DIVISIONS = 20
"""Edges along the diagonal of a shape's bounds when no edge length is asked for."""

ENVELOPE = 0.07
"""How far fTetWild may leave a sampled surface, in edge lengths. At 0.05 it has to refine a sphere
of four edges per radius to 0.84 of the wanted edge; at 0.15 the sphere loses 2.5 % of its volume
instead of 1.3 %."""

SCAN_ENVELOPE = 0.1
"""The same for given triangles, if their details are finer than the edges: the dragon's 11 000
triangles at 20 edges per diagonal take 9 s, and 21 s at half of it. Triangles larger than the
edges are flat and lose nothing by a tighter envelope, but would lose their corners by this one."""

EDGE_FACTOR = 1.1
"""fTetWild's ideal edge over the wanted mean edge. With it, spheres, tori and cylinders of four or
five edges per radius come out at 0.87 to 0.98 of what was wanted; details force shorter edges."""

LARGEST_MESH = 2_000_000
"""Cells that fTetWild may be asked for; it makes one or two thousand per second."""


def mesh_of(shape: Shape, edge_length: float | None) -> tuple[np.ndarray, np.ndarray]:
    """(nodes, cells) that fill a shape, with about that mean edge [m]."""
    lo, hi = (np.asarray(b, float) for b in shape.bounds)
    if not (np.isfinite(lo).all() and np.isfinite(hi).all()):
        raise BadInput("The shape is unbounded: intersect it with a box before making a body.")
    edge = edge_length or float(np.linalg.norm(hi - lo)) / DEFAULT_DIVISIONS
    return _meshed(shape, edge)


def solid(vertices: Any, faces: Any) -> MeshShape:
    """Triangles with equal vertices merged, so that a soup of separate triangles is closed."""
    vertices, faces = np.asarray(vertices), np.asarray(faces)
    valid = faces.size and faces.dtype.kind in "iu" and faces.min() >= 0
    if vertices.ndim == 2 and valid and faces.max() < len(vertices):
        vertices, merged = np.unique(vertices, axis=0, return_inverse=True)
        faces = merged.reshape(-1)[faces]
    return MeshShape(vertices=vertices, faces=faces)


def _meshed(shape: Shape, edge: float) -> tuple[np.ndarray, np.ndarray]:
    # a moved shape is meshed before the move: a turned box keeps its edges, a scan its triangles
    match shape:
        case Translated():
            nodes, cells = _meshed(shape.shape, edge)
            return nodes + np.array(shape.offset), cells
        case Rotated():
            nodes, cells = _meshed(shape.shape, edge)
            return nodes @ rotation_matrix(shape.angle, shape.axis).T, cells
        case Scaled():
            nodes, cells = _meshed(shape.shape, edge / shape.factor)
            return nodes * shape.factor, cells
        case Mirrored():
            nodes, cells = _meshed(shape.shape, edge)
            return nodes - 2.0 * np.outer(nodes @ np.array(shape.normal), shape.normal), cells
        case MeshShape():
            ends = shape.vertices[edges_of(shape.faces)]
            given = float(np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1).mean())
            envelope = SCAN_ENVELOPE * float(np.clip((edge / given) ** 2, 0.01, 1.0))
            return _tetrahedralize(shape.vertices, shape.faces, edge, envelope)
    if shape.dim == 2:
        return triangulate(shape, edge)
    if isinstance(shape, Box):
        return _box(*shape.bounds, edge)
    points, facets = sampled_surface(shape, edge / 2.0)
    nodes, cells = _tetrahedralize(points, facets, edge, ENVELOPE)
    return _fitted(shape, nodes, cells, edge), cells


def _box(lo: np.ndarray, hi: np.ndarray, edge: float) -> tuple[np.ndarray, np.ndarray]:
    """A box of bricks of six tetrahedra each around the brick's diagonal (Kuhn): exact, repeatable.

    The edges of such a cube are on average 1.28 times as long as its sides.
    """
    step = edge * 7.0 / (3.0 + 3.0 * np.sqrt(2.0) + np.sqrt(3.0))
    count = np.maximum(np.rint((hi - lo) / step), 1.0)
    _require_affordable(6.0 * float(np.prod(count)), edge)
    count = count.astype(int)
    axes = [np.linspace(a, b, c + 1) for a, b, c in zip(lo, hi, count, strict=True)]
    nodes = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    stride = np.array([(count[1] + 1) * (count[2] + 1), count[2] + 1, 1])
    first = np.stack(np.meshgrid(*(np.arange(c) for c in count), indexing="ij"), axis=-1)
    first = first.reshape(-1, 3) @ stride
    walks = [(0, 1, 2), (1, 2, 0), (2, 0, 1), (0, 2, 1), (2, 1, 0), (1, 0, 2)]
    paths = np.array([np.cumsum([0, *stride[list(walk)]]) for walk in walks])
    return nodes, (first[:, None, None] + paths).reshape(-1, 4)


def _require_affordable(count: float, edge: float) -> None:
    if not count <= LARGEST_MESH:
        raise BadInput(
            f"Edge length {edge:g} needs about {count:,.0f} tetrahedra, more than "
            f"{LARGEST_MESH:,}: use a larger edge_length."
        )


def _tetrahedralize(
    vertices: np.ndarray, faces: np.ndarray, edge: float, envelope: float
) -> tuple[np.ndarray, np.ndarray]:
    """Tetrahedra inside any triangles, by fTetWild (Hu et al. 2020)."""
    # a regular tetrahedron has the volume 0.118 edge^3
    _require_affordable(abs(enclosed_volume(vertices, faces)) / (0.118 * edge**3), edge)
    middle = (vertices.min(axis=0) + vertices.max(axis=0)) / 2.0
    diagonal = float(np.linalg.norm(np.ptp(vertices, axis=0)))
    nodes, cells = kept_mesh(
        _run_tetwild,
        _tetwild_version(),
        # in units of the diagonal around the origin: the same mesh in mm and in m
        vertices=(vertices - middle) / diagonal,
        faces=faces.astype(np.int32),
        edge_length_abs=min(EDGE_FACTOR * edge / diagonal, 1.0),
        epsilon=float(np.clip(envelope * edge / diagonal, 1e-4, 2e-2)),
    )
    if len(cells) == 0:
        raise BadInput(
            "fTetWild found no inside: close the surface's holes, or use a smaller edge_length."
        )
    return middle + diagonal * nodes, cells.astype(np.int64)


_TETWILD = """
import sys, types
import numpy as np
try:
    import pytetwild
except ImportError as error:
    if error.name != "pyvista":
        raise
    # all that version 0.4 wants of pyvista is to register itself, if that can be done
    sys.modules["pyvista"] = types.ModuleType("pyvista")
    import pytetwild
given = np.load("surface.npz")
options = {name: given[name].item() for name in ("edge_length_abs", "epsilon")}
# with its defaults, 10 and 80, the dragon takes 50 s instead of 9, to no avail
options.update(stop_energy=20.0, num_opt_iter=20, num_threads=1, quiet=True)
nodes, cells = pytetwild.tetrahedralize(given["vertices"], given["faces"], **options)
np.savez("cells.npz", nodes=nodes, cells=cells)
"""


def _tetwild_version() -> str:
    """Of the mesher and of how it is called: another one makes other meshes."""
    try:
        return f"pytetwild {version('pytetwild')}\n{_TETWILD}"
    except PackageNotFoundError:
        return "none"


def _run_tetwild(**given: Any) -> tuple[np.ndarray, np.ndarray]:
    """Run fTetWild in a process and a folder of its own.

    It leaves files in the working folder, and a surface it cannot cope with may end the process.
    """
    missing = MissingExtra("pytetwild", "mesh", "Making tetrahedra from a surface")
    if importlib.util.find_spec("pytetwild") is None:
        raise missing
    with tempfile.TemporaryDirectory(prefix="pliant-") as folder:
        np.savez(Path(folder, "surface.npz"), **given)
        done = subprocess.run(
            [sys.executable, "-c", _TETWILD],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
            capture_output=True,
            text=True,
            errors="replace",
        )
        if done.returncode == 0:
            with np.load(Path(folder, "cells.npz")) as made:
                return made["nodes"], made["cells"]
    reason = (done.stderr.strip().splitlines() or [f"it ended with code {done.returncode}"])[-1]
    if reason.startswith(("ModuleNotFoundError", "ImportError")):
        raise missing
    raise BadInput(f"fTetWild cannot mesh this surface ({reason}): repair it.")


def _fitted(shape: Shape, nodes: np.ndarray, cells: np.ndarray, edge: float) -> np.ndarray:
    """Boundary nodes moved from the sampled surface to phi = 0 where no cell gets much flatter."""
    cells, _, before = oriented(nodes, cells, "")
    border = np.unique(boundary(cells, "")[0])
    target = nodes.copy()
    target[border] = onto_surface(shape, nodes[border], 0.25 * edge)
    for _ in range(10):
        flat = simplex_geometry_rows(target[cells])[1] < 0.5 * before
        if not flat.any():
            return target
        held = np.unique(cells[flat])
        target[held] = nodes[held]
    return nodes
