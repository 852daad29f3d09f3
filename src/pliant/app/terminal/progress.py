"""A progress bar on standard error, for work that turns out to take longer than two seconds."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

PATIENCE = 2.0
"""Seconds before anything is shown."""

QUIET_INTERVAL = 10.0
"""Seconds between lines where standard error is a file or a pipe."""


class Progress:
    """Call `reach(done)` as the work goes on, with what else there is to say."""

    def __init__(self, what: str, total: int, done: int = 0):
        self._what, self._total, self._first = what, total, done
        self._begun = self._shown = monotonic()
        self._bar: Any = None
        self._task: Any = None

    def reach(self, done: int, told: str = "") -> None:
        """`done` of the total are done; told: how it goes, shown behind what is done."""
        now = monotonic()
        if now - self._begun < PATIENCE:
            return
        if not sys.stderr.isatty():
            if now - self._shown >= QUIET_INTERVAL:
                self._shown = now
                more = f", {told}" if told else ""
                sys.stderr.write(f"{self._what}: {done} of {self._total}{more}\n")
                sys.stderr.flush()
            return
        bar = self._bar or self._open(done)
        bar.update(self._task, completed=done, told=told)

    def _open(self, done: int) -> Any:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        self._bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[told]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task(self._what, total=self._total, completed=done, told="")
        self._bar.start()
        return self._bar

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.stop()


@contextmanager
def progress(what: str, total: int, done: int = 0) -> Iterator[Progress]:
    """A progress that is closed at the end, however it comes."""
    shown = Progress(what, total, done)
    try:
        yield shown
    finally:
        shown.close()
