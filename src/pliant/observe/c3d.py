"""Points of a C3D file, the binary format of motion capture (c3d.org's format description).

A file is blocks of 512 bytes: a header, parameters in named groups, then the frames, each with four
numbers a point (x, y, z and a word whose sign says whether it was seen) and analog samples, which
are left aside. Numbers are 16-bit integers with a scale or 32-bit floats, in the order of Intel, of
DEC or of MIPS machines. Every count that the file claims is compared with its size.
"""

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pliant.core.errors import BadInput
from pliant.geometry.mesh_files import require_file

BLOCK = 512
MAX_BYTES = 2 * 1024**3
MAX_NUMBERS = 100_000_000
"""Of all points' coordinates."""

MAX_PARAMETERS = 10_000
INTEL, DEC, MIPS = 84, 85, 86
SIGNATURE = 80


@dataclass(frozen=True)
class C3DPoints:
    """names: of the points; times: (frames,) [s] from the first frame on; positions: (frames,
    points, 3) in `units`, not a number where a point was not seen.
    """

    names: tuple[str, ...]
    times: np.ndarray
    positions: np.ndarray
    units: str


def read_c3d(path: str | Path) -> C3DPoints:
    """The points of a file."""
    path = Path(path)
    require_file(path, MAX_BYTES)
    data = path.read_bytes()
    if len(data) < 2 * BLOCK or data[1] != SIGNATURE or data[0] < 2:
        raise BadInput(f"{path}: is not a C3D file, or cut off.")
    place = BLOCK * (data[0] - 1)
    if place + 4 > len(data):
        raise BadInput(f"{path}: its parameters lie beyond its end: copy it again.")
    machine = data[place + 3]
    if machine not in (INTEL, DEC, MIPS):
        raise BadInput(f"{path}: was written by an unknown kind of machine ({machine}).")
    try:
        found = _parameters(data, place, machine)
    except (struct.error, ValueError, IndexError):
        raise BadInput(f"{path}: its parameters are damaged: export it again.") from None
    order = ">" if machine == MIPS else "<"
    count, analog, first, last = struct.unpack_from(order + "HHHH", data, 2)
    start = BLOCK * (struct.unpack_from(order + "H", data, 16)[0] - 1)
    scale = float(_floats(data[12:16], machine)[0])
    rate = _number(found, "POINT", "RATE", float(_floats(data[20:24], machine)[0]))
    if count == 0:
        raise BadInput(f"{path}: holds no points.")
    if not (np.isfinite(rate) and rate > 0.0 and np.isfinite(scale) and scale != 0.0):
        raise BadInput(f"{path}: frame rate {rate} or scale {scale} cannot be: export it again.")
    frames = last - first + 1
    if last == 65535:  # as many as 16 bits hold; longer recordings tell in a parameter
        frames = max(frames, _long_count(found))
    width = 4 if scale < 0.0 else 2
    words = 4 * count + analog
    there = (len(data) - start) // (words * width) if start >= BLOCK else 0
    if not 0 < frames <= there:
        raise BadInput(
            f"{path}: promises {frames} frames of {count} points, but holds {max(there, 0)}: "
            "copy it again."
        )
    if frames * words > MAX_NUMBERS:
        raise BadInput(f"{path}: holds more than {MAX_NUMBERS} numbers: cut it into parts.")
    raw = data[start : start + frames * words * width]
    if scale < 0.0:
        table = _floats(raw, machine).reshape(frames, words)[:, : 4 * count].astype(float)
    else:
        table = (
            np.frombuffer(raw, order + "i2").reshape(frames, words)[:, : 4 * count].astype(float)
        )
    table = table.reshape(frames, count, 4)
    positions = table[..., :3] * (1.0 if scale < 0.0 else scale)
    positions[(table[..., 3] < 0.0) | ~np.isfinite(positions).all(axis=2)] = np.nan
    units = str((found.get(("POINT", "UNITS")) or ["m"])[0]).strip() or "m"
    return C3DPoints(_names(found, count), np.arange(frames) / rate, positions, units)


