"""Depth images as Open3D keeps them: 16-bit PNGs, intrinsics and camera poses in JSON.

    depth/camera_00/00000.png   z-depth (along the camera's axis) times depth_scale; 0: nothing seen
    depth/00000.png             the same for a single camera
    intrinsic.json              width, height, intrinsic_matrix: 9 numbers, column after column
    trajectory.json             Open3D's PinholeCameraTrajectory: one entry per camera, `extrinsic`
                                is the 4x4 matrix from the world to the camera, column after column
    trajectory.log              instead of it: blocks of a line of three numbers and four rows of
                                the 4x4 matrix from the camera to the world (the inverse)

With one camera and as many poses as images, the camera moves: pose k belongs to image k.
Pliant's depth is the distance along the pixel's ray, z-depth is that times Camera.axis_cosine.
"""

import logging
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np

from pliant.core.errors import BadInput
from pliant.core.files import read_json, read_text, require_file, whole_file, write_json
from pliant.observe.camera import Camera
from pliant.observe.observations import Frame, Observations

log = logging.getLogger(__name__)

MAX_PIXELS = 64_000_000
MAX_PNG_BYTES = 512 * 1024**2
MAX_CAMERAS = 100_000

LARGEST = 65535
"""Of 16 bits."""


# --- images


def write_depth_png(path: Path, image: np.ndarray) -> None:
    """A (height, width) uint16 image."""
    from PIL import Image

    with whole_file(path) as temporary:
        Image.fromarray(image.astype(np.uint16)).save(temporary, format="PNG")


def png_size(path: Path) -> tuple[int, int]:
    """(width, height) from the header of a 16-bit grey PNG; anything else is refused."""
    require_file(path, MAX_PNG_BYTES)
    with path.open("rb") as stream:
        head = stream.read(29)
    if len(head) < 29 or head[:8] != b"\x89PNG\r\n\x1a\n" or head[12:16] != b"IHDR":
        raise BadInput(f"{path}: not a PNG image, or cut off: copy it again.")
    width, height, bits, colour = struct.unpack(">IIBB", head[16:26])
    if (bits, colour) != (16, 0):
        raise BadInput(
            f"{path}: has {bits} bits a channel and colour type {colour}; depth needs a 16-bit "
            "grey PNG: export the raw depth, not a picture of it."
        )
    if not 0 < width * height <= MAX_PIXELS:
        raise BadInput(
            f"{path}: {width} x {height} pixels; at most {MAX_PIXELS} are read: shrink the image."
        )
    return width, height


def read_depth_png(path: Path, size: tuple[int, int]) -> np.ndarray:
    """The (height, width) uint16 image, which must have the size (width, height) of its camera."""
    from PIL import Image

    found = png_size(path)
    if found != size:
        raise BadInput(
            f"{path}: has {found[0]} x {found[1]} pixels, its camera {size[0]} x {size[1]}: the "
            "intrinsics belong to another resolution."
        )
    with path.open("rb") as stream:
        stream.seek(-min(1024, path.stat().st_size), 2)
        if b"IEND" not in stream.read():  # Pillow forgives a missing end, and zeros for it
            raise BadInput(f"{path}: damaged: its end is missing: copy it again.")
    try:
        with Image.open(path, formats=["PNG"]) as image:
            return np.asarray(image).astype(np.uint16)
    except Exception as error:  # Pillow raises whatever the damaged file led it to
        raise BadInput(f"{path}: damaged or cut off ({error}): copy it again.") from error


# --- cameras


def intrinsic_record(camera: Camera) -> dict[str, Any]:
    """Open3D's PinholeCameraIntrinsic."""
    return {
        "width": camera.width,
        "height": camera.height,
        "intrinsic_matrix": [
            camera.fx, 0.0, 0.0, 0.0, camera.fy, 0.0, camera.cx, camera.cy, 1.0,
        ],
    }  # fmt: skip


