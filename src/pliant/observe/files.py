"""Observations as a folder of files, ours or those of a real recording.

    npz     frame_0000.npz        points (p, 3), camera, pixel, depth (p,)
    ply     frame_0000.ply        points only, from any program
    depth   depth/camera_00/...   16-bit depth images in Open3D's layout (see observe.depth_png)

Beside them observations.json: layout, units, times [s], noise [m], cameras, depth_scale. A
recording may lack it, or any of its keys; what is assumed then is said in the log.
"""

import logging
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pliant.core.errors import BadInput
from pliant.core.files import read_json, write_json
from pliant.core.numbers import LARGEST, SMALLEST, shown
from pliant.observe.camera import Camera
from pliant.observe.depth_png import (
    camera_from,
    camera_record,
    image_files,
    load_depth_frames,
    natural,
    save_depth_images,
)
from pliant.observe.observations import Frame, Observations
from pliant.observe.point_files import (
    read_npz_frame,
    read_ply_points,
    unorganised,
    write_npz_frame,
    write_ply_points,
)

log = logging.getLogger(__name__)

RECORD = "observations.json"
COMPUTED = ("scene.toml", "result.json")
"""What the folder of a run or a fit holds, whose points are no recording."""

LAYOUTS = ("npz", "ply", "depth")
UNITS = {"m": 1.0, "dm": 0.1, "cm": 0.01, "mm": 0.001, "in": 0.0254}
FRAME_RATE = 30.0
"""Frames per second of a recording that does not say."""

SLOWEST, FASTEST = 1e-6, 1e9
"""Frame rates that a camera may have [1/s]."""

DEPTH_SCALE = 1000.0
"""Steps per metre of a depth image that does not say: millimetres, as most cameras write."""

MAX_FRAMES = 100_000
MAX_TOTAL_POINTS = 100_000_000

MUCH = 30.0
"""Times the body's extent that points span, or the body theirs, if their units are wrong."""

CLOCK = 1e6
"""Seconds beyond which the first time must be a clock's, not one since the motion began."""


# --- writing


def save_observations(
    seen: Observations, folder: str | Path, layout: str = "npz", *, depth_scale: float = DEPTH_SCALE
) -> None:
    """Write a folder that `load_observations` reads; files of an earlier recording are replaced.

    depth_scale: steps per metre of the layout "depth".
    """
    if layout not in LAYOUTS:
        raise BadInput(f"layout must be one of {', '.join(LAYOUTS)}, not '{layout}'.")
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"{folder}: cannot be made ({error.strerror}).") from error
    _clear(folder)
    record: dict[str, Any] = {
        "format": "pliant observations 1",
        "layout": layout,
        "units": "m",
        "times": [frame.time for frame in seen.frames],
        "noise": seen.noise,
    }
    if layout == "depth":
        record["depth_scale"] = save_depth_images(seen, folder, depth_scale)
    else:
        for k, frame in enumerate(seen.frames):
            path = folder / f"frame_{k:04d}.{layout}"
            if layout == "npz":
                write_npz_frame(path, frame)
            else:
                write_ply_points(path, frame.points)
        record["cameras"] = [camera_record(c) for c in seen.cameras]
    write_json(folder / RECORD, record)  # last: a folder without it is not finished


def _clear(folder: Path) -> None:
    """Remove what an earlier save left; nothing else."""
    if not (folder / RECORD).is_file():
        return
    for pattern in ("frame_*.npz", "frame_*.ply", "depth/camera_*/*.png"):
        for path in folder.glob(pattern):
            path.unlink()
    for name in ("intrinsic.json", "trajectory.json", RECORD):
        (folder / name).unlink(missing_ok=True)


# --- reading


