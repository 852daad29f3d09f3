"""How the commands talk: one object or a few lines out, one sentence on an error, exit codes."""

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from typing import Annotated, Any, ParamSpec

import typer

from pliant.app.runs import Interrupted, RunFailed
from pliant.core.errors import PliantError, SolverFailure

BAD_INPUT, FAILED, INTERRUPTED = 2, 3, 130

P = ParamSpec("P")

SceneArgument = Annotated[
    str, typer.Argument(metavar="SCENE", help="A built-in scene's name or a TOML file.")
]
ShapeOption = Annotated[
    str | None, typer.Option("--shape", metavar="FILE", help="Use the shape of this file.")
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
            # the reader of our output has gone: nothing left to say, to nobody
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(1) from None
        except OSError as error:
            name = f"{error.filename}: " if error.filename else ""
            stop(f"{name}{error.strerror or error}.", BAD_INPUT)
        except MemoryError:
            stop("Not enough memory: use a larger spacing.", FAILED)

    return guarded


def stop(message: str, code: int) -> None:
    """Say why, in one line, and exit."""
    line = " ".join(message.split())
    sys.stderr.write(f"pliant: {line}\n")
    raise typer.Exit(code)


def say(text: str) -> None:
    """A line for a person, on standard output."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def note(text: str) -> None:
    """A line for a person that is not the result, on standard error."""
    sys.stderr.write(f"{text}\n")


def answer(result: Mapping[str, Any], lines: list[str], *, as_json: bool) -> None:
    """The result: the object, or the lines."""
    if as_json:
        say(json.dumps(result, allow_nan=False))
    else:
        for line in lines:
            say(line)


def set_machine(device: str, threads: int | None) -> None:
    """Start Warp on a device, without its greeting."""
    from pliant.core.launch import set_device, set_threads

    if threads is not None:
        set_threads(threads)
    with _native_silence():
        set_device(device)


@contextmanager
def _native_silence() -> Iterator[None]:
    """Without what native code writes to standard error: Warp misses a CUDA driver aloud."""
    sys.stderr.flush()
    try:
        kept = os.dup(2)
    except OSError:  # there is no standard error
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
