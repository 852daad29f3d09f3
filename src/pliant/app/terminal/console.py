"""How the commands talk: one object or a few lines out, one sentence on an error, exit codes."""

import json
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import wraps
from typing import Annotated, Any, ParamSpec

import typer

from pliant.app.terminal.endings import BAD_INPUT, FAILED, INTERRUPTED, Interrupted, RunFailed
from pliant.app.terminal.last_words import complain, printable
from pliant.core.errors import BadInput, PliantError, SolverFailure
from pliant.core.numbers import LARGEST, SMALLEST

P = ParamSpec("P")

MOST = 10**12
"""Largest whole number of an option; nothing is counted that far."""

ARGUMENTS = ("scene", "target", "folder", "case", "name", "fit", "host")
"""Of commands, which are told in words of their own where they are empty."""

SceneArgument = Annotated[
    str,
    typer.Argument(
        metavar="SCENE", help="A built-in scene's name, a TOML file, or the folder of a run."
    ),
]
ShapeOption = Annotated[
    str | None, typer.Option("--shape", metavar="FILE", help="Use the shape of this file.")
]
ShapeUnitsOption = Annotated[
    str | None,
    typer.Option("--shape-units", metavar="UNIT", help="Of that file's lengths: mm, cm or m."),
]
SpacingOption = Annotated[
    float | None,
    typer.Option("--spacing", metavar="METRES", help="Size of the cells instead of the scene's."),
]
AcrossOption = Annotated[
    int | None,
    typer.Option("--cells-across", metavar="N", help="Cells across the body's shortest side."),
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON object on standard output.")
]
DeviceOption = Annotated[
    str, typer.Option("--device", help="Where to compute: cpu, or a CUDA device such as cuda:0.")
]
ThreadsOption = Annotated[
    int | None, typer.Option("--threads", help="CPU threads; by default all, or PLIANT_THREADS.")
]


def command(function: Callable[P, None]) -> Callable[P, None]:
    """Errors of a command as one sentence on standard error and an exit code."""

    @wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            for name, value in kwargs.items():
                _require_usable(name, value)
            function(*args, **kwargs)
        except Interrupted as error:
            stop(str(error), INTERRUPTED)
        except KeyboardInterrupt:
            stop("Interrupted.", INTERRUPTED)
        except (RunFailed, SolverFailure) as error:
            stop(str(error), FAILED)
        except PliantError as error:
            stop(str(error), BAD_INPUT)
        except BrokenPipeError:
            raise
        except OSError as error:
            name = f"{error.filename}: " if error.filename else ""
            stop(f"{name}{error.strerror or error}.", BAD_INPUT)
        except MemoryError:
            stop("Not enough memory: use a larger spacing.", FAILED)

    return guarded


def _require_usable(name: str, value: Any) -> None:
    """Numbers of options are finite, and of a size that can be used."""
    option = f"--{name.replace('_', '-')}"
    if isinstance(value, str) and not value.strip() and name not in ARGUMENTS:
        raise BadInput(f"{option} is empty: leave it away, or say what it is to be.")
    if isinstance(value, float):
        size = abs(value)
        if not size <= LARGEST:
            raise BadInput(f"{option} must be a finite number up to {LARGEST:g}, not {value}.")
        if 0.0 < size < SMALLEST:
            raise BadInput(f"{option} must be zero or at least {SMALLEST:g}, not {value}.")
    elif isinstance(value, int) and not isinstance(value, bool) and abs(value) > MOST:
        raise BadInput(f"{option} must be a whole number up to {MOST:g}.")


def stop(message: str, code: int) -> None:
    """Say why, in one line, and exit."""
    complain(message)
    raise typer.Exit(code)


def say(text: str) -> None:
    """A line for a person, on standard output."""
    sys.stdout.write(f"{printable(text)}\n")
    sys.stdout.flush()


def note(text: str) -> None:
    """A line for a person that is not the result, on standard error."""
    with suppress(OSError):
        sys.stderr.write(f"{printable(text)}\n")


def answer(result: Mapping[str, Any], lines: list[str], *, as_json: bool) -> None:
    """The result: the object, or the lines."""
    if as_json:
        say(json.dumps(result, allow_nan=False))
    else:
        for line in lines:
            say(line)


def set_machine(device: str, threads: int | None) -> None:
    """Start Warp on a device."""
    from pliant.core.launch import core_count, set_device, set_threads

    if threads is not None:
        set_threads(min(threads, core_count()))  # more only get in each other's way
    set_device(device)
