"""A depth film as the scene that explains it and what is left: `pliant compress`, `pliant play`.

    film.npz    head     what the film is: times, cameras, largest error, lengths (packed JSON)
                scene    the scene file's own text and its files (app.folders.packed_scene)
                images   residuals against the simulated depths (observe.residual_codec)

Whoever plays it simulates the scene and adds the residuals. Simulations have the same bits on one
machine, whatever the threads; another processor may round differently. So the head holds, of every
frame, a checksum of what was predicted and some of the depths: where these differ, it is told by
how much, and the largest error with it.
"""

import json
import logging
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from pliant.app.folders.array_files import damaged, read_arrays, write_arrays
from pliant.app.folders.film_head import FORMAT, Film, Progress, Sighting
from pliant.app.folders.packed_scene import MOST_BYTES, scene_bundle, unbundled
from pliant.core.errors import BadInput
from pliant.core.lengths import length
from pliant.core.numbers import not_negative, require_plain
from pliant.dynamics.scene import Scene
from pliant.observe.camera import Camera
from pliant.observe.depth_png import camera_record
from pliant.observe.observations import Frame, Observations
from pliant.observe.residual_codec import STREAMS, Decoder, Encoder, packed, step_of, unpacked

log = logging.getLogger(__name__)

ADVICE = "compress the recording again"
MOST_HEAD = 64 * 1024**2

CONTROLS = 8
"""Predicted depths that are kept of every frame: by how much another machine's differ from them."""


@dataclass(frozen=True)
class Compressed:
    """bytes_after: of the file; bytes_raw: of the recording as bare 16-bit images; error, largest
    [m]: the one allowed and the one made; spread: robust size [m] of what was to be explained;
    predicted: share of the pixels that the scene explains. example: observed, predicted and played
    depth (h, w) [m] of one image, 0: none.
    """

    path: Path
    bytes_after: int
    bytes_raw: int
    scene_bytes: int
    error: float
    largest: float
    spread: float
    predicted: float
    frames: int
    points: int
    example: tuple[np.ndarray, np.ndarray, np.ndarray] = field(repr=False)

    @property
    def ratio(self) -> float:
        """Bytes of bare images over those of the file."""
        return self.bytes_raw / self.bytes_after


@dataclass(frozen=True)
class Played:
    """seen: the film; error: the largest that it was compressed with [m]; drift: by how much the
    prediction differs from the one that it was compressed with, where that was kept [m];
    image_steps: steps per metre, if it came as images.
    """

    seen: Observations
    error: float
    drift: float
    image_steps: float | None


