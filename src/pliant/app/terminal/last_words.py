"""What is said when a command ends early, however that came about, and where the rest is."""

import logging
import os
import platform
import sys
import tempfile
import traceback
from contextlib import suppress

from pliant.app.terminal.endings import DEFECT

REPORT = "pliant-report-"
"""Begin of the name of a report's file."""


def printable(text: str) -> str:
    """Text with its control characters spelt out: a file's name must not steer a terminal."""
    return "".join(c if c.isprintable() or c in "\n\t" else _spelt(c) for c in text)


def _spelt(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


class PrintableLines(logging.Formatter):
    """Warnings of the log, which name files, as they may be shown."""

    def format(self, record: logging.LogRecord) -> str:
        """The message."""
        return printable(super().format(record))


_complaints = 0


def complaints() -> int:
    """How often anything was said here."""
    return _complaints


def complain(message: str) -> None:
    """One line on standard error, if anybody listens."""
    global _complaints
    _complaints += 1
    with suppress(OSError, ValueError):
        sys.stderr.write(f"pliant: {printable(' '.join(message.split()))}\n")
        sys.stderr.flush()


def report_defect(error: BaseException) -> int:
    """Say that this is Pliant's fault and where the details are; the exit code."""
    what = f"{type(error).__name__}: {error}".splitlines()[0][:200]
    try:
        handle, name = tempfile.mkstemp(prefix=REPORT, suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as stream:
            stream.write(f"pliant {_version()}, Python {platform.python_version()}\n")
            stream.write(f"{platform.platform()}\n{sys.argv!r}\n\n")
            stream.write("".join(traceback.format_exception(error)))
        where = f"the details are in {name}: please send that file with what you did."
    except OSError:
        where = "please tell us what you did."
    complain(f"This is a mistake in Pliant ({what}); {where}")
    return DEFECT


def _version() -> str:
    import pliant

    return pliant.__version__
