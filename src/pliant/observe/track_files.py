"""Tracked points from files: CSV, C3D, or a tracks.toml that says more of either.

tracks.csv    t, tip_x, tip_y, tip_z, ...     a line a frame, empty where a point was not seen
tracks.c3d    as motion capture writes it
tracks.toml   file, units, sigma, at_sigma, begin, end, [points.NAME], [align]
"""

import csv
import logging
import math
import re
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pliant.core.errors import BadInput
from pliant.core.files import read_text, write_text
from pliant.observe.c3d import read_c3d
from pliant.observe.files import UNITS
from pliant.observe.tracks import TrackedPoints, rigid_fit

log = logging.getLogger(__name__)

DESCRIPTION = "tracks.toml"
ENDINGS = (".csv", ".tsv", ".txt", ".c3d", ".toml")

MAX_BYTES = 512 * 1024**2
MAX_NUMBERS = 50_000_000

TIMES = {"s": 1.0, "ms": 1e-3, "us": 1e-6}
_TIME = re.compile(r"(?:t|time)(?:[\s_]*[\[\(]?\s*(s|ms|us)\s*[\]\)]?)?", re.IGNORECASE)
_COORDINATE = re.compile(
    r"(.+?)[\s_.:]([xyz])(?:[\s_]*[\[\(]?\s*(m|dm|cm|mm|in)\s*[\]\)]?)?", re.IGNORECASE
)
_LOST = {"", "nan", "na", "n/a", "-", "none", "null"}

KEYS = {"file", "units", "sigma", "at_sigma", "begin", "end", "points", "align"}
POINT_KEYS = {"at", "offset", "sigma", "at_sigma", "use"}
ALIGN_KEYS = {"points", "begin", "end"}


def are_tracks(path: str | Path) -> bool:
    """Whether a path is a file of tracked points, or a folder with one that says so."""
    path = Path(path)
    if path.is_dir():
        return (path / DESCRIPTION).is_file()
    return path.suffix.lower() in ENDINGS


def load_tracks(path: str | Path, *, units: str | None = None, scene: Any = None) -> TrackedPoints:
    """Tracked points in metres and seconds.

    units: of the positions, whatever the file says; with a `scene`, units that nobody states are
    judged by the size of its body.
    """
    path = Path(path)
    if units is not None and units not in UNITS:
        raise BadInput(f"units must be one of {', '.join(UNITS)}, not '{units}'.")
    if path.is_dir():
        path = path / DESCRIPTION
    if path.suffix.lower() == ".toml":
        return _described(path, units, scene)
    return _in_metres(path, *_read(path), units, scene)


def _read(path: Path) -> tuple[TrackedPoints, str | None]:
    """Tracks in the file's own units, and these where it states them."""
    if path.suffix.lower() == ".c3d":
        found = read_c3d(path)
        return _ever_seen(path, found.times, found.positions, found.names), found.units
    return read_csv_tracks(path)


def _ever_seen(path: Path, times, positions: np.ndarray, names: Sequence[str]) -> TrackedPoints:
    """Without points that were never seen."""
    present = ~np.isnan(positions).any(axis=2)
    chosen = np.flatnonzero(present.any(axis=0))
    if not len(chosen):
        raise BadInput(f"{path}: none of its points was ever seen.")
    if len(chosen) < len(names):
        log.warning("%s: %d points were never seen: left out.", path, len(names) - len(chosen))
    return TrackedPoints(times, positions[:, chosen], names=[names[int(k)] for k in chosen])


def _in_metres(
    path: Path, seen: TrackedPoints, stated: str | None, units: str | None, scene: Any
) -> TrackedPoints:
    unit = units or stated
    if unit is not None and unit not in UNITS:
        raise BadInput(f"{path}: units '{unit}' are not known: use {', '.join(UNITS)}.")
    if unit is None and scene is not None:
        unit = _guessed(seen, scene)
        if unit != "m":
            log.warning(
                "%s: the positions span far more than the body, so they are taken to be in %s; say "
                "otherwise with --units.", path, unit,
            )  # fmt: skip
    factor = UNITS[unit or "m"]
    return seen if factor == 1.0 else replace(seen, positions=factor * seen.positions)


def _guessed(seen: TrackedPoints, scene: Any) -> str:
    """Of m, cm and mm the one that makes the recording about as large as the body."""
    points = seen.positions[seen.present]
    spread = float(np.linalg.norm(np.ptp(points, axis=0)))
    ratio = spread / float(np.linalg.norm(np.ptp(scene.body.nodes, axis=0)))
    return "m" if ratio < 30.0 else ("cm" if ratio < 300.0 else "mm")


# --- CSV