def _floats(raw: bytes, machine: int) -> np.ndarray:
    """32-bit floats of a machine; DEC's have their halves swapped and are four times as large."""
    if machine == MIPS:
        return np.frombuffer(raw, ">f4")
    if machine == INTEL:
        return np.frombuffer(raw, "<f4")
    return np.frombuffer(raw, "<u2").reshape(-1, 2)[:, ::-1].copy().view("<f4")[:, 0] / 4.0


def _parameters(data: bytes, place: int, machine: int) -> dict[tuple[str, str], list[Any]]:
    """(group, name): values, of all parameters of numbers and text."""
    order = ">" if machine == MIPS else "<"
    groups: dict[int, str] = {}
    waiting: list[tuple[int, str, list[Any]]] = []
    at = place + 4
    for _ in range(MAX_PARAMETERS):
        length, group = struct.unpack_from("bb", data, at)
        if length == 0 or group == 0:
            break
        name = data[at + 2 : at + 2 + abs(length)].decode("latin-1").upper()
        here = at + 2 + abs(length)
        (onward,) = struct.unpack_from(order + "H", data, here)
        if group < 0:
            groups[-group] = name
        else:
            waiting.append((group, name, _values(data, here + 2, machine)))
        if onward == 0:
            break
        at = here + onward
    return {(groups.get(g, ""), name): values for g, name, values in waiting}


def _values(data: bytes, at: int, machine: int) -> list[Any]:
    kind, dimensions = struct.unpack_from("bB", data, at)
    sizes = list(data[at + 2 : at + 2 + dimensions])
    count = int(np.prod(sizes, dtype=np.int64)) if sizes else 1
    width = abs(kind)
    raw = data[at + 2 + dimensions : at + 2 + dimensions + count * width]
    if width not in (1, 2, 4) or len(raw) < count * width:
        raise ValueError(kind)
    if kind == -1:
        step = sizes[0] if sizes else 1
        text = raw.decode("latin-1")
        return [text[k : k + step].strip() for k in range(0, len(text), max(step, 1))]
    if kind == 4:
        return _floats(raw, machine).tolist()
    order = ">" if machine == MIPS else "<"
    return np.frombuffer(raw, "i1" if kind == 1 else order + "i2").tolist()


def _number(found: dict[tuple[str, str], list[Any]], group: str, name: str, other: float) -> float:
    values = found.get((group, name), [])
    good = len(values) > 0 and isinstance(values[0], int | float)
    return float(values[0]) if good else other


def _long_count(found: dict[tuple[str, str], list[Any]]) -> int:
    """Frames of a recording longer than 65535: by its first and last, in two halves, or as told."""
    ends = [found.get(("TRIAL", f"ACTUAL_{end}_FIELD"), []) for end in ("START", "END")]
    if all(len(e) == 2 and all(isinstance(x, int) for x in e) for e in ends):
        first, last = ((e[0] & 65535) + 65536 * (e[1] & 65535) for e in ends)
        return last - first + 1
    told = _number(found, "POINT", "FRAMES", 0.0)
    return int(told) if np.isfinite(told) else 0


def _names(found: dict[tuple[str, str], list[Any]], count: int) -> tuple[str, ...]:
    """Labels of the points (LABELS2 and so on continue them), made different where they are not."""
    given: list[str] = []
    for suffix in ("", *(str(k) for k in range(2, 100))):
        part = found.get(("POINT", f"LABELS{suffix}"))
        if part is None:
            break
        given += [str(n) for n in part]
    out: list[str] = []
    for k in range(count):
        name = given[k] if k < len(given) and given[k] else f"point{k + 1}"
        out.append(name if name not in out else f"{name}#{k + 1}")
    return tuple(out)
