"""Files that appear whole or not at all: written beside their place, then renamed into it."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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


def _umask() -> int:
    current = os.umask(0)  # it can only be read by setting it
    os.umask(current)
    return current