def read_csv_tracks(path: Path) -> tuple[TrackedPoints, str | None]:
    """Tracks of a table with a line of names, in its own units, and these where it states them."""
    lines = [
        line
        for line in read_text(path, limit=MAX_BYTES).lstrip("\ufeff").splitlines()
        if line.strip() and not line.lstrip().startswith("#")
    ]
    if len(lines) < 2:
        raise BadInput(f"{path}: needs a line of names (t, tip_x, tip_y, tip_z) and lines below.")
    mark = max(",;\t", key=lines[0].count)
    rows = csv.reader(lines, delimiter=mark)
    head = [name.strip() for name in next(rows)]
    if len(head) * len(lines) > MAX_NUMBERS:
        raise BadInput(f"{path}: more than {MAX_NUMBERS} numbers: cut it into parts.")
    clock, columns, unit = _columns(path, head)
    count = len(head)
    table = np.empty((len(lines) - 1, count))
    for k, row in enumerate(rows):
        if len(row) != count:
            raise BadInput(
                f"{path}: frame {k + 1} has {len(row)} entries, the line of names has {count}."
            )
        for j, text in enumerate(row):
            table[k, j] = _entry(path, k, head[j], text)
    times = clock * table[:, 0]
    wrong = np.flatnonzero(~np.isfinite(times) | np.r_[False, np.diff(times) <= 0.0])
    if len(wrong):
        raise BadInput(
            f"{path}: the time of frame {wrong[0] + 1} is missing, or not after the last."
        )
    positions = np.stack([table[:, own] for own in columns.values()], axis=1)
    return _ever_seen(path, times, positions, list(columns)), unit


def _columns(path: Path, head: list[str]) -> tuple[float, dict[str, list[int]], str | None]:
    """Seconds of the clock's unit, columns of x, y, z by name, and the unit of lengths."""
    clock = _TIME.fullmatch(head[0])
    if clock is None:
        raise BadInput(f"{path}: the first column must be the time, t, not '{head[0]}'.")
    found: dict[str, dict[str, int]] = {}
    units: set[str] = set()
    for k, text in enumerate(head[1:], start=1):
        match = _COORDINATE.fullmatch(text)
        if match is None:
            raise BadInput(f"{path}: column '{text}' is not like tip_x, tip_y or tip_z.")
        own = found.setdefault(match[1], {})
        if match[2].lower() in own:
            raise BadInput(f"{path}: there are two columns '{text}'.")
        own[match[2].lower()] = k
        if match[3]:
            units.add(match[3].lower())
    axes = sorted({axis for own in found.values() for axis in own})
    if axes not in (["x", "y"], ["x", "y", "z"]):
        raise BadInput(f"{path}: points need x, y and z (x and y in a plane), not {axes}.")
    for name, own in found.items():
        if sorted(own) != axes:
            raise BadInput(f"{path}: the point '{name}' lacks a column of {', '.join(axes)}.")
    if len(units) > 1:
        raise BadInput(f"{path}: its columns are in {' and '.join(sorted(units))}: use one unit.")
    seconds = TIMES[(clock[1] or "s").lower()]
    return seconds, {n: [own[a] for a in axes] for n, own in found.items()}, next(iter(units), None)


def _entry(path: Path, frame: int, name: str, text: str) -> float:
    if text.strip().lower() in _LOST:
        return math.nan
    try:
        return float(text)
    except ValueError:
        raise BadInput(f"{path}: frame {frame + 1}, {name}: '{text}' is not a number.") from None


# --- tracks.toml


def _described(path: Path, units: str | None, scene: Any) -> TrackedPoints:
    """The file that a description names, with what it says of it; lengths there are in metres."""
    try:
        said = tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{path}: is not TOML ({error}).") from error
    _only(path, "", said, KEYS)
    if not isinstance(said.get("file"), str):
        raise BadInput(f'{path}: must name its file: file = "tracks.csv".')
    stated = said.get("units")
    if stated is not None and stated not in UNITS:
        raise BadInput(f"{path}: units '{stated}' are not known: use {', '.join(UNITS)}.")
    source = path.parent / said["file"]
    if source.suffix.lower() == ".toml":
        raise BadInput(f"{path}: file must be a CSV or C3D file.")
    seen, own = _read(source)
    seen = _in_metres(source, seen, stated or own, units, scene)
    points = _table(path, "points", said.get("points", {}))
    for name, entry in points.items():
        _only(path, f"points.{name}.", _table(path, f"points.{name}", entry), POINT_KEYS)
        if name not in seen.names:
            raise BadInput(
                f"{path}: [points.{name}]: {source.name} has no such point; it has "
                f"{', '.join(seen.names)}."
            )
    if points:
        seen = _with_places(path, seen.only(*points), points, said)
    elif said.get("sigma") is not None or said.get("at_sigma") is not None:
        seen = replace(seen, **{k: _length(path, k, said[k]) for k in ("sigma", "at_sigma")
                                if k in said})  # fmt: skip
    if "align" in said:
        seen = _aligned(path, seen, said["align"])
    used = [n for n in seen.names if points.get(n, {}).get("use", True)]
    seen = seen.only(*used) if len(used) < len(seen) else seen
    begin, end = (_number(path, k, said[k]) if k in said else other
                  for k, other in (("begin", 0.0), ("end", math.inf)))  # fmt: skip
    return seen.between(begin, end) if "begin" in said or "end" in said else seen


