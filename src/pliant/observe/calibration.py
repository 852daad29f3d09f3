"""What has to be done to a recording before it is compared: its clock, its place, its depths.

A frame stamped t shows the motion at t + time_offset. A point seen at x lies at

    P(x) = c + shift + R (x - c),        R = exp([turn]x),

with the six numbers (shift [m], turn [rad]) of a pose and c the middle of what was recorded, about
which shift and turn are told apart best. A depth d is depth_scale d + depth_offset.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from pliant.observe.camera import Camera
from pliant.observe.observations import Frame, Observations

POSE_NUMBERS = ("x", "y", "z", "turn_x", "turn_y", "turn_z")

SURFACE_NUMBERS = 24
"""Bumps of a surface. A box has four on each side: what a noisy scan makes of a side is mostly its
mean, and more of them would be fitted to the grid's own errors."""


@dataclass(frozen=True)
class Calibration:
    """Corrections of a recording; the default ones change nothing.

    pose: (6,) of all that was recorded; camera_poses: (6,) of single cameras, by number, applied
    before it; places: (points, 3) [m], how far tracked points sit from where they are said to, at
    rest; surface: (SURFACE_NUMBERS,) [m], how far the seen surface lies outside of the shape's.
    """

    time_offset: float = 0.0
    pose: np.ndarray = field(default_factory=lambda: np.zeros(6))
    camera_poses: Mapping[int, np.ndarray] = field(default_factory=dict)
    depth_scale: float = 1.0
    depth_offset: float = 0.0
    places: np.ndarray | None = None
    surface: np.ndarray | None = None


NONE = Calibration()


@dataclass(frozen=True)
class Pose:
    """numbers: (6,) shift [m] and rotation vector [rad]; centre: (3,) c."""

    numbers: np.ndarray
    centre: np.ndarray

    @property
    def rotation(self) -> np.ndarray:
        """R, (3, 3)."""
        return rotation(self.numbers[3:])

    def apply(self, points: np.ndarray) -> np.ndarray:
        """Where points (n, 3) lie."""
        if not self.numbers.any():
            return points
        return self.centre + self.numbers[:3] + (points - self.centre) @ self.rotation.T

    def turn(self, directions: np.ndarray) -> np.ndarray:
        """Directions (n, 3), turned."""
        return directions @ self.rotation.T if self.numbers[3:].any() else directions

    def back(self, points: np.ndarray) -> np.ndarray:
        """The inverse of `apply`."""
        return self.centre + (points - self.centre - self.numbers[:3]) @ self.rotation

    def slopes(self, by_place: np.ndarray, place: np.ndarray) -> np.ndarray:
        """Derivative by the six numbers, (n, 6), of what has the derivative by_place (n, 3) at
        places (n, 3) that the pose has moved.

        d (R a) = (J dw) x R a with the left Jacobian J of the rotation vector w.
        """
        arm = place - self.centre - self.numbers[:3]
        by_turn = np.cross(arm, by_place) @ left_jacobian(self.numbers[3:])
        return np.concatenate([by_place, by_turn], axis=1)


def _cross_matrix(w: np.ndarray) -> np.ndarray:
    return np.array([[0.0, -w[2], w[1]], [w[2], 0.0, -w[0]], [-w[1], w[0], 0.0]])


def rotation(w: np.ndarray) -> np.ndarray:
    """exp([w]x) by Rodrigues' formula."""
    angle, W = float(np.linalg.norm(w)), _cross_matrix(w)
    first = np.sinc(angle / np.pi)
    second = 0.5 * np.sinc(0.5 * angle / np.pi) ** 2
    return np.eye(3) + first * W + second * W @ W


def left_jacobian(w: np.ndarray) -> np.ndarray:
    """J with exp([w + dw]x) = exp([J dw]x) exp([w]x) to first order."""
    angle, W = float(np.linalg.norm(w)), _cross_matrix(w)
    first = 0.5 * np.sinc(0.5 * angle / np.pi) ** 2
    # (angle - sin angle) / angle^3 loses all digits near zero
    small = 1.0 / 6.0 - angle**2 / 120.0
    second = small if angle < 1e-2 else (angle - np.sin(angle)) / angle**3
    return np.eye(3) + first * W + second * W @ W


@dataclass(frozen=True)
class Sight:
    """A frame as it is compared: points (m, 3), and of depth images the rays that they lie on,
    origin and ray (m, 3), depth (m,) [m]; zeros without.
    """

    points: np.ndarray
    origin: np.ndarray
    ray: np.ndarray
    depth: np.ndarray

    @classmethod
    def of(
        cls,
        frame: Frame,
        cameras: list[Camera],
        calibration: Calibration = NONE,
        centre: np.ndarray | None = None,
    ) -> "Sight":
        """A frame, corrected; centre: c of the poses."""
        c = np.zeros(3) if centre is None else centre
        whole = Pose(calibration.pose, c)
        if not frame.organised:
            none = np.zeros((len(frame), 3))
            return cls(whole.apply(frame.points), none, none, np.zeros(len(frame)))
        depth = calibration.depth_scale * frame.depth + calibration.depth_offset
        origin, ray = np.empty((len(frame), 3)), np.empty((len(frame), 3))
        for index, camera in enumerate(cameras):
            own = frame.camera == index
            pose = Pose(calibration.camera_poses.get(index, np.zeros(6)), c)
            eye = pose.apply(np.asarray(camera.position, float)[None])
            origin[own] = whole.apply(eye)
            ray[own] = whole.turn(pose.turn(camera.rays(frame.pixel[own])))
        return cls(origin + depth[:, None] * ray, origin, ray, depth)


def recorded_centre(seen: Observations) -> np.ndarray:
    """The middle of all points, (3,)."""
    parts = [f.points for f in seen.frames if len(f)]
    return np.mean(np.concatenate(parts), axis=0) if parts else np.zeros(3)
