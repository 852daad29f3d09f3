"""A body of tetrahedra (2D: triangles), from a shape, a surface, a file or arrays."""

import importlib.util
import logging
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components, reverse_cuthill_mckee
from scipy.spatial import KDTree

from pliant.core.errors import BadInput, MissingExtra
from pliant.fem.body import Body
from pliant.fem.cells import SIMPLEX, simplex_geometry_rows
from pliant.fem.embedding import Embedding, Surface
from pliant.fem.pattern import general_pattern
from pliant.fem.simplex_files import SIMPLEX_SUFFIXES, load_simplices, planar
from pliant.fem.triangulate import onto_surface, sampled_surface, triangulate
from pliant.geometry.arguments import positive
from pliant.geometry.field_files import FIELD_SUFFIXES, field_suffix
from pliant.geometry.load import load_shape
from pliant.geometry.mesh_files import MESH_SUFFIXES
from pliant.geometry.mesh_shape import MeshShape, enclosed_volume
from pliant.geometry.primitives import Box
from pliant.geometry.shape import Shape
from pliant.geometry.transform import Mirrored, Rotated, Scaled, Translated, rotation_matrix

DEFAULT_DIVISIONS = 20
"""Edges along the diagonal of a shape's bounds when no edge length is asked for."""

DEGENERATE = 1e-12
"""Volumes below this times the cube (2D: square) of the cell's longest edge count as zero: the
gradients of such a cell would be rounding errors."""

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

_FACES = {
    3: np.array([[0, 1], [1, 2], [2, 0]]),
    4: np.array([[1, 2, 3], [0, 3, 2], [0, 1, 3], [0, 2, 1]]),
}
"""Faces of a positively oriented simplex, normals outward."""

_log = logging.getLogger(__name__)


def TetBody(source: Any, edge_length: float | None = None) -> Body:
    """Linear tetrahedra that fill a 3D source, or triangles that fill a 2D one.

    source: a Shape (2D or 3D), a MeshShape or trimesh.Trimesh (any triangle soup), a path to a
    volume mesh (.msh .vtu .vtk .mesh), a surface mesh (.ply .obj .stl ...) or a field
    (.npz ...), or a pair (nodes (n, dim), cells (m, dim + 1)).
    edge_length: wanted mean edge [m]; a twentieth of the source's diagonal unless told. A source
    that consists of cells already keeps them.

    Arrays keep their own order of nodes and cells (nodes without a cell are dropped); all others
    are renumbered. fTetWild draws random numbers that cannot be seeded: the mesh of a 3D shape
    other than a box differs a little from run to run. `save_simplices` keeps one.
    """
    if edge_length is not None:
        edge_length = positive("TetBody", "edge_length", edge_length)
    name, made = "", True
    if isinstance(source, str | Path):
        name = f"{source}: "
        nodes, cells = _from_file(Path(source), edge_length)
    elif isinstance(source, Shape):
        nodes, cells = _from_shape(source, edge_length)
    elif hasattr(source, "vertices") and hasattr(source, "faces"):
        nodes, cells = _from_shape(_solid(source.vertices, source.faces), edge_length)
    elif isinstance(source, tuple | list) and len(source) == 2:
        (nodes, cells), made = source, False
    else:
        raise BadInput(
            "TetBody needs a shape, a trimesh, a path or a pair (nodes, cells), "
            f"not {type(source).__name__}."
        )
    nodes, cells = _checked(nodes, cells, name)
    nodes, cells = _used(nodes, cells)
    if made:
        nodes, cells = _renumbered(nodes, cells)
    shape = source if isinstance(source, Shape) else None
    return replace(_body(nodes, cells, name), shape=shape, requested_size=edge_length)


def _body(nodes: np.ndarray, cells: np.ndarray, name: str) -> Body:
    dim = nodes.shape[1]
    cells, rows, volumes = _oriented(nodes, cells, name)
    facets, facet_cell = _boundary(cells, name)
    carriers, corner = np.unique(facets, return_inverse=True)
    points = Embedding(
        carriers.astype(np.int32)[:, None], np.ones((len(carriers), 1)), len(nodes)
    )
    ends = edges_of(cells)
    graph = sparse.coo_matrix((np.ones(len(ends)), tuple(ends.T)), shape=(len(nodes),) * 2)
    pieces = connected_components(graph, directed=False, return_labels=False)
    if pieces > 1:
        _log.info("%sthe body consists of %d disconnected pieces", name, pieces)
    return Body(
        nodes=nodes,
        cells=cells,
        kind=SIMPLEX,
        geometry_row=np.arange(len(cells), dtype=np.int32),
        geometry_table=rows,
        node_volumes=np.repeat(volumes[:, None] / (dim + 1), dim + 1, axis=1),
        surface=Surface(points, corner.reshape(-1, dim), facet_cell),
        pattern=general_pattern(cells, len(nodes)),
        locate=SimplexLocator(nodes, cells),
        spacing=float(np.linalg.norm(nodes[ends[:, 1]] - nodes[ends[:, 0]], axis=1).mean()),
    )


