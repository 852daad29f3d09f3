"""Files that appear whole or not at all; files of a bounded size, and the plain values in them."""

import json
import os
import re
import stat
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pliant.core.errors import BadInput
from pliant.core.numbers import require_plain

MAX_DEPTH = 80
"""Nesting of tables in a file; shapes allow 64."""

MAX_DOTS = 1000
"""In a line of a TOML file, outside of texts and numbers."""

_NO_KEY = re.compile(r"\"[^\"]*\"|'[^']*'|\d+\.\d+")


HALF = ".pliant-"
"""In the names of files that are not whole yet; a process that was killed leaves such behind."""


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """A temporary path with the same ending; it takes the place of `path` if nothing is raised."""
    path = Path(path)
    try:
        handle, name = tempfile.mkstemp(
            prefix=f".{path.stem}{HALF}", suffix=path.suffix, dir=path.parent
        )
    except OSError as error:
        raise BadInput(f"{path}: cannot be written ({error.strerror}).") from error
    os.close(handle)
    temporary = Path(name)
    try:
        temporary.chmod(0o666 & ~_umask())
        yield temporary
        os.replace(temporary, path)
    except OSError as error:
        raise BadInput(f"{path}: cannot be written ({error.strerror or error}).") from error
    finally:
        temporary.unlink(missing_ok=True)


def require_writable(path: str | Path) -> None:
    """Refuse a place that could not be written to later, before the work for it is done."""
    path = Path(path)
    try:
        there = next(p for p in (path, *path.absolute().parents) if p.exists())
    except OSError as error:
        raise BadInput(f"{path}: cannot be written ({error.strerror}).") from error
    if there.is_dir() and not os.access(there, os.W_OK | os.X_OK):
        raise BadInput(f"{path}: cannot be written (no permission for {there}).")


def write_text(path: str | Path, text: str) -> None:
    """Write a text file at once."""
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: str | Path, value: Any) -> None:
    """Write a JSON file at once; numbers that are not finite are refused."""
    write_text(path, json.dumps(value, indent=1, allow_nan=False) + "\n")


def read_json(path: str | Path, *, limit: int = 16 * 1024**2) -> Any:
    """What a JSON file of at most `limit` bytes holds: plain values, no infinite numbers."""
    text = read_text(path, limit=limit)
    try:
        value = json.loads(text)
        require_plain(value, deepest=MAX_DEPTH)
    except RecursionError:
        raise BadInput(f"{path}: nested too deeply to be read.") from None
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from error
    except ValueError as error:
        raise BadInput(f"{path}: not valid JSON ({error}): write it again.") from error
    return value


def read_toml(path: str | Path, *, limit: int = 10 * 1024**2) -> dict[str, Any]:
    """The tables of a TOML file; a list with a modulus for each of 500,000 cells fits in it."""
    text = read_text(path, limit=limit)
    try:
        _require_short_keys(text)
        tables = tomllib.loads(text)
        require_plain(tables, deepest=MAX_DEPTH)
    except RecursionError:
        raise BadInput(f"{path}: its tables are nested too deeply; flatten them.") from None
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from error
    except ValueError as error:  # a number of more than 4,300 digits is not the parser's own error
        reason = str(error).splitlines()[0].partition("; use sys.")[0].rstrip(".")
        raise BadInput(f"{path}: not valid TOML: {reason}.") from error
    return tables


def _require_short_keys(text: str) -> None:
    """Refuse a line of thousands of dots outside of texts and numbers: parsers take minutes."""
    for line in text.splitlines():
        if line.count(".") > MAX_DOTS and _NO_KEY.sub("", line).count(".") > MAX_DOTS:
            raise BadInput("its tables are nested too deeply; flatten them.")


def read_text(path: str | Path, *, limit: int = 16 * 1024**2) -> str:
    """A UTF-8 file of at most `limit` bytes."""
    try:
        text = read_bytes(path, limit=limit).decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: not a text file (UTF-8).") from error
    if "\0" in text:
        raise BadInput(f"{path}: not a text file (it has zero bytes).")
    return text


def read_bytes(path: str | Path, *, limit: int) -> bytes:
    """A file of at most `limit` bytes; no pipe, device or folder."""
    path = Path(path)
    require_file(path, limit, may_be_empty=True)
    try:
        with path.open("rb") as stream:
            data = stream.read(limit + 1)  # it may have grown
    except OSError as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror or error}).") from error
    if len(data) > limit:
        raise BadInput(f"{path}: larger than {_megabytes(limit)}, too large for its kind.")
    return data


def require_file(path: Path, limit: int, *, may_be_empty: bool = False) -> None:
    """Refuse what is not a readable file of at most `limit` bytes, before it is read."""
    try:
        kind = path.stat()
        if not stat.S_ISREG(kind.st_mode):
            what = "a folder" if stat.S_ISDIR(kind.st_mode) else "a pipe or a device"
            raise BadInput(f"{path}: is {what}, not a file.")
        if kind.st_size > limit:
            raise BadInput(f"{path}: larger than {_megabytes(limit)}, too large for its kind.")
        if kind.st_size == 0 and not may_be_empty:
            raise BadInput(f"{path}: the file is empty.")
        with path.open("rb"):
            pass
    except (FileNotFoundError, NotADirectoryError, ValueError):  # no name has a zero byte
        raise BadInput(f"{path}: there is no such file.") from None
    except OSError as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror or error}).") from error


def _megabytes(size: int) -> str:
    return f"{size / 2**20:.0f} MB"


def _umask() -> int:
    current = os.umask(0)  # it can only be read by setting it
    os.umask(current)
    return current
