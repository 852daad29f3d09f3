"""Files that appear whole or not at all, and text files of a bounded size."""

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pliant.core.errors import BadInput


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """A temporary path with the same ending; it takes the place of `path` if nothing is raised."""
    path = Path(path)
    try:
        handle, name = tempfile.mkstemp(
            prefix=f".{path.stem}.", suffix=path.suffix, dir=path.parent
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


def write_text(path: str | Path, text: str) -> None:
    """Write a text file at once."""
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: str | Path, value: Any) -> None:
    """Write a JSON file at once; numbers that are not finite are refused."""
    write_text(path, json.dumps(value, indent=1, allow_nan=False) + "\n")


def read_json(path: str | Path, *, limit: int = 16 * 1024**2) -> Any:
    """What a JSON file of at most `limit` bytes holds."""
    text = read_text(path, limit=limit)
    try:
        return json.loads(text)
    except RecursionError:
        raise BadInput(f"{path}: nested too deeply to be read.") from None
    except ValueError as error:
        raise BadInput(f"{path}: not valid JSON ({error}): write it again.") from error


def read_text(path: str | Path, *, limit: int = 16 * 1024**2) -> str:
    """A UTF-8 file of at most `limit` bytes."""
    path = Path(path)
    try:
        if not path.is_file():
            raise BadInput(f"{path}: there is no such file.")
        if path.stat().st_size > limit:
            raise BadInput(f"{path}: larger than {limit / 2**20:.0f} MB, too large for its kind.")
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: not a text file (UTF-8).") from error
    except OSError as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror or error}).") from error


def _umask() -> int:
    current = os.umask(0)  # it can only be read by setting it
    os.umask(current)
    return current