def camera_record(camera: Camera) -> dict[str, Any]:
    """Open3D's PinholeCameraParameters."""
    extrinsic = np.eye(4)
    extrinsic[:3, :3] = camera.rotation
    extrinsic[:3, 3] = -camera.rotation @ camera.position
    return {
        "class_name": "PinholeCameraParameters",
        "extrinsic": extrinsic.T.reshape(-1).tolist(),
        "intrinsic": intrinsic_record(camera),
        "version_major": 1,
        "version_minor": 0,
    }


def trajectory_record(cameras: list[Camera]) -> dict[str, Any]:
    """Open3D's PinholeCameraTrajectory."""
    return {
        "class_name": "PinholeCameraTrajectory",
        "parameters": [camera_record(c) for c in cameras],
        "version_major": 1,
        "version_minor": 0,
    }


def camera_from(intrinsic: Any, world_to_camera: np.ndarray, where: str) -> Camera:
    """A camera of an intrinsic record and a 4x4 matrix."""
    try:
        width, height = (int(intrinsic[key]) for key in ("width", "height"))
        entries = np.asarray(intrinsic["intrinsic_matrix"], float)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise BadInput(
            f"{where}: needs width, height and intrinsic_matrix (9 numbers): {error}."
        ) from error
    if entries.size != 9 or not np.isfinite(entries).all():
        raise BadInput(f"{where}: intrinsic_matrix needs 9 finite numbers.")
    if entries.ndim == 2:
        K = entries.reshape(3, 3)
    else:
        K = entries.reshape(3, 3, order="F")
        if K[0, 2] == K[1, 2] == 0.0 and (K[2, 0] or K[2, 1]):
            K = K.T  # written row after row, against Open3D's habit: the last row is 0 0 1
    if not 0 < width * height <= MAX_PIXELS:
        raise BadInput(f"{where}: a camera of {width} x {height} pixels is not possible.")
    T = world_to_camera
    if not np.allclose(T[3], [0.0, 0.0, 0.0, 1.0], atol=1e-6) or not np.isfinite(T).all():
        raise BadInput(f"{where}: the pose is not a 4x4 matrix with the last row 0 0 0 1.")
    U, s, Vt = np.linalg.svd(T[:3, :3])
    if np.abs(s - 1.0).max() > 1e-3:
        raise BadInput(f"{where}: the pose's 3x3 part is not a rotation.")
    R = U @ Vt  # poses are often stored with few digits
    try:
        return Camera(
            width, height, float(K[0, 0]), float(K[1, 1]), float(K[0, 2]), float(K[1, 2]),
            R, -R.T @ T[:3, 3],
        )  # fmt: skip
    except BadInput as error:
        raise BadInput(f"{where}: {error}") from error


def _column_major(values: Any, where: str) -> np.ndarray:
    try:
        T = np.asarray(values, float)
    except (TypeError, ValueError) as error:
        raise BadInput(f"{where}: extrinsic must be 16 numbers ({error}).") from error
    if T.shape == (4, 4):
        return T
    if T.shape != (16,):
        raise BadInput(f"{where}: extrinsic must be 16 numbers, not {T.size}.")
    return T.reshape(4, 4, order="F")


def read_cameras(folder: Path) -> list[Camera]:
    """The cameras of a folder's trajectory and intrinsics; empty if it describes none."""
    shared = _first_file(folder, "intrinsic.json", "camera_intrinsic.json")
    own = sorted(folder.glob("intrinsic_[0-9]*.json"))

    def intrinsic(k: int) -> tuple[Any, str]:
        path = own[k] if k < len(own) else shared
        if path is None:
            raise BadInput(
                f"{folder}: the images need the camera's focal length: write intrinsic.json "
                "(width, height, intrinsic_matrix)."
            )
        return read_json(path), str(path)

    poses = _first_file(folder, "trajectory.json", "trajectory.log", "camera_trajectory.json")
    if poses is None:
        if shared is None and not own:
            return []
        if len(own) > 1:
            raise BadInput(
                f"{folder}: {len(own)} cameras, but no trajectory.json with their poses."
            )
        log.warning(
            "%s: no trajectory.json or .log: the camera stands at the origin, looks along z and "
            "has y pointing down.", folder,
        )  # fmt: skip
        return [camera_from(*_swap(intrinsic(0), np.eye(4)))]
    if poses.suffix == ".log":
        return [camera_from(*_swap(intrinsic(k), T)) for k, T in enumerate(_read_log(poses))]
    record = read_json(poses)
    entries = record.get("parameters") if isinstance(record, dict) else None
    if not isinstance(entries, list) or not entries or len(entries) > MAX_CAMERAS:
        raise BadInput(f"{poses}: needs a list 'parameters' with one entry per camera.")
    cameras = []
    for k, entry in enumerate(entries):
        where = f"{poses}: parameters[{k}]"
        if not isinstance(entry, dict) or "extrinsic" not in entry:
            raise BadInput(f"{where} has no 'extrinsic'.")
        T = _column_major(entry["extrinsic"], where)
        inner, place = (
            (entry["intrinsic"], f"{where}.intrinsic") if "intrinsic" in entry else intrinsic(k)
        )
        cameras.append(camera_from(inner, T, place))
    return cameras


