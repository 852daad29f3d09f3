"""Plays stored frames, at the speed at which they happened."""

import threading
import time
from collections.abc import Callable

from pliant.app.editor.desk import Desk
from pliant.app.editor.history import History

SHORTEST = 1.0 / 30.0
"""Seconds between two frames drawn."""


class Replay:
    """show(index) is called in the desk's thread; starts over at the end."""

    def __init__(self, desk: Desk, history: History, show: Callable[[int], None]):
        self._desk, self._history, self._show = desk, history, show
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.speed = 1.0

    @property
    def playing(self) -> bool:
        """True while it plays."""
        return self._thread is not None and not self._stop.is_set()

    def play(self, start: int) -> None:
        """From a frame on."""
        self.pause()
        if len(self._history) < 2:
            return
        self._stop = threading.Event()
        start = 0 if start >= len(self._history) - 1 else start
        self._thread = threading.Thread(
            target=self._run, args=(start, self._stop), name="pliant-replay", daemon=True
        )
        self._thread.start()

    def pause(self) -> None:
        """Stop where it is."""
        self._stop.set()
        self._thread = None

    def _run(self, index: int, stop: threading.Event) -> None:
        began, t0 = time.monotonic(), self._history[index].t
        while not stop.is_set():
            now = t0 + self.speed * (time.monotonic() - began)
            last = len(self._history) - 1
            while index < last and self._history[index + 1].t <= now:
                index += 1
            self._desk.post(lambda i=index: None if stop.is_set() else self._show(i), key=self)
            if index >= last:
                stop.wait(0.8)  # a moment at the end
                index, began, t0 = 0, time.monotonic(), self._history[0].t
                continue
            stop.wait(SHORTEST)
