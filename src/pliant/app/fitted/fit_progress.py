"""Progress of a fit: a line per optimiser step, a bar within it; on stderr or in a notebook."""

import statistics
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

from pliant.app.terminal.notebook import NotebookBar, in_notebook
from pliant.app.terminal.progress import BLINK, QUIET_INTERVAL
from pliant.core.lengths import length
from pliant.inverse.fitting.fit import Step


class FitProgress:
    """`step` after each optimiser step, `reach` within the simulation that it takes."""

    def __init__(self):
        self._latest = "first simulation"
        self._shown = monotonic()
        self._bar: Any = None
        self._task: Any = None
        self._notebook = NotebookBar() if in_notebook() else None

    def step(self, step: Step) -> None:
        """Show cost and values."""
        self._latest = step_line(step)
        self._shown = monotonic()
        if self._notebook is not None:
            self._notebook.add(self._latest)
        elif self._bar is not None:
            self._bar.console.print(self._latest, highlight=False, markup=False)
            self._bar.update(self._task, description="next step")
        else:
            sys.stderr.write(f"{self._latest}\n")
            sys.stderr.flush()

    def reach(self, done: int, total: int) -> None:
        """`done` of `total` time steps of the present simulation."""
        if self._notebook is not None:
            if monotonic() - self._shown >= BLINK:
                self._shown = monotonic()
                self._notebook.reach("next step", done, total)
        elif sys.stderr.isatty():
            bar = self._bar or self._open()
            bar.update(self._task, completed=done, total=total)
        elif monotonic() - self._shown >= QUIET_INTERVAL:
            self._shown = monotonic()
            sys.stderr.write(f"fitting: time step {done} of {total}\n")
            sys.stderr.flush()

    def _open(self) -> Any:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        self._bar = Bar(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
            TimeElapsedColumn(), console=Console(stderr=True), transient=True,
        )  # fmt: skip
        self._task = self._bar.add_task(self._latest, total=None)
        self._bar.start()
        return self._bar

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.stop()
        if self._notebook is not None:
            self._notebook.close()


@contextmanager
def fit_progress() -> Iterator[FitProgress]:
    """A progress that is closed at the end, however it comes."""
    shown = FitProgress()
    try:
        yield shown
    finally:
        shown.close()


def step_line(step: Step) -> str:
    """Iteration, cost, rms and values on one line; a value per cell by median and range."""
    shown: list[str] = []
    cells: dict[str, list[float]] = {}
    for label, value in step.values.items():
        name, bracket, _ = label.partition("[")
        if bracket:
            cells.setdefault(name, []).append(value)
        else:
            shown.append(f"{label} {value:.5g}")
    for name, values in cells.items():
        low, middle, high = min(values), statistics.median(values), max(values)
        shown.append(f"{name} {low:.4g} to {high:.4g}, median {middle:.4g}")
    head = f"iteration {step.iteration:2d}  cost {step.cost:.6g}  rms {length(step.rms, 4)}  "
    return head + "  ".join(shown)