def compress(
    scene: Scene,
    seen: Observations,
    path: str | Path,
    *,
    error: float = 1e-3,
    image_steps: float | None = None,
    sighting: Sighting | None = None,
    progress: Progress | None = None,
) -> Compressed:
    """Write a film as `scene` and what it leaves unexplained, within `error` [m] along each ray.

    image_steps: steps per metre of the 16-bit images that the film came as; it is then played as
    such images, and an error of zero keeps every one of them. sighting: how a fit looks at it.
    """
    path = Path(path)
    error = not_negative("compress", "error", error)
    if path.suffix != ".npz":
        raise BadInput(f"{path}: films are compressed to .npz, change the ending.")
    _require_images(seen)
    if error == 0.0 and image_steps is None:
        raise BadInput("Depths that are not images of whole steps need an error above zero.")
    sighting = sighting or Sighting()
    cosines = [c.axis_cosine(np.arange(c.pixel_count)) for c in seen.cameras]
    views = [np.unique(f.camera).tolist() for f in seen.frames]
    used = sorted({k for view in views for k in view})
    lowest = min((float(cosines[k].min()) for k in used), default=1.0)
    bundle = scene_bundle(scene)
    packages = {name: packed(data) for name, data in bundle.items()}
    head: dict[str, Any] = {
        "format": FORMAT, "error": error,
        "step": float(step_of(error, per_metre=image_steps, cosine=lowest)),
        "image_steps": image_steps, "noise": seen.noise,
        "times": [float(f.time) for f in seen.frames], "views": views,
        "cameras": [camera_record(c) for c in seen.cameras],
        "eyes": [camera_record(c) for c in sighting.eyes],
        "time_offset": float(sighting.time_offset),
        "depth_scale": float(sighting.depth_scale),
        "depth_offset": float(sighting.depth_offset),
        "controls": [], "checksums": [], "lengths": {},
        "files": {n: [len(packages[n]), len(data)] for n, data in bundle.items()},
    }  # fmt: skip
    film = Film.of(head)  # what a reader will make of it, to the bit
    coder = Encoder(film.table.step, whole=film.whole)
    worst, off, hits, example = 0.0, [], 0, None
    with unbundled(bundle) as own:
        predictions = film.predictions(own, progress)
        for k, frame in enumerate(seen.frames):
            predict, kept = next(predictions), []
            for index in views[k]:
                pixel, depth = _image_of(k, frame, index)
                guess = predict(index, pixel)
                value = film.values_of(index, pixel, depth)
                image = np.zeros(film.cameras[index].pixel_count)
                image[pixel] = value
                there = film.depths_of(index, pixel, coder.add(index, image, guess))
                kept.append(guess)
                gap = film.depths_of(index, pixel, value) - there
                worst = max(worst, float(np.abs(gap).max(initial=0.0)))
                hit = guess > 0.0
                hits += int(hit.sum())
                before = film.depths_of(index, pixel, guess)
                off.append((depth - before)[hit])
                if example is None or k == len(seen.frames) // 2 and index == views[k][0]:
                    example = _pictures(film.cameras[index], pixel, depth, before * hit, there)
            together = np.concatenate(kept) if kept else np.zeros(0)
            head["checksums"].append(_checksum(together))
            head["controls"].append(_controls(together))
    streams = coder.streams
    head["lengths"] = {name: len(data) for name, data in streams.items()}
    assert example is not None
    text = packed(json.dumps(head, allow_nan=False, separators=(",", ":")).encode())
    scenery = b"".join(packages.values())
    write_arrays(
        path, head=_array(text), scene=_array(scenery), images=_array(b"".join(streams.values()))
    )
    left = np.concatenate(off) if off else np.zeros(0)
    pixels = sum(seen.cameras[i].pixel_count for view in views for i in view)
    return Compressed(
        path, path.stat().st_size, 2 * pixels, len(scenery), error, worst,
        float(1.4826 * np.median(np.abs(left))) if len(left) else 0.0,
        hits / max(seen.point_count, 1), len(seen.frames), seen.point_count, example,
    )  # fmt: skip


def play(path: str | Path, *, progress: Progress | None = None) -> Played:
    """The film in a file of `compress`: its scene is simulated and the residuals are added."""
    path = Path(path)
    arrays = read_arrays(path, most=MOST_BYTES, advice=ADVICE)
    for name in ("head", "scene", "images"):
        array = arrays.get(name)
        if array is None or array.dtype != np.uint8 or array.ndim != 1:
            raise damaged(path, f"it has no '{name}' of bytes", ADVICE)
    try:
        film = Film.of(_head(arrays["head"].tobytes()))
        decoder = Decoder(
            film.table.step, _cut(arrays["images"].tobytes(), film.table.lengths, STREAMS),
            film.sizes, whole=film.whole,
        )  # fmt: skip
        bundle = _bundle(arrays["scene"].tobytes(), film.table.files)
    except BadInput as error:
        if str(error).startswith("another version"):
            raise BadInput(f"{path}: is a film of {error}") from None
        raise damaged(path, str(error).rstrip("."), ADVICE) from None
    frames, drift, lost = [], 0.0, 0
    try:
        with unbundled(bundle) as scene:
            predictions = film.predictions(scene, progress)
            for k, view in enumerate(film.table.views):
                predict, kept, parts = next(predictions), [], []
                for index in view:
                    camera = film.cameras[index]
                    pixel, hit = decoder.mask(index, camera.pixel_count)
                    found = predict(index, pixel)
                    guess, missing = _where(hit, found)
                    lost += missing
                    kept.append(guess)
                    value = decoder.values(index, pixel, hit, guess, camera.pixel_count)
                    depth = film.depths_of(index, pixel, value)
                    points = camera.position + depth[:, None] * camera.rays(pixel)
                    parts.append((points, np.full(len(pixel), index), pixel, depth))
                together = np.concatenate(kept) if kept else np.zeros(0)
                if _checksum(together) != film.table.checksums[k]:
                    drift = max(drift, film.length_of(_drift(together, film.table.controls[k])))
                frames.append(_frame(film.table.times[k], parts))
    except BadInput as error:
        raise damaged(path, str(error).rstrip("."), ADVICE) from error
    if drift > 1e-3 * film.table.error or lost:
        log.warning(
            "%s: this machine simulates the scene differently, by up to %s where that can be told "
            "(%d pixels are off its surface): the largest error is %s, not %s.", path,
            length(drift), lost, length(film.table.error + drift), length(film.table.error),
        )  # fmt: skip
    seen = Observations(frames, film.cameras, film.table.noise)
    return Played(seen, film.table.error, drift, film.table.image_steps)


