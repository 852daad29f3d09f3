"""Costs: how far a simulated surface is from what was seen, with its derivative.

Every cost reduces a frame to residuals r_i and their derivative by the surface points, three
corners each, so that optimisers need not know which cost it is. A new cost is a new function here.
"""

from dataclasses import dataclass

import numpy as np

from pliant.core.errors import BadInput
from pliant.observe.calibration import Sight
from pliant.observe.observations import Observations
from pliant.observe.raycast import SurfaceQueries

GRAZING = 0.15
"""Cosine below which a ray meets the surface too flatly to say where it is: its depth changes by
more than 1 / GRAZING times the motion of the surface, and the linearisation does not reach far."""


@dataclass(frozen=True)
class Residuals:
    """One for each point of a frame.

    r: (m,) [m]; corners: (m, 3) surface points; slope: (m, 3, 3) dr / d corner position;
    usable: (m,) False where the linearisation does not hold (a grazing or just missing ray). Costs
    at two places are compared over the points usable at both, or they would jump whenever a point
    comes or goes. place: (m, 3) where the observed ray, or point, is compared.
    """

    r: np.ndarray
    corners: np.ndarray
    slope: np.ndarray
    usable: np.ndarray
    place: np.ndarray

    def by_place(self) -> np.ndarray:
        """Derivative of r by a motion of what was observed, (m, 3): ray or point and surface that
        move together change nothing.
        """
        return -self.slope.sum(axis=1)

    def along(self, motion: np.ndarray) -> np.ndarray:
        """Change of r, (m,), for a motion (points, 3) of the surface points."""
        return np.einsum("mci,mci->m", self.slope, motion[self.corners])

    def pull(self, weight: np.ndarray, point_count: int) -> np.ndarray:
        """Derivative of sum weight * r by the surface points, (points, 3)."""
        flat = (weight[:, None, None] * self.slope).reshape(-1, 3)
        index = self.corners.reshape(-1)
        return np.stack(
            [np.bincount(index, flat[:, d], minlength=point_count) for d in range(3)], axis=1
        )


def depth_residuals(queries: SurfaceQueries, seen: Sight, near: float) -> Residuals:
    """Predicted minus observed depth along each pixel's own ray (the default for depth images).

    The ray is exact and the noise lies along it, so nothing correlates with it: unbiased. A pixel
    whose ray misses the simulated surface by more than `near` [m] counts with its distance to it
    instead, so that no observation loses its gradient.
    """
    rays = seen.ray
    hits = queries.cast(seen.origin, rays)
    cosine = np.einsum("ij,ij->i", hits.normal, rays[hits.item])
    steep = np.minimum(cosine, -0.1 * GRAZING)  # bounded; what lies beyond is not used
    slope = hits.bary[:, :, None] * (hits.normal / steep[:, None])[:, None, :]
    n = len(rays)
    out = Residuals(
        np.zeros(n), np.zeros((n, 3), np.int64), np.zeros((n, 3, 3)), np.ones(n, bool),
        seen.points.copy(),
    )  # fmt: skip
    out.r[hits.item] = hits.distance - seen.depth[hits.item]
    out.place[hits.item] = seen.origin[hits.item] + hits.distance[:, None] * rays[hits.item]
    out.corners[hits.item] = queries.triangles[hits.triangle]
    out.slope[hits.item] = slope
    out.usable[hits.item] = cosine < -GRAZING
    missed = np.setdiff1d(np.arange(n), hits.item, assume_unique=True)
    if len(missed):
        far = foot_residuals(queries, seen.points[missed])
        out.r[missed], out.corners[missed], out.slope[missed] = far.r, far.corners, far.slope
        # a ray that just misses says nothing but that the silhouette is near
        out.usable[missed] = np.abs(far.r) > near
    return out


def foot_residuals(
    queries: SurfaceQueries,
    points: np.ndarray,
    curvature: np.ndarray | None = None,
    noise: float = 0.0,
) -> Residuals:
    """Signed distance to the deformed surface, derivative at the foot point.

    On a surface with mean curvature H, isotropic noise sigma moves the mean distance by sigma^2 H;
    curvature: (points,) mean curvature of the surface at its points, None for no correction.
    """
    hits = queries.nearest(points)
    corners = queries.triangles[hits.triangle]
    r = hits.distance.copy()
    if curvature is not None and noise > 0.0:
        r -= noise**2 * np.einsum("mc,mc->m", hits.bary, curvature[corners])
    slope = -hits.bary[:, :, None] * hits.normal[:, None, :]
    return Residuals(r, corners, slope, np.ones(len(r), bool), points)


def mean_curvature(positions: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """(k1 + k2) / 2 at each surface point, positive for a sphere: cotangent Laplacian, smoothed."""
    n = len(positions)
    lap, normal = np.zeros((n, 3)), np.zeros((n, 3))
    area = np.zeros(n)
    p = [positions[triangles[:, k]] for k in range(3)]
    cross = np.cross(p[1] - p[0], p[2] - p[0])
    double = np.maximum(np.linalg.norm(cross, axis=1), 1e-300)
    for k in range(3):
        a, b, c = triangles[:, k], triangles[:, (k + 1) % 3], triangles[:, (k + 2) % 3]
        ab, ac = positions[b] - positions[a], positions[c] - positions[a]
        cot = np.einsum("ij,ij->i", ab, ac) / double  # at corner a, opposite edge bc
        cot = np.clip(cot, -20.0, 20.0)
        edge = cot[:, None] * (positions[c] - positions[b])
        for d in range(3):  # bincount is ten times quicker than np.add.at
            lap[:, d] += np.bincount(b, edge[:, d], n) - np.bincount(c, edge[:, d], n)
            normal[:, d] += np.bincount(a, cross[:, d], n)
        area += np.bincount(a, double / 6.0, n)
    normal /= np.maximum(np.linalg.norm(normal, axis=1), 1e-300)[:, None]
    # integral of the mean curvature over each point's share of area, then smoothed: short edges of
    # cut cells make single values meaningless
    total = -0.25 * np.einsum("ij,ij->i", lap, normal)
    for _ in range(6):
        total, area = _spread(total, triangles, n), _spread(area, triangles, n)
    return total / np.maximum(area, 1e-300)


def _spread(value: np.ndarray, triangles: np.ndarray, n: int) -> np.ndarray:
    """Share each point's amount evenly over the triangles around it; keeps the sum."""
    count = np.bincount(triangles.reshape(-1), minlength=n)
    per = value / np.maximum(count, 1)
    third = per[triangles].sum(axis=1) / 3.0
    return np.bincount(triangles.reshape(-1), np.repeat(third, 3), minlength=n)


def check_observations(seen: Observations) -> None:
    """At least one frame with points, cameras known."""
    if seen.point_count == 0:
        raise BadInput("The observations hold no points; check their folder and units.")
    for k, frame in enumerate(seen.frames):
        if len(frame) and frame.organised and frame.camera.max() >= len(seen.cameras):
            raise BadInput(f"Frame {k} names camera {frame.camera.max()}, which is not described.")