def load_observations(
    folder: str | Path,
    *,
    units: str | None = None,
    frame_rate: float | None = None,
    scene: Any = None,
) -> Observations:
    """The frames of a folder, in metres and seconds.

    units: of the points ("m", "cm", "mm", ...), whatever the folder says; with a `scene`, units
    that nobody states are judged by the size of its body. frame_rate [1/s]: instead of the times
    that the folder gives, if any.
    """
    folder = Path(folder)
    if not folder.is_dir():
        what = "is a file; name its folder" if folder.exists() else "there is no such folder"
        raise BadInput(f"{folder}: {what}.")
    if units is not None and units not in UNITS:
        raise BadInput(f"units must be one of {', '.join(UNITS)}, not '{units}'.")
    if frame_rate is not None and not SLOWEST <= frame_rate <= FASTEST:
        raise BadInput(
            f"{folder}: the frame rate must be positive, {SLOWEST:g} to {FASTEST:g} frames a "
            f"second, not {frame_rate}."
        )
    record = _record(folder)
    layout = _layout(folder, record)

    def times_of(files: Sequence[Path]) -> list[float]:
        return _times(folder, record, files, frame_rate)

    if layout == "depth":
        scale = record.get("depth_scale")
        if scale is None:
            scale = DEPTH_SCALE
            log.warning("%s: no depth_scale: the images are taken to be in millimetres.", folder)
        scale = _positive(folder, "depth_scale", scale)
        frames, cameras = load_depth_frames(folder, times_of, scale)
    else:
        frames = _point_frames(folder, layout, times_of)
        cameras = _cameras(folder, record)
    frames = _known_cameras(folder, frames, cameras)
    noise = record.get("noise")
    noise = None if noise is None else _positive(folder, "noise", noise)
    for k, frame in enumerate(frames):
        if len(frame) == 0:
            log.warning("%s: frame %d (t = %.4g s) has no points.", folder, k, frame.time)
    seen = Observations(frames, cameras, noise)
    stated = units or record.get("units")
    if stated is None and layout == "depth":
        stated = "m"  # the images carry their scale
    if stated is not None and not (isinstance(stated, str) and stated in UNITS):
        raise BadInput(
            f"{folder / RECORD}: units '{stated}' are not known: use {', '.join(UNITS)}."
        )
    if stated is None and scene is not None:
        stated = guess_units(seen, scene)
        if stated != "m":
            log.warning(
                "%s: the points span %.0f times the body, so they are taken to be in %s; say "
                "otherwise with --units.", folder, _extent_ratio(seen, scene), stated,
            )  # fmt: skip
    elif scene is not None:
        ratio = _extent_ratio(in_metres(seen, stated or "m"), scene)
        if not 1.0 / MUCH < ratio < MUCH:
            log.warning(
                "%s: the points, read in %s, span %.3g times the body: check --units.",
                folder, stated, ratio,
            )  # fmt: skip
    return in_metres(seen, stated or "m")


def image_steps(folder: str | Path, units: str | None = None) -> float | None:
    """Steps per metre of a folder's depth images; None where it holds other files."""
    folder = Path(folder)
    record = _record(folder)
    if _layout(folder, record) != "depth":
        return None
    scale = _positive(folder, "depth_scale", record.get("depth_scale", DEPTH_SCALE))
    stated = units or record.get("units")
    return scale / UNITS.get(stated if isinstance(stated, str) else "m", 1.0)


def in_metres(seen: Observations, units: str) -> Observations:
    """The same observations, whose lengths were in `units`."""
    f = UNITS[units]
    if f == 1.0:
        return seen
    frames = [replace(x, points=f * x.points, depth=f * x.depth) for x in seen.frames]
    cameras = [replace(c, position=f * np.asarray(c.position)) for c in seen.cameras]
    return Observations(frames, cameras, None if seen.noise is None else f * seen.noise)


def guess_units(seen: Observations, scene: Any) -> str:
    """Of m, cm and mm the one that makes the points about as large as the body and its swing."""
    ratio = _extent_ratio(seen, scene)
    if ratio < MUCH:
        return "m"
    return "cm" if ratio < 300.0 else "mm"


