"""A process of the editor's own: computes apart from the page, ends with it, leaves nothing behind.

It ends when told to, when its pipe closes (the editor died), or when killed by `stop`. Where it has
to compile kernels first, it says so: ("notice", sentence).
"""

import contextlib
import logging
import multiprocessing
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

GRACE = 2.0
"""Seconds a process gets to finish its step before it is ended."""


class Child:
    """Runs target(connection, *arguments) in a new process; what it sends goes to `receive`.

    receive(message) is called in a thread of its own, and receive(None) once when it has ended.
    """

    def __init__(
        self,
        target: Callable[..., None],
        *arguments: Any,
        receive: Callable[[Any], None],
        name: str,
    ):
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(
            target=_run, args=(target, theirs, *arguments), name=name, daemon=True
        )
        self._process.start()
        theirs.close()
        self._receive = receive
        self._sending = threading.Lock()
        self._reader = threading.Thread(target=self._read, name=f"{name}-reader", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int | None:
        """The process's number."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """True while it runs."""
        return self._process.is_alive()

    def send(self, message: Any) -> None:
        """Hand a message over; silently lost if the process has ended."""
        with self._sending, contextlib.suppress(OSError, ValueError):
            self._connection.send(message)

    def stop(self, message: Any = None) -> None:
        """End it: politely with `message`, then by force."""
        if message is not None:
            self.send(message)
            self._process.join(GRACE)
        if self._process.is_alive():
            self._process.terminate()
            self._process.join(GRACE)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        if threading.current_thread() is not self._reader:
            self._reader.join(GRACE)
        with self._sending:
            self._connection.close()

    def _read(self) -> None:
        with contextlib.suppress(EOFError, OSError):
            while True:
                self._receive(self._connection.recv())
        self._receive(None)


class _Notices(logging.Handler):
    """Sends what is logged to the editor."""

    def __init__(self, connection: Connection):
        super().__init__()
        self._connection = connection

    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(OSError):
            self._connection.send(("notice", record.getMessage()))


def _run(target: Callable[..., None], connection: Connection, *arguments: Any) -> None:
    """The new process: Ctrl-C belongs to the editor, a closed pipe is the end."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    log = logging.getLogger("pliant.core.compiling")
    log.addHandler(_Notices(connection))
    log.propagate = False
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        target(connection, *arguments)
