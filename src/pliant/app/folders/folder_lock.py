"""One process at a time in a run's folder: two would mix their states.

The lock is the operating system's, on a file in the folder, and ends with the process that holds
it, however that ends: there are no stale ones. Where the system or the disk has no such locks
(Windows, some network disks) nothing is locked.
"""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from fnmatch import fnmatch
from functools import wraps
from pathlib import Path
from typing import ParamSpec, TypeVar

from pliant.core.errors import BadInput
from pliant.core.files import HALF

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

LOCK = ".pliant-lock"
"""The file's name; it is there while somebody works in the folder."""


P = ParamSpec("P")
R = TypeVar("R")

_held: ContextVar[ExitStack] = ContextVar("held")


def lets_go(function: Callable[P, R]) -> Callable[P, R]:
    """A function that lets go at its end of the folders it took hold of with `hold`."""

    @wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        with ExitStack() as stack:
            token = _held.set(stack)
            try:
                return function(*args, **kwargs)
            finally:
                _held.reset(token)

    return wrapped


def holds_nothing(folder: Path) -> bool:
    """Whether there is nothing in it but what a process leaves that was killed as it began."""
    return all(
        p.name == LOCK
        or fnmatch(p.name, f".*{HALF}*")
        or (p.is_dir() and not p.is_symlink() and holds_nothing(p))
        for p in folder.iterdir()
    )


def hold(folder: Path) -> None:
    """Work in a folder alone until the function that `lets_go` ends."""
    _held.get().enter_context(held(folder))


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Work in a folder alone; it is made if need be, and taken away again if nothing came of it."""
    if fcntl is None:
        yield
        return
    made = _make(folder)
    path = folder / LOCK
    try:
        handle = _take(path)
    except BaseException:
        _remove_empty(made)
        raise
    for half in (*folder.glob(f".*{HALF}*"), *folder.glob(f"*/.*{HALF}*")):
        with suppress(OSError):
            half.unlink()  # of a process that was killed: nobody else writes here now
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink()  # while it is still ours
        os.close(handle)
        _remove_empty(made)


def _take(path: Path) -> int:
    """An open file whose lock is ours."""
    assert fcntl is not None
    while True:
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        except OSError as error:
            raise BadInput(f"{path.parent}: cannot be written ({error.strerror}).") from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.read(handle, 20).decode("ascii", "replace").strip()
            os.close(handle)
            known = f" (number {owner})" if owner.isdecimal() else ""
            raise BadInput(
                f"{path.parent}: another process{known} is working there; wait for it, or choose "
                "another --out."
            ) from None
        except OSError as error:
            if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL):
                os.close(handle)
                raise
        if _is_there(handle, path):
            os.ftruncate(handle, 0)
            os.write(handle, str(os.getpid()).encode())
            return handle
        os.close(handle)  # its owner has just removed it: again


def _is_there(handle: int, path: Path) -> bool:
    """True if the open file is the one of that name."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except OSError:
        return False


def _make(folder: Path) -> list[Path]:
    """Make a folder; what was made, the innermost first."""
    missing = [p for p in (folder, *folder.parents) if not p.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"{folder}: cannot be made ({error.strerror}).") from error
    return missing


def _remove_empty(folders: list[Path]) -> None:
    for folder in folders:
        try:
            folder.rmdir()
        except OSError:
            return
