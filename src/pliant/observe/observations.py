"""What was seen: surface points over time, with the camera and pixel that saw them."""

from dataclasses import dataclass, field

import numpy as np

from pliant.core.errors import BadInput
from pliant.dynamics.trajectory import Trajectory
from pliant.observe.camera import Camera
from pliant.observe.curved_surface import seen_surface
from pliant.observe.depth_noise import DepthNoise
from pliant.observe.raycast import SurfaceQueries


@dataclass(frozen=True)
class Frame:
    """Points seen at one time.

    points: (p, 3) [m] in the world; camera: (p,) index or -1; pixel: (p,) row * width + column or
    -1; depth: (p,) [m] along the pixel's ray. Unorganised points have no camera.
    """

    time: float
    points: np.ndarray
    camera: np.ndarray
    pixel: np.ndarray
    depth: np.ndarray

    @property
    def organised(self) -> bool:
        """True if every point has its pixel."""
        return len(self.camera) > 0 and bool((self.camera >= 0).all())

    def __len__(self) -> int:
        return len(self.points)


@dataclass(frozen=True)
class Observations:
    """Frames in ascending time. noise: standard deviation [m] where known; noise_by: where it is
    known to differ from camera to camera or with depth, what residuals are weighed by.
    """

    frames: list[Frame]
    cameras: list[Camera] = field(default_factory=list)
    noise: float | None = None
    noise_by: DepthNoise | None = None

    @property
    def point_count(self) -> int:
        """Points over all frames."""
        return sum(len(f) for f in self.frames)


def observe(
    run: Trajectory,
    cameras: list[Camera] | None = None,
    *,
    noise: float = 0.0,
    seed: int = 0,
    kind: str = "depth",
    frames: list[int] | None = None,
    outliers: float = 0.0,
    dropped: float = 0.0,
    quantisation: float = 0.0,
) -> Observations:
    """Film a trajectory.

    noise: standard deviation [m], along the ray for kind="depth", in every direction for
    kind="points". frames: which frames (all but the first by default). outliers, dropped: shares of
    pixels. quantisation: step of the stored depth [m].
    """
    from pliant.observe.camera import ring_of_cameras

    if kind not in ("depth", "points"):
        raise BadInput(f"kind must be 'depth' or 'points', not '{kind}'.")
    for name, value in (("outliers", outliers), ("dropped", dropped)):
        if not 0.0 <= value < 1.0:
            raise BadInput(f"{name} must be a share between 0 and 1, not {value}.")
    if outliers + dropped > 1.0:
        raise BadInput(f"outliers ({outliers}) and dropped ({dropped}) are more than all pixels.")
    for name, value in (("noise", noise), ("quantisation", quantisation)):
        if value < 0.0 or not np.isfinite(value):
            raise BadInput(f"{name} must not be negative, not {value}.")
    if kind == "points" and (outliers or quantisation):
        raise BadInput("outliers and quantisation are those of depth images: kind='depth'.")
    cameras = cameras if cameras is not None else ring_of_cameras(run.scene)
    rng = np.random.default_rng(seed)
    body = run.scene.body
    if body.dim != 3:
        raise BadInput("Depth cameras see 3D bodies only.")
    surface = seen_surface(body).surface
    queries = SurfaceQueries(surface.positions(body.nodes), surface.facets)
    chosen = range(1, len(run.times)) if frames is None else frames
    seen = []
    for k in chosen:
        queries.move(surface.points.matrix @ (body.nodes + run.displacements[k]))
        parts = []
        for index, camera in enumerate(cameras):
            parts.append(_film(queries, camera, index, rng, noise, outliers, dropped, quantisation))
        frame = [np.concatenate([p[j] for p in parts]) for j in range(3)]
        camera_of, pixel, depth = frame
        points = np.empty((len(pixel), 3))
        for index, camera in enumerate(cameras):
            own = camera_of == index
            points[own] = camera.position + depth[own, None] * camera.rays(pixel[own])
        time = float(run.times[k])
        if kind == "points":
            # the noise along the ray was drawn too; take the clean surface and blur it evenly
            clean = np.concatenate([p[3] for p in parts])
            points = clean + noise * rng.standard_normal(clean.shape)
            none = np.full(len(points), -1)
            seen.append(Frame(time, points, none, none, np.full(len(points), np.nan)))
        else:
            seen.append(Frame(time, points, camera_of, pixel, depth))
    known = float(np.hypot(noise, quantisation / np.sqrt(12.0)))  # rounding is noise as well
    return Observations(seen, list(cameras), known if known > 0.0 else None)


def _film(queries, camera, index, rng, noise, outliers, dropped, quantisation):
    """(camera, pixel, depth, clean points) of one camera's hits."""
    rays = camera.rays()
    hits = queries.cast(camera.position, rays)
    pixel, depth = hits.item, hits.distance.copy()
    clean = camera.position + depth[:, None] * rays[pixel]
    # numbers are drawn for every pixel, so that one pixel's fate does not shift the next one's
    jitter = rng.standard_normal(camera.pixel_count)[pixel]
    fate = rng.random(camera.pixel_count)[pixel]
    wild = rng.random(camera.pixel_count)[pixel]
    depth += noise * jitter
    is_outlier = fate < outliers
    depth[is_outlier] *= 0.5 + wild[is_outlier]
    if quantisation > 0.0:
        depth = np.round(depth / quantisation) * quantisation
    keep = fate < 1.0 - dropped
    return np.full(keep.sum(), index), pixel[keep], depth[keep], clean[keep]
