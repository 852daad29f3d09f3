"""Where rays meet a deformed surface and which surface point is nearest, exact in f64.

Warp's bounding-volume tree works in f32 and only chooses the triangle; the intersection, or the
foot point, is then computed in f64 from the triangle's corners, so that depth is smooth to
rounding.
"""

# Warp's kernel language reads annotations its own way.
# pyright: reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportAttributeAccessIssue=false

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import warp as wp

from pliant.core.launch import launch, to_device, zeros


@dataclass(frozen=True)
class Hits:
    """item: (h,) which rays or points have one; triangle: (h,); bary: (h, 3) corner weights;
    normal: (h, 3) unit; distance: (h,) along the ray, or signed (positive outside) to the point.
    """

    item: np.ndarray
    triangle: np.ndarray
    bary: np.ndarray
    normal: np.ndarray
    distance: np.ndarray


@wp.kernel
def _cast(
    first: wp.int32,
    mesh: wp.uint64,
    centre: wp.vec3d,
    corners: wp.array2d(dtype=wp.int32),
    position: wp.array(dtype=wp.vec3d),
    origin: wp.array(dtype=wp.vec3d),
    direction: wp.array(dtype=wp.vec3d),
    reach: wp.float32,
    triangle: wp.array(dtype=wp.int32),
    distance: wp.array(dtype=wp.float64),
    bary: wp.array(dtype=wp.vec3d),
    normal: wp.array(dtype=wp.vec3d),
):
    """The mesh is the surface moved by -centre in f32; the rest is computed in place."""
    i = first + wp.tid()
    o = origin[i]
    d = direction[i]
    hit = wp.mesh_query_ray(mesh, wp.vec3(o - centre), wp.vec3(d), reach)
    triangle[i] = -1
    if not hit.result:
        return
    f = hit.face
    tiny = wp.float64(1.0e-300)
    p = position[corners[f, 0]]
    e1 = position[corners[f, 1]] - p
    e2 = position[corners[f, 2]] - p
    across = wp.cross(e1, e2)
    facing = wp.dot(across, d)
    if wp.abs(facing) <= tiny:
        facing = tiny
    t = wp.dot(across, p - o) / facing
    r = o + t * d - p
    square = wp.max(wp.dot(across, across), tiny)
    b1 = wp.dot(wp.cross(r, e2), across) / square
    b2 = wp.dot(wp.cross(e1, r), across) / square
    triangle[i] = f
    distance[i] = t
    bary[i] = wp.vec3d(wp.float64(1.0) - b1 - b2, b1, b2)
    normal[i] = across / wp.sqrt(square)


@wp.kernel
def _nearest(
    first: wp.int32,
    mesh: wp.uint64,
    point: wp.array(dtype=wp.vec3),
    reach: wp.float32,
    triangle: wp.array(dtype=wp.int32),
):
    i = first + wp.tid()
    hit = wp.mesh_query_point_no_sign(mesh, point[i], reach)
    triangle[i] = -1
    if hit.result:
        triangle[i] = hit.face


