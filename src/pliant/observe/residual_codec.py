"""Depth images against a prediction of them, packed within a largest error.

With y the value of a pixel that saw something, p what was predicted there and q the step,

    k = round((y - p) / q),        y' = p + q k,        |y' - y| <= q / 2,

and the whole numbers k are small where the prediction is good. Where nothing was predicted the
value itself is told in steps, against the same pixel of the image before, or against the pixel
before it. What saw anything is kept exactly, as what has changed since the image before. All that
is then packed with LZMA, the low and the high bytes of the numbers apart.

Values are metres along the ray, or whole steps of a 16-bit image; then q is an odd whole number
and y' is whole, too.
"""

import lzma
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from pliant.core.errors import BadInput

FILTERS = [{"id": lzma.FILTER_LZMA2, "dict_size": 2**22, "lc": 0, "lp": 0, "pb": 0, "mode": 2}]
"""Noise has no neighbours to learn from: with contexts of none each byte is coded by how often it
occurs, which for independent numbers is within a tenth of their entropy."""

PLANES = 4
"""Bytes of a number k."""

STREAMS = ("masks", "hits", "modes", *(f"bytes{i}" for i in range(PLANES)))

LARGEST_IMAGE = 65535
"""Whole values end here."""

MOST_VALUES = 100_000_000
"""Of a film, as of any recording that is read."""

HAIR = 1e-7
"""Share of the error by which a step is shorter than twice it, so that rounding stays within."""


def step_of(error: float, *, per_metre: float | None, cosine: float = 1.0) -> float:
    """The step q for a largest error [m] along the ray.

    per_metre: steps of a 16-bit image, of depths along the camera's axis; cosine: the smallest
    between that and a ray.
    """
    if per_metre is None:
        return 2.0 * error * (1.0 - HAIR)
    return 2.0 * np.floor(error * per_metre * cosine * (1.0 + HAIR)) + 1.0


def packed(data: bytes) -> bytes:
    """LZMA without a header."""
    return lzma.compress(data, format=lzma.FORMAT_RAW, filters=FILTERS)


def unpacked(data: bytes, most: int) -> bytes:
    """At most so many bytes; nothing larger is ever made."""
    try:
        reader = lzma.LZMADecompressor(format=lzma.FORMAT_RAW, filters=FILTERS)
        out = reader.decompress(data, max_length=most + 1)
        while not reader.eof and not reader.needs_input and len(out) <= most:
            out += reader.decompress(b"", max_length=most + 1 - len(out))
    except lzma.LZMAError as error:
        raise BadInput("a stream cannot be unpacked") from error
    if len(out) > most or not reader.eof:
        raise BadInput("a stream has another length than announced")
    return out


