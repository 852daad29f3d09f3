"""The triangles that may not pass through each other: those of all parts, and of obstacles.

Points are X + P u, P the parts' embeddings and zero for obstacles, so forces on points act on the
nodes by P transposed. Distances, collision-free steps and intersections are those of the IPC
toolkit (Ferguson et al. 2020, ipctk), in one thread: its sums then have one order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from pliant.core.errors import MissingExtra
from pliant.dynamics.obstacles import Obstacle, Plane
from pliant.fem.bodies.body import Body
from pliant.fem.bodies.grid_body import grid_body
from pliant.geometry.mesh_shape import MeshShape
from pliant.geometry.primitives import HalfSpace


def toolkit() -> Any:
    """The module ipctk."""
    try:
        import ipctk  # compiled, and only barriers need it
    except ImportError:
        raise MissingExtra("ipctk", "barrier", "Contact of kind = 'barrier'") from None
    ipctk.set_num_threads(1)
    ipctk.set_logger_level(ipctk.LoggerLevel.off)
    return ipctk


SUNK = 0.2
"""Spacings that points of obstacles at a plane are moved behind it: the toolkit's planes push all
points, those of a step that stands on the ground without end."""


@dataclass(frozen=True, eq=False)
class CollisionSurface:
    """rest X: (points, 3); P: (points, nodes of all parts); faces: (faces, 3) of points.

    owners: (points,) the part of each, then the obstacle. moving: how many of the points are those
    of parts, which come first. planes: parts stay in front of them. itself: whether a part may
    touch itself.
    """

    rest: np.ndarray
    P: sparse.csr_matrix
    faces: np.ndarray
    owners: np.ndarray
    moving: int
    planes: list[Plane]
    itself: bool

    @cached_property
    def back(self) -> sparse.csr_matrix:
        """P transposed."""
        return self.P.T.tocsr()

    @property
    def node_count(self) -> int:
        """Of all parts."""
        return self.back.indptr.size - 1

    @cached_property
    def mesh(self) -> Any:
        """The toolkit's own."""
        ipctk, mesh = toolkit(), self._without_planes()
        mesh.planes = [
            ipctk.Hyperplane(np.array(p.normal), p.offset * np.array(p.normal)) for p in self.planes
        ]
        return mesh

    def _without_planes(self) -> Any:
        ipctk = toolkit()
        mesh = ipctk.CollisionMesh(self.rest, ipctk.edges(self.faces), self.faces)
        if self.itself:
            mesh.can_collide = ipctk.make_static_obstacle_filter(self.moving)
        else:
            patches = self.owners.astype(np.int32)
            patches[self.moving :] = patches.max()  # obstacles may lie in each other
            mesh.can_collide = ipctk.make_vertex_patches_filter(patches)
        return mesh

    def at(self, u: np.ndarray) -> np.ndarray:
        """Points (points, 3) for displacement u (nodes, 3)."""
        return self.rest + self.P @ u

    def spread(self, g: np.ndarray) -> np.ndarray:
        """On the nodes (nodes, 3), of numbers of the points (3 points,)."""
        return self.back @ g.reshape(-1, 3)

    def before_planes(self, at: np.ndarray) -> float:
        """How far [m] the nearest point of a part is from a plane; negative behind it."""
        away = [(at[: self.moving] @ np.array(p.normal) - p.offset).min() for p in self.planes]
        return float(min(away, default=np.inf))

    def intersects(self, u: np.ndarray) -> bool:
        """Whether surfaces that may touch cross, or a part lies behind a plane."""
        at = self.at(u)
        return self.before_planes(at) <= 0.0 or toolkit().has_intersections(self.mesh, at)

    def closest(self, within: float) -> float:
        """Least distance [m] at rest between what may touch, infinite beyond `within`."""
        found, mesh = toolkit().NormalCollisions(), self._without_planes()
        found.build(mesh, self.rest, within)
        near = len(found) > 0
        least = np.sqrt(found.compute_minimum_distance(mesh, self.rest)) if near else np.inf
        return float(min(least, self.before_planes(self.rest)))


def collision_surface(
    bodies: Sequence[Body],
    starts: Sequence[int],
    obstacles: Sequence[Plane | Obstacle],
    *,
    itself: bool,
) -> CollisionSurface:
    """Of placed bodies whose first nodes are `starts`, the last the count of all nodes."""
    points, faces, owners = [], [], []
    rows, columns, weights = [], [], []
    planes: list[Plane] = []
    first = 0

    def add(at: np.ndarray, triangles: np.ndarray) -> None:
        nonlocal first
        points.append(at)
        faces.append(triangles + first)
        owners.append(np.full(len(at), len(owners), np.int32))
        first += len(at)

    for body, start in zip(bodies, starts, strict=False):
        carried = body.surface.points
        width = carried.nodes.shape[1]
        rows.append(np.repeat(np.arange(first, first + len(carried)), width))
        columns.append(carried.nodes.reshape(-1) + start)
        weights.append(carried.weights.reshape(-1))
        add(body.surface.positions(body.nodes), np.asarray(body.surface.facets))
    moving, spacing = first, min(body.spacing for body in bodies)
    for obstacle in obstacles:
        if isinstance(obstacle, Plane):
            planes.append(obstacle)
        elif isinstance(obstacle.shape, HalfSpace):
            planes.append(Plane(obstacle.shape.normal, obstacle.shape.offset))
        elif isinstance(obstacle.shape, MeshShape):
            add(np.array(obstacle.shape.vertices), np.array(obstacle.shape.faces))
        else:
            cut = grid_body(obstacle.shape, obstacle.spacing or spacing)
            add(cut.surface.positions(cut.nodes), np.asarray(cut.surface.facets))
    for plane in planes:
        for at in points[len(bodies) :]:
            _sink(at, plane, SUNK * spacing)
    entries = np.concatenate(weights), (np.concatenate(rows), np.concatenate(columns))
    P = sparse.csr_matrix(entries, (first, starts[-1]))
    return CollisionSurface(
        np.concatenate(points), P, np.concatenate(faces).astype(np.int32), np.concatenate(owners),
        moving, planes, itself,
    )  # fmt: skip


def _sink(at: np.ndarray, plane: Plane, depth: float) -> None:
    """Move points (n, 3) that lie on the plane, or just behind it, to `depth` behind it."""
    normal = np.array(plane.normal)
    away = at @ normal - plane.offset
    near = (away < 1e-3 * depth) & (away > -depth)
    at[near] -= (away[near] + depth)[:, None] * normal
