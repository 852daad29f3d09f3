"""A shape bounded by triangles, which need not be closed."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from pliant.core.errors import BadInput
from pliant.geometry.arguments import as_points
from pliant.geometry.mesh_query import REACH, TriangleTree
from pliant.geometry.shape import Shape

PROBES = 32
"""Points per axis of the grid that looks for an inside in a mesh with holes."""

SURE_INSIDE = 0.75
"""Winding number that a mesh with holes must reach somewhere. Under a sheet, flat or gently bent,
it hardly exceeds 1/2; at the bottom of an open half sphere it is 0.85."""

PROBED = 24
"""Points at which the winding number of a mesh with open edges is taken."""

MOST_PROBED = 200_000
"""Triangles up to which it is; a larger mesh with open edges counts as one with holes, or as loose
triangles."""

FARTHEST = 1e15
"""Metres from the origin to a vertex; the search for the nearest triangle squares them in single
precision."""

MOST_LOOKED_UNDER = 20_000
"""Triangles under which an inside is looked for; of more, every so manieth."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class MeshShape(Shape):
    """Distance to the nearest triangle, negative where the winding number is at least 1/2.

    vertices: (n, 3). faces: (m, 3) vertex indices, counter-clockwise seen from outside.
    The winding number w(x) = sum of solid angles / 4 pi is 1 inside and 0 outside a closed mesh
    and changes smoothly across holes, so holes and overlaps do not flip the sign of whole
    regions. A mesh that is inside out as a whole is turned. Distances are good to about
    1e-7 of the mesh's size.
    """

    vertices: np.ndarray
    faces: np.ndarray
    source: dict[str, Any] | None = field(default=None, repr=False)
    """How `to_dict` refers to it: the file it was loaded from."""

    KIND: ClassVar[str] = "mesh"

    @property
    def dim(self) -> int:
        """Three."""
        return 3

    def __post_init__(self):
        vertices, faces = _checked_triangles(self.vertices, self.faces)
        _require_neighbours(vertices, faces)
        volume = enclosed_volume(vertices, faces)
        if volume < 0.0:
            _log.info("the mesh is inside out (volume %g): its triangles are turned", volume)
            faces = faces[:, ::-1].copy()
        vertices.setflags(write=False)
        faces.setflags(write=False)
        for name, value in (
            ("vertices", vertices),
            ("faces", faces),
            ("_tree", TriangleTree(vertices, faces)),
        ):
            object.__setattr__(self, name, value)
        self._require_inside(abs(volume))

    def _require_inside(self, volume: float) -> None:
        lo, hi = self.bounds
        message = "the mesh encloses no volume: close its holes, or give the sheet a thickness."
        if volume <= 1e-12 * float(np.linalg.norm(hi - lo)) ** 3:
            raise BadInput(message)
        if is_closed(self.faces):
            return  # however thin: the probes could miss it, but it has an inside
        _log.info("the mesh is not closed: its holes are bridged by the winding number")
        # Uneven shifts keep probes off edges and diagonals, where the winding number is undefined.
        axes = [(np.arange(PROBES) + shift) / PROBES for shift in (0.4377, 0.5613, 0.5192)]
        grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
        a, b, c = np.moveaxis(self.vertices[self.faces], 1, 0)
        normal = _unit(np.cross(b - a, c - a))
        below = (a + b + c) / 3.0 - 1e-4 * self._size() * normal  # finds what the grid misses
        below = below[:: -(-len(below) // MOST_LOOKED_UNDER)]
        tree: TriangleTree = self._tree  # type: ignore[attr-defined]
        probes = np.concatenate([lo + grid * (hi - lo), below])
        _, _, sign = tree.nearest(probes, threshold=SURE_INSIDE)
        if not (sign < 0.0).any():
            raise BadInput(message)

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Box of the vertices."""
        return self.vertices.min(axis=0), self.vertices.max(axis=0)

    def _nearest(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Face (n,), offset from the foot to the point (n, 3) and sign (n,)."""
        tree: TriangleTree = self._tree  # type: ignore[attr-defined]
        # Beyond the reach of the search any triangle is as good as the nearest one.
        held = tree.middle + np.clip(
            points - tree.middle, -0.5 * REACH * tree.size, 0.5 * REACH * tree.size
        )
        face, weights, sign = tree.nearest(held)
        foot = np.einsum("nk,nki->ni", weights, self.vertices[self.faces[face]])
        return face, points - foot, sign

    def _distance(self, points: np.ndarray) -> np.ndarray:
        _, offset, sign = self._nearest(points)
        return sign * np.linalg.norm(offset, axis=1)

    def gradient(self, points: Any) -> np.ndarray:
        """Unit vector (n, 3) away from the solid: from the foot, or its face's normal when there.

        Differences would only show the rounding of the single-precision search.
        """
        face, offset, sign = self._nearest(as_points(points, 3))
        length = np.linalg.norm(offset, axis=1, keepdims=True)
        a, b, c = np.moveaxis(self.vertices[self.faces[face]], 1, 0)
        normal = _unit(np.cross(b - a, c - a))
        touching = length < 1e-6 * self._size()
        return np.where(touching, normal, sign[:, None] * _unit(offset))

    def volume(self) -> float:
        """Volume under the triangles [length^3]; with holes, that of cones from the origin."""
        return enclosed_volume(self.vertices, self.faces)

    def save(self, path: str | Path) -> MeshShape:
        """Write the triangles to .ply, .obj, .stl, .off or .glb; returns the shape bound to it."""
        from pliant.geometry.mesh_files import save_mesh

        save_mesh(path, self.vertices, self.faces)
        return replace(self, source={"file": str(path)})

    def to_dict(self) -> dict[str, Any]:
        """The file; a mesh made in memory must be saved first."""
        if self.source is None:
            raise BadInput("this mesh exists only in memory: use mesh.save('name.ply') first.")
        return {"type": self.kind, **self.source}


def _unit(vectors: np.ndarray) -> np.ndarray:
    """Rows (n, 3) scaled to length 1; zero rows stay zero."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-300)


def enclosed_volume(vertices: np.ndarray, faces: np.ndarray) -> float:
    """Sum over triangles of a . (b x c) / 6, taken about the vertices' mean."""
    a, b, c = np.moveaxis((vertices - vertices.mean(axis=0))[faces], 1, 0)
    return float(np.einsum("ni,ni->n", a, np.cross(b, c)).sum() / 6.0)


def is_closed(faces: np.ndarray) -> bool:
    """Whether every directed edge has its opposite: no holes, and consistently turned faces."""
    edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    count = int(faces.max()) + 1
    forward = np.sort(edges[:, 0] * count + edges[:, 1])
    backward = np.sort(edges[:, 1] * count + edges[:, 0])
    return bool(np.array_equal(forward, backward))


def _require_neighbours(vertices: np.ndarray, faces: np.ndarray) -> None:
    """Refuse loose triangles; those that only lack common vertices still enclose what they do."""
    # a closed mesh has half as many vertices as triangles, loose ones have three times as many
    if len(vertices) <= len(faces) or 2 * _open_edges(faces) <= 3 * len(faces):
        return
    if len(faces) > MOST_PROBED or not _whole_winding(vertices, faces, PROBED):
        raise BadInput(
            "the triangles do not touch each other and enclose no volume: merge vertices that lie "
            "together, or export a closed surface."
        )


def _open_edges(faces: np.ndarray) -> int:
    """Directed edges without their opposite."""
    edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    count = int(faces.max()) + 1
    forward = np.sort(edges[:, 0] * count + edges[:, 1])
    backward = np.sort(edges[:, 1] * count + edges[:, 0])
    place = np.minimum(np.searchsorted(backward, forward), len(backward) - 1)
    return int((backward[place] != forward).sum())


def encloses(vertices: np.ndarray, faces: np.ndarray) -> bool:
    """Whether triangles leave no gap, though they need not share edges (T-junctions).

    Closed by their edges, or the winding number is whole at PROBED points in and around the mesh: a
    hole of area a at the distance r would change it by up to a / (4 pi r^2).
    """
    if is_closed(faces):
        return True
    if len(faces) > MOST_PROBED:
        return False
    return _whole_winding(vertices, faces, PROBED)


def _whole_winding(vertices: np.ndarray, faces: np.ndarray, count: int) -> bool:
    """Whether the winding number is whole at so many points in and around the mesh."""
    lo, hi = vertices.min(axis=0), vertices.max(axis=0)
    k = np.arange(1, count + 1)[:, None] * np.array([0.8191725134, 0.6710436067, 0.5497004779])
    points = lo + (hi - lo) * (k % 1.0)  # an even spread without a pattern (Roberts 2018)
    number = np.array([_winding_number(vertices[faces] - x) for x in points])
    return bool(np.abs(number - np.rint(number)).max() < 1e-6)


def _winding_number(corners: np.ndarray) -> float:
    """Solid angles of triangles (m, 3, 3) seen from the origin / 4 pi; tan(angle / 2) =
    a . (b x c) / (|a| |b| |c| + (a . b) |c| + (b . c) |a| + (c . a) |b|) (Van Oosterom and
    Strackee 1983).
    """
    a, b, c = np.moveaxis(corners, 1, 0)
    la, lb, lc = (np.linalg.norm(v, axis=1) for v in (a, b, c))
    up = np.einsum("mi,mi->m", a, np.cross(b, c))
    ab, bc, ca = (np.einsum("mi,mi->m", p, q) for p, q in ((a, b), (b, c), (c, a)))
    half = np.arctan2(up, la * lb * lc + ab * lc + bc * la + ca * lb)
    return float(half.sum() / (2.0 * np.pi))


def _checked_triangles(vertices: Any, faces: Any) -> tuple[np.ndarray, np.ndarray]:
    try:
        points = np.array(vertices, dtype=np.float64)
        triangles = np.array(faces)
    except (TypeError, ValueError) as error:
        raise BadInput("the mesh's vertices and faces must be arrays of numbers.") from error
    if points.ndim != 2 or points.shape[1:] != (3,) or len(points) == 0:
        raise BadInput(f"the mesh's vertices must have the shape (n, 3), got {points.shape}.")
    if triangles.size == 0:
        raise BadInput("the mesh has no faces (a point cloud?): export it with triangles.")
    if triangles.ndim != 2 or triangles.shape[1] != 3 or triangles.dtype.kind not in "iu":
        raise BadInput(f"the mesh's faces must be integers (m, 3), got shape {triangles.shape}.")
    bad = ~np.isfinite(points).all(axis=1)
    if bad.any():
        raise BadInput(f"vertex {int(np.argmax(bad))} of the mesh is not finite: repair the file.")
    if np.abs(points).max() > FARTHEST:
        raise BadInput(f"the mesh's coordinates exceed {FARTHEST:g}: check the file's units.")
    triangles = triangles.astype(np.int64)
    wrong = ((triangles < 0) | (triangles >= len(points))).any(axis=1)
    if wrong.any():
        raise BadInput(
            f"face {int(np.argmax(wrong))} of the mesh refers to a vertex that does not exist "
            f"(there are {len(points)}): repair the file."
        )
    # Faces that use a vertex twice have no area; vertices no face uses would distort the bounds.
    a, b, c = triangles.T
    triangles = triangles[(a != b) & (b != c) & (c != a)]
    if len(triangles) == 0:
        raise BadInput("all faces of the mesh are degenerate: it encloses no volume.")
    used, flat = np.unique(triangles, return_inverse=True)
    points = points[used]
    if not (np.ptp(points, axis=0) > 0.0).all():
        raise BadInput("the mesh is flat: it encloses no volume; give the sheet a thickness.")
    return points, flat.reshape(-1, 3)
