"""Colours of a moving surface: images of many moments as one picture of the body at rest.

Where a run says that the surface is, every ray of a pixel meets a triangle; with the barycentric
weights b of its corners and the colours t of the vertices of a fine mesh, the pixel c is the mean
of b . t over its rays. The colours are where

    sum over pixels w (mean of b . t - c)^2 + SMOOTH sum over edges (t_i - t_j)^2

is smallest, w the cosine between ray and surface. While the body moves, its pixels fall between
those of other frames, so that many images together know more than each of them: what is finer than
a pixel is found, too. Colours are taken as they are seen: no light is taken off.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from pliant.core.errors import BadInput
from pliant.fem.bodies.body import Body
from pliant.fem.bodies.embedding import Surface
from pliant.observe.camera import Camera
from pliant.observe.curved_surface import seen_surface, split_facets
from pliant.observe.raycast import SurfaceQueries

SMOOTH = 1e-2
"""Weight of an edge against a pixel seen straight on: a vertex that no ray met takes the colours
around it. With noise of 0.01 in 24 small images, colours are 0.009 off; a tenth of it finds more of
what is finer than a pixel and leaves 0.03 of noise, ten times of it half of both."""

RAYS = 3
"""Rays of a pixel along each side: a camera's pixel is the mean of what it covers."""

GRAZING = 0.25
"""Least cosine between ray and surface: beyond 75 degrees a pixel covers four times its width."""

JUMP = 3.0
"""Depths of a pixel's rays that differ by more than so many times what the slope of the surface
explains belong to two surfaces, one before the other."""

OUTLIER = 4.0
"""Median deviations beyond which a pixel's colour is no longer that of the surface: a hand or a
highlight has passed."""

LOOSE = 1e-9
"""Pull of every vertex towards the mean colour: points that no triangle uses need one."""

FINE = 0.5
"""Longest edge of the painted mesh, in pixels: several frames together know more than a pixel."""

MOST_FACETS = 1_000_000
"""Of the painted mesh; splitting ends before."""


@dataclass(frozen=True)
class ColourView:
    """One image: (h, w, 3) in 0 .. 1, of a camera, when the nodes were at `nodes` (n, 3) [m]."""

    camera: Camera
    image: np.ndarray
    nodes: np.ndarray


@dataclass(frozen=True)
class Texture:
    """colours: (vertices, 3) in 0 .. 1; seen: (vertices,) total weight of the pixels at each;
    noise: median deviation of pixels from the colours found; pixels: that were used; views.
    """

    colours: np.ndarray
    seen: np.ndarray
    noise: float
    pixels: int
    views: int


def painted_surface(body: Body, pixel: float) -> Surface:
    """The surface as cameras see it, split until its edges are short against a pixel [m]."""
    if body.dim != 3:
        raise BadInput("Cameras see 3D bodies only.")
    surface = seen_surface(body).surface
    while 4 * len(surface.facets) <= MOST_FACETS:
        points = surface.positions(body.nodes)
        ends = points[surface.facets[:, [0, 1]]]
        if float(np.median(np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1))) <= FINE * pixel:
            break
        mean, facets = split_facets(len(points), surface.facets)
        finer = body.locate(mean @ points)
        surface = Surface(finer, facets, np.tile(surface.facet_cell, 4))
    return surface


def fuse_colours(surface: Surface, views: Iterable[ColourView]) -> Texture:
    """The colours of a surface's points from images of it."""
    queries: SurfaceQueries | None = None
    rows: list[sparse.csr_array] = []
    seen: list[np.ndarray] = []
    cosines: list[np.ndarray] = []
    count = 0
    for view in views:
        positions = surface.points.matrix @ view.nodes
        if queries is None:
            queries = SurfaceQueries(positions, surface.facets)
        queries.move(positions)
        share, pixel, cosine = pixel_shares(queries, view.camera)
        rows.append(share)
        seen.append(view.image.reshape(-1, 3)[pixel])
        cosines.append(cosine)
        count += 1
    if not rows or not sum(len(c) for c in cosines):
        raise BadInput("No image sees the body: check the cameras and the times.")
    A = sparse.csr_array(sparse.vstack(rows, format="csr"))
    c, w = np.concatenate(seen), np.concatenate(cosines)
    edges = _edges(surface.facets)
    t = _solved(A, w, c, edges, len(surface.points))
    off = np.linalg.norm(A @ t - c, axis=1)
    typical = float(np.median(off))
    kept = off <= max(OUTLIER * typical, 1e-9)
    if not kept.all():
        w = w * kept
        t = _solved(A, w, c, edges, len(surface.points))
    return Texture(np.clip(t, 0.0, 1.0), A.T @ w, typical, int(kept.sum()), count)


