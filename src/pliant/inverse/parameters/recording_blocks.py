"""Unknowns of a recording: its clock, its place, its depths, where tracked points really sit,
how far a scanned surface is off.

They are named, started, bounded and given priors like the numbers of a scene, but no motion depends
on them: only what it is compared with does (observe.calibration). A model's parameters carry them
under RECORDING + name, which models do not know.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pliant.core.errors import BadInput
from pliant.dynamics.model import Block, Parameters
from pliant.observe.calibration import POSE_NUMBERS, SURFACE_NUMBERS, Calibration

RECORDING = "recording."
TIME = "time_offset"
POSE = "recording_pose"
CAMERA_POSE = "camera_pose."
"""A camera's own pose is named camera_pose.<number>."""
PLACES = "tracked_places"
SURFACE = "surface_offset"
DEPTHS = ("depth_scale", "depth_offset")

STRIDE = 0.1
"""What a free coordinate of one means: a tenth of the body, of its time, of a radian."""

FALL = 9.81
"""Acceleration [m/s^2] that makes a time of a length."""


@dataclass(frozen=True)
class RecordingBlock(Block):
    """One of them."""

    of_material = False

    def key(self) -> str:
        """Its name among a model's parameters."""
        return RECORDING + self.name

    def labels(self, scene: Any, count: int) -> tuple[str, ...]:
        """See Block."""
        if self.name != PLACES and count != self.numbers:
            raise BadInput(f"{self.name} takes {self.numbers} number(s), not {count}.")
        if self.numbers == len(POSE_NUMBERS):
            return tuple(f"{self.name}.{n}" for n in POSE_NUMBERS)
        return super().labels(scene, count)

    def get(self, scene: Any) -> Any:
        """What corrects nothing."""
        if self.name == PLACES:
            return None
        start = 1.0 if self.name == "depth_scale" else 0.0
        return start if self.numbers == 1 else np.full(self.numbers, start)

    def put(self, scene: Any, value: np.ndarray) -> Any:
        """No scene depends on it."""
        return scene

    def push(self, model: Any, change: np.ndarray) -> Parameters:
        """See Block; models leave it aside."""
        return Parameters({self.key(): np.array(change, float)})

    def scales(self, scene: Any, count: int) -> np.ndarray:
        """What a free coordinate of one means, per number; the same for every grid of a body."""
        length = STRIDE * _size(scene)
        if self.name == TIME:
            return np.array([STRIDE * np.sqrt(_size(scene) / FALL)])
        if self.numbers == len(POSE_NUMBERS):
            return np.array([length] * 3 + [STRIDE] * 3)
        return np.full(count, STRIDE if self.name == "depth_scale" else length)

    def sizes(self, value: np.ndarray, scene: Any, duration: float) -> np.ndarray:
        """See Block."""
        return self.scales(scene, len(value)) / STRIDE

    def correct(self, calibration: Calibration, value: np.ndarray) -> Calibration:
        """The calibration with this one set."""
        if self.name == POSE:
            return replace(calibration, pose=np.array(value))
        if self.name == PLACES:
            return replace(calibration, places=np.reshape(value, (-1, 3)))
        if self.name == SURFACE:
            return replace(calibration, surface=np.array(value))
        if self.name.startswith(CAMERA_POSE):
            camera = int(self.name.removeprefix(CAMERA_POSE))
            poses = {**calibration.camera_poses, camera: np.array(value)}
            return replace(calibration, camera_poses=poses)
        return replace(calibration, **{self.name: float(value[0])})


BLOCKS: Mapping[str, RecordingBlock] = {
    b.name: b
    for b in (
        RecordingBlock(TIME, "s", "scaled"),
        RecordingBlock(POSE, "m, rad", "scaled", len(POSE_NUMBERS)),
        RecordingBlock("depth_scale", "", "scaled"),
        RecordingBlock("depth_offset", "m", "scaled"),
        RecordingBlock(PLACES, "m", "scaled"),
        RecordingBlock(SURFACE, "m", "scaled", SURFACE_NUMBERS),
    )
}


def recording_block(name: str) -> RecordingBlock | None:
    """The recording's unknown of that name; None if it is none."""
    if name.startswith(CAMERA_POSE):
        if not name.removeprefix(CAMERA_POSE).isdecimal():
            raise BadInput(f"'{name}': a camera's pose is named by its number, {CAMERA_POSE}0.")
        return RecordingBlock(name, "m, rad", "scaled", len(POSE_NUMBERS))
    return BLOCKS.get(name)


def recording_part(direction: Parameters) -> dict[str, np.ndarray]:
    """By the unknowns' names, the part of a direction that no motion depends on."""
    return {
        key.removeprefix(RECORDING): np.asarray(value, float)
        for key, value in direction.items()
        if key.startswith(RECORDING)
    }


def moving_part(direction: Parameters) -> Parameters:
    """The part that the motion depends on."""
    return Parameters({k: v for k, v in direction.items() if not k.startswith(RECORDING)})


def _size(scene: Any) -> float:
    """Diagonal of the body [m], by its shape where it has one."""
    body = scene.body
    shape = getattr(body, "shape", None)
    sides = np.full(1, np.inf) if shape is None else np.subtract(*shape.bounds)
    if not np.isfinite(sides).all():
        sides = np.ptp(body.nodes, axis=0)
    return max(float(np.linalg.norm(sides)), 1e-12)