def _swap(found: tuple[Any, str], T: np.ndarray) -> tuple[Any, np.ndarray, str]:
    return found[0], T, found[1]


def _first_file(folder: Path, *names: str) -> Path | None:
    return next((folder / n for n in names if (folder / n).is_file()), None)


def _read_log(path: Path) -> list[np.ndarray]:
    """World-to-camera matrices of a .log trajectory, which holds camera-to-world ones."""
    lines = [line.split() for line in read_text(path).splitlines() if line.strip()]
    if not lines or len(lines) % 5 or len(lines) // 5 > MAX_CAMERAS:
        raise BadInput(
            f"{path}: {len(lines)} lines; each camera needs five: three numbers, then a 4x4 matrix."
        )
    out = []
    for k in range(0, len(lines), 5):
        try:
            T = np.array(lines[k + 1 : k + 5], float)
            if T.shape != (4, 4) or not np.isfinite(T).all():
                raise ValueError("not four rows of four finite numbers")
            out.append(np.linalg.inv(T))
        except (ValueError, np.linalg.LinAlgError) as error:
            raise BadInput(f"{path}: camera {k // 5} cannot be read ({error}).") from error
    return out


# --- a folder


def save_depth_images(seen: Observations, folder: Path, depth_scale: float) -> float:
    """Write images and cameras; returns the scale used (smaller if the depth needs it)."""
    for k, frame in enumerate(seen.frames):
        if len(frame) and not frame.organised:
            raise BadInput(
                f"Frame {k} has points without a pixel, which depth images cannot hold: use the "
                "layout 'npz' or 'ply'."
            )
    cosines = [c.axis_cosine(np.arange(c.pixel_count)) for c in seen.cameras]

    def z_of(frame: Frame, index: int) -> tuple[np.ndarray, np.ndarray]:
        own = frame.camera == index
        return frame.pixel[own], frame.depth[own] * cosines[index][frame.pixel[own]]

    farthest = max(
        (z_of(f, i)[1].max(initial=0.0) for f in seen.frames for i in range(len(seen.cameras))),
        default=0.0,
    )
    if farthest * depth_scale > LARGEST:
        depth_scale = float(10.0 ** np.floor(np.log10(LARGEST / farthest)))
        log.warning(
            "%s: depths reach %.4g m; 16 bits hold them only at %g steps per metre.",
            folder, farthest, depth_scale,
        )  # fmt: skip
    for index, camera in enumerate(seen.cameras):
        place = folder / "depth" / f"camera_{index:02d}"
        place.mkdir(parents=True, exist_ok=True)
        for k, frame in enumerate(seen.frames):
            pixel, z = z_of(frame, index)
            image = np.zeros(camera.pixel_count, np.uint16)
            image[pixel] = np.clip(np.round(z * depth_scale), 0, LARGEST)
            write_depth_png(place / f"{k:05d}.png", image.reshape(camera.height, camera.width))
    records = [intrinsic_record(c) for c in seen.cameras]
    if all(r == records[0] for r in records):
        write_json(folder / "intrinsic.json", records[0])
    write_json(folder / "trajectory.json", trajectory_record(seen.cameras))
    return depth_scale