def pixel_shares(
    queries: SurfaceQueries, camera: Camera
) -> tuple[sparse.csr_array, np.ndarray, np.ndarray]:
    """Of the pixels that one surface fills: (pixels, points) shares of the points in the mean of
    their rays, their numbers, and the cosine between ray and surface.
    """
    n, each = camera.pixel_count, RAYS * RAYS
    grid = (np.arange(RAYS) + 0.5) / RAYS - 0.5
    found = []
    for dy in grid:
        for dx in grid:
            rays = shifted_rays(camera, dx, dy)
            hits = queries.cast(camera.position, rays)
            cosine = np.abs(np.einsum("ij,ij->i", hits.normal, rays[hits.item]))
            found.append((hits, cosine))
    met = sum(np.bincount(hits.item, minlength=n) for hits, _ in found)
    near, far, least = np.full(n, np.inf), np.zeros(n), np.full(n, np.inf)
    for hits, cosine in found:
        near[hits.item] = np.minimum(near[hits.item], hits.distance)
        far[hits.item] = np.maximum(far[hits.item], hits.distance)
        least[hits.item] = np.minimum(least[hits.item], cosine)
    with np.errstate(invalid="ignore"):
        slope = far / camera.fx / np.maximum(least, GRAZING)  # a pixel's width over its cosine
        good = (met == each) & (least > GRAZING) & (far - near < JUMP * slope)
    pixel = np.flatnonzero(good)
    number = np.full(n, -1)
    number[pixel] = np.arange(len(pixel))
    row, column, value = [], [], []
    for hits, _ in found:
        own = good[hits.item]
        row.append(np.repeat(number[hits.item[own]], 3))
        column.append(queries.triangles[hits.triangle[own]].reshape(-1))
        value.append(hits.bary[own].reshape(-1) / each)
    table = (np.concatenate(value), (np.concatenate(row), np.concatenate(column)))
    shape = (len(pixel), len(queries.positions))
    return sparse.csr_array(table, shape=shape), pixel, least[pixel]


def shifted_rays(camera: Camera, dx: float, dy: float) -> np.ndarray:
    """Unit directions (pixels, 3) through places in the pixels, dx, dy from their middles."""
    pixel = np.arange(camera.pixel_count)
    x = (pixel % camera.width + dx - camera.cx) / camera.fx
    y = (pixel // camera.width + dy - camera.cy) / camera.fy
    local = np.stack([x, y, np.ones(len(pixel))], axis=1)
    return (local / np.linalg.norm(local, axis=1)[:, None]) @ camera.rotation


def _edges(facets: np.ndarray) -> np.ndarray:
    both = np.sort(facets[:, [[1, 2], [2, 0], [0, 1]]].reshape(-1, 2), axis=1)
    return np.unique(both, axis=0)


def _solved(
    A: sparse.csr_array, w: np.ndarray, c: np.ndarray, edges: np.ndarray, n: int
) -> np.ndarray:
    """Least squares for the three colours: one factorisation, for a surface's matrix is thin."""
    m = len(edges)
    ends = (np.tile([1.0, -1.0], m), (np.repeat(np.arange(m), 2), edges.reshape(-1)))
    D = sparse.csr_array(ends, shape=(m, n))
    N = A.T @ (w[:, None] * A) + SMOOTH * (D.T @ D) + LOOSE * sparse.eye_array(n)
    mean = (w @ c) / w.sum()
    symmetric = {"permc_spec": "MMD_AT_PLUS_A", "options": {"SymmetricMode": True}}
    factors = splu(sparse.csc_matrix(N), **symmetric)
    return mean + factors.solve(A.T @ (w[:, None] * (c - mean)))