def edges_of(cells: np.ndarray) -> np.ndarray:
    """Distinct edges (edges, 2) of simplices, lower node first."""
    pairs = [cells[:, list(p)] for p in combinations(range(cells.shape[1]), 2)]
    return np.unique(np.sort(np.concatenate(pairs), axis=1), axis=0)


# --- sources


def _from_file(path: Path, edge_length: float | None) -> tuple[np.ndarray, np.ndarray]:
    suffix = path.suffix.lower()
    if suffix in SIMPLEX_SUFFIXES:
        points, cells = load_simplices(path)
        if cells.shape[1] == 4:
            return points, cells
        if planar(points[np.unique(np.clip(cells, 0, len(points) - 1))]):
            return points[:, :2], cells
        try:
            return _from_shape(_solid(points, cells), edge_length)
        except BadInput as error:
            raise BadInput(f"{path}: {error}") from error
    if suffix not in MESH_SUFFIXES and field_suffix(path) is None:
        known = ", ".join((*SIMPLEX_SUFFIXES, *MESH_SUFFIXES, *FIELD_SUFFIXES))
        raise BadInput(f"{path}: unknown ending {path.suffix!r}; known: {known}.")
    shape = load_shape(path)
    try:
        return _from_shape(shape, edge_length)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from error


def _solid(vertices: Any, faces: Any) -> MeshShape:
    """Triangles with equal vertices merged, so that a soup of separate triangles is closed."""
    vertices, faces = np.asarray(vertices), np.asarray(faces)
    valid = faces.size and faces.dtype.kind in "iu" and faces.min() >= 0
    if vertices.ndim == 2 and valid and faces.max() < len(vertices):
        vertices, merged = np.unique(vertices, axis=0, return_inverse=True)
        faces = merged.reshape(-1)[faces]
    return MeshShape(vertices=vertices, faces=faces)


