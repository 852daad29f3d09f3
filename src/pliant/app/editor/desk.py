"""One thread for everything the editor does: orders from pages and frames from workers, in turn.

Pages call back in many threads at once; here their orders wait in a queue, so that nothing else in
the editor needs a lock. An order with a key replaces a waiting one with the same key: of a slider's
many values only the last counts.
"""

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from pliant.core.errors import PliantError

log = logging.getLogger(__name__)


class Desk:
    """complain(sentence) is called, in the desk's thread, with every PliantError."""

    def __init__(self, complain: Callable[[str], None]):
        self._complain = complain
        self._orders: OrderedDict[Any, Callable[[], None]] = OrderedDict()
        self._changed = threading.Condition()
        self._open = True
        self._busy = False
        self._thread = threading.Thread(target=self._run, name="pliant-desk", daemon=True)

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def post(self, order: Callable[[], None], *, key: Any = None) -> None:
        """Queue an order; one with the same key that still waits is dropped."""
        with self._changed:
            self._orders.pop(key, None)
            self._orders[object() if key is None else key] = order
            self._changed.notify_all()

    def stop(self) -> None:
        """Finish the order at hand, forget the rest."""
        with self._changed:
            self._open = False
            self._changed.notify_all()
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout=10.0)

    def settle(self, timeout: float = 60.0) -> bool:
        """Wait until nothing waits; for tests."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._orders and not self._busy, timeout)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._busy = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._orders or not self._open)
                if not self._open:
                    return
                _, order = self._orders.popitem(last=False)
                self._busy = True
            try:
                order()
            except PliantError as error:
                self._complain(str(error))
            except Exception as error:
                log.exception("an order failed")
                self._complain(f"{type(error).__name__}: {error}")