def _require_images(seen: Observations) -> None:
    if not seen.point_count:
        raise BadInput("The recording holds no points: nothing is there to compress.")
    for k, frame in enumerate(seen.frames):
        if len(frame) and not frame.organised:
            raise BadInput(
                f"Frame {k} has points without camera and pixel; only depth images with known "
                "cameras can be compressed."
            )


def _image_of(number: int, frame: Frame, index: int) -> tuple[np.ndarray, np.ndarray]:
    """Pixels, ascending, and depths of a camera."""
    own = np.flatnonzero(frame.camera == index)
    own = own[np.argsort(frame.pixel[own], kind="stable")]
    pixel, depth = frame.pixel[own], frame.depth[own]
    if (np.diff(pixel) == 0).any():
        raise BadInput(f"Frame {number} has two points in one pixel of camera {index}.")
    if not (np.isfinite(depth) & (depth > 0.0)).all():
        raise BadInput(f"Frame {number} has a depth that is no positive distance.")
    return pixel, depth


def _where(hit: np.ndarray, found: np.ndarray) -> tuple[np.ndarray, int]:
    """Predicted values where the encoder had one; from the neighbours where this machine has none.
    Their number comes along.
    """
    missing = hit & (found <= 0.0)
    guess = np.where(hit, found, 0.0)
    if missing.any() and (found > 0.0).any():
        there = np.flatnonzero(found > 0.0)
        guess[missing] = np.interp(np.flatnonzero(missing), there, found[there])
    return guess, int(missing.sum())


def _checksum(values: np.ndarray) -> int:
    return zlib.crc32(np.ascontiguousarray(values, "<f8").tobytes())


def _places(values: np.ndarray) -> np.ndarray:
    there = np.flatnonzero(values > 0.0)
    return there[np.linspace(0, len(there) - 1, CONTROLS).astype(int)] if len(there) else there


def _controls(values: np.ndarray) -> list[float]:
    return values[_places(values)].tolist()


def _drift(values: np.ndarray, controls: Sequence[float]) -> float:
    """Largest difference from the depths that were kept."""
    mine = values[_places(values)]
    if len(mine) != len(controls):
        raise BadInput("what it kept of the prediction belongs to another film")
    return float(np.abs(mine - np.asarray(controls)).max(initial=0.0))


def _frame(time: float, parts: list[tuple[np.ndarray, ...]]) -> Frame:
    if not parts:
        nothing = np.zeros(0, int)
        return Frame(time, np.zeros((0, 3)), nothing, nothing, np.zeros(0))
    points, camera, pixel, depth = (np.concatenate([p[j] for p in parts]) for j in range(4))
    return Frame(time, points, camera, pixel, depth)


def _pictures(
    camera: Camera, pixel: np.ndarray, *depths: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    out = []
    for depth in depths:
        image = np.zeros(camera.pixel_count)
        image[pixel] = depth
        out.append(image.reshape(camera.height, camera.width))
    return out[0], out[1], out[2]


# --- the file


def _array(data: bytes) -> np.ndarray:
    return np.frombuffer(data, np.uint8)


def _head(data: bytes) -> dict[str, Any]:
    text = unpacked(data, MOST_HEAD)
    try:
        value = json.loads(text)
        require_plain(value, deepest=8)
    except (ValueError, RecursionError):
        raise BadInput("its head is no JSON") from None
    if not isinstance(value, dict):
        raise BadInput("its head is no object")
    return value


def _cut(data: bytes, lengths: dict[str, int], names: Sequence[str]) -> dict[str, bytes]:
    """Packed streams that lie one after the other."""
    if set(lengths) != set(names) or sum(lengths.values()) != len(data):
        raise BadInput("its streams have other lengths than announced")
    out, at = {}, 0
    for name in names:
        out[name] = data[at : at + lengths[name]]
        at += lengths[name]
    return out


def _bundle(data: bytes, files: dict[str, list[int]]) -> dict[str, bytes]:
    if sum(size for _, size in files.values()) > MOST_BYTES:
        raise BadInput("the files of its scene are too large")
    parts = _cut(data, {n: sizes[0] for n, sizes in files.items()}, tuple(files))
    out = {name: unpacked(part, files[name][1]) for name, part in parts.items()}
    if any(len(out[name]) != files[name][1] for name in out):
        raise BadInput("a file of its scene is cut off")
    return out