@dataclass
class _Memory:
    """What both sides know of the image before, by camera."""

    step: float
    whole: bool
    masks: dict[int, np.ndarray] = field(default_factory=dict)
    images: dict[int, np.ndarray] = field(default_factory=dict)

    def before(self, camera: int, count: int) -> np.ndarray:
        """(count,) values of a camera's image before; zero: none."""
        found = self.images.get(camera)
        return np.zeros(count) if found is None else found

    def keep(self, camera: int, pixel: np.ndarray, value: np.ndarray, count: int) -> None:
        """Remember an image."""
        image = np.zeros(count)
        image[pixel] = value
        self.images[camera] = image

    def split(
        self, camera: int, pixel: np.ndarray, hit: np.ndarray, count: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Places of the pixels that are predicted, that the image before has, and of the others."""
        known = self.before(camera, count)[pixel] > 0.0
        return np.flatnonzero(hit), np.flatnonzero(~hit & known), np.flatnonzero(~hit & ~known)

    def _steps(self, value: np.ndarray) -> np.ndarray:
        return np.rint(value / self.step)

    def _decoded(
        self,
        camera: int,
        pixel: np.ndarray,
        hit: np.ndarray,
        predicted: np.ndarray,
        k: np.ndarray,
        count: int,
    ) -> np.ndarray:
        """Values of the pixels that saw something, from the numbers k in the order of `split`."""
        first, second, third = self.split(camera, pixel, hit, count)
        a, b = len(first), len(first) + len(second)
        out = np.zeros(len(pixel))
        out[first] = predicted[first] + self.step * k[:a]
        known = self._steps(self.before(camera, count)[pixel[second]])
        out[second] = self.step * (known + k[a:b])
        out[third] = self.step * np.cumsum(k[b:])
        if self.whole:
            return np.clip(out, 1.0, LARGEST_IMAGE)  # zero would be no value
        return np.maximum(out, HAIR * self.step)


class Encoder(_Memory):
    """Takes image after image; `streams` is what a file holds."""

    def __init__(self, step: float, *, whole: bool):
        super().__init__(step, whole)
        self._parts: dict[str, list[bytes]] = {name: [] for name in STREAMS}

    def add(self, camera: int, value: np.ndarray, predicted: np.ndarray) -> np.ndarray:
        """One image, (pixels,) with zero for nothing; predicted: (valid pixels,), zero for none.

        Returns what a decoder will make of the valid pixels.
        """
        count = len(value)
        mask = value > 0.0
        pixel = np.flatnonzero(mask)
        old = self.masks.get(camera, np.zeros(count, bool))
        self._parts["masks"].append(np.packbits(mask ^ old).tobytes())
        self.masks[camera] = mask
        hit = predicted > 0.0
        self._parts["hits"].append(np.packbits(~hit).tobytes())
        seen = value[pixel]
        first, second, third = self.split(camera, pixel, hit, count)
        known = self._steps(self.before(camera, count)[pixel[second]])
        smooth = np.rint((seen[first] - predicted[first]) / self.step)
        k = np.concatenate([
            smooth,
            self._steps(seen[second]) - known,
            np.diff(self._steps(seen[third]), prepend=0.0),
        ])  # fmt: skip
        if len(k) and not np.abs(k).max() < 2.0**30:
            raise BadInput(
                f"a depth of {float(seen.max()):.4g} is more than 2^30 errors: allow more."
            )
        out = self._decoded(camera, pixel, hit, predicted, k, count)
        # where the prediction is off as a whole, neighbours are off alike
        along = np.diff(smooth, prepend=0.0)
        mode = len(along) > 0 and np.abs(along).sum() < np.abs(smooth).sum()
        k = k.astype(np.int64)
        if mode:
            k[: len(along)] = along
        self._parts["modes"].append(bytes([int(mode)]))
        folded = ((k << 1) ^ (k >> 63)).astype("<u4")  # 0, -1, 1, -2, ...: the sign is the last bit
        planes = folded.view(np.uint8).reshape(-1, PLANES)
        for i in range(PLANES):
            self._parts[f"bytes{i}"].append(planes[:, i].tobytes())
        self.keep(camera, pixel, out, count)
        return out

    @property
    def streams(self) -> dict[str, bytes]:
        """All packed streams by name."""
        return {name: packed(b"".join(parts)) for name, parts in self._parts.items()}


class Decoder(_Memory):
    """Gives image after image of what an encoder packed; sizes: pixels of each image in turn."""

    def __init__(self, step: float, streams: Mapping[str, bytes], sizes: list[int], *, whole: bool):
        super().__init__(step, whole)
        total = sum((n + 7) // 8 for n in sizes)
        self._masks = np.frombuffer(unpacked(streams["masks"], total), np.uint8)
        if len(self._masks) != total:
            raise BadInput("a stream is cut off")
        self._modes = unpacked(streams["modes"], len(sizes))
        if len(self._modes) != len(sizes):
            raise BadInput("a stream is cut off")
        pixels = min(sum(sizes), MOST_VALUES)
        self._hits = np.frombuffer(unpacked(streams["hits"], total), np.uint8)
        self._planes = [
            np.frombuffer(unpacked(streams[f"bytes{i}"], pixels), np.uint8) for i in range(PLANES)
        ]
        if len({len(plane) for plane in self._planes}) != 1:
            raise BadInput("a stream is cut off")
        self._at = {"mask": 0, "hit": 0, "number": 0, "image": 0}

    def mask(self, camera: int, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Pixels of the next image that saw something, and which of them were predicted."""
        mask = self._bits("mask", self._masks, count)
        old = self.masks.get(camera)
        mask = mask if old is None else mask ^ old
        self.masks[camera] = mask
        pixel = np.flatnonzero(mask)
        return pixel, ~self._bits("hit", self._hits, len(pixel))

    def _bits(self, name: str, data: np.ndarray, count: int) -> np.ndarray:
        size = (count + 7) // 8
        part = data[self._at[name] : self._at[name] + size]
        self._at[name] += size
        if len(part) != size:
            raise BadInput("a stream is cut off")
        return np.unpackbits(part, count=count).astype(bool)

    def values(
        self, camera: int, pixel: np.ndarray, hit: np.ndarray, predicted: np.ndarray, count: int
    ) -> np.ndarray:
        """The values of that image's pixels; predicted: (valid pixels,)."""
        a = self._at["number"]
        planes = [plane[a : a + len(pixel)] for plane in self._planes]
        self._at["number"] += len(pixel)
        if len(planes[0]) != len(pixel):
            raise BadInput("a stream is cut off")
        folded = np.stack(planes, axis=1).reshape(-1).view("<u4").astype(np.int64)
        k = (folded >> 1) ^ -(folded & 1)
        if self._modes[self._at["image"]]:
            ahead = int(hit.sum())
            k[:ahead] = np.cumsum(k[:ahead])
        self._at["image"] += 1
        out = self._decoded(camera, pixel, hit, predicted, k.astype(float), count)
        self.keep(camera, pixel, out, count)
        return out
