"""A fine mesh carried by a body: what is drawn may have far more triangles than what is computed.

Each vertex is embedded in the cell that holds it (the nearest one for vertices outside, whose field
goes on beyond its faces), as seed 003, section 4.1.7, maps a render mesh onto tetrahedra. Grid and
mesh bodies alike.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from weakref import WeakKeyDictionary

import numpy as np
from scipy import sparse

from pliant.core.errors import BadInput
from pliant.fem.bodies.body import Body
from pliant.fem.bodies.embedding import Embedding
from pliant.geometry.mesh_shape import MeshShape
from pliant.geometry.shape import Shape
from pliant.geometry.transform import Mirrored, Rotated, Scaled, Translated, rotation_matrix

LOOSE = 0.2
"""Share of the body's diagonal by which a render mesh may stick out: hair and cloth may, a mesh in
other units does more."""


@dataclass(frozen=True)
class RenderMesh:
    """Vertices carried by nodes, joined to triangles (triangles, 3) with normals outward."""

    points: Embedding
    triangles: np.ndarray
    shape: MeshShape | None = None
    """What it was made from, in the order of its vertices: its file may have a texture."""

    def positions(self, nodes: np.ndarray) -> np.ndarray:
        """Vertices (vertices, 3) for node positions (nodes, 3)."""
        return self.points.matrix @ nodes

    def normals(self, positions: np.ndarray) -> np.ndarray:
        """Unit normals (vertices, 3), the triangles' weighted by their angles at the vertex."""
        corner = positions[self.triangles]
        a = np.roll(corner, -1, axis=1) - corner
        b = np.roll(corner, 1, axis=1) - corner
        cross = np.cross(a, b)
        sine = np.linalg.norm(cross, axis=2)
        angle = np.arctan2(sine, np.einsum("tci,tci->tc", a, b))
        weighted = cross * (angle / np.maximum(sine, 1e-300))[:, :, None]
        total = self._collect @ weighted.reshape(-1, 3)
        return total / np.maximum(np.linalg.norm(total, axis=1, keepdims=True), 1e-300)

    @cached_property
    def _collect(self) -> sparse.csr_matrix:
        """Sums over the corners at each vertex, (vertices, 3 triangles)."""
        vertex = self.triangles.reshape(-1)
        shape = (len(self.points), len(vertex))
        return sparse.csr_matrix((np.ones(len(vertex)), (vertex, np.arange(len(vertex)))), shape)


def carried_mesh(body: Body, vertices: np.ndarray, triangles: np.ndarray) -> RenderMesh:
    """Triangles (triangles, 3) over rest positions `vertices` (vertices, 3) [m], carried by a body.

    A mesh that is not where the body is is nearly always in other units: refused if its box sticks
    out of the body's by more than LOOSE of the body's diagonal (see `fitted`).
    """
    vertices = np.asarray(vertices, float)
    triangles = np.asarray(triangles, np.int64)
    if body.dim != 3:
        raise BadInput("A render mesh needs a 3D body.")
    if vertices.ndim != 2 or vertices.shape[1] != 3 or not np.isfinite(vertices).all():
        raise BadInput(f"The render mesh needs finite vertices (n, 3), not {vertices.shape}.")
    if triangles.ndim != 2 or triangles.shape[1] != 3 or not len(triangles):
        raise BadInput(f"The render mesh needs triangles (n, 3), not {triangles.shape}.")
    if triangles.min() < 0 or triangles.max() >= len(vertices):
        raise BadInput("A triangle of the render mesh refers to a vertex that does not exist.")
    own, other = (np.array([p.min(axis=0), p.max(axis=0)]) for p in (body.nodes, vertices))
    size = np.linalg.norm(own[1] - own[0])
    if max((own[0] - other[0]).max(), (other[1] - own[1]).max()) > LOOSE * size:
        raise BadInput(
            "The render mesh is not where the body is: move and scale it there (--fit-mesh)."
        )
    return RenderMesh(body.locate(vertices), triangles)


_SKINS: "WeakKeyDictionary[Body, RenderMesh | None]" = WeakKeyDictionary()


def skin_of(body: Body) -> RenderMesh | None:
    """The mesh that a body was made from, carried by it; None where its shape is no mesh.

    A mesh that was moved, turned, scaled or mirrored is one still; a part of a boolean is not.
    """
    if body not in _SKINS:
        found = _placed_mesh(body.shape)
        if found is not None:
            mesh, vertices, triangles = found
            found = RenderMesh(body.locate(vertices), triangles, mesh)
        _SKINS[body] = found
    return _SKINS[body]


def own_surface(body: Body) -> RenderMesh:
    """The triangles of a 3D body's own surface."""
    return RenderMesh(body.surface.points, body.surface.facets)


def _placed_mesh(shape: Shape | None) -> tuple[MeshShape, np.ndarray, np.ndarray] | None:
    """The mesh inside a shape, its vertices where the shape puts them, its triangles."""
    if isinstance(shape, MeshShape):
        return shape, shape.vertices, shape.faces
    if not isinstance(shape, Translated | Rotated | Scaled | Mirrored):
        return None
    found = _placed_mesh(shape.shape)
    if found is None:
        return None
    mesh, vertices, triangles = found
    match shape:
        case Translated():
            vertices = vertices + np.asarray(shape.offset)
        case Rotated():
            vertices = vertices @ rotation_matrix(shape.angle, shape.axis).T
        case Scaled():
            vertices = shape.factor * vertices
        case Mirrored():
            n = np.asarray(shape.normal)
            vertices = vertices - 2.0 * np.outer(vertices @ n, n)
            triangles = triangles[:, ::-1]
    return mesh, vertices, triangles


def fitted(body: Body, vertices: np.ndarray) -> np.ndarray:
    """Vertices (vertices, 3) moved and scaled so that their box is about that of the surface."""
    surface = body.surface.positions(body.nodes)
    own, other = (np.array([p.min(axis=0), p.max(axis=0)]) for p in (surface, vertices))
    extent = np.linalg.norm(other[1] - other[0])
    if not (np.isfinite(extent) and extent > 0.0):
        raise BadInput("The render mesh has no extent.")
    scale = np.linalg.norm(own[1] - own[0]) / extent
    return own.mean(axis=0) + scale * (vertices - other.mean(axis=0))


def load_render_mesh(body: Body, path: str | Path, *, fit: bool = False) -> RenderMesh:
    """The triangles of a .ply, .obj, .stl, .off or .glb file, carried by a body.

    fit: move and scale the mesh to where the body is, for files in other units.
    """
    from pliant.geometry.mesh_files import load_mesh

    mesh = load_mesh(path)
    try:
        vertices = fitted(body, mesh.vertices) if fit else mesh.vertices
        return replace(carried_mesh(body, vertices, mesh.faces), shape=mesh)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from error
