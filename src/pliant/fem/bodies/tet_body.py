"""A body of tetrahedra (2D: triangles), from a shape, a surface, a file or arrays."""

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from pliant.core.errors import BadInput
from pliant.core.numbers import positive
from pliant.fem.bodies.body import DEFAULT_ORDER, Body
from pliant.fem.bodies.embedding import Embedding, Surface
from pliant.fem.bodies.meshing import mesh_of, solid
from pliant.fem.bodies.quadratic_simplices import LUMPED, face_parts, interleaved, with_edge_nodes
from pliant.fem.bodies.simplex_files import SIMPLEX_SUFFIXES, load_simplices, planar
from pliant.fem.bodies.simplex_locator import SimplexLocator
from pliant.fem.bodies.simplices import boundary, checked, edges_of, oriented, renumbered, used
from pliant.fem.forces.cells import QUADRATIC, SIMPLEX, quadratic_geometry_rows
from pliant.geometry.field_files import FIELD_SUFFIXES, field_suffix
from pliant.geometry.load import load_shape
from pliant.geometry.mesh_files import MESH_SUFFIXES
from pliant.geometry.shape import Shape
from pliant.linalg.pattern import general_pattern

_log = logging.getLogger(__name__)


def TetBody(source: Any, edge_length: float | None = None, *, order: int = DEFAULT_ORDER) -> Body:
    """Tetrahedra that fill a 3D source, or triangles that fill a 2D one.

    source: a Shape (2D or 3D), a MeshShape or trimesh.Trimesh (any triangle soup), a path to a
    volume mesh (.msh .vtu .vtk .mesh), a surface mesh (.ply .obj .stl ...) or a field
    (.npz ...), or a pair (nodes (n, dim), cells (m, dim + 1)).
    edge_length: wanted mean edge [m]; a twentieth of the source's diagonal unless told. A source
    that consists of cells already keeps them.
    order: 1, linear cells of dim + 1 nodes, or 2, quadratic ones with one more node in the middle
    of every edge (10 or 6 in all): true in bending where linear ones are far too stiff.

    Arrays keep their own order of nodes and cells (nodes without a cell are dropped, those on
    edges come after all others); all others are renumbered. fTetWild draws random numbers that
    cannot be seeded: the mesh of a 3D shape other than a box differs a little from run to run.
    `save_simplices` keeps one.
    """
    if edge_length is not None:
        edge_length = positive("TetBody", "edge_length", edge_length)
    if order not in (1, 2) or isinstance(order, bool):
        raise BadInput(f"TetBody: order must be 1 (linear cells) or 2 (quadratic), not {order!r}.")
    name, made = "", True
    if isinstance(source, str | Path):
        name = f"{source}: "
        nodes, cells = _from_file(Path(source), edge_length)
    elif isinstance(source, Shape):
        nodes, cells = mesh_of(source, edge_length)
    elif hasattr(source, "vertices") and hasattr(source, "faces"):
        nodes, cells = mesh_of(solid(source.vertices, source.faces), edge_length)
    elif isinstance(source, tuple | list) and len(source) == 2:
        (nodes, cells), made = source, False
    else:
        raise BadInput(
            "TetBody needs a shape, a trimesh, a path or a pair (nodes, cells), "
            f"not {type(source).__name__}."
        )
    nodes, cells = checked(nodes, cells, name)
    nodes, cells = used(nodes, cells)
    if made:
        nodes, cells = renumbered(nodes, cells)
    shape = source if isinstance(source, Shape) else None
    body = _body(nodes, cells, name, quadratic=order == 2, own_order=not made)
    return replace(body, shape=shape, requested_size=edge_length, order=int(order))


def restored_body(nodes: np.ndarray, cells: np.ndarray) -> Body:
    """The body whose nodes and cells these are, with the same numbers: as a run has kept them."""
    corners = nodes.shape[1] + 1
    if cells.ndim != 2 or cells.shape[1] <= corners:
        return TetBody((nodes, cells), order=1)
    of_corners = np.unique(cells[:, :corners])
    appended = len(of_corners) == int(of_corners.max(initial=-1)) + 1
    own = np.searchsorted(of_corners, cells[:, :corners]).astype(np.int32)
    body = _body(nodes[of_corners], own, "", quadratic=True, own_order=appended)
    if not (np.array_equal(body.nodes, nodes) and np.array_equal(body.cells, cells)):
        raise BadInput("the nodes on the edges are not where those of a quadratic body are.")
    return replace(body, order=2)


def _from_file(path: Path, edge_length: float | None) -> tuple[np.ndarray, np.ndarray]:
    suffix = path.suffix.lower()
    if suffix in SIMPLEX_SUFFIXES:
        points, cells = load_simplices(path)
        if cells.shape[1] == 4:
            return points, cells
        if planar(points[np.unique(np.clip(cells, 0, len(points) - 1))]):
            return points[:, :2], cells
        try:
            return mesh_of(solid(points, cells), edge_length)
        except BadInput as error:
            raise BadInput(f"{path}: {error}") from error
    if suffix not in MESH_SUFFIXES and field_suffix(path) is None:
        known = ", ".join((*SIMPLEX_SUFFIXES, *MESH_SUFFIXES, *FIELD_SUFFIXES))
        raise BadInput(f"{path}: unknown ending {path.suffix!r}; known: {known}.")
    shape = load_shape(path)
    try:
        return mesh_of(shape, edge_length)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from error


def _body(
    nodes: np.ndarray, cells: np.ndarray, name: str, *, quadratic: bool, own_order: bool
) -> Body:
    dim = nodes.shape[1]
    cells, rows, volumes = oriented(nodes, cells, name)
    facets, facet_cell = boundary(cells, name)
    ends = edges_of(cells)
    graph = sparse.coo_matrix((np.ones(len(ends)), tuple(ends.T)), shape=(len(nodes),) * 2)
    pieces = connected_components(graph, directed=False, return_labels=False)
    warnings = ()
    if pieces > 1:
        warnings = (
            f"{name}the body consists of {pieces} disconnected pieces: what holds one of them does "
            "not hold the others.",
        )
        _log.warning("%s", warnings[0])
    spacing = float(np.linalg.norm(nodes[ends[:, 1]] - nodes[ends[:, 0]], axis=1).mean())
    shares = np.full(dim + 1, 1.0 / (dim + 1))
    if quadratic:
        nodes, cells = with_edge_nodes(nodes, cells)
        facets, facet_cell = face_parts(cells, facets, facet_cell)
        if not own_order:
            nodes, cells, facets = interleaved(nodes, cells, facets)
        rows = quadratic_geometry_rows(rows, dim + 1)
        corner_share, edge_share = LUMPED[cells.shape[1]]
        shares = np.full(cells.shape[1], edge_share)
        shares[: dim + 1] = corner_share
    carriers, corner = np.unique(facets, return_inverse=True)
    points = Embedding(carriers.astype(np.int32)[:, None], np.ones((len(carriers), 1)), len(nodes))
    return Body(
        nodes=nodes,
        cells=cells,
        kind=QUADRATIC if quadratic else SIMPLEX,
        geometry_row=np.arange(len(cells), dtype=np.int32),
        geometry_table=rows,
        node_volumes=volumes[:, None] * shares,
        surface=Surface(points, corner.reshape(-1, dim), facet_cell),
        pattern=general_pattern(cells, len(nodes)),
        locate=SimplexLocator(nodes, cells),
        spacing=spacing,
        warnings=warnings,
    )
