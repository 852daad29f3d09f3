"""Pinhole cameras. Camera frame: x right, y down, z forward (as Open3D and OpenCV have it)."""

from dataclasses import dataclass

import numpy as np

from pliant.core.errors import BadInput


@dataclass(frozen=True)
class Camera:
    """width, height [pixels]; fx, fy, cx, cy: intrinsics [pixels], pixel centres at integers;
    rotation: (3, 3) world to camera; position: (3,) of the camera in the world.
    """

    width: int
    height: int
    fx: float
    fy: float
    cx: float
    cy: float
    rotation: np.ndarray
    position: np.ndarray

    def __post_init__(self):
        if self.width < 1 or self.height < 1 or not (self.fx > 0.0 and self.fy > 0.0):
            raise BadInput("A camera needs at least one pixel and positive focal lengths.")
        R = np.asarray(self.rotation, float)
        if R.shape != (3, 3) or np.abs(R @ R.T - np.eye(3)).max() > 1e-6 or np.linalg.det(R) < 0:
            raise BadInput("The rotation of a camera must be a 3x3 rotation matrix.")

    @classmethod
    def looking(
        cls, position, target, *, up=(0.0, 1.0, 0.0), width=100, height=100, view_angle=45.0
    ) -> "Camera":
        """A camera at `position` that looks at `target`; view_angle [degrees] of the height."""
        position, target = np.asarray(position, float), np.asarray(target, float)
        forward = target - position
        forward = forward / np.linalg.norm(forward)
        right = np.cross(forward, up)
        if np.linalg.norm(right) < 1e-6:
            right = np.cross(forward, (0.0, 0.0, 1.0))
        right = right / np.linalg.norm(right)
        down = np.cross(forward, right)
        f = 0.5 * height / np.tan(np.radians(view_angle) / 2.0)
        return cls(
            width, height, f, f, (width - 1) / 2.0, (height - 1) / 2.0,
            np.stack([right, down, forward]), position,
        )  # fmt: skip

    @property
    def pixel_count(self) -> int:
        """width * height."""
        return self.width * self.height

    def rays(self, pixel: np.ndarray | None = None) -> np.ndarray:
        """Unit directions (pixels, 3) in the world; pixel = row * width + column."""
        if pixel is None:
            pixel = np.arange(self.pixel_count)
        column, row = pixel % self.width, pixel // self.width
        local = np.stack(
            [(column - self.cx) / self.fx, (row - self.cy) / self.fy, np.ones(len(pixel))], axis=1
        )
        local /= np.linalg.norm(local, axis=1)[:, None]
        return local @ self.rotation

    def axis_cosine(self, pixel: np.ndarray) -> np.ndarray:
        """z-depth over distance along the ray, for depth images that store z."""
        column, row = pixel % self.width, pixel // self.width
        x, y = (column - self.cx) / self.fx, (row - self.cy) / self.fy
        return 1.0 / np.sqrt(x**2 + y**2 + 1.0)


def ring_of_cameras(
    scene,
    count: int = 10,
    *,
    width: int = 100,
    height: int = 100,
    elevation: float = 20.0,
    room: float = 1.35,
) -> list[Camera]:
    """`count` cameras in a horizontal ring around a scene's body, alternately above and below.

    elevation [degrees]; room: how much larger than the resting body the view is.
    """  # fmt: skip
    body = scene.body
    if body.dim != 3:
        raise BadInput("Depth cameras see 3D bodies; fit a 2D body to NodeMotions or LevelSets.")
    points = body.surface.positions(body.nodes)
    lo, hi = points.min(axis=0), points.max(axis=0)
    centre = 0.5 * (lo + hi)
    radius = 0.5 * np.linalg.norm(hi - lo) * room
    angle = 40.0
    distance = radius / np.sin(np.radians(angle) / 2.0)
    cameras = []
    for k in range(count):
        turn = 2.0 * np.pi * k / count
        lift = np.radians(elevation) * (1 if k % 2 == 0 else -1)
        offset = np.array([np.cos(turn) * np.cos(lift), np.sin(lift), np.sin(turn) * np.cos(lift)])
        cameras.append(
            Camera.looking(
                centre + distance * offset, centre, width=width, height=height, view_angle=angle
            )
        )
    return cameras