def _extent_ratio(seen: Observations, scene: Any) -> float:
    """Spread of the points over the body's; half of them, so that a background counts little."""
    points = [f.points[:: max(1, len(f) // 2000)] for f in seen.frames if len(f)]
    if not points:
        return 1.0
    low, high = np.percentile(np.concatenate(points), (25, 75), axis=0)
    own_low, own_high = np.percentile(scene.body.nodes, (25, 75), axis=0)
    return float(np.linalg.norm(high - low) / max(np.linalg.norm(own_high - own_low), 1e-300))


def _record(folder: Path) -> dict[str, Any]:
    path = folder / RECORD
    if not path.is_file():
        return {}
    value = read_json(path)
    if not isinstance(value, dict):
        raise BadInput(f"{path}: must hold one object with times, cameras, noise.")
    return value


def _layout(folder: Path, record: dict[str, Any]) -> str:
    stated = record.get("layout")
    if stated is not None and not (isinstance(stated, str) and stated in LAYOUTS):
        raise BadInput(f"{folder / RECORD}: layout '{stated}' is not one of {', '.join(LAYOUTS)}.")
    if not (folder / RECORD).exists() and all((folder / name).is_file() for name in COMPUTED):
        raise BadInput(
            f"{folder}: holds what was computed, and no recording; `pliant observe` films a run."
        )
    found = []
    if any(image_files(folder)):
        found.append("depth")
    found += [kind for kind in ("npz", "ply") if any(folder.glob(f"*.{kind}"))]
    if stated is not None and stated not in found:
        raise BadInput(f"{folder}: {RECORD} promises the layout '{stated}', but no such files.")
    if not found:
        raise BadInput(
            f"{folder}: holds no frames: expected frame_0000.npz, frame_0000.ply or "
            "depth/camera_00/00000.png (pliant observe writes such folders)."
        )
    if len(found) > 1 and stated is None:
        log.warning("%s: holds %s; the first is used.", folder, " and ".join(found))
    return stated or found[0]


def _times(
    folder: Path, record: dict[str, Any], files: Sequence[Path], frame_rate: float | None
) -> list[float]:
    if len(files) > MAX_FRAMES:
        raise BadInput(f"{folder}: {len(files)} frames are more than {MAX_FRAMES}: thin them out.")
    given = record.get("times")
    if given is None or frame_rate is not None:
        rate = frame_rate or FRAME_RATE
        if frame_rate is None:
            log.warning(
                "%s: the times of the frames are not given: taken as %g frames a second, the first "
                "at t = 0; say otherwise with --frame-rate.", folder, FRAME_RATE,
            )  # fmt: skip
        return [number / rate for number in _numbers(files)]
    path = folder / RECORD
    if not isinstance(given, list) or len(given) != len(files):
        count = len(given) if isinstance(given, list) else "no list of"
        raise BadInput(
            f"{path}: {count} times for {len(files)} frames: give one time [s] for each."
        )
    times = []
    for k, t in enumerate(given):
        if isinstance(t, bool) or not isinstance(t, int | float) or not math.isfinite(t):
            raise BadInput(f"{path}: times[{k}] is {t!r}, not a number of seconds.")
        if times and t <= times[-1]:
            raise BadInput(f"{path}: times[{k}] = {t:g} is not later than the one before.")
        times.append(float(t))
    if times and times[0] > CLOCK:
        log.warning("%s: the times are a clock's: counted from the first frame.", folder)
        times = [t - times[0] for t in times]
    if times and times[0] < 0.0:
        raise BadInput(f"{path}: times[0] = {times[0]:g} lies before the start of the motion.")
    return times


def _numbers(files: Sequence[Path]) -> list[int]:
    """Frame numbers from 0: those of the names, so that a lost frame leaves a gap, or the order."""
    numbers = []
    for path in files:
        last = [part for part in natural(path) if isinstance(part, int)]
        numbers.append(last[-1] if last else -1)
    rising = all(b > a for a, b in zip(numbers, numbers[1:], strict=False))
    if not numbers or not rising or numbers[-1] - numbers[0] > 10 * len(numbers):
        return list(range(len(numbers)))
    return [n - numbers[0] for n in numbers]


def _point_frames(folder: Path, layout: str, times_of: Any) -> list[Frame]:
    files = sorted(folder.glob(f"*.{layout}"), key=natural)
    frames = []
    total = 0
    for path, time in zip(files, times_of(files), strict=True):
        if layout == "npz":
            frame = read_npz_frame(path, time)
        else:
            frame = unorganised(time, read_ply_points(path))
        total += len(frame)
        if total > MAX_TOTAL_POINTS:
            raise BadInput(
                f"{path}: more than {MAX_TOTAL_POINTS} points in all: thin the frames out."
            )
        frames.append(frame)
    return frames


def _cameras(folder: Path, record: dict[str, Any]) -> list[Camera]:
    given = record.get("cameras", [])
    if not isinstance(given, list):
        raise BadInput(f"{folder / RECORD}: cameras must be a list.")
    cameras = []
    for k, entry in enumerate(given):
        where = f"{folder / RECORD}: cameras[{k}]"
        try:
            T = np.asarray(entry["extrinsic"], float).reshape(4, 4, order="F")
            intrinsic = entry["intrinsic"]
        except (KeyError, TypeError, ValueError) as error:
            raise BadInput(f"{where}: needs intrinsic and extrinsic (16 numbers).") from error
        cameras.append(camera_from(intrinsic, T, where))
    return cameras


def _known_cameras(folder: Path, frames: list[Frame], cameras: list[Camera]) -> list[Frame]:
    """Points whose camera or pixel is not described become unorganised, all of them."""
    sizes = np.array([c.pixel_count for c in cameras], int)
    for k, frame in enumerate(frames):
        if not len(frame) or (frame.camera < 0).all():
            continue
        if frame.camera.max() >= len(cameras):
            log.warning(
                "%s: frame %d names camera %d, but %d are described: the points are used without "
                "their cameras.", folder, k, frame.camera.max(), len(cameras),
            )  # fmt: skip
            return [unorganised(f.time, f.points) for f in frames]
        own = frame.camera >= 0
        outside = (frame.pixel < 0) | (frame.pixel >= sizes[np.maximum(frame.camera, 0)])
        if (own & outside).any():
            i = int(np.flatnonzero(own & outside)[0])
            raise BadInput(
                f"{folder}: frame {k}, point {i}: pixel {frame.pixel[i]} lies outside the image of "
                f"camera {frame.camera[i]}."
            )
    return frames


def _positive(folder: Path, key: str, value: Any) -> float:
    good = isinstance(value, int | float) and not isinstance(value, bool)
    if not good or not SMALLEST <= value <= LARGEST:
        raise BadInput(f"{folder / RECORD}: {key} must be a positive number, not {shown(value)}.")
    return float(value)
