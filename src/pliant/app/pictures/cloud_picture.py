"""Point clouds in the renderer's light: each point a small octahedron, a surface beneath them."""

import numpy as np
import warp as wp

from pliant.app.pictures.picture import Studio
from pliant.app.render.mesh_painter import paint_mesh
from pliant.app.render.pixels import linear
from pliant.core.errors import BadInput
from pliant.core.launch import to_device

SAMPLES = 2
"""Rays per axis through a pixel that differs from a neighbour: most do, among dots."""

_CORNERS = np.array(
    [[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]], dtype=float
)
_FACES = np.array(
    [[0, 2, 4], [2, 1, 4], [1, 3, 4], [3, 0, 4], [2, 0, 5], [1, 2, 5], [3, 1, 5], [0, 3, 5]]
)


def cloud_picture(
    studio: Studio,
    points: np.ndarray,
    colours: np.ndarray,
    *,
    radius: float,
    nodes: np.ndarray | None = None,
    surface_colour: tuple[float, float, float] = (0.80, 0.81, 0.83),
) -> np.ndarray:
    """A picture (height, width, 3) uint8 of points (p, 3) in sRGB colours (p, 3).

    radius [m] of the points. nodes: the body's, to show its surface beneath them in one colour.
    """
    if studio.scene.dim != 3:
        raise BadInput("Only point clouds in three dimensions are drawn.")
    corners = (points[:, None, :] + radius * _CORNERS).reshape(-1, 3)
    faces = (6 * np.arange(len(points))[:, None, None] + _FACES).reshape(-1, 3)
    # dots are lit as if round: each corner's normal is its own direction
    normals = np.tile(_CORNERS[_FACES].reshape(-1, 3), (len(points), 1))
    shade = np.repeat(colours, 6, axis=0)
    if nodes is not None:
        surface = studio.scene.body.surface
        position = surface.positions(nodes)
        own = _point_normals(position, surface.facets)
        faces = np.concatenate([faces, surface.facets + len(corners)])
        normals = np.concatenate([normals, own[surface.facets].reshape(-1, 3)])
        corners = np.concatenate([corners, position])
        shade = np.concatenate([shade, np.tile(surface_colour, (len(position), 1))])
    if not len(faces):  # a mesh needs a triangle; this one lies below the floor's horizon
        corners, faces = np.full((3, 3), -1e6), np.array([[0, 1, 2]])
        normals, shade = np.ones((3, 3)), np.ones((3, 3))
    return _drawn(studio, corners, faces, normals, shade)


def _point_normals(position: np.ndarray, facets: np.ndarray) -> np.ndarray:
    corner = position[facets]
    cross = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    total = np.stack(
        [
            np.bincount(facets.reshape(-1), np.repeat(cross[:, d], 3), minlength=len(position))
            for d in range(3)
        ],
        axis=1,
    )
    return total / np.maximum(np.linalg.norm(total, axis=1), 1e-300)[:, None]


def _drawn(studio: Studio, corners, faces, normals, shade) -> np.ndarray:
    return paint_mesh(
        studio.setting,
        corners,
        to_device(faces.astype(np.int32).reshape(-1), wp.int32),
        to_device(normals.astype(np.float32), wp.vec3f),
        linear(shade),
        SAMPLES,
    )
