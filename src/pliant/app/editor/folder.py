"""The one folder that the editor reads and writes: plain names in it, nothing above or linked."""

import os
import re
import stat
from pathlib import Path
from typing import BinaryIO, cast

from pliant.core.errors import BadInput

MAX_FILE = 512 * 1024**2
"""Bytes of the largest file handed to a browser."""

UPLOADS = {".ply": 64, ".obj": 64, ".stl": 64, ".npz": 64}
"""Endings that may be uploaded, and how many megabytes."""

_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_. -]{0,99}")


def plain_name(name: str, *, suffixes: tuple[str, ...]) -> str:
    """The name itself if it is one of a file in a folder, with one of the endings."""
    name = name.strip()
    if not _PLAIN.fullmatch(name) or ".." in name:
        raise BadInput(
            f"'{name[:60]}': a file name here has letters, digits, dots, spaces, - and _ only."
        )
    if Path(name).suffix.lower() not in suffixes:
        raise BadInput(f"{name}: its ending must be one of {', '.join(suffixes)}.")
    return name


def inside(folder: Path, name: str) -> Path:
    """folder/name, refused if a link leads elsewhere."""
    path = folder / name
    real = Path(os.path.realpath(path))
    if path.is_symlink() or real.parent != Path(os.path.realpath(folder)):
        raise BadInput(f"{name}: is a link that leads out of the folder.")
    return path


def open_inside(folder: Path, name: str) -> tuple[BinaryIO, int]:
    """A regular file in the folder, open, and its size [bytes]."""
    path = inside(folder, name)
    # the file may be replaced by a link after the check above, and a pipe would wait for a writer
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        handle = os.open(path, flags)
    except OSError as error:
        raise BadInput(f"{name}: cannot be read ({error.strerror}).") from error
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_FILE:
        os.close(handle)
        raise BadInput(f"{name}: is no file, or too large.")
    return cast(BinaryIO, os.fdopen(handle, "rb", buffering=0)), status.st_size


def check_upload(name: str, size: int) -> str:
    """The name to store an upload under; refused if its type or size is."""
    base = name.replace("\\", "/").rsplit("/", 1)[-1]
    base = re.sub(r"[^A-Za-z0-9_.-]", "_", base).lstrip("._-")[-80:]
    name = plain_name(base or "upload", suffixes=tuple(UPLOADS))
    limit = UPLOADS[Path(name).suffix.lower()]
    if size > limit * 1024**2:
        raise BadInput(f"{name}: larger than {limit} MB.")
    if size <= 0:
        raise BadInput(f"{name}: is empty.")
    return name
