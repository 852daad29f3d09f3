"""The entry point, `pliant COMMAND`: whatever happens in a command ends here, in one sentence.

It imports next to nothing before it can answer Ctrl-C, a closed pipe, or a defect.
"""

import logging
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from pliant.app.terminal.endings import BAD_INPUT, INTERRUPTED
from pliant.app.terminal.last_words import (
    PrintableLines,
    complain,
    complaints,
    report_defect,
)


def main() -> None:
    """Entry point of the `pliant` command."""
    for name in ("stdout", "stderr"):  # None where it was closed before we began
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    # before NumPy is loaded: its threads spin while ours work. Modes of 50,000 nodes take 8 s of
    # processor time without them and 19 s with two; and bits would depend on how many there are
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    said = complaints()
    try:
        with _stopping():
            code = _run(sys.argv[1:])
        if code == INTERRUPTED and complaints() == said:
            raise KeyboardInterrupt  # which typer takes without a word
    except KeyboardInterrupt:
        complain("Interrupted.")
        code = INTERRUPTED
    except BrokenPipeError:
        code = 1  # the reader of our output has gone: nothing left to say, to nobody
        _be_silent()
    except OSError as error:  # a full disk under standard output, for example
        complain(f"{error.strerror or error}.")
        code = BAD_INPUT
        _be_silent()
    except Exception as error:
        code = report_defect(error)
    sys.exit(code)


def _run(words: list[str]) -> int:
    from pliant.app.terminal.application import app
    from pliant.app.terminal.command_table import COMMANDS

    if logging.lastResort is not None:  # what writes warnings where nobody has asked for a log
        logging.lastResort.setFormatter(PrintableLines())
    try:
        code = app(words or ["--help"], prog_name="pliant", standalone_mode=False)
    except Exception as error:
        if type(error).__name__ == "Abort":
            raise KeyboardInterrupt from None  # what typer makes of Ctrl-C
        # a wrong option or argument; typer carries its own copy of click, so no class to name
        if not hasattr(error, "format_message"):
            raise
        which = f"pliant {words[0]}" if words and words[0] in COMMANDS else "pliant"
        complain(f"{error.format_message()} (see {which} --help)")  # type: ignore[attr-defined]
        return BAD_INPUT
    return code if isinstance(code, int) else 0


@contextmanager
def _stopping() -> Iterator[None]:
    """While active, SIGTERM and SIGHUP are as Ctrl-C, so that temporary files are removed."""

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    before = {}
    for name in ("SIGTERM", "SIGHUP"):
        # only the main thread may set handlers, and nohup's wish is kept
        with suppress(ValueError, AttributeError):
            number = getattr(signal, name)
            if signal.getsignal(number) == signal.SIG_DFL:
                before[number] = signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _be_silent() -> None:
    """What is still to be written at the end goes nowhere."""
    with suppress(OSError, ValueError):
        for stream in (sys.stdout, sys.stderr):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
