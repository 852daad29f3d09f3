"""What becomes of a folder whose work ends early: taken away, or its result.json says so.

A command that is refused after its folder was begun, a full disk, Ctrl-C while a scene is set up:
none of them may leave "running" behind.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from pliant.app.terminal.endings import Interrupted, RunFailed
from pliant.core.errors import PliantError


class Begun(Protocol):
    """A folder of a run or a fit."""

    path: Path

    def has_results(self) -> bool:
        """True if anything in it took time to compute."""
        ...

    def clear(self) -> None:
        """Remove its files."""
        ...

    def write_result(self, result: Mapping[str, Any]) -> None:
        """Replace result.json."""
        ...


@contextmanager
def settled(directory: Begun, *, new: bool) -> Iterator[None]:
    """While active, an end that nobody has written down is; new: the folder is begun within."""
    try:
        yield
    except (Interrupted, RunFailed):
        raise  # they are written down
    except BaseException as end:
        if new and not directory.has_results():
            with suppress(OSError):
                directory.clear()
        else:
            _write_down(directory, end)
        raise


def _write_down(directory: Begun, end: BaseException) -> None:
    path = directory.path / "result.json"
    status = "interrupted" if isinstance(end, KeyboardInterrupt) else "failed"
    with suppress(PliantError, OSError, ValueError):
        told = json.loads(path.read_text(encoding="utf-8"))
        if told.get("status") != "running":
            return  # as it was before
        try:
            directory.write_result(told | {"status": status, "reason": str(end)})
        except PliantError:  # no room for a new file: the same bytes but for the word
            data = path.read_bytes().replace(b'"running"', b'"failed" ')
            with path.open("r+b") as stream:
                stream.write(data)