def _from_shape(shape: Shape, edge_length: float | None) -> tuple[np.ndarray, np.ndarray]:
    lo, hi = (np.asarray(b, float) for b in shape.bounds)
    if not (np.isfinite(lo).all() and np.isfinite(hi).all()):
        raise BadInput("The shape is unbounded: intersect it with a box before making a body.")
    edge = edge_length or float(np.linalg.norm(hi - lo)) / DEFAULT_DIVISIONS
    return _meshed(shape, edge)


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
    nodes, cells = _run_tetwild(
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
    cells, _, before = _oriented(nodes, cells, "")
    border = np.unique(_boundary(cells, "")[0])
    target = nodes.copy()
    target[border] = onto_surface(shape, nodes[border], 0.25 * edge)
    for _ in range(10):
        flat = simplex_geometry_rows(target[cells])[1] < 0.5 * before
        if not flat.any():
            return target
        held = np.unique(cells[flat])
        target[held] = nodes[held]
    return nodes


# --- checks and numbering


def _checked(nodes: Any, cells: Any, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Finite nodes (n, dim) and integer cells (m, dim + 1) that refer to them."""
    try:
        nodes, cells = np.array(nodes, dtype=np.float64), np.asarray(cells)
    except (TypeError, ValueError) as error:
        raise BadInput(f"{name}nodes and cells must be arrays of numbers.") from error
    if nodes.ndim != 2 or nodes.shape[1] not in (2, 3):
        raise BadInput(f"{name}nodes must have the shape (n, 2) or (n, 3), got {nodes.shape}.")
    if cells.size == 0:
        raise BadInput(f"{name}there are no cells: a body needs at least one.")
    if cells.ndim != 2 or cells.dtype.kind not in "iu":
        raise BadInput(f"{name}cells must be integers (m, {nodes.shape[1] + 1}).")
    bad = ~(np.abs(nodes) < 1e100).all(axis=1)
    if bad.any():
        i = int(np.argmax(bad))
        raise BadInput(f"{name}node {i} is not a usable position: {nodes[i].tolist()}.")
    if nodes.shape[1] == 3 and cells.shape[1] == 3 and planar(nodes):
        nodes = nodes[:, :2].copy()
    if cells.shape[1] != nodes.shape[1] + 1:
        raise BadInput(
            f"{name}cells of {cells.shape[1]} nodes do not fill {nodes.shape[1]}D space "
            f"({nodes.shape[1] + 1} are needed); for a surface use MeshShape(vertices, faces)."
        )
    wrong = ((cells < 0) | (cells >= len(nodes))).any(axis=1)
    if wrong.any():
        c = int(np.argmax(wrong))
        raise BadInput(
            f"{name}cell {c} refers to a node that does not exist: {cells[c].tolist()}, "
            f"there are {len(nodes)}."
        )
    return nodes, cells.astype(np.int32)


def _used(nodes: np.ndarray, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Without the nodes that no cell has: they would make every matrix singular."""
    used, flat = np.unique(cells, return_inverse=True)
    if len(used) == len(nodes):
        return nodes, cells
    _log.info("%d nodes belong to no cell and are dropped", len(nodes) - len(used))
    return nodes[used], flat.reshape(cells.shape).astype(np.int32)


def _renumbered(nodes: np.ndarray, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Neighbours near each other in memory: reverse Cuthill-McKee, cells by their lowest node."""
    ends = edges_of(cells)
    both = np.concatenate([ends, ends[:, ::-1]])
    graph = sparse.csr_matrix((np.ones(len(both)), tuple(both.T)), shape=(len(nodes),) * 2)
    order = reverse_cuthill_mckee(graph, symmetric_mode=True)
    new = np.empty(len(nodes), np.int32)
    new[order] = np.arange(len(nodes), dtype=np.int32)
    cells = new[cells]
    rank = np.sort(cells, axis=1)
    return nodes[order], cells[np.lexsort(rank.T[::-1])]


def _oriented(nodes: np.ndarray, cells: np.ndarray, name: str):
    """Cells with positive volumes, their geometry rows and volumes."""
    corners = nodes[cells]
    dim = nodes.shape[1]
    with np.errstate(all="ignore"):  # a flat cell is reported below
        rows, volumes = simplex_geometry_rows(corners)
    longest = np.zeros(len(cells))
    for a, b in combinations(range(dim + 1), 2):
        np.maximum(longest, np.linalg.norm(corners[:, a] - corners[:, b], axis=1), out=longest)
    zero = ~(np.abs(volumes) > DEGENERATE * longest**dim)
    if zero.any():
        c = int(np.argmax(zero))
        raise BadInput(
            f"{name}cell {c} has no volume (nodes {cells[c].tolist()}, {int(zero.sum())} such "
            "cells in all): remove it or mesh again."
        )
    turned = volumes < 0.0
    if turned.any():
        _log.debug("%s%d cells were turned to positive volume", name, int(turned.sum()))
        cells = cells.copy()
        cells[turned, -2:] = cells[turned][:, [-1, -2]]
        rows, volumes = simplex_geometry_rows(nodes[cells])
    return cells, rows, volumes


def _boundary(cells: np.ndarray, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Faces that one cell owns alone, (facets, dim) outward, and their cells, ascending."""
    k = cells.shape[1]
    faces = cells[:, _FACES[k]].reshape(-1, k - 1)
    owner = np.repeat(np.arange(len(cells), dtype=np.int32), k)
    key = np.sort(faces, axis=1)
    order = np.lexsort(key.T)
    new = np.r_[True, (key[order][1:] != key[order][:-1]).any(axis=1)]
    group = np.empty(len(faces), np.int64)
    group[order] = np.cumsum(new) - 1
    count = np.bincount(group)
    # two cells on opposite sides of a face see it turned in opposite ways
    side = np.bincount(group, _handedness(faces))
    bad = (count > 2) | ((count == 2) & (side != 0.0))
    if bad.any():
        c = int(owner[bad[group]].min())
        raise BadInput(
            f"{name}cell {c} overlaps another cell that has the same face: remove one of them."
        )
    alone = np.flatnonzero(count[group] == 1)
    return faces[alone], owner[alone]


def _handedness(faces: np.ndarray) -> np.ndarray:
    """+1 or -1: whether the corners are an even permutation of the ascending order."""
    sign = np.ones(len(faces))
    for a, b in combinations(range(faces.shape[1]), 2):
        sign[faces[:, a] > faces[:, b]] *= -1.0
    return sign


# --- finding cells


class SimplexLocator:
    """Finds the cell of a material point.

    Outside the body, the nearby cell is taken whose smallest barycentric coordinate at the point
    is largest; its linear field goes on beyond its faces.
    """

    NEAREST = 12
    """Centroids looked at first; in a ball's mesh 99.9 % of the points inside are found so."""

    INSIDE = -1e-10
    """Barycentric coordinates from here on count as inside: a point on a face is in both cells."""

    CHUNK = 100_000
    """Points handled at a time, to bound the memory of the candidates."""

    def __init__(self, nodes: np.ndarray, cells: np.ndarray):
        self._cells = cells
        self._node_count = len(nodes)
        corners = nodes[cells]
        self._last = corners[:, -1]
        edges = corners[:, :-1] - corners[:, -1:]
        self._to_barycentric = np.linalg.inv(edges.transpose(0, 2, 1))
        self._centre = corners.mean(axis=1)
        self._reach = np.linalg.norm(corners - self._centre[:, None], axis=2).max(axis=1)

    def cells_of(self, points: np.ndarray) -> np.ndarray:
        """Index of the cell of each point (points, dim), or of the best one outside."""
        points = np.asarray(points, float)
        bad = ~np.isfinite(points).all(axis=1)
        if bad.any():
            raise BadInput(f"Point {int(np.argmax(bad))} is not finite: it has no cell.")
        found = np.empty(len(points), np.int64)
        for start in range(0, len(points), self.CHUNK):
            rows = slice(start, start + self.CHUNK)
            found[rows] = self._find(points[rows])
        return found

    def __call__(self, points: np.ndarray) -> Embedding:
        """The points carried by the corners of their cells."""
        points = np.asarray(points, float)
        cell = self.cells_of(points)
        return Embedding(self._cells[cell], self._barycentric(cell, points), self._node_count)

    def _barycentric(self, cell: np.ndarray, points: np.ndarray) -> np.ndarray:
        """Weights (points, dim + 1) of the cells' corners."""
        head = np.einsum("nij,nj->ni", self._to_barycentric[cell], points - self._last[cell])
        return np.column_stack([head, 1.0 - head.sum(axis=1)])

    def _find(self, points: np.ndarray) -> np.ndarray:
        near = self._tree.query(points, k=min(self.NEAREST, len(self._cells)))[1]
        near = near.reshape(len(points), -1)
        best = near[:, 0].astype(np.int64)
        depth = np.full(len(points), -np.inf)
        for candidate in near.T:
            open_ = np.flatnonzero(depth < self.INSIDE)
            self._improve(points, open_, candidate[open_], best, depth)
        # Large cells next to small ones have far centres: look at all that may reach the point.
        lost = np.flatnonzero(depth < self.INSIDE)
        for rows, tree, reach in self._classes:
            hits = tree.query_ball_point(points[lost], reach)
            counts = np.array([len(h) for h in hits], int)
            if not counts.sum():
                continue
            point = np.repeat(lost, counts)
            cell = rows[np.concatenate([h for h in hits if h]).astype(int)]
            lowest = self._barycentric(cell, points[point]).min(axis=1)
            order = np.lexsort((-lowest, point))
            first = order[np.r_[True, point[order][1:] != point[order][:-1]]]
            self._improve(points, point[first], cell[first], best, depth)
        return best

    def _improve(self, points, which, cell, best, depth) -> None:
        """Take `cell` for the points `which` where their smallest coordinate is larger there."""
        lowest = self._barycentric(cell, points[which]).min(axis=1)
        better = lowest > depth[which]
        best[which[better]] = cell[better]
        depth[which[better]] = lowest[better]

    @cached_property
    def _tree(self) -> KDTree:
        return KDTree(self._centre)

    @cached_property
    def _classes(self) -> list[tuple[np.ndarray, KDTree, float]]:
        """Cells grouped by powers of two of their reach, each group with a tree of its centres."""
        size = np.floor(np.log2(self._reach / self._reach.min())).astype(int)
        groups = [np.flatnonzero(size == s) for s in np.unique(size)]
        return [
            (g, KDTree(self._centre[g]), float(self._reach[g].max()) * (1.0 + 1e-9))
            for g in groups
        ]
