"""Filming a scene: the options of the cameras, the motion, the recording."""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pliant.app.describing.fineness import AS_IT_IS, Fineness
from pliant.app.describing.scene_files import read_description
from pliant.app.describing.scenes import ShapeFile, find_description
from pliant.app.folders.runs import SCENE, RunDirectory, open_scene
from pliant.app.terminal.progress import progress
from pliant.core.errors import BadInput
from pliant.core.numbers import LARGEST, SMALLEST, shown
from pliant.dynamics.scene import Scene
from pliant.dynamics.simulate import SimulationStopped, simulate
from pliant.dynamics.trajectory import Anchor, Trajectory
from pliant.observe.camera import ring_of_cameras
from pliant.observe.observations import Observations, observe

MAX_CAMERAS = 1000
KINDS = ("depth", "points")


@dataclass(frozen=True)
class Film:
    """A ring of depth cameras around a scene.

    noise: "0.5voxel" or metres; outliers, dropped: shares of pixels; quantisation: step of depths
    [m], 0: none; kind: "depth" (noise along the rays) or "points" (in every direction, no pixels).
    """

    cameras: int = 10
    pixels: int = 100
    noise: str = "0.5voxel"
    seed: int = 1
    outliers: float = 0.0
    dropped: float = 0.0
    quantisation: float = 0.0
    kind: str = "depth"

    def __post_init__(self):
        if not 1 <= self.cameras <= MAX_CAMERAS:
            raise BadInput(f"--cameras must lie between 1 and {MAX_CAMERAS}, not {self.cameras}.")
        if not 2 <= self.pixels <= 4096:
            raise BadInput(f"--pixels must lie between 2 and 4096, not {self.pixels}.")
        if self.seed < 0:
            raise BadInput(f"--seed must not be negative, not {self.seed}.")
        _noise_parts(self.noise)
        for name, share in (("--outliers", self.outliers), ("--dropped", self.dropped)):
            if not 0.0 <= share < 1.0:
                raise BadInput(f"{name} must be a share between 0 and 1, not {share:g}.")
        if self.outliers + self.dropped > 1.0:
            raise BadInput("--outliers and --dropped must not be more than all pixels together.")
        if not (np.isfinite(self.quantisation) and self.quantisation >= 0.0):
            raise BadInput(f"--quantisation must be a length [m], not {self.quantisation:g}.")
        if self.kind not in KINDS:
            raise BadInput(f"--kind must be one of {', '.join(KINDS)}, not '{self.kind}'.")
        if self.kind == "points" and (self.outliers or self.quantisation):
            which = "--outliers" if self.outliers else "--quantisation"
            raise BadInput(f"{which} changes depths, which --kind points does not have.")

    def take(self, run: Trajectory) -> Observations:
        """Film a motion."""
        ring = ring_of_cameras(run.scene, self.cameras, width=self.pixels, height=self.pixels)
        return observe(
            run, ring, noise=noise_in_metres(self.noise, run.scene), seed=self.seed,
            outliers=self.outliers, dropped=self.dropped, quantisation=self.quantisation,
            kind=self.kind,
        )  # fmt: skip


def noise_in_metres(text: str, scene: Scene) -> float:
    """Standard deviation [m] of "0.5voxel", in the body's spacing, or of a length."""
    value, in_voxels = _noise_parts(text)
    return value * scene.body.spacing if in_voxels else value


def _noise_parts(text: str) -> tuple[float, bool]:
    found = re.fullmatch(r"\s*([0-9.eE+-]+)\s*(voxels?|cells?|mm|cm|m)?\s*", text)
    try:
        value = float(found.group(1)) if found else -1.0
    except ValueError:
        value = -1.0
    if not (found and (value == 0.0 or SMALLEST <= value <= LARGEST)):
        raise BadInput(f"--noise must be like 0.5voxel, 0.01 or 10mm, not '{text}'.")
    unit = found.group(2) or "m"
    if unit in ("mm", "cm", "m"):
        return value * {"mm": 1e-3, "cm": 1e-2, "m": 1.0}[unit], False
    return value, True


def length_in_metres(option: str, text: str) -> float:
    """A length of the command line that is not negative: "1mm", "0.1 cm" or "0.001"."""
    found = re.fullmatch(r"\s*([0-9.]+(?:[eE][+-]?[0-9]+)?)\s*(mm|cm|m)?\s*", text)
    try:
        value = float(found.group(1)) if found else -1.0
    except ValueError:
        value = -1.0
    if not (found and (value == 0.0 or SMALLEST <= value <= LARGEST)):
        raise BadInput(f"{option} must be a length like 1mm or 0.001, not {shown(text)}.")
    return value * {"mm": 1e-3, "cm": 1e-2, "m": 1.0}[found.group(2) or "m"]


def simulated(scene: Scene, steps: int, name: str) -> Trajectory:
    """A motion, with a progress bar."""
    if steps < 1:
        raise BadInput(f"A film needs at least one step, not {steps}.")
    with progress(f"simulating {name}", steps) as shown:
        try:
            return simulate(scene, steps, progress=lambda step: shown.reach(step))
        except SimulationStopped as stop:
            if stop.interrupted:  # nobody wants half of a film
                raise KeyboardInterrupt from None
            raise


def steps_of(scene: Scene, steps: int | None) -> int:
    """The number asked for, else the scene's own."""
    return int((scene.source or {}).get("steps", 30)) if steps is None else steps


def motion_of(
    name: str,
    *,
    shape: ShapeFile | None,
    steps: int | None,
    fineness: Fineness = AS_IT_IS,
    rest: bool = False,
) -> Trajectory:
    """The motion of a scene, simulated, or of a run directory, read.

    rest: a body at rest under growing loads will do, too.
    """
    directory = RunDirectory(name)
    if Path(name).is_dir() and directory.exists:
        if fineness.given:
            raise BadInput(f"{name}: holds a run, whose cells are given; simulate it anew.")
        if directory.is_rest() and not rest:
            raise BadInput(
                f"{name}: holds a body at rest, which has no motion: simulate the scene."
            )
        return stored_motion(directory, steps)
    if Path(name).is_dir():
        raise BadInput(f"{name}: is a folder, but holds no run (scene.toml and result.json).")
    from pliant.app.describing.scene_files import build_scene

    scene = build_scene(fineness.of(find_description(name, shape=shape)), name=name)
    return simulated(scene, steps_of(scene, steps), name)


def stored_motion(directory: RunDirectory, steps: int | None) -> Trajectory:
    """The saved steps of a run, at most up to step `steps`."""
    scene = open_scene(read_description(directory.path / SCENE), directory, str(directory.path))
    chosen = [s for s in directory.saved_steps() if steps is None or s <= steps]
    if len(chosen) < 2:
        raise BadInput(f"{directory.path}: the run has no saved steps: simulate it first.")
    states = [directory.read_state(s) for s in chosen]
    if any(s.u.shape != scene.body.nodes.shape for s in states):
        raise BadInput(f"{directory.path}: its states are of another body; simulate it again.")
    return Trajectory(
        scene,
        np.array([s.t for s in states]),
        np.stack([s.u for s in states]),
        np.stack([s.v for s in states]),
        states[-1].a,
        np.zeros(len(states) - 1, int),
        anchor=Anchor(len(states) - 1, states[-1].t, states[-1].arrays),
        of_load=directory.is_rest(),
    )
