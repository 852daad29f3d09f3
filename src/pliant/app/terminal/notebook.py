"""Progress in notebooks: one line of output that is replaced as the work goes on."""

import html
import sys
from typing import Any

SHELL = "ZMQInteractiveShell"
"""Of IPython, behind Jupyter's front ends; in a terminal it has another one."""


def in_notebook() -> bool:
    """Whether output goes to a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and type(shell).__name__ == SHELL


class NotebookBar:
    """A bar with words, and lines above it that stay."""

    def __init__(self):
        self._handle: Any = None
        self._lines: list[str] = []

    def add(self, line: str) -> None:
        """A line that stays."""
        self._lines.append(line)
        self._show("")

    def reach(self, what: str, done: int, total: int | None) -> None:
        """`done` of the total are done."""
        most = "" if total is None else f' max="{total}"'
        value = "" if total is None else f' value="{done}"'
        count = f"{done}" if total is None else f"{done} of {total}"
        self._show(f"{html.escape(what)} <progress{value}{most}></progress> {count}")

    def close(self) -> None:
        """Leave the lines, remove the bar."""
        if self._handle is not None:
            self._show("")

    def _show(self, bar: str) -> None:
        from IPython.display import HTML, display  # pyright: ignore[reportMissingImports]

        text = "".join(f"<div>{html.escape(line)}</div>" for line in self._lines)
        shown = HTML(f'<div style="font-family: monospace">{text}{bar}</div>')
        if self._handle is None:
            self._handle = display(shown, display_id=True)
        else:
            self._handle.update(shown)