def image_files(folder: Path) -> list[list[Path]]:
    """The images of each camera: depth/camera_NN/*.png, or depth/*.png of a single one."""
    depth = folder / "depth"
    places = sorted((p for p in depth.glob("camera_*") if p.is_dir()), key=natural)
    lists = [sorted(place.glob("*.png"), key=natural) for place in places]
    return lists or [sorted(depth.glob("*.png"), key=natural)]


def natural(path: Path) -> tuple[str | int, ...]:
    """Sort key of a file name: frame_9 before frame_10."""
    parts = re.split(r"(\d+)", path.name)
    return tuple(int(p) if p.isdecimal() else p for p in parts)


def load_depth_frames(
    folder: Path, times_of: Any, depth_scale: float
) -> tuple[list[Frame], list[Camera]]:
    """Frames and cameras of a folder; times_of(files) gives each frame's time."""
    files = image_files(folder)
    cameras = read_cameras(folder)
    if not cameras:
        raise BadInput(
            f"{folder}: depth images need their camera: write intrinsic.json (width, height, "
            "intrinsic_matrix) and trajectory.json (see pliant observe --layout depth)."
        )
    count = max(len(images) for images in files)
    moving = len(files) == 1 and len(cameras) == count > 1
    if not moving and len(cameras) < len(files):
        log.warning(
            "%s: %d cameras have images, but only %d are described: the others are not used.",
            folder, len(files), len(cameras),
        )  # fmt: skip
        files = files[: len(cameras)]
    if not moving:
        files = _by_camera(files, len(cameras))
        for index, images in enumerate(files):
            if not images:
                log.warning("%s: camera %d has no images.", folder, index)
    times = times_of(max(files, key=len))
    by_number = [_by_number(images, max(files, key=len)) for images in files]
    frames = []
    for k, time in enumerate(times):
        parts: list[tuple[np.ndarray, ...]] = []
        for index, images in enumerate(by_number):
            path = images.get(k)
            if not images:
                continue
            if path is None:
                log.warning("%s: camera %d has no image of frame %d.", folder, index, k)
                continue
            seen_by = k if moving else index
            parts.append(_points_of(path, cameras[seen_by], seen_by, depth_scale))
        joined = [np.concatenate([p[j] for p in parts]) for j in range(4)] if parts else []
        if not joined:
            nothing = np.zeros(0, int)
            joined = [np.zeros((0, 3)), nothing, nothing, np.zeros(0)]
        frames.append(Frame(time, *joined))
    return frames, cameras


def _by_camera(files: list[list[Path]], count: int) -> list[list[Path]]:
    """The images of each described camera, by the number in its folder's name; [] for none.

    Numbers begin at 0, or at 1 where the last one says so. Folders without numbers go by order.
    """
    out: list[list[Path]] = [[] for _ in range(count)]
    numbers = []
    for images in files:
        found = re.findall(r"\d+", images[0].parent.name) if images else []
        numbers.append(int(found[-1]) if found else -1)
    first = 1 if min(numbers) > 0 and max(numbers) == count else 0
    named = len(set(numbers)) == len(files) and 0 <= min(numbers) and max(numbers) - first < count
    for k, images in enumerate(files):
        out[numbers[k] - first if named else k] = images
    return out


def _by_number(images: list[Path], reference: list[Path]) -> dict[int, Path]:
    """Which frame each image belongs to: by its name if the names agree, else by its place."""
    names = {p.name: k for k, p in enumerate(reference)}
    if all(p.name in names for p in images):
        return {names[p.name]: p for p in images}
    return dict(enumerate(images))


def _points_of(path: Path, camera: Camera, index: int, scale: float) -> tuple[np.ndarray, ...]:
    image = read_depth_png(path, (camera.width, camera.height)).reshape(-1)
    pixel = np.flatnonzero(image)
    depth = image[pixel] / scale / camera.axis_cosine(pixel)
    points = camera.position + depth[:, None] * camera.rays(pixel)
    return points, np.full(len(pixel), index), pixel, depth
