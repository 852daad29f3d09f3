"""A bad input, what is to become of it, and how one is tried.

A case makes its files in an empty folder and says what is run: words of the command line, or a
reader. It is expected to be refused with one sentence, or to be taken, with a word of warning or
without. Whatever it is: no traceback, no waiting, no gigabytes, and a refusal leaves no files.
"""

import contextlib
import io
import logging
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w

from pliant.app import cli
from pliant.core.compiling import MESSAGE
from pliant.core.errors import PliantError

REFUSED, WARNED, TAKEN = "refused", "taken with a warning", "taken"

PATIENCE = 10.0
"""Seconds of a core that a file which ends in an error may take."""

MEMORY = 2 * 1024**3
"""Bytes that it may take."""

OUT = "out"
"""Where a command of a case writes; a refusal must not leave it behind."""

BLOCK = {
    "title": "block",
    "steps": 1,
    "shape": {"type": "box", "center": [0.5, 0.0, 0.0], "size": [1.0, 0.5, 0.5]},
    "body": {"kind": "grid", "spacing": 0.25},
    "material": {"youngs_modulus": 500.0, "mass_damping": 0.1, "stiffness_damping": 0.01},
    "fixed": [{"region": {"type": "box", "center": [0.0, 0.0, 0.0], "size": [0.02, 0.6, 0.6]}}],
    "integrator": {"type": "Newmark1", "dt": 0.02, "theta": 0.6},
}
"""Sixteen cells held at one end."""

Action = list[str] | Callable[[], Any]


@dataclass(frozen=True)
class Case:
    """make(folder): writes the files and returns the command's words, or what is to be called."""

    name: str
    make: Callable[[Path], Action]
    expected: str = REFUSED


class Raw:
    """A value that is written as this text, which no Python value could become."""

    def __init__(self, text: str):
        self.text = text

    def __repr__(self) -> str:
        return f"{self.text[:12]}"


def toml_text(table: dict[str, Any]) -> str:
    """TOML of a table with Raw values in it."""
    raws: list[str] = []

    def hide(value: Any) -> Any:
        if isinstance(value, Raw):
            raws.append(value.text)
            return f"@raw{len(raws) - 1}@"
        if isinstance(value, dict):
            return {k: hide(v) for k, v in value.items()}
        return [hide(v) for v in value] if isinstance(value, list) else value

    text = tomli_w.dumps(hide(table))
    for k, raw in enumerate(raws):
        text = text.replace(f'"@raw{k}@"', raw)
    return text


def changed(table: Any, path: tuple[Any, ...], value: Any) -> Any:
    """A copy of nested tables and lists with another value at a path."""
    if not path:
        return value
    first, rest = path[0], path[1:]
    if isinstance(first, int):
        items = list(table or [])
        items[first] = changed(items[first], rest, value)
        return items
    return {**(table or {}), first: changed((table or {}).get(first), rest, value)}


# --- trying one


class Hang(BaseException):
    """A case that takes too long; no handler of errors may swallow it."""


@dataclass(frozen=True)
class Outcome:
    """ended: REFUSED, WARNED, TAKEN, or "traceback", "hang"; said: all that was said."""

    ended: str
    said: str
    seconds: float
    memory: int

    def wrong(self, case: Case, folder: Path, before: set[Path]) -> str:
        """What is not as it should be; "" if nothing."""
        told = f"\n{self.said[-1500:]}"
        if self.ended in ("traceback", "hang"):
            return self.ended + told
        if self.ended != case.expected:
            return f"expected to be {case.expected}, was {self.ended}{told}"
        if "\x1b" in self.said:
            return f"escape codes for the terminal{told!r}"
        if "Warning: " in self.said and ".py:" in self.said:
            return f"a warning of the interpreter's{told}"
        if self.ended == REFUSED:
            if self.seconds > PATIENCE:
                return f"took {self.seconds:.1f} s"
            if self.memory > MEMORY:
                return f"took {self.memory / 1e9:.1f} GB"
            left = sorted(str(p.relative_to(folder)) for p in files_in(folder) - before)
            if left:
                return f"left {left[:5]} behind"
        return ""


def files_in(folder: Path) -> set[Path]:
    """Everything below a folder."""
    return set(folder.rglob("*"))


def judge(case: Case, folder: Path) -> str:
    """Try a case in a folder of its own; "" if all is as it should be."""
    with contextlib.chdir(folder):
        action = case.make(folder)
        before = files_in(folder)
        outcome = run(action)
        return outcome.wrong(case, folder, before)


def run(action: Action) -> Outcome:
    """Run words of the command line, or a function."""
    said = io.StringIO()
    begun, peak = time.process_time(), _reset_peak()
    with _listening(said), _alarm():
        try:
            ended = _command(action) if isinstance(action, list) else _call(action, said)
        except Hang:
            ended = "hang"
        except Exception:
            import traceback

            ended = "traceback"
            said.write(traceback.format_exc())
    text = said.getvalue()
    if "Traceback" in text or "pliant-report" in text:
        ended = "traceback"
    if ended == TAKEN and _warns(text):
        ended = WARNED
    if ended == REFUSED and not text.strip():
        ended = "refused without a word"
    if ended == REFUSED and isinstance(action, list):
        lines = [line for line in text.splitlines() if line.startswith("pliant: ")]
        ended = REFUSED if len(lines) == 1 else f"refused with {len(lines)} sentences"
    return Outcome(ended, text, time.process_time() - begun, max(0, _peak() - peak))


def _warns(text: str) -> bool:
    warnings = [line for line in text.splitlines() if line.startswith("logged: ")]
    return any(MESSAGE not in line for line in warnings)


def _command(words: list[str]) -> str:
    before = sys.argv
    sys.argv = ["pliant", *words]
    try:
        cli.main()
    except SystemExit as end:
        if end.code not in (0, 2, 3, None):
            raise RuntimeError(f"ended with the code {end.code}") from end
        return REFUSED if end.code else TAKEN
    finally:
        sys.argv = before
    return TAKEN


def _call(function: Callable[[], Any], said: io.StringIO) -> str:
    try:
        function()
    except PliantError as error:
        said.write(f"{error}\n")
        return REFUSED if "\n" not in str(error) else "refused with several lines"
    return TAKEN


@contextlib.contextmanager
def _listening(said: io.StringIO) -> Iterator[None]:
    """Standard output and error, and warnings of the log, into one text."""
    handler = logging.StreamHandler(said)
    handler.setLevel(logging.WARNING)
    handler.setFormatter(logging.Formatter("logged: %(message)s"))
    log = logging.getLogger("pliant")
    log.addHandler(handler)
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            yield
    finally:
        log.removeHandler(handler)


@contextlib.contextmanager
def _alarm() -> Iterator[None]:
    def ring(*_: Any) -> None:
        raise Hang

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 12.0 * PATIENCE)  # the machine may be busy
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def _reset_peak() -> int:
    """Forget the largest memory so far; the memory now."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return _peak()


def _peak() -> int:
    """Largest memory of this process since the last reset [bytes]; 0 where it is not known."""
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return 1024 * int(line.split()[1])
    return 0