def _with_places(path: Path, seen: TrackedPoints, points: dict, said: dict) -> TrackedPoints:
    parts: dict[str, Any] = {}
    for key in ("at", "offset"):
        given = {n: p[key] for n, p in points.items() if key in p}
        if key == "at" and 0 < len(given) < len(points):
            lacking = next(n for n in points if n not in given)
            raise BadInput(f"{path}: [points.{lacking}] lacks `at`, which others have.")
        if given:
            zero = [0.0] * seen.dim
            parts[key] = np.array(
                [_vector(path, f"points.{n}.{key}", given.get(n, zero), seen.dim) for n in points]
            )
    for key in ("sigma", "at_sigma"):
        every = [p.get(key, said.get(key)) for p in points.values()]
        if any(v is not None for v in every):
            if None in every:
                raise BadInput(f"{path}: give {key} for all points, or once above them.")
            parts[key] = np.array([_length(path, key, v) for v in every])
    return replace(seen, **parts)


def _aligned(path: Path, seen: TrackedPoints, how: Any) -> TrackedPoints:
    """Moved so that some points, averaged over a time, lie nearest to where they are at rest."""
    _only(path, "align.", _table(path, "align", how), ALIGN_KEYS)
    if seen.at is None:
        raise BadInput(f"{path}: [align] needs `at` of the points.")
    names = how.get("points", list(seen.names))
    if not isinstance(names, list) or not all(n in seen.names for n in names):
        raise BadInput(f"{path}: align.points must be some of {', '.join(seen.names)}.")
    begin, end = (_number(path, f"align.{k}", how[k]) if k in how else other
                  for k, other in (("begin", -math.inf), ("end", math.inf)))  # fmt: skip
    part = seen.only(*names)
    during = (part.times >= begin - 1e-9) & (part.times <= end + 1e-9)
    if not part.present[during].any(axis=0).all():
        raise BadInput(f"{path}: [align]: a point was never seen between {begin:g} and {end:g} s.")
    there = np.nanmean(part.positions[during], axis=0)
    turn, shift = rigid_fit(there, np.asarray(part.at))
    left = np.linalg.norm(there @ turn.T + shift - np.asarray(part.at), axis=1)
    log.warning(
        "%s: moved onto the places at rest by a turn of %.1f degrees; %.2g to %.2g m are left.",
        path, np.degrees(np.arccos(np.clip(0.5 * (np.trace(turn) - 1.0), -1.0, 1.0))),
        left.min(), left.max(),
    )  # fmt: skip
    return seen.moved(turn, shift)


def _table(path: Path, name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BadInput(f"{path}: {name} must be a table.")
    return value


def _only(path: Path, where: str, said: dict, keys: set[str]) -> None:
    for key in said:
        if key not in keys:
            raise BadInput(f"{path}: {where}{key} is unknown; there are {', '.join(sorted(keys))}.")


def _number(path: Path, key: str, value: Any) -> float:
    good = isinstance(value, int | float) and not isinstance(value, bool)
    if not good or not math.isfinite(value):
        raise BadInput(f"{path}: {key} must be a number, not {value!r}.")
    return float(value)


def _length(path: Path, key: str, value: Any) -> float:
    found = _number(path, key, value)
    if found <= 0.0:
        raise BadInput(f"{path}: {key} must be a positive length [m], not {value!r}.")
    return found


def _vector(path: Path, key: str, value: Any, dim: int) -> list[float]:
    if not isinstance(value, list) or len(value) != dim:
        raise BadInput(f"{path}: {key} must be {dim} numbers [m], not {value!r}.")
    return [_number(path, key, v) for v in value]


def save_tracks(seen: TrackedPoints, path: str | Path) -> None:
    """Write a CSV file that `load_tracks` reads, in metres."""
    axes = "xyz"[: seen.dim]
    lines = [",".join(["t", *(f"{n}_{a}" for n in seen.names for a in axes)])]
    for t, row in zip(seen.times, seen.positions.reshape(len(seen.times), -1), strict=True):
        lines.append(",".join([repr(float(t)), *("" if x != x else repr(float(x)) for x in row)]))
    write_text(path, "\n".join(lines) + "\n")
