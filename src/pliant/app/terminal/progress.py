"""A progress bar for work that turns out to take longer than two seconds.

On standard error, as lines where that is a file; in a notebook as its own output.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

from pliant.app.terminal.notebook import NotebookBar, in_notebook

PATIENCE = 2.0
"""Seconds before anything is shown."""

BLINK = 0.2
"""Seconds between messages to a notebook."""

QUIET_INTERVAL = 10.0
"""Seconds between lines where standard error is a file or a pipe."""


class Progress:
    """Call `reach(done)` as the work goes on, with what else there is to say."""

    def __init__(self, what: str, total: int | None, done: int = 0):
        self._what, self._total, self._first = what, total, done
        self._begun = self._shown = monotonic()
        self._bar: Any = None
        self._task: Any = None
        self._notebook = NotebookBar() if in_notebook() else None

    def reach(self, done: int, told: str = "") -> None:
        """`done` of the total are done; told: how it goes, shown behind what is done."""
        now = monotonic()
        if now - self._begun < PATIENCE:
            return
        if self._notebook is not None:
            if now - self._shown >= BLINK:
                self._shown = now
                self._notebook.reach(self._what, done, self._total)
            return
        if not sys.stderr.isatty():
            if now - self._shown >= QUIET_INTERVAL:
                self._shown = now
                most = "" if self._total is None else f" of {self._total}"
                more = f", {told}" if told else ""
                sys.stderr.write(f"{self._what}: {done}{most}{more}\n")
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
        if self._notebook is not None:
            self._notebook.close()


@contextmanager
def progress(what: str, total: int | None, done: int = 0) -> Iterator[Progress]:
    """A progress that is closed at the end, however it comes."""
    shown = Progress(what, total, done)
    try:
        yield shown
    finally:
        shown.close()