class SurfaceQueries:
    """Ray and nearest-point queries on a triangle surface whose points move."""

    def __init__(self, positions: np.ndarray, triangles: np.ndarray):
        self.triangles = np.asarray(triangles, np.int64)
        self._centre = positions.mean(axis=0)  # f32 keeps more digits near zero
        self._mesh = wp.Mesh(
            points=to_device((positions - self._centre).astype(np.float32), wp.vec3),
            indices=to_device(self.triangles.reshape(-1), wp.int32),
        )
        self._corners = to_device(self.triangles, wp.int32)
        self.positions = positions

    def move(self, positions: np.ndarray) -> None:
        """Take new positions (points, 3)."""
        self.positions = positions
        self._mesh.points.assign((positions - self._centre).astype(np.float32))
        self._mesh.refit()

    def cast(self, origins: np.ndarray, directions: np.ndarray) -> Hits:
        """First triangle that each ray (unit direction) meets."""
        n = len(directions)
        triangle, distance = zeros(n, wp.int32), zeros(n, wp.float64)
        bary, normal = (zeros(n, wp.vec3d) for _ in range(2))
        start = np.broadcast_to(origins, (n, 3))
        far = np.abs(origins - self._centre).max() + np.abs(self.positions - self._centre).max()
        launch(
            _cast, n,
            [self._mesh.id, wp.vec3d(*self._centre), self._corners,
             to_device(self.positions, wp.vec3d), to_device(start, wp.vec3d),
             to_device(directions, wp.vec3d), 4.0 * float(far) + 1.0,
             triangle, distance, bary, normal],
            grain=2000,
        )  # fmt: skip
        found = triangle.numpy()
        item = np.flatnonzero(found >= 0)
        return Hits(item, found[item], *(a.numpy()[item] for a in (bary, normal, distance)))

    def nearest(self, points: np.ndarray, reach: float = np.inf) -> Hits:
        """Foot point of each point; distance is positive outside."""
        n = len(points)
        found = zeros(n, wp.int32)
        local = (points - self._centre).astype(np.float32)
        far = 4.0 * float(np.abs(local).max(initial=0.0) + np.abs(self.positions).max()) + 1.0
        launch(
            _nearest, n,
            [self._mesh.id, to_device(local, wp.vec3), float(min(reach, far)), found],
            grain=500,
        )  # fmt: skip
        triangle = found.numpy()
        item = np.flatnonzero(triangle >= 0)
        triangle = triangle[item]
        p = points[item]
        triangle = self._nearest_of_neighbours(triangle, p)
        p0, p1, p2 = (self.positions[self.triangles[triangle, k]] for k in range(3))
        bary = closest_barycentric(p, p0, p1, p2)
        foot = bary[:, :1] * p0 + bary[:, 1:2] * p1 + bary[:, 2:] * p2
        cross = np.cross(p1 - p0, p2 - p0)
        normal = cross / np.maximum(np.linalg.norm(cross, axis=1), 1e-300)[:, None]
        gap = p - foot
        length = np.linalg.norm(gap, axis=1)
        side = np.where(np.einsum("ij,ij->i", gap, normal) >= 0.0, 1.0, -1.0)
        # off a face the way to the foot is the normal; on it both agree
        direction = np.where(
            (length > 1e-12)[:, None], side[:, None] * gap / np.maximum(length, 1e-300)[:, None],
            normal,
        )  # fmt: skip
        return Hits(item, triangle, bary, direction, side * length)

    def _distance_to(self, triangle: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        corner = [self.positions[self.triangles[triangle, k]] for k in range(3)]
        bary = closest_barycentric(p, *corner)
        foot = sum(bary[:, k : k + 1] * corner[k] for k in range(3))
        return np.linalg.norm(p - foot, axis=1), bary

    def _nearest_of_neighbours(self, triangle: np.ndarray, p: np.ndarray) -> np.ndarray:
        """The tree cannot tell triangles apart whose distances differ by f32 rounding.

        Where the foot lies at an edge, the triangles across the edges are tried in f64.
        """
        length, bary = self._distance_to(triangle, p)
        edge = np.flatnonzero(bary.min(axis=1) < 1e-3)
        out = triangle.copy()
        best = length[edge]
        for k in range(3):
            other = self._across[triangle[edge], k]
            there = np.flatnonzero(other >= 0)
            found, _ = self._distance_to(other[there], p[edge[there]])
            closer = found < best[there]
            out[edge[there[closer]]] = other[there[closer]]
            best[there[closer]] = found[closer]
        return out

    @cached_property
    def _across(self) -> np.ndarray:
        """(triangles, 3): the triangle across the edge opposite each corner, -1 at a border."""
        edges = np.sort(self.triangles[:, [[1, 2], [2, 0], [0, 1]]].reshape(-1, 2), axis=1)
        key = edges[:, 0] * (self.triangles.max() + 1) + edges[:, 1]
        order = np.argsort(key, kind="stable")
        same = np.flatnonzero(key[order[1:]] == key[order[:-1]])
        out = np.full(len(key), -1)
        a, b = order[same], order[same + 1]
        out[a], out[b] = b // 3, a // 3
        return out.reshape(-1, 3)


def _barycentric(x, p0, e1, e2, cross) -> np.ndarray:
    area2 = np.maximum(np.einsum("ij,ij->i", cross, cross), 1e-300)
    r = x - p0
    b1 = np.einsum("ij,ij->i", np.cross(r, e2), cross) / area2
    b2 = np.einsum("ij,ij->i", np.cross(e1, r), cross) / area2
    return np.stack([1.0 - b1 - b2, b1, b2], axis=1)


def closest_barycentric(p, a, b, c) -> np.ndarray:
    """Barycentric weights of the point of triangle abc nearest to p, (n, 3)."""
    e1, e2 = b - a, c - a
    cross = np.cross(e1, e2)
    inside = _barycentric(p, a, e1, e2, cross)
    best = inside.copy()
    gap = np.full(len(p), np.inf)
    off = (inside < 0.0).any(axis=1)
    for i, (s, e) in enumerate(((a, b), (b, c), (c, a))):
        along = e - s
        t = np.einsum("ij,ij->i", p - s, along) / np.maximum(
            np.einsum("ij,ij->i", along, along), 1e-300
        )
        t = np.clip(t, 0.0, 1.0)
        distance = np.linalg.norm(p - s - t[:, None] * along, axis=1)
        weights = np.zeros((len(p), 3))
        weights[:, i] = 1.0 - t
        weights[:, (i + 1) % 3] = t
        take = off & (distance < gap)
        gap = np.where(take, distance, gap)
        best[take] = weights[take]
    return best
