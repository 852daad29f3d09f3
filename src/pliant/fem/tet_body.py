"""A body of tetrahedra (2D: triangles), from a shape, a surface, a file or arrays."""

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from pliant.core.errors import BadInput
from pliant.fem.body import Body
from pliant.fem.cells import SIMPLEX
from pliant.fem.embedding import Embedding, Surface
from pliant.fem.meshing import mesh_of, solid
from pliant.fem.pattern import general_pattern
from pliant.fem.simplex_files import SIMPLEX_SUFFIXES, load_simplices, planar
from pliant.fem.simplex_locator import SimplexLocator
from pliant.fem.simplices import boundary, checked, edges_of, oriented, renumbered, used
from pliant.geometry.arguments import positive
from pliant.geometry.field_files import FIELD_SUFFIXES, field_suffix
from pliant.geometry.load import load_shape
from pliant.geometry.mesh_files import MESH_SUFFIXES
from pliant.geometry.shape import Shape

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
    return replace(_body(nodes, cells, name), shape=shape, requested_size=edge_length)


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


def _body(nodes: np.ndarray, cells: np.ndarray, name: str) -> Body:
    dim = nodes.shape[1]
    cells, rows, volumes = oriented(nodes, cells, name)
    facets, facet_cell = boundary(cells, name)
    carriers, corner = np.unique(facets, return_inverse=True)
    points = Embedding(carriers.astype(np.int32)[:, None], np.ones((len(carriers), 1)), len(nodes))
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
